"""References that the tests of the core compare with: dense inverses, densities from SciPy, exact fractions."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import multivariate_normal


class ExplicitRows:
    """The reductions of a posterior on a matrix that is simply there; remembers which of them were called."""

    def __init__(self, Phi: np.ndarray) -> None:
        self.Phi = Phi
        self.n_rows, self.n_columns = Phi.shape
        self.calls: list[str] = []

    def gram(self, weight):
        self.calls.append("gram")
        return (self.Phi.T * weight) @ self.Phi

    def outer(self, weight):
        self.calls.append("outer")
        return (self.Phi * weight) @ self.Phi.T

    def project(self, rows):
        return self.Phi.T @ rows

    def predict(self, weights):
        return self.Phi @ weights

    def row_variance(self, root):
        return ((self.Phi @ root.T) ** 2).sum(axis=1)


@pytest.fixture
def explicit_rows() -> type[ExplicitRows]:
    return ExplicitRows


@pytest.fixture
def marginal() -> Callable[..., float]:
    """log N(t; 0, σ²I + Φ A⁻¹ Φᵀ) by SciPy; α = ∞ takes a column out."""

    def log_density(Phi, t, alpha, noise):
        cov = noise * np.eye(len(t)) + (Phi / alpha) @ Phi.T
        return float(multivariate_normal(np.zeros(len(t)), cov).logpdf(t))

    return log_density


@pytest.fixture
def slope() -> Callable[..., float]:
    """Derivative of f at 0 by Richardson's central difference: error h⁴, so h = 1e-2 leaves about ten digits."""

    def derivative(f, h=1e-2):
        def central(step):
            return (f(step) - f(-step)) / (2 * step)

        return (4 * central(h / 2) - central(h)) / 3

    return derivative


@pytest.fixture
def exact_inverse() -> Callable[[np.ndarray], list[list[Fraction]]]:
    """Inverse of a matrix of fractions by Gauss-Jordan elimination, without any rounding."""

    def inverse(matrix):
        size = len(matrix)
        work = [[*row, *(Fraction(int(i == j)) for j in range(size))] for i, row in enumerate(matrix)]
        for i in range(size):
            work[i] = [x / work[i][i] for x in work[i]]
            for k in range(size):
                if k != i:
                    factor = work[k][i]
                    work[k] = [x - factor * y for x, y in zip(work[k], work[i], strict=True)]
        return [row[size:] for row in work]

    return inverse
