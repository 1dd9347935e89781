"""Kernels as plain functions of two sets of rows; `KERNELS` is the register that tests and estimators walk."""

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist

from sparsebayes.core.types import FloatArray

FEW_INPUTS = 4
"""Up to so many, a matrix product takes longer than the distances themselves."""


def linear(X: FloatArray, Z: FloatArray) -> FloatArray:
    """k(x, z) = xᵀz."""
    return X @ Z.T


def polynomial(
    X: FloatArray, Z: FloatArray, *, gamma: float = 1.0, coef0: float = 1.0, degree: float = 3
) -> FloatArray:
    """k(x, z) = (γ xᵀz + c₀)^degree."""
    return np.asarray((gamma * (X @ Z.T) + coef0) ** degree)


def rbf(X: FloatArray, Z: FloatArray, *, gamma: float = 1.0) -> FloatArray:
    """k(x, z) = exp(-γ ‖x - z‖²)."""
    exponent = squared_distance(X, Z)
    exponent *= -gamma
    return np.exp(exponent, out=exponent)


def squared_distance(X: FloatArray, Z: FloatArray) -> FloatArray:
    """‖x - z‖² of all pairs of rows: of few inputs as it stands, otherwise expanded into one matrix product.

    For that both sets are first moved to the centre of Z, because the expansion loses digits with the squared distance
    from the origin.
    """
    if X.shape[1] <= FEW_INPUTS:
        return np.asarray(cdist(X, Z, "sqeuclidean"))
    centre = Z.mean(axis=0) if len(Z) else 0.0
    X, Z = X - centre, Z - centre
    squared = X @ (-2 * Z.T)  # and all else in its place: to take fresh memory for each sum would take longer
    squared += (X**2).sum(axis=1)[:, None]
    squared += (Z**2).sum(axis=1)
    return np.maximum(squared, 0.0, out=squared)


def laplacian(X: FloatArray, Z: FloatArray, *, gamma: float = 1.0) -> FloatArray:
    """k(x, z) = exp(-γ ‖x - z‖₁)."""
    return np.asarray(np.exp(-gamma * cdist(X, Z, "cityblock")))


def sigmoid(X: FloatArray, Z: FloatArray, *, gamma: float = 1.0, coef0: float = 1.0) -> FloatArray:
    """k(x, z) = tanh(γ xᵀz + c₀). Not positive definite, which sparse Bayesian learning does not ask for."""
    return np.asarray(np.tanh(gamma * (X @ Z.T) + coef0))


KERNELS: dict[str, Callable[..., FloatArray]] = {
    "linear": linear,
    "poly": polynomial,
    "rbf": rbf,
    "laplacian": laplacian,
    "sigmoid": sigmoid,
}


def polynomial_slope(
    X: FloatArray, Z: FloatArray, *, gamma: float = 1.0, coef0: float = 1.0, degree: float = 3
) -> FloatArray:
    """∂k/∂γ = degree xᵀz (γ xᵀz + c₀)^(degree - 1)."""
    product = X @ Z.T
    return np.asarray(degree * product * (gamma * product + coef0) ** (degree - 1))


def rbf_slope(X: FloatArray, Z: FloatArray, *, gamma: float = 1.0) -> FloatArray:
    """∂k/∂γ = -‖x - z‖² k(x, z)."""
    squared = squared_distance(X, Z)
    return np.asarray(-squared * np.exp(-gamma * squared))


def laplacian_slope(X: FloatArray, Z: FloatArray, *, gamma: float = 1.0) -> FloatArray:
    """∂k/∂γ = -‖x - z‖₁ k(x, z)."""
    distance = cdist(X, Z, "cityblock")
    return np.asarray(-distance * np.exp(-gamma * distance))


def sigmoid_slope(X: FloatArray, Z: FloatArray, *, gamma: float = 1.0, coef0: float = 1.0) -> FloatArray:
    """∂k/∂γ = xᵀz (1 - k(x, z)²)."""
    product = X @ Z.T
    return np.asarray(product * (1 - np.tanh(gamma * product + coef0) ** 2))


SLOPES: dict[str, Callable[..., FloatArray]] = {
    "poly": polynomial_slope,
    "rbf": rbf_slope,
    "laplacian": laplacian_slope,
    "sigmoid": sigmoid_slope,
}
"""∂k/∂γ of every kernel that has a γ, with the same arguments as the kernel."""
