"""Regression from moments alone: `fit_moments`, and targets in standard units, from rows or from moments."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from sparsebayes.core.moments import Moments
from sparsebayes.core.posterior import Reductions
from sparsebayes.core.types import FloatArray
from sparsebayes.data.moment_rows import MomentRows
from sparsebayes.estimators._base import counted, fit_context, threads_for, watched, whole_fit
from sparsebayes.estimators._validation import name_features

MANY = 16
"""Targets from which on their products with the columns are one product. For fewer that saves nothing, and each target
has the same answer, to the last bit, as alone."""


class Target(NamedTuple):
    """A target in standard units: in the data it is `centre + unit t`."""

    t: FloatArray
    """Rows multiplied by the root of their weights, and centred where the intercept is flat."""
    centre: float
    unit: float
    total: float
    """Rows, counted by weight."""
    constant: bool
    """Whether there is no spread beyond rounding."""
    projection: FloatArray | None = None
    """Φᵀt, where it is known."""

    @classmethod
    def of(cls, y: FloatArray, weight: FloatArray, root_weight: FloatArray, intercept: bool, flat: bool) -> "Target":
        """From rows."""
        total = float(weight.sum())
        centre = float(weight @ y) / total if intercept else 0.0
        unit = float(np.sqrt(weight @ (y - centre) ** 2 / total))
        constant = bool(unit <= 8 * np.finfo(np.float64).eps * np.abs(y).max())
        return cls(root_weight * (y - centre if flat else y) / (unit or 1.0), centre, unit, total, constant)


def targets_of(moments: Moments, rows: FloatArray, products: FloatArray, intercept: bool) -> list[Target]:
    """From moments, the rows that stand for the targets, and their products with the columns."""
    found, constant = [], moments.constant()
    for k, row in enumerate(rows, start=moments.n_features):
        centre = float(moments.mean[k]) if intercept else 0.0
        square = moments.about(intercept)[k, k]
        unit = float(np.sqrt(square / moments.n))
        flat_line = bool(constant[k]) if intercept else unit == 0
        scaled = row / (unit or 1.0), products[k - moments.n_features] / (unit or 1.0)
        found.append(Target(scaled[0], centre, unit, moments.n, flat_line, scaled[1]))
    return found


def projected(targets: list[Target], rows: Reductions) -> list[Target]:
    """With the products of all columns with all targets, if there are many."""
    if len(targets) < MANY:
        return targets
    products = rows.project(np.column_stack([target.t for target in targets])).T
    return [target._replace(projection=product) for target, product in zip(targets, products, strict=True)]


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
    _read_groups: Callable[..., None]
    _single_fits: Callable[[], Sequence[Any]]
    _forget_averages: Callable[[], None]
    _forget_noise: Callable[[], None]
    _fit_target: Callable[..., Any]
    _store_found: Callable[..., None]

    @whole_fit
    @fit_context(prefer_skip_nested_validation=True)
    @watched
    def fit_moments(self, moments: Moments, feature_names: Any = None) -> Self:
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
        name_features(self, moments.n_features, feature_names)
        self._read_groups()
        averages = self._averages((moments.n, moments.n_features))
        previous = self._single_fits() if self.warm_start else []
        self._forget_averages()
        self._forget_noise()
        flat = self.fit_intercept and self.intercept_prior == "flat"
        rows, lines, products = MomentRows.from_moments(moments, centre=flat, ones=self.fit_intercept and not flat)
        targets = targets_of(moments, lines, products, self.fit_intercept)
        with threads_for(rows.n_rows * rows.n_columns):
            starts = [*previous, *[None] * len(targets)]
            parts = counted(zip(targets, starts, strict=False), len(targets), "output")
            found = [
                self._fit_target(rows, target, flat, start, averages, self._known_noise()) for target, start in parts
            ]
        self._store_found(found, rows, averages, single=len(targets) == 1)
        return self
