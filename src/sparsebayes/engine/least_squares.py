"""Weighted least squares: a problem under Gaussian sites, the only kind of problem that the Gaussian search knows.

For Gaussian noise it is the problem itself. For any other likelihood it is the problem under the sites of the present
model, with the noise variance fixed at one.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sparsebayes.core.evidence import gaussian_fit, integral, log_hyper_prior, noise_gain
from sparsebayes.core.linalg import factorise
from sparsebayes.core.posterior import GaussianPosterior, gaussian_posterior
from sparsebayes.core.prices import FREE, Marginal, Price, charge, is_free, total
from sparsebayes.core.priors import FLAT, Prior
from sparsebayes.core.scales import NoiseRule, noise_mackay
from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.data.design import Columns, Design

if TYPE_CHECKING:
    from sparsebayes.engine.ascent import Snapshot
    from sparsebayes.engine.state import AnyState

NOISE_FLOOR = 1e-8
"""Smallest σ²/var(t): on noise-free data σ² would run to 0. A residual of 1e-4 standard deviations is left."""
INITIAL_NOISE = 0.1
"""Initial σ²/var(t) (Tipping 2001)."""
LOW_NOISE = 0.01
"""Lower initial σ²/var(t) for free columns, so that columns which only pay together can enter together. Half as much
ends at the same evidence but for its scatter, twice loses 1.4 ± 0.5 nats on Friedman #1 (experiments/constants.py)."""
LOST_DIGITS = 1e-6
"""A difference below this share of its terms has lost six of sixteen digits, and is computed another way."""


@dataclass(frozen=True)
class Solution:
    """A Gaussian model: which columns, their precisions, and the noise."""

    active: IntArray
    alpha: FloatArray
    noise: float


def empty(noise: float) -> Solution:
    """The model without any weight."""
    return Solution(np.empty(0, dtype=np.intp), np.empty(0), noise)


@dataclass(frozen=True)
class Noise:
    """The noise variance, which one w-step carries over to the next."""

    variance: float

    def keep(self, which: BoolArray) -> "Noise":
        """The noise stays when weights go."""
        return self


@dataclass(frozen=True)
class NoiseStep:
    """Posterior at a noise variance, its log evidence less the prior's own term, and the next noise."""

    posterior: GaussianPosterior
    value: float
    carry: Noise


@dataclass(frozen=True, kw_only=True)
class LeastSquares:
    """Rows and target multiplied by √weight, in standard units (target variance one, columns of mean square one)."""

    design: Design
    t: FloatArray
    n_weighted: float
    """Rows, counted by weight."""
    flat_intercept: bool
    """Whether a flat intercept was eliminated by centring."""
    prior: Prior = FLAT
    price: Price = FREE
    c: float = 0.0
    d: float = 0.0
    """Gamma(c, d) hyper-prior on the noise precision."""
    rest: float = 0.0
    """Squared length of the part of the target outside the span of the columns, if `compressed` has removed it."""
    known_projection: FloatArray | None = None
    """Φᵀt where it is known: for several targets it is one product."""
    start_alpha: float | None = None
    """Precision with which a batch solver starts; None: the prior gives the predictor variance one."""
    start_noise: float = INITIAL_NOISE
    """Noise with which a batch solver starts."""
    known_noise: float | None = None
    """The noise variance where it is known; None: it is learned. The search alone takes it into account."""

    @property
    def n(self) -> float:
        """Degrees of freedom that the weights and the noise share."""
        return self.n_weighted - self.flat_intercept

    @property
    def n_columns(self) -> int:
        """M, the number of candidate columns."""
        return self.design.n_columns

    @cached_property
    def projection(self) -> FloatArray:
        """Φᵀt."""
        return self.design.project(self.t) if self.known_projection is None else self.known_projection

    @cached_property
    def energy(self) -> float:
        """‖t‖²."""
        return float(self.t @ self.t) + self.rest

    @cached_property
    def column_energy(self) -> FloatArray:
        """diag(ΦᵀΦ): for standardised columns the weighted row count, or 0 for a constant one."""
        return self.design.column_square()

    @cached_property
    def is_scale_free(self) -> bool:
        """Whether neither price nor prior changes when σ² and all prior variances are multiplied by one factor."""
        return is_free(self.price) and self.prior.is_scale_free and self.known_noise is None

    @property
    def first_noise(self) -> float:
        """Noise with which a search from nothing starts."""
        return INITIAL_NOISE if self.known_noise is None else self.known_noise

    def marginal_price(self, k: int) -> Marginal:
        """The marginal price in a model of k units, where all have one price; each is computed once."""
        known = self._marginals.get(k)
        if known is None:
            totals = (self._total_at(max(k - 1, 0)), self._total_at(k), self._total_at(k + 1))
            known = self._marginals[k] = Marginal.between(charge(self.price, range(k)), *totals)
        return known

    @cached_property
    def _marginals(self) -> dict[int, Marginal]:
        """By the number of units, as far as they were asked for. A cached function could not be sent to a worker."""
        return {}

    def _total_at(self, k: int) -> tuple[float, float]:
        """Factor and base of the price of k units, which the marginal prices of three models need."""
        known = self._totals.get(k)
        if known is None:
            known = self._totals[k] = self.price.factor(k), self.price.base(k)
        return known

    @cached_property
    def _totals(self) -> dict[int, tuple[float, float]]:
        return {}

    def own_products(self, units: IntArray) -> FloatArray:
        """Φ_uᵀΦ_u of units of one size, a row of columns for each; computed once."""
        key = units.shape[1], len(units), int(units[0, 0])
        if key not in self._own_products:
            columns = self.design.columns(units.ravel()).reshape(-1, *units.shape)
            self._own_products[key] = np.einsum("nui,nuj->uij", columns, columns, optimize=True)
        return self._own_products[key]

    @cached_property
    def _own_products(self) -> dict[tuple[int, int, int], FloatArray]:
        """By the size of the units, their number and their first column, which tell the units of one prior apart."""
        return {}

    def total_price(self, active: IntArray | list[int]) -> float:
        """The price, in nats, of a model that keeps these columns."""
        return total(self.price, self.prior.units(active))

    def residual(self, active: IntArray | list[int], mean: FloatArray, gram: FloatArray) -> float:
        """‖t - Φμ‖²: the expanded square or, where that has lost its digits (nearly noise-free data), the rows."""
        expanded = float(self.energy - mean @ (2 * self.projection[active] - gram @ mean))
        return expanded if expanded > LOST_DIGITS * self.energy else self.residual_by_rows(active, mean)

    def residual_by_rows(self, active: IntArray | list[int], mean: FloatArray) -> float:
        """‖t - Φμ‖² without cancellation."""
        return self.distance(self.design.columns(np.array(active, dtype=np.intp)) @ mean)

    def distance(self, eta: FloatArray) -> float:
        """‖t - η‖²."""
        return float(((self.t - eta) ** 2).sum()) + self.rest

    def fit(self, residual: float, noise: float) -> float:
        """Log likelihood at the posterior mean, with a flat intercept integrated out."""
        return gaussian_fit(residual, noise, self.n_weighted, self.flat_intercept)

    def compressed(self) -> "LeastSquares":
        """The same problem on as many rows as columns: ΦᵀΦ = RᵀR and Φᵀt = Rᵀt', so R and t' say all that Φ and t do.

        Left as it is when there is little to win (fewer than two rows for each column), when the columns are dependent,
        or when the target is so nearly reproduced that the rest, a difference of large numbers, would have lost its
        digits.
        """
        if self.design.n_rows < 2 * self.n_columns or not self.column_energy.all():
            return self
        factor = factorise(self.design.gram())
        t = factor.half_solve(self.projection)
        rest = self.energy - float(t @ t)
        if factor.jitter > 0 or rest < LOST_DIGITS * self.energy:
            return self
        return replace(self, design=self.design.compressed(factor.lower.T), t=t, rest=rest, known_projection=None)

    def noise_step(self, design: Columns, alpha: FloatArray, noise: float, rule: NoiseRule) -> NoiseStep:
        """Exact posterior at a noise variance, and the noise variance that the rule makes of it."""
        posterior = gaussian_posterior(design, 1 / noise, self.t / noise, alpha)
        residual = self.distance(design.predict(posterior.mean))
        value = integral(self.fit(residual, noise), posterior.mean, alpha, posterior.logdet)
        value += float(log_hyper_prior(1 / noise, self.c, self.d))
        new = rule(residual, noise, float(posterior.gamma.sum()), self.n, self.c, self.d)
        return NoiseStep(posterior, value, Noise(max(new, NOISE_FLOOR)))

    def noise_terms(self, model: "AnyState | Snapshot") -> tuple[float, float, float, float, float, float]:
        """What the noise rules ask for: ‖t - Φμ‖², σ², Σγ, N, c and d.

        At given α a Laplace prior's part, -½ (λ/σ²) Σ1/α, acts on the noise like a larger d.
        """
        rate = self.prior.rules.rate if self.prior.rules is not None else 0.0
        d = self.d + 0.5 * rate * model.variance_sum if rate else self.d
        return model.residual, model.noise, model.gamma_sum, self.n, self.c, d

    def next_noise(self, model: "AnyState | Snapshot") -> float:
        """σ² by MacKay's rule, kept above the floor; or the known one."""
        if self.known_noise is not None:
            return self.known_noise
        return max(noise_mackay(*self.noise_terms(model)), NOISE_FLOOR)

    def noise_left(self, model: "AnyState | Snapshot") -> float:
        """Nats that the best noise variance would gain; none if it is known or would go below its floor."""
        if self.known_noise is not None:
            return 0.0
        at_floor = model.noise <= NOISE_FLOOR and self.next_noise(model) <= NOISE_FLOOR
        return 0.0 if at_floor else noise_gain(*self.noise_terms(model))
