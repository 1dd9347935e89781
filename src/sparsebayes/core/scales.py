"""How prior precisions and the noise are re-estimated from the posterior (docs/mathematics.md, sections 1 and 2).

A Gamma(a, b) hyper-prior is counted as a density of log α, so that it adds a log α - b α to the log evidence and its
mode is what the rules below reach; a = b = 0 is flat and leaves plain evidence maximisation.
"""

from collections.abc import Callable

import numpy as np

from sparsebayes.core.types import FloatArray, Scalar

TINY = float(np.finfo(np.float64).tiny)
MIN_SHARE_LEFT = 0.05
"""Share of the rows that the weights must leave for the noise's fixed point, a quotient of two small numbers beyond it.
With 0.01 or 0.2 sixteen fits with nearly as many columns as rows end at the same evidence, but for one that falls by
half a nat at 0.2."""
DOUBLE_ROOT = 1e-7
"""Imaginary share of a root that counts as real: rounding splits a double root by up to 5e-8 of its size (measured)."""

ScaleRule = Callable[[FloatArray, FloatArray, FloatArray, Scalar, FloatArray | Scalar], FloatArray]
"""(μ, diag Σ, γ, a, b) → α."""
NoiseRule = Callable[[float, float, float, float, float, float], float]
"""(‖t - Φμ‖², σ², Σγ, N, c, d) → σ²."""


def em(mean: FloatArray, var: FloatArray, gamma: FloatArray, a: Scalar, b: FloatArray | Scalar) -> FloatArray:
    """EM (variational) rule: α ← (2a + 1) / (2b + μ² + Σ_mm). Never lowers the objective."""
    return np.asarray((2 * a + 1) / (2 * b + mean**2 + var))


def mackay(mean: FloatArray, var: FloatArray, gamma: FloatArray, a: Scalar, b: FloatArray | Scalar) -> FloatArray:
    """MacKay's fixed point: α ← (2a + γ) / (2b + μ²). Much faster, not monotone."""
    return np.asarray((2 * a + gamma) / np.maximum(2 * b + mean**2, TINY))


def shared_em(mean: FloatArray, var: FloatArray, gamma: FloatArray, a: Scalar, b: FloatArray | Scalar) -> FloatArray:
    """EM rule for one precision that all weights share (ridge): α ← (2a + M) / (2b + Σ(μ² + Σ_mm))."""
    return np.broadcast_to((2 * a + len(mean)) / (2 * b + (mean**2 + var).sum()), mean.shape)


def shared_mackay(
    mean: FloatArray, var: FloatArray, gamma: FloatArray, a: Scalar, b: FloatArray | Scalar
) -> FloatArray:
    """MacKay's rule for one shared precision: α ← (2a + Σγ) / (2b + Σμ²)."""
    return np.broadcast_to((2 * a + gamma.sum()) / np.maximum(2 * b + (mean**2).sum(), TINY), mean.shape)


def noise_em(residual: float, noise: float, gamma_sum: float, n: float, c: float, d: float) -> float:
    """EM rule: σ² ← (2d + ‖t - Φμ‖² + σ² Σγ) / (2c + N), because tr(ΦᵀΦΣ) = σ² Σγ."""
    return (2 * d + residual + noise * gamma_sum) / (2 * c + n)


def noise_mackay(residual: float, noise: float, gamma_sum: float, n: float, c: float, d: float) -> float:
    """Fixed point: σ² ← (2d + ‖t - Φμ‖²) / (2c + N - Σγ).

    When the weights use up nearly all of the rows both ends of the quotient vanish; the EM rule, which has the same
    fixed points, takes over there.
    """
    if n - gamma_sum < MIN_SHARE_LEFT * n:
        return noise_em(residual, noise, gamma_sum, n, c, d)
    return (2 * d + residual) / (2 * c + n - gamma_sum)


def is_flat(a: Scalar, b: FloatArray | Scalar) -> bool:
    """Whether Gamma(a, b) is flat, with a fast path for scalars."""
    return bool(a == 0 and b == 0) if isinstance(b, float) else not (a or np.any(b))


def gain(alpha: FloatArray, s: FloatArray, q: FloatArray, strength: Scalar = 0.0) -> FloatArray:
    """Evidence (nats) of a basis at precision α against leaving it out: ½[log α/(α+s) + q²/(α+s)]; 0 at α = ∞.

    A Laplace prior (`laplace_candidate`) takes its part, ½ strength/α, from that.
    """
    inside = np.isfinite(alpha)
    at = np.where(inside, alpha, 1.0)
    total = np.where(inside, np.maximum(at + s, TINY), 1.0)  # outside, rounding may have made s anything
    return np.where(inside, 0.5 * (np.log(at / total) + q**2 / total - strength / at), 0.0)


def ard_candidate(s: FloatArray, q: FloatArray, a: Scalar = 0.0, b: FloatArray | Scalar = 0.0) -> FloatArray:
    """The precision of largest gain given everything else; ∞ where the basis is better left out.

    Flat hyper-prior: α = s²/(q² - s) when q² > s (docs/mathematics.md, section 2). Otherwise the mode of
    gain + a log α - b α.
    """
    if is_flat(a, b):
        excess = q**2 - s
        inside = (excess > 0) & (s > 0)
        return np.where(inside, s**2 / np.where(inside, excess, 1.0), np.inf)
    return _candidate_with_prior(s, q, a, np.broadcast_to(np.asarray(b, dtype=np.float64), s.shape))


def laplace_candidate(s: FloatArray, q: FloatArray, strength: Scalar) -> FloatArray:
    """The precision of largest gain under a Laplace prior on the weights: gain - ½ strength/α, strength = λ/σ².

    The weights' variances σ²g = 1/α have the density (λ/2) exp(-λg/2) in g. In terms of g the maximum is
    [-s - 2 strength + √(s² + 4 strength q²)] / (2λs) when q² - s > strength (docs/mathematics.md, section 2); written
    as below no digits are lost near that threshold, and strength 0 gives ARD.
    """
    excess = q**2 - s - strength
    inside = (excess > 0) & (s > 0)
    reach = s + 2 * strength + np.sqrt(s**2 + 4 * strength * q**2)
    return np.where(inside, 0.5 * s * reach / np.where(inside, excess, 1.0), np.inf)


def _candidate_with_prior(s: FloatArray, q: FloatArray, a: Scalar, b: FloatArray) -> FloatArray:
    """Stationarity of gain + a log α - b α in y = s/α is a cubic (with r = q²/s and b' = b s):

    (1 + 2a) y³ + (1 - r + 4a - 2b') y² + (2a - 4b') y - 2b' = 0.

    Its positive roots are all the candidates; the best of them is taken.
    """
    usable = s > 0
    s_safe = np.where(usable, s, 1.0)
    r, rate = q**2 / s_safe, b * s_safe
    companion = np.zeros((*s.shape, 3, 3))
    companion[..., 1, 0] = companion[..., 2, 1] = 1.0
    companion[..., 0, 2] = 2 * rate
    companion[..., 1, 2] = 4 * rate - 2 * a
    companion[..., 2, 2] = r - 1 - 4 * a + 2 * rate
    companion[..., :, 2] /= 1 + 2 * a
    y = np.linalg.eigvals(companion)
    real = (np.abs(y.imag) <= DOUBLE_ROOT * np.abs(y)) & (y.real > TINY)
    x = 1 / np.where(real, y.real, 1.0)
    value = 0.5 * (np.log(x / (1 + x)) + r[..., None] / (1 + x)) + a * np.log(x) - rate[..., None] * x
    best = np.argmax(np.where(real, value, -np.inf), axis=-1)
    alpha = s_safe * np.take_along_axis(x, best[..., None], axis=-1)[..., 0]
    return np.where(usable & real.any(axis=-1), alpha, np.inf)
