"""What is to be predicted: a number, one of two classes, or one of several."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from sparsebayes.app.errors import DataError
from sparsebayes.core.types import AnyArray

FEW = 10
"""Different whole numbers up to which they are taken for labels of classes."""
MOST_CLASSES = 100
TASKS = ("auto", "regression", "classification")


@dataclass(frozen=True)
class Target:
    """The target of every row, and what kind of target it is."""

    y: AnyArray
    task: str
    classes: list[Any]
    said: str
    """The task in a line, with how to override it where the data leave doubt."""


def recognise(series: pl.Series, asked: str = "auto") -> Target:
    """Read the task off a column, unless it is asked for."""
    name = series.name
    _check_whole(series)
    n_values = series.n_unique()
    if n_values == 1:
        raise DataError(f"the target '{name}' is {series[0]!r} in every row: there is nothing to learn")
    doubt = ""
    if asked == "auto":
        asked, doubt = _guess(series, n_values)
    if asked == "regression":
        if not series.dtype.is_numeric():
            raise DataError(f"the target '{name}' holds words or yes/no, not numbers: use --task classification")
        y: AnyArray = series.cast(pl.Float64).to_numpy().copy()
        return Target(y, "regression", [], f"Task: regression of '{name}' ({n_values:,} different numbers{doubt})")
    y = _labels(series)
    labels, counts = np.unique(y, return_counts=True)
    if len(labels) > MOST_CLASSES:
        raise DataError(
            f"the target '{name}' has {len(labels)} different values, too many for classes (at most {MOST_CLASSES})"
        )
    if counts.min() < 2:
        rare = labels[counts.argmin()]
        raise DataError(f"class '{rare}' of '{name}' has one row only: two are needed to fit and to test; leave it out")
    task = "binary" if len(labels) == 2 else "multiclass"
    words = ", ".join(f"{label} {count}" for label, count in zip(labels[:6], counts[:6], strict=True))
    said = f"Task: {len(labels)} classes of '{name}' ({words}{', …' * (len(labels) > 6)} rows{doubt})"
    return Target(y, task, labels.tolist(), said)


def _guess(series: pl.Series, n_values: int) -> tuple[str, str]:
    """Regression or classification, and what to say where it could be the other."""
    if not series.dtype.is_numeric():
        return "classification", ""
    whole = not series.dtype.is_float() or bool((series == series.round()).all())
    if not whole or n_values > FEW:
        return "regression", ""
    if n_values == 2:
        return "classification", ""
    return "classification", "; if these are amounts rather than labels: --task regression"


def _check_whole(series: pl.Series) -> None:
    gone = series.is_null()
    if series.dtype.is_float():
        gone = gone | ~series.is_finite().fill_null(False)
    if gone.any():
        row = int(gone.arg_true()[0]) + 1
        raise DataError(
            f"the target '{series.name}' is missing or infinite in {int(gone.sum())} of {len(series)} rows, the first "
            f"of them row {row}: leave these rows out of the table"
        )
    if not series.dtype.is_numeric() and series.dtype not in (pl.String, pl.Categorical, pl.Enum, pl.Boolean):
        raise DataError(f"the target '{series.name}' holds {series.dtype}, neither numbers nor words")


def _labels(series: pl.Series) -> AnyArray:
    """Labels as truth values, whole numbers or text; a number with a fraction is no label unless it is a word."""
    if series.dtype == pl.Boolean:
        return series.to_numpy().copy()
    if not series.dtype.is_numeric():
        return np.array(series.cast(pl.String).to_list(), dtype=str)
    values = series.to_numpy()
    whole = np.asarray(values == np.round(values)).all()
    return values.astype(np.int64) if whole else np.array([str(value) for value in values])
