"""Precisions and view of a two-class model on a few columns, converged together; and what it sees of candidates.

The fixed point is Tipping's, α(μ² + Σ_mm) = 1 under the view (mathematics, sections 1 to 4). On the way a basis that
the view finds worthless leaves.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sparsebayes.core.evidence import integral
from sparsebayes.core.linalg import JITTER_LADDER, factorise
from sparsebayes.core.scales import TINY, ard_candidate, gain
from sparsebayes.core.sites import Sites, bernoulli_log_likelihood, jaakkola, laplace
from sparsebayes.core.types import BoolArray, FloatArray, IntArray, Scalar
from sparsebayes.data.dense import DenseRows
from sparsebayes.data.lowrank import LowRankRows
from sparsebayes.engine import compiled
from sparsebayes.engine.bernoulli import HALVINGS, ROUNDING, BernoulliProblem, Contact, Mode
from sparsebayes.engine.candidates import COPY
from sparsebayes.engine.linearised import Carry, Model

if TYPE_CHECKING:
    from sparsebayes.engine import _bernoulli

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
LEAST_CURVATURE = 1e-3
"""Curvature in log α that Newton's method at least assumes, in units of γ²."""
LEAST_GAMMA = 0.1
"""Least γ that it is measured by: in smaller units steps go so far that the view does not follow."""


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


def newton_scales(mean: FloatArray, Sigma: FloatArray, alpha: FloatArray, a: Scalar, b: FloatArray) -> FloatArray:
    """Newton's step of the view's log evidence in log α.

    With x = log α the gradient is ½(1 - α(μ² + Σ_mm)) + a - bα, and the second derivatives follow from
    ∂μ/∂x_j = -α_j μ_j Σ_j and ∂Σ/∂x_j = -α_j Σ_j Σ_jᵀ. Where the evidence is not concave the step goes uphill all the
    same, because the curvature is taken by its absolute value. At the best precision of a single basis it is ½γ², so it
    is measured in units of γ: what the data hardly determine would creep otherwise.
    """
    var = np.diag(Sigma)
    unit = np.maximum(1 - alpha * var, LEAST_GAMMA)
    energy = alpha * (mean**2 + var)
    slope = 0.5 * (1 - energy) + a - b * alpha
    curvature = -0.5 * np.multiply.outer(alpha, alpha) * Sigma * (2 * np.multiply.outer(mean, mean) + Sigma)
    curvature.flat[:: len(alpha) + 1] += 0.5 * energy + b * alpha
    values, vectors = np.linalg.eigh(curvature / np.multiply.outer(unit, unit))
    return np.asarray(vectors @ (((slope / unit) @ vectors) / np.maximum(np.abs(values), LEAST_CURVATURE)) / unit)


@dataclass(frozen=True)
class Settler:
    """A problem, as a model on a few of its columns sees it."""

    problem: BernoulliProblem

    def formed(self, active: IntArray) -> FloatArray:
        """Φ of the kept columns, with a column of ones last where the intercept is flat."""
        Phi = self.problem.rows.columns(active)
        return np.column_stack([Phi, np.ones(len(Phi))]) if self.problem.flat_intercept else Phi

    def grow(self, Phi: FloatArray, column: FloatArray) -> FloatArray:
        """Φ of the model with one column more."""
        k = Phi.shape[1] - self.problem.flat_intercept
        return np.column_stack([Phi[:, :k], column, Phi[:, k:]])

    def keep(self, Phi: FloatArray, stays: BoolArray) -> FloatArray:
        """Φ of the model without some columns."""
        return Phi[:, np.append(stays, True)] if self.problem.flat_intercept else Phi[:, stays]

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

    def settle(self, model: Model, Phi: FloatArray, tol: float) -> Settled:
        """Converge precisions and view together; a basis that the view finds worthless leaves.

        Each turn takes one step of the view (Newton's method to the mode, or new contact points) and one of the
        precisions. The evidence is the view's own integral, which at a distance δ from the mode is wrong by δ³.
        """
        problem = self.problem
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
                Phi = self.keep(Phi, stays)
                way = [self.revived(Phi, model)]
                model = replace(model, carry=way[0])
                continue
            step = np.clip(newton_scales(mean, Sigma, alpha, problem.a, rate), -LONGEST, LONGEST)
            step = np.maximum(step, np.log(problem.least_alpha / alpha) if problem.least_alpha else -LONGEST)
            if abs(rise) <= tol and np.max(gamma * np.abs(step), initial=0.0) <= tol:
                return Settled(model, view, True)
            turned = step @ last < -(tol**2)  # of steps that are no more than rounding the direction means nothing
            pace = max(pace / 2, SLOWEST) if turned else min(1.1 * pace, 1.0)
            last = pace * step
            way = _leapt([*way, self.followed(model, view)])
            model = replace(model, alpha=alpha * np.exp(last), carry=way[-1])
        return Settled(model, self.view(Phi, model), False)

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
        energy = rows.column_square(b)
        S = np.maximum(energy - ((across @ view.root.T) ** 2).sum(axis=1), 0.0)
        copy = across**2 >= COPY**2 * np.multiply.outer(energy, b @ view.Phi**2)
        return Factors(S, Q, np.asarray(copy.any(axis=1)))


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


@dataclass(frozen=True)
class CompiledSettler(Settler):
    """The same, compiled (`_bernoulli.cpp`)."""

    @cached_property
    def twin(self) -> "_bernoulli.Settler":
        """Who does it."""
        problem = self.problem
        assert compiled.Settler is not None
        return compiled.Settler(
            problem.t,
            problem.weight,
            a=float(problem.a),
            least_alpha=float(problem.least_alpha),
            base_intercept=problem.base_mode(0).intercept,
            flat_intercept=bool(problem.flat_intercept),
            settling=SETTLING,
            halvings=HALVINGS,
            longest=LONGEST,
            slowest=SLOWEST,
            near=NEAR,
            longest_leap=LONGEST_LEAP,
            rounding=ROUNDING,
            least_curvature=LEAST_CURVATURE,
            least_gamma=LEAST_GAMMA,
            jitter_ladder=list(JITTER_LADDER),
        )

    def settle(self, model: Model, Phi: FloatArray, tol: float) -> Settled:
        """As above."""
        carry, rate = model.carry, self.problem.b[model.active]
        if isinstance(carry, Mode):
            found = self.twin.settle_mode(Phi, model.alpha, rate, self.whole(carry), model.evidence, tol)
        else:
            found = self.twin.settle_contact(Phi, model.alpha, rate, carry.xi, model.evidence, tol)
        stays, alpha, where, evidence, sites, view, arrived = found
        k = len(alpha)
        there = Mode(where[:k], float(where[k:].sum())) if isinstance(carry, Mode) else Contact(where)
        Phi = Phi if k == len(stays) else self.keep(Phi, stays)
        settled = Model(model.active[stays], alpha, there, evidence)
        return Settled(settled, View(Phi, Sites(*sites), *view), arrived)

    def factors(self, view: View, rows: DenseRows | LowRankRows) -> Factors:
        """As above, of rows in memory."""
        if not isinstance(rows, DenseRows):
            return super().factors(view, rows)
        b = np.asarray(view.sites.precision)
        residual = view.sites.shift - b * view.eta
        return Factors(
            *self.twin.factors(rows.X, rows.mean, rows.scale, rows.root_weight, view.Phi, b, residual, view.root, COPY)
        )


def settler(problem: BernoulliProblem) -> Settler:
    """The compiled form where there is one."""
    return Settler(problem) if compiled.Settler is None else CompiledSettler(problem)
