"""Encode the columns of a table as a matrix, the same way for `fit` and `predict`."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import polars as pl

from sparsebayes.app.errors import DataError
from sparsebayes.core.types import BoolArray, FloatArray

MOST_LEVELS = 50
"""Most levels of a category. A text column with more is a name or a comment."""
NEVER = "the training data had none; fill the gap, or fit the model again with --impute median"
"""What to do about a missing value in new rows."""
MISSING = None
"""The level of a category in rows where it is missing."""


def matching(columns: Sequence[str], pattern: str, option: str) -> list[str]:
    """The column with this name, or the columns that match a glob."""
    found = [pattern] if pattern in columns else [name for name in columns if fnmatchcase(name, pattern)]
    if not found:
        raise DataError(f"{option} '{pattern}' matches no column; the columns are {listed(columns)}")
    return found


def chosen(columns: Sequence[str], wanted: Sequence[str], unwanted: Sequence[str], taken: Sequence[str]) -> list[str]:
    """The feature columns: those that match `wanted` but not `unwanted`, in the order of the table.

    A pattern of `wanted` with a leading ! is unwanted. Columns in `taken` (target, groups) are never features.
    """
    without = [*unwanted, *(pattern[1:] for pattern in wanted if pattern.startswith("!") and pattern not in columns)]
    wanted = [pattern for pattern in wanted if not pattern.startswith("!") or pattern in columns]
    keep = {name for pattern in wanted or ["*"] for name in matching(columns, pattern, "--features")}
    drop = {name for pattern in without for name in matching(columns, pattern, "--exclude")} | set(taken)
    found = [name for name in columns if name in keep - drop]
    if not found:
        raise DataError("no feature is left: --features and --exclude remove all columns")
    return found


@dataclass(frozen=True)
class Column:
    """One column of a table: a number, or a category with its levels."""

    name: str
    levels: tuple[str | None, ...] = ()

    @property
    def encoded(self) -> list[str]:
        """Names after encoding: itself for a number, one column for two levels, one per level for more."""
        return [f"{self.name}={_word(level)}" for level in self._shown] if self.levels else [self.name]

    @property
    def _shown(self) -> tuple[str | None, ...]:
        return self.levels[1:] if len(self.levels) == 2 else self.levels

    def values(self, series: pl.Series, impute: bool) -> FloatArray:
        """The encoded columns, one per row of the result."""
        if not self.levels:
            return _numbers(series, impute)[None]
        words = _words(series)
        unknown = ~words.is_in([level for level in self.levels if level is not None]).fill_null(True)
        if MISSING not in self.levels:
            _refuse_missing(series, words.is_null().to_numpy(), NEVER)
        if unknown.any():
            row = int(unknown.arg_true()[0])
            raise DataError(
                f"column '{self.name}' has '{words[row]}' in row {row + 1}, which the training data lack; known are "
                f"{listed([_word(level) for level in self.levels])}"
            )
        matches = [words.is_null() if level is None else (words == level).fill_null(False) for level in self._shown]
        return np.array([match.to_numpy() for match in matches], dtype=np.float64)


@dataclass(frozen=True)
class Recipe:
    """Which columns a model uses, and how they are encoded."""

    columns: tuple[Column, ...]
    impute: str = ""
    """"median" or "mean" of the column where a number is missing; empty: missing values are refused."""

    @classmethod
    def of(cls, frame: pl.DataFrame, names: Sequence[str], impute: str) -> "Recipe":
        """Learn the levels of categories from a table, and refuse columns that cannot be features."""
        if not impute:
            _refuse_holes(frame.select(names))
        recipe = cls(tuple(Column(name, _levels(frame[name])) for name in names), impute)
        encoded = recipe.features
        if len(set(encoded)) < len(encoded):
            twice = next(name for k, name in enumerate(encoded) if name in encoded[:k])
            raise DataError(f"'{twice}' is the name of a column and of an encoded category: rename one of them")
        return recipe

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Recipe":
        """Read what `to_json` has written."""
        columns = (Column(item["name"], tuple(item["levels"])) for item in data["columns"])
        return cls(tuple(columns), data["impute"])

    def to_json(self) -> dict[str, Any]:
        """The recipe as values that JSON can hold."""
        return asdict(self)

    @property
    def features(self) -> list[str]:
        """Names of the encoded columns."""
        return [name for column in self.columns for name in column.encoded]

    @property
    def parts(self) -> list[slice]:
        """Where each column of the table is in the matrix."""
        ends = np.cumsum([len(column.encoded) for column in self.columns]).tolist()
        return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]

    def needed(self, used: BoolArray) -> list[str]:
        """Columns of the table with at least one feature that is used."""
        return [column.name for column, part in zip(self.columns, self.parts, strict=True) if used[part].any()]

    def encode(self, frame: pl.DataFrame) -> FloatArray:
        """The matrix, one row for each row of the table. Columns that the table lacks are zero."""
        X = np.zeros((len(frame), len(self.features)))
        for column, part in zip(self.columns, self.parts, strict=True):
            if column.name in frame.columns:
                X[:, part] = column.values(frame[column.name], bool(self.impute)).T
        return X


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names in a sentence; of many, the first and how many more."""
    shown = ", ".join(f"'{name}'" for name in names[:most])
    return shown + f" and {len(names) - most} more" * (len(names) > most)


def _word(level: str | None) -> str:
    return "(missing)" if level is None else level


def _is_category(series: pl.Series) -> bool:
    return series.dtype == pl.Boolean or series.dtype in (pl.String, pl.Categorical, pl.Enum)


def _words(series: pl.Series) -> pl.Series:
    """Categories as text. A numeric column at `predict` may hold levels that were text at `fit`, such as '1'."""
    return series.cast(pl.String)


def _refuse_holes(frame: pl.DataFrame) -> None:
    """Name all columns with missing values at once. Columns without any value are refused elsewhere."""
    holes = {series.name: gone for series in frame if (gone := _missing(series)).any() and not gone.all()}
    if len(holes) < 2:
        for name, gone in holes.items():
            _refuse_missing(frame[name], gone)
        return
    cells = [f"'{name}' ({int(gone.sum())}, first in row {int(gone.argmax()) + 1})" for name, gone in holes.items()]
    shown = ", ".join(cells[:8]) + f" and {len(cells) - 8} more" * (len(cells) > 8)
    raise DataError(
        f"{len(holes)} columns have missing values: {shown}. Use --impute median, or exclude columns with --exclude"
    )


def _missing(series: pl.Series) -> BoolArray:
    gone = series.is_null() | (series.is_nan() if series.dtype.is_float() else False)
    return np.asarray(gone.fill_null(True).to_numpy())


def _levels(series: pl.Series) -> tuple[str | None, ...]:
    """The sorted levels of a category; empty for a number."""
    name = series.name
    if series.null_count() == len(series):
        raise DataError(f"column '{name}' has no values: exclude it with --exclude '{name}'")
    if not _is_category(series):
        if not series.dtype.is_numeric():
            raise DataError(
                f"column '{name}' has type {series.dtype}, which is not supported: exclude it with --exclude '{name}'"
            )
        return ()
    words = _words(series)
    levels = words.drop_nulls().unique().sort().to_list()
    if len(levels) > MOST_LEVELS:
        raise DataError(
            f"column '{name}' has {len(levels)} different values ('{levels[0]}', '{levels[1]}', …); a category may "
            f"have {MOST_LEVELS}: exclude it with --exclude '{name}'"
        )
    return (*levels, *[MISSING] * bool(words.null_count()))


def _numbers(series: pl.Series, impute: bool) -> FloatArray:
    """A numeric column; missing values become nan if they are to be imputed."""
    if not series.dtype.is_numeric() and series.dtype not in (pl.Null, pl.Boolean):
        bad = series.cast(pl.String).cast(pl.Float64, strict=False).is_null() & series.is_not_null()
        row = int(bad.arg_true()[0])
        raise DataError(f"column '{series.name}' must be numeric, but contains '{series[row]}' in row {row + 1}")
    values = series.cast(pl.Float64).fill_null(np.nan).to_numpy()
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise DataError(f"column '{series.name}' is infinite in row {row + 1}: correct the value, or leave it empty")
    if not impute:
        _refuse_missing(series, np.isnan(values), NEVER)
    return values


def _refuse_missing(series: pl.Series, missing: BoolArray, why: str = "") -> None:
    if missing.any():
        n, row = int(missing.sum()), int(np.flatnonzero(missing)[0]) + 1
        where = f"a missing value in row {row}" if n == 1 else f"missing values in {n} rows (first: row {row})"
        remedy = why or f"use --impute median, or exclude the column with --exclude '{series.name}'"
        raise DataError(f"column '{series.name}' has {where}: {remedy}")
