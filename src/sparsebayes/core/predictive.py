"""Predictions from mean m and variance v of each row's linear predictor (docs/mathematics.md, section 6)."""

from collections.abc import Callable

import numpy as np
from scipy.special import ndtr, stdtrit

from sparsebayes.core.special import jj_lambda, log_sigmoid, sigmoid
from sparsebayes.core.types import FloatArray, Scalar

STEP = 0.5
"""Step of the trapezoidal rules below; see `quadrature`. The error is exp(-4π²) = 7e-18 with poles at distance π."""
NORMAL_END, LOGISTIC_END = 9, 38
"""Where the rules end: beyond, the normal density is below 1e-17 and the logistic one below 4e-17."""
MAX_INNER = 500
"""Iterations of a contact point. Up to v = 1,000 at most 239 are needed; at v = 1e5 the probability is off by 2e-6."""
CONTACT_TOL = 1e-12
"""Relative change of a contact point at which it is found; the bound is flat there, so its error is the square."""


def check_coverage(coverage: float) -> None:
    """Raise ValueError unless 0 < coverage < 1."""
    if not 0 < coverage < 1:
        raise ValueError(f"coverage={coverage!r} must lie between 0 and 1, both excluded")


def central_interval(mean: FloatArray, std: FloatArray, coverage: Scalar, freedom: Scalar) -> FloatArray:
    """Central interval that holds with probability `coverage`, as an array (..., 2).

    σ² was learned from the same rows, so the quantile is Student's with the degrees of freedom that the weights left,
    N - Σγ; for many rows it is the normal one.
    """
    half = float(stdtrit(freedom, 0.5 + coverage / 2)) * std
    return np.stack([mean - half, mean + half], axis=-1)


def pooled_freedom(first: float, first_freedom: float, second: float, second_freedom: float) -> float:
    """Degrees of freedom of a sum of two estimated variances (Welch and Satterthwaite)."""
    total = first + second
    if total == 0:
        return first_freedom
    return 1 / ((first / total) ** 2 / first_freedom + (second / total) ** 2 / second_freedom)


def plug_in(m: FloatArray, v: FloatArray) -> FloatArray:
    """σ(m): the variance is ignored."""
    return np.asarray(sigmoid(m))


def probit(m: FloatArray, v: FloatArray) -> FloatArray:
    """σ(m / √(1 + πv/8)): MacKay's moderated output."""
    return np.asarray(sigmoid(m / np.sqrt(1 + np.pi * v / 8)))


def quadrature(m: FloatArray, v: FloatArray) -> FloatArray:
    """∫ σ(η) N(η; m, v) dη to rounding, at any v.

    σ is the distribution function of a logistic variable ℓ, so the integral is also E[Φ((m - ℓ)/√v)] with Φ the normal
    distribution function. The trapezoidal rule converges as exp(-2π d/step) with d the distance of the nearest pole
    from the real axis: π/√v for the first form, π for the second. Each is used where it is the good one.
    """
    m, v = np.broadcast_arrays(np.asarray(m, dtype=np.float64), np.asarray(v, dtype=np.float64))
    p = np.empty(m.shape)
    narrow = v < 1
    z = np.arange(-NORMAL_END, NORMAL_END + STEP, STEP)
    normal = np.exp(-(z**2) / 2) * (STEP / np.sqrt(2 * np.pi))
    p[narrow] = sigmoid(m[narrow, None] + np.sqrt(v[narrow, None]) * z) @ normal
    ell = np.arange(-LOGISTIC_END, LOGISTIC_END + STEP, STEP)
    logistic = sigmoid(ell) * sigmoid(-ell) * STEP
    p[~narrow] = ndtr((m[~narrow, None] - ell) / np.sqrt(v[~narrow, None])) @ logistic
    return np.clip(p, 0.0, 1.0)


def variational_bound(m: FloatArray, v: FloatArray) -> FloatArray:
    """Jaakkola-Jordan lower bounds of both classes' probabilities, each row's ξ at its own optimum, normalised."""
    m, v = np.asarray(m, dtype=np.float64), np.asarray(v, dtype=np.float64)
    return np.asarray(sigmoid(_log_bound(m, v) - _log_bound(-m, v)))


def _log_bound(m: FloatArray, v: FloatArray) -> FloatArray:
    """Log lower bound of class 1, with the terms in 1/v cancelled by hand so that v = 0 is allowed."""
    xi = np.sqrt(m**2 + v)
    for _ in range(MAX_INNER):
        k = 1 + 2 * jj_lambda(xi) * v
        new = np.sqrt(v / k + ((m + v / 2) / k) ** 2)
        done = np.all(np.abs(new - xi) <= CONTACT_TOL * (1 + xi))
        xi = new
        if done:
            break
    lam = jj_lambda(xi)
    k = 1 + 2 * lam * v
    exponent = (m + v / 4 - 2 * lam * m**2) / (2 * k)
    return np.asarray(-0.5 * np.log(k) + exponent + log_sigmoid(xi) - xi / 2 + lam * xi**2)


PROBABILITIES: dict[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "quadrature": quadrature,
    "probit": probit,
    "plug-in": plug_in,
    "bound": variational_bound,
}
