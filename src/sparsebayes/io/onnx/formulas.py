"""The formulas of `core` once more, as graphs: kernels, class probabilities, averages over a softmax."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.polynomial.chebyshev import chebinterpolate
from scipy.linalg import helmert
from scipy.special import erfcx

from sparsebayes.core import kernels
from sparsebayes.core.multinomial import NODES, PIVOT, even_normal
from sparsebayes.core.predictive import STEP
from sparsebayes.core.special import sigmoid
from sparsebayes.core.standard_units import DECIMALS, StandardisedKernel, StandardUnits
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.core.weighted_kernels import FeatureKernel
from sparsebayes.io.onnx.graph import Graph, Tensor, apply, stack, where

# --- kernels ---


def _product(X: Tensor, Z: Any) -> Tensor:
    """xᵀz of all pairs; Z is a matrix of numbers.

    A factor belongs into Z: onnxruntime takes a number by which a product or its left side is multiplied into the
    product itself, in single precision.
    """
    return X @ np.ascontiguousarray(Z.T)


def _squared_distance(X: Tensor, Z: FloatArray) -> Tensor:
    centre = Z.mean(axis=0) if len(Z) else np.zeros(Z.shape[1])
    X, Z = X - centre, Z - centre
    return ((X * X).sum(1, keepdims=True) - 2 * _product(X, Z) + (Z**2).sum(axis=1)).at_least(0.0)


def linear(X: Tensor, Z: FloatArray) -> Tensor:
    """xᵀz."""
    return _product(X, Z)


def polynomial(X: Tensor, Z: FloatArray, *, gamma: float = 1.0, coef0: float = 1.0, degree: float = 3) -> Tensor:
    """(γ xᵀz + c₀)^degree."""
    return (_product(X, gamma * Z) + coef0) ** degree


def rbf(X: Tensor, Z: FloatArray, *, gamma: float = 1.0) -> Tensor:
    """exp(-γ ‖x - z‖²)."""
    return apply("Exp", -gamma * _squared_distance(X, Z))


def laplacian(X: Tensor, Z: FloatArray, *, gamma: float = 1.0) -> Tensor:
    """exp(-γ ‖x - z‖₁)."""
    return apply("Exp", -gamma * apply("Abs", X.new_axis(1) - Z).sum(2))


def sigmoid_kernel(X: Tensor, Z: FloatArray, *, gamma: float = 1.0, coef0: float = 1.0) -> Tensor:
    """tanh(γ xᵀz + c₀)."""
    return apply("Tanh", _product(X, gamma * Z) + coef0)


KERNELS: dict[Callable[..., FloatArray], Callable[..., Tensor]] = {
    kernels.linear: linear,
    kernels.polynomial: polynomial,
    kernels.rbf: rbf,
    kernels.laplacian: laplacian,
    kernels.sigmoid: sigmoid_kernel,
}
"""The graph of each kernel of `core`."""


@dataclass(frozen=True)
class KernelGraph:
    """A kernel of `core` with its parameters, of inputs as they are, in standard units, or of some moved and scaled."""

    kernel: Callable[..., FloatArray]
    parameters: dict[str, float]
    inputs: IntArray | None = None
    """Which inputs it sees; None is all of them, as they are."""
    centre: FloatArray | float = 0.0
    scale: FloatArray | float = 1.0
    units: StandardUnits | None = None

    @classmethod
    def of(cls, kernel: Any) -> "KernelGraph":
        """The graph of what a fit holds."""
        inner, units = kernel, None
        while hasattr(inner, "kernel"):
            units = inner.units if isinstance(inner, StandardisedKernel) else units
            inner = inner.kernel
        if isinstance(inner, partial) and inner.func in KERNELS:
            return cls(inner.func, inner.keywords, units=units)
        if isinstance(inner, FeatureKernel):
            # θ inside the sum is √θ on both sides of a square or a product, and θ on both sides of |x - z|.
            scale = inner.theta if inner.name == "laplacian" else np.sqrt(inner.theta)
            more = {"degree": inner.degree, "coef0": inner.coef0} if inner.name == "poly" else {}
            return cls(kernels.KERNELS[inner.name].value, {"gamma": 1.0, **more}, inner.columns, inner.centre, scale)
        raise ValueError(
            f"kernel={inner!r} has no ONNX graph: give the kernel by its name, or use kernel='precomputed'"
        )

    def __call__(self, X: Tensor, Z: FloatArray) -> Tensor:
        """k(x, z) of all pairs."""
        if self.inputs is not None:
            Z = (Z[:, self.inputs] - self.centre) * self.scale
        if self.units is not None:
            Z = self.units(Z)
        return KERNELS[self.kernel](self._seen(X), Z, **self.parameters)

    def of_itself(self, X: Tensor) -> Tensor:
        """k(x, x), row by row: a kernel of distances sees zero, a kernel of products the square."""
        X = self._seen(X)
        square = (X * X).sum(1)
        if self.kernel in (kernels.rbf, kernels.laplacian):
            return 0 * square + 1.0
        return KERNELS[self.kernel](square.new_axis(1), np.ones((1, 1)), **self.parameters).sum(1)

    def _seen(self, X: Tensor) -> Tensor:
        if self.units is not None:
            return in_standard_units(X, self.units)
        return X if self.inputs is None else (X.columns(self.inputs) - self.centre) * self.scale


def in_standard_units(X: Tensor, units: StandardUnits) -> Tensor:
    """What the kernel sees of inputs in the units of the data: within the fence, standardised and rounded."""
    standard = (X.at_least(units.low).at_most(units.high) - units.origin) / units.unit
    digits = standard * 10.0**DECIMALS
    return standard - (digits - apply("Round", digits)) / 10.0**DECIMALS  # no factor is the last: see `_product`


# --- probabilities of two classes, from mean and variance of the log-odds (core.predictive) ---


def logistic(x: Tensor) -> Tensor:
    """σ(x) with all digits where it is small, which the Sigmoid of onnxruntime does not have."""
    return 1 / (1 + apply("Exp", -x))


def plug_in(m: Tensor, v: Tensor) -> Tensor:
    """σ(m)."""
    return logistic(m)


def probit(m: Tensor, v: Tensor) -> Tensor:
    """σ(m / √(1 + πv/8))."""
    return logistic(m / apply("Sqrt", 1 + (np.pi / 8) * v))


def quadrature(m: Tensor, v: Tensor) -> Tensor:
    """∫ σ(η) N(η; m, v) dη by the two trapezoidal rules, each where it is the good one."""
    z = np.arange(-9, 9 + STEP, STEP)
    normal = np.exp(-(z**2) / 2) * (STEP / np.sqrt(2 * np.pi))
    spread = apply("Sqrt", v.at_most(1.0)).new_axis(2)
    narrow = logistic(m.new_axis(2) + spread * z) @ normal
    ell = np.arange(-38, 38 + STEP, STEP)
    density = sigmoid(ell) * sigmoid(-ell) * STEP
    wide = ndtr((m.new_axis(2) - ell) / apply("Sqrt", v.at_least(1.0)).new_axis(2)) @ density
    return where(v < 1.0, narrow, wide).at_least(0.0).at_most(1.0)


CHEBYSHEV = 3.75
"""The x in the middle of the interval onto which [0, ∞) is folded for the series of erfcx."""


@cache
def _erfcx_series() -> FloatArray:
    """Chebyshev coefficients in u = (x - 3.75)/(x + 3.75) of (1 + 2x) erfcx(x), which is smooth up to x = ∞."""

    def f(u: Any) -> Any:
        x = CHEBYSHEV * (1 + u) / (1 - u)
        return (1 + 2 * x) * erfcx(x)

    return np.asarray(chebinterpolate(f, 28))


def ndtr(x: Tensor) -> Tensor:
    """The normal distribution function, with all digits in both tails.

    onnxruntime has no Erf in double precision. With t = |x|/√2, Φ(-|x|) = ½ erfcx(t) exp(-t²), and erfcx is a series.
    """
    t = apply("Abs", x) * np.sqrt(0.5)
    u = (t - CHEBYSHEV) / (t + CHEBYSHEV)
    first, *rest = _erfcx_series()
    twice = u + u
    b, before = u * 0.0, u * 0.0
    for coefficient in rest[::-1]:  # Clenshaw
        b, before = twice * b - before + coefficient, b
    tail = 0.5 * (u * b - before + first) / (1 + 2 * t) * apply("Exp", -(t * t))
    return where(x < 0.0, tail, 1 - tail)


def variational_bound(m: Tensor, v: Tensor) -> Tensor:
    """The Jaakkola-Jordan lower bounds of both classes' probabilities, normalised."""
    return logistic(_log_bound(m, v) - _log_bound(-m, v))


def _jj_lambda(xi: Tensor) -> Tensor:
    """tanh(ξ/2) / (4ξ), and its series where ξ is small."""
    square, small = xi * xi, xi < 5e-3
    safe = where(small, 1.0, xi)
    return where(small, 1 / 8 - square / 96 + square * square / 960, apply("Tanh", safe / 2) / (4 * safe))


def _log_bound(m: Tensor, v: Tensor) -> Tensor:
    """Log lower bound of class 1 at the best ξ of each entry."""
    xi = _best_xi(m, v)
    lam = _jj_lambda(xi)
    k = 1 + 2 * lam * v
    exponent = (m + v / 4 - 2 * lam * (m * m)) / (2 * k)
    return -0.5 * apply("Log", k) + exponent - apply("Softplus", -xi) - xi / 2 + lam * (xi * xi)


def _best_xi(m: Tensor, v: Tensor) -> Tensor:
    """The fixed point of ξ, by a loop inside the graph that ends when no entry moves any more."""
    graph, helper = m.graph, m.graph.onnx.helper
    double, boolean, integer = (getattr(graph.onnx.TensorProto, kind) for kind in ("DOUBLE", "BOOL", "INT64"))
    body = Graph(prefix=f"loop_{len(graph.nodes)}_")
    xi = body.input(f"{body.prefix}xi")
    # The names of m and v are known inside: an inner graph sees what stands before it in the outer one.
    m_in, v_in = body.input(m.name), body.input(v.name)
    k = 1 + 2 * _jj_lambda(xi) * v_in
    mean = (m_in + v_in / 2) / k
    new = apply("Sqrt", v_in / k + mean * mean)
    moves = apply("Abs", new - xi) > 1e-12 * (1 + xi)
    flat = body.add("Reshape", apply("Cast", moves, to=integer), body.constant(np.array([-1])))
    n_moving = body.add("ReduceSum", flat, keepdims=0)
    going_on = body.add("Cast", n_moving, to=boolean)
    step, go = f"{body.prefix}step", f"{body.prefix}go"
    info = helper.make_tensor_value_info
    inputs = [info(step, integer, []), info(go, boolean, []), info(xi.name, double, None)]
    outputs = [info(going_on.name, boolean, []), info(new.name, double, None)]
    start = apply("Sqrt", m * m + v)
    most, go_on = graph.constant(np.array(500)), graph.constant(np.array(True))
    result: Tensor = graph.add("Loop", most, go_on, start, body=body.proto("best_xi", inputs, outputs))
    return result


PROBABILITIES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "quadrature": quadrature,
    "probit": probit,
    "plug-in": plug_in,
    "bound": variational_bound,
}
"""As in `core.predictive`; mean and variance are matrices, one column for each fit."""


# --- probabilities of more classes (core.multinomial) ---


def averaged_probabilities(mean: Tensor, covariance: Tensor, n_classes: int) -> Tensor:
    """E[softmax(η)] over the same points as in `core`; η has means (n×C) and covariances (n×C×C)."""
    U = helmert(n_classes)
    root = U.T @ lower_roots(U @ covariance @ U.T, n_classes - 1)
    swing = root @ np.ascontiguousarray(even_normal(NODES, n_classes - 1).T)
    centre = mean.new_axis(2)
    both = [apply("Softmax", eta, axis=1).sum(2) for eta in (centre + swing, centre - swing)]
    total = both[0] + both[1]
    return total / total.sum(1, keepdims=True)


def lower_roots(A: Tensor, d: int) -> Tensor:
    """L with L Lᵀ = A, for n positive semi-definite d×d matrices, column by column."""
    columns: list[Tensor] = []
    rounding = PIVOT * (A * np.eye(d)).max(2).max(1, keepdims=True)
    for j in range(d):
        below = (np.arange(d) >= j).astype(np.float64)
        column = A.graph.add("Gather", A, A.graph.constant(np.array(j)), axis=2) * below
        for earlier in columns:
            column = column - earlier * earlier.columns(np.array([j])) * below
        pivot = column.columns(np.array([j]))
        columns.append(column / apply("Sqrt", where(pivot > rounding, pivot, np.inf)))
    return stack(columns, axis=2)


def log_odds(p: Tensor, rest: Tensor) -> Tensor:
    """log p - log rest, finite where one of them is zero."""
    tiny = float(np.finfo(np.float64).tiny)
    return apply("Log", p.at_least(tiny)) - apply("Log", rest.at_least(tiny))
