"""What the regressors share: one fit per output, and predictions with their spread."""

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from sparsebayes.core.predictive import check_coverage
from sparsebayes.core.types import BoolArray, FloatArray
from sparsebayes.engine.least_squares import NOISE_FLOOR
from sparsebayes.estimators._base import NamedParameters, SupportMixin, warn_unless_converged
from sparsebayes.estimators._callbacks import CallbackSupportMixin
from sparsebayes.estimators._elsewhere import lazily
from sparsebayes.estimators._inputs import double, over_blocks, validated, validated_rows
from sparsebayes.estimators._linear import LinearFit, of_all_features
from sparsebayes.estimators._notebook import NotebookMixin
from sparsebayes.estimators._validation import check_total, checked_weight


def _product(fit: LinearFit, weights: FloatArray, X: Any) -> FloatArray:
    return fit.basis(X) @ weights


class PosteriorRegressor(CallbackSupportMixin, NotebookMixin, RegressorMixin, NamedParameters):
    """A regressor with a Gaussian posterior for each output; `fit` sets `_fits` and `_single` (1-D y)."""

    _fits: Sequence[LinearFit]
    _single: bool
    fit_intercept: bool
    tol: float
    max_iter: int

    def _numbers(self, name: str) -> Any:
        """A number of each fit: plain for 1-D y, an array for 2-D y."""
        values = [getattr(fit, name) for fit in self._fits]
        return values[0] if self._single else np.array(values)

    def _arrays(self, values: list[Any]) -> Any:
        """An array of each fit, whose shapes differ: plain for 1-D y, a list for 2-D y."""
        return values[0] if self._single else values

    def _store_common(self) -> None:
        """Fitted attributes of every regressor."""
        fits = self._fits
        self.intercept_ = self._numbers("intercept")
        self.log_evidence_ = self._numbers("log_evidence")
        self.optimality_gap_ = self._numbers("gap")
        self.precision_ = self._arrays([fit.precision[: len(fit.active)] for fit in fits])
        self.covariance_ = self._arrays([fit.covariance for fit in fits])
        self.evidence_path_ = self._arrays([fit.path for fit in fits])
        self.converged_ = all(fit.converged for fit in fits)
        self.n_iter_ = max(len(fit.path) for fit in fits)
        self.n_jittered_ = sum(fit.n_jittered for fit in fits)

    def _validated(self, X: Any, y: Any, sample_weight: Any) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
        """Inputs, targets and weights of the rows that count, and which of those given these are."""
        several = self.__sklearn_tags__().target_tags.multi_output
        X, y = validated(self, X, y, multi_output=several, y_numeric=True, ensure_min_samples=2)
        y = np.asarray(y, dtype=np.float64)
        weight = checked_weight(sample_weight, X)
        counts = weight > 0
        if not counts.all():
            X, y, weight = X[counts], y[counts], weight[counts]
        check_total(weight, self.fit_intercept)
        return X, y, weight, counts

    def _validate(self, X: Any) -> Any:
        return validated_rows(self, X)

    @property
    def _width(self) -> int:
        """Columns of the widest model: what a prediction forms for each row."""
        return max(len(fit.mean) for fit in self._fits)


class GaussianRegressor(PosteriorRegressor):
    """With additive noise for each output, Gaussian unless the fit says otherwise; any number of outputs."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @property
    def degrees_of_freedom_(self) -> Any:
        """Degrees of freedom of the Student quantile in `predict_interval`.

        N - Σγ for a linear model; kernel models pool it with those of `excess_variance_` (Welch and Satterthwaite).
        """
        return self._numbers("freedom")

    def _store_common(self) -> None:
        """Fitted attributes of every such regressor."""
        super()._store_common()
        self.noise_variance_ = self._numbers("noise_variance")

    def _warn(self, remedy: str) -> None:
        """Warn of a search that did not converge, and of a noise at its floor, with advice."""
        warn_unless_converged(self)
        if any(fit.noise_at_floor for fit in self._fits):
            warnings.warn(
                f"the noise variance reached its floor ({NOISE_FLOOR:g} of the squared spread of y): the model "
                f"reproduces y exactly. If y is not noise-free, {remedy}.",
                RuntimeWarning,
                stacklevel=2,
            )

    @lazily
    def predict(
        self, X: Any, return_std: bool = False, return_cov: bool = False
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Predictive mean, and the standard deviation or covariance of new observations (noise included).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std : bool, default=False
            Also return the standard deviation of each prediction.
        return_cov : bool, default=False
            Also return the joint covariance; for 2-D y the outputs are the last axis.
        """
        if return_std and return_cov:
            raise ValueError("return_std and return_cov exclude each other: ask for one of them")
        X = self._validate(X)
        if return_cov:
            X = double(X)
            spreads = [fit.latent_covariance(X) + np.diag(fit.own_variance(X)) for fit in self._fits]
            return self._join([fit.latent(X) for fit in self._fits]), self._join(spreads)
        return over_blocks(self._with_std if return_std else self._mean, X, width=self._width)

    def _mean(self, X: Any) -> FloatArray:
        return self._join([fit.latent(X) for fit in self._fits])

    def _with_std(self, X: Any) -> tuple[FloatArray, FloatArray]:
        return self._mean(X), self._join([np.sqrt(fit.latent_variance(X) + fit.own_variance(X)) for fit in self._fits])

    @lazily
    def predict_interval(self, X: Any, coverage: float = 0.9) -> FloatArray:
        """Central interval of new observations: lower and upper end on the last axis.

        Student's quantile with the degrees of freedom that the weights left accounts for the learned noise.
        """
        check_coverage(coverage)

        def interval(rows: Any) -> FloatArray:
            ends = [fit.interval(rows, coverage) for fit in self._fits]
            return ends[0] if self._single else np.stack(ends, axis=1)

        return over_blocks(interval, self._validate(X), width=self._width)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = None) -> FloatArray:
        """Draws of new observations, of shape (n_rows, n_samples) or (n_rows, n_outputs, n_samples)."""
        X = self._validate(X)
        rng = check_random_state(random_state)
        draws = []
        for fit in self._fits:
            weights = fit.draw(n_samples, rng).T
            latent = over_blocks(partial(_product, fit, weights), X, width=max(self._width, n_samples))
            draws.append(latent + fit.noise_draws(double(X), n_samples, rng))
        return draws[0] if self._single else np.stack(draws, axis=1)

    def _join(self, outputs: list[FloatArray]) -> FloatArray:
        return outputs[0] if self._single else np.stack(outputs, axis=-1)


class LinearRegressor(SupportMixin, PosteriorRegressor):
    """A regressor whose columns are the features: stored weights, the features kept, and draws."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = getattr(self, "solver", None) != "reweighted-l1"  # the lasso takes dense columns
        return tags

    def _store(self, fits: Sequence[LinearFit], *, single: bool) -> None:
        """Fitted attributes of a model whose columns are the features.

        Plain for 1-D y; one entry per output (a list where shapes differ) for 2-D y.
        """
        coef, relevance = of_all_features(fits, self.n_features_in_)
        self._fits, self._single = fits, single
        self.coef_ = coef[0] if single else coef
        self.relevance_ = relevance[0] if single else relevance
        self.gain_ = self._numbers("worth")
        self.min_gain_ = fits[0].min_gain
        self.active_ = self._arrays([fit.active for fit in fits])
        self._store_common()

    def _store_single(self, fits: Sequence[LinearFit]) -> None:
        """Fitted attributes again, of other fits to the same data."""
        self._store(fits, single=self._single)

    def coef_interval(self, coverage: float = 0.9) -> FloatArray:
        """Central posterior intervals of the weights: lower and upper end on the last axis.

        With averaging an interval holds zero where the feature may well be out; it is [0, 0] where it surely is.
        """
        check_is_fitted(self)
        check_coverage(coverage)
        ends = [fit.weight_interval(coverage, self.n_features_in_) for fit in self._fits]
        return ends[0] if self._single else np.array(ends)

    def sample_posterior(self, n_samples: int = 1, random_state: Any = None) -> tuple[FloatArray, FloatArray]:
        """Draws from the posterior of the weights.

        Returns
        -------
        coef : ndarray of shape (n_samples, n_features) or (n_samples, n_outputs, n_features)
        intercept : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        check_is_fitted(self)
        rng = check_random_state(random_state)
        draws = [fit.weight_samples(n_samples, self.n_features_in_, rng) for fit in self._fits]
        if self._single:
            return draws[0]
        return np.stack([coef for coef, _ in draws], axis=1), np.stack([level for _, level in draws], axis=1)
