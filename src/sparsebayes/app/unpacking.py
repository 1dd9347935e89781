"""The bytes of a file as people have them: compressed, from standard input, or text in UTF-16."""

import bz2
import gzip
import hashlib
import io
import lzma
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path, PurePath
from typing import IO, Any

from sparsebayes.app.errors import DataError

STDIN = "-"
"""The name of standard input."""
RECODE = "convert the file first, for instance with iconv -f latin1 -t utf-8"
MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe\0\0", "utf-32"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
"""Byte order marks, the longer before the shorter that it begins with."""


def _zstd(data: bytes) -> bytes:
    """Text. The standard library learns zstd with Python 3.14; polars knows it for tables of text: here lines."""
    import polars as pl

    options: dict[str, Any] = {"separator": "\x1f", "quote_char": None}
    lines = pl.read_csv(io.BytesIO(data), has_header=False, schema={"line": pl.String}, **options)["line"].fill_null("")
    return ("\n".join(lines.to_list()) + "\n").encode()


PACKED: dict[bytes, tuple[str, Callable[[bytes], bytes]]] = {
    b"\x1f\x8b": ("gzip", gzip.decompress),
    b"BZh": ("bzip2", bz2.decompress),
    b"\xfd7zXZ\0": ("xz", lzma.decompress),
    b"\x28\xb5\x2f\xfd": ("zstd", _zstd),
}
"""Compressed files by their first bytes."""
ZIP = b"PK\x03\x04"
SUFFIXES = (".gz", ".bz2", ".xz", ".zst", ".zip")
"""File extensions of compressed files."""


@dataclass(frozen=True)
class Content:
    """A file whose compression is removed."""

    name: str
    """Name for messages."""
    suffix: str
    """Extension of the file itself, without that of the compression; empty if unknown."""
    open: Callable[[], IO[bytes]]
    digest: str = ""
    """SHA-256 of the file as it is, compressed or not."""


def file_digest(file: BufferedReader) -> str:
    """SHA-256 of an open file, which is closed."""
    with file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content(source: str) -> Content:
    """The content of a file or of standard input."""
    if source == STDIN:
        data = sys.stdin.buffer.read()
        if not data:
            raise DataError("standard input is empty")
        return replace(_unpacked("standard input", "", data), digest=hashlib.sha256(data).hexdigest())
    path = Path(source)
    if path.suffix.lower() not in SUFFIXES and path.is_file():  # a pipe can be read only once
        return Content(source, path.suffix.lower(), lambda: path.open("rb"), file_digest(path.open("rb")))
    data = path.read_bytes()
    packed = path.suffix.lower() in SUFFIXES
    unpacked = _unpacked(source, PurePath(path.stem if packed else path.name).suffix.lower(), data)
    return replace(unpacked, digest=hashlib.sha256(data).hexdigest())


def _unpacked(name: str, suffix: str, data: bytes) -> Content:
    if data.startswith(ZIP) and suffix != ".xlsx":
        return _member(name, suffix, data)
    for mark, (kind, unpack) in PACKED.items():
        if data.startswith(mark):
            try:
                data = unpack(data)
            except (OSError, EOFError, lzma.LZMAError) as error:
                raise DataError(f"{name} is a damaged {kind} file: {error}") from error
            break
    return Content(name, suffix or sniffed(data), lambda: io.BytesIO(data))


def _member(name: str, suffix: str, data: bytes) -> Content:
    """The only file in a ZIP archive. An Excel file is an archive too, of many files."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if "[Content_Types].xml" in archive.namelist():
                return Content(name, ".xlsx", lambda: io.BytesIO(data))
            found = [
                each for each in archive.infolist() if not (each.is_dir() or each.filename.startswith("__MACOSX/"))
            ]
            if len(found) != 1:
                names = ", ".join(each.filename for each in found[:5])
                raise DataError(f"{name} contains {len(found)} files ({names}); a ZIP archive must contain one table")
            inside = archive.read(found[0])
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:  # damaged, encrypted, or a rare method
        raise DataError(f"{name} cannot be read as a ZIP archive: {error}") from error
    suffix = PurePath(found[0].filename).suffix.lower() or suffix or sniffed(inside)
    return Content(name, suffix, lambda: io.BytesIO(inside))


def sniffed(data: bytes) -> str:
    """The extension that a table without a name would have, by its first bytes."""
    for mark, suffix in ((b"PAR1", ".parquet"), (b"ARROW1", ".feather")):
        if data.startswith(mark):
            return suffix
    first = decoded(data[:64]).lstrip()[:1]
    return {b"{": ".jsonl", b"[": ".json"}.get(first, ".csv")


def decoded(data: bytes) -> bytes:
    """Text as UTF-8 without a byte order mark. UTF-16 without a mark shows by its zero bytes."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return data[3:] if encoding == "utf-8" else _as_utf8(data, encoding)
    start = data[:2000]
    if start.count(b"\0") > len(start) // 4:  # Latin letters, digits and separators have a zero byte each
        return _as_utf8(data, "utf-16-le" if start[1:2] == b"\0" else "utf-16-be")
    return data


def _as_utf8(data: bytes, encoding: str) -> bytes:
    return data.decode(encoding, errors="replace").encode()
