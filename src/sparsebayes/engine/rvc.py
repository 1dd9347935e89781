"""The fast sequential search for two classes on kernel dictionaries (Tipping & Faul 2003; mathematics, section 4).

As in engine/linearised.py one basis is added at a time through a local Gaussian view, and it stays only if the
evidence has really risen. But a dictionary of kernel columns is as wide as it is long, has no price, and neighbouring
columns can stand in for each other. So passes over all candidates are few, each is one product with the design, and
between two of them only a pool of the most promising is looked at; after each addition precisions and view converge
together in the small space of the kept weights, where a basis that the view finds worthless leaves. Where that costs
little the search begins with a crowd of columns instead of none.

The fixed point is Tipping's, α(μ² + Σ_mm) = 1 under the view. With Laplace's approximation that is not quite a maximum,
because the view moves with α: evidence may fall a little when a model is settled exactly (the "survey" of a trace).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sparsebayes.core.evidence import best_moves
from sparsebayes.core.scales import ard_candidate, gain, is_flat
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.data.dense import NARROW, DenseRows
from sparsebayes.data.lowrank import LowRankRows
from sparsebayes.engine.bernoulli import BernoulliProblem, predictor
from sparsebayes.engine.candidates import by_promise
from sparsebayes.engine.linearised import Model
from sparsebayes.engine.loop import Info, Settings, Trace, iterate
from sparsebayes.engine.sequential import beginning, empty, go, way_from
from sparsebayes.engine.settling import Factors, Settled, Settler, View, settler
from sparsebayes.engine.slr import Result, first_carry

POOL = 128
"""Candidates that are looked at between two passes over all of them."""
ENOUGH = 0.3
"""The pool is used up when none in it promises this share of what the best promised when it was filled."""
CROWD_NOISE = 0.03
"""Noise, as a share of the labels' variance, of the regression on them that says with which columns to begin."""
LOOSE = 0.03
"""While more nats than this are to be gained, models are settled to that (also in γ log α) and passes are quick."""

NO_COLUMNS = np.empty(0, dtype=np.intp)
NOTHING = Factors(np.empty(0), np.empty(0), np.empty(0, dtype=bool))
"""What was seen of candidates before the first pass."""


@dataclass(frozen=True)
class Pool:
    """Candidates that are worth a look before the next pass over all."""

    columns: IntArray
    rows: DenseRows | LowRankRows
    enough: float
    """Gain below which the pool is used up."""


@dataclass(frozen=True)
class State:
    """Where the search stands."""

    now: Settled
    exact: Settled
    """The last one that was settled exactly."""
    seen: Factors
    """All candidates under its view: the last full pass."""
    pool: Pool
    added: frozenset[int] = frozenset()
    """What has been added since the last exact model."""
    refused: frozenset[int] = frozenset()
    """What was tried since and did not bring what the view promised."""


@dataclass(frozen=True)
class Search:
    """A problem, and how exactly it is to be solved."""

    problem: BernoulliProblem
    tol: float

    @cached_property
    def settler(self) -> Settler:
        """What settles models and looks at candidates, compiled where that can be."""
        return settler(self.problem)

    @cached_property
    def has_hyper_prior(self) -> bool:
        """Whether Gamma(a, b) says anything; asked at every step."""
        return not is_flat(self.problem.a, self.problem.b)

    def settle(self, model: Model, Phi: FloatArray, tol: float) -> Settled:
        """Converge precisions and view of a model on its columns Φ."""
        return self.settler.settle(model, Phi, tol)

    def factors(self, view: View, rows: DenseRows | LowRankRows) -> Factors:
        """S and Q of candidates under a view."""
        return self.settler.factors(view, rows)

    def additions(self, state: State, columns: IntArray, found: Factors) -> tuple[FloatArray, FloatArray]:
        """Best precision of candidates, and the nats that the view promises for adding them."""
        rate = self.problem.b[columns] if self.has_hyper_prior else 0.0
        alpha = ard_candidate(found.S, found.Q, self.problem.a, rate)
        alpha = np.maximum(alpha, self.problem.least_alpha)
        brings = gain(alpha, found.S, found.Q)
        barred = np.zeros(self.problem.rows.n_columns, dtype=bool)
        barred[[*state.now.model.active, *state.refused]] = True
        brings[found.copy | barred[columns]] = 0.0
        return alpha, brings

    def step(self, state: State) -> tuple[State, Info]:
        """Add the best of the pool; when that is used up, fill it again, or survey all if nothing else is hoped for."""
        (model, view, _), pool = state.now, state.pool
        alpha, brings = self.additions(state, pool.columns, self.factors(view, pool.rows))
        best = int(np.argmax(brings))
        if brings[best] <= pool.enough:
            return self.surveyed(state) if pool.enough <= ENOUGH * LOOSE else self.refilled(state)
        j, promise = int(pool.columns[best]), float(brings[best])
        grown = Model(np.append(model.active, j), np.append(model.alpha, alpha[best]), model.carry.grow())
        there = self.settle(grown, self.settler.grow(view.Phi, pool.rows.columns(np.array([best]))), LOOSE)
        if there.model.evidence <= model.evidence + self.tol:
            return replace(state, refused=state.refused | {j}), _info(state.now, promise, "refuse")
        return replace(state, now=there, added=state.added | {j}), _info(there, promise, "add")

    def refilled(self, state: State) -> tuple[State, Info]:
        """The candidates whose gain would be largest if S were as at the last full pass: Q alone is a quick pass."""
        view = state.now.view
        Q = self.problem.rows.project(view.sites.shift - view.sites.precision * view.eta)
        seen = state.seen._replace(Q=Q)
        pool = self.pooled(self.additions(state, np.arange(len(Q)), seen)[1], seen)
        _, brings = self.additions(state, pool.columns, self.factors(view, pool.rows))
        best = float(brings.max())
        if best <= LOOSE:
            return self.surveyed(state)
        return replace(state, pool=replace(pool, enough=ENOUGH * best)), _info(state.now, best, "refill")

    def surveyed(self, state: State) -> tuple[State, Info]:
        """Settle exactly and make a full pass.

        What looked like a rise may be none once all is settled. Then the additions since the last exact model are taken
        back and refused, so that each exact model is better than the one before, and the search ends.
        """
        now = self.settle(state.now.model, state.now.view.Phi, min(self.tol, LOOSE))
        if now.model.evidence > state.exact.model.evidence + self.tol:
            seen = self.factors(now.view, self.problem.rows)
            state = replace(state, now=now, exact=now, seen=seen, added=frozenset(), refused=frozenset())
        else:
            state = replace(state, now=state.exact, added=frozenset(), refused=state.refused | state.added)
        _, brings = self.additions(state, np.arange(self.problem.rows.n_columns), state.seen)
        best = float(brings.max())
        pool = replace(self.pooled(brings, state.seen), enough=max(ENOUGH * best, self.tol))
        return replace(state, pool=pool), _info(state.now, best, "survey")

    def pooled(self, brings: FloatArray, seen: Factors) -> Pool:
        """The candidates that promise most."""
        columns = np.sort(by_promise(brings, seen.S, seen.Q)[:POOL])
        return Pool(columns, self.problem.rows.keep(columns), 0.0)

    def certificate(self, state: State) -> tuple[FloatArray, float]:
        """Worth of every candidate, and the nats that the best single change would still bring."""
        problem, (model, view, _) = self.problem, state.now
        found = state.seen if state.now is state.exact else self.factors(view, problem.rows)
        s, q, k, active = found.S.copy(), found.Q.copy(), len(model.alpha), model.active
        var = (view.root**2).sum(axis=0)[:k]
        s[active], q[active] = np.clip(1 - model.alpha * var, 0.0, 1.0) / var, view.mean[:k] / var
        worth = gain(ard_candidate(s, q, problem.a, problem.b), s, q)
        alpha = np.full(len(s), np.inf)
        alpha[active] = model.alpha
        moves = best_moves(s, q, alpha, 0.0, problem.a, problem.b)
        as_far = gain(np.full(len(s), problem.least_alpha), s, q) - gain(alpha, s, q) if problem.least_alpha else 0.0
        brings = np.where(moves.alpha < problem.least_alpha, as_far, moves.gain)
        barred = (found.copy | np.isin(np.arange(len(s)), list(state.refused))) & np.isinf(alpha)
        return worth, float(np.where(barred, 0.0, brings).max(initial=0.0))


def _info(settled: Settled, change: float, action: str) -> Info:
    return Info(settled.model.evidence, change, len(settled.model.active), settled.view.jitter, action)


def crowd(problem: BernoulliProblem) -> IntArray:
    """Columns to begin with, too many of them: those that are not worth it leave when the model is settled.

    As in regression (`sequential.from_nothing`), columns that pay together come in together: the labels are regressed
    on the columns, under the view of the model without weights, with far too little noise. Of wide dictionaries that
    would take longer than the whole search.
    """
    rows = problem.rows
    if not isinstance(rows, DenseRows) or rows.n_columns > NARROW:
        return NO_COLUMNS
    view = problem.gaussian_view(problem.sites(rows.keep(NO_COLUMNS), problem.base_mode(0)))
    way = way_from(view, empty(CROWD_NOISE))
    go(way, beginning(view), trace=Trace(), max_iter=rows.n_columns, callback=None)
    return way.end().solution().active


def solve(problem: BernoulliProblem, inference: str, settings: Settings, near: Result | None = None) -> Result:
    """Search from a crowd of columns, each with as much to say as the other, or from where another solver has ended."""
    search = Search(problem, settings.tol)
    if near is None:
        active = crowd(problem)
        alpha = problem.rows.keep(active).column_square(problem.weight) / problem.weight.sum()
    else:
        active, alpha = near.active, near.alpha
    w_step, carry = first_carry(problem, inference, len(active))
    first = search.settle(Model(active, alpha, carry), search.settler.formed(active), LOOSE)
    never = replace(first.model, evidence=-np.inf)
    start = State(first, first._replace(model=never), NOTHING, Pool(NO_COLUMNS, problem.rows, np.inf))
    trace = Trace() if near is None else Trace(near.trace.infos.copy())
    state, converged = iterate(search.surveyed(start)[0], search.step, trace=trace, **vars(settings))
    model, rows = state.now.model, problem.rows.keep(state.now.model.active)
    found = w_step(rows, model.alpha, model.carry)
    where = predictor(rows, problem.sites(rows, found.carry), model.alpha, problem.flat_intercept)
    evidence = found.value + problem.scale_term(model.active, model.alpha)
    worth, gap = search.certificate(state)
    converged = converged and state.now.arrived and gap <= settings.tol
    return Result(model.active, model.alpha, where, evidence, worth, gap, converged, trace)
