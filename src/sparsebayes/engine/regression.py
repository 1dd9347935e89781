"""Recipes for Gaussian noise: each named solver finds a first model, and the same search completes and certifies it."""

from collections.abc import Callable
from functools import partial

from sparsebayes.core.prices import is_free
from sparsebayes.core.scales import NoiseRule, ScaleRule, em, mackay, noise_em, noise_mackay
from sparsebayes.core.types import FloatArray
from sparsebayes.data.design import Columns
from sparsebayes.engine import batch, reweighted
from sparsebayes.engine.ascent import Snapshot
from sparsebayes.engine.gaussian_search import certificate, search
from sparsebayes.engine.least_squares import NOISE_FLOOR, LeastSquares, Noise, NoiseStep, Solution, empty
from sparsebayes.engine.loop import Settings, Trace
from sparsebayes.engine.result import Result
from sparsebayes.engine.reweighted import Lasso

Find = Callable[[LeastSquares, Lasso | None, Trace, Settings], Solution]


def by_batch(
    rule: ScaleRule,
    noise_rule: NoiseRule,
    problem: LeastSquares,
    lasso: Lasso | None,
    trace: Trace,
    settings: Settings,
) -> Solution:
    """All precisions at once, from all columns."""

    def w_step(design: Columns, alpha: FloatArray, carry: Noise) -> NoiseStep:
        return problem.noise_step(design, alpha, carry.variance, noise_rule)

    first = batch.start(problem, Noise(problem.start_noise), problem.start_alpha)
    state, _ = batch.run(problem, first, w_step=w_step, rule=rule, trace=trace, settings=settings)
    return Solution(state.active, state.alpha, state.carry.variance)


def by_reweighting(problem: LeastSquares, lasso: Lasso | None, trace: Trace, settings: Settings) -> Solution:
    """A sequence of lassos."""
    if lasso is None:
        raise ValueError("solver='reweighted-l1' needs a lasso")
    return reweighted.run(problem, lasso=lasso, trace=trace, settings=settings)[0].solution


def from_nothing(problem: LeastSquares, lasso: Lasso | None, trace: Trace, settings: Settings) -> Solution:
    """The empty model: the search does everything."""
    return empty(problem.first_noise)


SOLVERS: dict[str, Find] = {
    "em": partial(by_batch, em, noise_em),
    "fixed-point": partial(by_batch, mackay, noise_mackay),
    "reweighted-l1": by_reweighting,
    "sequential": from_nothing,
}
"""The named solvers of regression: how each finds a model."""


def solve(
    problem: LeastSquares,
    solver: str,
    settings: Settings,
    *,
    lasso: Lasso | None = None,
    start: Solution | None = None,
) -> Result:
    """Find a model with the named solver (or take `start`), then search from there until the certificate holds.

    The finding stage only has to come near, so it stops at √tol nats. With a price the support is a combinatorial
    choice: the search then also starts from nothing, and the better end is taken.
    """
    trace = Trace()
    if solver != "sequential":
        problem = problem.compressed()
    if start is None:
        start = SOLVERS[solver](problem, lasso, trace, settings.loose())
    best, converged = search(problem, start, trace, settings)
    if not is_free(problem.price) and len(start.active):
        other = Trace()
        rival, arrived = search(problem, empty(problem.first_noise), other, settings)
        if arrived and rival.priced_evidence > best.priced_evidence + settings.tol:
            best, converged, trace = rival, True, other
    return described(best, converged, trace)


def described(snapshot: Snapshot, converged: bool, trace: Trace, hold_noise: bool = False) -> Result:
    """The end of a search as a result; with `hold_noise` the certificate says nothing of the noise."""
    return Result(
        active=snapshot.active,
        alpha=snapshot.alpha[snapshot.active],
        posterior=snapshot.posterior,
        noise=snapshot.noise,
        level_variance=snapshot.noise / snapshot.problem.n_weighted if snapshot.problem.flat_intercept else 0.0,
        log_evidence=snapshot.evidence,
        worth=snapshot.best_moves.worth,
        gap=certificate(snapshot, hold_noise),
        converged=converged,
        noise_at_floor=bool(snapshot.noise <= NOISE_FLOOR and snapshot.problem.known_noise is None),
        trace=trace,
    )


def priced(problem: LeastSquares, result: Result) -> float:
    """Log evidence less the price."""
    return result.log_evidence - problem.total_price(result.active)


def maximum(problem: LeastSquares, solver: str, settings: Settings, start: Solution | None = None) -> Result:
    """The named solver's answer on kernel columns, or what the search makes of a start.

    A batch solver starts with all columns. If it ends at the largest number that the price allows, those that are left
    are not the best ones, and a search from the empty model may find a better set.
    """
    problem.design.prepare_gram()
    found = solve(problem, solver, settings, start=start)
    if solver == "sequential" or problem.price.base(len(found.active) + 1) == 0:
        return found
    rival = solve(problem, "sequential", settings)
    return max(found, rival, key=lambda result: priced(problem, result))
