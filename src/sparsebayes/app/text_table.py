"""Text files with separated columns: CSV, TSV, and what spreadsheets in several countries make of them."""

import csv
import io
import re
from collections import Counter
from typing import Any

import polars as pl

from sparsebayes.app.cells import MISSING
from sparsebayes.app.errors import DataError
from sparsebayes.app.unpacking import RECODE, Content, decoded

INFERRED = 10_000
"""Rows of a text file from which column types are inferred. If that fails, all rows are used."""
UNREADABLE = "\N{REPLACEMENT CHARACTER}"
"""The character that polars substitutes for bytes that are not UTF-8."""
SEPARATORS = ",;\t|"
DECLARED = re.compile(rb"sep=(.)\r?\n", re.IGNORECASE)
"""The first line with which Excel declares a separator."""


class TextTable:
    """A text file, read once and parsed when columns are asked for."""

    def __init__(self, source: Content) -> None:
        with source.open() as file:
            data = decoded(file.read())
        declared = DECLARED.match(data)
        self.data = data[declared.end() :] if declared else data
        separator = declared[1].decode() if declared else "\t" if source.suffix == ".tsv" else separator_of(self.data)
        self.separator = separator
        self.options: dict[str, Any] = {"separator": separator, "null_values": MISSING}
        self.columns: list[str] = pl.read_csv(io.BytesIO(self.data), n_rows=0, **self.options).columns
        if any(UNREADABLE in name for name in self.columns):
            raise DataError(f"the header of {source.name} is not UTF-8: {RECODE}")

    @property
    def notes(self) -> list[str]:
        """A message if several columns have the same name."""
        first = self.data[:1_000_000].decode(errors="replace")
        header = next(csv.reader(io.StringIO(first), delimiter=self.separator), [])
        twice = [name for name, n in Counter(header).items() if n > 1]
        return [
            f"Several columns have the name '{name}'; all but the first are called '{name}_duplicated_0' and so on"
            for name in twice
        ]

    def read(self, columns: list[str]) -> pl.DataFrame:
        """These columns, in this order."""
        try:
            return self._parsed(columns, INFERRED)
        except pl.exceptions.ComputeError:  # a column of numbers has text further down
            return self._parsed(columns, None)

    def _parsed(self, columns: list[str], rows: int | None) -> pl.DataFrame:
        file = io.BytesIO(self.data)
        return pl.read_csv(file, columns=columns, infer_schema_length=rows, **self.options).select(columns)


def separator_of(data: bytes) -> str:
    """Comma, semicolon, tab or bar: the most frequent in the header, outside of quotes."""
    header = data[:1_000_000].decode(errors="replace").partition("\n")[0]
    bare = re.sub(r'"[^"]*"', "", header)
    return max(SEPARATORS, key=bare.count)
