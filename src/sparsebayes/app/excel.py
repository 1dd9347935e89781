"""Excel sheets as tables."""

from typing import Any

import polars as pl

from sparsebayes.app.errors import DataError, UsageError
from sparsebayes.app.unpacking import Content


class ExcelTable:
    """The first sheet of an .xlsx file: names in its first row, a row of the table in each other."""

    def __init__(self, source: Content) -> None:
        try:
            from openpyxl import load_workbook
        except ImportError as error:
            raise UsageError(
                f"openpyxl is needed to read {source.name}: pip install 'sparsebayes[excel]', or save the sheet as CSV"
            ) from error
        with source.open() as file:
            try:
                book = load_workbook(file, read_only=True, data_only=True)  # the values of formulas, not their text
            except Exception as error:  # openpyxl raises whatever a damaged archive makes it stumble over
                raise DataError(f"{source.name} cannot be read as an Excel file: {error}") from error
            names = book.sheetnames
            rows = [row for row in book[names[0]].iter_rows(values_only=True) if any(cell is not None for cell in row)]
        if not rows:
            raise DataError(f"the sheet '{names[0]}' of {source.name} is empty")
        used = [k for k, _ in enumerate(rows[0]) if any(row[k] is not None for row in rows if k < len(row))]
        self.columns = _distinct(["" if rows[0][k] is None else str(rows[0][k]) for k in used])
        self._cells = {
            name: [row[k] if k < len(row) else None for row in rows[1:]]
            for name, k in zip(self.columns, used, strict=True)
        }
        self.notes = []
        if len(names) > 1:
            others = ", ".join(f"'{name}'" for name in names[1:6])
            self.notes = [f"Sheet '{names[0]}' was read; the other sheets were not ({others})"]

    def read(self, columns: list[str]) -> pl.DataFrame:
        """These columns, in this order."""
        return pl.DataFrame({name: _series(name, self._cells[name]) for name in columns})


def _distinct(names: list[str]) -> list[str]:
    found: list[str] = []
    for name in names:
        copies = [f"{name}_duplicated_{k}" for k in range(len(names))]
        found.append(next(each for each in [name, *copies] if each not in found))
    return found


def _series(name: str, cells: list[Any]) -> pl.Series:
    """A column of one type; cells of several types become text, as in a CSV file."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds <= {int, float} or len(kinds) == 1:
        return pl.Series(name, cells, dtype=pl.Float64 if kinds == {int, float} else None, strict=False)
    return pl.Series(name, [None if cell is None else str(cell) for cell in cells], dtype=pl.String)
