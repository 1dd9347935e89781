"""Probabilistic classification vector machine: two classes, label-signed columns, weights that cannot be negative.

Each column of Φ carries the sign of its own training row's label, and its weight has a Gaussian prior truncated to
w ≥ 0 (mathematics, section 5). Truncation is either exact, with Laplace's approximation at the mode under the bound,
or the smooth factor 2σ(c w) of the prior, which enters as one more site per weight.

`Block` finds weights and precisions on a given design from a given start; `Search`, the fast sequential search of
engine/rvc.py with other candidates, finds the columns.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import log_ndtr

from sparsebayes.core.evidence import scale_term
from sparsebayes.core.linalg import factorise
from sparsebayes.core.scales import TINY, ard_candidate, gain
from sparsebayes.core.sites import Sites, bernoulli_log_likelihood, laplace, truncation
from sparsebayes.core.special import log_sigmoid
from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.engine import rvc
from sparsebayes.engine.batch import GONE
from sparsebayes.engine.bernoulli import (
    HALVINGS,
    NEWTON_STEPS,
    ROUNDING,
    BernoulliProblem,
    Mode,
    Predictor,
    predictor,
)
from sparsebayes.engine.linearised import Model
from sparsebayes.engine.loop import Settings, Trace, iterate
from sparsebayes.engine.settling import (
    LONGEST,
    NEAR,
    SETTLING,
    SLOWEST,
    Factors,
    Settled,
    View,
    newton_scales,
)
from sparsebayes.engine.slr import Result

RANK = 1e-12
"""Largest number of nats that a candidate which promises nothing is put below zero, for its rank alone."""


class Truncation(Protocol):
    """What keeps the weights from being negative."""

    @property
    def floor(self) -> float:
        """Least weight that Newton's method may go to."""

    def sites(self, w: FloatArray) -> Sites:
        """The view of the prior's truncating factor, one site per weight."""

    def log_factor(self, w: FloatArray) -> float:
        """Its logarithm."""

    def log_mass(self, mean: FloatArray, var: FloatArray) -> float:
        """What Laplace's integral over all weights, negative ones too, must still be multiplied with (log)."""

    def seen(self, S: FloatArray, Q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """S and Q of candidates together with the truncation of their own weight, seen from w = 0."""


@dataclass(frozen=True)
class Exact:
    """w ≥ 0: the mode is found under this bound, and a weight that ends there leaves."""

    floor: float = 0.0

    def sites(self, w: FloatArray) -> Sites:
        """Inside of the bound the prior is the Gaussian."""
        zero = np.zeros_like(w)
        return Sites(zero, zero, zero)

    def log_factor(self, w: FloatArray) -> float:
        """One: the normaliser is part of `log_mass`."""
        return 0.0

    def log_mass(self, mean: FloatArray, var: FloatArray) -> float:
        """Σ log 2Φ(μ/√Σ_jj): the prior's normaliser, and the share of each weight's posterior that is not negative.

        Exact for weights that are independent in the posterior, and for a single one.
        """
        return float((np.log(2) + log_ndtr(mean / np.sqrt(var))).sum())

    def seen(self, S: FloatArray, Q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A candidate that the data would give a negative weight has no use."""
        return S, np.maximum(Q, 0.0)


@dataclass(frozen=True)
class Smooth:
    """The prior's factor 2σ(c w); c is per unit of a standardised column's weight."""

    steepness: float
    floor: float = -np.inf

    def sites(self, w: FloatArray) -> Sites:
        """Laplace's view of the factor."""
        return truncation(w, self.steepness)

    def log_factor(self, w: FloatArray) -> float:
        """Σ log 2σ(c w)."""
        return float((np.log(2) + log_sigmoid(self.steepness * w)).sum())

    def log_mass(self, mean: FloatArray, var: FloatArray) -> float:
        """Nothing: the factor is in the integral."""
        return 0.0

    def seen(self, S: FloatArray, Q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """At w = 0 the factor has the slope c/2 and the curvature c²/4: it alone makes (Q + c/2)² exceed S + c²/4."""
        own = truncation(np.zeros(1), self.steepness)
        return S + own.precision, np.maximum(Q + own.shift, 0.0)


class BlockFit(NamedTuple):
    """Weights and precisions on a given design: what is left of its columns, and the view there."""

    kept: IntArray
    alpha: FloatArray
    mode: Mode
    view: View
    log_evidence: float
    arrived: bool


@dataclass(frozen=True)
class Block:
    """Classes t in {0, 1}, row weights and the prior; the design comes with each call."""

    t: FloatArray
    weight: FloatArray
    flat_intercept: bool
    truncation: Truncation
    least_alpha: float = 0.0

    def settle(self, Phi: FloatArray, alpha: FloatArray, mode: Mode, tol: float) -> BlockFit:
        """Converge precisions and mode from a start, on label-signed columns Φ (N×n); what is worthless leaves.

        At each mode the precisions take Newton's step of the view's log evidence. A weight at the bound leaves at once
        (the mode is the same without it), and so do those that move the evidence by next to nothing; of those that
        would rather be out, the one that costs most.
        """
        kept, pace, value = np.arange(len(alpha)), 1.0, -np.inf
        last = np.zeros(len(alpha))
        for _ in range(SETTLING):
            mode = self.find_mode(Phi, alpha, mode)
            view = self.view(Phi, alpha, mode)
            Sigma = (view.root.T @ view.root)[: len(alpha), : len(alpha)]
            before, value = value, self.log_evidence(alpha, view)
            leaves = self.leaving(alpha, mode.w, np.diag(Sigma), abs(value - before) <= NEAR)
            if leaves.any():
                stays = ~leaves
                kept, Phi, alpha, mode, last = kept[stays], Phi[:, stays], alpha[stays], mode.keep(stays), last[stays]
                continue
            step = self.scale_step(alpha, mode.w, Sigma)
            felt = (1 - alpha * np.diag(Sigma)) * np.abs(step)
            if abs(value - before) <= tol and np.max(felt, initial=0.0) <= tol:
                return BlockFit(kept, alpha, mode, view, value, True)
            pace = max(pace / 2, SLOWEST) if step @ last < -(tol**2) else min(1.1 * pace, 1.0)
            last = pace * step
            alpha = alpha * np.exp(last)
        mode = self.find_mode(Phi, alpha, mode)
        view = self.view(Phi, alpha, mode)
        return BlockFit(kept, alpha, mode, view, self.log_evidence(alpha, view), False)

    def scale_step(self, alpha: FloatArray, w: FloatArray, Sigma: FloatArray) -> FloatArray:
        """Newton's step of the view's log evidence in log α; precisions that would go below the least stay there.

        The others must not count on their going along.
        """
        lowest = np.log(self.least_alpha / alpha) if self.least_alpha else np.full(len(alpha), -np.inf)
        down = alpha * (w**2 + np.diag(Sigma)) > 1  # the slope is ½(1 - α(μ² + Σ_mm))
        free = (lowest < -ROUNDING) | ~down
        step, none = np.zeros(len(alpha)), np.zeros(int(free.sum()))
        each = newton_scales(w[free], Sigma[np.ix_(free, free)], alpha[free], 0.0, none)
        step[free] = np.clip(each, -LONGEST, LONGEST)
        return np.maximum(step, lowest)

    def leaving(self, alpha: FloatArray, w: FloatArray, var: FloatArray, near: bool) -> BoolArray:
        """Which weights leave now: s = γ/Σ_jj and q = μ_j/Σ_jj say what each is worth, given the others."""
        s, q = np.clip(1 - alpha * var, 0.0, 1.0) / var, w / var
        unwanted = gain(ard_candidate(s, q), s, q) <= 0
        brings = gain(alpha, s, q)
        leaves = (w <= 0) | (unwanted & (np.abs(brings) <= GONE))
        if near and unwanted.any() and not leaves.any():
            leaves[np.argmin(np.where(unwanted, brings, np.inf))] = True
        return leaves

    def find_mode(self, Phi: FloatArray, alpha: FloatArray, start: Mode) -> Mode:
        """Maximum of the penalised likelihood under the bound, by projected Newton steps with halving.

        A weight at the bound that the slope pushes against it stays there; Newton's step is taken in the others and cut
        at the bound (Bertsekas 1982). As in regression without the bound, the model without weights may be the better
        start: where all rows are saturated there is no curvature to go by.
        """
        Phi, k, none = self._whole(Phi), len(alpha), np.zeros(len(alpha))
        starts = (self._vector(start), self._vector(Mode(none, self._base_level())))
        here = max(starts, key=lambda w: self.penalised(Phi, alpha, w))
        value = self.penalised(Phi, alpha, here)
        floor = np.append(np.full(k, self.truncation.floor), np.full(len(here) - k, -np.inf))
        for _ in range(NEWTON_STEPS):
            slope, curvature = self.derivatives(Phi, alpha, here)
            free = (here > floor) | (slope > 0)
            way = np.zeros(len(here))
            way[free] = factorise(curvature[np.ix_(free, free)]).solve(slope[free])
            goals = (np.maximum(here + 0.5**power * way, floor) for power in range(HALVINGS))
            tried = ((there, self.penalised(Phi, alpha, there)) for there in goals)
            nothing = ROUNDING * (1 + abs(value))  # at the mode the last and best step may seem to lose so much
            there, reached = next((pair for pair in tried if pair[1] >= value - nothing), (here, value))
            gained, here, value = reached - value, there, reached
            if gained <= nothing:
                break
        return Mode(here[:k], float(here[k:].sum()))

    def penalised(self, Phi: FloatArray, alpha: FloatArray, w: FloatArray) -> float:
        """log p(t | w) - ½ wᵀAw + log of the truncating factor; a flat intercept is the last of w and of Φ."""
        k = len(alpha)
        fit = float(self.weight @ bernoulli_log_likelihood(self.t, Phi @ w))
        return fit - 0.5 * float(alpha @ w[:k] ** 2) + self.truncation.log_factor(w[:k])

    def derivatives(self, Phi: FloatArray, alpha: FloatArray, w: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slope of `penalised` and its curvature (the negative Hessian)."""
        k, eta = len(alpha), Phi @ w
        sites, own = laplace(self.t, eta, self.weight), self.truncation.sites(w[:k])
        slope = Phi.T @ (sites.shift - sites.precision * eta)
        slope[:k] += own.shift - own.precision * w[:k] - alpha * w[:k]
        curvature = Phi.T @ (np.asarray(sites.precision)[:, None] * Phi)
        curvature.flat[: k * (len(w) + 1) : len(w) + 1] += alpha + own.precision
        return slope, curvature

    def view(self, Phi: FloatArray, alpha: FloatArray, mode: Mode) -> View:
        """The Gaussian around a mode; a flat intercept is the last weight."""
        Phi, w = self._whole(Phi), self._vector(mode)
        factor = factorise(self.derivatives(Phi, alpha, w)[1])
        sites = laplace(self.t, Phi @ w, self.weight)
        return View(Phi, sites, w, factor.inverse_root(), -factor.logdet, factor.jitter)

    def log_evidence(self, alpha: FloatArray, view: View) -> float:
        """Laplace's approximation around the mode, with what truncation leaves of it."""
        k = len(alpha)
        value = self.penalised(view.Phi, alpha, view.mean) + 0.5 * view.logdet + scale_term(alpha, 0.0, 0.0)
        value += 0.5 * float(np.log(2 * np.pi)) * (len(view.mean) - k)
        return value + self.truncation.log_mass(view.mean[:k], (view.root**2).sum(axis=0)[:k])

    def _whole(self, Phi: FloatArray) -> FloatArray:
        return np.column_stack([Phi, np.ones(len(Phi))]) if self.flat_intercept else Phi

    def _vector(self, mode: Mode) -> FloatArray:
        return np.append(mode.w, mode.intercept) if self.flat_intercept else mode.w

    def _base_level(self) -> float:
        share = float(self.weight @ self.t / self.weight.sum())
        return float(np.log(share / (1 - share)))


@dataclass(frozen=True)
class Search(rvc.Search):
    """The sequential search on label-signed columns, for positive weights only."""

    truncation: Truncation

    def settle(self, model: Model, Phi: FloatArray, tol: float) -> Settled:
        """Converge precisions and mode of a model on its columns Φ."""
        assert isinstance(model.carry, Mode)
        problem = self.problem
        block = Block(problem.t, problem.weight, problem.flat_intercept, self.truncation, problem.least_alpha)
        fit = block.settle(Phi[:, : len(model.alpha)], model.alpha, model.carry, tol)
        model = Model(model.active[fit.kept], fit.alpha, fit.mode, fit.log_evidence)
        return Settled(model, fit.view, fit.arrived)

    def additions(self, state: rvc.State, columns: IntArray, found: Factors) -> tuple[FloatArray, FloatArray]:
        """Best precision of candidates with a positive weight, and the nats that the view promises for adding them."""
        S, Q = self.truncation.seen(found.S, found.Q)
        alpha, brings = super().additions(state, columns, found._replace(S=S, Q=Q))
        # Those that promise nothing are ranked by how near they are, so that no pool depends on the order of the rows.
        near = np.minimum(Q**2 / np.maximum(S, TINY), 1.0)
        return alpha, np.where(brings > 0, brings, -RANK * (1 - near))

    def certificate(self, state: rvc.State) -> tuple[FloatArray, float]:
        """Worth of every candidate, and the nats that the best single change would still bring by the view."""
        found = self.factors(state.now.view, self.problem.rows)
        S, Q = self.truncation.seen(found.S, found.Q)
        return super().certificate(replace(state, exact=state.now, seen=found._replace(S=S, Q=Q)))

    def predictor(self, settled: Settled) -> Predictor:
        """The posterior of weights and intercept; γ is the data's part only, without that of a smooth truncation."""
        model, mode = settled.model, settled.model.carry
        assert isinstance(mode, Mode)
        rows, own = self.problem.rows.keep(model.active), self.truncation.sites(mode.w)
        found = predictor(rows, settled.view.sites, model.alpha + own.precision, self.problem.flat_intercept)
        level = mode.intercept + float(found.rows.mean @ mode.w)
        return replace(found, posterior=replace(found.posterior, mean=mode.w), level=level)


def solve(problem: BernoulliProblem, truncation: Truncation, settings: Settings) -> Result:
    """Search from the model without weights, on label-signed columns."""
    search = Search(problem, settings.tol, truncation)
    model = Model(rvc.NO_COLUMNS, np.empty(0), problem.base_mode(0))
    first = search.settle(model, search.settler.formed(model.active), settings.tol)
    never = replace(first.model, evidence=-np.inf)
    begun = rvc.State(first, first._replace(model=never), rvc.NOTHING, rvc.Pool(rvc.NO_COLUMNS, problem.rows, np.inf))
    trace = Trace()
    state, converged = iterate(search.surveyed(begun)[0], search.step, trace=trace, **vars(settings))
    worth, gap = search.certificate(state)
    model, where = state.now.model, search.predictor(state.now)
    converged = converged and state.now.arrived and gap <= settings.tol
    return Result(model.active, model.alpha, where, model.evidence, worth, gap, converged, trace)
