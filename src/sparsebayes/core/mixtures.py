"""Quantiles of new observations when the noise is not Gaussian: counts, and noise with heavy tails.

The linear predictor of a row has a Gaussian posterior with mean m and variance v. A new count is Poisson with a
log-normal rate, a new observation with Student noise is a normal variable of random variance. Both distribution
functions are one-dimensional integrals, which the trapezoidal rule gives to rounding where the integrand is smooth.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import gammainccinv, gammaincinv, gammaln, ndtr, ndtri, pdtr, stdtrit

from sparsebayes.core.types import FloatArray

NORMAL_NODES = np.arange(-8.5, 8.75, 0.25)
"""Nodes for a standard normal variable; beyond lies a probability of 1e-17."""
N_NODES = 200
"""Nodes for the logarithm of a Gamma variable; for shape ½, the hardest, their step is 0.34 and the error 1e-10."""
TAIL = 1e-14
"""Probability beyond the first and the last node of a Gamma variable."""
NEWTON_STEPS = 50
"""Largest number of Newton steps to a quantile; from where they start about five are enough."""
ROUNDING = 1e-13
"""Relative size of a step that changes nothing any more."""
BLOCK = 4096
"""Rows that are worked on at a time: their nodes take 7 MB."""
LARGEST_COUNT = 2.0**53
"""Beyond, doubles do not tell neighbouring integers apart; a quantile there is reported as infinite."""


def log_gamma_nodes(shape: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nodes (last axis) and weights for the expectation over the logarithm of a Gamma(shape, 1) variable."""
    shape = np.asarray(shape, dtype=np.float64)[..., None]
    tiny = np.finfo(np.float64).tiny
    low, high = np.log(np.maximum(gammaincinv(shape, TAIL), tiny)), np.log(gammainccinv(shape, TAIL))
    u = low + (high - low) * np.linspace(0, 1, N_NODES)
    weight = np.exp(shape * u - np.exp(u) - gammaln(shape))
    return u, weight / weight.sum(axis=-1, keepdims=True)


def in_blocks(function: Callable[..., FloatArray], *rows: FloatArray) -> FloatArray:
    """A function of rows, applied to a bounded number of them at a time."""
    if not len(rows[0]):
        return np.empty(0)
    starts = range(0, len(rows[0]), BLOCK)
    return np.concatenate([function(*(each[k : k + BLOCK] for each in rows)) for k in starts])


# --- counts ---


def log_normal_moments(m: FloatArray, v: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean exp(m + v/2) and variance (exp v - 1) × mean² of a rate exp η with η ~ N(m, v); ∞ where they overflow."""
    with np.errstate(over="ignore", divide="ignore"):
        # (exp v - 1) mean² in one exponent: of two factors one may overflow where the other vanishes.
        return np.exp(m + v / 2), np.exp(2 * (m + v) + np.log(-np.expm1(-v)))


def poisson_cdf(k: FloatArray, m: FloatArray, v: FloatArray) -> FloatArray:
    """P(y ≤ k) of a count with rate exp η, η ~ N(m, v).

    It is E[P(y ≤ k | η)] over η. It is also P(rate < G) with G ~ Gamma(k + 1), which is E[Φ((log G - m)/√v)] over G.
    The first integrand has a width of about 1/√(k + 1) and the second of √v; the one that is wide compared with its
    weight is used.
    """
    k, m, v = np.broadcast_arrays(*(np.asarray(each, dtype=np.float64) for each in (k, m, v)))
    result = np.empty(m.shape)
    narrow = v * (k + 1) < 1
    normal = np.exp(-(NORMAL_NODES**2) / 2)
    with np.errstate(over="ignore"):
        rate = np.exp(m[narrow, None] + np.sqrt(v[narrow, None]) * NORMAL_NODES)
    result[narrow] = pdtr(k[narrow, None], rate) @ (normal / normal.sum())
    u, weight = log_gamma_nodes(k[~narrow] + 1)
    result[~narrow] = np.sum(weight * ndtr((u - m[~narrow, None]) / np.sqrt(v[~narrow, None])), axis=-1)
    return result


def poisson_quantile(p: float, m: FloatArray, v: FloatArray) -> FloatArray:
    """Smallest integer k with P(y ≤ k) ≥ p, for every row; ∞ beyond 2⁵³."""

    def solved(m: FloatArray, v: FloatArray) -> FloatArray:
        low, high = np.full(m.shape, -1.0), np.zeros(m.shape)
        below = poisson_cdf(high, m, v) < p
        while (below := below & (high < LARGEST_COUNT)).any():
            low[below], high[below] = high[below], 2 * high[below] + 1
            below[below] = poisson_cdf(high[below], m[below], v[below]) < p
        high[high >= LARGEST_COUNT] = np.inf
        while (apart := np.isfinite(high) & (high - low > 1)).any():
            middle = np.floor((low[apart] + high[apart]) / 2)
            enough = poisson_cdf(middle, m[apart], v[apart]) >= p
            high[apart] = np.where(enough, middle, high[apart])
            low[apart] = np.where(enough, low[apart], middle)
        return high

    return in_blocks(solved, m, v)


def poisson_interval(m: FloatArray, v: FloatArray, coverage: float) -> FloatArray:
    """Central interval of new counts, both ends included, as an array (..., 2) of whole numbers.

    It holds with probability `coverage` or more: counts are discrete.
    """
    return np.stack([poisson_quantile((1 + side * coverage) / 2, m, v) for side in (-1, 1)], axis=-1)


# --- Student noise ---


def student_half_width(
    v: FloatArray, noise: float, noise_freedom: float, coverage: float, freedom: float = np.inf
) -> FloatArray:
    """Half width of the central interval of η + σT with η ~ N(m, v) and T Student with ν = `noise_freedom`.

    Given u ~ Gamma(ν/2, ν/2) the observation is normal with variance v + σ²/u. `freedom` is N - Σγ, the degrees of
    freedom from which σ² was learned. Rows with Student noise say ν/(ν + 3) as much of σ² as rows with Gaussian noise;
    the width grows by the ratio of the quantiles of Student's distribution with that many degrees of freedom and of the
    normal distribution. For ν → ∞ this is the interval of Gaussian noise.
    """
    log_g, weight = log_gamma_nodes(np.asarray(noise_freedom / 2))
    upper = 0.5 + coverage / 2
    z = float(ndtri(upper))
    widest = noise * (noise_freedom / 2) * np.exp(-log_g)  # σ²/u with u = g/(ν/2)

    def solved(v: FloatArray) -> FloatArray:
        """Newton's method from below: the distribution function is concave there, so no step leads too far."""
        std = np.sqrt(v[:, None] + widest)
        # Neither part alone varies more than their sum.
        half: FloatArray = np.maximum(z * np.sqrt(v), np.sqrt(noise) * float(stdtrit(noise_freedom, upper)))
        for _ in range(NEWTON_STEPS):
            ratio = half[:, None] / std
            density = np.exp(-(ratio**2) / 2) / (std * np.sqrt(2 * np.pi)) @ weight
            step = (upper - ndtr(ratio) @ weight) / density
            half = half + np.maximum(step, 0.0)
            if np.all(step <= ROUNDING * half):
                break
        return half

    learned_from = freedom * noise_freedom / (noise_freedom + 3)
    return np.asarray(in_blocks(solved, v) * (float(stdtrit(learned_from, upper)) / z))
