"""Local Gaussian views of a likelihood: log p(tₙ | ηₙ) ≈ -½ bₙ ηₙ² + hₙ ηₙ + cₙ, one site per row.

A likelihood together with its approximation is one function that hands out sites. A row's weight counts the row that
many times, so it multiplies all three numbers.
"""

from typing import NamedTuple

import numpy as np

from sparsebayes.core.special import jj_lambda, log_sigmoid, sigmoid
from sparsebayes.core.types import FloatArray, Scalar


class Sites(NamedTuple):
    """The three numbers of each row's view: b (may be shared by all rows), h and c."""

    precision: FloatArray | Scalar
    shift: FloatArray
    const: FloatArray

    def value(self, eta: FloatArray) -> float:
        """Σₙ -½ bₙ ηₙ² + hₙ ηₙ + cₙ."""
        return float(np.sum(-0.5 * self.precision * eta**2 + self.shift * eta + self.const))


def bernoulli_log_likelihood(t: FloatArray, eta: FloatArray) -> FloatArray:
    """log p(tₙ | ηₙ) for t in {0, 1}: t η - log(1 + e^η)."""
    return np.asarray(t * eta + log_sigmoid(-eta))


def gaussian(t: FloatArray, noise_variance: Scalar, weight: FloatArray | Scalar = 1.0) -> Sites:
    """Exact view of Gaussian noise: b = 1/σ², h = t/σ²."""
    const = -0.5 * np.log(2 * np.pi * noise_variance) - t**2 / (2 * noise_variance)
    return Sites(weight / noise_variance, weight * t / noise_variance, weight * const)


def laplace(t: FloatArray, eta: FloatArray, weight: FloatArray | Scalar = 1.0) -> Sites:
    """Second-order expansion of the Bernoulli likelihood at η: the Newton step of the Laplace method."""
    up, down = sigmoid(eta), sigmoid(-eta)
    return _expansion(t, eta, up, down, up * down, weight)


def bohning(t: FloatArray, psi: FloatArray, weight: FloatArray | Scalar = 1.0) -> Sites:
    """Böhning's lower bound on the Bernoulli likelihood: expansion at ψ with the largest curvature, ¼."""
    return _expansion(t, psi, sigmoid(psi), sigmoid(-psi), np.full_like(psi, 0.25), weight)


def jaakkola(t: FloatArray, xi: FloatArray, weight: FloatArray | Scalar = 1.0) -> Sites:
    """Jaakkola-Jordan lower bound on the Bernoulli likelihood, tight at η = ±ξ."""
    lam = jj_lambda(xi)
    const = log_sigmoid(xi) - xi / 2 + lam * xi**2
    return Sites(weight * 2 * lam, weight * (t - 0.5), weight * const)


def truncation(w: FloatArray, steepness: Scalar) -> Sites:
    """Second-order expansion at w of log 2σ(c w), which turns a Gaussian prior into a smoothly truncated one.

    One site per weight rather than per row. σ(c w) + σ(-c w) = 1, so that the factor 2 is the exact normaliser of a
    zero-mean Gaussian times σ(c w), at any steepness c. The slope is c(1 - σ(c w)), the curvature c²σ(c w)(1 - σ(c w)).
    """
    sites = laplace(np.ones_like(w), steepness * w)
    return Sites(steepness**2 * sites.precision, steepness * sites.shift, sites.const + np.log(2))


def _expansion(
    t: FloatArray,
    eta: FloatArray,
    up: FloatArray,
    down: FloatArray,
    curvature: FloatArray,
    weight: FloatArray | Scalar,
) -> Sites:
    """The parabola with this curvature that touches log p(t | ·) at η; `up` and `down` are σ(η) and σ(-η)."""
    slope = t * down - (1 - t) * up  # t - σ(η), without cancellation at saturated rows
    shift = curvature * eta + slope
    const = bernoulli_log_likelihood(t, eta) - shift * eta + 0.5 * curvature * eta**2
    return Sites(weight * curvature, weight * shift, weight * const)
