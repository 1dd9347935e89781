"""Kernel regression with each row held out in closed form: error, variance, and the noise that the fit absorbed.

The rows that choose the vectors also measure the noise, which is then too small. New rows have no vector of their own;
so each row is predicted without itself and without its vector. Where the errors are larger than the model
expected, the difference is noise variance that was absorbed by the fit (`HeldOut.excess`). See docs/mathematics.md,
section 6.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sparsebayes.core.likelihoods import Bernoulli, expansion
from sparsebayes.core.predictive import quadrature
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine import compiled
from sparsebayes.engine.candidates import target_under
from sparsebayes.engine.least_squares import LeastSquares, Solution
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.regression import maximum, solve
from sparsebayes.engine.result import Result

BLOCK = 256
"""Rows with a vector in the model that are processed together. Each needs six numbers for every candidate, 60 MB in all
for 5,000 candidates."""
SPENT = 1e-10
"""A candidate with no more than this part of its squared length outside the model would only repeat it: half of what a
copy has there (engine/state.py, COPY)."""


@dataclass(frozen=True)
class KernelResult:
    """A fitted model on a choice of the columns; those are all of them, unless they were known approximately."""

    problem: LeastSquares
    result: Result
    columns: IntArray
    """Which columns of the design the problem's are."""
    held_out: "HeldOut"
    """Each row predicted from the others."""


def solve_kernel(
    problem: LeastSquares, solver: str, settings: Settings, own: IntArray, start: Solution | None = None
) -> KernelResult:
    """Find a model with the named solver (or from `start`), with leave-one-out errors.

    Columns that are known approximately are made exact once they are chosen, and the model is fitted on them.
    """
    result = maximum(problem, solver, settings, start)
    columns = result.active
    exact_design = problem.design.exact(columns)
    if exact_design is None:
        return KernelResult(problem, result, np.arange(problem.n_columns), held_out(problem, result, own))
    exact = replace(problem, design=exact_design, prior=problem.prior.of(columns))
    chosen = replace(result.solution, active=np.arange(len(columns)))
    settled = solve(exact, "sequential", settings, start=chosen)
    settled.trace.infos[:0] = result.trace.infos
    kept = replace(settled, active=columns[settled.active])
    rows = held_out(problem, kept, own)
    return KernelResult(exact, replace(settled, gap=max(settled.gap, result.gap)), columns, rows)


class HeldOut(NamedTuple):
    """Leave-one-out predictions: for every row its error, and the variance that the model expected of that error."""

    error: FloatArray
    variance: FloatArray
    weight: FloatArray
    """How often each row counts."""

    @property
    def excess(self) -> float:
        """Variance of new observations beyond noise and posterior, in the problem's units; 0 for an honest model."""
        return max(self._mean(self.error**2 - self.variance), 0.0)

    @property
    def squared_error(self) -> float:
        """Mean squared error, in the problem's units."""
        return self._mean(self.error**2)

    @property
    def log_density(self) -> FloatArray:
        """Of every row, with the excess as part of its variance."""
        variance = self.variance + self.excess
        return np.asarray(-0.5 * (np.log(2 * np.pi * variance) + self.error**2 / variance))

    def _mean(self, values: FloatArray) -> float:
        return float(self.weight @ values / self.weight.sum())


def squared_error(problem: LeastSquares, result: Result, own: IntArray) -> float:
    """Mean squared leave-one-out error (see `held_out`), in the problem's units."""
    return held_out(problem, result, own).squared_error


def label_density(problem: Problem, result: Result, own: IntArray, shift: FloatArray | float = 0.0) -> FloatArray:
    """Log probability of each label (0 or 1), predicted from the other rows under the sites of the model.

    Under its sites the model is a regression with noise variance one and the sites' precisions as row weights; a row
    leaves with its site. η of the row is then normal, and the probability of the label its mean logistic function.
    `shift` is the mean of η less its mode, for each row from the others.
    """
    design = problem.design
    Phi = design.columns(result.active) - np.broadcast_to(result.origin, len(result.active))
    eta = result.level + Phi @ result.posterior.mean
    sites = expansion(Bernoulli(), problem.t, eta, problem.weight)
    b, target, level = target_under(sites, problem.flat_intercept)
    centred = design.centred(b) if problem.flat_intercept else design
    rows = LeastSquares(
        design=centred.weighted(np.sqrt(b)),
        t=target,
        n_weighted=float(b.sum()),
        flat_intercept=problem.flat_intercept,
    )
    out = held_out(rows, replace(result, noise=1.0), own, left=b / np.maximum(problem.weight, 1.0))
    mean = level + target / np.sqrt(b) - out.error + shift
    sign = 2 * problem.t - 1
    return np.log(np.maximum(quadrature(sign * mean, np.maximum(out.variance - 1, 0.0)), np.finfo(np.float64).tiny))


def held_out(problem: LeastSquares, result: Result, own: IntArray, left: FloatArray | None = None) -> HeldOut:
    """Each row predicted from the others at the scales that were found, all in closed form.

    `left` is the weight that leaves with each row: by default all of it, but no more than one.

    `own` names the column whose centre is this row alone, -1 where there is none. With h = βφᵀΣφ, plus 1/N for a flat
    intercept, a row that leaves has error r/(1 - h) and variance σ²/(1 - h). Where a row's own vector leaves with it,
    the best of the other candidates enters, as it would have done without the row.
    """
    design, posterior, noise = problem.design, result.posterior, result.noise
    active, root_weight = result.active, design.root_weight
    weight = root_weight**2
    Phi = design.columns(active) / root_weight[:, None]
    Sigma = posterior.covariance()
    residual = problem.t / root_weight - Phi @ posterior.mean
    leverage = np.vecdot(Phi @ Sigma, Phi) / noise + problem.flat_intercept / problem.n_weighted
    if left is None:
        left = np.minimum(weight, 1.0)  # a row that counts several times leaves once
    stays = _positive(1 - left * leverage)
    error, variance = residual / stays, noise * (1 + leverage / stays)
    position = np.full(design.n_columns, -1)
    position[active] = np.arange(len(active))
    takes = np.flatnonzero((own >= 0) & (position[own] >= 0))
    if not len(takes):
        return HeldOut(error, variance, weight)
    replacements = _Replacements(problem, result, Sigma)
    for start in range(0, len(takes), BLOCK):
        which = takes[start : start + BLOCK]
        at = Phi[which], residual[which], leverage[which], left[which]
        error[which], variance[which] = replacements.fill(position[own[which]], design.rows(which), *at)
    return HeldOut(error, variance, weight)


class _Replacements:
    """The candidates outside the model, ready to take the place of a vector that leaves."""

    def __init__(self, problem: LeastSquares, result: Result, Sigma: FloatArray) -> None:
        active, energy = result.active, problem.column_energy
        beta, self.noise = 1 / result.noise, result.noise
        self.Sigma, self.mean, self.var = Sigma, result.posterior.mean, Sigma.diagonal()
        gram = problem.design.gram_columns(active)
        projected = gram @ result.posterior.root.T
        self.beta_gram = beta * gram
        self.S = beta * energy - beta**2 * np.vecdot(projected, projected)
        self.Q = beta * (problem.projection - gram @ self.mean)
        self.least = SPENT * beta * energy
        self.least[active] = np.inf

    def fill(
        self,
        position: IntArray,
        rows: FloatArray,
        Phi: FloatArray,
        residual: FloatArray,
        leverage: FloatArray,
        left: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Errors and variances of rows that leave with a vector each, after the best candidate has taken its place.

        Each line of a matrix belongs to a row that leaves; `position` says where in the model its vector is, `rows` are
        its values of all columns.
        """
        beta, column = 1 / self.noise, self.Sigma[position]
        var, mean = self.var[position], self.mean[position]
        # Without vector j: Σ - Σ_jΣ_jᵀ/Σ_jj and μ - Σ_j μ_j/Σ_jj (the rank-one rule of deletion).
        share = np.vecdot(column, Phi) / var
        F = Phi @ self.Sigma - share[:, None] * column
        residual = residual + share * mean
        leverage = leverage - beta * share**2 * var
        common = column @ self.beta_gram.T
        # Without the row: what candidate m has there beyond the model is φ_m(x) - φᵀΣ βΦᵀφ_m.
        beyond = rows - F @ self.beta_gram.T
        stays = _positive(1 - left * leverage)
        error, variance = residual / stays, self.noise * (1 + leverage / stays)
        terms = self.S, self.Q, self.least, common, beyond, var, mean, beta * left / stays, residual
        s, q, there = (compiled.native.best_replacements if compiled.COMPILED else best_replacements)(*terms)
        # With r = q²/s and α = s²/(q² - s) the new variance 1/(α + s) is (1 - 1/r)/s; 0 where none brings anything.
        new = (1 - 1 / np.maximum(q**2 / s, 1.0)) / s
        there = there / stays
        return error - new * q * there, variance + new * there**2


def best_replacements(
    S: FloatArray,
    Q: FloatArray,
    least: FloatArray,
    common: FloatArray,
    beyond: FloatArray,
    var: FloatArray,
    mean: FloatArray,
    taken: FloatArray,
    residual: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """s, q and the value beyond the model of each row's best candidate, that of largest q²/s; s = ∞ where none is left.

    Each line of `common` and `beyond` belongs to a row that leaves with a vector of variance `var` and mean `mean`.
    """
    lifted = common / var[:, None]
    S = S + common * lifted
    Q = Q + lifted * mean[:, None]
    lost = taken[:, None] * beyond
    S -= lost * beyond
    Q -= lost * residual[:, None]
    S = np.where(least < S, S, np.inf)
    each, best = np.arange(len(S)), np.argmax(Q**2 / S, axis=1)
    return S[each, best], Q[each, best], beyond[each, best]


def _positive(stays: FloatArray) -> FloatArray:
    """1 - h, which is positive but for rounding."""
    return np.maximum(stays, np.finfo(np.float64).eps)
