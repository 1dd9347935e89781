"""Several outputs with one precision per feature: a feature is relevant for all of them, or for none.

The weights of feature m have the prior N(0, σ_t²/α_m) in output t with noise σ_t². So the posterior covariance is the
same for all outputs but for the factor σ_t², and the mean over outputs of the log evidence has the form of one output's
with mean squares in the place of squares: s is unchanged, and q² is the mean of the outputs' q². The search works with
that mean, and with a T-th part of the price and of the tolerance (docs/mathematics.md, section 4.7).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sparsebayes.core.evidence import log_evidence
from sparsebayes.core.posterior import GaussianPosterior
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine.ascent import Snapshot
from sparsebayes.engine.gaussian_search import certificate, search
from sparsebayes.engine.least_squares import LOST_DIGITS, NOISE_FLOOR, LeastSquares, empty
from sparsebayes.engine.loop import Settings, Trace
from sparsebayes.engine.result import Result

MAX_TURNS = 50
"""Turns between the outputs' noise and everything else. Each closes most of the distance: five are usual."""


@dataclass(frozen=True, kw_only=True)
class OutputsProblem(LeastSquares):
    """A least-squares problem whose target has a column for each output; all numbers are means over outputs."""

    @property
    def n_outputs(self) -> int:
        """T."""
        return int(self.t.shape[1])

    @cached_property
    def energy(self) -> float:
        """Mean of ‖t‖²."""
        return self.distance(np.zeros_like(self.t))

    @cached_property
    def is_scale_free(self) -> bool:
        """No steps of all precisions together: they are written for one output."""
        return False

    def residual(self, active: IntArray | list[int], mean: FloatArray, gram: FloatArray) -> float:
        """Mean of ‖t - Φμ‖²."""
        expanded = self.energy - float(np.vdot(mean, 2 * self.projection[active] - gram @ mean)) / self.n_outputs
        return expanded if expanded > LOST_DIGITS * self.energy else self.residual_by_rows(active, mean)

    def distance(self, eta: FloatArray) -> float:
        """Mean of ‖t - η‖²."""
        return float(((self.t - eta) ** 2).sum()) / self.n_outputs

    def rescaled(self, factor: FloatArray) -> "OutputsProblem":
        """Outputs divided by a factor each."""
        return replace(self, t=self.t / factor, known_projection=self.projection / factor)


@dataclass(frozen=True)
class OutputsResult:
    """One result per output, in units in which all outputs have the same noise."""

    outputs: list[Result]
    unit: FloatArray
    """One of these units in units of the problem, per output."""
    log_evidence: float
    """Of all outputs together, in the units of the problem."""
    path: FloatArray
    """The log evidence before each step."""


def solve_outputs(problem: OutputsProblem, settings: Settings, shared_noise: bool) -> OutputsResult:
    """Features, precisions and noise of largest priced evidence of all outputs together.

    By turns: the search finds everything at given ratios of the outputs' noise levels; then each output's noise is the
    best at the present model. Neither lowers the priced evidence.
    """
    n, T = problem.n, problem.n_outputs
    unit, start, path = np.ones(T), empty(problem.first_noise), []
    settings = replace(settings, tol=settings.tol / T)
    for _ in range(MAX_TURNS):
        trace = Trace()
        found, converged = search(problem, start, trace, settings)
        path.append(T * np.array(trace.objective) - n * float(np.log(unit).sum()))
        ratio, to_gain = _noise_ratio(found, unit, n)
        left = 0.0 if shared_noise else float(to_gain.mean())
        if left <= settings.tol:
            break
        start, problem, unit = found.solution, problem.rescaled(np.sqrt(ratio)), unit * np.sqrt(ratio)
    gap = T * (certificate(found) + left)
    outputs = _split(found, gap, converged and left <= settings.tol, trace, NOISE_FLOOR / unit**2)
    total = T * found.evidence - n * float(np.log(unit).sum())
    return OutputsResult(outputs, unit, total, np.concatenate(path))


def _noise_ratio(found: Snapshot, unit: FloatArray, n: float) -> tuple[FloatArray, FloatArray]:
    """Best noise of each output over the present one, all scaled together with it, and the nats that it would bring.

    With C = σ²C₁ the best σ² is tᵀC₁⁻¹t/n, and tᵀC₁⁻¹t = ‖t - Φμ‖² + σ²μᵀAμ. A ratio x brings n/2 (x - 1 - log x).
    """
    inside = found.alpha[found.active]
    best = (_residuals(found) + found.noise * (inside @ found.mean**2)) / n
    ratio = np.maximum(best / found.noise, NOISE_FLOOR / (found.noise * unit**2))
    return ratio, 0.5 * n * np.maximum(best / found.noise - 1 - np.log(ratio), 0.0)


def _residuals(found: Snapshot) -> FloatArray:
    """‖t - Φμ‖² of each output."""
    problem = found.problem
    return np.asarray(((problem.t - problem.design.columns(found.active) @ found.mean) ** 2).sum(axis=0))


def _split(found: Snapshot, gap: float, converged: bool, trace: Trace, floor: FloatArray) -> list[Result]:
    """A result for each output; evidence and noise are its own, all else is common."""
    problem, joint, alpha = found.problem, found.posterior, found.alpha[found.active]
    residuals, worth = _residuals(found), problem.t.shape[1] * found.best_moves.worth
    common = joint.var, joint.gamma, joint.logdet, joint.root, joint.diagonal, joint.sign, joint.jitter
    return [
        Result(
            active=found.active,
            alpha=alpha,
            posterior=GaussianPosterior(mean, *common),
            noise=found.noise,
            log_evidence=log_evidence(problem.fit(float(residual), found.noise), mean, alpha, joint.logdet),
            worth=worth,
            gap=gap,
            converged=converged,
            trace=trace,
            noise_at_floor=bool(problem.known_noise is None and found.noise <= (1 + LOST_DIGITS) * least),
        )
        for mean, residual, least in zip(joint.mean.T, residuals, floor, strict=True)
    ]
