"""`fit_blocks` of kernel models: a sample of the rows chooses kernel and centres, all rows determine the model."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.base import clone
from sklearn.utils import check_random_state

from sparsebayes.core.basis import KernelBasis
from sparsebayes.core.kernel_statistics import HeldOutError, KernelColumns, OnKernel, Rows, RowSample
from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.moments import Moments
from sparsebayes.core.predictive import pooled_freedom
from sparsebayes.core.prices import PerUnit
from sparsebayes.core.priors import ARD
from sparsebayes.core.statistics import MomentsAbout, SiteSums
from sparsebayes.core.types import FloatArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.data.moment_rows import MomentRows
from sparsebayes.data.passes import Passes
from sparsebayes.engine.kernel_regression import ARDSolver, kernel_problem
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.process import solve as solve_process
from sparsebayes.engine.regression import maximum
from sparsebayes.engine.streamed import Streamed, Units
from sparsebayes.estimators._base import progress, threads_for, warn_unless_converged
from sparsebayes.estimators._kernel import KernelFit
from sparsebayes.estimators._kernel_classifier import MAX_CANDIDATES, MIN_ALPHA
from sparsebayes.estimators._kernel_design import KernelDesign
from sparsebayes.estimators._kernel_regressor import Fitted, KernelRegression
from sparsebayes.estimators._linear import Units as DataUnits
from sparsebayes.estimators._linear import constant_fit, glm_fit
from sparsebayes.estimators._moments import Target, targets_of
from sparsebayes.estimators._process import ProcessDesign
from sparsebayes.estimators._streaming import BlockClassesMixin, BlockPassesMixin, BlocksMixin

SAMPLE = 5000
"""Rows of the sample: five times the default number of candidates, which are chosen among them."""


NEAR = 200
"""Rows whose mean is an origin near the means of all rows, from which sums keep their digits."""


class Choice(NamedTuple):
    """What the rows, or a sample of them, say about a regression before it is fitted."""

    regression: KernelRegression
    solver: ARDSolver
    process: ProcessDesign | None
    """The Gaussian process that takes the place of a sparse model; None for the latter."""
    gamma: float | None


class BlockKernelMixin(BlocksMixin):
    """What kernel models share on blocks of rows."""

    kernel: Any
    candidates: Any
    random_state: Any
    fit_intercept: bool
    intercept_prior: str

    def _sample(self, passes: Passes, labels: Any = None, rates: FloatArray | None = None) -> tuple[Rows, Any]:
        """A random sample, and the estimator that uses it.

        Without a `random_state` both are always the same, so that a fit can go on.
        """
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            raise ValueError("fit_blocks needs a kernel that can be evaluated, not kernel='precomputed'")
        size = max(SAMPLE, int(self.candidates)) if isinstance(self.candidates, Integral) else SAMPLE
        seed = 0 if self.random_state is None else int(check_random_state(self.random_state).randint(2**31 - 1))
        rows = passes.reduce(RowSample(size, seed, labels, rates))
        if len(rows.X) < 2:
            raise ValueError(f"the blocks hold {len(rows.X)} rows of positive weight: give at least 2")
        return rows, clone(self).set_params(random_state=seed, verbose=0)


class BlockKernelRegressionMixin(BlockKernelMixin, BlockPassesMixin):
    """`fit_blocks` of a relevance vector machine: a pass for the sample, one for the moments, one for the errors.

    The sample chooses the kernel's width, the candidates and, for vectors="auto", between a sparse model and a Gaussian
    process. The model itself is that of all rows.
    """

    far_variance: str
    _store: Callable[..., None]
    _warn: Callable[[str], None]

    def _by_passes(self, passes: Passes) -> None:
        """Fit and store the model."""
        self._refuse(far_variance=("none",))
        rows, seeded = self._sample(passes)
        y, everyone = np.asarray(rows.t, dtype=np.float64), np.ones(len(rows.X), dtype=bool)
        choice = seeded._choose(rows.X, y, rows.weight, everyone, most=MAX_CANDIDATES)
        columns = _columns(choice)
        origin = np.append(columns(rows.X[:NEAR]).mean(axis=0), y.reshape(len(y), -1).mean(axis=0))
        moments = passes.reduce(OnKernel(MomentsAbout(origin), columns))
        fits = moment_fits(choice, moments)
        for k, fit in enumerate(fits):
            if len(fit.coef):
                fits[k] = _with_excess(fit, passes, k)
        fitted = Fitted(fits, choice.gamma)
        self._store(fitted, single=y.ndim == 1)
        self._warn(fitted.remedy)


def _columns(choice: Choice) -> KernelColumns:
    """What is made of each row: kernel values, or the columns G of a Gaussian process."""
    design = choice.regression.design
    assert design.kernel is not None
    assert design.centres is not None
    if choice.process is None:
        return KernelColumns(design.kernel, design.centres)
    L, chosen = choice.process.features.L, choice.process.features.centres
    return KernelColumns(design.kernel, design.centres[chosen], solve_triangular(L, np.eye(len(L)), lower=True))


def moment_fits(choice: Choice, moments: Moments) -> list[KernelFit]:
    """The models of all outputs, from the moments of the columns."""
    regression = choice.regression
    flat, intercept = regression.flat, regression.fit_intercept
    rows, lines, products = MomentRows.from_moments(moments, centre=flat, ones=intercept and not flat)
    targets = targets_of(moments, lines, products, intercept)
    with threads_for(rows.n_columns**2):
        return [_moment_fit(choice, rows, target) for target in targets]


def _moment_fit(choice: Choice, rows: MomentRows, target: Target) -> KernelFit:
    """The model of one output. The excess variance is not known yet."""
    regression, process = choice.regression, choice.process
    design, n_columns = regression.design, rows.n_columns
    if target.constant:
        return design.kernel_fit(constant_fit(target.centre, regression.fit_intercept, len(design.indices), 0.0))
    projection = target.projection
    assert projection is not None
    if process is not None:  # whose columns keep their own scale
        unit = np.where(rows.usable, rows.unit, 1.0)
        rows, projection = rows.rescaled(np.arange(n_columns), 1 / unit), projection * unit
    problem = kernel_problem(rows, target.t, target.total, regression.flat, projection=projection)
    units = DataUnits(target.centre, target.unit, rows.unit / target.unit)
    if process is None:
        result = maximum(problem, choice.solver.solver, regression.settings, None)
        return design.kernel_fit(units.fit(problem, result, len(design.indices)))
    result = solve_process(problem)
    return process.kernel_fit(units.fit(problem, result, n_columns), target.unit**2 / float(result.alpha[0]))


def _with_excess(fit: KernelFit, passes: Passes, output: int) -> KernelFit:
    """With the variance of new observations beyond noise and posterior, by a pass over the rows."""
    assert isinstance(fit.basis, KernelBasis)
    columns = KernelColumns(fit.basis.kernel, fit.basis.centres)
    held_out = passes.reduce(OnKernel(HeldOutError(fit, output), columns))
    excess = max(held_out.value / held_out.n, 0.0)
    freedom = pooled_freedom(fit.noise_variance, fit.freedom, excess, held_out.n - fit.basis.ones)
    return replace(fit, excess=excess, freedom=freedom)


class BlockKernelClassifierMixin(BlockKernelMixin, BlockClassesMixin):
    """`fit_blocks` of a relevance vector classifier: a sample chooses the vectors, passes over all rows fit them."""

    vectors: str
    tol: float
    max_iter: int
    _store: Callable[[Sequence[KernelFit]], None]
    gamma_: float | None

    def _by_passes(self, passes: Passes) -> None:
        """Fit and store the model.

        The sample has as many rows of each class as can be had: where one is rare it would hardly be in the sample, and
        that classes are sampled at other rates changes the intercept alone, which all rows then determine.
        """
        flat = ("flat",) if self.fit_intercept else ("flat", "ard")
        self._refuse(
            multi_class=("one-vs-rest",), inference=("laplace",), vectors=("auto", "sparse"), intercept_prior=flat
        )
        counts, weights = self._classes(passes)
        rows, chosen = self._sample(passes, counts.values, 1 / counts.weight)
        chosen.set_params(vectors="sparse", class_weight=None)
        chosen.fit(rows.X, rows.t, sample_weight=rows.weight)
        each = zip(self._against_the_rest(passes, counts, weights), chosen._fits, strict=True)
        fits = [self._refitted(fit, rows.X, *reduce) for reduce, fit in each]
        self._store(fits)
        self.gamma_ = chosen.gamma_
        warn_unless_converged(self)

    def _refitted(
        self, fit: KernelFit, X: FloatArray, level: float, reduce: Callable[..., SiteSums], n: float
    ) -> KernelFit:
        """Vectors that a sample chose, with precisions and weights by all rows."""
        assert isinstance(fit.basis, KernelBasis)
        kernel, centres, flat = fit.basis.kernel, fit.basis.centres, self.fit_intercept
        K, m = kernel(X, centres), len(centres)
        origin = K.mean(axis=0) if flat else np.zeros(m)
        unit = np.sqrt(((K - origin) ** 2).mean(axis=0))
        unit[unit == 0] = np.inf
        prior, price = ARD(min_alpha=MIN_ALPHA), PerUnit(0.0)

        def on_vectors(statistic: Any, which: Any) -> SiteSums:
            return reduce(OnKernel(statistic, KernelColumns(kernel, centres[which])))

        settings = Settings(self.tol, self.max_iter, progress(self.verbose))
        search = Streamed(m, Bernoulli(), price, prior, flat, settings, on_vectors, units=Units(origin, unit))
        start = fit.precision[:m] / unit**2, fit.coef * np.where(np.isfinite(unit), unit, 0.0)
        result = search.refitted(np.arange(m), *start, level if flat else 0.0)
        known = Problem(
            design=DenseRows(np.empty((0, m)), origin, unit, np.empty(0)), t=np.empty(0), weight=np.array([n]),
            likelihood=Bernoulli(), prior=prior, price=price, flat_intercept=flat,
        )  # fmt: skip
        nobody = np.full(0, -1)
        design = KernelDesign(np.empty((0, X.shape[1])), fit.indices, nobody, centres, kernel)
        return design.kernel_fit(glm_fit(known, result, m))
