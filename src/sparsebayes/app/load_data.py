"""Read a table, select and encode its columns, recognise the task and make folds."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from sparsebayes.app.cells import cleaned
from sparsebayes.app.class_skill import class_of_interest
from sparsebayes.app.columns import Recipe, chosen, listed, matching
from sparsebayes.app.errors import DataError
from sparsebayes.app.models import Size
from sparsebayes.app.tables import Table, open_table
from sparsebayes.app.targets import Target, recognise
from sparsebayes.app.unfit_columns import giveaways, left_out_notes, unfit
from sparsebayes.app.validation import Folds, make_folds
from sparsebayes.core.types import AnyArray, FloatArray

LEAST = 3
"""Fewest rows: a fit needs two, and one is held out."""


@dataclass(frozen=True)
class Request:
    """The options of `fit` and `compare` about the data."""

    data: str
    target: str = ""
    task: str = "auto"
    features: Sequence[str] = ()
    exclude: Sequence[str] = ()
    group: str = ""
    impute: str = ""
    missing: Sequence[str] = ()
    sample: int = 0
    cv: int = 5
    seed: int = 0
    positive: str = ""
    """The class of interest."""


@dataclass(frozen=True)
class Problem:
    """A feature matrix, a target, and folds."""

    source: str
    target: Target
    target_name: str
    recipe: Recipe
    X: FloatArray
    folds: Folds
    seed: int
    notes: list[str]
    """Messages for the user, printed before the work begins."""
    warnings: list[str] = field(default_factory=list)
    """Doubts about the data, which the report shows too."""
    digest: str = ""
    """SHA-256 of the file; empty for a built-in data set."""
    positive: Any = None
    """The class of interest, if one was named."""

    @property
    def y(self) -> AnyArray:
        """The target of every row."""
        return self.target.y

    @property
    def size(self) -> Size:
        """Rows, features and task, which decide whether a model is suitable and affordable."""
        task = self.target.task
        counts = task == "regression" and bool(((self.y >= 0) & (self.y == np.round(self.y))).all())
        return Size(len(self.X), self.X.shape[1], task, counts)


def prepared(request: Request) -> Problem:
    """Read the necessary columns, encode them, recognise the task and make the folds."""
    table = open_table(request.data)
    target = _target_name(table, request.target)
    taken = [target, *matching(table.columns, request.group, "--group")] if request.group else [target]
    names = chosen(table.columns, request.features, request.exclude, taken)
    frame = table.read([*names, *taken])
    notes = list(table.notes)
    if 0 < request.sample < len(frame):
        notes.append(
            f"{request.sample:,} of {len(frame):,} rows were drawn at random (--sample, --seed {request.seed})"
        )
        rows = np.random.default_rng(request.seed).choice(len(frame), request.sample, replace=False)
        frame = frame[np.sort(rows)]
    _check_rows(frame)
    frame, converted = cleaned(frame, request.missing, table.separator)
    goal = recognise(frame[target], request.task)
    names, dropped = _fit(frame, names, request.features)
    recipe = Recipe.of(frame, names, request.impute)
    groups = _groups(frame[taken[1]]) if request.group else None
    folds, note = make_folds(goal.y, bool(goal.classes), groups, request.cv, request.seed)
    X = recipe.encode(frame)
    warnings = _giveaway_warnings(giveaways(recipe, X, goal.y, bool(goal.classes)), target)
    notes += [goal.said, *converted, *dropped, *([note] if note else [])]
    source = os.path.basename(request.data) if os.path.exists(request.data) else table.source
    return Problem(
        source, goal, target, recipe, X, folds, request.seed, notes, warnings, table.digest, _positive(request, goal)
    )


def _fit(frame: pl.DataFrame, names: list[str], asked: Sequence[str]) -> tuple[list[str], list[str]]:
    """The columns that can be features, and messages about the others."""
    dropped = unfit(frame, names, asked)
    left = [name for name in names if name not in dropped]
    if not left:
        raise DataError("no column can be a feature: " + "; ".join(left_out_notes(dropped)))
    return left, left_out_notes(dropped)


def _positive(request: Request, goal: Target) -> Any:
    if not request.positive:
        return None
    found = class_of_interest(request.positive, goal.classes)
    if found is None:
        known = f"the classes are {listed([str(label) for label in goal.classes])}" if goal.classes else "it is numeric"
        raise DataError(f"--positive '{request.positive}' is not a class of the target: {known}")
    return found


def _giveaway_warnings(names: list[str], target: str) -> list[str]:
    return [
        f"the feature '{name}' determines the target '{target}' exactly. If it is a copy, or known only afterwards, "
        f"exclude it with --exclude '{name}'"
        for name in names
    ]


def _target_name(table: Table, asked: str) -> str:
    name = asked or table.target
    if not name:
        raise DataError(f"choose the column to predict with --target; {table.source} has {listed(table.columns)}")
    if name not in table.columns:
        raise DataError(f"--target '{name}' is not a column of {table.source}, which has {listed(table.columns)}")
    return name


def _check_rows(frame: pl.DataFrame) -> None:
    if len(frame) < LEAST:
        rows = f"{len(frame)} row{'s' * (len(frame) != 1)}"
        raise DataError(f"the table has {rows}; at least {LEAST} are needed to fit and test a model")


def _groups(series: pl.Series) -> Any:
    if series.null_count():
        raise DataError(
            f"the group column '{series.name}' has a missing value in row {series.is_null().arg_true()[0] + 1}"
        )
    return series.rank("dense").to_numpy()
