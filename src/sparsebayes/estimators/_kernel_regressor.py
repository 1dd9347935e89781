"""What kernel regressors share: outputs in standard units, the choice of a width, fits in the data's units."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from sparsebayes.core.predictive import pooled_freedom
from sparsebayes.core.types import BoolArray, FloatArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.evidence_gradient import Evidence, gaussian_evidence
from sparsebayes.engine.kernel_regression import KernelSolver, kernel_problem, log_scales, start_on
from sparsebayes.engine.least_squares import LeastSquares, Solution
from sparsebayes.engine.leave_one_out import KernelResult
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.regression import maximum, priced
from sparsebayes.engine.width import VectorFit
from sparsebayes.estimators._base import counted, fit_context, threads_for, watched, whole_fit
from sparsebayes.estimators._kernel import FarVariance, KernelFit, KernelMixin, VectorsMixin
from sparsebayes.estimators._kernel_design import KernelDesign, KernelParameters, Width, choose_width
from sparsebayes.estimators._linear import Units, constant_fit

WIDER_KERNEL = "choose a wider kernel (a smaller gamma) or fewer candidates"
"""What helps against a vanishing noise."""


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

    def choose_width(self, parameters: KernelParameters) -> Width:
        """The γ that the parameters ask for; by evidence it is that of all outputs with any spread together."""
        targets = [target for target in self.targets if not target.constant]

        def fit_on(design: KernelDesign, near: VectorFit | None) -> VectorFit:
            columns = design.columns.standardised(self.weight, centre=self.flat)
            problems = [target.problem(columns) for target in targets]
            start = None if near is None else start_on(columns.unit, near)
            results = [maximum(problem, "sequential", self.settings, start) for problem in problems]
            objective = sum(priced(problem, result) for problem, result in zip(problems, results, strict=True))
            solutions = tuple(result.solution for result in results)
            active = np.concatenate([np.empty(0, dtype=np.intp), *(found.active for found in solutions)])
            scales = np.concatenate([np.empty(0), *(log_scales(columns.unit, found) for found in solutions)])
            return VectorFit(float(objective), active, scales, solutions)

        def evidence() -> Evidence | None:
            if len(targets) != 1 or self.design.ones:
                return None
            no_columns = DenseRows.of(np.empty((len(self.weight), 0)))
            return gaussian_evidence(targets[0].problem(no_columns.standardised(self.weight, centre=self.flat)))

        # Vectors of several outputs are found separately, so that there is no common model to start from.
        warm = len(targets) == 1
        return choose_width(parameters, self.design, self.weight, fit_on, evidence, warm_starts=warm)

    def starts(self, width: Width) -> list[Solution | None]:
        """The models that were found with the width, as starts; None for a constant output."""
        if width.fit is None:
            return [None] * len(self.targets)
        found = iter(width.fit.solutions)
        return [None if target.constant else next(found) for target in self.targets]

    def fit_outputs(
        self,
        design: KernelDesign,
        solver_for: Callable[[Target], KernelSolver],
        starts: list[Solution | None] | None = None,
    ) -> list[KernelFit]:
        """The fits of all outputs, from nothing or from starts; all solvers must standardise alike."""
        columns = solver_for(self.targets[0]).standardise(design.columns, self.weight, self.flat)
        starts = [None] * len(self.targets) if starts is None else starts
        fits = []
        for target, start in counted(zip(self.targets, starts, strict=True), len(self.targets), "output"):
            if target.constant:
                fits.append(self.constant(design, target))
            else:
                found = solver_for(target).solve(target.problem(columns), design.own_column, start)
                fits.append(self.in_data_units(design, target, found))
        return fits

    def constant(self, design: KernelDesign, target: Target) -> KernelFit:
        """The model of an output without any spread."""
        return design.kernel_fit(constant_fit(target.centre, self.fit_intercept, len(design.indices), 0.0))

    def in_data_units(self, design: KernelDesign, target: Target, found: KernelResult) -> KernelFit:
        """What a solver found, in the data's units."""
        unit = target.unit
        units = Units(target.centre, unit, found.problem.design.unit / unit)
        fit, excess = units.fit(found.problem, found.result, len(design.indices)), found.excess * unit**2
        far = None
        if self.augment:
            far = FarVariance(design.X, target.weight, max(unit**2 - fit.noise_variance - excess, 0.0))
        freedom = pooled_freedom(fit.noise_variance, fit.freedom, excess, found.problem.n)
        rules = found.problem.prior.rules
        rate = 0.0 if rules is None else rules.rate
        return design.kernel_fit(fit, found.columns, excess=excess, far=far, freedom=freedom, rate=rate)


class Fitted(NamedTuple):
    """What a kernel regressor stores."""

    fits: Sequence[KernelFit]
    gamma: float | None = None
    remedy: str = WIDER_KERNEL
    """What helps against a vanishing noise."""


class KernelRegressorMixin(KernelMixin, VectorsMixin):
    """`fit` of the kernel regressors, which give `_fit_rows`."""

    _validated: Callable[[Any, Any, Any], tuple[FloatArray, FloatArray, FloatArray, BoolArray]]
    _numbers: Callable[[str], Any]
    _store_common: Callable[[], None]
    _warn: Callable[[str], None]

    def _fit_rows(self, X: FloatArray, y: FloatArray, weight: FloatArray, counts: BoolArray) -> Fitted:
        """The fits of all outputs; `counts` marks which of the given rows are the rows of X."""
        raise NotImplementedError

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
