"""The regression problem as every solver sees it: standardised rows and target, and what is believed beforehand."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sparsebayes.core.evidence import gaussian_fit, integral, log_hyper_prior, scale_term
from sparsebayes.core.linalg import factorise
from sparsebayes.core.posterior import gaussian_posterior
from sparsebayes.core.scales import NoiseRule, is_flat
from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.batch import WStep

NOISE_FLOOR = 1e-8
"""Smallest noise variance, as a fraction of the target's variance: on noise-free data σ² would run to 0."""
NOISE_START = 0.1
"""First noise variance, as a fraction of the target's variance,"""
BEGIN_NOISE = 0.01
"""or this one, where columns are free: with little noise at first, those that only pay together come in together."""


@dataclass(frozen=True)
class Noise:
    """The noise variance, as what one w-step hands to the next."""

    variance: float

    def keep(self, which: BoolArray) -> "Noise":
        """The noise stays when weights go."""
        return self


@dataclass
class GaussianProblem:
    """Rows and target in standard units (target variance one, columns of root mean square one).

    `n` counts the rows (by weight), less one when a flat intercept was integrated out; `b` has one entry per column,
    because a Gamma prior in the user's units has another rate in each column's units.
    """

    rows: DenseRows
    t: FloatArray
    n_weighted: float
    flat_intercept: bool
    price: float
    a: float
    b: FloatArray
    c: float
    d: float
    rest: float = 0.0
    """Squared length of the part of the target that no weight can reach, where `compressed` has taken it out."""
    rate: float = 0.0
    """λ of a Laplace prior on the weights, scaled by the noise (BLS; a = b = 0 then); 0 is ARD."""

    @property
    def n(self) -> float:
        """Degrees of freedom that the weights and the noise share."""
        return self.n_weighted - self.flat_intercept

    @cached_property
    def projection(self) -> FloatArray:
        """Φᵀt."""
        return self.rows.project(self.t)

    @cached_property
    def energy(self) -> float:
        """‖t‖²."""
        return float(self.t @ self.t) + self.rest

    @property
    def n_columns(self) -> int:
        """M, the number of candidate features."""
        return self.rows.n_columns

    @cached_property
    def column_energy(self) -> FloatArray:
        """diag(ΦᵀΦ): for standardised columns the weighted row count, or 0 for a constant one."""
        return self.rows.column_square()

    def residual(self, active: IntArray | list[int], mean: FloatArray, gram: FloatArray) -> float:
        """‖t - Φμ‖²: the expanded square or, where that has lost its digits (nearly noise-free data), the rows."""
        expanded = float(self.energy - mean @ (2 * self.projection[active] - gram @ mean))
        return expanded if expanded > 1e-6 * self.energy else self.residual_by_rows(active, mean)

    def residual_by_rows(self, active: IntArray | list[int], mean: FloatArray) -> float:
        """‖t - Φμ‖² without cancellation."""
        return self.distance(self.rows.columns(np.array(active, dtype=np.intp)) @ mean)

    def distance(self, eta: FloatArray) -> float:
        """‖t - η‖²."""
        return float(((self.t - eta) ** 2).sum()) + self.rest

    def compressed(self) -> "GaussianProblem":
        """The same problem on as many rows as columns: ΦᵀΦ = RᵀR and Φᵀt = Rᵀt', so R and t' say all that Φ and t do.

        Left as it is when there is little to win, when the columns are dependent, or when the target is so nearly
        reproduced that the rest, a difference of large numbers, would have lost its digits.
        """
        if self.rows.n_rows < 2 * self.n_columns or not self.column_energy.all():
            return self
        factor = factorise(self.rows.gram())
        t = factor.half_solve(self.projection)
        rest = self.energy - float(t @ t)
        if factor.jitter > 0 or rest < 1e-6 * self.energy:
            return self
        return replace(self, rows=self.rows.compressed(factor.lower.T), t=t, rest=rest)

    @cached_property
    def is_scale_free(self) -> bool:
        """Whether neither a price nor a prior of the precisions minds one factor on σ² and all prior variances.

        A Laplace prior, whose scale is that of the noise, does not.
        """
        return bool(self.price == 0) and is_flat(self.a, self.b)

    @property
    def batch_start(self) -> tuple[float | None, float]:
        """Where all weights at once begin: their precision, if it is not to be the usual one, and the noise."""
        return None, NOISE_START

    @property
    def least_alpha(self) -> float:
        """None: the target bounds the weights."""
        return 0.0

    def total_price(self, n_kept: int) -> float:
        """Nats asked of a model with so many features: price × k × n/(n - k).

        The factor is what learning the noise from the same rows makes of the tail of the null distribution: the
        residual of k useless features falls like a Beta variable with n - k degrees of freedom, not n. It is near one
        for few features, and keeps a model from paying by reproducing the target (docs/min_gain.md).
        """
        return self.price * n_kept * self.n / max(self.n - n_kept, 1.0)

    def scale_term(self, active: IntArray | list[int], alpha: FloatArray) -> float:
        """½ log|A| and the log hyper-prior of the precisions."""
        return scale_term(alpha, self.a, self.b[active])

    def w_step(self, noise_rule: NoiseRule) -> Callable[[DenseRows, FloatArray, Noise], WStep[Noise]]:
        """Exact posterior at the carried noise variance; the rule says with which one to go on."""

        def step(rows: DenseRows, alpha: FloatArray, carry: Noise) -> WStep[Noise]:
            noise = carry.variance
            posterior = gaussian_posterior(rows, 1 / noise, self.t / noise, alpha)
            residual = self.distance(rows.predict(posterior.mean))
            value = integral(self.fit(residual, noise), posterior.mean, alpha, posterior.logdet)
            value += float(log_hyper_prior(1 / noise, self.c, self.d))
            terms = (residual, noise, float(posterior.gamma.sum()), self.n, self.c, self.d)
            return WStep(posterior, value, Noise(max(noise_rule(*terms), NOISE_FLOOR)))

        return step

    def fit(self, residual: float, noise: float) -> float:
        """Log likelihood at the posterior mean, with a flat intercept integrated out."""
        return gaussian_fit(residual, noise, self.n_weighted, self.flat_intercept)


@dataclass(frozen=True)
class Solution:
    """A model: which columns, their precisions, and the noise."""

    active: IntArray
    alpha: FloatArray
    noise: float
