"""Likelihoods: how one observation t depends on its linear predictor η, and their local Gaussian approximations.

A likelihood is one class. The engine asks it for log p(t | η), for the first derivatives, for the level of η when there
are no weights, and, where a bound exists, for that bound. Everything else follows: `expansion` is the Gaussian
approximation at a point (Laplace's method), `Likelihood.bound` the Gaussian lower bound (variational inference).

Both are *sites*, log p(tₙ | ηₙ) ≈ -½ bₙ ηₙ² + hₙ ηₙ + cₙ, one per row. A row of weight v counts v times, so its weight
multiplies all three numbers. See docs/mathematics.md, section 1.
"""

from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, gammaln, xlogy

from sparsebayes.core.polya_gamma import polya_gamma
from sparsebayes.core.scales import NoiseRule
from sparsebayes.core.special import jj_lambda, log_sigmoid, sigmoid
from sparsebayes.core.types import FloatArray, Scalar


class Sites(NamedTuple):
    """Precision b (may be shared by all rows), shift h and constant c of every row's Gaussian approximation."""

    precision: FloatArray | Scalar
    shift: FloatArray
    const: FloatArray

    def value(self, eta: FloatArray) -> float:
        """Σₙ -½ bₙ ηₙ² + hₙ ηₙ + cₙ."""
        return float(np.sum((self.shift - 0.5 * self.precision * eta) * eta + self.const))


class Likelihood(Protocol):
    """The methods of a likelihood that the engine needs; `t` and `eta` have one entry per row."""

    @property
    def learns(self) -> bool:
        """Whether it has parameters of its own that are learned, such as a noise variance."""

    def log_density(self, t: FloatArray, eta: FloatArray) -> FloatArray:
        """log p(t | η)."""

    def derivatives(self, t: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slope ∂ log p/∂η and curvature -∂² log p/∂η², which must not be negative."""

    def skew(self, t: FloatArray, eta: FloatArray) -> FloatArray:
        """Derivative of the curvature, -∂³ log p/∂η³; the gradient of Laplace's evidence needs it."""

    def base_level(self, t: FloatArray, weight: FloatArray) -> float:
        """The intercept of the model without weights: η of largest likelihood."""

    def bound(self, t: FloatArray, contact: FloatArray) -> Sites:
        """Gaussian lower bound of log p(t | ·) that touches where |η - centre| equals `contact`."""

    def centre(self, t: FloatArray) -> FloatArray | Scalar:
        """The point about which the bound is symmetric."""

    def first_contact(self, t: FloatArray, level: float) -> FloatArray:
        """Contact points to start with, when η is `level` in every row."""

    def updated(
        self, t: FloatArray, weight: FloatArray, mean: FloatArray, variance: FloatArray, rule: NoiseRule
    ) -> Self:
        """The likelihood with its own parameters re-estimated, given mean and variance of every row's η."""


@runtime_checkable
class MixedLikelihood(Protocol):
    """A likelihood that is a mixture of Gaussian ones: given its sites, drawn at random, it is a Gaussian in η."""

    def draw_sites(self, t: FloatArray, weight: FloatArray, eta: FloatArray, rng: np.random.Generator) -> Sites:
        """A draw of the sites given η."""


def expansion(
    likelihood: Likelihood,
    t: FloatArray,
    eta: FloatArray,
    weight: FloatArray | Scalar = 1.0,
    log_density: FloatArray | None = None,
) -> Sites:
    """The parabola that agrees with log p(t | ·) at η in value, slope and curvature: Laplace's method.

    `log_density` is log p(t | η) where that is known already.
    """
    slope, curvature = likelihood.derivatives(t, eta)
    shift = curvature * eta + slope
    value = likelihood.log_density(t, eta) if log_density is None else log_density
    const = value - (shift - 0.5 * curvature * eta) * eta
    return Sites(weight * curvature, weight * shift, weight * const)


def weighted(sites: Sites, weight: FloatArray | Scalar) -> Sites:
    """The sites of rows that count `weight` times."""
    return Sites(weight * sites.precision, weight * sites.shift, weight * sites.const)


class _Fixed:
    """A likelihood without parameters of its own."""

    @property
    def learns(self) -> bool:
        """Nothing is learned."""
        return False

    def updated(
        self, t: FloatArray, weight: FloatArray, mean: FloatArray, variance: FloatArray, rule: NoiseRule
    ) -> Self:
        """The same."""
        return self


class _NoBound:
    """A likelihood for Laplace's method only."""

    def bound(self, t: FloatArray, contact: FloatArray) -> Sites:
        """There is none."""
        raise NotImplementedError(f"{type(self).__name__} has no Gaussian lower bound: use Laplace's method")

    def centre(self, t: FloatArray) -> FloatArray | Scalar:
        """Zero: without a bound it is not used."""
        return 0.0

    def first_contact(self, t: FloatArray, level: float) -> FloatArray:
        """There is none, because there is no bound."""
        raise NotImplementedError(f"{type(self).__name__} has no Gaussian lower bound: use Laplace's method")


class _Location:
    """A likelihood of t - η that is largest at η = t."""

    def centre(self, t: FloatArray) -> FloatArray | Scalar:
        """The observation."""
        return t

    def first_contact(self, t: FloatArray, level: float) -> FloatArray:
        """The distance from the level."""
        return np.abs(t - level)


@dataclass(frozen=True)
class Gaussian(_Location):
    """Gaussian noise: p(t | η) = N(t; η, σ²), with a Gamma(c, d) hyper-prior on 1/σ². Expansion and bound are exact."""

    noise: float = 1.0
    c: float = 0.0
    d: float = 0.0
    learns: bool = True

    def log_density(self, t: FloatArray, eta: FloatArray) -> FloatArray:
        """-½ log 2πσ² - (t - η)²/2σ²."""
        return np.asarray(-0.5 * np.log(2 * np.pi * self.noise) - (t - eta) ** 2 / (2 * self.noise))

    def derivatives(self, t: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(t - η)/σ² and 1/σ²."""
        return (t - eta) / self.noise, np.full_like(eta, 1 / self.noise)

    def skew(self, t: FloatArray, eta: FloatArray) -> FloatArray:
        """Zero."""
        return np.zeros_like(eta)

    def base_level(self, t: FloatArray, weight: FloatArray) -> float:
        """The mean."""
        return float(weight @ t / weight.sum())

    def bound(self, t: FloatArray, contact: FloatArray) -> Sites:
        """The log density itself."""
        return expansion(self, t, np.zeros_like(t))

    def updated(
        self, t: FloatArray, weight: FloatArray, mean: FloatArray, variance: FloatArray, rule: NoiseRule
    ) -> Self:
        """σ² by the rule; Σ weight × variance of η is σ² Σγ."""
        residual, spread = float(weight @ (t - mean) ** 2), float(weight @ variance)
        n = float(weight.sum())
        return replace(self, noise=rule(residual, self.noise, spread / self.noise, n, self.c, self.d))


@dataclass(frozen=True)
class Bernoulli(_Fixed):
    """Two classes t in {0, 1}: p(1 | η) = σ(η), the logistic function. Bound: Jaakkola & Jordan (2000)."""

    def draw_sites(self, t: FloatArray, weight: FloatArray, eta: FloatArray, rng: np.random.Generator) -> Sites:
        """Pólya-Gamma precisions: given them the likelihood is Gaussian in η."""
        return Sites(polya_gamma(weight, eta, rng), weight * (t - 0.5), np.zeros_like(eta))

    def log_density(self, t: FloatArray, eta: FloatArray) -> FloatArray:
        """t η - log(1 + e^η)."""
        return np.asarray(t * eta + log_sigmoid(-eta))

    def derivatives(self, t: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """t - σ(η), as the probability of the other class: nothing cancels at saturated rows; and σ(η) σ(-η)."""
        small = np.exp(-np.abs(eta))
        large = 1 / (1 + small)  # σ(|η|)
        small *= large  # σ(-|η|)
        other = np.where((eta > 0) == (t > 0.5), small, large)
        return np.copysign(other, t - 0.5), small * large

    def skew(self, t: FloatArray, eta: FloatArray) -> FloatArray:
        """σ(η) σ(-η) (σ(-η) - σ(η))."""
        up, down = sigmoid(eta), sigmoid(-eta)
        return np.asarray(up * down * (down - up))

    def base_level(self, t: FloatArray, weight: FloatArray) -> float:
        """Log-odds of class 1."""
        share = float(weight @ t / weight.sum())
        return float(np.log(share / (1 - share)))

    def bound(self, t: FloatArray, contact: FloatArray) -> Sites:
        """Tight at η = ±ξ: b = 2λ(ξ), h = t - ½."""
        lam = jj_lambda(contact)
        const = log_sigmoid(contact) - contact / 2 + lam * contact**2
        return Sites(2 * lam, t - 0.5, np.asarray(const))

    def centre(self, t: FloatArray) -> FloatArray | Scalar:
        """Zero."""
        return 0.0

    def first_contact(self, t: FloatArray, level: float) -> FloatArray:
        """ξ = 2, as in the SLR toolbox."""
        return np.full(len(t), 2.0)


@dataclass(frozen=True)
class Poisson(_Fixed, _NoBound):
    """Counts t = 0, 1, … with rate exp(η + offset); the offset is the logarithm of the exposure."""

    offset: FloatArray | Scalar = 0.0

    def log_density(self, t: FloatArray, eta: FloatArray) -> FloatArray:
        """t (η + offset) - exp(η + offset) - log t!."""
        eta = eta + self.offset
        return np.asarray(t * eta - self._rate(eta) - gammaln(t + 1))

    def derivatives(self, t: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """t - rate and the rate."""
        rate = self._rate(eta + self.offset)
        return t - rate, rate

    def skew(self, t: FloatArray, eta: FloatArray) -> FloatArray:
        """The rate."""
        return self._rate(eta + self.offset)

    def base_level(self, t: FloatArray, weight: FloatArray) -> float:
        """Log of events per exposure."""
        exposure = np.exp(np.broadcast_to(self.offset, t.shape))
        return float(np.log(weight @ t / (weight @ exposure)))

    @staticmethod
    def _rate(eta: FloatArray) -> FloatArray:
        """exp η; Newton's line search may try predictors whose exponential overflows, and has to hear of it as ∞."""
        with np.errstate(over="ignore"):
            return np.exp(eta)


@dataclass(frozen=True)
class StudentT(_Location):
    """Noise with heavy tails: (t - η)/σ has Student's distribution with ν degrees of freedom.

    The log density is convex in z = (t - η)², so its tangent in z is a Gaussian lower bound. It is the bound of the
    scale mixture N(t; η, σ²/u), u ~ Gamma(ν/2, ν/2). σ² is re-estimated by EM for that mixture, ν by the density
    itself (ECME, Liu & Rubin 1995), which converges much faster. The density is not log-concave in η: `derivatives` has
    the bound's curvature, that of an EM step.
    """

    noise: float = 1.0
    freedom: float = 4.0
    learns_freedom: bool = False
    learns: bool = True
    min_noise: float = 0.0
    """Smallest σ²: where the model reproduces more than half of the rows, the density has no maximum."""
    range: tuple[float, float] = field(default=(1.0, 100.0), repr=False)
    """Limits of a learned ν: below 1 there is no mean, above 100 it is practically Gaussian."""

    def log_density(self, t: FloatArray, eta: FloatArray) -> FloatArray:
        """Log Γ((ν+1)/2) - log Γ(ν/2) - ½ log πνσ² - ½(ν + 1) log(1 + (t - η)²/νσ²)."""
        return self._log_density_at((t - eta) ** 2)

    def _log_density_at(self, square: FloatArray) -> FloatArray:
        nu = self.freedom
        const = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(np.pi * nu * self.noise)
        return np.asarray(const - 0.5 * (nu + 1) * np.log1p(square / (nu * self.noise)))

    def mixing(self, square: FloatArray) -> FloatArray:
        """E[u]: (ν + 1)/(ν + z/σ²), the weight that a row keeps; small for outliers."""
        return np.asarray((self.freedom + 1) / (self.freedom + square / self.noise))

    def derivatives(self, t: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """u (t - η)/σ² and u/σ²."""
        precision = self.mixing((t - eta) ** 2) / self.noise
        return precision * (t - eta), precision

    def skew(self, t: FloatArray, eta: FloatArray) -> FloatArray:
        """Derivative of u/σ²."""
        square = (t - eta) ** 2
        return np.asarray(2 * self.mixing(square) * (t - eta) / (self.noise * (self.freedom * self.noise + square)))

    def base_level(self, t: FloatArray, weight: FloatArray) -> float:
        """The weighted median: robust, and near the centre of the distribution."""
        order = np.argsort(t)
        below = np.cumsum(weight[order])
        return float(t[order][np.searchsorted(below, below[-1] / 2)])

    def bound(self, t: FloatArray, contact: FloatArray) -> Sites:
        """Tangent in (t - η)² at ξ²."""
        precision = self.mixing(contact**2) / self.noise
        const = self._log_density_at(contact**2) + 0.5 * precision * contact**2
        return Sites(precision, precision * t, const - 0.5 * precision * t**2)

    def updated(
        self, t: FloatArray, weight: FloatArray, mean: FloatArray, variance: FloatArray, rule: NoiseRule
    ) -> Self:
        """σ² by the rule on rows weighted by u; then, if asked for, ν of largest density."""
        square = (t - mean) ** 2 + variance
        u, n = weight * self.mixing(square), float(weight.sum())
        noise = rule(float(u @ (t - mean) ** 2), self.noise, float(u @ variance) / self.noise, n, 0.0, 0.0)
        return replace(self, noise=max(noise, self.min_noise))._with_shape(square, weight)

    def _with_shape(self, square: FloatArray, weight: FloatArray) -> Self:
        """With the best parameters but σ², at these expected squared residuals."""
        return replace(self, freedom=self._best_freedom(square, weight)) if self.learns_freedom else self

    def draw_precisions(self, square: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draws of each row's u ~ Gamma((ν + 1)/2, (ν + z/σ²)/2) at these squared residuals."""
        return rng.gamma((self.freedom + 1) / 2, 2 / (self.freedom + square / self.noise))

    def _best_freedom(self, square: FloatArray, weight: FloatArray) -> float:
        """ν of largest Σ log density at (t - η)² = `square`, for the present σ²: a one-dimensional root."""
        ratio = square / self.noise

        def slope(log_nu: float) -> float:
            nu = np.exp(log_nu)
            rows = (nu + 1) * ratio / (nu * (nu + ratio)) - np.log1p(ratio / nu)
            common = digamma((nu + 1) / 2) - digamma(nu / 2) - 1 / nu
            return 0.5 * float(common + weight @ rows / weight.sum())

        low, high = np.log(self.range)
        if slope(low) <= 0:
            return self.range[0]
        if slope(high) >= 0:
            return self.range[1]
        return float(np.exp(brentq(slope, low, high)))


def poisson_deviance(t: FloatArray, rate: FloatArray) -> FloatArray:
    """Twice the log-likelihood ratio of the saturated model: 2[t log(t/rate) - t + rate]."""
    return np.asarray(2 * (xlogy(t, t) - xlogy(t, rate) - t + rate))


LIKELIHOODS = {"gaussian": Gaussian, "bernoulli": Bernoulli, "poisson": Poisson, "student": StudentT}
"""Every likelihood by name; tests walk this table."""
