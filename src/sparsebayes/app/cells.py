"""Text cells that stand for numbers: decimal commas, marks of missing values, and one bad cell among numbers."""

from collections.abc import Sequence

import polars as pl

from sparsebayes.app.errors import DataError

MISSING = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?"]
"""Marks of missing values."""
DECIMAL_COMMA = r"^[+-]?(\d{1,3}(\.\d{3})+|\d*),\d+([eE][+-]?\d+)?$|^[+-]?\d+$"
"""1,5 and 1.234,5, and whole numbers between them."""
THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?$|^[+-]?\d+(\.\d+)?$"
"""1,234 and 1,234.5, and numbers without commas between them."""
NO_DECIMAL = r",\d{3}[,.]"
"""A comma that cannot be decimal, as in 1,234.5 and 1,234,567."""
GROUPED = r"^[+-]?\d{1,3}(\.\d{3})+$"
"""1.234, which is 1234 where commas are decimal."""
FEW = 10
"""A column of text with at most this many different numbers may be a category, such as 0, 1, 2 and 3+."""
SHOWN = 3
"""Bad cells that a message names."""
OFTEN_MISSING = (
    "-",
    "--",
    "—",
    "–",
    ".",
    "*",
    "#",
    "#N/A",
    "n/a",
    "na",
    "n.a.",
    "none",
    "missing",
    "unknown",
    "x",
    "X",
)
"""Cells that usually mean a missing value. They are offered as such, not taken for it."""


def cleaned(frame: pl.DataFrame, missing: Sequence[str] = (), separator: str = "") -> tuple[pl.DataFrame, list[str]]:
    """The table with numbers in columns of numbers, and messages about what was converted.

    A column of text in which more than half of the cells are numbers holds a mistake, or marks of missing values. It is
    refused by cell and row: as categories its numbers would mean nothing. Where columns are separated by commas, the
    comma of 1,234 separates thousands, elsewhere it is decimal.
    """
    columns, commas, grouped, bad = [], [], [], []
    for series in frame:
        if series.dtype != pl.String:
            columns.append(series)
            continue
        text = series.str.strip_chars()
        text = text.set(text.is_in([*MISSING, *missing]).fill_null(False), None)
        number, how = _numbers(text, separator)
        commas += [series.name] * (how == "comma")
        grouped += [series.name] * (how == "thousands")
        if number is None:
            columns.append(series.set(text.is_null(), None))
            bad += _complaint(text)
        else:
            columns.append(number)
    if bad:
        raise DataError("; ".join(bad))
    notes = [f"The comma in {_some(commas)} is read as the decimal sign"] * bool(commas)
    notes += [f"The comma in {_some(grouped)} is read as a separator of thousands"] * bool(grouped)
    notes += _doubtful(frame, columns) if commas else []
    return pl.DataFrame({series.name: series for series in columns}), notes


def _numbers(text: pl.Series, separator: str) -> tuple[pl.Series | None, str]:
    """The cells as numbers if all are, and which comma they have."""
    filled = text.drop_nulls()
    if not len(filled):
        return None, ""
    plain = text.cast(pl.Float64, strict=False)
    if plain.null_count() == text.null_count():
        return plain, ""
    if filled.str.contains(THOUSANDS).all() and (separator == "," or filled.str.contains(NO_DECIMAL).any()):
        return text.str.replace_all(",", "", literal=True).cast(pl.Float64), "thousands"
    if filled.str.contains(DECIMAL_COMMA).all():
        return _from_comma(text).cast(pl.Float64), "comma"
    return None, ""


def _from_comma(text: pl.Series) -> pl.Series:
    return text.str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True)


def _complaint(text: pl.Series) -> list[str]:
    """What is wrong with a column of text that is mostly numbers; empty for other text."""
    number = text.cast(pl.Float64, strict=False)
    with_comma = _from_comma(text.set(~text.str.contains(DECIMAL_COMMA).fill_null(False), None))
    number = number.zip_with(number.is_not_null(), with_comma.cast(pl.Float64, strict=False))
    n, filled = number.len() - number.null_count(), text.len() - text.null_count()
    if 2 * n <= filled or number.drop_nulls().n_unique() <= FEW:
        return []
    wrong = (text.is_not_null() & number.is_null()).arg_true().to_list()
    cells = ", ".join(f"'{text[k]}' in row {k + 1}" for k in wrong[:SHOWN])
    more = f" and {len(wrong) - SHOWN} more cells" * (len(wrong) > SHOWN)
    told = f"column '{text.name}' has numbers in {n:,} rows, but {cells}{more}"
    marks = sorted({str(text[k]) for k in wrong})
    if len(marks) == 1 and (marks[0] in OFTEN_MISSING or len(wrong) > 1):
        return [f"{told}: if '{marks[0]}' means a missing value, use --missing '{marks[0]}'"]
    if set(marks) <= set(OFTEN_MISSING):
        options = " ".join(f"--missing '{mark}'" for mark in marks)
        return [f"{told}: if these mean missing values, use {options}"]
    return [f"{told}: correct the table"]


def _doubtful(frame: pl.DataFrame, columns: list[pl.Series]) -> list[str]:
    """Columns of a table with decimal commas whose points may separate thousands, such as 1.234."""
    found = []
    for series, number in zip(frame, columns, strict=True):
        if number.dtype != pl.Float64 or not len(number):
            continue
        text = series.cast(pl.String).str.strip_chars()
        dotted = text.filter(text.str.contains(".", literal=True).fill_null(False))
        if len(dotted) and dotted.str.contains(GROUPED).all():
            found.append(series.name)
    return [f"The point in {_some(found)} is read as the decimal sign; remove it if it separates thousands"] * bool(
        found
    )


def _some(names: list[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in names[:3])
    return shown + f" and {len(names) - 3} more columns" * (len(names) > 3)
