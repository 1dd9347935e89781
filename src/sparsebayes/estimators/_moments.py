"""Regression from moments alone: `fit_moments`, and the target as a solver takes it, from rows or from moments."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import _fit_context

from sparsebayes.core.moments import Moments
from sparsebayes.core.types import FloatArray
from sparsebayes.data.moment_rows import MomentRows
from sparsebayes.estimators._base import counted, threads_for, watched, whole_fit


class Target(NamedTuple):
    """A target in standard units, in the place of which `centre + unit t` stands in the data."""

    t: FloatArray
    """Rows multiplied by the root of their weights, and centred where the intercept is flat."""
    centre: float
    unit: float
    total: float
    """Rows, counted by weight."""
    constant: bool
    """Whether there is no spread beyond rounding."""

    @classmethod
    def of(cls, y: FloatArray, weight: FloatArray, root_weight: FloatArray, intercept: bool, flat: bool) -> "Target":
        """From rows."""
        total = float(weight.sum())
        centre = float(weight @ y) / total if intercept else 0.0
        unit = float(np.sqrt(weight @ (y - centre) ** 2 / total))
        constant = bool(unit <= 8 * np.finfo(np.float64).eps * np.abs(y).max())
        return cls(root_weight * (y - centre if flat else y) / (unit or 1.0), centre, unit, total, constant)


def targets_of(moments: Moments, rows: FloatArray, intercept: bool) -> list[Target]:
    """From moments and the rows that stand for the targets."""
    found, constant = [], moments.constant()
    for k, row in enumerate(rows, start=moments.n_features):
        centre = float(moments.mean[k]) if intercept else 0.0
        square = moments.about(intercept)[k, k]
        unit = float(np.sqrt(square / moments.n))
        flat_line = bool(constant[k]) if intercept else unit == 0
        found.append(Target(row / (unit or 1.0), centre, unit, moments.n, flat_line))
    return found


class MomentsMixin:
    """`fit_moments`, for a regressor with Gaussian noise."""

    fit_intercept: bool
    intercept_prior: str
    noise: str
    multi_output: str
    warm_start: bool
    n_features_in_: int
    feature_names_in_: Any
    _check_noise: Callable[..., None]
    _averages: Callable[..., bool]
    _known_noise: Callable[..., float | None]
    _read_groups: Callable[[], None]
    _single_fits: Callable[[], Sequence[Any]]
    _forget_averages: Callable[[], None]
    _fit_target: Callable[..., Any]
    _store_found: Callable[..., None]

    @whole_fit
    @_fit_context(prefer_skip_nested_validation=True)
    @watched
    def fit_moments(self, moments: Moments, feature_names: Any = None) -> Any:
        """Fit the model from the moments of the rows alone; the answer is that of `fit` on the rows.

        Parameters
        ----------
        moments : Moments
            Count, mean and scatter of [X, y], which a database or a cluster can compute (docs/scaling.md).
        feature_names : sequence of str, optional
            Names of the columns of X.
        """
        if not isinstance(moments, Moments):
            raise TypeError(f"moments must be a sparsebayes.Moments, not {type(moments).__name__}")
        if self.noise != "gaussian":
            raise ValueError("fit_moments needs noise='gaussian': outliers cannot be seen in moments")
        if not moments.n_features:
            raise ValueError(f"moments have {moments.n_outputs} targets and no features")
        if moments.n <= 1 + self.fit_intercept:
            raise ValueError(f"moments of {moments.n:g} rows: give at least {2 + self.fit_intercept}")
        if self.multi_output == "joint" and moments.n_outputs > 1:
            raise ValueError("fit_moments needs multi_output='independent'")
        self._check_noise()
        self._name_features(moments.n_features, feature_names)
        self._read_groups()
        averages, previous = self._averages(moments.n_features), self._single_fits() if self.warm_start else []
        self._forget_averages()
        flat = self.fit_intercept and self.intercept_prior == "flat"
        rows, lines = MomentRows.from_moments(moments, centre=flat, ones=self.fit_intercept and not flat)
        targets = targets_of(moments, lines, self.fit_intercept)
        with threads_for(rows.X.size):
            starts = [*previous, *[None] * len(targets)]
            parts = counted(zip(targets, starts, strict=False), len(targets), "output")
            found = [
                self._fit_target(rows, target, flat, start, averages, self._known_noise()) for target, start in parts
            ]
        self._store_found(found, rows, averages, single=len(targets) == 1)
        return self

    def _name_features(self, n_features: int, names: Any) -> None:
        """What `validate_data` sets where there are rows."""
        self.n_features_in_ = n_features
        vars(self).pop("feature_names_in_", None)
        if names is None:
            return
        known = [str(name) for name in names]
        if len(known) != n_features:
            raise ValueError(f"feature_names has {len(known)} names, but the moments have {n_features} features")
        self.feature_names_in_ = np.array(known, dtype=object)
