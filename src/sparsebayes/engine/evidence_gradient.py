"""Maximise the log evidence by its gradient, in the parameters of a kernel and the scales of a fixed choice of columns.

The gradient costs no more than the evidence: `gaussian_evidence` returns the slope with respect to the design Φ, which
a kernel's own derivatives turn into one with respect to its parameters.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from scipy.optimize import minimize

from sparsebayes.core.evidence import log_evidence
from sparsebayes.core.posterior import posterior_from_gram
from sparsebayes.core.types import FloatArray
from sparsebayes.engine.least_squares import NOISE_FLOOR, LeastSquares

MAX_LOG_CHANGE = 15.0
"""Most that a log α may change in one maximisation. At e¹⁵ = 3e6 times its precision a weight is 0 to six digits, and a
further search removes it; without a limit α could overflow."""
MAX_STEPS = 200
"""Most steps of L-BFGS-B. Kernel widths of about 100 rows take 45 in the median, and 73 at most."""
MEMORY = 20
"""Pairs of steps and gradients that L-BFGS-B keeps. With 10, SciPy's default, feature weights (Friedman #1 with ten
inputs) take 1.2 times as long, with 5 or 40 also longer; none of these predicts better."""


class Slopes(NamedTuple):
    """The log evidence of a design and its scales, and its derivatives with respect to both."""

    value: float
    design: FloatArray
    scales: FloatArray


Evidence = Callable[[FloatArray, FloatArray], Slopes]
"""(kernel columns K (N×M) of the kept centres; log α and, for regression, log σ²) → value and slopes."""
Design = Callable[[FloatArray], tuple[FloatArray, Callable[[FloatArray], FloatArray]]]
"""Parameters → K, and a function that turns a slope with respect to K into one with respect to the parameters."""


class Optimum(NamedTuple):
    """Where a maximisation ended."""

    parameters: FloatArray
    scales: FloatArray
    value: float


def maximise_evidence(
    evidence: Evidence,
    design: Design,
    start: FloatArray,
    limits: list[tuple[float, float | None]],
    scales: FloatArray,
    n_vectors: int,
    *,
    unit: FloatArray | float = 1.0,
    steps: int = MAX_STEPS,
    stop_at: float = np.inf,
) -> Optimum:
    """Maximise the evidence by L-BFGS-B in the parameters of a design and the scales of its columns.

    Args:
        start: Initial parameters.
        limits: Lower and upper limit of each parameter; None is no limit.
        scales: Initial log α of the vectors, followed by log σ² where there is noise.
        n_vectors: How many of the scales belong to vectors.
        unit: Natural step of the parameters.
        steps: Largest number of steps.
        stop_at: End as soon as the evidence reaches this value.
    """
    n_parameters = len(start)
    units = np.append(np.broadcast_to(unit, n_parameters), np.ones(len(scales)))

    def cost(at: FloatArray) -> tuple[float, FloatArray]:
        K, back = design(at[:n_parameters] * unit)
        try:
            found = evidence(K, at[n_parameters:])
        except LinAlgError:  # too far: the line search turns back
            return np.inf, np.zeros(len(at))
        return -found.value, -np.append(back(found.design), found.scales) * units

    def stop(intermediate_result: Any) -> None:
        if -intermediate_result.fun >= stop_at:
            raise StopIteration

    first = np.append(start, scales) / units
    low = np.array([limit[0] for limit in limits]) / units[:n_parameters]
    high = np.array([np.inf if limit[1] is None else limit[1] for limit in limits]) / units[:n_parameters]
    bounds = [*zip(low, high, strict=True), *_scale_limits(scales, n_vectors)]
    options = {"maxiter": steps, "maxcor": MEMORY}
    end = minimize(cost, first, jac=True, method="L-BFGS-B", bounds=bounds, callback=stop, options=options)
    at = end.x * units
    return Optimum(at[:n_parameters], at[n_parameters:], -float(end.fun))


def _scale_limits(scales: FloatArray, n_vectors: int) -> list[tuple[float, float]]:
    """Limits of log α, and of log σ²: from the noise floor to e times the target's variance (or the initial noise)."""
    limits = [(value - MAX_LOG_CHANGE, value + MAX_LOG_CHANGE) for value in scales[:n_vectors].tolist()]
    noises = [(float(np.log(NOISE_FLOOR)), max(0.0, value) + 1) for value in scales[n_vectors:].tolist()]
    return limits + noises


def gaussian_evidence(problem: LeastSquares) -> Evidence:
    """Log evidence of a regression on any columns; target, row weights and intercept are those of the problem."""
    root_weight, t = problem.design.root_weight[:, None], problem.t
    share = root_weight[:, 0] ** 2 / problem.n_weighted if problem.flat_intercept else np.zeros(len(t))

    def at(K: FloatArray, scales: FloatArray) -> Slopes:
        alpha, noise = np.exp(scales[:-1]), float(np.exp(scales[-1]))
        Phi = root_weight * (K - share @ K)
        posterior = posterior_from_gram(Phi.T @ Phi / noise, Phi.T @ t / noise, alpha)
        residual = t - Phi @ posterior.mean
        energy = float(residual @ residual) + problem.rest
        value = log_evidence(problem.fit(energy, noise), posterior.mean, alpha, posterior.logdet)
        # C = σ²I + ΦA⁻¹Φᵀ: ∂/∂Φ = (C⁻¹ttᵀC⁻¹ - C⁻¹)ΦA⁻¹ = β[(t - Φμ)μᵀ - ΦΣ].
        slope = (np.outer(residual, posterior.mean) - Phi @ posterior.covariance()) / noise
        slope *= root_weight
        slope -= np.outer(share, slope.sum(axis=0))
        by_alpha = 0.5 * (posterior.gamma - alpha * posterior.mean**2)
        by_noise = 0.5 * (energy / noise - problem.n + posterior.gamma.sum())
        return Slopes(value, slope, np.append(by_alpha, by_noise))

    return at
