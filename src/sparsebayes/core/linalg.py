"""The few matrix primitives that everything else is written in."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, lapack

from sparsebayes.core.types import FloatArray, Scalar

JITTER_LADDER = (0.0, 1e-14, 1e-12, 1e-10, 1e-8)
"""Multiples of the mean diagonal that are tried in turn before a matrix is called indefinite.

From rounding of a factorisation of some tens of rows (1e-14) to where half of the digits are lost (1e-8)."""


class Factor(NamedTuple):
    """Lower Cholesky factor of a matrix, and the jitter (relative to its mean diagonal) that it took."""

    lower: FloatArray
    jitter: float

    @property
    def logdet(self) -> float:
        """Log determinant of the matrix."""
        return 2.0 * float(np.log(np.diag(self.lower)).sum())

    def half_solve(self, right: FloatArray) -> FloatArray:
        """L⁻¹ right."""
        return np.asarray(lapack.dtrtrs(self.lower, right, lower=1)[0] if self.lower.size else right)

    def colour(self, white: FloatArray) -> FloatArray:
        """L⁻ᵀ white: draws with the inverse of the matrix as covariance, from draws with none."""
        return np.asarray(lapack.dtrtrs(self.lower, white, lower=1, trans=1)[0] if self.lower.size else white)

    def solve(self, right: FloatArray) -> FloatArray:
        """(L Lᵀ)⁻¹ right."""
        return np.asarray(lapack.dpotrs(self.lower, right, lower=1)[0] if self.lower.size else right)

    def inverse_root(self) -> FloatArray:
        """R = L⁻¹ (lower triangular), so that the inverse of the matrix is RᵀR."""
        return np.asarray(lapack.dtrtri(self.lower, lower=1)[0] if self.lower.size else self.lower)


def factorise(matrix: FloatArray) -> Factor:
    """Cholesky factor of a symmetric matrix, climbing the jitter ladder when rounding made it indefinite."""
    if not matrix.size:
        return Factor(np.zeros((0, 0)), 0.0)
    mean_diagonal = float(np.trace(matrix)) / len(matrix)
    for jitter in JITTER_LADDER:
        shifted = matrix if jitter == 0 else matrix + jitter * mean_diagonal * np.eye(len(matrix))
        lower, info = lapack.dpotrf(shifted, lower=1, clean=1)
        if info == 0 and np.isfinite(mean_diagonal):
            return Factor(np.asarray(lower), jitter)
    raise LinAlgError(
        f"a {len(matrix)}×{len(matrix)} matrix is not positive definite even with jitter {JITTER_LADDER[-1]:g} "
        "of its mean diagonal"
    )


def factorise_balanced(matrix: FloatArray) -> tuple[Factor, FloatArray]:
    """Factor of the matrix divided by its scales d on both sides, diag = 1, and d: units of columns do not matter."""
    scale = np.sqrt(matrix.diagonal())
    return factorise(matrix / scale / scale[:, None]), scale


def typical(values: FloatArray) -> FloatArray:
    """The values themselves, or the root mean square of each row where there is a column for each of several outputs.

    Evidence, noise and moves of outputs that share all precisions depend on means over outputs of squares only.
    """
    return values if values.ndim == 1 else np.sqrt(np.einsum("ij,ij->i", values, values) / values.shape[1])


def weighted_gram(matrix: FloatArray, weight: FloatArray | Scalar = 1.0) -> FloatArray:
    """Mᵀ diag(weight) M for weights ≥ 0; NumPy sees that it is symmetric and does half of the work."""
    if np.ndim(weight):
        matrix = matrix * np.sqrt(weight)[:, None]
        return matrix.T @ matrix
    gram = matrix.T @ matrix
    return gram if weight == 1 else weight * gram


def correlation_of(products: FloatArray) -> FloatArray:
    """Correlations from centred sums of products; a constant column has none with any other."""
    length = np.sqrt(np.maximum(products.diagonal(), 0.0))
    length = np.where(length > 0, length, 1.0)
    correlation = products / length / length[:, None]
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(correlation)
