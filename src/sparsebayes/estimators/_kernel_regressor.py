"""Regression on kernel columns: everything but which model is looked for."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sparsebayes.core.predictive import pooled_freedom
from sparsebayes.core.prices import HalfTheRows
from sparsebayes.core.types import FloatArray
from sparsebayes.engine.evidence_gradient import gaussian_evidence
from sparsebayes.engine.least_squares import LOW_NOISE, LeastSquares, Solution
from sparsebayes.engine.leave_one_out import KernelResult
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.regression import maximum, priced
from sparsebayes.engine.width import Fit
from sparsebayes.estimators._base import counted, progress, threads_for, watched, whole_fit
from sparsebayes.estimators._kernel import (
    Dictionary,
    FarVariance,
    KernelFit,
    KernelMixin,
    dictionary,
    first_gamma,
    gamma_of_evidence,
    has_gamma,
    kernel_of,
)
from sparsebayes.estimators._linear import Units, constant_fit
from sparsebayes.estimators._regressor import GaussianRegressor


@dataclass(frozen=True)
class Target:
    """An output in standard units, and how it came there: y = centre + unit t."""

    y: FloatArray
    t: FloatArray
    weight: FloatArray
    centre: float
    unit: float
    flat: bool
    constant: bool

    def problem(self, rows: Any, price: float = 0.0) -> LeastSquares:
        """The regression of this output on standardised columns, with flat hyper-priors."""
        total = float(self.weight.sum())
        return LeastSquares(
            design=rows,
            t=self.t,
            n_weighted=total,
            flat_intercept=self.flat,
            price=HalfTheRows(total - self.flat, price),
            start_alpha=1.0,
            start_noise=LOW_NOISE,
        )


class KernelRegressor(KernelMixin, GaussianRegressor, ABC):
    """A regressor on kernel columns; subclasses say which model is looked for (`_found`)."""

    gamma: str | float
    far_variance: str
    max_iter: int
    tol: float
    verbose: int

    @property
    def _remedy(self) -> str:
        """What to do about a noise that has vanished."""
        return "choose a wider kernel (a smaller gamma) or fewer candidates"

    @property
    def _intercept_is_flat(self) -> bool:
        """Whether an intercept has no prior."""
        return True

    @property
    def _follows_starts(self) -> bool:
        """Whether the model is found by the sequential ARD search: from a start, or on a low-rank factor."""
        return False

    def _rows(self, book: Dictionary, weight: FloatArray, flat: bool) -> Any:
        """The columns in the solver's units."""
        return book.rows.standardised(weight, centre=flat)

    @abstractmethod
    def _found(self, problem: LeastSquares, target: Target, book: Dictionary, start: Solution | None) -> KernelResult:
        """The model of one output."""

    @whole_fit
    @_fit_context(prefer_skip_nested_validation=True)
    @watched
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
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
        flat = self.fit_intercept and self._intercept_is_flat
        ones = self.fit_intercept and not flat
        book = dictionary(self, X, weight, counts, ones=ones, low_rank=self._follows_starts)
        if self.far_variance == "augment" and book.kernel is None:
            raise ValueError("far_variance='augment' needs a kernel that can be evaluated, not kernel='precomputed'")
        targets = [self._target(output, weight, flat) for output in y.reshape(len(y), -1).T]
        starts: list[Solution | None] = [None] * len(targets)
        gamma = first_gamma(self.gamma, X, weight) if has_gamma(self) else None
        with threads_for(book.rows.n_rows * book.rows.n_columns):
            if gamma is not None and self.gamma == "evidence":
                gamma, best = self._width(book, targets)
                book = book.at(kernel_of(self, gamma))
                if self._follows_starts:
                    found = iter(best.model)
                    starts = [None if target.constant else next(found) for target in targets]
            book = replace(book, rows=self._rows(book, weight, flat))
            outputs = counted(zip(targets, starts, strict=True), len(targets), "output")
            fits = [self._fit_output(book, target, start) for target, start in outputs]
        self._store(fits, gamma, single=y.ndim == 1)
        self._warn(self._remedy)
        return self

    def _target(self, y: FloatArray, weight: FloatArray, flat: bool) -> Target:
        """An output in the solver's standard units: variance one, and mean zero where the intercept is flat."""
        total = float(weight.sum())
        centre = float(weight @ y) / total if self.fit_intercept else 0.0
        unit = float(np.sqrt(weight @ (y - centre) ** 2 / total))
        constant = unit <= 8 * np.finfo(np.float64).eps * np.abs(y).max()
        t = np.sqrt(weight) * (y - centre if flat else y) / (1.0 if constant else unit)
        return Target(y, t, weight, centre, unit, flat, bool(constant))

    def _settings(self) -> Settings:
        return Settings(self.tol, self.max_iter, progress(self.verbose))

    def _width(self, book: Dictionary, targets: list[Target]) -> tuple[float, Fit[list[Solution]]]:
        """γ of largest evidence over all outputs with any spread, and their models there."""
        weight, flat = targets[0].weight, targets[0].flat
        targets = [target for target in targets if not target.constant]

        def fit_at(book: Dictionary, near: Fit[list[Solution]] | None) -> Fit[list[Solution]]:
            rows = book.rows.standardised(weight, centre=flat)
            problems = [target.problem(rows) for target in targets]
            start = None
            if near is not None and len(targets) == 1:
                alpha = np.exp(near.scales[:-1]) / rows.scale[near.active] ** 2
                start = Solution(near.active, alpha, float(np.exp(near.scales[-1])))
            results = [maximum(problem, "sequential", self._settings(), start) for problem in problems]
            objective = sum(priced(problem, result) for problem, result in zip(problems, results, strict=True))
            found = [result.solution for result in results]
            active = np.concatenate([np.empty(0, dtype=np.intp), *(model.active for model in found)])
            scales = [np.append(model.alpha * rows.scale[model.active] ** 2, model.noise) for model in found]
            return Fit(float(objective), active, np.log(np.concatenate([np.empty(0), *scales])), found)

        evidence = None
        if len(targets) == 1 and not book.ones:
            evidence = gaussian_evidence(targets[0].problem(book.rows.standardised(weight, centre=flat)))
        return gamma_of_evidence(self, book, weight, fit_at, evidence)

    def _fit_output(self, book: Dictionary, target: Target, start: Solution | None) -> KernelFit:
        """Fit one output."""
        if target.constant:
            empty = constant_fit(target.centre, self.fit_intercept, len(book.indices), 0.0)
            return book.kernel_fit(empty, np.arange(book.rows.n_columns))
        return self._in_user_units(book, target, self._found(target.problem(book.rows), target, book, start))

    def _in_user_units(self, book: Dictionary, target: Target, found: KernelResult) -> KernelFit:
        """What was found, in the data's units."""
        n_columns, unit = len(book.indices), target.unit
        units = Units(target.centre, unit, found.problem.design.scale / unit)
        fit, excess, far = units.fit(found.problem, found.result, n_columns), found.excess * unit**2, None
        if self.far_variance == "augment":
            far = FarVariance(book.X, target.weight, max(unit**2 - fit.noise_variance - excess, 0.0))
        freedom = pooled_freedom(fit.noise_variance, fit.freedom, excess, found.problem.n)
        return book.kernel_fit(
            fit, found.columns, excess=excess, far=far, freedom=freedom, rate=found.problem.prior.rules.rate
        )

    def _store(self, fits: list[KernelFit], gamma: float | None, *, single: bool) -> None:
        """Fitted attributes: plain for 1-D y; one entry per output (a list where shapes differ) for 2-D y."""
        self._fits, self._single = fits, single
        self.relevance_vectors_ = self._arrays([fit.vectors for fit in fits])
        self.relevance_indices_ = self._arrays([fit.indices for fit in fits])
        self.dual_coef_ = self._arrays([fit.coef for fit in fits])
        self.relevance_ = self._arrays([fit.gamma[: len(fit.active)] for fit in fits])
        self.excess_variance_ = self._numbers("excess")
        self.gamma_ = gamma
        self._store_common()

    def sample_posterior(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Draws from the posterior of the kept weights.

        Returns
        -------
        dual_coef : ndarray of shape (n_samples, n_vectors)
        intercept : ndarray of shape (n_samples,)
            For 2-D y both are lists with one array per output.
        """
        check_is_fitted(self)
        rng = check_random_state(random_state)
        draws = [fit.kept_samples(n_samples, rng) for fit in self._fits]
        return draws[0] if self._single else ([coef for coef, _ in draws], [level for _, level in draws])
