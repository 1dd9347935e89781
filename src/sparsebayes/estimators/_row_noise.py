"""Noise that differs from row to row, or is correlated between rows, in a known way: the fit argument `row_noise`.

The noise has the covariance s V with V as given. Rows of different variance are weighted by its inverse. Correlated
rows are whitened and then rotated such that the column of ones is a column of ones again: what is left is an ordinary
regression with the same weights and the same intercept (docs/noise.md).
"""

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.sparse import issparse
from sklearn.utils.validation import check_array

from sparsebayes.core.types import BoolArray, FloatArray
from sparsebayes.estimators._linear import LinearFit

Fit = TypeVar("Fit", bound=LinearFit)


@dataclass(frozen=True)
class RowNoise:
    """An ordinary regression that is equivalent to one with `row_noise`, and the transformation back."""

    X: FloatArray
    y: FloatArray
    weight: FloatArray
    scale: float = 1.0
    """s over the noise variance of the ordinary regression."""
    log_volume: float = 0.0
    """What the change of variables adds to the log evidence of each output."""

    def back(self, fit: Fit) -> Fit:
        """A fit of the ordinary regression as one of the data given."""
        if self.scale == 1 and self.log_volume == 0:
            return fit
        return replace(
            fit,
            noise_variance=fit.noise_variance * self.scale,
            log_evidence=fit.log_evidence + self.log_volume,
            path=fit.path + self.log_volume,
        )


def whitened(X: Any, y: FloatArray, weight: FloatArray, row_noise: Any, counts: BoolArray, centres: bool) -> RowNoise:
    """The ordinary regression. X, y and weight have the rows that count; `row_noise` has all that were given."""
    if row_noise is None:
        return RowNoise(X, y, weight)
    V = np.asarray(check_array(row_noise, ensure_2d=False, dtype=np.float64, input_name="row_noise"))
    n = len(counts)
    if V.shape == (n,):
        if not (V > 0).all():
            raise ValueError(f"row_noise must be positive in every row; one of them is {V.min():g}")
        return _weighted(X, y, weight, V[counts])
    if V.shape != (n, n):
        raise ValueError(f"row_noise has shape {V.shape}; give one variance for each of the {n} rows, or a covariance")
    if not np.allclose(V, V.T, rtol=1e-8, atol=0):
        raise ValueError("row_noise is no covariance: it is not symmetric")
    if np.ptp(weight) > 0:
        raise ValueError("sample_weight and a covariance as row_noise exclude each other: a row cannot count twice")
    X = X.toarray() if issparse(X) else X  # the covariance is larger than the rows
    return _rotated(X, y, weight, V[np.ix_(counts, counts)], centres)


def _weighted(X: FloatArray, y: FloatArray, weight: FloatArray, V: FloatArray) -> RowNoise:
    """Rows of precision 1/V, scaled such that the weights add up to the same number of rows."""
    scale = float(weight @ (1 / V)) / float(weight.sum())
    precision = 1 / (V * scale)
    return RowNoise(X, y, weight * precision, scale, 0.5 * float(weight @ np.log(precision)))


def _rotated(X: FloatArray, y: FloatArray, weight: FloatArray, V: FloatArray, centres: bool) -> RowNoise:
    """H W X and H W y: W whitens, and the reflection H takes W 1 to a multiple of 1, which V's scale makes 1 itself."""
    try:
        L = cholesky(V, lower=True)
    except LinAlgError:
        raise ValueError("row_noise is no covariance: it is not positive definite") from None
    n, columns = len(V), y.reshape(len(y), -1)
    white = solve_triangular(L, np.column_stack([X, columns, np.ones(n)]), lower=True)
    ones, scale = white[:, -1], 1.0
    if centres:
        scale = float(ones @ ones) / n
        white /= np.sqrt(scale)
        axis = ones - 1.0
        if (length := float(axis @ axis)) > 0:
            white -= np.multiply.outer(axis, 2 * (axis @ white) / length)
    log_volume = -float(np.log(np.diag(L)).sum()) - 0.5 * n * np.log(scale)
    D = X.shape[1]
    return RowNoise(np.ascontiguousarray(white[:, :D]), white[:, D:-1].reshape(y.shape), weight, scale, log_volume)
