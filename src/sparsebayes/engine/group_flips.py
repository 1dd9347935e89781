"""Flips of whole groups of columns: engine/flips.py with a matrix for each group in the place of a number.

With S = Φ_gᵀMΦ_g and Q = Φ_gᵀMt of a group g outside the set, K = (I/c + S)⁻¹ and m = KQ are covariance (over the
noise) and mean of its weights, were it in. It multiplies |I + cΦΦᵀ| by |I + cS| = cᵏ/|K| and takes mᵀK⁻¹m from ρ. For a
group inside K and m are the blocks of the posterior. A flip is an update of rank k (docs/mathematics.md, section 9.5).
"""

from collections.abc import Callable

import numpy as np

from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine.flips import TINY, Flips, Sums


class GroupFlips(Flips):
    """A set of groups; what `Flips` says of columns holds for groups, and weights are still those of columns."""

    def __init__(
        self,
        gram_rows: Callable[[IntArray], FloatArray],
        projection: FloatArray,
        log_prior: FloatArray,
        n: float,
        spread: FloatArray,
        members: IntArray,
        own: FloatArray,
    ) -> None:
        super().__init__(lambda j: np.empty(0), np.empty((0, 0)), projection, log_prior, n, spread)
        self.gram_rows = gram_rows
        """Φ_gᵀΦ of some columns."""
        self.members = members
        """The columns of each group, filled up with -1."""
        self.own = own
        """Φ_gᵀΦ_g of each group, zeros where it is filled up."""
        self.there = members >= 0
        self.size = self.there.sum(axis=1)
        self.unit = np.eye(members.shape[1])

    def place(
        self,
        active: IntArray,
        gram: FloatArray,
        inner: FloatArray,
        by_rows: bool,
        s: FloatArray,
        q: FloatArray,
        rest: FloatArray,
        c: float,
        log_odds: FloatArray,
    ) -> None:
        """Take up a set of groups at a ratio c; `gram` and `inner` belong to their columns, group by group."""
        self.active, self.inner = active.tolist(), inner
        self.inside[:] = False
        self.inside[active] = True
        ends = np.cumsum(self.size[active])
        self.gram = np.split(gram, ends[:-1]) if len(active) else []
        self.S = self.own - self._by_group(gram).swapaxes(1, 2) @ inner @ self._by_group(gram)
        self.q, self.rest, self.c, self.log_odds = q.copy(), rest, c, log_odds
        self._weigh()

    def _by_group(self, rows: FloatArray) -> FloatArray:
        """Rows that have an entry for every column, as a matrix for each group."""
        return np.where(self.there[:, None, :], rows.T[self.members].swapaxes(1, 2), 0.0)

    def _columns(self) -> IntArray:
        """The columns inside, in the order of `inner`."""
        return np.concatenate([self.members[g, : self.size[g]] for g in self.active] or [self.members[0, :0]])

    def _places(self) -> list[slice]:
        """Where the columns of each group inside are among those of the set."""
        ends = np.cumsum([self.size[g] for g in self.active])
        return [slice(int(end) - int(self.size[g]), int(end)) for g, end in zip(self.active, ends, strict=True)]

    def _weigh(self) -> None:
        """Probability of every group given the rest, and how eagerly each is flipped."""
        width = self.members.shape[1]
        self.K = np.asarray(np.linalg.inv(self.S + self.unit / self.c), dtype=np.float64)
        shift = np.where(self.there, self.q[self.members], 0.0)
        self.mean = (self.K @ shift[:, :, None])[:, :, 0]
        if self.active:  # of these the posterior has the digits that S and Q have lost
            mean = self.inner @ self.projection[self._columns()]
            self.K[self.active], self.mean[self.active] = self.unit * self.c, 0.0
            for g, place in zip(self.active, self._places(), strict=True):
                k = self.size[g]
                self.K[g, :k, :k], self.mean[g, :k] = self.inner[place, place], mean[place]
            shift[self.active] = np.linalg.solve(self.K[self.active], self.mean[self.active][:, :, None])[:, :, 0]
        volume = width * np.log(self.c) - np.linalg.slogdet(self.K)[1]
        explained = np.maximum((self.mean * shift).sum(axis=1), 0.0)
        self.noise = self._find_odds(explained, volume)
        self._find_eagerness()

    def toggle(self, j: int) -> None:
        """Take group j in or out, if it may move."""
        if not self.movable[j]:
            return
        k, columns = int(self.size[j]), self.members[j, : self.size[j]]
        if self.inside[j]:
            place = self._places()[self.active.index(j)]
            reduced, change = self._shrink_group(j, place)
            step = change @ self.mean[j, :k] / self.c
        else:
            reduced, change, own_q = self._grow_group(j, columns)
            step = change @ own_q
        # M changes by reducedᵀ change reduced.
        self.rest = np.maximum(self.rest + step @ np.linalg.solve(change, step), TINY)
        self.inside[j] = not self.inside[j]
        by_group = self._by_group(reduced)
        self.S = self.S + by_group.swapaxes(1, 2) @ change @ by_group
        self.q = self.q + step @ reduced
        self._weigh()

    def _grow_group(self, j: int, columns: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Take a group into the small matrix; returns Φ_gᵀ M Φ of the set without it, how M changes along it, and Q.

        With a step of iterative refinement, and S and Q from its result, as for single columns.
        """
        rows, inside = self.gram_rows(columns), self._columns()
        target, gram = rows[:, inside].T, np.concatenate([*self.gram, np.empty((0, rows.shape[1]))])
        near = self.inner @ target
        near += self.inner @ (target - gram[:, inside].T @ near - near / self.c)
        reduced: FloatArray = rows - near.T @ gram
        own_q = self.projection[columns] - near.T @ self.projection[inside]
        S = 0.5 * (reduced[:, columns] + reduced[:, columns].T)
        K = np.asarray(np.linalg.inv(S + np.eye(len(columns)) / self.c), dtype=np.float64)
        self.inner = np.block([[self.inner + near @ K @ near.T, -near @ K], [-K @ near.T, K]])
        self.active.append(j)
        self.gram.append(rows)
        return reduced, -K, own_q

    def _shrink_group(self, j: int, place: slice) -> tuple[FloatArray, FloatArray]:
        """Take a group out of the small matrix; returns Φ_gᵀ M Φ of the set with it, and how M changes along it."""
        own, at = self.inner[place], self.active.index(j)
        reduced: FloatArray = own @ np.concatenate(self.gram) / self.c
        precision = np.asarray(np.linalg.inv(own[:, place]), dtype=np.float64)
        stays = np.ones(len(self.inner), dtype=bool)
        stays[place] = False
        self.inner = self.inner[np.ix_(stays, stays)] - own[:, stays].T @ precision @ own[:, stays]
        self.active.pop(at)
        self.gram.pop(at)
        return reduced, self.c**2 * precision

    def _add(self, share: float) -> None:
        included, first, second, sizes, noise, total = self.sums
        included += share * self.p
        for g in self.active:
            k, columns = self.size[g], self.members[g, : self.size[g]]
            mean = self.mean[g, :k]
            first[columns] += share * mean
            second[columns] += share * (mean**2 + self.noise[g] * np.diag(self.K[g])[:k])
        sizes[len(self.active)] += share
        self.sums = Sums(included, first, second, sizes, noise + share * self.rest, total + share)
