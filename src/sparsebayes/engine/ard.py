"""ARD regression: each named solver finds a model its own way, and one search certifies what it found."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sparsebayes.core.posterior import GaussianPosterior
from sparsebayes.core.scales import NoiseRule, ScaleRule, em, mackay, noise_em, noise_mackay
from sparsebayes.core.types import FloatArray
from sparsebayes.engine import batch, reweighted
from sparsebayes.engine.candidates import Candidates
from sparsebayes.engine.loop import Callback, Settings, Trace
from sparsebayes.engine.problem import NOISE_FLOOR, NOISE_START, GaussianProblem, Noise, Solution
from sparsebayes.engine.reweighted import Lasso
from sparsebayes.engine.sequential import certificate, empty, priced_evidence, search

FIND_STEPS = 1000
"""A finding stage that takes longer (copied columns can make it wander) is ended; the search goes on from there."""


@dataclass(frozen=True)
class Result:
    """A fitted model in the problem's standard units."""

    solution: Solution
    posterior: GaussianPosterior
    log_evidence: float
    gap: float
    converged: bool
    noise_at_floor: bool
    worth: FloatArray
    """Nats that each candidate brings (in the model) or would bring (outside)."""
    trace: Trace


Find = Callable[[GaussianProblem, Lasso | None, Trace, Settings], Solution]


def _by_batch(
    rule: ScaleRule,
    noise_rule: NoiseRule,
    problem: GaussianProblem,
    lasso: Lasso | None,
    trace: Trace,
    settings: Settings,
) -> Solution:
    alpha, noise = problem.batch_start
    start, w_step = batch.start(problem, Noise(noise), alpha), problem.w_step(noise_rule)
    state, _ = batch.run(problem, start, w_step=w_step, rule=rule, trace=trace, **vars(settings))
    return Solution(state.active, state.alpha, state.carry.variance)


def _by_reweighting(problem: GaussianProblem, lasso: Lasso | None, trace: Trace, settings: Settings) -> Solution:
    if lasso is None:
        raise ValueError("solver='reweighted-l1' needs a lasso")
    state, _ = reweighted.run(problem, lasso=lasso, trace=trace, **vars(settings))
    return state.solution


def _from_nothing(problem: GaussianProblem, lasso: Lasso | None, trace: Trace, settings: Settings) -> Solution:
    return empty(NOISE_START)


SOLVERS: dict[str, Find] = {
    "em": partial(_by_batch, em, noise_em),
    "fixed-point": partial(_by_batch, mackay, noise_mackay),
    "reweighted-l1": _by_reweighting,
    "sequential": _from_nothing,
}


def solve(
    problem: GaussianProblem,
    solver: str,
    *,
    tol: float,
    max_iter: int,
    lasso: Lasso | None = None,
    start: Solution | None = None,
    callback: Callback | None = None,
) -> Result:
    """Find a model with the named solver (or take `start`), then search from there until the certificate holds.

    The finding stage only has to come near, so it stops at √tol nats. With a price the support is a combinatorial
    choice: the search then also starts from nothing, and the better end is taken.
    """
    trace = Trace()
    if solver != "sequential":
        problem = problem.compressed()
    if start is None:
        near = Settings(tol**0.5, min(max_iter, FIND_STEPS), callback)
        start = SOLVERS[solver](problem, lasso, trace, near)
    settings = Settings(tol, max_iter, callback)
    state, converged = search(problem, start, trace=trace, **vars(settings))
    if problem.price > 0 and len(start.active):
        other = Trace()
        rival, rival_converged = search(problem, empty(NOISE_START), trace=other, **vars(settings))
        if rival_converged and priced_evidence(rival) > priced_evidence(state) + tol:
            state, converged, trace = rival, True, other
    return describe(state, state.noise_gain, converged, trace)


def describe(state: Candidates, noise_gain: float, converged: bool, trace: Trace) -> Result:
    """What a search has ended with, and what it has left: `noise_gain` is what the noise would bring."""
    moves = state.moves()
    return Result(
        state.solution(),
        state.posterior,
        state.evidence,
        certificate(moves, noise_gain),
        converged,
        state.noise <= NOISE_FLOOR,
        moves.worth,
        trace,
    )
