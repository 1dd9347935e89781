"""Noise with gross errors: each row may have a shift of its own, which is integrated out.

t = η + ε + zδ with ε ~ N(0, σ²), z = 1 with probability π and δ ~ N(0, (K - 1)σ²): a mixture of two normal densities,
of variances σ² and Kσ². Like Student's its log density is convex in (t - η)², so that its tangent is a Gaussian lower
bound.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import expit

from sparsebayes.core.likelihoods import StudentT
from sparsebayes.core.types import FloatArray

LEAST_SCALE = 16.0
"""Smallest K: a shift has at least four standard deviations of the noise. Smaller ones are no gross errors; without a
bound the two parts would share the rows of clean data between them."""
SHARES = (1e-3, 0.5)
"""Range of π: fewer than one row in a thousand cannot be learned from, and most rows must be right."""


@dataclass(frozen=True)
class Contaminated(StudentT):
    """A share of the rows has noise of K times the variance. (It inherits the form of the bound from `StudentT`.)"""

    share: float = 0.1
    """π; the first guess of a fit is that one row in ten is wrong."""
    scale: float = 100.0
    """K; the first guess of a fit is that wrong rows have ten times the standard deviation of the others."""

    def _log_density_at(self, square: FloatArray) -> FloatArray:
        ratio = square / self.noise
        right = np.log1p(-self.share) - 0.5 * ratio
        wrong = np.log(self.share) - 0.5 * (np.log(self.scale) + ratio / self.scale)
        return np.asarray(np.logaddexp(right, wrong) - 0.5 * np.log(2 * np.pi * self.noise))

    def outlier_probability(self, square: FloatArray) -> FloatArray:
        """P(z = 1) of rows with these squared residuals."""
        prior = np.log(self.share) - np.log1p(-self.share) - 0.5 * np.log(self.scale)
        return np.asarray(expit(prior + 0.5 * (1 - 1 / self.scale) * square / self.noise))

    def mixing(self, square: FloatArray) -> FloatArray:
        """Expected factor of a row's precision: 1 where it is right, 1/K where it is wrong."""
        return 1 - (1 - 1 / self.scale) * self.outlier_probability(square)

    def skew(self, t: FloatArray, eta: FloatArray) -> FloatArray:
        """Derivative of u/σ²: p(1 - p)(1 - 1/K)²(t - η)/σ⁴."""
        p = self.outlier_probability((t - eta) ** 2)
        return np.asarray(p * (1 - p) * (1 - 1 / self.scale) ** 2 * (t - eta) / self.noise**2)

    def draw_precisions(self, square: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draws of each row's factor."""
        wrong = rng.random(len(square)) < self.outlier_probability(square)
        return np.where(wrong, 1 / self.scale, 1.0)

    def _with_shape(self, square: FloatArray, weight: FloatArray) -> Self:
        """π and K by EM."""
        p = weight * self.outlier_probability(square)
        scale = float(p @ square) / (float(p.sum()) * self.noise)
        share = float(np.clip(p.sum() / weight.sum(), *SHARES))
        return replace(self, share=share, scale=max(scale, LEAST_SCALE))
