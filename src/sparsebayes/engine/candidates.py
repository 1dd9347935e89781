"""The gain of every candidate column, under the local approximation at a model.

One wide pass over the design: the only place where a search on a likelihood that is not Gaussian touches all columns.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from sparsebayes.core.likelihoods import Sites
from sparsebayes.core.prices import Marginal, chosen
from sparsebayes.core.priors import Moves
from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.data.formed import under_weight
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.moves import Surroundings, unit_blocks
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.scale_fit import ScaleFit
from sparsebayes.engine.state import COPY

TINY_PRECISION = 1e-12
"""A saturated row counts as if its site had this precision, so that 1/√b stays finite. Such a
row moves the mode by 1e-12 of what an undecided one does; a tenth or ten times as much changes nothing."""


@dataclass(frozen=True)
class Candidates:
    """S and Q of all candidates under the view of a model, and which of them are copies of a column in it."""

    fit: ScaleFit
    S: FloatArray
    Q: FloatArray
    copy: BoolArray
    across: FloatArray
    """φᵀBΦ of every candidate with every kept column."""

    @classmethod
    def of(cls, problem: Problem, fit: ScaleFit) -> "Candidates":
        """S = φᵀBφ - φᵀBΦΣΦᵀBφ and Q = φᵀ(h - BΦμ), by one product with the design.

        Φ is centred with weights B where the intercept is flat, so that only φᵀBφ is left to be centred.
        """
        view, design = fit.view, problem.design
        b = np.broadcast_to(np.asarray(view.sites.precision), len(problem.t))
        Phi, K = view.design.columns(slice(None)), len(fit.active)
        eta = fit.point.level_at(problem, view) + view.design.predict(fit.point.weights(problem, view))
        product = design.project(np.column_stack([b[:, None] * Phi, view.sites.shift - b * eta, b]))
        energy = design.column_square(b)
        if problem.flat_intercept:
            energy = np.maximum(energy - product[:, K + 1] ** 2 / b.sum(), 0.0)
        across = product[:, :K]
        S = np.maximum(energy - view.posterior.quadratic(across), 0.0)
        copy = across**2 >= COPY**2 * np.multiply.outer(energy, b @ Phi**2)
        return cls(fit, S, product[:, K], np.asarray(copy.any(axis=1)), across)

    def factors(self, problem: Problem) -> tuple[FloatArray, FloatArray]:
        """s and q of all: those of the kept columns through γ/Σ_jj and μ_j/Σ_jj, which do not cancel."""
        s, q = problem.prior.outside(self.S, self.Q)
        s, q = s.copy(), q.copy()
        s[self.fit.active], q[self.fit.active] = self.fit.factors(problem)
        return s, q

    def alpha(self) -> FloatArray:
        """Precision of every column; ∞ outside the model."""
        alpha = np.full(len(self.S), np.inf)
        alpha[self.fit.active] = self.fit.alpha
        return alpha

    def moves(self, problem: Problem) -> Moves:
        """The best change of every single precision by the view; copies have no move."""
        alpha, (s, q) = self.alpha(), self.factors(problem)
        inside = np.isfinite(alpha)
        price = Marginal.at(problem.price, problem.prior.units(self.fit.active)).of(inside, problem.price.nats)
        moves = problem.prior.moves(s, q, alpha, price, partial(self.blocks, problem))
        gain = np.where(self.copy & ~inside, 0.0, moves.gain)
        gain[self.fit.active[self.fit.alpha <= problem.prior.min_alpha]] = 0.0  # they would go on, but may not
        return moves._replace(gain=gain)

    def blocks(self, problem: Problem, units: IntArray) -> tuple[FloatArray, FloatArray]:
        """S and Q of units of columns, as if none of their columns were in the model."""
        view = self.fit.view
        b = np.broadcast_to(np.asarray(view.sites.precision), len(problem.t))
        Phi = problem.design.columns(units.ravel())
        if problem.flat_intercept:
            Phi = Phi - b @ Phi / b.sum()
        Phi = (np.sqrt(b)[:, None] * Phi).reshape(-1, *units.shape)
        own = np.einsum("nui,nuj->uij", Phi, Phi, optimize=True)
        mean, Sigma = self.fit.point.weights(problem, view), view.posterior.covariance()
        at = Surroundings(own, self.across, self.Q, self.fit.active, self.alpha(), mean, Sigma)
        return unit_blocks(at, units)


class Rows(NamedTuple):
    """Columns and target under sites, as rows of a regression with noise variance one."""

    Phi: FloatArray
    t: FloatArray
    level: float
    """The flat intercept, at the columns' means; it is eliminated by centring with the sites' precisions."""
    means: FloatArray


def target_under(sites: Sites, flat_intercept: bool) -> tuple[FloatArray, FloatArray, float]:
    """Precisions, the target multiplied by their root, and a flat intercept, which is taken off the target."""
    b = np.maximum(np.broadcast_to(np.asarray(sites.precision), len(sites.shift)), TINY_PRECISION)
    level = float(sites.shift.sum() / b.sum()) if flat_intercept else 0.0
    return b, (sites.shift - b * level) / np.sqrt(b), level


def under_sites(Phi: FloatArray, sites: Sites, flat_intercept: bool) -> Rows:
    """Rows multiplied by the root of their site's precision, without a flat intercept."""
    b, t, level = target_under(sites, flat_intercept)
    Phi, means = under_weight(Phi, b, flat_intercept)
    return Rows(Phi, t, level, means)


def least_squares(problem: Problem, fit: ScaleFit, columns: IntArray) -> LeastSquares:
    """Some columns under the sites of a model, as a least-squares problem with noise variance one."""
    b, t, _ = target_under(fit.view.sites, problem.flat_intercept)
    return LeastSquares(
        design=problem.design.under(columns, b, problem.flat_intercept),
        t=t,
        n_weighted=float(problem.weight.sum()),
        flat_intercept=problem.flat_intercept,
        prior=problem.prior.of(columns),
        price=chosen(problem.price, columns),
    )
