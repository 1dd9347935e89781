"""Recipes for likelihoods that are not Gaussian: which loops a prior and an inference stand for."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from sparsebayes.core.prices import is_free
from sparsebayes.core.scales import TINY, ScaleRule, em, mackay, noise_em, noise_mackay, shared_em, shared_mackay
from sparsebayes.core.types import FloatArray, Scalar
from sparsebayes.data.design import Columns
from sparsebayes.engine import batch
from sparsebayes.engine.candidates import Candidates
from sparsebayes.engine.coordinate import L1Problem
from sparsebayes.engine.extrapolation import LONGEST_EXTRAPOLATION, Extrapolated, Extrapolation
from sparsebayes.engine.loop import Info, Settings, Trace, iterate
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.result import Result
from sparsebayes.engine.reweighted import Lasso
from sparsebayes.engine.scale_fit import ScaleFit, fit_scales
from sparsebayes.engine.search import LOOSE, Search, SearchState, cold_start, search
from sparsebayes.engine.view import Contact, Mode, Point, WStep

RULES: dict[str, dict[str, ScaleRule]] = {
    "ard": {"fixed-point": mackay, "em": em},
    "ridge": {"fixed-point": shared_mackay, "em": shared_em},
}
"""Re-estimation rules by prior and name."""
NOISE_RULES = {"fixed-point": noise_mackay, "em": noise_em}
"""The rule for a likelihood's own parameters that goes with each."""
MIN_Z = 1e-6
"""Least squared penalty of the reweighted L1 (columns have unit scale): on separable data it would vanish.
A tenth or ten times as much changes nothing (experiments/constants.py)."""
VANISHED = 1e-12
"""Share of the largest weight that L1 by scales takes for the size of a smaller one: its precision stays finite."""
ANY_SIZE = 1e-280
"""Size of the largest weight where all have vanished; penalty / (VANISHED × ANY_SIZE) is still a finite number."""
GONE = 1e-7
"""Share of the largest weight below which a weight has gone, in L1 by scales: where EM is heading for zero it shrinks
by a constant factor in each iteration and never arrives."""
INNER = Settings(1e-8, 100)
"""An L1 problem within reweighting is solved to rounding, because the tangent is exact only at its minimum."""


def find(problem: Problem, settings: Settings) -> Result:
    """Sparse by search, from the model without weights or, for free columns, from many (engine/search.py)."""
    return _searched(problem, cold_start(problem), Trace(), settings)


def sparse(problem: Problem, rule: str, settings: Settings) -> Result:
    """ARD. With a price the search that controls discoveries; without, the textbook's batch iteration."""
    if not is_free(problem.price):
        return find(problem, settings)
    trace = Trace()
    state, converged = _in_batch(problem, rule, trace, settings)
    fit = _final_model(problem, state)
    return _result(Search(problem, settings.tol), SearchState(fit), converged, trace)


def batch_then_search(problem: Problem, rule: str, settings: Settings) -> Result:
    """A batch solver finds the model, and the search goes on until the certificate holds."""
    trace = Trace()
    state, _ = _in_batch(problem, rule, trace, settings.loose())
    first = fit_scales(problem, state.active, state.alpha, state.carry, LOOSE, drop_worthless=True)
    return _searched(problem, first, trace, settings)


def ridge(problem: Problem, rule: str, settings: Settings) -> Result:
    """One precision that all weights share; nothing is dropped."""
    trace = Trace()
    # The prior of the predictor has variance one at the start, as with standardised columns in `batch.start`.
    # Where all columns are zero, no precision matters.
    alpha = float(problem.design.column_square(problem.weight).sum() / problem.weight.sum()) or 1.0
    n = problem.design.n_columns  # constant columns count
    first = batch.State(problem.design.keep(np.arange(n)), np.arange(n), np.full(n, alpha), problem.start(n))
    step: Callable[[batch.State[Point]], tuple[batch.State[Point], Info]] = batch.stepper(
        problem, w_step=_w_step(problem, rule), rule=RULES["ridge"][rule], prune_below=0.0, over_weights=np.sum
    )

    def at(state: batch.State[Point], x: FloatArray) -> batch.State[Point]:
        far = np.log(batch.MAX_CHANGE)
        alpha = state.alpha[0] * float(np.exp(np.clip(x[0] - np.log(state.alpha[0]), -far, far)))
        return replace(state, alpha=np.full(n, max(alpha, problem.prior.min_alpha)))

    # With many more columns than rows EM creeps: a step goes about rows/columns of the way, in one coordinate.
    extrapolated_steps: Extrapolation[batch.State[Point]] = Extrapolation(
        step, lambda state: np.log(state.alpha[:1]), at, np.ones(1), longest=max(LONGEST_EXTRAPOLATION, float(n))
    )
    state, converged = iterate(Extrapolated(first), extrapolated_steps, trace=trace, settings=settings)
    return _unsearched(problem, state.here, converged, trace)


def variational_bayes(problem: Problem, settings: Settings) -> Result:
    """Gamma priors on the precisions, integrated out: `problem.prior` is a VariationalGamma."""
    trace, n, prior = Trace(), problem.design.n_columns, problem.prior
    kind = "ridge" if getattr(prior, "shared", False) else "ard"
    design = problem.design.keep(np.arange(n))
    # As in the original: precisions at their prior mean, ξ at zero.
    alpha = np.broadcast_to(prior.a / np.asarray(prior.b), n).copy()
    first = batch.State(design, np.arange(n), alpha, Contact(problem.likelihood, np.zeros(len(problem.t))))
    step: Callable[[batch.State[Contact]], tuple[batch.State[Contact], Info]] = batch.stepper(
        problem, w_step=_w_step(problem, "em"), rule=RULES[kind]["em"], prune_below=0.0
    )

    def coordinates(state: batch.State[Contact]) -> FloatArray:
        return np.asarray(np.log(np.maximum(np.concatenate([state.alpha, state.carry.xi]), TINY)))

    def at(state: batch.State[Contact], x: FloatArray) -> batch.State[Contact]:
        return replace(state, alpha=np.exp(x[:n]), carry=replace(state.carry, xi=np.exp(x[n:])))

    # A row of weight two is two rows.
    extrapolated_steps: Extrapolation[batch.State[Contact]] = Extrapolation(
        step, coordinates, at, np.append(np.ones(n), problem.weight)
    )
    state, converged = iterate(Extrapolated(first), extrapolated_steps, trace=trace, settings=settings)
    return _unsearched(problem, state.here, converged, trace)


def l1(problem: Problem, penalty: float, lasso: Lasso, settings: Settings) -> Result:
    """Laplace prior: the mode of largest posterior density, component by component."""
    trace, n = Trace(), problem.design.n_columns
    mode, converged = L1Problem(problem, np.full(n, penalty), lasso).run(problem.base_mode(n), trace, settings)
    return _at_mode(problem, mode, penalty, converged, trace)


def l1_by_scales(problem: Problem, penalty: float, settings: Settings) -> Result:
    """Laplace prior as a scale mixture: Laplace's method with the EM rule α ← penalty / |μ|."""
    trace = Trace()

    def rule(mean: FloatArray, var: FloatArray, gamma: FloatArray, a: Scalar, b: FloatArray | Scalar) -> FloatArray:
        return np.asarray(penalty / np.maximum(np.abs(mean), VANISHED * np.abs(mean).max(initial=ANY_SIZE)))

    first = batch.start(problem, problem.base_mode(problem.design.n_columns))
    state, converged = batch.run(
        problem, first, w_step=_w_step(problem, "em"), rule=rule, trace=trace, settings=settings, prune_below=0.0
    )
    w = np.where(np.abs(state.carry.w) > GONE * np.abs(state.carry.w).max(initial=0.0), state.carry.w, 0.0)
    return _at_mode(problem, Mode(state.carry.likelihood, w, state.carry.level), penalty, converged, trace)


def reweighted_l1(problem: Problem, lasso: Lasso, settings: Settings) -> Result:
    """ARD by iteratively reweighted L1; with a price the search goes on from there."""
    trace, n = Trace(), problem.design.n_columns

    def step(state: tuple[Mode, FloatArray, float]) -> tuple[tuple[Mode, FloatArray, float], Info]:
        mode, root_z, last = state
        mode, _ = L1Problem(problem, root_z, lasso).run(mode, Trace(), INNER)
        fit = _at_scales(problem, mode, root_z)
        z = Candidates.of(problem, fit).S
        info = Info(fit.evidence, abs(fit.evidence - last), len(fit.active), fit.view.posterior.jitter)
        return (mode, np.sqrt(np.maximum(z, MIN_Z)), fit.evidence), info

    first = (problem.base_mode(n), np.ones(n), -np.inf)
    (mode, root_z, _), converged = iterate(first, step, trace=trace, settings=settings)
    fit = _at_scales(problem, mode, root_z)
    if not is_free(problem.price):
        return _searched(problem, fit, trace, settings)
    return _result(Search(problem, settings.tol), SearchState(fit), converged, trace)


def _w_step(problem: Problem, rule: str) -> Callable[[Columns, FloatArray, Point], WStep]:
    """The w-step of a point, after which the likelihood's own parameters are re-estimated."""

    def step(design: Columns, alpha: FloatArray, point: Point) -> WStep:
        found = point.step(problem, design, alpha)
        return found._replace(point=found.point.relearned(problem, found.view, NOISE_RULES[rule]))

    return step


def _in_batch(problem: Problem, rule: str, trace: Trace, settings: Settings) -> tuple[batch.State[Point], bool]:
    """The batch iteration, from all usable columns."""
    first = batch.start(problem, problem.start(int(problem.design.usable.sum())))
    return batch.run(
        problem, first, w_step=_w_step(problem, rule), rule=RULES["ard"][rule], trace=trace, settings=settings
    )


def _final_model(problem: Problem, state: batch.State[Any]) -> ScaleFit:
    """The end of a batch iteration, at its own final view."""
    point = state.carry.settled(problem, state.design, state.alpha)
    view = point.view(problem, state.design, state.alpha)
    value = point.value(problem, state.design, view, state.alpha)
    evidence = value + problem.prior.of(state.active).scale_term(state.alpha)
    return ScaleFit(state.active, state.alpha, point, state.design, view, evidence, True, 0.0)


def _at_scales(problem: Problem, mode: Mode, root_z: FloatArray) -> ScaleFit:
    """The Gaussian model that belongs to an L1 mode: α = √z / |w|."""
    active = np.flatnonzero(mode.w)
    alpha = np.maximum(root_z[active] / np.abs(mode.w[active]), problem.prior.min_alpha)
    state = batch.State(problem.design.keep(active), active, alpha, mode.keep(mode.w != 0))
    return _final_model(problem, state)


def _searched(problem: Problem, start: ScaleFit, trace: Trace, settings: Settings) -> Result:
    """Search from a start and, with a price, from nothing too: the end depends on it, and the better one is taken."""
    here = Search(problem, settings.tol)
    best, converged = search(problem, start, trace, settings)
    if not here.is_free and len(start.active):
        other = Trace()
        rival, arrived = search(problem, cold_start(problem), other, settings)
        if arrived and rival.fit.priced(problem) > best.fit.priced(problem):
            best, converged, trace = rival, True, other
    result = _result(here, best, converged and best.fit.converged, trace)
    return replace(result, converged=result.converged and result.gap <= max(here.min_rise, settings.tol))


def _result(search: Search, at: SearchState, converged: bool, trace: Trace) -> Result:
    """Evidence, worth of every candidate and certificate of a model, all at its own final view."""
    worth, gap = search.certificate(at)
    fit = at.fit
    return _described(search.problem, fit, worth, gap, converged, trace)


def _described(problem: Problem, fit: ScaleFit, worth: FloatArray, gap: float, converged: bool, trace: Trace) -> Result:
    view = fit.view
    return Result(
        active=fit.active,
        alpha=fit.alpha,
        posterior=replace(view.posterior, mean=fit.point.weights(problem, view)),
        level=fit.point.level_at(problem, view),
        level_variance=view.level_variance,
        origin=view.design.offset,
        likelihood=fit.point.likelihood,
        log_evidence=fit.evidence,
        worth=worth,
        gap=gap,
        converged=converged,
        trace=trace,
    )


def _unsearched(problem: Problem, state: batch.State[Any], converged: bool, trace: Trace) -> Result:
    """A model whose columns were not chosen: no column has a worth of its own."""
    n, gap = problem.design.n_columns, trace.infos[-1].change
    return _described(problem, _final_model(problem, state), np.zeros(n), gap, converged, trace)


def _at_mode(problem: Problem, mode: Mode, penalty: float, converged: bool, trace: Trace) -> Result:
    """The Laplace prior's posterior around its mode: Gaussian scales α = penalty / |w| for what is not zero.

    The log evidence of such a model is not available; the log joint density of observations and weights stands for it.
    """
    active, n = np.flatnonzero(mode.w), len(mode.w)
    design, kept = problem.design.keep(active), mode.keep(mode.w != 0)
    alpha = penalty / np.abs(kept.w)
    view = kept.view(problem, design, alpha)
    joint = L1Problem(problem, np.full(n, penalty), lambda *_: mode.w).log_joint(mode)
    joint += n * float(np.log(penalty / 2))
    fit = ScaleFit(active, alpha, kept, design, view, joint, converged, 0.0)
    described = _described(problem, fit, np.zeros(n), trace.infos[-1].change, converged, trace)
    return replace(described, posterior=replace(view.posterior, mean=kept.w))
