"""Re-estimate all scales at once, drop what is gone, repeat (mathematics, sections 1 to 3).

The rows are touched only through the reductions of `core.posterior.Reductions`.
"""

from dataclasses import dataclass

import numpy as np

from sparsebayes.core.evidence import log_evidence
from sparsebayes.core.posterior import gaussian_posterior
from sparsebayes.core.scales import NoiseRule, ScaleRule, ard_candidate, gain
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.solvers.loop import Callback, Info, Trace, iterate
from sparsebayes.solvers.problem import NOISE_FLOOR, NOISE_START, GaussianProblem, Solution

GONE = 1e-3
"""A weight with γ below this that would rather be out (its best precision is ∞) is dropped: it moves the evidence by
less than this many nats, and the certifying search that follows would take it back."""
CHARGE = 1.5
"""Factor by which the precision of a weight that is not worth its price grows in each iteration."""


@dataclass(frozen=True)
class State:
    """What the next iteration needs."""

    rows: DenseRows
    active: IntArray
    alpha: FloatArray
    noise: float
    objective: float = -np.inf

    @property
    def solution(self) -> Solution:
        """The model as it stands."""
        return Solution(self.active, self.alpha, self.noise)


def start(problem: GaussianProblem) -> State:
    """Every usable column in the model, with one precision such that the prior explains the target's variance."""
    usable = np.flatnonzero(problem.column_energy > 0)
    rows = problem.rows if len(usable) == problem.n_columns else problem.rows.keep(usable)
    return State(rows, usable, np.full(len(usable), float(max(1, len(usable)))), NOISE_START)


def run(
    problem: GaussianProblem,
    state: State,
    *,
    rule: ScaleRule,
    noise_rule: NoiseRule,
    trace: Trace,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    gone: float = GONE,
) -> tuple[State, bool]:
    """Iterate the scale rule and the noise rule until the objective moves by less than `tol` nats.

    With a price, the precision of each weight that is not worth it (given the others, by the same s = γ/Σ_jj and
    q = μ_j/Σ_jj as in the sequential search) grows by a constant factor instead of following the rule. Weights thus
    leave by degrees, and one that becomes worth its price when its rivals fade comes back.
    """

    def step(state: State) -> tuple[State, Info]:
        b = problem.b[state.active]
        posterior = gaussian_posterior(state.rows, 1 / state.noise, problem.t / state.noise, state.alpha)
        residual = problem.distance(state.rows.predict(posterior.mean))
        fit = problem.fit(residual, state.noise)
        objective = log_evidence(fit, posterior.mean, state.alpha, posterior.logdet) + problem.log_hyper_prior(
            state.active, state.alpha, state.noise
        )
        s, q = posterior.gamma / posterior.var, posterior.mean / posterior.var
        best = ard_candidate(s, q, problem.a, b)
        pays = gain(best, s, q) > problem.price
        alpha = rule(posterior.mean, posterior.var, posterior.gamma, problem.a, b)
        if problem.price > 0:
            alpha = np.where(pays, alpha, state.alpha * CHARGE)
        noise_terms = (residual, state.noise, float(posterior.gamma.sum()), problem.n, problem.c, problem.d)
        noise = max(noise_rule(*noise_terms), NOISE_FLOOR)
        kept = pays | (posterior.gamma >= gone)
        new = State(
            state.rows if kept.all() else state.rows.keep(kept),
            state.active[kept],
            alpha[kept],
            noise,
            objective,
        )
        change = abs(objective - state.objective) if kept.all() else np.inf
        return new, Info(objective, change, len(new.active), posterior.jitter)

    return iterate(state, step, trace=trace, tol=tol, max_iter=max_iter, callback=callback)
