"""The prior of a set of features whose inclusion rate and whose size of weights are both learned.

A weight is zero with probability 1 - π and otherwise N(0, c) in units of the noise variance. The rate π lies between
one feature and half of them: log-uniform, which is indifferent to orders of magnitude, and for classes and counts with
one chance in four the highest, a dense world. The share h = cπD/(1 + cπD) of the variance that the features explain is
uniform between 0 and 1, which makes log c logistic around -log πD (docs/mathematics.md, section 9). The rate is
integrated out: what is left is a table of log p(c, k), the prior of one set with k features at each c of a grid.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sparsebayes.core.special import log_sum
from sparsebayes.core.types import FloatArray

HIGHEST_RATE = 0.5
"""Upper end of π. With a higher one every feature of a dense model would be more likely in than out beforehand."""
DENSE = 0.25
"""Prior probability of the highest rate by itself, for classes and counts: a row tells little there, and without it
models of many weak features are not dense enough. In regression it would make small probabilities too high."""
RATES = 32
"""Values of π in the sum that integrates it out: more change no log odds by more than 0.1."""
STEP = 0.5
"""Distance of neighbouring values of log c; the posterior of log c is √(2/k) wide for k features."""
SMALLEST_SHARE = 0.02
LARGEST_RATIO = 1e6
"""Ends of the grid: 2 % of the variance explained by half of the features, and a weight whose variance is a million
times that of the noise. Beyond the first nothing is visible; beyond the second rounding is."""
LARGEST_MULTIPLE = 50.0
"""Multiples of the typical c at which the grid ends: exp(-50) is nothing."""


@dataclass(frozen=True)
class InclusionPrior:
    """log p(c, k) of one set of k out of D features, at each c of a grid."""

    slabs: FloatArray
    """Values of c."""
    n_features: int
    rates: FloatArray
    """Values of π."""
    share: FloatArray
    """log p(c, π), one row for each c."""

    @classmethod
    def of(
        cls,
        n_features: int,
        rate: float | None = None,
        noise: float = 1.0,
        typical: float = np.inf,
        dense: float = 0.0,
    ) -> "InclusionPrior":
        """For a number of features.

        `rate` is π where it is known, and `noise` the variance of the noise in the units of c. With a finite `typical`
        the prior of c is multiplied by exp(-c/typical): separable classes do not determine the size of weights. `dense`
        is the prior probability of a dense world, where π is the highest.
        """
        n_features = max(n_features, 1)
        lowest = 1 / (n_features + 1)
        rates = np.exp(np.linspace(np.log(lowest), np.log(max(HIGHEST_RATE, lowest)), RATES))
        parts = np.full(RATES, (1 - dense) / (RATES - 1))
        parts[[0, -1]] /= 2  # the trapezoidal rule
        parts[-1] += dense
        if rate is not None:
            rates, parts = np.array([rate]), np.ones(1)
        start = np.log(SMALLEST_SHARE / (HIGHEST_RATE * n_features))
        slabs = noise * np.exp(np.arange(start, np.log(LARGEST_RATIO), STEP))
        ratio = np.log(np.multiply.outer(slabs / noise, rates * n_features))  # logit h
        share = -np.logaddexp(0, ratio) - np.logaddexp(0, -ratio) + np.log(parts) - (slabs / typical)[:, None]
        visible = slabs < LARGEST_MULTIPLE * typical
        return cls(slabs[visible], n_features, rates, share[visible])

    @cached_property
    def _chosen(self) -> FloatArray:
        """log of πᵏ(1 - π)ᴰ⁻ᵏ, a row for each rate."""
        k = np.arange(self.n_features + 1)
        return np.multiply.outer(np.log(self.rates), k) + np.multiply.outer(np.log1p(-self.rates), self.n_features - k)

    @cached_property
    def _known_odds(self) -> dict[int, FloatArray]:
        """Computed values, by c."""
        return {}

    @cached_property
    def _known_sizes(self) -> dict[int, FloatArray]:
        """Computed values, by k."""
        return {}

    def log_size(self, k: int) -> FloatArray:
        """log p(c, k) of one set with k features, for all c."""
        if k not in self._known_sizes:
            self._known_sizes[k] = log_sum(self.share + self._chosen[:, k])
        return self._known_sizes[k]

    def log_odds(self, slab: int) -> FloatArray:
        """log p(c, k + 1) - log p(c, k) for k = 0 … D - 1: prior odds of one feature more, at one c."""
        if slab not in self._known_odds:
            self._known_odds[slab] = np.diff(log_sum(self.share[slab] + self._chosen.T))
        return self._known_odds[slab]
