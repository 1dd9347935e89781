"""Statistics of blocks of rows: small sums, which add up over blocks.

No vector as long as the rows crosses this interface. A statistic is sent to where a block is (another process, another
machine, a graphics card), is called there, and what comes back is a few matrices of the columns' number.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from scipy.special import gammaln

from sparsebayes.core.arrays import library_of, like, namespace_of, to_numpy
from sparsebayes.core.likelihoods import Bernoulli, Likelihood, Poisson
from sparsebayes.core.moments import Moments
from sparsebayes.core.types import FloatArray


class Block(NamedTuple):
    """Some rows, and where they come from."""

    X: Any
    t: Any
    weight: Any = None
    where: str = "the rows"
    """Block, file and first row, for messages."""
    fresh: bool = False
    """Whether nobody else has the array X, so that a statistic may change it."""


SMALL = 1e-2
"""ξ below which λ(ξ) = tanh(ξ/2)/4ξ is computed by its series: the next term is below 1e-10 of it."""

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
    """Moments of [X, y], by sums about an origin near the means."""

    origin: FloatArray
    """Of X and y."""

    def of(self, block: Block) -> Moments:
        """One matrix product, in the precision of the block; between blocks it is double."""
        X = shifted(block, self.origin[: block.X.shape[1]])
        t = like(np.asarray(to_numpy(block.t), dtype=np.float64).reshape(X.shape[0], -1) - self.origin[X.shape[1] :], X)
        n, Xw, tw = float(X.shape[0]), X, t
        if block.weight is not None:
            root = like(np.sqrt(block.weight), X)[:, None]
            n, Xw, tw = float(np.sum(block.weight)), X * root, t * root
            X, t = Xw * root, tw * root
        # Products of an array with itself: half of the work. All but the last step is done where the block is.
        xp, cross = namespace_of(X), Xw.T @ tw
        rows = xp.concatenate([Xw.T @ Xw, cross], 1), xp.concatenate([cross.T, tw.T @ tw], 1)
        products = xp.asarray(xp.concatenate(rows, 0), dtype=xp.float64)
        sums = xp.asarray(xp.concatenate([X.sum(0), t.sum(0)], 0), dtype=xp.float64)
        squares = np.array(to_numpy(products.diagonal()))
        check_finite(float(squares.sum()), block)
        if not n:
            return Moments(0.0, self.origin, np.zeros(products.shape), t.shape[1])
        shift = sums / n
        products -= n * (shift[:, None] * shift[None, :])
        scatter = to_numpy(0.5 * (products + products.T))
        return rounded_moments(n, self.origin + to_numpy(shift), scatter, squares, t.shape[1])


def rounded_moments(n: float, mean: FloatArray, scatter: FloatArray, squares: FloatArray, n_outputs: int) -> Moments:
    """Moments whose scatter matrix is a difference of sums: a constant column must not be left with a spread.

    `squares` are the sums of squares about the origin. The scatter matrix is changed in place.
    """
    gone = scatter.diagonal() <= 8 * np.finfo(np.float64).eps * squares
    scatter[gone], scatter[:, gone] = 0.0, 0.0
    return Moments.checked(n, mean, scatter, n_outputs)


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
        """Of one block, in its own precision. Its arrays are changed in place where nobody else has them."""
        X = shifted(block, self.origin)
        eta = X @ like(self.coef, X) + self.level
        t = like(np.asarray(to_numpy(block.t), dtype=np.float64), X)
        slope, curvature, value = self._sites(t, eta, X)
        n = float(X.shape[0])
        if block.weight is not None:
            weight = like(np.asarray(block.weight), X)
            slope, curvature, value = weight * slope, weight * curvature, weight * value
            n = float(np.sum(block.weight))
        xp = namespace_of(X)
        both = xp.stack([curvature, slope])
        sums, slopes = np.asarray(to_numpy(both @ X), dtype=np.float64)
        totals = [float(np.sum(to_numpy(each), dtype=np.float64)) for each in (curvature, slope, value)]
        X *= xp.sqrt(curvature)[:, None]
        products = np.asarray(to_numpy(X.T @ X), dtype=np.float64)
        check_finite(float(products.trace()) + sum(totals), block)
        return SiteSums(n, totals[0], sums, products, totals[1], slopes, totals[2])

    def _sites(self, t: Any, eta: Any, X: Any) -> tuple[Any, Any, Any]:
        """Slope, curvature and value at η of every row."""
        if self.root is None:
            return sites(self.likelihood, t, eta)
        xp = namespace_of(X)
        projected = X @ like(self.root[:, :-1].T, X) + like(self.root[:, -1], X)
        xi = xp.sqrt(eta * eta + (projected * projected).sum(1))
        # λ(ξ) = tanh(ξ/2) / 4ξ, and 1/8 at ξ = 0. The bound's exponent is const + h η - ½ b η²; its slope is h - bη.
        safe = xp.where(xi > 0, xi, 1 + 0 * xi)
        lam = xp.where(xi > SMALL, xp.tanh(0.5 * safe) / (4 * safe), 0.125 - xi * xi / 96)
        log_sigmoid = -xp.log1p(xp.exp(-xi))
        value = log_sigmoid - 0.5 * xi + lam * (xi * xi - eta * eta) + (t - 0.5) * eta
        return t - 0.5 - 2 * lam * eta, 2 * lam, value


def shifted(block: Block, origin: FloatArray) -> Any:
    """X - origin, in the block's own array if it is fresh."""
    X, shift = block.X, like(origin, block.X)
    if not block.fresh:
        return X - shift
    X -= shift
    return X


def sites(likelihood: Likelihood, t: Any, eta: Any) -> tuple[Any, Any, Any]:
    """Slope, curvature and log density of every row, by functions that all array libraries have."""
    xp = namespace_of(eta)
    if isinstance(likelihood, Bernoulli):
        small = xp.exp(-xp.abs(eta))
        large = 1 / (1 + small)
        positive = eta > 0
        p = xp.where(positive, large, small * large)
        value = t * eta - xp.log1p(small) - xp.where(positive, eta, 0 * eta)
        return t - p, small * large * large, value
    assert isinstance(likelihood, Poisson), likelihood
    rate = xp.exp(eta)
    return t - rate, rate, t * eta - rate - _log_factorial(t)


def _log_factorial(t: Any) -> Any:
    """log t!, where the array is."""
    if library_of(t) == "torch":
        return namespace_of(t).lgamma(t + 1)
    return like(gammaln(to_numpy(t) + 1), t)


@dataclass(frozen=True)
class Targets:
    """Counts of the distinct values of the target: which classes there are, and how many rows of each."""

    limit: int = 1000
    """More distinct values than this are taken for numbers: each class needs a fit of its own."""

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
