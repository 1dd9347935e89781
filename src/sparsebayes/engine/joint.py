"""All precisions at once: Newton's method for the objective in log α, with the noise in tow or held."""

import numpy as np

from sparsebayes.core.types import FloatArray

DAMPING = (1e-6, 1e-3, 1e-2, 0.1, 1.0)
"""What is added to the curvatures, which are of order one, until the step is a step upwards and not too long."""
LONGEST = 2.0
"""No precision moves by more than this many e-folds."""
PARTS = (1.0, 0.25, 0.0625)
"""Shares of a step that are tried until one is no step down."""


def joint_change(
    alpha: FloatArray, mean: FloatArray, Sigma: FloatArray, n: float, pull: float, tol: float
) -> FloatArray:
    """Newton's step of log α where σ² and all 1/α have their best common scale; 0 if it promises less than `tol` nats.

    With v = α μ², and with p = λ/σ² the pull of a Laplace prior, twice the slope is 1 - α Σ_ii - v + p/α, and twice the
    negative curvature diag(α Σ_ii + v + p/α) - α_i α_k Σ_ik (Σ_ik + 2 μ_i μ_k) - v vᵀ/n. The last term is the scale's:
    with C = c C₁ the best c leaves -½ n log tᵀC₁⁻¹t where -½ tᵀC⁻¹t was, and tᵀC⁻¹t = n (n counts the noise's
    hyper-prior, 2c, in). The Laplace prior does not mind the scale, because it is that of the noise; where the noise is
    held, n is infinite.
    """
    pulled, prior = alpha * mean**2, pull / alpha
    slope = 1 - alpha * np.diag(Sigma) - pulled
    bend = -np.outer(alpha, alpha) * Sigma * (Sigma + 2 * np.outer(mean, mean)) - np.outer(pulled, pulled) / n
    bend[np.diag_indices_from(bend)] += 1 - slope + prior
    slope += prior
    for damping in DAMPING:
        try:
            lower = np.linalg.cholesky(bend + damping * np.eye(len(bend)))
        except np.linalg.LinAlgError:
            continue
        change = np.linalg.solve(lower.T, np.linalg.solve(lower, slope))
        if np.abs(change).max(initial=0.0) <= LONGEST:
            return change if 0.25 * float(slope @ change) > tol else np.zeros_like(alpha)
    return np.zeros_like(alpha)
