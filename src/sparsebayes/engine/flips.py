"""Weighted tempered Gibbs sampling over sets of columns: the state of one chain, and its flips.

Given a set S and the ratio c of prior variance to noise, the weights are integrated out. With M = (I + c Φ_S Φ_Sᵀ)⁻¹
all that a flip needs is s_j = φ_jᵀ M φ_j, q_j = φ_jᵀ M t and ρ = tᵀ M t (docs/mathematics.md, section 9). They follow
every flip by an update of rank one, for all columns at once. This is the NumPy form; `native/flips.hpp` is the compiled
one.

Several outputs can share the set. t then has a column for each of them, and so have q, the weights and their variances;
ρ has an entry for each. M, and with it s, is common to all (section 9.6).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine import compiled

STEEPEST = 500.0
"""Largest exponent: of larger log odds only the differences are taken to the exponential, which would overflow."""
TINY = float(np.finfo(np.float64).tiny)
ROUNDING = 1e-12
"""Smallest share of ρ or of a column that a difference of like numbers can be trusted to leave."""


class Sums(NamedTuple):
    """Weighted sums over the states of a chain."""

    included: FloatArray
    """Of the probability that each column is in, given the rest of the set."""
    first: FloatArray
    second: FloatArray
    """Of the weights' posterior means and mean squares. They are those of the sets themselves: averages over the flip
    of every column would have less noise one by one, but their sums, the predictions, would have more."""
    sizes: FloatArray
    """Of states with 0, 1, … columns."""
    noise: FloatArray | float
    """Of ρ."""
    total: float


class Move(NamedTuple):
    """A flip of column j, as the set before it sees it."""

    row: FloatArray
    """Φᵀ M φ_j."""
    factor: float
    """c/(1 + c s_j) of a column that enters, -c/(1 - c s_j) of one that leaves."""
    own_q: FloatArray
    """q_j."""


class Flips:
    """A set of columns, and what each column brings given the others.

    With `n` finite the noise variance is integrated out, with the prior 1/σ²; with `n` infinite it is one. Several
    outputs have a noise variance each or, with `shares_noise`, one for all.
    """

    def __init__(
        self,
        gram: FloatArray | Callable[[int], FloatArray],
        rows: FloatArray,
        projection: FloatArray,
        log_prior: FloatArray,
        n: float,
        spread: FloatArray,
        shares_noise: bool = False,
    ) -> None:
        self.gram_row: Callable[[int], FloatArray] = gram if callable(gram) else gram.__getitem__
        """Φᵀφ_j."""
        self.rows = rows
        """Φ, needed only where M itself is updated."""
        self.projection = projection
        """Φᵀt."""
        self.log_prior = log_prior
        """Log prior odds of each column, on top of those of the set's size; infinite: always in, or never."""
        self.n = n
        """Degrees of freedom that tell of one noise variance."""
        self.shares_noise = shares_noise
        self.spread = spread
        """κ_j: how eagerly a column is tried that is unlikely to be in."""
        self.movable = np.isfinite(log_prior)
        self.last_movable = int(np.flatnonzero(self.movable).max(initial=0))
        self.inside = np.zeros(len(log_prior), dtype=bool)
        self.active: list[int] = []
        """The columns inside, in the order of `inner` and `gram`."""
        weights = np.zeros_like(projection)
        included, sizes = np.zeros_like(log_prior), np.zeros(len(log_prior) + 1)
        self.sums = Sums(included, weights, weights.copy(), sizes, np.zeros(projection.shape[1:]), 0.0)
        self.total, self.log_total = 1.0, 0.0
        self.picked: list[int] = []
        """One set of the last run, chosen with the states' weights."""

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
        """Take up a set at a ratio c; `log_odds` are the prior odds of one column more, by the size of the set."""
        self.active, self.gram, self.inner, self.by_rows = active.tolist(), [*gram], inner, by_rows
        self.inside[:] = False
        self.inside[active] = True
        self.s, self.q, self.rest, self.c, self.log_odds = s.copy(), q.copy(), rest, c, log_odds
        self._weigh()

    def _outside(self) -> tuple[FloatArray, FloatArray]:
        """1 + c s and q of every column as seen by the rest of the set."""
        novelty, q = 1 + self.c * self.s, self.q.copy()
        if self.by_rows:
            left = np.maximum(1 - self.c * self.s[self.inside], ROUNDING)
            novelty[self.inside], q[self.inside] = 1 / left, (self.q[self.inside].T / left).T
        else:  # the inverse has the digits that 1 - c s has lost
            own = np.diag(self.inner)
            mean = self.inner @ self.projection[self.active]
            novelty[self.active], q[self.active] = self.c / own, (mean.T / own).T
        return novelty, q

    def _weigh(self) -> None:
        """Probability of every column given the rest, and how eagerly each is flipped."""
        novelty, q = self._outside()
        self.weight = (self.c * q.T / novelty).T  # posterior mean if it is in
        noise = self._find_odds(self.weight * q, np.log(novelty))
        self.variance = (noise.T * self.c / novelty).T
        self._find_eagerness()

    def _find_odds(self, explained: FloatArray, log_volume: FloatArray) -> FloatArray:
        """Log odds of each column from x and log u; returns the noise variance, were it in."""
        k, size = len(self.active), len(self.log_odds)
        n_outputs = max(int(np.prod(explained.shape[1:])), 1)
        rest_without = self.rest + np.where(self.inside, explained.T, 0.0).T
        if self.shares_noise:
            explained, rest_without = (each.sum(axis=1, keepdims=True) for each in (explained, rest_without))
        explained = np.minimum(explained, (1 - ROUNDING) * rest_without)
        learns_noise = np.isfinite(self.n)
        worth = -0.5 * self.n * np.log1p(-explained / rest_without) if learns_noise else 0.5 * explained
        prior = np.where(self.inside, self.log_odds[max(k - 1, 0)], self.log_odds[min(k, size - 1)])
        worth = worth.reshape(len(prior), -1).sum(axis=1)
        self.log_in = worth - 0.5 * n_outputs * log_volume + prior + self.log_prior
        self.p = 1 / (1 + np.exp(-np.clip(self.log_in, -STEEPEST, STEEPEST)))
        return (rest_without - explained) / max(self.n - 2, 1.0) if learns_noise else np.ones_like(explained)

    def _find_eagerness(self) -> None:
        """(p + κ_j)/P(present state) of every column, divided by exp(shift), and the logarithm of their sum Z."""
        log_flip = np.where(self.movable, np.where(self.inside, -self.log_in, self.log_in), -np.inf)
        shift = max(float(log_flip.max(initial=0.0)) - STEEPEST, 0.0)
        flip, stay = np.exp(log_flip - shift), np.exp(-shift)
        outside = flip * (1 + self.spread) + self.spread * stay
        inside = stay * (1 + self.spread) + self.spread * flip
        self.eagerness = np.where(self.movable, np.where(self.inside, inside, outside), 0.0)
        self.total = float(self.eagerness.sum()) if self.movable.any() else 1.0
        self.log_total = float(np.log(self.total)) + shift
        """log Z: the state's weight is 1/Z."""

    def toggle(self, j: int) -> None:
        """Take column j in or out, if it may move: M ∓ c (Mφ)(Mφ)ᵀ/(1 ± c s)."""
        if not self.movable[j]:
            return
        if self.by_rows:
            row, factor, own_q = self._follow(j)
        else:
            row, factor, own_q = self._shrink(j) if self.inside[j] else self._grow(j)
        self.inside[j] = not self.inside[j]
        self.s = np.maximum(self.s - factor * row**2, 0.0)
        self.q = self.q - np.multiply.outer(row, factor * own_q)
        self.rest = np.maximum(self.rest - factor * own_q**2, TINY)
        self._weigh()

    def _grow(self, j: int) -> Move:
        """Take a column into the small matrix.

        Columns that depend on each other make that matrix as large as c. Rounding would then grow from flip to flip.
        One step of iterative refinement, and s_j and q_j from its result, stop that.
        """
        row, active = self.gram_row(j), self.active
        target, gram = row[active], np.reshape(self.gram, (-1, len(row)))
        near = self.inner @ target
        near += self.inner @ (target - near @ gram[:, active] - near / self.c)
        reduced = row - near @ gram
        own_q = self.projection[j] - near @ self.projection[active]
        factor = self.c / (1 + self.c * max(float(reduced[j]), 0.0))
        self.inner = np.block(
            [
                [self.inner + factor * np.outer(near, near), -factor * near[:, None]],
                [-factor * near, np.full((1, 1), factor)],
            ]
        )
        self.active.append(j)
        self.gram.append(row)
        return Move(reduced, factor, own_q)

    def _shrink(self, j: int) -> Move:
        """Take a column out of the small matrix, which has the digits that s and q of a column inside have lost."""
        place = self.active.index(j)
        own = self.inner[place]
        reduced: FloatArray = own @ np.array(self.gram) / self.c
        own_q = own @ self.projection[self.active] / self.c
        others = np.delete(own, place)
        rest = np.delete(np.delete(self.inner, place, axis=0), place, axis=1)
        self.inner = rest - np.outer(others, others) / own[place]
        self.active.pop(place)
        self.gram.pop(place)
        return Move(reduced, -(self.c**2) / own[place], own_q)

    def _follow(self, j: int) -> Move:
        """Update M itself."""
        image, s, own_q = self.inner @ self.rows[:, j], float(self.s[j]), self.q[j]
        if self.inside[j]:
            factor = -self.c / max(1 - self.c * s, ROUNDING)
            self.active.remove(j)
        else:
            factor = self.c / (1 + self.c * s)
            self.active.append(j)
        self.inner = self.inner - factor * np.outer(image, image)
        return Move(image @ self.rows, factor, own_q)

    def run(self, choices: FloatArray, picks: FloatArray) -> float:
        """One flip for each random number; adds the states to the sums, and returns the sum of their weights 1/Z.

        Of the states one is picked with probabilities proportional to their weights.
        """
        before = self.sums.total
        for choice, pick in zip(choices, picks, strict=True):
            self.toggle(self._chosen(choice))
            share = float(np.exp(-self.log_total))
            self._add(share)
            if pick * (self.sums.total - before) <= share:
                self.picked = list(self.active)
        return self.sums.total - before

    def walk(self, choices: FloatArray, tests: FloatArray) -> None:
        """Flips that are accepted with Z/Z', so that all states count the same; adds the states to the sums."""
        for choice, test in zip(choices, tests, strict=True):
            j, before = self._chosen(choice), self.log_total
            self.toggle(j)
            if np.log(test) > before - self.log_total:
                self.toggle(j)
            self._add(1.0)

    def _chosen(self, choice: float) -> int:
        """A column, by its eagerness to flip."""
        found = int(np.searchsorted(np.cumsum(self.eagerness), choice * self.total, side="right"))
        return min(found, self.last_movable)

    def _add(self, share: float) -> None:
        included, first, second, sizes, noise, total = self.sums
        mean, active = self.weight[self.active], self.active
        included += share * self.p
        first[active] += share * mean
        second[active] += share * (mean**2 + self.variance[active])
        sizes[len(active)] += share
        self.sums = Sums(included, first, second, sizes, noise + share * self.rest, total + share)


def make_flips(*args: Any) -> "Flips | compiled.native.Flips":
    """The compiled form where there is one."""
    if compiled.COMPILED:
        return compiled.native.Flips(*args, steepest=STEEPEST, rounding=ROUNDING)
    return Flips(*args)
