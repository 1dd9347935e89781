"""Regression on kernel columns: the problem, and the two ways to solve it, by ARD or under a Laplace prior."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from sparsebayes.core.prices import HalfTheRows
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import laplace_rate
from sparsebayes.engine.least_squares import LOW_NOISE, LeastSquares, Solution
from sparsebayes.engine.leave_one_out import KernelResult, held_out, solve_kernel, squared_error
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.width import VectorFit


@dataclass(frozen=True)
class VectorPrice(HalfTheRows):
    """The price of kernel columns, and the same small price for each of them.

    It is part of `base`, not of `nats`: columns are still interchangeable, and a search treats them as free, without
    the perturbations and exchanges that a choice of features needs. With those, ten searches for feature weights
    (Friedman #1) took 1.4 times as long, with errors of 0.79 ± 0.03 rather than 0.75 ± 0.03.
    """

    each: float = 0.0

    def base(self, k: int) -> float:
        """For k columns."""
        return super().base(k) + self.each * k


def kernel_problem(
    design: Any,
    t: FloatArray,
    n_weighted: float,
    flat_intercept: bool,
    *,
    vector_price: float = 0.0,
    rest: float = 0.0,
    projection: FloatArray | None = None,
) -> LeastSquares:
    """The regression of a standardised target on standardised kernel columns, with flat hyper-priors.

    Weights start as large as the target's deviation, with little noise (Tipping 2001). From small weights and more
    noise a batch solver ends with fewer vectors and no more evidence, and predicts worse (docs/rvm.md). `projection` is
    Φᵀt, where it is known.
    """
    return LeastSquares(
        design=design,
        t=t,
        known_projection=projection,
        n_weighted=n_weighted,
        flat_intercept=flat_intercept,
        price=VectorPrice(n_weighted - flat_intercept, each=vector_price),
        rest=rest,
        start_alpha=1.0,
        start_noise=LOW_NOISE,
    )


def log_scales(scale: FloatArray, found: Solution) -> FloatArray:
    """log α for columns as they are and log σ², of a model on standardised columns with the given scales."""
    return np.asarray(np.log(np.append(found.alpha * scale[found.active] ** 2, found.noise)))


def start_on(scale: FloatArray, near: VectorFit) -> Solution:
    """A fit on similar columns as a start on standardised columns with the given scales."""
    usable = np.isfinite(scale[near.active])  # the columns of a very wide kernel are constant, up to rounding
    active = near.active[usable]
    return Solution(active, np.exp(near.scales[:-1][usable]) / scale[active] ** 2, near.noise)


def own_scale(columns: Any, weight: FloatArray, centre: bool) -> DenseRows:
    """The columns as they are, weighted and (if so wished) centred."""
    standard: DenseRows = columns.standardised(weight, centre=centre)
    usable = standard.usable
    return standard.rescaled(np.arange(len(usable)), 1 / np.where(usable, standard.unit, 1.0))


class KernelSolver(Protocol):
    """A way to find the model of one output on kernel columns."""

    def standardise(self, columns: Any, weight: FloatArray, centre: bool) -> Any:
        """The columns in the solver's units."""

    def solve(self, problem: LeastSquares, own_column: IntArray, start: Solution | None = None) -> KernelResult:
        """The model, from nothing or from a start; `own_column` is for `leave_one_out.held_out`."""


@dataclass(frozen=True)
class ARDSolver:
    """Each weight has its own precision, chosen by evidence."""

    solver: str
    """One of `regression.SOLVERS`."""
    settings: Settings

    def standardise(self, columns: Any, weight: FloatArray, centre: bool) -> Any:
        """Columns of unit variance: their precisions adapt to any scale."""
        return columns.standardised(weight, centre=centre)

    def solve(self, problem: LeastSquares, own_column: IntArray, start: Solution | None = None) -> KernelResult:
        """The model of the named solver, or what the search makes of a start."""
        return solve_kernel(problem, self.solver, self.settings, own_column, start)


@dataclass(frozen=True)
class LaplaceSolver:
    """All weights have one Laplace prior, scaled by the noise (engine/laplace_rate.py)."""

    rate: float | None
    """λ; None learns it by leave-one-out errors."""
    noise: float | None
    """σ²/var(t); None learns it by evidence."""
    settings: Settings

    def standardise(self, columns: Any, weight: FloatArray, centre: bool) -> DenseRows:
        """Columns that keep the kernel's own scale, because λ must mean the same for all of them."""
        return own_scale(columns, weight, centre)

    def solve(self, problem: LeastSquares, own_column: IntArray, start: Solution | None = None) -> KernelResult:
        """The model at the given or learned rate; it always starts from nothing."""
        rate = self.rate
        if rate is None:
            error = partial(squared_error, own=own_column)
            result, rate = laplace_rate.learn(problem, error, self.settings, noise=self.noise)
        else:
            result = laplace_rate.solve(problem, rate, self.settings, noise=self.noise)
        problem = laplace_rate.with_rate(problem, rate)
        return KernelResult(problem, result, np.arange(problem.n_columns), held_out(problem, result, own_column))
