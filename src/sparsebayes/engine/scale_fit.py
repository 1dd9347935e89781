"""Precisions and local approximation of a model on a few columns, converged together, under the real likelihood.

The fixed point is Tipping's, α(μ² + Σ_mm) = 1 under the view. With Laplace's approximation that is not quite a maximum
of the evidence, because the view moves with α.
"""

from dataclasses import dataclass

import numpy as np

from sparsebayes.core.posterior import relevance
from sparsebayes.core.prices import total
from sparsebayes.core.scales import noise_mackay
from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.data.design import Columns
from sparsebayes.engine.batch import PRUNE_BELOW
from sparsebayes.engine.moves import inside_blocks
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.scales import newton_step
from sparsebayes.engine.view import Point, View

MAX_TURNS = 2000
"""Turns that a fit may take; usually a dozen are enough, contact points of nearly separable classes take hundreds.
A fit that needs more is reported as not converged."""
SLOWEST = 0.05
"""Smallest part of a step of log α that is taken when the steps keep turning back; half or twice as much changes
nothing (experiments/constants.py)."""
FASTER = 1.1
"""Factor by which the part grows again with each step that does not turn back. With 1.5 steps go round in circles where
classes are nearly separable."""
AT_BOUND = 1e-12
"""A precision within this share of the least one is at it: exp and log round by less."""
NEAR_MODE = 1e-3
"""Share of the tolerance that a last step to the mode may still gain, where weights have a floor and the fit is coarse:
Newton's method then leaves the square of that. A machine with 162 vectors (5,000×20) takes 12 s instead of 20."""
COARSE = 0.01
"""Fits with a larger tolerance are coarse: they are steps of a search, and what it ends with is fitted exactly."""
JUDGE_BELOW = 0.1
"""A column is judged once the evidence moves by no more nats than this: far from the mode the view misjudges.
0.05 ends at the same models, 0.2 elsewhere in 1 of 96 fits."""


@dataclass(frozen=True)
class ScaleFit:
    """A model: columns, precisions, where the view is taken, the view, and the log evidence with the hyper-prior."""

    active: IntArray
    alpha: FloatArray
    point: Point
    design: Columns
    """The columns of the model, formed."""
    view: View
    evidence: float
    converged: bool
    tol: float
    """Tolerance, in nats, of the fit."""

    def priced(self, problem: Problem) -> float:
        """Log evidence less the price of what is kept."""
        return self.evidence - total(problem.price, problem.prior.units(self.active))

    def factors(self, problem: Problem) -> tuple[FloatArray, FloatArray]:
        """s and q of the kept columns: γ/Σ_jj and μ_j/Σ_jj."""
        var = self.view.posterior.var
        return relevance(self.alpha, var) / var, self.point.weights(problem, self.view) / var

    def worth(self, problem: Problem) -> FloatArray:
        """Nats that each kept column brings at its best precision, by the view."""
        prior, (s, q) = problem.prior.of(self.active), self.factors(problem)
        mean, Sigma = self.point.weights(problem, self.view), self.view.posterior.covariance
        return prior.worth(s, q, self.alpha, lambda units: inside_blocks(self.alpha, mean, Sigma(), units))


def fit_scales(
    problem: Problem, active: IntArray, alpha: FloatArray, point: Point, tol: float, *, drop_worthless: bool
) -> ScaleFit:
    """Converge precisions and view; with `drop_worthless`, columns are dropped whose best precision is infinite.

    Each turn takes one step of the point (Newton's method to the mode, or new contact points) and one of the
    precisions. Steps that turn back are shortened.
    """
    return _ScaleFitting(problem, active, alpha, point, tol, drop_worthless).run()


class _ScaleFitting:
    """The turns of one fit."""

    def __init__(
        self, problem: Problem, active: IntArray, alpha: FloatArray, point: Point, tol: float, drop_worthless: bool
    ) -> None:
        self.problem, self.tol, self.drop_worthless = problem, tol, drop_worthless
        self.active, self.alpha = active, np.maximum(alpha, problem.prior.min_alpha)
        self.design, self.prior = problem.design.keep(active), problem.prior.of(active)
        self.point = point.revived(problem, self.design, self.alpha)
        self.unbounded = bool(np.isinf(problem.prior.floor))
        self.last, self.pace, self.evidence = np.zeros(len(alpha)), 1.0, -np.inf

    def run(self) -> ScaleFit:
        for _ in range(MAX_TURNS):
            if self._turn():
                return self._result(True)
        self._look()
        return self._result(False)

    def _look(self) -> float:
        """The view at the present point, and the change of the evidence."""
        problem, alpha = self.problem, self.alpha
        if not self.unbounded and self.tol > COARSE:  # which weights are at their floor is known at the mode only
            nats = NEAR_MODE * self.tol
            self.point, self.view = self.point.nearly_settled(problem, self.design, alpha, nats)
        else:
            self.point = self.point if self.unbounded else self.point.settled(problem, self.design, alpha)
            self.view = self.point.view(problem, self.design, alpha)
        self.mean, before = self.point.weights(problem, self.view), self.evidence
        self.gamma = relevance(alpha, self.view.posterior.var)
        self.evidence = self.point.value(problem, self.design, self.view, alpha) + self.prior.scale_term(alpha)
        return abs(self.evidence - before)

    def _turn(self) -> bool:
        """One turn. Returns whether the fit has converged."""
        moved = self._look()
        problem, alpha = self.problem, self.alpha
        if (leaves := self._leaving(moved)) is not None:
            self._drop(leaves)
            return False
        step = self._step()
        if moved <= self.tol and np.max(self.gamma * np.abs(step), initial=0.0) <= self.tol:
            return True
        # Signs of steps at rounding level mean nothing.
        turned = step @ self.last < -(self.tol**2)
        self.pace = max(self.pace / 2, SLOWEST) if turned else min(FASTER * self.pace, 1.0)
        self.last = self.pace * step
        self.point = self.point.follow(problem, self.design, self.view, alpha)
        self.point = self.point.relearned(problem, self.view, noise_mackay)
        self.alpha = alpha * np.exp(self.last)
        return False

    def _step(self) -> FloatArray:
        """Newton's step of log α. Precisions that would fall below the least one stay, and no other counts on them.

        The slope in log α is ½(1 - α(μ² + Σ_mm)).
        """
        alpha, mean, posterior, least = self.alpha, self.mean, self.view.posterior, self.prior.min_alpha
        Sigma = posterior.covariance()
        if not least:
            return newton_step(alpha, mean, Sigma, self.prior)[0]
        lowest = np.log(least / alpha)
        if lowest.max(initial=-np.inf) < -AT_BOUND:
            return np.maximum(newton_step(alpha, mean, Sigma, self.prior)[0], lowest)
        energy = _over_ties(self.prior.ties, alpha * (mean**2 + posterior.var))
        free = (lowest < -AT_BOUND) | (energy < 1)
        step = np.zeros(len(alpha))
        step[free], _ = newton_step(alpha[free], mean[free], Sigma[np.ix_(free, free)], self.prior.of(free))
        return np.maximum(step, lowest)

    def _leaving(self, moved: float) -> BoolArray | None:
        """Columns that leave now, if any do.

        A weight at its floor leaves at once: the mode is the same without it. Of those that the view gives no use at
        any precision, all leave that hardly matter any more, or else the one that costs most.
        """
        prior, mean, var = self.prior, self.mean, self.view.posterior.var
        if not self.unbounded and (leaves := mean <= prior.floor).any():
            return leaves
        if not self.drop_worthless or moved > JUDGE_BELOW:
            return None
        s, q = self.gamma / var, mean / var
        best = prior.candidate(s, q)
        worthless = np.isinf(best) if prior.is_scale_free else prior.gain(best, s, q) <= 0
        if not worthless.any():
            return None
        present = prior.gain(self.alpha, s, q)
        leaves = worthless & (np.abs(present) <= PRUNE_BELOW)
        leaves[np.argmin(np.where(worthless, present, np.inf))] = True
        return leaves

    def _drop(self, leaves: BoolArray) -> None:
        stays = ~leaves
        self.active, self.alpha, self.last = self.active[stays], self.alpha[stays], self.last[stays]
        self.design, self.prior = self.design.keep(stays), self.prior.of(stays)
        self.point = self.point.keep(stays, self.view if self.unbounded else None)
        self.point = self.point.revived(self.problem, self.design, self.alpha)

    def _result(self, converged: bool) -> ScaleFit:
        return ScaleFit(self.active, self.alpha, self.point, self.design, self.view, self.evidence, converged, self.tol)


def _over_ties(ties: IntArray | None, values: FloatArray) -> FloatArray:
    """Means over the columns that share a precision."""
    if ties is None:
        return values
    shared = np.unique(ties, return_inverse=True)[1]
    return np.asarray((np.bincount(shared, values) / np.bincount(shared))[shared])


def without(problem: Problem, fit: ScaleFit, columns: BoolArray, tol: float) -> ScaleFit:
    """The model without some of its columns, fitted anew under the real likelihood."""
    stays = ~columns
    point = fit.point.keep(stays, fit.view if np.isinf(problem.prior.floor) else None)
    return fit_scales(problem, fit.active[stays], fit.alpha[stays], point, tol, drop_worthless=False)


def with_more(
    problem: Problem, fit: ScaleFit, columns: IntArray, alpha: FloatArray, tol: float, *, drop_worthless: bool
) -> ScaleFit:
    """The model with additional columns, fitted anew under the real likelihood."""
    active, scales = np.append(fit.active, columns), np.append(fit.alpha, alpha)
    return fit_scales(problem, active, scales, fit.point.grow(len(columns)), tol, drop_worthless=drop_worthless)
