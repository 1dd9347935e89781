"""Relevance vector regression: ARD on kernel columns, and what new observations will do that the model does not say.

Two things set a kernel dictionary apart from a linear one. Its columns are not claims about the world but neighbours
that share the work, so a column has no price (docs/min_gain.md). And it has as many columns as there are rows: the
evidence then grows without bound as the model takes on a vector per row and the noise vanishes. `KernelProblem` closes
that way, and `excess_variance` finds out how far what is left of it is to be believed.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.data.lowrank import LowRankRows
from sparsebayes.engine import ard
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.problem import BEGIN_NOISE, GaussianProblem, Solution

BLOCK = 256
"""Kept rows that are looked at together; each needs a few numbers for every candidate."""
WHOLE_GRAM = 5000
"""Columns up to which all products of columns are computed at once: a search asks for many of them, one by one."""
SPENT = 1e-10
"""A candidate with no more than this part of its length outside the model would only repeat it."""


@dataclass
class KernelProblem(GaussianProblem):
    """A regression on kernel columns: vectors are free up to half of the rows, and dear beyond."""

    least: float = 0.0
    """Nats that every vector must bring; what brings nothing stays otherwise, because nothing is gained by deletion."""

    @property
    def batch_start(self) -> tuple[float | None, float]:
        """Weights as large as the target's deviation, and little noise: as free as Tipping (2001) lets them be.

        From small weights and more noise a batch solver ends with fewer vectors and no more evidence, and predicts
        worse (docs/rvm.md).
        """
        return 1.0, BEGIN_NOISE

    def total_price(self, n_kept: int) -> float:
        """Nats asked of a model with so many vectors: (2k - n)²/(n - k) from half of the rows on, 0 below.

        The two ends meet without a kink. At k = 0.6 n the next vector must bring 2.3 nats, at 0.75 n twelve; fewer than
        half of the rows would be left to say what the noise is.
        """
        over = max(2 * n_kept - self.n, 0.0)
        return self.least * n_kept + over**2 / max(self.n - n_kept, 1.0)

    def priced(self, result: ard.Result) -> float:
        """Log evidence less the price."""
        return result.log_evidence - self.total_price(len(result.solution.active))


class Found(NamedTuple):
    """A fitted model on a choice of the columns; those are all of them, unless they were known approximately."""

    problem: GaussianProblem
    result: ard.Result
    columns: IntArray
    """Which columns of the dictionary the problem's are."""
    excess: float
    """Variance of new observations beyond noise and posterior; see `excess_variance`."""


def solve(
    problem: KernelProblem,
    solver: str,
    settings: Settings,
    own: IntArray,
    raw_rows: Callable[[IntArray], FloatArray],
    start: Solution | None = None,
) -> Found:
    """Find a model with the named solver (or from `start`), and what it does not know of new observations.

    Columns that are known approximately are made exact once they are chosen, and the model is settled on them.
    """
    result = maximum(problem, solver, settings, start)
    if not isinstance(problem.rows, LowRankRows):
        excess = excess_variance(problem, result, own, raw_rows)
        return Found(problem, result, np.arange(problem.n_columns), excess)
    columns = result.solution.active
    exact = replace(problem, rows=problem.rows.exact(columns), b=problem.b[columns])
    chosen = replace(result.solution, active=np.arange(len(columns)))
    settled = ard.solve(exact, "sequential", start=chosen, **vars(settings))
    settled.trace.infos[:0] = result.trace.infos
    kept = replace(settled.solution, active=columns[settled.solution.active])
    excess = excess_variance(problem, replace(settled, solution=kept), own, raw_rows)
    return Found(exact, replace(settled, gap=max(settled.gap, result.gap)), columns, excess)


def maximum(problem: KernelProblem, solver: str, settings: Settings, start: Solution | None = None) -> ard.Result:
    """The named solver's answer, or what the search makes of a start.

    A batch solver starts with all columns. Where it has let the noise vanish before most of them had gone, no single
    deletion brings it back, and the search from nothing is the better guide.
    """
    if isinstance(problem.rows, DenseRows) and problem.n_columns <= WHOLE_GRAM:
        problem.rows.gram()
    found = ard.solve(problem, solver, start=start, **vars(settings))
    if solver == "sequential" or problem.total_price(len(found.solution.active)) == 0:
        return found
    rival = ard.solve(problem, "sequential", **vars(settings))
    return max(found, rival, key=problem.priced)


class HeldOut(NamedTuple):
    """For every row: its error, and the variance that the model expected of it, when the row had not been there."""

    error: FloatArray
    variance: FloatArray


def excess_variance(
    problem: KernelProblem, result: ard.Result, own: IntArray, raw_rows: Callable[[IntArray], FloatArray]
) -> float:
    """Variance of new observations beyond noise and posterior, in the problem's units; 0 where the model is honest.

    The evidence chose vectors by the very rows that it then measures the noise with. Fresh rows have no vector of their
    own; so each row is predicted as if it had not been there, and its vector neither (see `held_out`). Where the errors
    are larger than the model expected, the rest is what the noise was robbed of.
    """
    rows = held_out(problem, result, own, raw_rows)
    return max(_mean(problem, rows.error**2 - rows.variance), 0.0)


def squared_error(
    problem: KernelProblem, result: ard.Result, own: IntArray, raw_rows: Callable[[IntArray], FloatArray]
) -> float:
    """Mean squared error of rows that were not there (see `held_out`), in the problem's units."""
    return _mean(problem, held_out(problem, result, own, raw_rows).error ** 2)


def _mean(problem: KernelProblem, values: FloatArray) -> float:
    """Over the rows, by weight."""
    return float(problem.rows.root_weight**2 @ values) / problem.n_weighted


def held_out(
    problem: KernelProblem, result: ard.Result, own: IntArray, raw_rows: Callable[[IntArray], FloatArray]
) -> HeldOut:
    """Each row predicted from the others at the scales that were found, all in closed form.

    `own` names the column whose centre goes with a row, -1 where none does (its centre is another row's too, or it is
    the centre of no column); `raw_rows` hands out rows of the design as it was before it was standardised. With
    h = βφᵀΣφ, plus 1/N for a flat intercept, a row that leaves takes r/(1 - h) for its error and σ²/(1 - h) for its
    variance. A row that takes its own vector along leaves a gap that another would have filled: the best of the
    candidates then enters, as it would have done.
    """
    rows, posterior, noise = problem.rows, result.posterior, result.solution.noise
    active, root_weight = result.solution.active, rows.root_weight
    Phi = rows.columns(active) / root_weight[:, None]
    Sigma = posterior.covariance()
    F = Phi @ Sigma
    residual = problem.t / root_weight - Phi @ posterior.mean
    leverage = np.einsum("ij,ij->i", F, Phi) / noise + problem.flat_intercept / problem.n_weighted
    left = np.minimum(root_weight**2, 1.0)  # a row that counts several times leaves once
    stays = _positive(1 - left * leverage)
    error, variance = residual / stays, noise * (1 + leverage / stays)
    place = np.full(rows.n_columns, -1)
    place[active] = np.arange(len(active))
    takes = np.flatnonzero((own >= 0) & (place[own] >= 0))
    rivals = _Rivals(problem, result, Sigma)
    for start in range(0, len(takes), BLOCK):
        which = takes[start : start + BLOCK]
        at = Phi[which], residual[which], leverage[which], left[which]
        error[which], variance[which] = rivals.fill(place[own[which]], raw_rows(which), *at)
    return HeldOut(error, variance)


class _Rivals:
    """The candidates outside the model, ready to take the place of a vector that leaves."""

    def __init__(self, problem: KernelProblem, result: ard.Result, Sigma: FloatArray) -> None:
        rows, active, energy = problem.rows, result.solution.active, problem.column_energy
        beta, self.noise = 1 / result.solution.noise, result.solution.noise
        self.rows, self.Sigma, self.mean = rows, Sigma, result.posterior.mean
        gram = _gram_columns(rows, active)
        felt = gram @ result.posterior.root.T
        self.beta_gram = beta * gram
        self.S = beta * energy - beta**2 * np.einsum("ij,ij->i", felt, felt)
        self.Q = beta * (problem.projection - gram @ self.mean)
        self.least = SPENT * beta * energy
        self.outside = energy > 0
        self.outside[active] = False

    def fill(
        self,
        place: IntArray,
        raw: FloatArray,
        Phi: FloatArray,
        residual: FloatArray,
        leverage: FloatArray,
        left: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Errors and variances of rows that leave with a vector each, after the best rival has taken its place.

        Each line of a matrix belongs to a row that leaves; `place` says where in the model its vector is.
        """
        beta, each = 1 / self.noise, np.arange(len(Phi))
        column = self.Sigma[place]
        var, mean = column[each, place], self.mean[place]
        # Without vector j: Σ - Σ_jΣ_jᵀ/Σ_jj and μ - Σ_j μ_j/Σ_jj (the rank-one rule of deletion).
        share = np.einsum("ij,ij->i", column, Phi) / var
        F = Phi @ self.Sigma - share[:, None] * column
        residual = residual + share * mean
        leverage = leverage - beta * share**2 * var
        felt = column @ self.beta_gram.T
        S = self.S + felt**2 / var[:, None]
        Q = self.Q + felt * (mean / var)[:, None]
        # Without the row: what candidate m has there beyond the model is φ_m(x) - φᵀΣ βΦᵀφ_m.
        beyond = (raw - self.rows.mean) / self.rows.scale - F @ self.beta_gram.T
        stays = _positive(1 - left * leverage)
        S = S - beta * (left / stays)[:, None] * beyond**2
        Q = Q - beta * (left * residual / stays)[:, None] * beyond
        error, variance = residual / stays, self.noise * (1 + leverage / stays)
        # Of most gain is the largest r = q²/s; with α = s²/(q² - s) the new variance 1/(α + s) is (1 - 1/r)/s.
        S = np.where(self.outside & (self.least < S), S, np.inf)
        ratio = Q**2 / S
        best = np.argmax(ratio, axis=1)
        new = (1 - 1 / np.maximum(ratio[each, best], 1.0)) / S[each, best]  # 0 where none is better than nothing
        there = beyond[each, best] / stays
        return error - new * Q[each, best] * there, variance + new * there**2


def _gram_columns(rows: DenseRows | LowRankRows, which: IntArray) -> FloatArray:
    """ΦᵀΦ[:, which]."""
    if isinstance(rows, DenseRows) and rows.known_gram is not None:
        return rows.known_gram[:, which]
    gram = np.empty((rows.n_columns, len(which)))
    for k, j in enumerate(which):
        gram[:, k] = rows.gram_column(int(j), lambda: which)
    return gram


def _positive(stays: FloatArray) -> FloatArray:
    """1 - h, which is positive but for rounding."""
    return np.maximum(stays, np.finfo(np.float64).eps)
