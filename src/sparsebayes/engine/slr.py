"""Sparse logistic regression: which loops a prior and an inference stand for."""

from dataclasses import dataclass, replace

import numpy as np

from sparsebayes.core.posterior import GaussianPosterior
from sparsebayes.core.scales import ScaleRule, em, mackay, shared_em, shared_mackay
from sparsebayes.core.types import FloatArray, IntArray, Scalar
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import batch
from sparsebayes.engine.bernoulli import BernoulliProblem, Contact, Mode, Predictor, VariationalProblem, predictor
from sparsebayes.engine.l1 import L1Problem
from sparsebayes.engine.linearised import Carry, Model, Search, Step
from sparsebayes.engine.loop import Info, Settings, Trace, iterate
from sparsebayes.engine.reweighted import Lasso

RULES: dict[str, dict[str, ScaleRule]] = {
    "ard": {"fixed-point": mackay, "em": em},
    "ridge": {"fixed-point": shared_mackay, "em": shared_em},
}
START_XI = 2.0
MIN_Z = 1e-6
"""Least squared penalty of the reweighted L1 (columns have unit scale): on separable data it would vanish."""


@dataclass(frozen=True)
class Result:
    """A fitted two-class model in the solver's units."""

    active: IntArray
    alpha: FloatArray
    predictor: Predictor
    log_evidence: float
    worth: FloatArray
    gap: float
    converged: bool
    trace: Trace

    @property
    def posterior(self) -> GaussianPosterior:
        """Posterior of the kept weights."""
        return self.predictor.posterior


def first_carry(problem: BernoulliProblem, inference: str, n_weights: int) -> tuple[Step, Carry]:
    """The w-step of an inference, and what it starts from."""
    if inference == "variational":
        return problem.jaakkola_step, Contact(np.full(len(problem.t), START_XI))
    return problem.laplace_step, problem.base_mode(n_weights)


def sparse(problem: BernoulliProblem, inference: str, rule: str, settings: Settings) -> Result:
    """ARD. Without a price the textbook's batch iteration; with one, the search that controls discoveries."""
    trace = Trace()
    if problem.price > 0:
        w_step, carry = first_carry(problem, inference, 0)
        nothing = Model(np.empty(0, dtype=np.intp), np.empty(0), carry)
        return _searched(problem, w_step, nothing, trace, settings)
    w_step, carry = first_carry(problem, inference, int(np.isfinite(problem.rows.scale).sum()))
    state, converged = batch.run(
        problem, batch.start(problem, carry), w_step=w_step, rule=RULES["ard"][rule], trace=trace, **vars(settings)
    )
    model = Model(state.active, state.alpha, state.carry, state.objective)
    return _result(Search(problem, w_step, **vars(settings)), model, converged, trace)


def ridge(problem: BernoulliProblem, inference: str, rule: str, settings: Settings) -> Result:
    """One precision that all weights share; nothing is dropped."""
    trace = Trace()
    n = problem.rows.n_columns
    w_step, carry = first_carry(problem, inference, n)
    # The prior of the predictor has variance one at the start, as with standardised columns in `batch.start`.
    alpha = float(problem.rows.weighted(np.sqrt(problem.weight)).column_square().sum() / problem.weight.sum())
    rows = problem.rows.keep(np.arange(n))
    state = batch.State(rows, np.arange(n), np.full(n, alpha), carry)
    state, converged = batch.run(
        problem, state, w_step=w_step, rule=RULES["ridge"][rule], trace=trace, gone=0.0, **vars(settings)
    )
    found = w_step(rows, state.alpha, state.carry)
    where = predictor(rows, problem.sites(rows, found.carry), state.alpha, problem.flat_intercept)
    evidence = found.value + problem.scale_term(state.active, state.alpha)
    gap = trace.infos[-1].change
    return Result(state.active, state.alpha, where, evidence, np.zeros(n), gap, converged, trace)


def l1(problem: BernoulliProblem, penalty: float, lasso: Lasso, settings: Settings) -> Result:
    """Laplace prior: the mode of largest posterior density, component by component."""
    trace = Trace()
    n = problem.rows.n_columns
    l1_problem = L1Problem(problem, np.full(n, penalty), lasso)
    mode, converged = l1_problem.run(problem.base_mode(n), trace=trace, **vars(settings))
    return _at_mode(problem, mode, penalty, converged, trace)


def l1_by_scales(problem: BernoulliProblem, penalty: float, settings: Settings) -> Result:
    """Laplace prior as a scale mixture: Laplace inference with the EM rule α ← penalty / |μ|."""
    trace = Trace()

    def rule(mean: FloatArray, var: FloatArray, gamma: FloatArray, a: Scalar, b: FloatArray | Scalar) -> FloatArray:
        return np.asarray(penalty / np.maximum(np.abs(mean), 1e-12 * np.abs(mean).max(initial=1e-280)))

    state = batch.start(problem, problem.base_mode(problem.rows.n_columns))
    state, converged = batch.run(
        problem, state, w_step=problem.laplace_step, rule=rule, trace=trace, gone=0.0, **vars(settings)
    )
    w = np.where(np.abs(state.carry.w) > 1e-7 * np.abs(state.carry.w).max(initial=0.0), state.carry.w, 0.0)
    return _at_mode(problem, replace(state.carry, w=w), penalty, converged, trace)


def reweighted(problem: BernoulliProblem, lasso: Lasso, settings: Settings) -> Result:
    """ARD by iteratively reweighted L1; with a price the search goes on from there."""
    trace = Trace()
    n = problem.rows.n_columns
    search = Search(problem, problem.laplace_step, **vars(settings))
    ones = np.ones(n)
    first = (problem.base_mode(n), ones, Model(np.empty(0, dtype=np.intp), np.empty(0), problem.base_mode(0)))

    def step(state: tuple[Mode, FloatArray, Model]) -> tuple[tuple[Mode, FloatArray, Model], Info]:
        mode, root_z, last = state
        mode, _ = L1Problem(problem, root_z, lasso).run(mode, trace=Trace(), tol=1e-8, max_iter=100)
        active = np.flatnonzero(mode.w)
        alpha = np.maximum(root_z[active] / np.abs(mode.w[active]), problem.least_alpha)
        found = problem.laplace_step(problem.rows.keep(active), alpha, mode.keep(mode.w != 0))
        model = Model(active, alpha, found.carry, found.value + problem.scale_term(active, alpha))
        z = search.candidates(model).S
        info = Info(model.evidence, abs(model.evidence - last.evidence), len(active), found.posterior.jitter)
        return (mode, np.sqrt(np.maximum(z, MIN_Z)), model), info

    (_, _, model), converged = iterate(first, step, trace=trace, **vars(settings))
    if problem.price > 0:
        return _searched(problem, problem.laplace_step, model, trace, settings)
    return _result(search, model, converged, trace)


def _searched(problem: BernoulliProblem, w_step: Step, start: Model, trace: Trace, settings: Settings) -> Result:
    """Search from a start and, because the end depends on it, from nothing too; the better end is taken."""
    search = Search(problem, w_step, **vars(settings))
    model, converged = search.run(start, trace)
    if len(start.active):
        other = Trace()
        rival, arrived = search.run(Model(np.empty(0, dtype=np.intp), np.empty(0), problem.base_mode(0)), other)
        if arrived and rival.priced(problem.price) > model.priced(problem.price):
            model, converged, trace = rival, True, other
    return _result(search, model, converged, trace)


def _result(search: Search, model: Model, converged: bool, trace: Trace) -> Result:
    """Evidence, worth of every candidate and certificate of a model, all at its own final view."""
    problem = search.problem
    rows = problem.rows.keep(model.active)
    found = search.w_step(rows, model.alpha, model.carry)
    where = predictor(rows, problem.sites(rows, found.carry), model.alpha, problem.flat_intercept)
    evidence = found.value + problem.scale_term(model.active, model.alpha)
    candidates = search.candidates(replace(model, carry=found.carry))
    moves = candidates.moves()
    worth, gain = moves.worth, moves.gain
    gain[model.active[model.alpha <= problem.least_alpha]] = 0.0  # they would go on, but may not
    for j, other in search.without_doubtful(model, worth).items():
        worth[j] = evidence - other.evidence
        gain[j] = max(problem.price - worth[j], 0.0)
    gap = float(gain.max(initial=0.0))
    return Result(model.active, model.alpha, where, evidence, worth, gap, converged, trace)


def variational_bayes(problem: VariationalProblem, settings: Settings) -> Result:
    """Variational Bayes with Gamma(a, b) priors on the precisions, one for each weight or one for all."""
    trace = Trace()
    n = problem.rows.n_columns
    rows = problem.rows.keep(np.arange(n))
    rule = shared_em if problem.shared else em
    # As in the original: precisions at their prior mean, ξ at zero.
    state = batch.State(rows, np.arange(n), problem.a / problem.b, Contact(np.zeros(len(problem.t))))
    state, converged = batch.run(
        problem, state, w_step=problem.jaakkola_step, rule=rule, trace=trace, gone=0.0, **vars(settings)
    )
    found = problem.jaakkola_step(rows, state.alpha, state.carry)
    where = predictor(rows, problem.sites(rows, state.carry), state.alpha, problem.flat_intercept)
    bound = found.value + problem.scale_term(state.active, state.alpha)
    return Result(state.active, state.alpha, where, bound, np.zeros(n), trace.infos[-1].change, converged, trace)


def _at_mode(problem: BernoulliProblem, mode: Mode, penalty: float, converged: bool, trace: Trace) -> Result:
    """The Laplace prior's posterior around its mode: Gaussian scales α = penalty / |w| for what is not zero.

    The log evidence of such a model is not available; the log joint density of classes and weights stands for it.
    """
    active = np.flatnonzero(mode.w)
    rows: DenseRows = problem.rows.keep(active)
    kept = mode.keep(mode.w != 0)
    alpha = penalty / np.abs(kept.w)
    where = predictor(rows, problem.sites(rows, kept), alpha, problem.flat_intercept)
    where = replace(where, posterior=replace(where.posterior, mean=kept.w))
    joint = L1Problem(problem, np.full(len(mode.w), penalty), lambda *_: mode.w).log_joint(mode)
    joint += len(mode.w) * float(np.log(penalty / 2))
    gap = trace.infos[-1].change
    return Result(active, alpha, where, joint, np.zeros(len(mode.w)), gap, converged, trace)
