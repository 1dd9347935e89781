"""Predictions for the rows of a table."""

import io
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import polars as pl

from sparsebayes.app.cells import cleaned
from sparsebayes.app.columns import listed, matching
from sparsebayes.app.errors import DataError, UsageError
from sparsebayes.app.modelfile import Stored
from sparsebayes.app.tables import Table
from sparsebayes.core.types import BoolArray
from sparsebayes.io.atomic_file import whole_file
from sparsebayes.io.printable import printable

BLOCK = 50_000
"""Rows that are predicted at once."""


@dataclass(frozen=True)
class Wanted:
    """The options of `predict`."""

    interval: float | None = None
    keep: Sequence[str] = ()
    missing: Sequence[str] = ()


def predictions(stored: Stored, table: Table, wanted: Wanted, tick: Callable[[str, int, int], None]) -> pl.DataFrame:
    """Prediction and uncertainty for each row of the table."""
    names = stored.recipe.needed(used_features(stored))
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise DataError(
            f"{table.source} lacks {listed(missing, 50)}, which the model needs; it has {listed(table.columns)}"
        )
    classes = hasattr(stored.model, "classes_")
    if wanted.interval is not None and classes:
        raise UsageError("--interval is for regression; for classes use the probabilities")
    kept = list(dict.fromkeys(name for pattern in wanted.keep for name in matching(table.columns, pattern, "--keep")))
    frame = table.read(list(dict.fromkeys([*names, *kept])))
    used, _ = cleaned(frame.select(names), wanted.missing, table.separator)
    X = pl.DataFrame(stored.recipe.encode(used), schema=stored.recipe.features)
    total = -(-len(X) // BLOCK)
    made = []
    for k in range(total):
        made.append(_predicted(stored, X[k * BLOCK : (k + 1) * BLOCK], wanted.interval))
        tick("predict", k + 1, total)
    found = pl.concat(made)
    twice = sorted(set(kept) & set(found.columns))
    if twice:
        raise DataError(f"--keep '{twice[0]}': the predictions have such a column; rename that of the table")
    return pl.concat([frame.select(kept), found], how="horizontal") if kept else found


def used_features(stored: Stored) -> BoolArray:
    """Which features the predictions depend on: all, but for a model that gives some no weight."""
    model, n = stored.model, len(stored.recipe.features)
    if getattr(model, "n_features_in_", None) != n:  # a step before it has made other columns
        return np.ones(n, dtype=bool)
    weights = getattr(model, "feature_weights_", None)
    if weights is None and not hasattr(model, "relevance_indices_"):
        weights = getattr(model, "coef_", None)
    return np.ones(n, dtype=bool) if weights is None else np.asarray((np.atleast_2d(weights) != 0).any(axis=0))


def _predicted(stored: Stored, X: pl.DataFrame, interval: float | None) -> pl.DataFrame:
    if hasattr(stored.model, "classes_"):
        p = stored.pipeline.predict_proba(X)
        names = [f"probability={label}" for label in stored.model.classes_]
        return pl.DataFrame({"prediction": stored.pipeline.predict(X), **dict(zip(names, p.T, strict=True))})
    mean, std = stored.pipeline.predict(X, return_std=True)
    if np.ndim(mean) > 1:
        raise DataError("the model has several targets; the command line supports one")
    found = {"prediction": mean, "std": std}
    if interval is not None:
        seen = stored.pipeline[:-1].transform(X) if len(stored.pipeline) > 1 else X
        ends = stored.model.predict_interval(seen, coverage=interval)
        found |= {"lower": ends[..., 0], "upper": ends[..., 1]}
    return pl.DataFrame(found)


FORMULA = r"^[=+\-@\t\r]"
"""How a cell begins that a spreadsheet takes for a formula, and may run."""
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
"""A number, which is none, although it may begin with a sign."""


def without_formulas(frame: pl.DataFrame) -> pl.DataFrame:
    """The table for a text file: text that a spreadsheet would take for a formula begins with an apostrophe.

    Labels and names of columns come from other people's tables. Numbers stay as they are, also in columns of text.
    """
    words = frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    cell = pl.col(pl.String)
    formula = cell.str.contains(FORMULA) & ~cell.str.contains(NUMBER)
    safe = words.with_columns(pl.when(formula).then(pl.lit("'") + cell).otherwise(cell).name.keep())
    return safe.rename({name: f"'{name}" for name in frame.columns if re.match(FORMULA, name)})


def print_table(frame: pl.DataFrame) -> None:
    """The table as CSV on standard output; a terminal does not get the control characters in it."""
    text = without_formulas(frame).write_csv()
    sys.stdout.write(printable(text, keep="\n") if sys.stdout.isatty() else text)


WRITERS: dict[str, Callable[[pl.DataFrame, IO[bytes]], None]] = {
    ".csv": lambda frame, file: without_formulas(frame).write_csv(file),
    ".tsv": lambda frame, file: without_formulas(frame).write_csv(file, separator="\t"),
    ".parquet": lambda frame, file: frame.write_parquet(file),
    ".feather": lambda frame, file: frame.write_ipc(file),
}
"""Functions that write tables, by file extension."""


def write_table(frame: pl.DataFrame, path: str) -> None:
    """Write a table. The file appears whole or not at all."""
    made = io.BytesIO()  # polars reports a full disk in ways of its own; our own writing raises OSError
    WRITERS[Path(path).suffix.lower()](frame, made)
    with whole_file(path) as file:
        file.write(made.getbuffer())
