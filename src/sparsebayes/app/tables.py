"""Tables from files, databases and built-in data sets. Only the columns that are asked for are read."""

import io
import sqlite3
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from sparsebayes.app import datasets
from sparsebayes.app.errors import DataError
from sparsebayes.app.excel import ExcelTable
from sparsebayes.app.text_table import UNREADABLE, TextTable
from sparsebayes.app.unpacking import RECODE, STDIN, SUFFIXES, Content, content, decoded, file_digest

SQLITE = "sqlite:///"


@dataclass(frozen=True)
class Table:
    """A table whose columns are known but not yet read."""

    source: str
    columns: list[str]
    read: Callable[[list[str]], pl.DataFrame]
    target: str = ""
    """The default target of a built-in data set."""
    notes: Sequence[str] = ()
    """Messages for the user."""
    separator: str = ""
    """Of the columns of a text file."""
    digest: str = ""
    """SHA-256 of the file, as `sha256sum` gives it; empty for a built-in data set."""


def open_table(source: str) -> Table:
    """Open a file, `-` for standard input, a `sqlite:///file.db#table` or a built-in data set."""
    if source.startswith(SQLITE):
        return _database(source)
    if source in datasets.DATASETS:
        frame = datasets.DATASETS[source].frame()
        return Table(source, frame.columns, frame.select, datasets.DATASETS[source].target)
    if source != STDIN:
        _check_file(Path(source))
    try:
        found = content(source)
    except OSError as error:
        raise DataError(f"{source} cannot be read: {_first_line(error)}") from error
    if found.suffix not in READERS:
        hint = "; save it as .xlsx" if found.suffix in (".xls", ".ods") else ""
        known = f"{', '.join(READERS)}, also compressed ({', '.join(SUFFIXES)})"
        raise DataError(f"cannot read {found.suffix or 'such'} files ({source}){hint}; supported are {known}")
    try:
        read = READERS[found.suffix](found)
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError, ValueError) as error:
        raise DataError(f"{found.name} cannot be read as {found.suffix[1:]}: {_first_line(error)}") from error
    return Table(
        found.name,
        read.columns,
        partial(_guarded, found.name, read.read),
        notes=read.notes,
        separator=getattr(read, "separator", ""),
        digest=found.digest,
    )


def _guarded(source: str, read: Callable[[list[str]], pl.DataFrame], columns: list[str]) -> pl.DataFrame:
    try:
        frame = read(columns)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{source} cannot be read: {_first_line(error)}") from error
    if not len(frame):
        raise DataError(f"{source} has a header but no rows")
    return frame


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise DataError(f"{path} is a folder, not a file")
    if not path.exists():
        near = get_close_matches(str(path), datasets.DATASETS, n=1)
        hint = f"did you mean '{near[0]}'? " if near else ""
        raise DataError(
            f"{path} is neither a file nor a built-in data set: {hint}`sparsebayes datasets` lists the built-in ones"
        )
    if path.is_file() and not path.stat().st_size:
        raise DataError(f"{path} is empty")


def _first_line(error: Exception) -> str:
    told = str(error).strip().partition("\n")[0] or type(error).__name__
    return f"{told}: {RECODE}" if "utf-8" in told or UNREADABLE in told else told


class ColumnFile:
    """A file that stores columns, of which only those that are asked for are read."""

    notes: Sequence[str] = ()

    def __init__(self, source: Content, schema: Callable[..., Any], read: Callable[..., Any]) -> None:
        self._source, self._read = source, read
        with source.open() as file:
            self.columns = list(schema(file))

    def read(self, columns: list[str]) -> pl.DataFrame:
        """These columns, in this order."""
        with self._source.open() as file, warnings.catch_warnings():
            # polars 1 would be faster by name, but would take the name for a glob.
            warnings.filterwarnings("ignore", message="Polars found a filename")
            return self._read(file, columns=columns).select(columns)


class Records:
    """JSON: one object for each row, as lines or as a list."""

    notes: Sequence[str] = ()

    def __init__(self, source: Content, parse: Callable[..., pl.DataFrame]) -> None:
        with source.open() as file:
            self._frame = parse(io.BytesIO(decoded(file.read())), infer_schema_length=None)
        self.columns = self._frame.columns

    def read(self, columns: list[str]) -> pl.DataFrame:
        """These columns, in this order."""
        return self._frame.select(columns)


_FEATHER = partial(ColumnFile, schema=pl.read_ipc_schema, read=pl.read_ipc)
_LINES = partial(Records, parse=pl.read_ndjson)
READERS: dict[str, Callable[[Content], Any]] = {
    ".csv": TextTable,
    ".tsv": TextTable,
    ".txt": TextTable,
    ".parquet": partial(ColumnFile, schema=pl.read_parquet_schema, read=pl.read_parquet),
    ".feather": _FEATHER,
    ".arrow": _FEATHER,
    ".ipc": _FEATHER,
    ".xlsx": ExcelTable,
    ".xlsm": ExcelTable,
    ".jsonl": _LINES,
    ".ndjson": _LINES,
    ".json": partial(Records, parse=pl.read_json),
}
"""Readers by file extension."""


def _database(source: str) -> Table:
    """Open a table or view of an SQLite file, read-only."""
    name, _, table = source.removeprefix(SQLITE).partition("#")
    path = Path(name)
    if not path.is_file():
        raise DataError(f"{source}: file {path} does not exist")
    connect = partial(sqlite3.connect, f"{path.resolve().as_uri()}?mode=ro", uri=True)
    try:
        with closing(connect()) as connection:
            known = [
                row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table','view')")
            ]
            if not table and len(known) == 1:
                table = known[0]
            if table not in known:
                raise DataError(f"{source}: use {SQLITE}{path}#TABLE with one of the tables {', '.join(known)}")
            columns = [item[0] for item in connection.execute(f"SELECT * FROM {_quoted(table)} LIMIT 0").description]
    except sqlite3.Error as error:
        raise DataError(f"{source} cannot be read: {error}") from error

    def read(wanted: list[str]) -> pl.DataFrame:
        query = f"SELECT {', '.join(map(_quoted, wanted))} FROM {_quoted(table)}"
        with closing(connect()) as connection:
            rows = connection.execute(query).fetchall()
        return pl.DataFrame(rows, schema=wanted, orient="row", infer_schema_length=None)

    digest = file_digest(path.open("rb"))
    return Table(source, columns, partial(_guarded, source, read), digest=digest)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
