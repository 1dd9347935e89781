"""Tables from files, databases and built-in data sets. Only the columns that are asked for are read."""

import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from sparsebayes.app import datasets
from sparsebayes.app.errors import DataError

MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?"]
"""Marks of missing values in text files."""
INFERRED = 10_000
"""Rows of a text file from which column types are inferred. If that fails, all rows are used."""
SQLITE = "sqlite:///"
UNREADABLE = "\N{REPLACEMENT CHARACTER}"
"""The character that polars substitutes for bytes that are not UTF-8."""
RECODE = "convert the file first, for instance with iconv -f latin1 -t utf-8"


@dataclass(frozen=True)
class Table:
    """A table whose columns are known but not yet read."""

    source: str
    columns: list[str]
    read: Callable[[list[str]], pl.DataFrame]
    target: str = ""
    """The default target of a built-in data set."""


def open_table(source: str) -> Table:
    """Open a file, a `sqlite:///file.db#table` or a built-in data set."""
    if source.startswith(SQLITE):
        return _database(source)
    if source in datasets.DATASETS:
        frame = datasets.DATASETS[source].frame()
        return Table(source, frame.columns, frame.select, datasets.DATASETS[source].target)
    path = Path(source)
    _check_file(path)
    suffixes = path.suffixes[-2:]
    kind = suffixes[0] if len(suffixes) == 2 and suffixes[1] in (".gz", ".zst") else path.suffix
    if kind.lower() not in READERS:
        raise DataError(f"{source}: cannot read {path.suffix or 'such'} files; supported are {', '.join(READERS)}")
    try:
        columns, read = READERS[kind.lower()](path)
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{source} cannot be read as {kind.lower()[1:]}: {_first_line(error)}") from error
    return Table(source, columns, partial(_guarded, source, read))


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


Reader = tuple[list[str], Callable[[list[str]], pl.DataFrame]]


def _text(path: Path) -> Reader:
    options: dict[str, Any] = {"separator": _separator(path), "null_values": MISSING}

    def read(columns: list[str]) -> pl.DataFrame:
        try:
            return _from(path, pl.read_csv, columns=columns, infer_schema_length=INFERRED, **options)
        except pl.exceptions.ComputeError:  # a column of numbers has text further down
            return _from(path, pl.read_csv, columns=columns, infer_schema_length=None, **options)

    header: list[str] = _from(path, pl.read_csv, n_rows=0, **options).columns
    if any(UNREADABLE in name for name in header):
        raise DataError(f"the header of {path} is not UTF-8: {RECODE}")
    return header, read


def _from(path: Path, read: Callable[..., Any], columns: list[str] | None = None, **options: Any) -> Any:
    """Read an open file with polars, which would take its name for a glob."""
    with path.open("rb") as file, warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Polars found a filename"
        )  # of polars 1, which would be faster by name
        return read(file, **options) if columns is None else read(file, columns=columns, **options).select(columns)


def _separator(path: Path) -> str:
    """Tab, semicolon or comma: the most frequent in the header."""
    if ".tsv" in path.suffixes:
        return "\t"
    if path.suffix in (".gz", ".zst"):
        return ","
    with path.open("rb") as file:
        header = file.readline(1_000_000)
    return max(",;\t", key=lambda mark: header.count(mark.encode()))


def _parquet(path: Path) -> Reader:
    return list(_from(path, pl.read_parquet_schema)), partial(_from, path, pl.read_parquet)


def _feather(path: Path) -> Reader:
    return list(_from(path, pl.read_ipc_schema)), partial(_from, path, pl.read_ipc)


READERS: dict[str, Callable[[Path], Reader]] = {
    ".csv": _text,
    ".tsv": _text,
    ".txt": _text,
    ".parquet": _parquet,
    ".feather": _feather,
    ".arrow": _feather,
    ".ipc": _feather,
}
"""Readers by file extension; text files may be compressed (.csv.gz)."""


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

    return Table(source, columns, partial(_guarded, source, read))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
