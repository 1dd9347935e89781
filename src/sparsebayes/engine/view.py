"""The local Gaussian approximation of a problem: its point, the posterior under it, and Newton's method to the mode.

A *point* says where the likelihood is approximated: at a mode (Laplace's method), or at the contact points of a lower
bound (variational inference). A *view* is the Gaussian posterior under the sites taken there. The flat intercept is
eliminated here, exactly and in one way: the columns are centred with the sites' precisions as weights. Newton's method
to the mode is written here and nowhere else (docs/mathematics.md, sections 1 and 3).
"""

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, Self, TypeGuard

import numpy as np

from sparsebayes.core.evidence import integral
from sparsebayes.core.likelihoods import Likelihood, Sites, expansion, weighted
from sparsebayes.core.linalg import JITTER_LADDER
from sparsebayes.core.posterior import GaussianPosterior, gaussian_posterior, relevance
from sparsebayes.core.scales import TINY, NoiseRule
from sparsebayes.core.types import BoolArray, FloatArray
from sparsebayes.data.design import Columns
from sparsebayes.data.formed import FormedColumns
from sparsebayes.engine import compiled
from sparsebayes.engine.extrapolation import extrapolate

if TYPE_CHECKING:
    from sparsebayes.engine.problem import Problem

NEWTON_STEPS = 100
"""Largest number of Newton steps; from any start a few dozen are enough."""
HALVINGS = 40
"""A step is halved at most this often: 2⁻⁴⁰ of it changes nothing that can be measured."""
ROUNDING = 1e-13
"""Share of the penalised likelihood that a step may seem to lose by rounding, a sum over a thousand rows: at the mode
all steps gain less."""
JITTERS = list(JITTER_LADDER)
"""As the compiled code takes it."""


@dataclass(frozen=True)
class View:
    """The posterior of the weights and of η = level + Φw under sites; Φ is centred where the intercept is flat."""

    design: Columns
    sites: Sites
    posterior: GaussianPosterior
    level: float
    """Posterior mean of η where all (centred) columns are zero."""
    level_variance: float
    """Its variance; 0 without a flat intercept."""
    eta: FloatArray
    """Posterior mean of every row's η."""
    integral: float
    """Log ∫ exp(Σ sites) N(w; 0, A⁻¹) dw (d intercept), less ½ log|A|, which the prior's own term brings."""

    def variance(self) -> FloatArray:
        """Posterior variance of every row's η."""
        return self.level_variance + self.posterior.predictor_variance(self.design)

    def intercept(self) -> float:
        """Posterior mean of η where all columns are zero before they were centred by the sites."""
        return self.level - float(self.design.offset @ self.posterior.mean)


def take_view(design: Columns, sites: Sites, alpha: FloatArray, flat_intercept: bool, own: Sites | None = None) -> View:
    """Posterior under given sites; `own` are sites of the weights themselves, a factor of their prior."""
    if compiled.COMPILED and own is None and _is_small(design, sites):
        return _compiled_view(design, sites, alpha, flat_intercept)
    b, h = np.asarray(sites.precision), sites.shift
    level, variance = 0.0, 0.0
    if flat_intercept:
        total = float(b.sum())
        level, variance = float(h.sum()) / total, 1 / total
        design = design.centred(b)
    if own is None:
        posterior = gaussian_posterior(design, b, h - b * level, alpha)
    else:
        posterior = gaussian_posterior(design, b, h - b * level, alpha + own.precision, own.shift)
    eta = level + design.predict(posterior.mean)
    value = integral(sites.value(eta), posterior.mean, alpha, posterior.logdet) + _log_of_level(variance)
    return View(design, sites, posterior, level, variance, eta, value)


def _log_of_level(variance: float) -> float:
    """½ log 2π variance, what the integral over a flat intercept brings; 0 without one."""
    return 0.5 * math.log(2 * math.pi * variance) if variance else 0.0


def _is_small(design: Columns, sites: Sites) -> TypeGuard[FormedColumns]:
    """Whether the columns are formed and fewer than rows, and each row has its own site."""
    return design.is_plain and design.n_columns <= design.n_rows and isinstance(sites.precision, np.ndarray)


def _compiled_view(design: FormedColumns, sites: Sites, alpha: FloatArray, flat_intercept: bool) -> View:
    b = np.asarray(sites.precision)
    mean, Sigma, root, logdet, jitter, offset, level, variance, eta, value = compiled.native.take_view(
        design.Phi, b, sites.shift, sites.const, alpha, flat_intercept, JITTERS
    )
    var = Sigma.diagonal()
    gamma, zeros = relevance(alpha, var), np.zeros(len(alpha))
    posterior = GaussianPosterior(mean, var, gamma, logdet, root, zeros, 1, jitter, Sigma)
    centred = FormedColumns(design.Phi, offset) if flat_intercept else design
    return View(centred, sites, posterior, level, variance, eta, value)


class WStep(NamedTuple):
    """Posterior for given precisions, its log evidence less the prior's own term, and where to go on."""

    view: View
    value: float
    point: "Point"

    @property
    def posterior(self) -> GaussianPosterior:
        """Posterior of the weights."""
        return self.view.posterior

    @property
    def carry(self) -> "Point":
        """What the next step takes over."""
        return self.point


class Point(Protocol):
    """Where a local approximation is taken, and the likelihood with its present parameters.

    `design` has the columns that the weights belong to, as the problem has them (not centred by sites).
    """

    @property
    def likelihood(self) -> Likelihood:
        """With its present parameters."""

    def keep(self, which: BoolArray, view: View | None = None) -> Self:
        """Without some of the weights; the others unchanged or, given a view, where it expects them to be then."""

    def grow(self, n: int) -> Self:
        """With n weights more, at zero."""

    def sites(self, problem: "Problem", design: Columns) -> Sites:
        """The sites here."""

    def view(self, problem: "Problem", design: Columns, alpha: FloatArray) -> View:
        """The posterior under them."""

    def value(self, problem: "Problem", design: Columns, view: View, alpha: FloatArray) -> float:
        """Log evidence at the view here, less ½ log|A| and the hyper-prior."""

    def weights(self, problem: "Problem", view: View) -> FloatArray:
        """The weights that the view is about: its posterior mean or, under a bounded prior, the mode."""

    def level_at(self, problem: "Problem", view: View) -> float:
        """The intercept that goes with `weights`, at the view's own origin."""

    def revived(self, problem: "Problem", design: Columns, alpha: FloatArray) -> Self:
        """A better point to start from, if no step from this one can help."""

    def follow(self, problem: "Problem", design: Columns, view: View, alpha: FloatArray) -> Self:
        """The point after one step, given the view here."""

    def settled(self, problem: "Problem", design: Columns, alpha: FloatArray) -> Self:
        """The point for these precisions: the mode; contact points stay as they are."""

    def nearly_settled(self, problem: "Problem", design: Columns, alpha: FloatArray, nats: float) -> tuple[Self, View]:
        """A point near it, where a further step gains at most `nats`, and the view there."""

    def step(self, problem: "Problem", design: Columns, alpha: FloatArray) -> WStep:
        """One w-step: the view at these precisions and the point for the next step."""

    def relearned(self, problem: "Problem", view: View, rule: NoiseRule) -> Self:
        """With the likelihood's own parameters re-estimated, where it has any."""


def _relearned(likelihood: Likelihood, problem: "Problem", view: View, rule: NoiseRule) -> Likelihood:
    return likelihood.updated(problem.t, problem.weight, view.eta, view.variance(), rule)


@dataclass(frozen=True)
class Mode:
    """Laplace's method: the weights and, at the design's own origin, the intercept."""

    likelihood: Likelihood
    w: FloatArray
    level: float = 0.0
    _eta: FloatArray | None = field(default=None, compare=False, repr=False)
    _log_density: list[FloatArray] = field(default_factory=list, compare=False, repr=False)
    """log p(tₙ | ηₙ) of every row, once it was asked for."""

    def keep(self, which: BoolArray, view: View | None = None) -> "Mode":
        """Without some of the weights.

        With a view the others take over: μ - Σ_d Σ_dd⁻¹ μ_d for the dropped ones d, by the rule of a deletion.
        """
        if view is None:
            return Mode(self.likelihood, self.w[which], self.level)
        posterior = view.posterior
        Sigma, drop = posterior.covariance(), ~which
        share = np.linalg.solve(Sigma[np.ix_(drop, drop)], posterior.mean[drop])
        w = posterior.mean[which] - Sigma[np.ix_(which, drop)] @ share
        return Mode(self.likelihood, w, view.level - float(view.design.offset[which] @ w))

    def grow(self, n: int) -> "Mode":
        """With n weights more, at zero."""
        return replace(self, w=np.append(self.w, np.zeros(n)))

    def eta(self, design: Columns) -> FloatArray:
        """The linear predictor."""
        return self.level + design.predict(self.w) if self._eta is None else self._eta

    def sites(self, problem: "Problem", design: Columns) -> Sites:
        """The expansion at the mode."""
        known = self._log_density[0] if self._log_density else None
        return expansion(self.likelihood, problem.t, self.eta(design), problem.weight, known)

    def view(self, problem: "Problem", design: Columns, alpha: FloatArray) -> View:
        """The posterior under it."""
        own = problem.prior.weight_sites(self.w)
        return take_view(design, self.sites(problem, design), alpha, problem.flat_intercept, own)

    def log_likelihood(self, problem: "Problem", design: Columns) -> float:
        """log p(t | w)."""
        if not self._log_density:
            self._log_density.append(self.likelihood.log_density(problem.t, self.eta(design)))
        return float(problem.weight @ self._log_density[0])

    def penalised(self, problem: "Problem", design: Columns, alpha: FloatArray) -> float:
        """log p(t | w) - ½ wᵀAw, and what else the prior says of the weights."""
        fit = self.log_likelihood(problem, design)
        return fit - 0.5 * float(alpha @ self.w**2) + problem.prior.log_factor(self.w)

    def value(self, problem: "Problem", design: Columns, view: View, alpha: FloatArray) -> float:
        """Laplace's log evidence at the view here, less ½ log|A| and the hyper-prior.

        With a Gaussian prior this is the view's own integral, which at a distance δ from the mode is wrong by δ³ only.
        """
        if np.isinf(problem.prior.floor) and problem.prior.weight_sites(self.w) is None:
            return view.integral
        value = self.penalised(problem, design, alpha) + 0.5 * view.posterior.logdet
        value += problem.prior.log_mass(self.w, view.posterior.var)
        return value + _log_of_level(view.level_variance)

    def weights(self, problem: "Problem", view: View) -> FloatArray:
        """The mode where the prior is bounded; else the posterior mean, which is one Newton step ahead of it."""
        return view.posterior.mean if np.isinf(problem.prior.floor) else self.w

    def level_at(self, problem: "Problem", view: View) -> float:
        """Under a bounded prior that of the mode."""
        return view.level if np.isinf(problem.prior.floor) else self.level + float(view.design.offset @ self.w)

    def revived(self, problem: "Problem", design: Columns, alpha: FloatArray) -> "Mode":
        """The model without weights where that is better: where all rows are saturated there is no curvature."""
        level = problem.base_level(self.likelihood)
        base = Mode(self.likelihood, np.zeros_like(self.w), level, np.full(len(problem.t), level))
        return max((self, base), key=lambda mode: mode.penalised(problem, design, alpha))

    def follow(self, problem: "Problem", design: Columns, view: View, alpha: FloatArray) -> "Mode":
        """Newton's step, halved until it is no step down.

        Weights have a floor in some models. One at the floor that the slope pushes against it stays there, the others
        take Newton's step among themselves, cut at the floor (Bertsekas 1982).
        """
        goal, floor = self._goal(problem, design, view, alpha), problem.prior.floor
        there = goal if floor == -np.inf else self._towards(goal, design, 1.0, floor)
        value = self.penalised(problem, design, alpha)
        least = value - ROUNDING * (1 + abs(value))  # at the mode the last and best step may seem to lose so much
        for power in range(1, HALVINGS + 1):
            if there.penalised(problem, design, alpha) >= least:
                return there
            there = self._towards(goal, design, 0.5**power, floor)
        return self

    def _towards(self, goal: "Mode", design: Columns, part: float, floor: float) -> "Mode":
        """A part of the way to a goal, cut at the floor."""
        w, level = self.w + part * (goal.w - self.w), self.level + part * (goal.level - self.level)
        if floor > -np.inf:
            return Mode(self.likelihood, np.maximum(w, floor), level)
        here = self.eta(design)
        return Mode(self.likelihood, w, level, here + part * (goal.eta(design) - here))

    def _goal(self, problem: "Problem", design: Columns, view: View, alpha: FloatArray) -> "Mode":
        """Where Newton's whole step leads."""
        floor, flat = problem.prior.floor, problem.flat_intercept
        if np.isfinite(floor):
            pull = problem.weight * self.likelihood.derivatives(problem.t, self.eta(design))[0]
            free = (self.w > floor) | (design.project(pull) - alpha * self.w > 0)
            if not free.all():
                part, w = design.keep(free), np.zeros_like(self.w)
                view = take_view(part, self.sites(problem, design), alpha[free], flat)
                w[free] = view.posterior.mean
                return Mode(self.likelihood, w, view.intercept() if flat else 0.0)
        level = view.intercept() if flat else 0.0
        own = problem.prior.weight_sites(self.w)
        eta = view.eta if own is None else None
        return Mode(self.likelihood, view.posterior.mean, level, eta)

    def settled(self, problem: "Problem", design: Columns, alpha: FloatArray) -> "Mode":
        """The maximum of the penalised likelihood, by Newton's method.

        It ends when a step gains no more than rounding; the error of the weights is then the square of the last step's.
        """
        here = self.revived(problem, design, alpha)
        value = here.penalised(problem, design, alpha)
        for _ in range(NEWTON_STEPS):
            here = here.follow(problem, design, here.view(problem, design, alpha), alpha)
            before, value = value, here.penalised(problem, design, alpha)
            if value - before <= ROUNDING * (1 + abs(before)):
                break
        return here

    def nearly_settled(
        self, problem: "Problem", design: Columns, alpha: FloatArray, nats: float
    ) -> tuple["Mode", View]:
        """Where a further step of Newton's method gains at most `nats`, and the view there."""
        here = self.revived(problem, design, alpha)
        for _ in range(NEWTON_STEPS):
            view = here.view(problem, design, alpha)
            there = here.follow(problem, design, view, alpha)
            if there.penalised(problem, design, alpha) - here.penalised(problem, design, alpha) <= nats:
                return here, view
            here = there
        return here, here.view(problem, design, alpha)

    def step(self, problem: "Problem", design: Columns, alpha: FloatArray) -> WStep:
        """The view at the mode."""
        mode = self.settled(problem, design, alpha)
        view = mode.view(problem, design, alpha)
        return WStep(view, mode.value(problem, design, view, alpha), mode)

    def relearned(self, problem: "Problem", view: View, rule: NoiseRule) -> "Mode":
        """With the likelihood's own parameters re-estimated."""
        if not self.likelihood.learns:
            return self
        return Mode(_relearned(self.likelihood, problem, view, rule), self.w, self.level, self._eta)


@dataclass(frozen=True)
class Contact:
    """Variational inference: one contact point ξ per row, where the bound touches the likelihood."""

    likelihood: Likelihood
    xi: FloatArray
    before: tuple[FloatArray, ...] = field(default=(), compare=False, repr=False)
    """The contact points before these, since the last extrapolation."""

    def keep(self, which: BoolArray, view: View | None = None) -> "Contact":
        """Rows stay when weights go."""
        return replace(self, before=())

    def grow(self, n: int) -> "Contact":
        """Rows stay when weights come."""
        return replace(self, before=())

    def sites(self, problem: "Problem", design: Columns) -> Sites:
        """The bound."""
        return weighted(self.likelihood.bound(problem.t, self.xi), problem.weight)

    def view(self, problem: "Problem", design: Columns, alpha: FloatArray) -> View:
        """The posterior under it."""
        return take_view(design, self.sites(problem, design), alpha, problem.flat_intercept)

    def value(self, problem: "Problem", design: Columns, view: View, alpha: FloatArray) -> float:
        """The bound on the log evidence, less ½ log|A| and the hyper-prior."""
        return view.integral

    def weights(self, problem: "Problem", view: View) -> FloatArray:
        """The posterior mean."""
        return view.posterior.mean

    def level_at(self, problem: "Problem", view: View) -> float:
        """That of the view."""
        return view.level

    def revived(self, problem: "Problem", design: Columns, alpha: FloatArray) -> "Contact":
        """The same: every contact point gives a usable bound."""
        return self

    def tightest(self, problem: "Problem", view: View) -> FloatArray:
        """ξ² = E[(η - centre)²], where the bound is largest."""
        return np.sqrt((view.eta - self.likelihood.centre(problem.t)) ** 2 + view.variance())

    def follow(self, problem: "Problem", design: Columns, view: View, alpha: FloatArray) -> "Contact":
        """The contact points where the bound is tightest, and after every two of such steps an extrapolation.

        They creep where classes are nearly separable. The coordinates are log ξ. Rows count by their weight, so that a
        weight of two is the same as the row twice.
        """
        xi = self.tightest(problem, view)
        if len(self.before) < 1:
            return replace(self, xi=xi, before=(*self.before, self.xi))
        x0, x1, x2 = (np.log(np.maximum(each, TINY)) for each in (self.before[0], self.xi, xi))
        there = extrapolate(x0, x1, x2, problem.weight)
        return replace(self, xi=xi if there is x2 else np.exp(there), before=())

    def settled(self, problem: "Problem", design: Columns, alpha: FloatArray) -> "Contact":
        """The same: any contact points make a bound."""
        return self

    def nearly_settled(
        self, problem: "Problem", design: Columns, alpha: FloatArray, nats: float
    ) -> tuple["Contact", View]:
        """The same."""
        return self, self.view(problem, design, alpha)

    def step(self, problem: "Problem", design: Columns, alpha: FloatArray) -> WStep:
        """The view at these contact points, and the tightest ones for the next step."""
        view = self.view(problem, design, alpha)
        return WStep(view, view.integral, replace(self, xi=self.tightest(problem, view)))

    def relearned(self, problem: "Problem", view: View, rule: NoiseRule) -> "Contact":
        """With the likelihood's own parameters re-estimated."""
        if not self.likelihood.learns:
            return self
        return replace(self, likelihood=_relearned(self.likelihood, problem, view, rule))
