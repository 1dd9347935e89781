"""A prior of groups: columns that share one precision and enter and leave together (docs/mathematics.md, section 4.2).

For a group the data enter through a matrix S and a vector Q. With the eigenvalues e of S, and u for Q along its
eigenvectors, the group is worth ½Σ[log α/(α + e) + u²/(α + e)] at the precision α. There is no closed form of the best
α; it is found on a grid, and then where the slope vanishes, for all groups of one size at once.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from sparsebayes.core.priors import ARD, Blocks, Moves, Rules
from sparsebayes.core.types import BoolArray, FloatArray, IntArray

DECADES = 8.0
"""The grid of α reaches so far beyond the eigenvalues. A smaller α is worth less than 0 unless u²/e exceeds
log 1e8 = 18 nats, and then the best α is no smaller; at a larger one the group is worth less than 1e-8 of u²/e."""
PER_DECADE = 4
"""Values of the grid in a decade. The slope of a group changes its sign from one maximum to the next; eigenvalues that
make two maxima are decades apart."""
HALVINGS = 45
"""Bisections of the slope: log α is then known to 1e-14."""


@dataclass(frozen=True)
class Grouped(ARD):
    """One precision for all columns of a group; `labels` says which group each column belongs to."""

    labels: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))

    @property
    def rules(self) -> Rules | None:
        """None: the compiled state does not know groups."""
        return None

    @property
    def is_scale_free(self) -> bool:
        """False: a Newton step of all precisions together would give the columns of a group different precisions."""
        return False

    @property
    def ties(self) -> IntArray | None:
        """The group of every column."""
        return self.labels

    @cached_property
    def by_size(self) -> list[IntArray]:
        """The columns of all groups, a matrix for each size of group: one row per group."""
        order = np.argsort(self.labels, kind="stable")
        starts = np.flatnonzero(np.diff(self.labels[order], prepend=-1))
        groups = np.split(order, starts[1:])
        sizes = np.array([len(group) for group in groups])
        return [np.array([g for g in groups if len(g) == size], dtype=np.intp) for size in np.unique(sizes[sizes > 0])]

    def of(self, columns: IntArray | BoolArray) -> Self:
        """The prior of some of the weights, which are whole groups."""
        return replace(self, labels=self.labels[columns])

    def unit(self, j: int) -> IntArray:
        """The columns of the group of column j."""
        return np.flatnonzero(self.labels == self.labels[j])

    def units(self, columns: IntArray | list[int]) -> IntArray | list[int]:
        """The first column of each group among these."""
        columns = np.array(columns, dtype=np.intp)
        return columns[np.sort(np.unique(self.labels[columns], return_index=True)[1])]

    def closed(self, columns: IntArray) -> IntArray:
        """All columns of the groups that these belong to."""
        return np.flatnonzero(np.isin(self.labels, self.labels[columns]))

    def worth(self, s: FloatArray, q: FloatArray, alpha: FloatArray, blocks: Blocks) -> FloatArray:
        """Nats that the group of each column brings at its best precision."""
        found = np.zeros(len(alpha))
        for units in self.by_size:
            found[units] = self.best(*blocks(units))[1][:, None]
        return found

    def moves(self, s: FloatArray, q: FloatArray, alpha: FloatArray, price: FloatArray, blocks: Blocks) -> Moves:
        """The best change of every group; the columns of a group have the same entries."""
        to, gain, worth = np.full(len(alpha), np.inf), np.zeros(len(alpha)), np.zeros(len(alpha))
        for units in self.by_size:
            S, Q = blocks(units)
            best, most = self.best(S, Q)
            first = units[:, 0]
            pays, inside = most > price[first], np.isfinite(alpha[first])
            present = group_gain(np.where(inside, alpha[first], 1.0), *along_axes(S, Q))
            brings = np.where(inside, np.where(pays, most - present, price[first] - present), most - price[first])
            to[units] = np.where(pays, best, np.inf)[:, None]
            gain[units] = np.where(inside, brings, np.maximum(brings, 0.0))[:, None]
            worth[units] = most[:, None]
        return Moves(to, gain, worth)

    def best(self, S: FloatArray, Q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The best precision of every group (∞: out), and the nats that it brings there."""
        e, square = along_axes(S, Q)
        top = e.max(axis=1, initial=0.0)
        usable = top > 0
        scale = np.where(usable, top, 1.0)
        grid = np.linspace(-DECADES, DECADES, int(2 * DECADES * PER_DECADE) + 1) * np.log(10)
        values = group_gain(scale * np.exp(grid)[:, None], e, square)
        place = np.clip(values.argmax(axis=0), 1, len(grid) - 2)
        low, high = grid[place - 1], grid[place + 1]
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            rises = group_slope(scale * np.exp(middle), e, square) > 0
            low, high = np.where(rises, middle, low), np.where(rises, high, middle)
        alpha = np.maximum(scale * np.exp(0.5 * (low + high)), self.min_alpha)
        most = group_gain(alpha, e, square)
        pays = usable & (most > 0)
        return np.where(pays, alpha, np.inf), np.where(pays, most, 0.0)


def along_axes(S: FloatArray, Q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues of each S, and the squares of Q along its eigenvectors."""
    e, V = np.linalg.eigh(S)
    return np.maximum(e, 0.0), np.einsum("gij,gi->gj", V, Q) ** 2


def group_gain(alpha: FloatArray, e: FloatArray, square: FloatArray) -> FloatArray:
    """½Σ[log α/(α + e) + u²/(α + e)] of every group, at a precision each."""
    alpha = np.asarray(alpha)[..., None]
    return np.asarray(0.5 * (square / (alpha + e) - np.log1p(e / alpha)).sum(axis=-1))


def group_slope(alpha: FloatArray, e: FloatArray, square: FloatArray) -> FloatArray:
    """Its derivative in log α: ½Σ[e/(α + e) - αu²/(α + e)²]."""
    alpha = alpha[..., None]
    return np.asarray(0.5 * (e / (alpha + e) - alpha * square / (alpha + e) ** 2).sum(axis=-1))
