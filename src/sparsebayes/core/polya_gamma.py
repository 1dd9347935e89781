"""Draws of Pólya-Gamma variables, which make a logistic likelihood Gaussian (Polson, Scott & Windle 2013)."""

import numpy as np

from sparsebayes.core.types import FloatArray

TERMS = 24
"""Gamma variables that are drawn out of the infinite sum; the rest has a relative variance of 1e-6, and is its mean."""
SMALLEST_TILT = 1e-6
"""tanh(x)/x is one to all digits below."""


def polya_gamma(shape: FloatArray, tilt: FloatArray, rng: np.random.Generator) -> FloatArray:
    """One draw of PG(shape, tilt) for each entry: Σₖ Gamma(shape, 1) / (2π²(k - ½)² + ½ tilt²)."""
    tilt = np.maximum(np.abs(tilt), SMALLEST_TILT)
    scale = 2 * np.pi**2 * (np.arange(TERMS)[:, None] + 0.5) ** 2 + 0.5 * tilt**2
    whole = bool((shape == 1).all())
    draws = rng.standard_exponential(scale.shape) if whole else rng.standard_gamma(np.broadcast_to(shape, scale.shape))
    tail = shape * (np.tanh(tilt / 2) / (2 * tilt) - (1 / scale).sum(axis=0))
    return np.asarray((draws / scale).sum(axis=0) + np.maximum(tail, 0.0))
