"""All precisions at once: Newton's method for the log evidence in log α. Written here and nowhere else.

With x = log α the gradient of the log evidence is ½(1 - α(μ² + Σ_mm)), and the second derivatives follow from
∂μ/∂x_j = -α_j μ_j Σ_j and ∂Σ/∂x_j = -α_j Σ_j Σ_jᵀ (docs/mathematics.md, section 4.4).
"""

import numpy as np
from scipy.linalg import lapack

from sparsebayes.core.priors import Prior
from sparsebayes.core.types import FloatArray
from sparsebayes.engine import compiled

LONGEST = 2.0
"""Longest step of log α, a factor of seven. With 1 or 3 models of Friedman #1 end with slightly less evidence."""
DAMPING = [1e-6, 1e-3, 1e-2, 0.1, 1.0, 10.0, 1e2, 1e3, 1e4, 1e6, 1e8]
"""Added to the curvature, in units of γ², until it is positive definite; at the best precision of a single column the
curvature is ½."""
MIN_GAMMA = 0.1
"""Least γ that the curvature is measured by: in smaller units steps go so far that the posterior does
not follow. Half as much loses 0.4 ± 0.1 nats on Friedman #1, twice as much nothing (experiments/constants.py)."""

STEP_PARTS = (1.0, 0.25, 0.0625)
"""Parts of a step that are tried until one does not lower the objective. Quarters, not halves, because each trial
recomputes everything."""


def newton_step(
    alpha: FloatArray, mean: FloatArray, Sigma: FloatArray, prior: Prior, n: float = np.inf
) -> tuple[FloatArray, float]:
    """Newton's step of the log evidence in log α, and the nats that it promises.

    With finite `n` the noise follows: σ² and all prior variances always have their best common scale. That adds v vᵀ/2n
    with v = αμ² to the Hessian (n includes 2c of the noise's hyper-prior). Where the evidence is not concave the step
    goes uphill all the same, because the curvature is damped until it is positive definite. It is measured in units of
    γ: precisions that the data hardly determine would hardly move otherwise.
    """
    if not len(alpha):
        return np.zeros(0), 0.0
    own_slope, own_curvature = prior.newton_terms(alpha)
    if compiled.COMPILED and prior.ties is None:
        return compiled.native.newton_step(
            alpha, mean, np.asfortranarray(Sigma), n, own_slope, own_curvature,
            longest=LONGEST, min_gamma=MIN_GAMMA, damping=DAMPING,
        )  # fmt: skip
    var = np.diag(Sigma)
    unit = np.maximum(1 - alpha * var, MIN_GAMMA)
    pulled = alpha * mean**2
    energy = pulled + alpha * var
    slope = 0.5 * (1 - energy) + own_slope
    curvature = np.multiply.outer(mean, -alpha * mean)
    curvature *= alpha[:, None]
    curvature -= (0.5 * alpha[:, None] * alpha) * Sigma
    curvature *= Sigma
    if np.isfinite(n):
        curvature -= np.multiply.outer(pulled, pulled / (2 * n))
    curvature.flat[:: len(alpha) + 1] += 0.5 * energy + own_curvature
    shared = np.arange(len(alpha))
    if prior.ties is not None:  # one step for all columns of a group: the sums of their slopes and curvatures
        shared = np.unique(prior.ties, return_inverse=True)[1]
        member = np.eye(shared.max() + 1)[shared]
        slope, curvature = slope @ member, member.T @ curvature @ member
        unit = np.sqrt(unit**2 @ member)
    step = _uphill(curvature / np.multiply.outer(unit, unit), slope / unit)
    promise = 0.5 * float(slope / unit @ step)
    return np.clip((step / unit)[shared], -LONGEST, LONGEST), promise


def _uphill(curvature: FloatArray, slope: FloatArray) -> FloatArray:
    """(curvature + damping)⁻¹ slope with the least damping that makes it a step upwards.

    Where no damping does, each precision takes a step of its own, by the absolute value of its curvature.
    """
    for damping in DAMPING:
        damped = curvature.copy()
        damped.flat[:: len(slope) + 1] += damping
        _, step, info = lapack.dposv(damped, slope, lower=1)
        if info == 0:
            return np.asarray(step)
    return np.asarray(slope / np.maximum(np.abs(curvature.diagonal()), DAMPING[-1]))
