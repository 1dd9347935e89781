"""Columns that are no features: dates, names, row numbers, identifiers. And features that give the target away."""

import re
from collections.abc import Sequence

import numpy as np
import polars as pl
from scipy.stats import rankdata

from sparsebayes.app.columns import MOST_LEVELS, Recipe
from sparsebayes.core.types import AnyArray, FloatArray

DATE = (
    r"^\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ]\d{1,2}:\d{2}.*)?$"
    r"|^\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})([T ]\d{1,2}:\d{2}.*)?$"
    r"|^\d{1,2}:\d{2}(:\d{2})?$"
)
"""2020-01-31, 31.01.2020 and 1/31/20, with or without a time, and a time alone."""
IDENTIFIER = re.compile(r"(^|[_\s.-])(id|ids|uuid|guid|nr|no|key|code|index|idx|row|rownames?)$|[a-z](Id|ID|Nr)$")
"""Names of columns that number things, in lower case except for the last form."""
UNNAMED = re.compile(r"^(Unnamed: ?\d+|_duplicated_\d+|)$")
"""Names of columns without a name, such as the row numbers that pandas writes."""
SHORT = 20
"""In tables with fewer rows, 1, 2, 3, … may well be a dose."""
COPY = 1 - 1e-6
"""A feature whose squared correlation with the target exceeds this gives the target away."""


def unfit(frame: pl.DataFrame, names: Sequence[str], asked: Sequence[str] = ()) -> dict[str, str]:
    """The columns that are left out, with the reason. Columns that `--features` names are not."""
    found = {name: _reason(frame[name]) for name in names if name not in asked}
    return {name: why for name, why in found.items() if why}


def _reason(series: pl.Series) -> str:
    filled = series.drop_nulls()
    if not len(filled):
        return "it has no values"
    if series.dtype.is_temporal():
        return "dates and times are not supported; make numbers of them, such as days since the start"
    if series.dtype == pl.String:
        if filled.str.strip_chars().str.contains(DATE).all():
            return "it holds dates; make numbers of them, such as days since the start"
        n = filled.n_unique()
        return f"it has {n:,} different texts, as names and comments have" if n > MOST_LEVELS else ""
    if not series.dtype.is_numeric() or len(filled) < len(series):
        return ""
    return _numbering(series)


def _numbering(series: pl.Series) -> str:
    """Whether whole numbers count or name the rows."""
    values = series.to_numpy()
    if len(values) < SHORT or series.n_unique() < len(values) or not np.all(values == np.round(values)):
        return ""
    if np.all(np.diff(values) == 1) and values[0] in (0, 1):
        return f"it counts the rows ({values[0]:.0f}, {values[1]:.0f}, {values[2]:.0f}, …)"
    name = series.name
    if IDENTIFIER.search(name.lower()) or IDENTIFIER.search(name) or UNNAMED.match(name):
        return "it has a different whole number in each row, as identifiers have"
    return ""


def left_out_notes(found: dict[str, str]) -> list[str]:
    """A message for each column that is left out; those with the same reason share one."""
    by_reason: dict[str, list[str]] = {}
    for name, why in found.items():
        by_reason.setdefault(why, []).append(name)
    notes = []
    for why, names in by_reason.items():
        shown = ", ".join(f"'{name}'" for name in names[:5]) + f" and {len(names) - 5} more" * (len(names) > 5)
        notes.append(f"Column{'s' * (len(names) > 1)} {shown} left out: {why}")
    numbers = [name for name, why in found.items() if why.startswith(("it counts", "it has a different whole"))]
    keep = f"To use '{numbers[0]}' all the same, add --features '*' --features '{numbers[0]}'" if numbers else ""
    return [*notes, *[keep] * bool(keep)]


def giveaways(recipe: Recipe, X: FloatArray, y: AnyArray, classes: bool) -> list[str]:
    """Features that are a copy of the target, or of a function of it."""
    pairs = zip(recipe.columns, recipe.parts, strict=True)
    return [column.name for column, part in pairs if _gives_away(X[:, part], y, classes)]


def _gives_away(values: FloatArray, y: AnyArray, classes: bool) -> bool:
    known = np.isfinite(values).all(axis=1)
    values, y = values[known], y[known]
    if len(y) < 4:
        return False
    if classes:
        # Each value belongs to one class and each class to one value.
        pairs = {(*row, label) for row, label in zip(values.tolist(), y.tolist(), strict=True)}
        n = len(np.unique(y))
        return len(pairs) == n and len({pair[:-1] for pair in pairs}) == n
    if values.shape[1] > 1:
        return False
    return any(_correlation(a, b) > COPY for a, b in ((values[:, 0], y), (rankdata(values[:, 0]), rankdata(y))))


def _correlation(a: FloatArray, b: FloatArray) -> float:
    """Squared correlation; 0 for a constant."""
    a, b = a - a.mean(), b - b.mean()
    a, b = a / (np.abs(a).max() or 1), b / (np.abs(b).max() or 1)
    scale = (a @ a) * (b @ b)
    return float((a @ b) ** 2 / scale) if scale > 0 else 0.0
