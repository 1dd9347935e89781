"""Log evidence, and the certificate that no single change of the model can raise it.

The objective of the whole library is *priced* evidence: log p(t | α, σ²) + log hyper-prior - price × (features kept).
A price of log D per feature is the log prior over models in which each of D features is in with odds 1 : D; a price of
0 is the textbook's (type-II) maximum likelihood. See docs/min_gain.md.
"""

from typing import NamedTuple

import numpy as np

from sparsebayes.core.scales import candidate, gain, is_flat
from sparsebayes.core.types import FloatArray, Scalar


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


def worth_at(r: float) -> float:
    """What a basis with r = q²/s is worth at its own best precision, in nats: ½(r - 1 - log r), 0 for r ≤ 1."""
    return float(0.5 * (r - 1 - np.log(r))) if r > 1 else 0.0


def classification_price(n_rows: float, n_claims: int) -> float:
    """What a feature must bring in a classifier: the worth at r = log D + log max(N, D).

    With fewer rows than claims D that is the universal threshold |z| = √(2 log D) of a single weight's z-score; with
    more rows it grows like the BIC's, so that false discoveries vanish (docs/min_gain.md).
    """
    return worth_at(float(np.log(n_claims) + np.log(max(n_rows, n_claims))))


class Moves(NamedTuple):
    """For every basis, the precision it should have given all others (∞: out), and the nats which that move brings."""

    alpha: FloatArray
    gain: FloatArray
    worth: FloatArray
    """Nats that the basis brings at its own best precision, whether it is in the model or not."""


def best_moves(
    s: FloatArray,
    q: FloatArray,
    alpha: FloatArray,
    price: FloatArray | Scalar,
    a: Scalar = 0.0,
    b: FloatArray | Scalar = 0.0,
    pull: Scalar = 0.0,
) -> Moves:
    """The best change of each single precision; α = ∞ marks a basis outside the model.

    The largest gain is the optimality certificate: at a maximum of the priced evidence it is zero. A basis is worth the
    evidence it brings at its own best precision; in the model belongs what is worth more than the price. With a pull
    the prior is that of `bls_candidate`, which speaks of what is out as well and so has its part in that worth.
    """
    target = candidate(s, q, a, b, pull)
    worth = gain(target, s, q, pull)
    pays = worth > price
    target = np.where(pays, target, np.inf)
    brings = np.where(pays, worth - price, 0.0)
    inside = np.isfinite(alpha).nonzero()[0]
    at = alpha[inside]
    present = gain(at, s[inside], q[inside], pull)
    moved = worth[inside] - present
    if not is_flat(a, b):
        rate = np.broadcast_to(b, s.shape)[inside]
        to = np.where(pays[inside], target[inside], at)
        moved += log_hyper_prior(to, a, rate) - log_hyper_prior(at, a, rate)
    # With a hyper-prior the best precision may be worth less than the present one; what decides is the best.
    asked = price[inside] if isinstance(price, np.ndarray) else price
    brings[inside] = np.where(pays[inside], moved, asked - np.minimum(present, worth[inside]))
    return Moves(target, brings, worth)


def noise_gain(residual: float, noise: float, gamma_sum: float, n: float, c: float, d: float) -> float:
    """Nats that one Newton step of log σ² would bring: slope² / (2 curvature), 0 at a stationary noise level.

    Where the weights use up nearly all of the rows the curvature vanishes; there the gain is taken as the slope times
    the length of the way that σ² can fall, some twenty e-folds to its floor.
    """
    slope = 0.5 * (n - gamma_sum) + c - (0.5 * residual + d) / noise
    if n - gamma_sum < 0.05 * n:
        return 20 * abs(slope)
    return slope**2 / (n - gamma_sum + 2 * c)
