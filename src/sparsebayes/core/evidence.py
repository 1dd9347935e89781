"""Log evidence of a model, and the gain of a better noise variance.

The objective of the whole library is *priced* evidence: log p(t | α, σ²) + log hyper-prior - price × (features kept).
A price of log D per feature is the log prior over models in which each of D features is in with odds 1 : D; a price of
0 is the textbook's (type-II) maximum likelihood. See docs/min_gain.md.
"""

import numpy as np

from sparsebayes.core.scales import MIN_SHARE_LEFT, is_flat
from sparsebayes.core.types import FloatArray, Scalar

WAY_DOWN = 20.0
"""E-folds that the noise can fall by: from the target's variance to its floor, 1e-8 of that, it is log 1e8 = 18.4."""


def integral(fit: float, mean: FloatArray, alpha: FloatArray, logdet: float) -> float:
    """Log ∫ exp(Σ sites - ½ wᵀAw) dw / √(2π)^M = fit - ½ μᵀAμ + ½ log|Σ|; `fit` is the sum of the sites at η = Φμ.

    With the prior's normaliser ½ log|A| (in `scale_term`) this is the log evidence: exact for Gaussian sites, the
    Laplace approximation for Laplace sites at the mode, a lower bound for bounding sites. No large terms cancel in it.
    """
    return fit - 0.5 * float(alpha @ mean**2) + 0.5 * logdet


def scale_term(alpha: FloatArray, a: Scalar, b: FloatArray | Scalar) -> float:
    """½ log|A|, and the Gamma(a, b) hyper-prior of the precisions."""
    return float(0.5 * np.log(alpha).sum() + log_hyper_prior(alpha, a, b).sum())


def log_evidence(fit: float, mean: FloatArray, alpha: FloatArray, logdet: float) -> float:
    """Log ∫ exp(Σ sites) N(w; 0, A⁻¹) dw."""
    return integral(fit, mean, alpha, logdet) + scale_term(alpha, 0.0, 0.0)


def gaussian_fit(residual: float, noise: float, n: float, flat_intercept: bool) -> float:
    """Σ log N(tₙ; ηₙ, σ²) from ‖t - η‖².

    With a flat prior (density one) on the intercept, that is integrated out too: ½ log(2πσ²/N) on centred data.
    """
    fit = -0.5 * n * np.log(2 * np.pi * noise) - residual / (2 * noise)
    return float(fit + 0.5 * np.log(2 * np.pi * noise / n) if flat_intercept else fit)


def log_hyper_prior(x: FloatArray | Scalar, a: Scalar, b: FloatArray | Scalar) -> FloatArray:
    """a log x - b x: the Gamma(a, b) hyper-prior of precisions x as a density of log x, without its constant."""
    return np.zeros_like(x) if is_flat(a, b) else np.asarray(a * np.log(x) - b * x)


def noise_gain(residual: float, noise: float, gamma_sum: float, n: float, c: float, d: float) -> float:
    """Nats that one Newton step of log σ² would bring: slope² / (2 curvature), 0 at a stationary noise level.

    Where the weights use up nearly all of the rows the curvature vanishes; there the gain is taken as the slope times
    the length of the way that σ² can fall.
    """
    slope = 0.5 * (n - gamma_sum) + c - (0.5 * residual + d) / noise
    if n - gamma_sum < MIN_SHARE_LEFT * n:
        return WAY_DOWN * abs(slope)
    return slope**2 / (n - gamma_sum + 2 * c)
