"""What a model file may name: the rule for each kind of entry in the description that skops writes.

skops checks names against a list. This is stricter, because it looks at a name together with what would be done with
it: a kernel may be kept as a function but not called while loading, our own types are filled in but never called.
"""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from inspect import isfunction
from types import ModuleType
from typing import Any

from sklearn.base import BaseEstimator

import sparsebayes
from sparsebayes.core import kernels


def _defined_in(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """What a module defines itself, by its full name."""
    for name, thing in vars(module).items():
        if getattr(thing, "__module__", None) == module.__name__:
            yield f"{module.__name__}.{name}", thing


PROTOCOL = 2
"""Of skops 0.13: the first in which every entry is what it calls itself. Entries of older ones are read otherwise."""
ROOMS = ("core", "data", "engine", "estimators")
"""Where the types of fitted models live."""
KEYS = ("builtins.str", "builtins.int", "builtins.float", "numpy.str", "numpy.int", "numpy.uint", "numpy.float")
"""Beginnings of the types of keys that come back as they were. skops stores keys as text, and bool("False") is true."""
NAMES = {
    "DictNode": {"builtins.dict", "collections.OrderedDict"},
    "ListNode": {"builtins.list"},
    "TupleNode": {"builtins.tuple"},
    "SetNode": {"builtins.set"},
    "SliceNode": {"builtins.slice"},
    "JsonNode": {"builtins.str"},
    "DTypeNode": {"numpy.dtype"},
    "PartialNode": {"functools.partial"},
    "FunctionNode": {name for name, thing in _defined_in(kernels) if isfunction(thing)}
    | {f"sklearn.feature_selection._univariate_selection.{score}" for score in ("f_classif", "f_regression")},
    "ObjectNode": {"sklearn.compose._column_transformer.make_column_selector"},
}
"""Kinds of entries, and the names that they may have."""
BEGINNINGS = {
    "FunctionNode": ("numpy.", "scipy.special."),
    "MaskedArrayNode": ("numpy.ma.",),
    "NdArrayNode": ("numpy.",),
    "ObjectNode": ("sklearn.",),
    "RandomStateNode": ("numpy.random.",),
    "TypeNode": ("builtins.", "numpy."),
}
"""Kinds whose other names may begin like this; which of those are safe is left to the list that skops keeps."""


@cache
def own_types() -> dict[str, type]:
    """Estimators and data classes that the package's rooms define, by their full names."""
    found: dict[str, Any] = {}
    for room in ROOMS:
        package = importlib.import_module(f"{sparsebayes.__name__}.{room}")
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            found |= dict(_defined_in(importlib.import_module(module.name)))
    return {name: thing for name, thing in found.items() if isinstance(thing, type) and _is_data(thing)}


def _is_data(cls: type) -> bool:
    return is_dataclass(cls) or issubclass(cls, BaseEstimator)


def trusted_names() -> list[str]:
    """What skops is to trust beyond what it trusts by itself."""
    kinds = ("DTypeNode", "FunctionNode", "ObjectNode", "PartialNode")
    return [*own_types(), *sorted(set().union(*(NAMES[kind] for kind in kinds)))]


def refusals(schema: Any) -> list[str]:
    """What is wrong with the description of an object, entry by entry; nothing, if it may be loaded."""
    found: dict[str, None] = {}  # a set that keeps the order
    if schema["protocol"] < PROTOCOL:
        found[f"protocol {schema['protocol']} of skops, which sparsebayes.save never wrote"] = None
    read: dict[str, Any] = {}
    for entry in _entries(schema):
        found |= dict.fromkeys(_refusals(entry))
        # A member that several entries read, each for itself, would make much out of little; skops shares it by the id.
        if "file" in entry and read.setdefault(entry["file"], entry.get("__id__")) != (entry.get("__id__") or object()):
            found["an array that several places read"] = None
    return list(found)


def _entries(tree: Any) -> Iterator[Mapping[str, Any]]:
    """All entries of a description, the outermost first."""
    waiting = [tree]
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, dict):
            if "__loader__" in thing:
                yield thing
            waiting.extend(thing.values())
        elif isinstance(thing, list):
            waiting.extend(thing)


def _refusals(entry: Mapping[str, Any]) -> Iterator[str]:
    loader, name = str(entry["__loader__"]), f"{entry.get('__module__')}.{entry.get('__class__')}"
    known = own_types()
    if loader == "ObjectNode" and name in known:
        yield from _other_fields(known[name], entry)
    elif name not in NAMES.get(loader, ()) and not name.startswith(BEGINNINGS.get(loader, ())):
        yield name
    elif loader == "DictNode":
        keys = {f"{key['__module__']}.{key['__class__']}" for key in entry["key_types"]["content"]}
        yield from (f"a dict with keys of type {key}" for key in sorted(keys) if not key.startswith(KEYS))


def _other_fields(cls: type, entry: Mapping[str, Any]) -> Iterator[str]:
    """Where the fields that were stored are not those of this version."""
    stored = entry["content"]["content"].keys() if "content" in entry else set()
    if is_dataclass(cls):
        expected = {field.name for field in fields(cls)}
        differ = expected ^ stored
    else:
        differ = set(cls._get_param_names()) - stored  # type: ignore[attr-defined]
    if differ:
        yield f"a {cls.__name__} of another version (which differs in {', '.join(sorted(differ))})"
