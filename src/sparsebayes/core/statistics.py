"""What is asked of blocks of rows: sums that are small, and that add up over blocks.

No vector as long as the rows crosses this interface. A statistic is sent to where a block is (another process, another
machine, a graphics card), is called there, and what comes back is a few matrices of the columns' number.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from sparsebayes.core.arrays import library_of, like, namespace_of, to_numpy
from sparsebayes.core.likelihoods import Bernoulli, Likelihood, Poisson
from sparsebayes.core.moments import Moments
from sparsebayes.core.special import jj_lambda, log_sigmoid
from sparsebayes.core.types import FloatArray


class Block(NamedTuple):
    """Some rows, and where they come from."""

    X: Any
    t: Any
    weight: Any = None
    where: str = "the rows"
    """Block, file and first row, for messages."""


S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)


class Statistic(Protocol[S_co]):
    """A sum over rows, computed block by block; what it returns can be added."""

    def of(self, block: Block) -> S_co:
        """Of one block."""


class NotFinite(ValueError):
    """A block holds a value that is not finite."""


def check_finite(total: float, block: Block) -> None:
    """Name block, row and column of a value that is missing or infinite, if a sum over the block is not finite."""
    if np.isfinite(total):
        return
    X, t = to_numpy(block.X), to_numpy(block.t)
    for name, values in (("X", X), ("y", t), ("sample_weight", block.weight)):
        if values is None:
            continue
        bad = np.argwhere(~np.isfinite(np.asarray(values, dtype=np.float64)))
        if len(bad):
            place = f"row {bad[0][0]}" + (f", column {bad[0][1]}" if len(bad[0]) > 1 else "")
            raise NotFinite(f"{name} is NaN or infinite in {block.where}, {place} of the block")
    raise NotFinite(f"values in {block.where} are too large: their products overflow")


@dataclass(frozen=True)
class MomentsAbout:
    """Moments of [X, y] (docs/mathematics.md, section 10), by sums about an origin near the means."""

    origin: FloatArray
    """Of X and y."""

    def of(self, block: Block) -> Moments:
        """One matrix product, in the precision of the block; between blocks it is double."""
        X, t = block.X, block.t
        t = t[:, None] if t.ndim == 1 else t
        xp, n_outputs = namespace_of(X), int(t.shape[1])
        rows = _joined(X, t)
        rows -= like(self.origin, rows)
        if block.weight is None:
            n, left = float(rows.shape[0]), rows
            sums = xp.sum(rows, 0)
        else:
            weight = like(np.asarray(block.weight), rows)
            n, left = float(np.sum(block.weight)), rows * weight[:, None]
            sums = xp.sum(left, 0)
        products = np.asarray(to_numpy(left.T @ rows), dtype=np.float64)
        check_finite(float(products.trace()), block)
        if not n:
            return Moments(0.0, self.origin, np.zeros_like(products), n_outputs)
        return _moments(n, np.asarray(to_numpy(sums), dtype=np.float64), products, self.origin, n_outputs)


def _joined(X: Any, t: Any) -> Any:
    """[X, t], fresh. Columns of a Fortran array stay contiguous."""
    if library_of(X) != "numpy":
        return namespace_of(X).concatenate([X, like(to_numpy(t), X)], axis=1)
    rows = np.empty((X.shape[1] + t.shape[1], len(X)), dtype=X.dtype).T if X.flags.f_contiguous else None
    return np.concatenate([X, t], axis=1, out=rows, casting="same_kind")


def _moments(n: float, sums: FloatArray, products: FloatArray, origin: FloatArray, n_outputs: int) -> Moments:
    """Moments from sums about an origin; rounding must not leave a column that is constant with a spread below zero."""
    shift = sums / n
    scatter = products - n * np.multiply.outer(shift, shift)
    scatter = 0.5 * (scatter + scatter.T)
    gone = scatter.diagonal() <= 8 * np.finfo(np.float64).eps * products.diagonal()
    scatter[gone], scatter[:, gone] = 0.0, 0.0
    limit = np.sqrt(np.multiply.outer(scatter.diagonal(), scatter.diagonal()))
    return Moments(n, origin + shift, np.clip(scatter, -limit, limit), n_outputs)


@dataclass(frozen=True)
class SiteSums:
    """Sums under the sites at a point: Σb, Σbx, Σbxxᵀ, Σr, Σrx and Σ log p, with b the curvature and r the slope."""

    n: float
    total: float
    sums: FloatArray
    products: FloatArray
    slope: float
    slopes: FloatArray
    value: float

    def __add__(self, other: "SiteSums") -> "SiteSums":
        return SiteSums(*(getattr(self, name) + getattr(other, name) for name in vars(self)))


@dataclass(frozen=True)
class SiteMoments:
    """The local approximation at η = level + (x - origin)ᵀ coef: a Gaussian in η for every row, summed up.

    With a `root`, Σ = rootᵀ root is the covariance of the weights and of the intercept (last), and the sites are the
    variational bound's, whose contact points follow from mean and covariance.
    """

    likelihood: Likelihood
    origin: FloatArray
    coef: FloatArray
    level: float
    root: FloatArray | None = None

    def of(self, block: Block) -> SiteSums:
        """Of one block, in its own precision."""
        X = block.X - like(self.origin, block.X)
        eta = X @ like(self.coef, X) + self.level
        device = library_of(X) != "numpy"
        weight = None if block.weight is None else np.asarray(block.weight, dtype=np.float64)
        if device:
            slope, curvature, value = device_sites(self.likelihood, like(to_numpy(block.t), X), eta)
            if weight is not None:
                slope, curvature, value = (like(weight, X) * each for each in (slope, curvature, value))
            n = float(X.shape[0]) if weight is None else float(weight.sum())
        else:
            t, eta = np.asarray(block.t, dtype=np.float64), np.asarray(eta, dtype=np.float64)
            slope, curvature, value = self._sites(t, eta, X)
            n = float(len(t))
            if weight is not None:
                slope, curvature, value, n = weight * slope, weight * curvature, weight * value, float(weight.sum())
        return self._summed(block, X, slope, curvature, value, n)

    def _sites(self, t: FloatArray, eta: FloatArray, X: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Slope, curvature and value at η of every row."""
        if self.root is None:
            return *self.likelihood.derivatives(t, eta), self.likelihood.log_density(t, eta)
        felt = X @ like(self.root[:, :-1].T, X) + self.root[:, -1]
        xi = np.sqrt(eta**2 + np.einsum("ij,ij->i", felt, felt, dtype=np.float64))
        lam = jj_lambda(xi)
        # The bound's exponent is const + h η - ½ b η²; its slope at η is h - bη.
        value = log_sigmoid(xi) - xi / 2 + lam * (xi**2 - eta**2) + (t - 0.5) * eta
        return t - 0.5 - 2 * lam * eta, 2 * lam, np.asarray(value)

    def _summed(self, block: Block, X: Any, slope: Any, curvature: Any, value: Any, n: float) -> SiteSums:
        b, r = (like(each, X) if isinstance(each, np.ndarray) else each for each in (curvature, slope))
        half = X * (b**0.5)[:, None]
        products = np.asarray(to_numpy(half.T @ half), dtype=np.float64)
        numbers = [float(each.sum()) for each in (curvature, slope, value)]
        check_finite(float(products.trace()) + sum(numbers), block)
        sums, slopes = (np.asarray(to_numpy(each @ X), dtype=np.float64) for each in (b, r))
        return SiteSums(n, numbers[0], sums, products, numbers[1], slopes, numbers[2])


def device_sites(likelihood: Likelihood, t: Any, eta: Any) -> tuple[Any, Any, Any]:
    """Slope, curvature and log density of every row, on the device of the arrays."""
    xp = namespace_of(eta)
    if isinstance(likelihood, Bernoulli):
        small = xp.exp(-xp.abs(eta))
        large = 1 / (1 + small)
        p = xp.where(eta > 0, large, small * large)
        return t - p, small * large * large, t * eta - xp.log1p(small) - xp.where(eta > 0, eta, 0 * eta)
    if isinstance(likelihood, Poisson):
        rate = xp.exp(eta)
        log_factorial = xp.lgamma(t + 1) if library_of(eta) == "torch" else 0 * t
        return t - rate, rate, t * eta - rate - log_factorial
    raise NotImplementedError(f"{type(likelihood).__name__} has no form for arrays of {library_of(eta)}")


@dataclass(frozen=True)
class Targets:
    """Counts of the distinct values of the target: which classes there are, and how many rows of each."""

    limit: int = 1000
    """More distinct values than this are no classes."""

    def of(self, block: Block) -> "Counts":
        """Of one block."""
        t = to_numpy(block.t)
        values, place = np.unique(t, return_inverse=True)
        if len(values) > self.limit:
            raise ValueError(f"y has more than {self.limit} distinct values in {block.where}: these are no classes")
        weight = np.ones(len(t)) if block.weight is None else np.asarray(block.weight, dtype=np.float64)
        return Counts(values, _sums_by(place, weight, len(values)))


@dataclass(frozen=True)
class Counts:
    """Distinct values of the target, and the weight of the rows that have each."""

    values: Any
    weight: FloatArray

    def __add__(self, other: "Counts") -> "Counts":
        values, place = np.unique(np.concatenate([self.values, other.values]), return_inverse=True)
        return Counts(values, _sums_by(place, np.concatenate([self.weight, other.weight]), len(values)))


@dataclass(frozen=True)
class Total:
    """Rows, counted by weight, and a sum over them."""

    n: float
    value: float

    def __add__(self, other: "Total") -> "Total":
        return Total(self.n + other.n, self.value + other.value)


def _sums_by(place: Any, weight: FloatArray, n: int) -> FloatArray:
    """Σ weight of each place."""
    return np.asarray(np.bincount(np.ravel(place), weight, n), dtype=np.float64)
