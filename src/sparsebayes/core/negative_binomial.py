"""Counts that vary more than Poisson's: the rate of each row is multiplied by a Gamma variable of mean one."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import betainc, gammaln

from sparsebayes.core.likelihoods import _NoBound
from sparsebayes.core.mixtures import LARGEST_COUNT
from sparsebayes.core.scales import NoiseRule
from sparsebayes.core.special import log_sigmoid, sigmoid
from sparsebayes.core.types import BoolArray, FloatArray, Scalar

SHAPES = (1e-2, 1e6)
"""Range of k: a rate that varies by a factor of e¹⁰ between rows, and a thousandth of a mean count in the variance."""

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(31)
"""Gauss-Hermite quadrature over a standard normal variable."""
WEIGHTS = WEIGHTS / WEIGHTS.sum()


@dataclass(frozen=True)
class NegativeBinomial(_NoBound):
    """Counts with mean exp(η + offset) and variance mean + mean²/k; k is learned. k → ∞ is Poisson's distribution."""

    offset: FloatArray | Scalar = 0.0
    shape: float = 1.0
    """k."""
    learns: bool = True

    def _log_odds(self, eta: FloatArray) -> FloatArray:
        """log mean/k: t successes come before k failures, with these odds of a success."""
        return np.asarray(eta + self.offset - np.log(self.shape))

    def log_density(self, t: FloatArray, eta: FloatArray) -> FloatArray:
        """t log p + k log(1 - p) + log of the binomial coefficient."""
        z, k = self._log_odds(eta), self.shape
        const = gammaln(t + k) - gammaln(k) - gammaln(t + 1)
        return np.asarray(t * log_sigmoid(z) + k * log_sigmoid(-z) + const)

    def derivatives(self, t: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """t - (t + k) p and (t + k) p (1 - p)."""
        p, q = sigmoid(self._log_odds(eta)), sigmoid(-self._log_odds(eta))
        return t * q - self.shape * p, (t + self.shape) * p * q

    def skew(self, t: FloatArray, eta: FloatArray) -> FloatArray:
        """(t + k) p (1 - p) (1 - 2p)."""
        p, q = sigmoid(self._log_odds(eta)), sigmoid(-self._log_odds(eta))
        return np.asarray((t + self.shape) * p * q * (q - p))

    def base_level(self, t: FloatArray, weight: FloatArray) -> float:
        """Log of events per exposure, near the best constant."""
        exposure = np.exp(np.broadcast_to(self.offset, t.shape))
        return float(np.log(weight @ t / (weight @ exposure)))

    def updated(
        self, t: FloatArray, weight: FloatArray, mean: FloatArray, variance: FloatArray, rule: NoiseRule
    ) -> Self:
        """k of largest likelihood at the mean of η, a one-dimensional search, to six digits (`xatol` is of log k)."""

        def loss(log_shape: float) -> float:
            return -float(weight @ replace(self, shape=np.exp(log_shape)).log_density(t, mean))

        best = minimize_scalar(loss, bounds=np.log(SHAPES), method="bounded", options={"xatol": 1e-6})
        return replace(self, shape=float(np.exp(best.x)))


def negative_binomial_quantile(level: float, m: FloatArray, v: FloatArray, shape: float) -> FloatArray:
    """Smallest integer y with P(count ≤ y) ≥ level, for rates exp η with η ~ N(m, v); ∞ beyond 2⁵³.

    Given η the distribution function is an incomplete Beta function; its mean over η is taken by quadrature.
    """
    p = shape / (shape + np.exp(m[:, None] + np.sqrt(v)[:, None] * NODES))

    def reached(y: FloatArray) -> BoolArray:
        return np.asarray(betainc(shape, y[:, None] + 1, p) @ WEIGHTS >= level)

    high = np.ones(len(m))
    while (short := ~reached(high)).any() and high.max() < LARGEST_COUNT:
        high = np.where(short, 2 * high, high)
    low = np.full(len(m), -1.0)  # not reached there
    for _ in range(int(np.log2(high.max())) + 2):
        middle = np.floor((low + high) / 2)
        there = reached(np.maximum(middle, 0.0)) & (middle >= 0)
        low, high = np.where(there, low, middle), np.where(there, middle, high)
    return np.where(high >= LARGEST_COUNT, np.inf, high)


def negative_binomial_interval(m: FloatArray, v: FloatArray, shape: float, coverage: float) -> FloatArray:
    """Central interval of new counts, both ends included, on the last axis."""
    ends = [negative_binomial_quantile(level, m, v, shape) for level in ((1 - coverage) / 2, (1 + coverage) / 2)]
    return np.stack(ends, axis=-1)
