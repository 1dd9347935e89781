"""What a value in a model file may be: small checks of an entry, which the allow list puts together into tables.

A kind says at a glance whether an entry looks like it (`fits`), and then looks at all that is inside (`check`). What no
kind fits is refused: there is no kind for functions, types or methods in general, but only for those that are named.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any

import numpy as np

from sparsebayes.io.archive import Archive, Refused, shown

Entry = Mapping[str, Any]

INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
SCALARS = {
    f"numpy.{name}": np.dtype(getattr(np, name))
    for name in ("bool", "bool_", *INTEGERS, "float16", "float32", "float64", "str_")
}
"""NumPy's types of single values."""
VERSION = re.compile(r"[0-9A-Za-z.+!-]{1,50}")
KEYS = {"builtins.str", "builtins.int", "builtins.float", *SCALARS} - {"numpy.bool", "numpy.bool_"}
"""Types of keys that come back as they were. skops stores keys as text, and bool("False") is true."""


def name_of(entry: Entry) -> str:
    """The full name of the type or function that an entry names."""
    return f"{entry.get('__module__')}.{entry.get('__class__')}"


def is_a(entry: Any, loader: str, *names: str) -> bool:
    """Whether an entry is for this loader of skops and has one of these names."""
    if not isinstance(entry, dict) or entry.get("__loader__") != loader:
        return False
    return not names or name_of(entry) in names


def told(entry: Any) -> str:
    """What an entry is, for a message."""
    if is_a(entry, "JsonNode"):
        return shown(entry.get("content"))
    return shown(name_of(entry)) if isinstance(entry, dict) else shown(entry)


class Kind:
    """Something that a value may be."""

    def fits(self, entry: Entry) -> bool:
        """Whether the entry looks like it."""
        raise NotImplementedError

    def check(self, entry: Entry, archive: Archive, names: set[str]) -> None:
        """Refuse the entry unless all of it is sound; `names` gathers the types that were allowed."""

    def __or__(self, other: "Kind") -> "Kind":
        return AnyOf((self, other))


@dataclass(frozen=True)
class AnyOf(Kind):
    """One of several kinds."""

    kinds: tuple[Kind, ...]

    def fits(self, entry: Entry) -> bool:
        return any(kind.fits(entry) for kind in self.kinds)

    def check(self, entry: Entry, archive: Archive, names: set[str]) -> None:
        fitting = [kind for kind in self.kinds if kind.fits(entry)]
        for kind in fitting[:-1]:
            try:
                return check(kind, entry, archive, names)
            except Refused:
                continue
        check(fitting[-1], entry, archive, names)


def check(kind: Kind, entry: Any, archive: Archive, names: set[str]) -> None:
    """Refuse an entry that is not of this kind."""
    if not isinstance(entry, dict) or not kind.fits(entry):
        raise Refused(f"{told(entry)} is not allowed there")
    kind.check(entry, archive, names)


# --- single values ---


@dataclass(frozen=True)
class Value(Kind):
    """A value in JSON of one of some types; with `options`, one of these."""

    types: tuple[type, ...]
    options: frozenset[Any] | None = None

    def fits(self, entry: Entry) -> bool:
        if not is_a(entry, "JsonNode", "builtins.str") or not isinstance(entry["content"], str):
            return False
        value = json.loads(entry["content"])
        return type(value) in self.types and (self.options is None or value in self.options)


@dataclass(frozen=True)
class Version(Kind):
    """The version of a package, which scikit-learn shows in a warning."""

    def fits(self, entry: Entry) -> bool:
        return Value((str,)).fits(entry) and VERSION.fullmatch(json.loads(entry["content"])) is not None


@dataclass(frozen=True)
class Whole(Kind):
    """An integer between two others."""

    least: int
    most: int

    def fits(self, entry: Entry) -> bool:
        return WHOLE.fits(entry) and self.least <= json.loads(entry["content"]) <= self.most


@dataclass(frozen=True)
class Scalar(Kind):
    """A single value of NumPy."""

    kinds: str

    def fits(self, entry: Entry) -> bool:
        return is_a(entry, "NdArrayNode", *SCALARS) and SCALARS[name_of(entry)].kind in self.kinds

    def check(self, entry: Entry, archive: Archive, names: set[str]) -> None:
        header = _header(entry, archive)
        if header.shape or header.dtype.kind != SCALARS[name_of(entry)].kind:
            raise Refused(f"{told(entry)} made from an array of shape {header.shape} and type {header.dtype}")


def choice(*options: str) -> Value:
    """One of these words."""
    return Value((str,), frozenset(options))


NONE = Value((type(None),))
WHOLE = Value((int,))
NUMBER = Value((bool, int, float)) | Scalar("biuf")
TEXT = Value((str,)) | Scalar("U")


# --- arrays ---


def _header(entry: Entry, archive: Archive) -> Any:
    """Of the member that holds the array, which belongs to this entry alone: each entry makes a copy of its own."""
    if entry.get("type") != "numpy" or entry.get("file") != f"{entry.get('__id__')}.npy":
        raise Refused("an array that several places read, or that is stored in another way")
    return archive.header(entry["file"])


@dataclass(frozen=True)
class Array(Kind):
    """An array of numbers (or, of kind U, of words)."""

    kinds: str = "biuf"

    def fits(self, entry: Entry) -> bool:
        return is_a(entry, "NdArrayNode", "numpy.ndarray") and entry.get("type") != "json"

    def check(self, entry: Entry, archive: Archive, names: set[str]) -> None:
        header = _header(entry, archive)
        if header.dtype.kind not in self.kinds:
            raise Refused(f"an array of type {header.dtype}")


@dataclass(frozen=True)
class Objects(Kind):
    """A one-dimensional array of words, numbers and None, as pandas has them for the names of columns."""

    def fits(self, entry: Entry) -> bool:
        return is_a(entry, "NdArrayNode", "numpy.ndarray") and entry.get("type") == "json"

    def check(self, entry: Entry, archive: Archive, names: set[str]) -> None:
        for item in _contents(entry):
            check(PLAIN, item, archive, names)
        check(Row((Whole(len(entry["content"]), len(entry["content"])),)), entry["shape"], archive, names)


PLAIN = NUMBER | TEXT | NONE
WORDS = Array("U") | Objects()


# --- containers ---


def _contents(entry: Entry) -> list[Any]:
    if not isinstance(entry.get("content"), list):
        raise Refused(f"{told(entry)} without its content")
    return entry["content"]


@dataclass(frozen=True)
class Several(Kind):
    """A list or a tuple of any length, all of whose items are of one kind."""

    item: Kind
    loaders: tuple[str, ...] = ("ListNode",)

    def fits(self, entry: Entry) -> bool:
        return any(is_a(entry, loader, f"builtins.{loader.removesuffix('Node').lower()}") for loader in self.loaders)

    def check(self, entry: Entry, archive: Archive, names: set[str]) -> None:
        for item in _contents(entry):
            check(self.item, item, archive, names)


@dataclass(frozen=True)
class Row(Kind):
    """A tuple with a kind for each place."""

    places: tuple[Kind, ...]

    def fits(self, entry: Entry) -> bool:
        return is_a(entry, "TupleNode", "builtins.tuple")

    def check(self, entry: Entry, archive: Archive, names: set[str]) -> None:
        if len(_contents(entry)) != len(self.places):
            raise Refused(f"a tuple of {len(entry['content'])} items instead of {len(self.places)}")
        for kind, item in zip(self.places, entry["content"], strict=True):
            check(kind, item, archive, names)


@dataclass(frozen=True)
class Dict(Kind):
    """A dict whose values are of one kind; with `keys`, none but these."""

    value: Kind
    keys: frozenset[str] | None = None

    def fits(self, entry: Entry) -> bool:
        return is_a(entry, "DictNode", "builtins.dict")

    def check(self, entry: Entry, archive: Archive, names: set[str]) -> None:
        for key, item in checked_items(entry, KEYS).items():
            if self.keys is not None and key not in self.keys:
                raise Refused(f"the key {shown(key)} is not allowed there")
            check(self.value, item, archive, names)


@dataclass(frozen=True)
class Fields(Kind):
    """A dict with certain keys, each with a kind of its own."""

    kinds: Mapping[str, Kind]

    def fits(self, entry: Entry) -> bool:
        return is_a(entry, "DictNode", "builtins.dict")

    def check(self, entry: Entry, archive: Archive, names: set[str]) -> None:
        items = checked_items(entry, {"builtins.str"})
        if items.keys() != self.kinds.keys():
            raise Refused(f"a dict with other keys than {', '.join(self.kinds)}")
        for key, item in items.items():
            check(self.kinds[key], item, archive, names)


def checked_items(entry: Any, keys: set[str]) -> dict[str, Any]:
    """The items of a dict, whose keys skops makes by calling the types that are listed beside them."""
    if not is_a(entry, "DictNode", "builtins.dict") or not isinstance(entry.get("content"), dict):
        raise Refused(f"{told(entry)} is not allowed there")
    types = entry.get("key_types")
    if not is_a(types, "ListNode", "builtins.list") or len(_contents(types)) != len(entry["content"]):
        raise Refused("a dict without the types of its keys")
    for key in types["content"]:
        if not is_a(key, "TypeNode", *keys):
            raise Refused(f"a dict with keys of type {told(key)}")
    return entry["content"]


@dataclass(frozen=True)
class Slice(Kind):
    """A slice."""

    def fits(self, entry: Entry) -> bool:
        return is_a(entry, "SliceNode", "builtins.slice")

    def check(self, entry: Entry, archive: Archive, names: set[str]) -> None:
        ends = [entry["content"][key] for key in ("start", "stop", "step")]
        if any(type(end) not in (int, type(None)) for end in ends):
            raise Refused("a slice with ends that are no integers")


# --- what is named ---


@dataclass(frozen=True)
class Named(Kind):
    """A function or a type out of a list. Whatever holds it must be free to call it."""

    loader: str
    listed: frozenset[str]

    def fits(self, entry: Entry) -> bool:
        return is_a(entry, self.loader) and name_of(entry) in self.listed

    def check(self, entry: Entry, archive: Archive, names: set[str]) -> None:
        names.add(name_of(entry))


def functions(*listed: Callable[..., Any]) -> Named:
    """One of these functions."""
    return Named("FunctionNode", frozenset(f"{item.__module__}.{item.__name__}" for item in listed))


@dataclass(frozen=True)
class DType(Kind):
    """A type of NumPy's arrays, which skops keeps as that of an empty array."""

    def fits(self, entry: Entry) -> bool:
        return is_a(entry, "DTypeNode", "numpy.dtype")

    def check(self, entry: Entry, archive: Archive, names: set[str]) -> None:
        names.add("numpy.dtype")
        check(Array("biufUS") | Objects(), entry["content"], archive, names)


DTYPE = Named("TypeNode", frozenset({"builtins.bool", "builtins.int", "builtins.float", *SCALARS})) | DType()


@dataclass(frozen=True)
class RandomState(Kind):
    """NumPy's generator of random numbers with its state, which NumPy itself does not check in full."""

    def fits(self, entry: Entry) -> bool:
        cls = np.random.RandomState
        return is_a(entry, "RandomStateNode", f"{cls.__module__}.{cls.__name__}")

    def check(self, entry: Entry, archive: Archive, names: set[str]) -> None:
        inner = Fields({"key": Array("u"), "pos": Whole(0, 624)})
        kinds = {"bit_generator": choice("MT19937"), "state": inner, "has_gauss": Whole(0, 1), "gauss": NUMBER}
        check(Fields(kinds), entry["content"], archive, names)


# --- objects ---


@dataclass(frozen=True)
class State:
    """Which attributes an object of a type must and may have."""

    cls: type
    required: frozenset[str]
    kinds: Mapping[str, Kind]
    fitted: Kind | None = None
    """Of any other attribute whose name ends in an underscore, unless it would hide one of the class."""

    @property
    def name(self) -> str:
        """The full name of the type."""
        return f"{self.cls.__module__}.{self.cls.__qualname__}"

    def kind(self, attribute: str) -> Kind:
        """Of an attribute."""
        if attribute in self.kinds:
            return self.kinds[attribute]
        if self.fitted is None or not attribute.endswith("_") or hasattr(self.cls, attribute):
            raise Refused(f"it has the attribute {shown(attribute)}")
        return self.fitted


@dataclass(frozen=True)
class Object(Kind):
    """An object of one of some types, whose states are asked for when all tables are complete."""

    states: Callable[[], Mapping[str, State]]

    def fits(self, entry: Entry) -> bool:
        return is_a(entry, "ObjectNode") and name_of(entry) in self.states()

    def check(self, entry: Entry, archive: Archive, names: set[str]) -> None:
        state = self.states()[name_of(entry)]
        names.add(state.name)
        title = state.cls.__name__
        attributes = checked_items(entry["content"], {"builtins.str"}) if "content" in entry else {}
        missing = state.required - attributes.keys()
        if is_dataclass(state.cls):
            missing |= attributes.keys() - state.required
        if missing:
            raise Refused(f"a {title} of another version (which differs in {shown(', '.join(sorted(missing)))})")
        for name, value in attributes.items():
            try:
                check(state.kind(name), value, archive, names)
            except Refused as error:
                raise Refused(f"{title}.{shown(name)}: {error}") from error


def any_of(*kinds: Kind) -> Kind:
    """One of several kinds; nothing at all if there are none."""
    return AnyOf(kinds)
