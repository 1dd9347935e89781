"""Kernels as functions of two sets of rows, and one record for each in `KERNELS`, which tests and estimators walk.

To add a kernel, write its function, its derivative with respect to γ if it has one, and an entry of `KERNELS`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

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
    slope: Callable[..., FloatArray] | None = None
    """∂k/∂γ with the same arguments; None for a kernel without γ."""
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
    return np.asarray((gamma * (X @ Z.T) + coef0) ** degree)


def polynomial_slope(
    X: FloatArray, Z: FloatArray, *, gamma: float = 1.0, coef0: float = 1.0, degree: float = 3
) -> FloatArray:
    """∂k/∂γ = degree xᵀz (γ xᵀz + c₀)^(degree - 1)."""
    product = X @ Z.T
    return np.asarray(degree * product * (gamma * product + coef0) ** (degree - 1))


def squared_distance(X: FloatArray, Z: FloatArray) -> FloatArray:
    """‖x - z‖² of all pairs of rows: by definition for few inputs, otherwise expanded into one matrix product.

    The expansion loses digits with the squared distance from the origin. So both sets are first moved to the centre of
    Z.
    """
    if X.shape[1] <= FEW_INPUTS:
        return np.asarray(cdist(X, Z, "sqeuclidean"))
    centre = Z.mean(axis=0) if len(Z) else 0.0
    X, Z = X - centre, Z - centre
    squared = X @ (-2 * Z.T)  # everything else is added in place: new memory for each sum would take longer
    squared += (X**2).sum(axis=1)[:, None]
    squared += (Z**2).sum(axis=1)
    return np.maximum(squared, 0.0, out=squared)


def rbf(X: FloatArray, Z: FloatArray, *, gamma: float = 1.0) -> FloatArray:
    """k(x, z) = exp(-γ ‖x - z‖²)."""
    exponent = squared_distance(X, Z)
    exponent *= -gamma
    return np.exp(exponent, out=exponent)


def rbf_slope(X: FloatArray, Z: FloatArray, *, gamma: float = 1.0) -> FloatArray:
    """∂k/∂γ = -‖x - z‖² k(x, z)."""
    squared = squared_distance(X, Z)
    return np.asarray(-squared * np.exp(-gamma * squared))


def laplacian(X: FloatArray, Z: FloatArray, *, gamma: float = 1.0) -> FloatArray:
    """k(x, z) = exp(-γ ‖x - z‖₁)."""
    return np.asarray(np.exp(-gamma * cdist(X, Z, "cityblock")))


def laplacian_slope(X: FloatArray, Z: FloatArray, *, gamma: float = 1.0) -> FloatArray:
    """∂k/∂γ = -‖x - z‖₁ k(x, z)."""
    distance = cdist(X, Z, "cityblock")
    return np.asarray(-distance * np.exp(-gamma * distance))


def sigmoid(X: FloatArray, Z: FloatArray, *, gamma: float = 1.0, coef0: float = 1.0) -> FloatArray:
    """k(x, z) = tanh(γ xᵀz + c₀). It is not positive definite; sparse Bayesian learning does not need that."""
    return np.asarray(np.tanh(gamma * (X @ Z.T) + coef0))


def sigmoid_slope(X: FloatArray, Z: FloatArray, *, gamma: float = 1.0, coef0: float = 1.0) -> FloatArray:
    """∂k/∂γ = xᵀz (1 - k(x, z)²)."""
    product = X @ Z.T
    return np.asarray(product * (1 - np.tanh(gamma * product + coef0) ** 2))


KERNELS: dict[str, Kernel] = {
    "linear": Kernel(linear),
    "poly": Kernel(polynomial, ("gamma", "coef0", "degree"), polynomial_slope),
    "rbf": Kernel(rbf, ("gamma",), rbf_slope, "sqeuclidean"),
    "laplacian": Kernel(laplacian, ("gamma",), laplacian_slope, "cityblock"),
    "sigmoid": Kernel(sigmoid, ("gamma", "coef0"), sigmoid_slope),
}
"""All kernels that estimators know by name."""
