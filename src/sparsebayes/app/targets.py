"""The target column: a number, one of two classes, or one of several classes."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from sparsebayes.app.errors import DataError
from sparsebayes.core.types import AnyArray

FEW = 10
"""A target with at most this many different whole numbers is taken for classes."""
MOST_CLASSES = 100
"""Most classes of a target."""
TASKS = ("auto", "regression", "classification")


@dataclass(frozen=True)
class Target:
    """The target of every row, and the task."""

    y: AnyArray
    task: str
    classes: list[Any]
    said: str
    """The task in one line; if it is ambiguous, also how to override it."""


def recognise(series: pl.Series, asked: str = "auto") -> Target:
    """Infer the task from a column, unless it is given."""
    name = series.name
    _check_whole(series)
    n_values = series.n_unique()
    if n_values == 1:
        raise DataError(f"the target '{name}' is constant ({series[0]!r} in every row): there is nothing to predict")
    doubt = ""
    if asked == "auto":
        asked, doubt = _guess(series, n_values)
    if asked == "regression":
        if not series.dtype.is_numeric():
            raise DataError(f"the target '{name}' is not numeric: use --task classification")
        y: AnyArray = series.cast(pl.Float64).to_numpy().copy()
        return Target(y, "regression", [], f"Task: regression of '{name}' ({n_values:,} different numbers{doubt})")
    y = _labels(series)
    labels, counts = np.unique(y, return_counts=True)
    if len(labels) > MOST_CLASSES:
        raise DataError(
            f"the target '{name}' has {len(labels)} different values; at most {MOST_CLASSES} classes are supported"
        )
    if counts.min() < 2:
        rare = labels[counts.argmin()]
        raise DataError(f"class '{rare}' of '{name}' has only one row; at least two are needed, or remove the row")
    task = "binary" if len(labels) == 2 else "multiclass"
    words = ", ".join(f"{label} {count}" for label, count in zip(labels[:6], counts[:6], strict=True))
    said = f"Task: {len(labels)} classes of '{name}' ({words}{', …' * (len(labels) > 6)} rows{doubt})"
    return Target(y, task, labels.tolist(), said)


def _guess(series: pl.Series, n_values: int) -> tuple[str, str]:
    """Regression or classification, and a hint if it could be the other."""
    if not series.dtype.is_numeric():
        return "classification", ""
    whole = not series.dtype.is_float() or bool((series == series.round()).all())
    if not whole or n_values > FEW:
        return "regression", ""
    if n_values == 2:
        return "classification", ""
    return "classification", "; if these are quantities, not labels, use --task regression"


def _check_whole(series: pl.Series) -> None:
    gone = series.is_null()
    if series.dtype.is_float():
        gone = gone | ~series.is_finite().fill_null(False)
    if gone.any():
        row = int(gone.arg_true()[0]) + 1
        raise DataError(
            f"the target '{series.name}' is missing or infinite in {int(gone.sum())} of {len(series)} rows (first: "
            f"row {row}): remove these rows from the table"
        )
    if not series.dtype.is_numeric() and series.dtype not in (pl.String, pl.Categorical, pl.Enum, pl.Boolean):
        raise DataError(f"the target '{series.name}' has type {series.dtype}; it must be numeric, text or Boolean")


def _labels(series: pl.Series) -> AnyArray:
    """Labels as Booleans, whole numbers or text. Numbers with fractions become text."""
    if series.dtype == pl.Boolean:
        return series.to_numpy().copy()
    if not series.dtype.is_numeric():
        return np.array(series.cast(pl.String).to_list(), dtype=str)
    values = series.to_numpy()
    whole = np.asarray(values == np.round(values)).all()
    return values.astype(np.int64) if whole else np.array([str(value) for value in values])
