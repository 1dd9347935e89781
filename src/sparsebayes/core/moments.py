"""Moments of rows: the row count, the means, and the matrix of centred sums of products.

A linear regression with Gaussian noise needs nothing else of its rows. Moments of blocks add up, so that the rows may
be anywhere: in files, on the workers of a cluster, in a database.
"""

import warnings
from dataclasses import dataclass
from functools import reduce

import numpy as np

from sparsebayes.core.types import AnyArray, BoolArray, FloatArray

LOST_DIGITS = 1e-8
"""A variance below this share of the mean square has lost half of its sixteen digits in a difference of sums."""
ASYMMETRY = 1e-8
"""Share of the products' size by which the two halves of a scatter matrix may differ: sums in another order."""

CHUNK = 512
"""Rows of a scatter matrix that are checked at a time."""


@dataclass(frozen=True)
class Moments:
    """Count, mean and scatter of the columns of [X, y].

    Parameters
    ----------
    n : float
        Number of rows, or the sum of their weights.
    mean : array of shape (n_features + n_outputs,)
        Mean of every column, the targets last.
    scatter : array of shape (n_features + n_outputs, n_features + n_outputs)
        Σ (row - mean)(row - mean)ᵀ: n times the population covariance.
    n_outputs : int, default=1
        How many of the last columns are targets.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsebayes import Moments
    >>> X, y = np.array([[1.0], [2.0], [4.0]]), np.array([1.0, 1.0, 4.0])
    >>> whole = Moments.of(X, y)
    >>> parts = Moments.of(X[:1], y[:1]) + Moments.of(X[1:], y[1:])
    >>> bool(np.allclose(parts.scatter, whole.scatter))
    True
    """

    n: float
    mean: FloatArray
    scatter: FloatArray
    n_outputs: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", float(self.n))
        object.__setattr__(self, "mean", np.array(self.mean, dtype=np.float64))
        object.__setattr__(self, "scatter", np.array(self.scatter, dtype=np.float64))
        width = self.mean.size
        if self.mean.ndim != 1 or self.scatter.shape != (width, width):
            raise ValueError(
                f"mean has shape {self.mean.shape} and scatter {self.scatter.shape}: give one number for each column "
                "of [X, y], and a square matrix of as many rows and columns"
            )
        if not (np.isfinite(self.n) and self.n >= 0):
            raise ValueError(f"n={self.n!r} must be a finite count of rows, zero or more")
        if not 1 <= self.n_outputs <= width:
            raise ValueError(f"n_outputs={self.n_outputs!r} does not go with {width} columns of [X, y]")
        self._check_scatter()

    def _check_scatter(self) -> None:
        if not (np.isfinite(self.mean).all() and np.isfinite(self.scatter).all()):
            bad = np.flatnonzero(~(np.isfinite(self.mean) & np.isfinite(self.scatter).all(axis=0)))
            raise ValueError(
                f"mean or scatter of column {bad[0]} is NaN or infinite: leave out rows with missing values"
            )
        diagonal = self.scatter.diagonal()
        if (diagonal < 0).any():
            raise ValueError(
                f"scatter[{int(np.argmin(diagonal))}] has a negative diagonal: a sum of squares is expected"
            )
        size = np.sqrt(diagonal)
        for start in range(0, len(size), CHUNK):
            rows = slice(start, start + CHUNK)
            limit = np.multiply.outer(size[rows], size)
            if (np.abs(self.scatter[rows] - self.scatter[:, rows].T) > ASYMMETRY * limit).any():
                raise ValueError("scatter is not symmetric")
            if (np.abs(self.scatter[rows]) > (1 + ASYMMETRY) * limit).any():
                raise ValueError("scatter is not a sum of products: an entry is larger than its diagonal allows")

    @classmethod
    def checked(cls, n: float, mean: FloatArray, scatter: FloatArray, n_outputs: int) -> "Moments":
        """Of arrays that are known to be moments: to check thousands of columns takes longer than to add them."""
        moments = object.__new__(cls)
        for name, value in {"n": n, "mean": mean, "scatter": scatter, "n_outputs": n_outputs}.items():
            object.__setattr__(moments, name, value)
        return moments

    @classmethod
    def of(cls, X: AnyArray, y: AnyArray, weight: FloatArray | None = None) -> "Moments":
        """Moments of rows in memory; `weight` says how often each row counts."""
        y = np.asarray(y, dtype=np.float64)
        y = y[:, None] if y.ndim == 1 else y
        rows = np.column_stack([np.asarray(X, dtype=np.float64), y])
        if weight is None:
            n, mean = float(len(rows)), rows.sum(axis=0) / max(len(rows), 1)
            centred = rows - mean
        else:
            n = float(weight.sum())
            mean = weight @ rows / n if n else np.zeros(rows.shape[1])
            centred = (rows - mean) * np.sqrt(weight)[:, None]
        return cls(n, mean, centred.T @ centred, y.shape[1])

    @classmethod
    def from_sums(
        cls, n: float, sums: AnyArray, products: AnyArray, origin: AnyArray | float = 0.0, n_outputs: int = 1
    ) -> "Moments":
        """From n, Σ(row - origin) and Σ(row - origin)(row - origin)ᵀ, which is what a query can add up.

        An `origin` near the means (the first row will do) keeps the digits of columns that lie far from zero; without
        one, a column whose spread is tiny beside its mean loses them, and a warning says so.
        """
        shift, products = np.asarray(sums, dtype=np.float64), np.asarray(products, dtype=np.float64)
        if not n > 0:
            raise ValueError(f"n={n!r} must be positive")
        shift = shift / n
        scatter = products - n * np.multiply.outer(shift, shift)
        square, diagonal = products.diagonal(), scatter.diagonal().copy()
        # A sum of n squares has rounding errors of about √n eps of itself.
        constant = diagonal <= 8 * np.sqrt(n) * np.finfo(np.float64).eps * square
        scatter[constant], scatter[:, constant] = 0.0, 0.0
        lost = np.flatnonzero(~constant & (diagonal < LOST_DIGITS * square))
        if lost.size:
            warnings.warn(
                f"column {lost[0]} lies so far from its origin that its variance has lost half of its digits: "
                "subtract an origin near its mean before summing",
                RuntimeWarning,
                stacklevel=2,
            )
        return cls(n, np.asarray(origin) + shift, scatter, n_outputs)

    def __add__(self, other: "Moments") -> "Moments":
        """Moments of the rows of both (Chan, Golub and LeVeque)."""
        if self.mean.shape != other.mean.shape or self.n_outputs != other.n_outputs:
            raise ValueError(f"moments of {self.mean.size} and {other.mean.size} columns do not add up")
        if not self.n or not other.n:
            return self if self.n else other
        n, step = self.n + other.n, other.mean - self.mean
        scatter = self.scatter + other.scatter + (self.n * other.n / n) * np.multiply.outer(step, step)
        return Moments.checked(n, self.mean + (other.n / n) * step, scatter, self.n_outputs)

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return self.mean.size - self.n_outputs

    def about(self, centre: bool) -> FloatArray:
        """Sums of products about the means, or about zero."""
        return self.scatter if centre else self.scatter + self.n * np.multiply.outer(self.mean, self.mean)

    def constant(self) -> BoolArray:
        """Columns that differ from a constant by no more than the rounding of their mean."""
        rounding = 8 * np.sqrt(self.n) * np.finfo(np.float64).eps * np.abs(self.mean)
        return np.asarray(np.sqrt(self.scatter.diagonal() / self.n) <= rounding)


def total(parts: list[Moments]) -> Moments:
    """Moments of all blocks, added in pairs: rounding errors grow with the logarithm of their number."""
    if not parts:
        raise ValueError("there is no block of rows")
    while len(parts) > 2:
        pairs = [reduce(Moments.__add__, parts[i : i + 2]) for i in range(0, len(parts), 2)]
        parts = pairs
    return reduce(Moments.__add__, parts)
