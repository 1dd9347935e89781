"""Up the log evidence by its gradient, in the parameters of a kernel and the scales of a fixed choice of columns.

The gradient costs no more than the evidence: `gaussian_evidence` and `laplace_evidence` hand out the slope with respect
to the design Φ, which a kernel's own derivatives turn into one with respect to its parameters.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from scipy.optimize import minimize

from sparsebayes.core.evidence import log_evidence
from sparsebayes.core.linalg import factorise
from sparsebayes.core.posterior import posterior_from_gram
from sparsebayes.core.scales import TINY
from sparsebayes.core.sites import bernoulli_log_likelihood
from sparsebayes.core.special import sigmoid
from sparsebayes.core.types import FloatArray
from sparsebayes.engine.bernoulli import HALVINGS, NEWTON_STEPS, ROUNDING, BernoulliProblem
from sparsebayes.engine.problem import NOISE_FLOOR, GaussianProblem

FARTHEST = 15.0
"""A scale may go far (a weight that is not wanted any more), but not out of the range of numbers."""

SATURATED = 700.0
"""Log-odds that a Newton step may add: beyond it a double knows no difference. Where all rows are saturated there is no
curvature to say how far a flat intercept should go."""


class Slopes(NamedTuple):
    """The log evidence of a design and its scales, and its derivatives with respect to both."""

    value: float
    design: FloatArray
    scales: FloatArray


Evidence = Callable[[FloatArray, FloatArray], Slopes]
"""(kernel columns K (N×M) of the kept centres; log α and, for regression, log σ²) → value and slopes."""
Design = Callable[[FloatArray], tuple[FloatArray, Callable[[FloatArray], FloatArray]]]
"""Parameters → K, and a function that turns a slope with respect to K into one with respect to the parameters."""


class Top(NamedTuple):
    """Where a climb has ended."""

    parameters: FloatArray
    scales: FloatArray
    value: float


def climb(
    evidence: Evidence,
    design: Design,
    start: FloatArray,
    limits: list[tuple[float, float | None]],
    scales: FloatArray,
    n_vectors: int,
    *,
    unit: FloatArray | float = 1.0,
    steps: int = 200,
    enough: float = np.inf,
) -> Top:
    """Parameters and scales of largest evidence by L-BFGS-B from those given, within limits for the parameters.

    `scales` are log α of the vectors, and log σ² where there is a noise. `unit` says what a step of one is to the
    parameters; the climb ends early once the evidence is `enough`.
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
        if -intermediate_result.fun >= enough:
            raise StopIteration

    first = np.append(start, scales) / units
    low = np.array([limit[0] for limit in limits]) / units[:n_parameters]
    high = np.array([np.inf if limit[1] is None else limit[1] for limit in limits]) / units[:n_parameters]
    bounds = [*zip(low, high, strict=True), *_scale_limits(scales, n_vectors)]
    options = {"maxiter": steps, "maxcor": 20}
    end = minimize(cost, first, jac=True, method="L-BFGS-B", bounds=bounds, callback=stop, options=options)
    at = end.x * units
    return Top(at[:n_parameters], at[n_parameters:], -float(end.fun))


def _scale_limits(scales: FloatArray, n_vectors: int) -> list[tuple[float, float]]:
    limits = [(value - FARTHEST, value + FARTHEST) for value in scales[:n_vectors].tolist()]
    noises = [(float(np.log(NOISE_FLOOR)), max(0.0, value) + 1) for value in scales[n_vectors:].tolist()]
    return limits + noises


def gaussian_evidence(problem: GaussianProblem) -> Evidence:
    """Log evidence of a regression on other columns than the problem's own; target, weights, intercept are kept."""
    root_weight, t = problem.rows.root_weight[:, None], problem.t
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


def laplace_evidence(problem: BernoulliProblem) -> Evidence:
    """Laplace's log evidence of two classes on other columns than the problem's own.

    At the mode the penalised likelihood has no slope, but the curvature B there has: it moves with the mode. With
    c = -½ diag(Φ H⁻¹ Φᵀ) ∂b/∂η and z = H⁻¹Φᵀc, where the column of ones of a flat intercept counts as part of Φ,
    ∂/∂Φ = (g + c - BΦz) wᵀ + g zᵀ - BΦH⁻¹ and ∂/∂log α = ½(1 - α(w² + Σ_mm)) - α w z, with g = t - σ(η).
    """
    t, weight, flat = problem.t, problem.weight, int(problem.flat_intercept)
    modes: dict[int, FloatArray] = {}  # of the last model with so many weights: a climb takes small steps

    def at(K: FloatArray, scales: FloatArray) -> Slopes:
        alpha = np.exp(scales)
        Phi, precision = np.column_stack([np.ones((len(K), flat)), K]), np.append(np.zeros(flat), alpha)
        base = problem.base_mode(len(alpha))
        start = np.append(np.full(flat, base.intercept), base.w)
        fit, w = _mode(Phi, precision, t, weight, (modes.get(len(alpha), start), start))
        modes[len(alpha)] = w
        eta = Phi @ w
        b = weight * sigmoid(eta) * sigmoid(-eta)
        g = weight * (t * sigmoid(-eta) - (1 - t) * sigmoid(eta))
        factor = factorise(Phi.T @ (b[:, None] * Phi) + np.diag(precision))
        PhiH = factor.solve(Phi.T).T
        value = fit + 0.5 * float(scales.sum()) - 0.5 * factor.logdet + 0.5 * flat * float(np.log(2 * np.pi))
        c = -0.5 * np.einsum("ij,ij->i", PhiH, Phi) * b * (sigmoid(-eta) - sigmoid(eta))
        z = PhiH.T @ c
        slope = np.outer(g + c - b * (Phi @ z), w) + np.outer(g, z) - b[:, None] * PhiH
        var = np.einsum("ij,ij->j", factor.inverse_root(), factor.inverse_root())
        by_alpha = 0.5 * (1 - precision * (w**2 + var)) - precision * w * z
        return Slopes(value, slope[:, flat:], by_alpha[flat:])

    return at


def _mode(
    Phi: FloatArray, precision: FloatArray, t: FloatArray, weight: FloatArray, starts: tuple[FloatArray, ...]
) -> tuple[float, FloatArray]:
    """Maximum of log p(t | w) - ½ wᵀAw and where it is, by Newton's method with step halving from the best start.

    As `BernoulliProblem.find_mode`, for columns that are at hand and a climb that asks for it a thousand times.
    """

    def penalised(w: FloatArray) -> float:
        return float(weight @ bernoulli_log_likelihood(t, Phi @ w)) - 0.5 * float(precision @ w**2)

    value, w = max(((penalised(start), start) for start in starts), key=lambda pair: pair[0])
    for _ in range(NEWTON_STEPS):
        p = sigmoid(Phi @ w)
        curvature = Phi.T @ ((weight * p * (1 - p))[:, None] * Phi)
        curvature.flat[:: len(w) + 1] += precision
        step = factorise(curvature).solve(Phi.T @ (weight * (t - p)) - precision * w)
        step *= min(1.0, SATURATED / max(float(np.abs(Phi @ step).max()), TINY))
        ways = (w + 0.5**power * step for power in range(HALVINGS))
        tried = ((penalised(there), there) for there in ways)
        nothing = ROUNDING * (1 + abs(value))
        better, there = next((pair for pair in tried if pair[0] >= value - nothing), (value, w))
        gained, value, w = better - value, better, there
        if gained <= nothing:
            break
    return value, w
