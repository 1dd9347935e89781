"""All precisions at once: Newton's method for the log evidence in log α. Written here and nowhere else.

With x = log α the gradient of the log evidence is ½(1 - α(μ² + Σ_mm)), and the second derivatives follow from
∂μ/∂x_j = -α_j μ_j Σ_j and ∂Σ/∂x_j = -α_j Σ_j Σ_jᵀ (docs/mathematics.md, section 4.4).
"""

import numpy as np
from scipy.linalg import lapack

from sparsebayes.core.priors import Prior
from sparsebayes.core.types import FloatArray
from sparsebayes.engine import compiled

LONGEST = 3.0
"""Longest step of log α, a factor of twenty: the evidence of a single α turns from its parabola within that. 1.5 and 6
end at evidences that differ by less than their scatter (experiments/constants.py)."""
MIN_CURVATURE = 1e-3
"""Least curvature that is assumed, in units of γ²; at the best precision of a single column it is ½.
A tenth or ten times as much: less than the scatter."""
MIN_GAMMA = 0.1
"""Least γ that the curvature is measured by: in smaller units steps go so far that the posterior does
not follow. Half or twice as much: less than the scatter."""


def newton_step(
    alpha: FloatArray, mean: FloatArray, Sigma: FloatArray, prior: Prior, n: float = np.inf
) -> tuple[FloatArray, float]:
    """Newton's step of the log evidence in log α, and the nats that it promises.

    With finite `n` the noise follows: σ² and all prior variances always have their best common scale. That adds v vᵀ/2n
    with v = αμ² to the Hessian (n includes 2c of the noise's hyper-prior). Where the evidence is not concave the step
    goes uphill all the same, because the curvature is taken by its absolute value. It is measured in units of γ:
    precisions that the data hardly determine would hardly move otherwise.
    """
    if not len(alpha):
        return np.zeros(0), 0.0
    own_slope, own_curvature = prior.newton_terms(alpha)
    if compiled.COMPILED:
        limits = {"longest": LONGEST, "min_curvature": MIN_CURVATURE, "min_gamma": MIN_GAMMA}
        return compiled.module.newton_step(alpha, mean, np.asfortranarray(Sigma), n, own_slope, own_curvature, **limits)
    var = np.diag(Sigma)
    unit = np.maximum(1 - alpha * var, MIN_GAMMA)
    pulled = alpha * mean**2
    energy = pulled + alpha * var
    slope = (0.5 * (1 - energy) + own_slope) / unit
    scaled = alpha / unit
    curvature = np.multiply.outer(mean, -scaled * mean)
    curvature *= scaled[:, None]
    curvature -= (0.5 * scaled[:, None] * scaled) * Sigma
    curvature *= Sigma
    if np.isfinite(n):
        curvature -= np.multiply.outer(pulled / unit, pulled / (2 * n * unit))
    curvature.flat[:: len(alpha) + 1] += (0.5 * energy + own_curvature) / unit**2
    step = _uphill(curvature, slope)
    promise = 0.5 * float(slope @ step)
    return np.clip(step / unit, -LONGEST, LONGEST), promise


def _uphill(curvature: FloatArray, slope: FloatArray) -> FloatArray:
    """|curvature|⁻¹ slope: by Cholesky's factor where all eigenvalues are large enough, or by the eigenvalues."""
    shifted = curvature.copy()
    shifted.flat[:: len(slope) + 1] -= MIN_CURVATURE
    if lapack.dpotrf(shifted, lower=1, overwrite_a=1)[1] == 0:
        _, step, info = lapack.dposv(curvature, slope, lower=1)
        if info == 0:
            return np.asarray(step)
    values, vectors = np.linalg.eigh(curvature)
    return np.asarray(vectors @ ((slope @ vectors) / np.maximum(np.abs(values), MIN_CURVATURE)))
