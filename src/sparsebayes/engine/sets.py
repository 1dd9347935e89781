"""Sets of columns of a least-squares problem as a chain sees them: their evidence, and draws of their weights."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sparsebayes.core.inclusion import InclusionPrior
from sparsebayes.core.linalg import factorise
from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.engine.flips import make_flips
from sparsebayes.engine.least_squares import NOISE_FLOOR, LeastSquares
from sparsebayes.engine.spectrum import OfColumns, OfRows, Spectrum

FAR = 0.1
"""Share of the tries of any column, where most are of those whose products are known."""


@dataclass(frozen=True)
class Visit:
    """A set that a chain has visited, and its weight among the visits: that of the states near it."""

    active: IntArray
    c: float
    share: float


@dataclass(frozen=True)
class Draw:
    """One draw of everything: the weights of a set, the noise and the intercept, and its weight among the draws."""

    active: IntArray
    weights: FloatArray
    """With several outputs a column for each; noise and level then have an entry for each."""
    noise: Any
    level: Any
    """Intercept at the columns' means, measured from the target's mean."""
    share: float


@dataclass(frozen=True)
class Sets:
    """A least-squares problem, and the prior of its sets of columns."""

    problem: LeastSquares
    log_prior: FloatArray
    """Log prior odds of each column, on top of those of the set's size; infinite: always in, or never."""
    prior: InclusionPrior
    learns_noise: bool = True
    """Whether the noise variance is integrated out; otherwise it is one."""
    likely: IntArray | None = None
    """The columns whose products are known, where not all are."""
    n_held: int = 0
    """Number of columns with infinite odds that stay in only for now: the prior of a set's size counts them."""

    @cached_property
    def tried(self) -> FloatArray:
        """How the tries of improbable columns are distributed. The sampler is exact for any such choice.

        Where a column's products must be computed first, most tries are of columns that have them.
        """
        share = np.where(self.movable, 1.0, 0.0) / max(int(self.movable.sum()), 1)
        if self.likely is not None and (n_likely := int(self.movable[self.likely].sum())):
            share *= FAR
            share[self.likely] += np.where(self.movable[self.likely], (1 - FAR) / n_likely, 0.0)
        return share

    @cached_property
    def n(self) -> float:
        """Degrees of freedom of the noise; infinite where it is known."""
        return self.problem.n + 2 * self.problem.c if self.learns_noise else np.inf

    @cached_property
    def floor(self) -> float:
        """What the prior of the noise adds to ρ: it cannot vanish."""
        return NOISE_FLOOR * self.problem.n + 2 * self.problem.d if self.learns_noise else 0.0

    @cached_property
    def energy(self) -> FloatArray | float:
        """ρ of the empty set."""
        return self.problem.energy + self.floor

    @cached_property
    def movable(self) -> BoolArray:
        """Columns that may be in or out."""
        return np.isfinite(self.log_prior)

    @cached_property
    def forced(self) -> IntArray:
        """Columns that are always in."""
        return np.flatnonzero(self.log_prior == np.inf)

    @property
    def n_uncounted(self) -> int:
        """Number of columns that the prior of a set's size does not count."""
        return len(self.forced) - self.n_held

    @cached_property
    def rows(self) -> FloatArray:
        """Φ where it has more columns than rows and may be formed; otherwise nothing."""
        design = self.problem.design
        return design.columns(slice(None) if design.n_columns > design.n_rows and design.can_form else slice(0))

    def by_rows(self, k: int) -> bool:
        """Whether sets of this size are better seen through the n×n matrix M: it is smaller, or nearly so."""
        return self.rows.size > 0 and 2 * k > len(self.rows)

    def gram_row(self, j: int) -> FloatArray:
        """Φᵀφ_j. None is computed ahead of its need: its digits would depend on which others are."""
        return self.problem.design.gram_column(j, lambda: np.empty(0, dtype=np.intp))

    @property
    def products(self) -> "FloatArray | Callable[[int], FloatArray]":
        """The Gram matrix if it is known, otherwise a function that gives its rows."""
        known = self.problem.design.known_gram
        return self.gram_row if known is None else known

    def gram_rows(self, active: IntArray) -> FloatArray:
        """Φ_Sᵀ Φ."""
        known = self.problem.design.known_gram
        if known is not None:
            return known[active]
        return np.array([self.gram_row(int(j)) for j in active]).reshape(len(active), self.problem.n_columns)

    def gram(self, active: IntArray) -> FloatArray:
        """Φ_Sᵀ Φ_S."""
        if not self.rows.size:
            return self.gram_rows(active)[:, active]
        columns = self.rows[:, active]
        return columns.T @ columns

    def spectrum(self, active: IntArray) -> Spectrum:
        """A set as a function of c."""
        if self.by_rows(len(active)):
            return OfRows.of(self.rows[:, active], self.problem.t, self.problem.rest + self.floor)
        return self.spectrum_by_columns(active)

    def spectrum_by_columns(self, active: IntArray) -> OfColumns:
        """The same from Φ_Sᵀ Φ_S."""
        return OfColumns.of(self.gram(active), self.problem.projection[active], self.energy)

    def log_evidence(self, spectrum: Spectrum, k: int) -> FloatArray:
        """log p(set, c, t) for all c, with weights, noise and inclusion rate integrated out."""
        slabs = self.prior.slabs
        fit = self._log_fit(spectrum.rest(slabs), spectrum.log_volume(slabs))
        return self.prior.log_size(k - self.n_uncounted) + fit

    def _log_fit(self, rest: FloatArray, log_volume: FloatArray) -> FloatArray:
        """log p(t | set, c) up to a constant, from ρ and log |I + cΦΦᵀ|."""
        fit = -0.5 * self.n * np.log(np.maximum(rest, self.floor)) if self.learns_noise else -0.5 * rest
        return fit - 0.5 * log_volume

    def draw(self, active: IntArray, c: float, rng: np.random.Generator, n: int) -> list[Draw]:
        """Draw noise, weights and intercept of a set n times."""
        of_set = self._draw_by_rows if self.by_rows(len(active)) else self._draw_by_columns
        weights, noise = of_set(active, c, rng, n)
        spread = np.sqrt(noise / self.problem.n_weighted) if self.problem.flat_intercept else np.zeros_like(noise)
        level = spread * rng.standard_normal(noise.shape)
        return [Draw(active, *each, 1.0) for each in zip(weights, noise, level, strict=True)]

    def flips(self, spread: FloatArray) -> Any:
        """The state of a chain; `spread` says how eagerly each column is tried if it is unlikely to be in."""
        return make_flips(self.products, self.rows, self.problem.projection, self.log_prior, self.n, spread)

    def _draw_by_columns(
        self, active: IntArray, c: float, rng: np.random.Generator, n: int
    ) -> tuple[FloatArray, FloatArray]:
        """From the posterior's Cholesky factor; draws are on the first axis."""
        precision, projection = self.gram(active), self.problem.projection[active]
        precision.flat[:: len(active) + 1] += 1 / c
        factor = factorise(precision)
        mean = factor.solve(projection)
        noise = self._draw_noise(self.energy - (projection * mean).sum(axis=0), rng, n)
        white = _beside(rng.standard_normal((n, *mean.shape)))
        return mean + _spread(noise) * _apart(factor.colour(white), n, mean.shape), noise

    def _draw_by_rows(
        self, active: IntArray, c: float, rng: np.random.Generator, n: int
    ) -> tuple[FloatArray, FloatArray]:
        """Draws from the prior, corrected by what the rows say of them (Bhattacharya and others 2016)."""
        Phi, t = self.rows[:, active], self.problem.t
        factor = factorise(np.eye(len(Phi)) + c * (Phi @ Phi.T))
        noise = self._draw_noise((t * factor.solve(t)).sum(axis=0) + self.problem.rest + self.floor, rng, n)
        shape = len(active), *t.shape[1:]
        prior = _spread(c * noise) * rng.standard_normal((n, *shape))
        seen = _apart(Phi @ _beside(prior), n, t.shape) + _spread(noise) * rng.standard_normal((n, *t.shape))
        return prior + c * _apart(Phi.T @ factor.solve(_beside(t - seen)), n, shape), noise

    def _draw_noise(self, rest: FloatArray, rng: np.random.Generator, n: int) -> FloatArray:
        """n draws of the noise variance of each output, from its ρ."""
        shape = n, *np.shape(rest)
        if not self.learns_noise:
            return np.ones(shape)
        return np.asarray(np.maximum(rest, self.floor) / (2 * rng.gamma(0.5 * self.n, size=shape)))


def _spread(variance: FloatArray) -> FloatArray:
    """Standard deviations, with an axis for columns behind that of the draws."""
    return np.sqrt(variance)[:, None]


def _beside(draws: FloatArray) -> FloatArray:
    """Draws (and outputs) as columns of one matrix."""
    return np.moveaxis(draws, 0, -1).reshape(draws.shape[1], draws[:, :1].size if draws.size else len(draws))


def _apart(columns: FloatArray, n: int, shape: tuple[int, ...]) -> FloatArray:
    """The way back: n draws of this shape."""
    return np.moveaxis(columns.reshape(*shape, n), -1, 0)
