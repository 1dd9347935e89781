"""The zip archive of a model file, measured before anything is built from it.

skops describes an object as a tree of entries in `schema.json`; arrays are members of their own. An attacker chooses
every byte of both. So sizes, counts and nesting are bounded here, and each array must hold the bytes that it promises.
"""

import hashlib
import io
import json
import math
import zipfile
from typing import IO, Any

import numpy as np

from sparsebayes.io.printable import printable

SCHEMA = "schema.json"
"""The member in which skops describes the object."""
PROTOCOL = 2
"""The protocol of skops since version 0.13. Entries of other protocols are read by other rules."""

MOST_BYTES = 2**32
"""Size of a file. Nothing in it is compressed, so that it needs a small multiple of this in memory."""
MOST_MEMBERS = 100_000
"""Arrays in a file; the largest models in the tests have some hundred."""
MOST_JSON = 100_000_000
"""Bytes of a JSON member; parsed, they need up to 25 times as much memory. One feature name takes about 250."""
MOST_ENTRIES = 400_000
"""Entries of the description, about one for each value and each feature name."""
MOST_NESTED = 100
"""Nesting of the description. An object within another takes four levels; skops and JSON fail near 1000."""
LONGEST_EMPTY = 10_000_000
"""Length of an array without elements along any axis: it is not bounded by its bytes, but loops run over it."""
LONGEST_SHOWN = 200
"""Characters of something from a file in a message."""
SMALL = 1000
"""Bytes of a member that is compared by its content; an empty array has 128."""
DIRECTORY_ENTRY = b"PK\x01\x02"
"""What every entry of the directory of a zip archive begins with."""
HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
"""Versions of NumPy's file format that `numpy.save` writes for arrays without named fields."""


class Refused(ValueError):
    """Something that a model file may not hold, told in a few words."""


class Header:
    """Type and shape of an array, as its member promises them."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        try:
            version = np.lib.format.read_magic(stream)
            self.shape, _, self.dtype = HEADERS[version](stream)
        except (ValueError, KeyError) as error:
            raise Refused(f"an array that NumPy did not write ({shown(error)})") from error
        if self.dtype.hasobject or self.dtype.names or self.dtype.subdtype or self.dtype.kind not in "biufUS":
            raise Refused(f"an array of type {shown(self.dtype)}; allow_pickle is off")
        count, size = math.prod(self.shape), size - stream.tell()
        if min(self.shape, default=0) < 0 or count * self.dtype.itemsize != size:
            raise Refused(f"an array of shape {shown(self.shape)} and type {self.dtype} in {size} bytes")
        if max(self.shape, default=0) > max(size, LONGEST_EMPTY if count == 0 else 0):
            raise Refused(f"an array of shape {shown(self.shape)}")


class Archive:
    """The members of a file, after a look at how much there is."""

    def __init__(self, data: bytes) -> None:
        if len(data) > MOST_BYTES:
            raise Refused(f"more than {MOST_BYTES:,} bytes")
        if data.count(DIRECTORY_ENTRY) > MOST_MEMBERS:
            raise Refused(f"more than {MOST_MEMBERS:,} members")
        self.members = zipfile.ZipFile(io.BytesIO(data))
        infos = self.members.infolist()
        size = sum(info.file_size for info in infos)
        if size > len(data) or any(info.compress_type != zipfile.ZIP_STORED for info in infos):
            raise Refused("members that are compressed or overlap")
        if len({info.filename for info in infos}) < len(infos):
            raise Refused("a member that is there twice")

    def __contains__(self, name: str) -> bool:
        return name in self.members.namelist()

    def json(self, name: str) -> Any:
        """A member that is JSON."""
        if self.members.getinfo(name).file_size > MOST_JSON:
            raise Refused(f"more than {MOST_JSON:,} bytes in {name}")
        try:
            return json.loads(self.members.read(name))
        except RecursionError as error:
            raise Refused(f"a {name} that is nested too deep") from error

    def schema(self) -> Any:
        """The description of the object, once its size, its nesting and its ids are known to be sound."""
        schema = self.json(SCHEMA)
        if type(schema["protocol"]) is not int or schema["protocol"] != PROTOCOL:
            raise Refused(f"protocol {shown(schema['protocol'])} of skops, which sparsebayes.save never wrote")
        _Measure(self.members).digest(schema, 0)
        return schema

    def header(self, name: str) -> Header:
        """Type and shape of an array."""
        with self.members.open(name) as stream:
            return Header(stream, self.members.getinfo(name).file_size)


class _Measure:
    """One walk through a description: counts entries, bounds the nesting, and compares entries that share an id.

    skops builds an entry once and uses it wherever its id comes again, without a look at what is written there. So an
    id may come again only with the same body, except for the ids inside it, which do not change what is built, and for
    the names of small members with the same content. Hence the tree as written is the tree as built: nothing small
    stands for something large, or for something else.
    """

    def __init__(self, members: zipfile.ZipFile) -> None:
        self.members = members
        self.n_entries = 0
        self.bodies: dict[int, bytes] = {}

    def digest(self, thing: Any, level: int) -> bytes:
        """A hash of a part of the description that leaves out ids."""
        if level > MOST_NESTED:
            raise Refused(f"a description that is nested too deep (more than {MOST_NESTED} levels)")
        if isinstance(thing, dict):
            parts = []
            for key, value in thing.items():
                if key == "file":
                    value = self._content(value)
                if key != "__id__":
                    parts += [json.dumps(key).encode(), self.digest(value, level + 1)]
            found = _hashed(b"{", parts)
            if "__loader__" in thing:
                self._entry(thing, found)
            return found
        if isinstance(thing, list):
            return _hashed(b"[", [self.digest(value, level + 1) for value in thing])
        return _hashed(b"=", [json.dumps(thing).encode()])

    def _content(self, name: Any) -> Any:
        """What stands for a member: its content if that is small, as for the empty arrays that types are kept as."""
        if not isinstance(name, str) or self.members.getinfo(name).file_size > SMALL:
            return name
        return self.members.read(name).hex()

    def _entry(self, entry: dict[str, Any], body: bytes) -> None:
        self.n_entries += 1
        if self.n_entries > MOST_ENTRIES:
            raise Refused(f"more than {MOST_ENTRIES:,} entries (values and names of features)")
        if "__id__" not in entry:
            return
        number = entry["__id__"]
        if type(number) is not int:
            raise Refused(f"the id {shown(number)}, which is not an integer")
        if self.bodies.setdefault(number, body) != body:
            raise Refused(f"the id {number} stands for two different things")


def _hashed(kind: bytes, parts: list[bytes]) -> bytes:
    joined = b"".join(len(part).to_bytes(8) + part for part in parts)
    return hashlib.blake2b(kind + joined, digest_size=32).digest()


def shown(thing: Any) -> str:
    """Something from a file in a message: short, and without control characters."""
    text = printable(thing)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."
