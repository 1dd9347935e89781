"""Evidence by brute force, from what a fitted model publishes: dense matrices, and no code of the engine."""

import numpy as np
from scipy.linalg import null_space
from scipy.special import expit
from scipy.stats import multivariate_normal


def log_density(y, covariance, flat_mean=False):
    """log N(y; 0, covariance); with `flat_mean` the mean is integrated out against density one.

    The contrasts have the density of y with the mean integrated out: |1| = √N is the volume of a unit of the mean.
    """
    if not flat_mean:
        return multivariate_normal.logpdf(y, cov=covariance)
    contrasts = null_space(np.ones((1, len(y)))).T
    return multivariate_normal.logpdf(contrasts @ y, cov=contrasts @ covariance @ contrasts.T) - 0.5 * np.log(len(y))


def marginal_evidence(model, Phi, y):
    """log p(y) of a regression with the kept columns Phi, under N(0, σ²I + ΦA⁻¹Φᵀ)."""
    C = model.noise_variance_ * np.eye(len(y)) + (Phi / model.precision_) @ Phi.T
    own = model.fit_intercept and getattr(model, "intercept_prior", "flat") == "ard"
    if own:  # its precision is not public; the recorded posterior knows it
        fit = model._fits[0]
        C += 1 / fit.precision[-1] if fit.basis.ones else 0.0
    return log_density(y, C, flat_mean=model.fit_intercept and not own)


def laplace_evidence(Phi, t, w, alpha, level=None):
    """Laplace's log p(t) of two classes at the weights w, the slope there, and the covariance of the weights.

    `level` is a flat intercept: one more weight of precision zero, whose integral has the factor √2π left.
    """
    alpha = np.asarray(alpha, dtype=float)
    value = 0.5 * np.log(alpha).sum()
    if level is not None:
        Phi, w, alpha = np.column_stack([Phi, np.ones(len(t))]), np.append(w, level), np.append(alpha, 0.0)
        value += 0.5 * np.log(2 * np.pi)
    p = expit(Phi @ w)
    H = np.diag(alpha) + Phi.T @ ((p * (1 - p))[:, None] * Phi)
    value += np.log(np.where(t, p, 1 - p)).sum() - 0.5 * alpha @ w**2 - 0.5 * np.linalg.slogdet(H)[1]
    return value, Phi.T @ (t - p) - alpha * w, np.linalg.inv(H)
