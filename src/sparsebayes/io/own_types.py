"""The types of this package that a model file may hold, found by a walk through the package.

These are the public estimators, and the data classes that the annotations of their private attributes lead to. The
fields of a data class must be of the kinds that its annotations say; what an annotation leaves open is not allowed.
"""

import importlib
import inspect
import pkgutil
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

import sparsebayes
from sparsebayes.core.kernels import KERNELS
from sparsebayes.io.archive import Archive
from sparsebayes.io.kinds import (
    NONE,
    NUMBER,
    TEXT,
    WORDS,
    Array,
    Dict,
    Entry,
    Kind,
    Named,
    Object,
    Row,
    Several,
    State,
    any_of,
    check,
    choice,
    functions,
    is_a,
)

OUTER = ("app", "inspection", "io")
"""Rooms in which no type of a fitted model lives."""
NOTHING = any_of()
PLAIN_TYPES: Mapping[Any, Kind] = {float: NUMBER, int: NUMBER, bool: NUMBER, str: TEXT, types.NoneType: NONE}
SEQUENCES = {list: ("ListNode",), tuple: ("TupleNode",), Sequence: ("ListNode", "TupleNode")}


@cache
def data_classes() -> tuple[type, ...]:
    """All data classes that the inner rooms define."""
    found: dict[str, type] = {}
    for room in pkgutil.iter_modules(sparsebayes.__path__, f"{sparsebayes.__name__}."):
        if room.ispkg and room.name.rpartition(".")[2] not in OUTER:
            package = importlib.import_module(room.name)
            for module in pkgutil.walk_packages(package.__path__, f"{room.name}."):
                try:
                    found |= dict(_defined_in(importlib.import_module(module.name)))
                except ModuleNotFoundError as error:  # of a package that is optional: no fitted model needs it
                    if error.name is None or error.name.startswith(sparsebayes.__name__):
                        raise
    return tuple(found.values())


def _defined_in(module: types.ModuleType) -> Iterator[tuple[str, type]]:
    """Data classes that a module does not merely import."""
    for name, thing in vars(module).items():
        if isinstance(thing, type) and is_dataclass(thing) and thing.__module__ == module.__name__:
            yield f"{module.__name__}.{name}", thing


@cache
def estimators() -> tuple[type[BaseEstimator], ...]:
    """The estimators that the package exports."""
    public = [getattr(sparsebayes, name) for name in sparsebayes.__all__]
    return tuple(thing for thing in public if isinstance(thing, type) and issubclass(thing, BaseEstimator))


# --- annotations as kinds ---


def kind_of(hint: Any) -> Kind:
    """The kind of value that an annotation allows."""
    if hint in PLAIN_TYPES:
        return PLAIN_TYPES[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return choice(*args)
    if origin in (typing.Union, types.UnionType):
        return any_of(*map(kind_of, args))
    if np.ndarray in (hint, origin):
        return Array() | WORDS if typing.Any in typing.get_args(args[-1] if args else None) else Array()
    if origin in SEQUENCES and args:
        if origin is tuple and args[-1] is not Ellipsis:
            return Row(tuple(map(kind_of, args)))
        return Several(kind_of(args[0]), SEQUENCES[origin])
    if origin is dict:
        return Dict(kind_of(args[1]))
    if origin is Callable:
        return KERNEL
    cls = origin or hint
    if isinstance(cls, type) and issubclass(cls, np.generic):
        return NUMBER
    if isinstance(cls, type) and is_dataclass(cls):
        return Object(lambda: _states(cls))
    return NOTHING


@cache
def _states(cls: type) -> dict[str, State]:
    """A data class and those derived from it, by their names."""
    derived = [each for each in data_classes() if issubclass(each, cls)]
    return {state.name: state for state in map(data_class_state, derived)}


def data_class_state(cls: type) -> State:
    """The fields of a data class: all of them, and nothing else."""
    hints = typing.get_type_hints(cls)
    kinds = {each.name: kind_of(hints[each.name]) for each in fields(cls)}
    return State(cls, frozenset(kinds), kinds)


def private_kinds(cls: type) -> dict[str, Kind]:
    """Of the private attributes that an estimator annotates, unless they would hide more than a plain default."""
    hints = typing.get_type_hints(cls)
    return {name: kind_of(hint) for name, hint in hints.items() if name.startswith("_") and _may_be_set(cls, name)}


def _may_be_set(cls: type, name: str) -> bool:
    """Whether the class leaves an attribute open, or gives it a number, a word or None."""
    return not hasattr(cls, name) or type(inspect.getattr_static(cls, name)) in PLAIN_TYPES


# --- kernels: the only place for a function ---


@dataclass(frozen=True)
class PartialKernel(Kind):
    """A kernel with numbers filled in for parameters that it has."""

    def fits(self, entry: Entry) -> bool:
        """Whether it is a partial at all."""
        return is_a(entry, "PartialNode", "functools.partial")

    def check(self, entry: Entry, archive: Archive, names: set[str]) -> None:
        """Refuse what is more than a kernel of ours with numbers."""
        names.add("functools.partial")
        content = entry["content"]
        check(FUNCTION, content["func"], archive, names)
        kernel = next(each.value for each in KERNELS.values() if each.value.__name__ == content["func"]["__class__"])
        parameters = inspect.signature(kernel).parameters.values()
        given = frozenset(each.name for each in parameters if each.kind is each.KEYWORD_ONLY)
        check(Row(()), content["args"], archive, names)
        check(Dict(NUMBER, given), content["kwds"], archive, names)
        check(NONE | Dict(NUMBER, frozenset()), content["namespace"], archive, names)


@cache
def _kernel_states() -> dict[str, State]:
    """Data classes that can be called on two sets of rows, as a kernel is."""
    found = [cls for cls in data_classes() if _parameters(cls) == ["self", "X", "Z"]]
    return {state.name: state for state in map(data_class_state, found)}


def _parameters(cls: type) -> list[str]:
    call = vars(cls).get("__call__")
    return [] if call is None else list(inspect.signature(call).parameters)


FUNCTION: Named = functions(*(kernel.value for kernel in KERNELS.values()))
KERNEL: Kind = any_of(FUNCTION, PartialKernel(), Object(_kernel_states))
