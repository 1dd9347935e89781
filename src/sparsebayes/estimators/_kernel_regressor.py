"""What kernel regressors share: outputs in standard units, the choice of a width, fits in the data's units."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from sparsebayes.core.predictive import pooled_freedom
from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.engine.kernel_regression import KernelSolver, kernel_problem, own_scale
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.leave_one_out import KernelResult, held_out
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.process import regression_signal
from sparsebayes.engine.process import solve as solve_process
from sparsebayes.estimators._base import counted, fit_context, threads_for, watched, whole_fit
from sparsebayes.estimators._elsewhere import streamed
from sparsebayes.estimators._kernel import FarVariance, KernelFit, KernelMixin, VectorsMixin
from sparsebayes.estimators._kernel_design import ChosenKernel, KernelDesign, choose_kernel
from sparsebayes.estimators._linear import Units, constant_fit
from sparsebayes.estimators._process import ProcessDesign, folds

WIDER_KERNEL = "choose a wider kernel (a smaller gamma) or fewer candidates"
"""Advice for a vanishing noise variance."""


@dataclass(frozen=True)
class Target:
    """An output in standard units: y = centre + unit t, rows of t multiplied by the root of their weight."""

    y: FloatArray
    t: FloatArray
    weight: FloatArray
    centre: float
    unit: float
    flat: bool
    """Whether the intercept has a flat prior: t then has the mean zero."""
    constant: bool
    """Whether y has no spread."""

    @classmethod
    def of(cls, y: FloatArray, weight: FloatArray, *, fit_intercept: bool, flat: bool) -> "Target":
        """With variance one, and mean zero if the intercept is flat."""
        total = float(weight.sum())
        centre = float(weight @ y) / total if fit_intercept else 0.0
        unit = float(np.sqrt(weight @ (y - centre) ** 2 / total))
        constant = unit <= 8 * np.finfo(np.float64).eps * np.abs(y).max()  # the rounding of a mean
        t = np.sqrt(weight) * (y - centre if flat else y) / (1.0 if constant else unit)
        return cls(y, t, weight, centre, unit, flat, bool(constant))

    def subset(self, rows: IntArray, fit_intercept: bool) -> "Target":
        """Some of the rows, in standard units of their own."""
        return Target.of(self.y[rows], self.weight[rows], fit_intercept=fit_intercept, flat=self.flat)

    def problem(self, columns: Any, vector_price: float = 0.0) -> LeastSquares:
        """The regression of this output on standardised columns."""
        return kernel_problem(columns, self.t, float(self.weight.sum()), self.flat, vector_price=vector_price)


@dataclass(frozen=True)
class KernelRegression:
    """Outputs that are regressed, each for itself, on the columns of a kernel design."""

    design: KernelDesign
    targets: list[Target]
    fit_intercept: bool
    augment: bool
    """Whether the variance far from all rows is augmented (far_variance="augment")."""
    settings: Settings

    @classmethod
    def of(
        cls, model: Any, design: KernelDesign, y: FloatArray, weight: FloatArray, *, flat: bool
    ) -> "KernelRegression":
        """That of an estimator, for one output or for the columns of y."""
        augment = model.far_variance == "augment"
        if augment and design.centres is None:
            raise ValueError("far_variance='augment' needs a kernel that can be evaluated, not kernel='precomputed'")
        targets = [
            Target.of(output, weight, fit_intercept=model.fit_intercept, flat=flat)
            for output in y.reshape(len(y), -1).T
        ]
        return cls(design, targets, model.fit_intercept, augment, model._settings())

    @property
    def weight(self) -> FloatArray:
        """Weights of the rows."""
        return self.targets[0].weight

    @property
    def flat(self) -> bool:
        """Whether the intercept has a flat prior."""
        return self.targets[0].flat

    def threads(self) -> AbstractContextManager[object]:
        """As many BLAS threads as help with a design of this size."""
        return threads_for(len(self.design.X) * self.design.n_columns)

    def fit_outputs(self, solver_for: Callable[[Target], KernelSolver]) -> list[KernelFit]:
        """The sparse fits of all outputs; all solvers must standardise alike."""
        design = self.design
        columns = solver_for(self.targets[0]).standardise(design.columns, self.weight, self.flat)
        fits = []
        for target in counted(self.targets, len(self.targets), "output"):
            if target.constant:
                fits.append(self.constant(design, target))
            else:
                found = solver_for(target).solve(target.problem(columns), design.own_column)
                fits.append(self.in_data_units(design, target, found))
        return fits

    def process_fits(self, process: ProcessDesign) -> list[KernelFit]:
        """A Gaussian process for each output."""
        return [
            self.constant(process.design, target) if target.constant else self.process_fit(process, target)
            for target in self.targets
        ]

    def process_fit(self, process: ProcessDesign, target: Target) -> KernelFit:
        """A Gaussian process instead of a sparse model."""
        columns = own_scale(process.columns, target.weight, target.flat)
        problem, unit = target.problem(columns), target.unit
        result = solve_process(problem)
        rows = held_out(problem, result, np.full(len(target.y), -1))
        fit = Units(target.centre, unit, columns.unit / unit).fit(problem, result, columns.n_columns)
        excess = rows.excess * unit**2
        freedom = pooled_freedom(fit.noise_variance, fit.freedom, excess, problem.n)
        return process.kernel_fit(fit, unit**2 / float(result.alpha[0]), excess=excess, freedom=freedom)

    def process_predicts_better(self, process: ProcessDesign, solver_for: Callable[[Target], KernelSolver]) -> bool:
        """Whether a Gaussian process gives rows of other folds a higher density than sparse models do."""
        gain = 0.0
        for train, test in folds(self.design, self.weight):
            part = replace(
                self,
                design=self.design.subset(train, self.weight),
                targets=[target.subset(train, self.fit_intercept) for target in self.targets],
            )
            dense = part.process_fits(process.subset(train, self.weight))
            sparse = part.fit_outputs(solver_for)
            for target, rival, fit in zip(self.targets, dense, sparse, strict=True):
                if not target.constant:
                    X, y, weight = self.design.X[test], target.y[test], self.weight[test]
                    gain += float(weight @ (log_density(rival, X, y) - log_density(fit, X, y)))
        return gain > 0

    def constant(self, design: KernelDesign, target: Target) -> KernelFit:
        """The model of an output without any spread."""
        return design.kernel_fit(constant_fit(target.centre, self.fit_intercept, len(design.indices), 0.0))

    def in_data_units(self, design: KernelDesign, target: Target, found: KernelResult) -> KernelFit:
        """The solver's result in the data's units."""
        unit = target.unit
        units = Units(target.centre, unit, found.problem.design.unit / unit)
        fit = units.fit(found.problem, found.result, len(design.indices))
        excess = found.held_out.excess * unit**2
        far = None
        if self.augment:
            far = FarVariance(design.X, target.weight, max(unit**2 - fit.noise_variance - excess, 0.0))
        freedom = pooled_freedom(fit.noise_variance, fit.freedom, excess, found.problem.n)
        rules = found.problem.prior.rules
        rate = 0.0 if rules is None else rules.rate
        return design.kernel_fit(fit, found.columns, excess=excess, far=far, freedom=freedom, rate=rate)


def log_density(fit: KernelFit, X: FloatArray, y: FloatArray) -> FloatArray:
    """Of new observations. No variance is smaller than rounding lets it be."""
    numbers, mean = np.finfo(np.float64), fit.latent(X)
    size = float(np.maximum(np.abs(y), np.abs(mean)).max(initial=0.0))
    variance = np.maximum(fit.latent_variance(X) + fit.own_variance(X), max((numbers.eps * size) ** 2, numbers.tiny))
    return -0.5 * (np.log(variance) + (y - mean) ** 2 / variance)


def choose_regression_kernel(
    model: Any, X: FloatArray, y: FloatArray, weight: FloatArray, *, flat_intercept: bool
) -> ChosenKernel:
    """The kernel of a regressor; a γ by evidence is that of all outputs with any spread together."""

    def standard() -> FloatArray:
        targets = [
            Target.of(output, weight, fit_intercept=flat_intercept, flat=flat_intercept)
            for output in y.reshape(len(y), -1).T
        ]
        spread = [target.t / np.sqrt(weight) for target in targets if not target.constant]
        return np.stack(spread, axis=1) if spread else np.empty((len(X), 0))

    return choose_kernel(model, X, standard, weight, regression_signal, flat_intercept=flat_intercept)


class Fitted(NamedTuple):
    """What a kernel regressor stores."""

    fits: Sequence[KernelFit]
    gamma: float | None = None
    remedy: str = WIDER_KERNEL
    """Advice for a vanishing noise variance."""


class KernelRegressorMixin(KernelMixin, VectorsMixin):
    """`fit` of the kernel regressors, which give `_fit_rows`."""

    _rounding_remedy = "choose a narrower kernel (a larger gamma) or fewer candidates"
    _validated: Callable[[Any, Any, Any], tuple[FloatArray, FloatArray, FloatArray, BoolArray]]
    _numbers: Callable[[str], Any]
    _store_common: Callable[[], None]
    _warn: Callable[[str], None]

    def _fit_rows(self, X: FloatArray, y: FloatArray, weight: FloatArray, counts: BoolArray) -> Fitted:
        """The fits of all outputs; `counts` marks which of the given rows are the rows of X."""
        raise NotImplementedError

    @streamed
    @whole_fit
    @fit_context(prefer_skip_nested_validation=True)
    @watched
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            For a precomputed kernel of shape (n_samples, n_candidates).
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Several outputs are fitted independently.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts: an integer weight is the same as repeated rows.
        """
        X, y, weight, counts = self._validated(X, y, sample_weight)
        fitted = self._fit_rows(X, y, weight, counts)
        self._store(fitted, single=y.ndim == 1)
        self._warn(fitted.remedy)
        return self

    def _store(self, fitted: Fitted, *, single: bool) -> None:
        """Fitted attributes: plain for 1-D y; one entry per output (a list where shapes differ) for 2-D y."""
        self._fits, self._single, self.gamma_ = list(fitted.fits), single, fitted.gamma
        self._store_vectors()
        self.excess_variance_ = self._numbers("excess")
        self._store_common()
