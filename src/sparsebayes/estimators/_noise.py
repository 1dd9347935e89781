"""The noise of `ARDRegressor`: which parameters go together, and the fitted attributes of rows."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sparsebayes.core.types import BoolArray, FloatArray
from sparsebayes.estimators._heteroscedastic import HeteroscedasticFit
from sparsebayes.estimators._linear import LinearFit, StudentFit
from sparsebayes.estimators._robust import OutlierFit

REMEDIES = {
    "gaussian": "raise min_gain or give the noise precision a prior (c, d)",
    "student": "or if most rows have one value, use noise='gaussian'",
    "outliers": "or if most rows have one value, use noise='gaussian'",
    "heteroscedastic": "use noise='gaussian'",
}
"""Advice for a vanishing noise variance, by the kind of noise."""
LARGEST = 1_000_000
"""Numbers in X up to which average="auto" averages with gross errors: rows are weighted anew thousands of times."""
ATTRIBUTES = (
    "noise_freedom_",
    "outlier_weight_",
    "outlier_share_",
    "outlier_probability_",
    "outliers_",
    "noise_coef_",
    "noise_intercept_",
)
"""Fitted attributes that only some kinds of noise have."""
CLAIMED_OUTLIER = 0.5
"""Probability above which a row is called an outlier: more likely than not."""


class NoiseMixin:
    """The parameters `noise` and `noise_variance`, and fitted attributes of single rows."""

    noise: str
    noise_variance: str | float
    solver: str
    c: float
    d: float
    warm_start: bool
    fit_intercept: bool
    intercept_prior: str
    average: bool | str
    _fits: Sequence[LinearFit]
    _single: bool
    _arrays: Callable[[list[Any]], Any]

    def _known_noise(self, scale: float = 1.0) -> float | None:
        """The noise variance where it is given, in units of `scale`."""
        return None if isinstance(self.noise_variance, str) else self.noise_variance / scale

    def _forget_noise(self) -> None:
        """Remove fitted attributes of an earlier fit with another kind of noise."""
        for name in ATTRIBUTES:
            vars(self).pop(name, None)

    def _check_noise(self, has_row_noise: bool = False) -> None:
        """Raise ValueError for parameters that do not go with the kind of noise."""
        known = self._known_noise() is not None
        if known and (self.solver not in ("auto", "sequential") or self.c or self.d):
            raise ValueError("noise_variance, where it is given, needs solver='auto' or 'sequential', and c=d=0")
        if self.noise == "gaussian":
            return
        if known or has_row_noise:
            raise ValueError(f"noise_variance and row_noise need noise='gaussian', not noise={self.noise!r}")
        if self.solver not in ("auto", "sequential"):
            raise ValueError(f"noise={self.noise!r} needs solver='auto' or 'sequential', not solver={self.solver!r}")
        if self.c or self.d:
            raise ValueError(
                f"noise={self.noise!r} has no hyper-prior on the noise: c={self.c:g} and d={self.d:g} must be 0"
            )
        if self.noise == "heteroscedastic" and self.fit_intercept and self.intercept_prior != "flat":
            raise ValueError("noise='heteroscedastic' needs intercept_prior='flat'")
        if self.warm_start:
            raise ValueError(f"noise={self.noise!r} does not support warm_start=True")

    def _averages_robustly(self, size: int, weight: FloatArray) -> bool:
        """Whether to average where each row has a factor of its own, and sweeps weight the rows anew."""
        if self.noise == "heteroscedastic":
            return True
        if self.average is True and np.ptp(weight) > 0:
            raise ValueError(f"average=True with noise={self.noise!r} needs rows of equal sample_weight")
        small = self.noise == "outliers" and size <= LARGEST and np.ptp(weight) == 0
        return self.average is True or small

    def _store_noise(self, X: FloatArray, outputs: FloatArray, counts: BoolArray) -> None:
        """Fitted attributes of noise that is not Gaussian; `counts` are the rows given that have a weight."""
        if self.noise == "heteroscedastic":
            self._store_noise_model(X.shape[1])
        else:
            self._store_rows(X, outputs, counts)

    def _store_noise_model(self, n_features: int) -> None:
        """Weights and intercept of the log variance."""
        coef, intercept = np.zeros((len(self._fits), n_features)), np.full(len(self._fits), -np.inf)
        for k, fit in enumerate(self._fits):
            assert isinstance(fit, HeteroscedasticFit)
            assert fit.log_noise is not None
            coef[k, fit.log_noise.active] = fit.log_noise.coef
            if fit.noise_variance > 0:
                intercept[k] = fit.log_noise.intercept + np.log(fit.noise_variance)
        self.noise_coef_ = coef[0] if self._single else coef
        self.noise_intercept_ = float(intercept[0]) if self._single else intercept

    def _store_rows(self, X: FloatArray, outputs: FloatArray, counts: BoolArray) -> None:
        """Fitted attributes of rows under Student noise or gross errors."""
        is_student = self.noise == "student"
        rows, number = (
            np.full((len(counts), len(outputs)), np.nan),
            np.full(len(outputs), np.inf if is_student else 0.0),
        )
        for k, (fit, y) in enumerate(zip(self._fits, outputs, strict=True)):
            # A target without any spread has neither noise nor outliers.
            rows[counts, k], number[k] = float(is_student), np.inf if is_student else 0.0
            if isinstance(fit, StudentFit):
                rows[counts, k], number[k] = fit.outlier_weight(X, y), fit.noise_freedom
            elif isinstance(fit, OutlierFit):
                rows[counts, k], number[k] = fit.outlier_probability(X, y), fit.outlier_share
        value, found = (float(number[0]), rows[:, 0]) if self._single else (number, rows)
        if is_student:
            self.noise_freedom_, self.outlier_weight_ = value, found
        else:
            self.outlier_share_, self.outlier_probability_ = value, found
            self.outliers_ = self._arrays([np.flatnonzero(row > CLAIMED_OUTLIER) for row in rows.T])
