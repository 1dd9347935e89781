"""Kernels as functions of two sets of rows, and one record for each in `KERNELS`, which tests and estimators walk.

The rows may be arrays on a graphics card: the kernel matrix is then made there. To add a kernel, write its function and
an entry of `KERNELS`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from sparsebayes.core.arrays import namespace_of, on_device
from sparsebayes.core.types import FloatArray

FEW_INPUTS = 4
"""Up to this many inputs, distances by their definition are faster than a matrix product.

Measured: with 4 inputs the definition takes 0.6 (150 × 150 pairs) to 0.8 times (1000 × 1000) as long, with 12 inputs
1.2 to 1.7 times.
"""


@dataclass(frozen=True)
class Kernel:
    """All that is known of a kernel."""

    value: Callable[..., FloatArray]
    """k(X, Z, **parameters), the matrix of the kernel values of all pairs of rows."""
    parameters: tuple[str, ...] = ()
    """Which of gamma, coef0 and degree it has."""
    metric: str | None = None
    """The distance of SciPy's `cdist` that γ multiplies, if there is one. γ can then be chosen by evidence."""

    def __call__(self, X: FloatArray, Z: FloatArray, **parameters: float) -> FloatArray:
        """The kernel matrix."""
        return self.value(X, Z, **parameters)


def linear(X: FloatArray, Z: FloatArray) -> FloatArray:
    """k(x, z) = xᵀz."""
    return X @ Z.T


def polynomial(
    X: FloatArray, Z: FloatArray, *, gamma: float = 1.0, coef0: float = 1.0, degree: float = 3
) -> FloatArray:
    """k(x, z) = (γ xᵀz + c₀)^degree."""
    inside: FloatArray = gamma * (X @ Z.T) + coef0
    return inside**degree


def squared_distance(X: FloatArray, Z: FloatArray) -> FloatArray:
    """‖x - z‖² of all pairs of rows: by definition for few inputs, otherwise expanded into one matrix product.

    The expansion loses digits with the squared distance from the origin. So both sets are first moved to the centre of
    Z.
    """
    if X.shape[1] <= FEW_INPUTS and not on_device(X):
        return np.asarray(cdist(X, Z, "sqeuclidean"))
    centre = Z.mean(0) if len(Z) else 0.0
    X, Z = X - centre, Z - centre
    squared = X @ (-2 * Z.T)  # everything else is added in place: new memory for each sum would take longer
    squared += (X**2).sum(1)[:, None]
    squared += (Z**2).sum(1)
    return namespace_of(squared).clip(squared, 0.0, None, out=squared)  # type: ignore[no-any-return]


def city_block_distance(X: FloatArray, Z: FloatArray) -> FloatArray:
    """Σ |x_j - z_j| of all pairs of rows."""
    if not on_device(X):
        return np.asarray(cdist(X, Z, "cityblock"))
    distance: Any = 0.0
    for j in range(X.shape[1]):
        distance = distance + abs(X[:, j, None] - Z[None, :, j])
    return distance  # type: ignore[no-any-return]


def rbf(X: FloatArray, Z: FloatArray, *, gamma: float = 1.0) -> FloatArray:
    """k(x, z) = exp(-γ ‖x - z‖²)."""
    exponent = squared_distance(X, Z)
    exponent *= -gamma
    return namespace_of(exponent).exp(exponent, out=exponent)  # type: ignore[no-any-return]


def laplacian(X: FloatArray, Z: FloatArray, *, gamma: float = 1.0) -> FloatArray:
    """k(x, z) = exp(-γ ‖x - z‖₁)."""
    return namespace_of(X).exp(-gamma * city_block_distance(X, Z))  # type: ignore[no-any-return]


def sigmoid(X: FloatArray, Z: FloatArray, *, gamma: float = 1.0, coef0: float = 1.0) -> FloatArray:
    """k(x, z) = tanh(γ xᵀz + c₀). It is not positive definite; sparse Bayesian learning does not need that."""
    return namespace_of(X).tanh(gamma * (X @ Z.T) + coef0)  # type: ignore[no-any-return]


KERNELS: dict[str, Kernel] = {
    "linear": Kernel(linear),
    "poly": Kernel(polynomial, ("gamma", "coef0", "degree")),
    "rbf": Kernel(rbf, ("gamma",), "sqeuclidean"),
    "laplacian": Kernel(laplacian, ("gamma",), "cityblock"),
    "sigmoid": Kernel(sigmoid, ("gamma", "coef0")),
}
"""All kernels that estimators know by name."""
