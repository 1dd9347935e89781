"""The fast sequential search for two classes on kernel dictionaries (Tipping & Faul 2003; mathematics, section 4).

As in solvers/linearised.py one basis is added at a time through a local Gaussian view, and it stays only if the
evidence has really risen. But a dictionary of kernel columns is as wide as it is long, has no price, and neighbouring
columns can stand in for each other. So passes over all candidates are few, each is one product with the design, and
between two of them only a pool of the most promising is looked at; after each addition precisions and view converge
together in the small space of the kept weights, where a basis that the view finds worthless leaves.

The fixed point is Tipping's, α(μ² + Σ_mm) = 1 under the view. With Laplace's approximation that is not quite a maximum,
because the view moves with α: evidence may fall a little when a model is settled exactly (the "survey" of a trace).
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sparsebayes.core.evidence import best_moves, integral
from sparsebayes.core.linalg import factorise
from sparsebayes.core.scales import TINY, ard_candidate, gain
from sparsebayes.core.sites import Sites, bernoulli_log_likelihood, jaakkola, laplace
from sparsebayes.core.types import BoolArray, FloatArray, IntArray, Scalar
from sparsebayes.data.dense import DenseRows
from sparsebayes.data.lowrank import LowRankRows
from sparsebayes.solvers.bernoulli import BernoulliProblem, Contact, Mode, predictor
from sparsebayes.solvers.candidates import COPY
from sparsebayes.solvers.linearised import Carry, Model
from sparsebayes.solvers.loop import Info, Settings, Trace, iterate
from sparsebayes.solvers.slr import Result, first_carry

POOL = 64
"""Candidates that are looked at between two passes over all of them."""
ENOUGH = 0.3
"""The pool is used up when none in it promises this share of what the best promised when it was filled."""
LOOSE = 0.03
"""While more nats than this are to be gained, models are settled to that (also in γ log α) and passes are quick."""
SETTLING = 2000
"""Steps that precisions and view may take to settle."""
LONGEST = 3.0
"""Longest step of log α."""
SLOWEST = 0.05
"""Least share of a step that is taken; it is halved each time that the steps turn back, and grows when they don't."""
NEAR = 0.1
"""Nats by which the evidence may still move when a basis is judged; far from the mode the view misjudges."""
LONGEST_LEAP = 30.0
"""Longest leap of the contact points, in steps."""
ROUNDING = 1e-13
"""Share of the penalised likelihood that a step may seem to lose: at the mode all steps gain less than that."""
LEAST_CURVATURE = 1e-3
"""Curvature in log α that Newton's method at least assumes."""


class View(NamedTuple):
    """The local Gaussian view of a model and the posterior under it; a flat intercept is a last column, of ones."""

    Phi: FloatArray
    sites: Sites
    mean: FloatArray
    root: FloatArray
    """Σ = rootᵀ root."""
    logdet: float
    jitter: float

    @property
    def eta(self) -> FloatArray:
        """Posterior mean of the linear predictor."""
        return np.asarray(self.Phi @ self.mean)


class Factors(NamedTuple):
    """S and Q of candidates under a view, and which of them are copies of a basis in the model."""

    S: FloatArray
    Q: FloatArray
    copy: BoolArray


class Settled(NamedTuple):
    """A model, its view, and whether precisions and view have converged."""

    model: Model
    view: View
    arrived: bool


@dataclass(frozen=True)
class Pool:
    """Candidates that are worth a look before the next pass over all."""

    columns: IntArray
    rows: DenseRows
    enough: float
    """Gain below which the pool is used up."""


@dataclass(frozen=True)
class State:
    """Where the search stands."""

    now: Settled
    exact: Settled
    """The last one that was settled exactly."""
    S: FloatArray
    """S of all candidates at the last full pass."""
    pool: Pool
    added: frozenset[int] = frozenset()
    """What has been added since the last exact model."""
    refused: frozenset[int] = frozenset()
    """What was tried since and did not bring what the view promised."""


def newton_scales(mean: FloatArray, Sigma: FloatArray, alpha: FloatArray, a: Scalar, b: FloatArray) -> FloatArray:
    """Newton's step of the view's log evidence in log α.

    With x = log α the gradient is ½(1 - α(μ² + Σ_mm)) + a - bα, and the second derivatives follow from
    ∂μ/∂x_j = -α_j μ_j Σ_j and ∂Σ/∂x_j = -α_j Σ_j Σ_jᵀ. Where the evidence is not concave the step goes uphill all the
    same, because the curvature is taken by its absolute value.
    """
    energy = alpha * (mean**2 + np.diag(Sigma))
    slope = 0.5 * (1 - energy) + a - b * alpha
    curvature = -0.5 * np.multiply.outer(alpha, alpha) * Sigma * (2 * np.multiply.outer(mean, mean) + Sigma)
    curvature.flat[:: len(alpha) + 1] += 0.5 * energy + b * alpha
    values, vectors = np.linalg.eigh(curvature)
    return np.asarray(vectors @ ((slope @ vectors) / np.maximum(np.abs(values), LEAST_CURVATURE)))


def weighted_square(rows: DenseRows | LowRankRows, weight: FloatArray) -> FloatArray:
    """diag(Φᵀ diag(weight) Φ), of a dense design in one pass over X; what centring leaves no digits of is formed."""
    if isinstance(rows, LowRankRows):
        return rows.weighted(np.sqrt(weight)).column_square()
    weight = weight * rows.root_weight**2
    raw = np.einsum("n,nm,nm->m", weight, rows.X, rows.X)
    square = raw + rows.mean * (rows.mean * weight.sum() - 2 * (weight @ rows.X)) if rows.mean.any() else raw
    lost = np.flatnonzero(square < 1e-6 * raw)
    square[lost] = weight @ (rows.X[:, lost] - rows.mean[lost]) ** 2
    return np.asarray(square / rows.scale**2)


@dataclass(frozen=True)
class Search:
    """A problem, and how exactly it is to be solved."""

    problem: BernoulliProblem
    tol: float

    def formed(self, active: IntArray) -> FloatArray:
        """Φ of the kept columns, with a column of ones last where the intercept is flat."""
        Phi = self.problem.rows.columns(active)
        return np.column_stack([Phi, np.ones(len(Phi))]) if self.problem.flat_intercept else Phi

    def whole(self, mode: Mode) -> FloatArray:
        """The weights, and the intercept where it is flat."""
        return np.append(mode.w, mode.intercept) if self.problem.flat_intercept else mode.w

    def view(self, Phi: FloatArray, model: Model) -> View:
        """Sites where the model's carry says, and the posterior under them."""
        t, weight, k = self.problem.t, self.problem.weight, len(model.alpha)
        if isinstance(model.carry, Mode):
            sites = laplace(t, Phi @ self.whole(model.carry), weight)
        else:
            sites = jaakkola(t, model.carry.xi, weight)
        inner = Phi.T @ (np.asarray(sites.precision)[:, None] * Phi)
        inner.flat[: k * (len(inner) + 1) : len(inner) + 1] += model.alpha
        factor = factorise(inner)
        mean = factor.solve(Phi.T @ sites.shift)
        return View(Phi, sites, mean, factor.inverse_root(), -factor.logdet, factor.jitter)

    def evidence(self, model: Model, view: View) -> float:
        """Log evidence (the bound, or Laplace's approximation): the integral over the weights and a flat intercept."""
        k = len(model.alpha)
        value = integral(view.sites.value(view.eta), view.mean[:k], model.alpha, view.logdet)
        value += self.problem.scale_term(model.active, model.alpha)
        return value + 0.5 * float(np.log(2 * np.pi)) * (len(view.mean) - k)

    def settle(self, model: Model, tol: float) -> Settled:
        """Converge precisions and view together; a basis that the view finds worthless leaves.

        Each turn takes one step of the view (Newton's method to the mode, or new contact points) and one of the
        precisions. The evidence is the view's own integral, which at a distance δ from the mode is wrong by δ³.
        """
        problem, Phi = self.problem, self.formed(model.active)
        model = replace(model, carry=self.revived(Phi, model))
        pace, last, way = 1.0, np.zeros(len(model.alpha)), [model.carry]
        for _ in range(SETTLING):
            view = self.view(Phi, model)
            value = self.evidence(model, view)
            rise, model = value - model.evidence, replace(model, evidence=value)
            k, alpha, rate = len(model.alpha), model.alpha, problem.b[model.active]
            mean, Sigma = view.mean[:k], (view.root.T @ view.root)[:k, :k]
            var = np.diag(Sigma)
            gamma = np.clip(1 - alpha * var, 0.0, 1.0)
            s, q = gamma / var, mean / var
            worthless = gain(ard_candidate(s, q, problem.a, rate), s, q) <= 0
            if worthless.any() and abs(rise) <= NEAR:
                stays = np.arange(k) != np.argmin(np.where(worthless, gain(alpha, s, q), np.inf))
                model, last = Model(model.active[stays], alpha[stays], model.carry.keep(stays)), last[stays]
                Phi = self.formed(model.active)
                way = [self.revived(Phi, model)]
                model = replace(model, carry=way[0])
                continue
            step = np.clip(newton_scales(mean, Sigma, alpha, problem.a, rate), -LONGEST, LONGEST)
            step = np.maximum(step, np.log(problem.least_alpha / alpha) if problem.least_alpha else -LONGEST)
            if abs(rise) <= tol and np.max(gamma * np.abs(step), initial=0.0) <= tol:
                return Settled(model, view, True)
            pace = max(pace / 2, SLOWEST) if step @ last < 0 else min(1.1 * pace, 1.0)
            last = pace * step
            way = _leapt([*way, self.followed(model, view)])
            model = replace(model, alpha=alpha * np.exp(last), carry=way[-1])
        return Settled(model, view, False)

    def followed(self, model: Model, view: View) -> Carry:
        """The next view: contact points where the bound is tightest, or the farthest safe point towards the mode."""
        if isinstance(model.carry, Contact):
            return Contact(np.sqrt(view.eta**2 + ((view.Phi @ view.root.T) ** 2).sum(axis=1)))
        goal = Mode(view.mean[: len(model.alpha)], float(view.mean[len(model.alpha) :].sum()))
        value = self.penalised(view.Phi, model.alpha, model.carry)
        least, way = value - ROUNDING * abs(value), model.carry.towards(goal)
        return next((there for there in way if self.penalised(view.Phi, model.alpha, there) >= least), model.carry)

    def revived(self, Phi: FloatArray, model: Model) -> Carry:
        """The model without weights where that is the better start: with all rows saturated there is no curvature."""
        if isinstance(model.carry, Contact):
            return model.carry
        modes = model.carry, self.problem.base_mode(len(model.active))
        return max(modes, key=lambda mode: self.penalised(Phi, model.alpha, mode))

    def penalised(self, Phi: FloatArray, alpha: FloatArray, mode: Mode) -> float:
        """log p(t | w) - ½ wᵀAw."""
        fit = self.problem.weight @ bernoulli_log_likelihood(self.problem.t, Phi @ self.whole(mode))
        return float(fit - 0.5 * (alpha @ mode.w**2))

    def factors(self, view: View, rows: DenseRows | LowRankRows) -> Factors:
        """S = φᵀBφ - φᵀBΦΣΦᵀBφ and Q = φᵀ(h - BΦμ) of candidates, by one product with their columns."""
        b = np.asarray(view.sites.precision)
        product = rows.project(np.column_stack([b[:, None] * view.Phi, view.sites.shift - b * view.eta]))
        across, Q = product[:, :-1], product[:, -1]
        energy = weighted_square(rows, b)
        S = np.maximum(energy - ((across @ view.root.T) ** 2).sum(axis=1), 0.0)
        copy = across**2 >= COPY**2 * np.multiply.outer(energy, b @ view.Phi**2)
        return Factors(S, Q, np.asarray(copy.any(axis=1)))

    def additions(self, state: State, columns: IntArray, found: Factors) -> tuple[FloatArray, FloatArray]:
        """Best precision of candidates, and the nats that the view promises for adding them."""
        alpha = ard_candidate(found.S, found.Q, self.problem.a, self.problem.b[columns])
        alpha = np.maximum(alpha, self.problem.least_alpha)
        brings = gain(alpha, found.S, found.Q)
        brings[found.copy | np.isin(columns, [*state.now.model.active, *state.refused])] = 0.0
        return alpha, brings

    def step(self, state: State) -> tuple[State, Info]:
        """Add the best of the pool; when that is used up, fill it again."""
        (model, view, _), pool = state.now, state.pool
        alpha, brings = self.additions(state, pool.columns, self.factors(view, pool.rows))
        best = int(np.argmax(brings))
        if brings[best] <= pool.enough:
            return self.refilled(state)
        j, promise = int(pool.columns[best]), float(brings[best])
        grown = Model(np.append(model.active, j), np.append(model.alpha, alpha[best]), model.carry.grow())
        there = self.settle(grown, LOOSE)
        if there.model.evidence <= model.evidence + self.tol:
            return replace(state, refused=state.refused | {j}), _info(state.now, promise, "refuse")
        return replace(state, now=there, added=state.added | {j}), _info(there, promise, "add")

    def refilled(self, state: State) -> tuple[State, Info]:
        """The candidates whose gain would be largest if S were as at the last full pass: Q alone is a quick pass."""
        view = state.now.view
        Q = self.problem.rows.project(view.sites.shift - view.sites.precision * view.eta)
        _, hopes = self.additions(state, np.arange(len(Q)), Factors(state.S, Q, np.zeros(len(Q), dtype=bool)))
        pool = self.pooled(hopes)
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
        now = self.settle(state.now.model, min(self.tol, LOOSE))
        if now.model.evidence > state.exact.model.evidence + self.tol:
            state = replace(state, now=now, exact=now, added=frozenset(), refused=frozenset())
        else:
            state = replace(state, now=state.exact, added=frozenset(), refused=state.refused | state.added)
        found = self.factors(state.now.view, self.problem.rows)
        _, brings = self.additions(state, np.arange(len(found.S)), found)
        best = float(brings.max())
        pool = replace(self.pooled(brings), enough=max(ENOUGH * best, self.tol))
        return replace(state, S=found.S, pool=pool), _info(state.now, best, "survey")

    def pooled(self, brings: FloatArray) -> Pool:
        """The candidates that promise most."""
        columns = np.argsort(-brings)[:POOL]
        return Pool(columns, self.problem.rows.keep(columns), 0.0)

    def certificate(self, state: State) -> tuple[FloatArray, float]:
        """Worth of every candidate, and the nats that the best single change would still bring."""
        problem, (model, view, _) = self.problem, state.now
        s, q, copy = self.factors(view, problem.rows)
        k, active = len(model.alpha), model.active
        var = (view.root**2).sum(axis=0)[:k]
        s[active], q[active] = np.clip(1 - model.alpha * var, 0.0, 1.0) / var, view.mean[:k] / var
        worth = gain(ard_candidate(s, q, problem.a, problem.b), s, q)
        alpha = np.full(len(s), np.inf)
        alpha[active] = model.alpha
        moves = best_moves(s, q, alpha, 0.0, problem.a, problem.b)
        held = (alpha <= problem.least_alpha) & (moves.alpha < alpha)
        barred = (copy | np.isin(np.arange(len(s)), list(state.refused))) & np.isinf(alpha)
        return worth, float(np.where(held | barred, 0.0, moves.gain).max(initial=0.0))


def _leapt(way: list[Carry]) -> list[Carry]:
    """Contact points creep where the classes are nearly separable: two steps show the way that all others would go.

    Squared extrapolation (Varadhan & Roland 2008) of log ξ: x₀ + 2λr + λ²v with r the first step, v what the second has
    less, and λ = ‖r‖/‖v‖.
    """
    if len(way) < 3 or not isinstance(way[0], Contact):
        return way[-2:]
    x0, x1, x2 = (np.log(np.maximum(one.xi, TINY)) for one in way if isinstance(one, Contact))
    r, v = x1 - x0, x2 - 2 * x1 + x0
    length = min(float(np.sqrt((r @ r) / max(v @ v, TINY))), LONGEST_LEAP)
    return [Contact(np.exp(x0 + 2 * length * r + length**2 * v))] if length > 1 else way[-1:]


def _info(settled: Settled, change: float, action: str) -> Info:
    return Info(settled.model.evidence, change, len(settled.model.active), settled.view.jitter, action)


def solve(problem: BernoulliProblem, inference: str, settings: Settings, near: Result | None = None) -> Result:
    """Search from the model without weights, or from where another solver has come near."""
    search = Search(problem, settings.tol)
    none = np.empty(0, dtype=np.intp)
    active, alpha = (none, np.empty(0)) if near is None else (near.active, near.alpha)
    w_step, carry = first_carry(problem, inference, len(active))
    first = search.settle(Model(active, alpha, carry), settings.tol)
    never = replace(first.model, evidence=-np.inf)
    start = State(first, first._replace(model=never), np.empty(0), Pool(none, problem.rows, np.inf))
    trace = Trace() if near is None else Trace(near.trace.infos.copy())
    state, converged = iterate(search.surveyed(start)[0], search.step, trace=trace, **vars(settings))
    model, rows = state.now.model, problem.rows.keep(state.now.model.active)
    found = w_step(rows, model.alpha, model.carry)
    where = predictor(rows, problem.sites(rows, found.carry), model.alpha, problem.flat_intercept)
    evidence = found.value + problem.scale_term(model.active, model.alpha)
    worth, gap = search.certificate(state)
    converged = converged and state.now.arrived and gap <= settings.tol
    return Result(model.active, model.alpha, where, evidence, worth, gap, converged, trace)
