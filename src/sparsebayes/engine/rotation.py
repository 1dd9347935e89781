"""Sweeps over some of the columns at a time: the rest stays as it is.

A sweep that may change only some columns leaves the posterior unchanged, whichever they are, as long as the choice does
not depend on the present set. The columns that were most probable so far are in every sweep. The others take turns, so
that each is in the same number of sweeps. Now and then a sweep has all columns, so that leaps between sparse and dense
sets can go far (docs/mathematics.md, section 9.4).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.engine.flips import Sums

WHOLE = 500
"""Columns up to which every sweep has all of them."""
TURNS = 10
"""Sweeps in which every column has its turn. A sweep's work is proportional to the columns it has."""
FAVOURED = 20
"""One column in so many is in every sweep."""


def favourites(score: FloatArray, movable: BoolArray) -> IntArray:
    """The columns of largest score that are in every sweep; none where all are."""
    n = len(score) // FAVOURED if len(score) > WHOLE else 0
    return np.argsort(np.where(movable, -score, np.inf), kind="stable")[:n]


def turns(always: IntArray, n_columns: int, rng: np.random.Generator) -> Iterator[BoolArray]:
    """For each sweep, which columns may change."""
    others = np.setdiff1d(np.arange(n_columns), always)
    while True:
        yield np.ones(n_columns, dtype=bool)
        for part in np.array_split(rng.permutation(others), TURNS) if n_columns > WHOLE else []:
            free = np.zeros(n_columns, dtype=bool)
            free[always] = free[part] = True
            yield free


@dataclass(frozen=True)
class Part:
    """The columns of one sweep: those that may change, and those that are in."""

    columns: IntArray
    log_prior: FloatArray
    """Of these columns; infinite for those that stay in."""
    n_held: int
    """Number of columns that stay in, though they might be out."""

    @classmethod
    def of(cls, free: BoolArray, active: IntArray, log_prior: FloatArray) -> "Part":
        """The part of a sweep that begins with the set `active`."""
        taken = free.copy()
        taken[active] = True
        columns = np.flatnonzero(taken)
        held = ~free[columns] & np.isfinite(log_prior[columns])
        return cls(columns, np.where(held, np.inf, log_prior[columns]), int(held.sum()))

    def local(self, active: IntArray) -> IntArray:
        """A set of columns by their place in the part."""
        return np.searchsorted(self.columns, active)


class Tally:
    """Sums over the states of many sweeps, each for its own columns."""

    def __init__(self, n_units: int, n_columns: int) -> None:
        self.included, self.free_total = np.zeros(n_units), np.zeros(n_units)
        self.first, self.second = np.zeros(n_columns), np.zeros(n_columns)
        self.sizes, self.total = np.zeros(n_units + 1), 0.0
        self.noise: FloatArray | float = 0.0

    def add(self, sums: Sums, units: IntArray, columns: IntArray, free: BoolArray) -> None:
        """Add the states of a sweep over these units (columns or groups) and columns.

        Probabilities count for the units that were free to change.
        """
        was_free = np.flatnonzero(free[units])
        self.included[units[was_free]] += sums.included[was_free]
        self.free_total[units[was_free]] += sums.total
        self.first[columns] += sums.first
        self.second[columns] += sums.second
        self.sizes[: len(sums.sizes)] += sums.sizes
        self.noise, self.total = self.noise + sums.noise, self.total + sums.total

    @property
    def probability(self) -> FloatArray:
        """Mean over the states in which a unit was free to change."""
        return self.included / np.maximum(self.free_total, np.finfo(np.float64).tiny)

    def sums(self) -> Sums:
        """All states, with probabilities as if every unit had been free in all of them."""
        return Sums(self.probability * self.total, self.first, self.second, self.sizes, self.noise, self.total)
