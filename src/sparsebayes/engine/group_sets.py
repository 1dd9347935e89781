"""Sets of groups of columns for a chain: `Sets` in which a group takes the place of a column."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from sparsebayes.core.inclusion import InclusionPrior
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine.averaging import Averaged
from sparsebayes.engine.group_flips import GroupFlips
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.sets import Draw, Sets
from sparsebayes.engine.spectrum import OfColumns, Spectrum


@dataclass(frozen=True)
class GroupSets(Sets):
    """Sets of groups. `log_prior` has an entry for each group; a draw has the columns of its groups."""

    labels: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    """The group of every column: 0, 1, …"""

    @cached_property
    def tried(self) -> FloatArray:
        """All groups alike."""
        return np.where(self.movable, 1.0, 0.0) / max(int(self.movable.sum()), 1)

    @cached_property
    def members(self) -> IntArray:
        """The columns of each group, filled up with -1."""
        return members_of(self.labels)

    @cached_property
    def own(self) -> FloatArray:
        """Φ_gᵀΦ_g of each group."""
        found = np.zeros((*self.members.shape, self.members.shape[1]))
        for g, columns in enumerate(self.members):
            Phi = self.problem.design.columns(columns[columns >= 0])
            found[g, : Phi.shape[1], : Phi.shape[1]] = Phi.T @ Phi
        return found

    def columns(self, groups: IntArray) -> IntArray:
        """All columns of these groups, group by group."""
        chosen = self.members[groups]
        return chosen[chosen >= 0]

    def by_rows(self, k: int) -> bool:
        """False: groups always use the matrix of their columns."""
        return False

    def gram_rows(self, active: IntArray) -> FloatArray:
        """Φ_gᵀ Φ of these groups."""
        return super().gram_rows(self.columns(active))

    def spectrum(self, active: IntArray) -> Spectrum:
        """A set as a function of c."""
        columns = self.columns(active)
        return OfColumns.of(self.gram(columns), self.problem.projection[columns], self.energy)

    def gram(self, active: IntArray) -> FloatArray:
        """Φ_Sᵀ Φ_S of columns."""
        if self.rows.size:
            columns = self.rows[:, active]
            return columns.T @ columns
        return super().gram_rows(active)[:, active]

    def draw(self, active: IntArray, c: float, rng: np.random.Generator, n: int) -> list[Draw]:
        """Draw noise, weights and intercept of a set of groups n times."""
        return super().draw(np.sort(self.columns(active)), c, rng, n)

    def flips(self, spread: FloatArray) -> GroupFlips:
        """The state of a chain."""
        problem = self.problem
        rows_of = super().gram_rows
        return GroupFlips(rows_of, problem.projection, self.log_prior, self.n, spread, self.members, self.own)


def members_of(labels: IntArray) -> IntArray:
    """The columns of each group, filled up with -1."""
    size = np.bincount(labels)
    found = np.full((len(size), size.max(initial=1)), -1)
    order = np.argsort(labels, kind="stable")
    within = np.arange(len(labels)) - np.repeat(np.cumsum(size) - size, size)
    found[labels[order], within] = order
    return found


def sets_of(
    problem: LeastSquares,
    log_prior: FloatArray,
    prior: InclusionPrior,
    labels: IntArray | None,
    *,
    learns_noise: bool,
    n_held: int = 0,
) -> Sets:
    """Sets of columns or, with labels, of groups; `n_held` as in `Sets`."""
    if labels is None:
        return Sets(problem, log_prior, prior, learns_noise, n_held=n_held)
    return GroupSets(problem, log_prior, prior, learns_noise, labels=labels)


def group_score(score: FloatArray, labels: IntArray | None) -> FloatArray:
    """How well each column, or each group, goes with the target."""
    if labels is None:
        return score
    return np.asarray(np.sqrt(np.bincount(labels, score**2) / np.bincount(labels)))


def by_columns(found: Averaged, labels: IntArray | None) -> Averaged:
    """Averages over sets of groups with a probability for every column, which is that of its group."""
    return found if labels is None else replace(found, probability=found.probability[labels])
