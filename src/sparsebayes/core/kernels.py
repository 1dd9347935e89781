"""Kernels as plain functions of two sets of rows; `KERNELS` is the register that tests and estimators walk."""

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import cdist

from sparsebayes.core.types import FloatArray


def linear(X: FloatArray, Z: FloatArray) -> FloatArray:
    """k(x, z) = xᵀz."""
    return X @ Z.T


def polynomial(
    X: FloatArray, Z: FloatArray, *, gamma: float = 1.0, coef0: float = 1.0, degree: float = 3
) -> FloatArray:
    """k(x, z) = (γ xᵀz + c₀)^degree."""
    return np.asarray((gamma * (X @ Z.T) + coef0) ** degree)


def rbf(X: FloatArray, Z: FloatArray, *, gamma: float = 1.0) -> FloatArray:
    """k(x, z) = exp(-γ ‖x - z‖²).

    The distance is expanded into one matrix product; both sets are first moved to the centre of Z, because the
    expansion loses digits with the squared distance from the origin.
    """
    centre = Z.mean(axis=0) if len(Z) else 0.0
    X, Z = X - centre, Z - centre
    squared = (X**2).sum(axis=1)[:, None] - 2 * (X @ Z.T) + (Z**2).sum(axis=1)
    return np.asarray(np.exp(-gamma * np.maximum(squared, 0.0)))


def laplacian(X: FloatArray, Z: FloatArray, *, gamma: float = 1.0) -> FloatArray:
    """k(x, z) = exp(-γ ‖x - z‖₁)."""
    return np.asarray(np.exp(-gamma * cdist(X, Z, "cityblock")))


KERNELS: dict[str, Callable[..., FloatArray]] = {
    "linear": linear,
    "poly": polynomial,
    "rbf": rbf,
    "laplacian": laplacian,
}
