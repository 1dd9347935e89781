"""Kernels with a weight θ_k ≥ 0 for every input (docs/mathematics.md, section 5), with derivatives.

Each is a function of one sum, k(x, z) = f(u) with u = Σ_k θ_k e_k(x_k, z_k). So ∂k/∂θ_k = f'(u) e_k. Only sums of the
elements e_k over pairs of rows are needed, with given weights A. No N×M×P tensor is formed.
`WEIGHTED` is the register that tests and estimators walk.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
from scipy.spatial.distance import cdist

from sparsebayes.core.kernels import squared_distance
from sparsebayes.core.types import FloatArray, IntArray


class Elements(Protocol):
    """The sums of e_k(x_k, z_k) that a weighted kernel needs."""

    def total(self, X: FloatArray, Z: FloatArray, theta: FloatArray) -> FloatArray:
        """U: Σ_k θ_k e_k (N×M)."""

    def rows(self, X: FloatArray, Z: FloatArray, A: FloatArray) -> FloatArray:
        """Σ_j A_ij e_k(x_ik, z_jk) for every row i and input k (N×P)."""

    def one(self, x: FloatArray, z: FloatArray) -> FloatArray:
        """e of a single input (N×M)."""


class Squared:
    """e = (x - z)². Both sets should be near the origin, because the square is expanded into products."""

    def total(self, X: FloatArray, Z: FloatArray, theta: FloatArray) -> FloatArray:
        """Σ θ (x - z)²."""
        root = np.sqrt(theta)
        return squared_distance(X * root, Z * root)

    def rows(self, X: FloatArray, Z: FloatArray, A: FloatArray) -> FloatArray:
        """X² ∘ (A1) - 2 X ∘ (AZ) + A Z²."""
        return np.asarray(X * (X * A.sum(axis=1)[:, None] - 2 * (A @ Z)) + A @ Z**2)

    def one(self, x: FloatArray, z: FloatArray) -> FloatArray:
        """(x - z)²."""
        return np.asarray(np.subtract.outer(x, z) ** 2)


class Absolute:
    """e = |x - z|. It is no product, so the inputs are taken one by one."""

    def total(self, X: FloatArray, Z: FloatArray, theta: FloatArray) -> FloatArray:
        """Σ θ |x - z|."""
        return np.asarray(cdist(X * theta, Z * theta, "cityblock"))

    def rows(self, X: FloatArray, Z: FloatArray, A: FloatArray) -> FloatArray:
        """Σ A |x - z|, input by input."""
        columns = [np.einsum("ij,ij->i", A, self.one(x, z)) for x, z in zip(X.T, Z.T, strict=True)]
        return np.column_stack([np.empty((len(X), 0)), *columns])

    def one(self, x: FloatArray, z: FloatArray) -> FloatArray:
        """|x - z|."""
        return np.asarray(np.abs(np.subtract.outer(x, z)))


class Product:
    """e = x z."""

    def total(self, X: FloatArray, Z: FloatArray, theta: FloatArray) -> FloatArray:
        """Σ θ x z."""
        return (X * theta) @ Z.T

    def rows(self, X: FloatArray, Z: FloatArray, A: FloatArray) -> FloatArray:
        """X ∘ (AZ)."""
        return X * (A @ Z)

    def one(self, x: FloatArray, z: FloatArray) -> FloatArray:
        """The outer product."""
        return np.multiply.outer(x, z)


class Shape(NamedTuple):
    """f and its first two derivatives at U."""

    value: FloatArray
    slope: FloatArray
    bend: FloatArray


def decay(U: FloatArray) -> Shape:
    """f = exp(-u)."""
    K = np.exp(-U)
    return Shape(K, -K, K)


def power(U: FloatArray, *, degree: float, coef0: float) -> Shape:
    """f = (u + c₀)^degree."""
    base = U + coef0
    slope = degree * base ** (degree - 1)
    return Shape(base**degree, slope, degree * (degree - 1) * base ** (degree - 2) if degree > 1 else np.zeros_like(U))


@dataclass(frozen=True)
class WeightedKernel:
    """A kernel with a weight for every input."""

    elements: Elements
    shape: Callable[[FloatArray], Shape]

    def __call__(self, X: FloatArray, Z: FloatArray, theta: FloatArray) -> Shape:
        """K, f' and f'' for all pairs of rows."""
        return self.shape(self.elements.total(X, Z, theta))

    def leaving_out(self, X: FloatArray, Z: FloatArray, theta: FloatArray, each: IntArray) -> Iterator[FloatArray]:
        """K without input k, for each k in `each`; the sum over all inputs is formed once."""
        U = self.elements.total(X, Z, theta)
        for k in each:
            yield self.shape(U - theta[k] * self.elements.one(X[:, k], Z[:, k])).value

    def gradient(self, X: FloatArray, Z: FloatArray, at: Shape, slope: FloatArray) -> FloatArray:
        """∂/∂θ of anything whose derivative with respect to K is `slope`."""
        return np.asarray(self.jacobian(X, Z, at, slope).sum(axis=0))

    def jacobian(self, X: FloatArray, Z: FloatArray, at: Shape, w: FloatArray) -> FloatArray:
        """∂(Kw)/∂θ (N×P). If w is a matrix, row i of K is multiplied by row i of it."""
        return self.elements.rows(X, Z, at.slope * w)

    def bend(self, X: FloatArray, Z: FloatArray, at: Shape, slope: FloatArray) -> FloatArray:
        """Σ_ij slope_ij ∂²k_ij/∂θ∂θᵀ (P×P), by one product per input."""
        A, elements = at.bend * slope, self.elements
        lines = [elements.rows(X, Z, A * elements.one(x, z)).sum(axis=0) for x, z in zip(X.T, Z.T, strict=True)]
        return np.array(lines).reshape(X.shape[1], X.shape[1])


class WeightedForm(NamedTuple):
    """What makes a weighted kernel: its elements e, its function f, and the unit of θ."""

    elements: type[Elements]
    shape: Callable[..., Shape]
    power: int
    """θ_k has the unit of input k to the power -`power`."""


WEIGHTED: dict[str, WeightedForm] = {
    "rbf": WeightedForm(Squared, decay, 2),
    "laplacian": WeightedForm(Absolute, decay, 1),
    "poly": WeightedForm(Product, power, 2),
}
"""exp(-Σ θ (x - z)²), exp(-Σ θ |x - z|) and (Σ θ x z + c₀)^degree."""


def weighted_kernel(name: str, *, degree: float = 3, coef0: float = 1.0) -> WeightedKernel:
    """The kernel of that name; `degree` and `coef0` are parameters of "poly"."""
    form = WEIGHTED[name]
    shape = partial(form.shape, degree=degree, coef0=coef0) if form.shape is power else form.shape
    return WeightedKernel(form.elements(), shape)


@dataclass(frozen=True)
class FeatureKernel:
    """A weighted kernel as a function of two sets of rows in the user's units."""

    name: str
    columns: np.ndarray
    """The inputs with θ > 0; all others are ignored."""
    theta: FloatArray
    """Their weights."""
    centre: FloatArray
    """Their origin, which is subtracted first."""
    degree: float = 3
    coef0: float = 1.0

    def __call__(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        """The kernel matrix."""
        kernel = weighted_kernel(self.name, degree=self.degree, coef0=self.coef0)
        return kernel(X[:, self.columns] - self.centre, Z[:, self.columns] - self.centre, self.theta).value
