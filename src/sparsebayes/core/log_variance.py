"""The logarithm of a noise variance as a linear predictor: the likelihood of squared residuals."""

from dataclasses import dataclass

import numpy as np

from sparsebayes.core.likelihoods import _Fixed, _NoBound
from sparsebayes.core.types import FloatArray


@dataclass(frozen=True)
class LogVariance(_Fixed, _NoBound):
    """Squared residuals t of noise with variance exp(η): the density N(√t; 0, exp η) of the residuals."""

    def log_density(self, t: FloatArray, eta: FloatArray) -> FloatArray:
        """-½ log 2π - ½η - ½t exp(-η)."""
        return np.asarray(-0.5 * (np.log(2 * np.pi) + eta) - self._half(t, eta))

    def derivatives(self, t: FloatArray, eta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """½t exp(-η) - ½ and ½t exp(-η)."""
        half = self._half(t, eta)
        return half - 0.5, half

    def skew(self, t: FloatArray, eta: FloatArray) -> FloatArray:
        """-½t exp(-η)."""
        return -self._half(t, eta)

    def base_level(self, t: FloatArray, weight: FloatArray) -> float:
        """Log of the mean square."""
        return float(np.log(weight @ t / weight.sum()))

    @staticmethod
    def _half(t: FloatArray, eta: FloatArray) -> FloatArray:
        """½t exp(-η); Newton's line search may try predictors whose exponential overflows, and has to hear of it."""
        with np.errstate(over="ignore"):
            return np.asarray(0.5 * t * np.exp(-eta))
