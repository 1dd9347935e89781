"""A few rows with the moments of many: all that a regression with Gaussian noise needs of its rows.

[R, T] with [R, T]ᵀ[R, T] = the products of [Φ, y]. The targets come first in the factorisation, so that T is known at
once. R is computed when it is first used: a search works with the products themselves.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import lapack

from sparsebayes.core.linalg import correlation_of
from sparsebayes.core.moments import Moments
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.data.dense import DenseRows


class LazyRows:
    """R, computed when it is first used."""

    __array_ufunc__ = None  # `array @ rows` shall ask `__rmatmul__`
    dtype = np.dtype(np.float64)

    def __init__(self, gram: FloatArray, cross: FloatArray, n_rows: int) -> None:
        self.gram, self.cross = gram, cross
        self.shape = (n_rows, len(gram))
        self.size = n_rows * len(gram)

    @cached_property
    def values(self) -> FloatArray:
        """Rows of the targets, and below them the root of what they leave of the products."""
        above = self.cross[: len(self)]
        left = self.gram - above.T @ above
        factor, order, rank, _ = lapack.dpstrf(left, lower=0)
        R = np.zeros(self.shape)
        R[: len(above)] = above
        rank = min(int(rank), len(R) - len(above))
        R[len(above) : len(above) + rank, order - 1] = np.triu(factor)[:rank]
        return R

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        return self.values[key]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return self.values

    def __matmul__(self, right: FloatArray) -> FloatArray:
        return np.asarray(self.values @ right)

    def __rmatmul__(self, left: FloatArray) -> FloatArray:
        return np.asarray(left @ self.values)


@dataclass(frozen=True)
class MomentRows(DenseRows):
    """Standardised rows R with RᵀR = ΦᵀΦ; `means` and `units` lead back to the data.

    Where the data have fewer rows than columns, so has R.
    """

    means: FloatArray = field(default_factory=lambda: np.empty(0))
    units: FloatArray = field(default_factory=lambda: np.empty(0))
    constant_part: FloatArray = field(default_factory=lambda: np.empty(0))
    """Means of the columns in standard units; 0 where they have been centred."""

    @classmethod
    def from_moments(
        cls, moments: Moments, *, centre: bool, ones: bool = False
    ) -> "tuple[MomentRows, FloatArray, FloatArray]":
        """The design; for each target a row of T and its products with the columns, in the target's own units.

        With `ones` the design has a last column of ones.
        """
        D = moments.n_features
        mean, products = moments.mean, moments.about(centre)
        if ones:
            mean = np.insert(mean, D, 1.0)
            sums = moments.n * mean
            products = np.insert(np.insert(products, D, sums[np.arange(mean.size) != D], axis=0), D, sums, axis=1)
        width = D + ones
        constant = np.zeros(width, dtype=bool)
        constant[:D] = moments.constant()[:D] if centre else products.diagonal()[:D] == 0
        unit = np.sqrt(products.diagonal() / moments.n)
        unit[:width][constant] = np.inf
        unit[width:][unit[width:] == 0] = 1.0
        gram, below = products[:width, :width] / unit[:width], products[width:] / unit / unit[width:, None]
        gram /= unit[:width, None]
        T, cross = _targets(below[:, width:], below[:, :width])
        n_rows = min(int(np.ceil(moments.n)), len(products))
        rows = cls(
            LazyRows(gram, cross, n_rows), np.zeros(width), np.ones(width), np.ones(n_rows),  # type: ignore[arg-type]
            _gram=[gram], _square=[gram.diagonal().copy()],
            means=np.zeros(width) if not centre else mean[:width], units=unit[:width],
            constant_part=np.zeros(width) if centre else mean[:width] / unit[:width] * np.sqrt(moments.n),
        )  # fmt: skip
        lines = np.zeros((len(T), n_rows))
        lines[:, : len(cross)] = T[:, :n_rows]
        return rows, lines * unit[width:, None], below[:, :width] * unit[width:, None]

    @property
    def origin(self) -> FloatArray:
        """The input values that count as zero, per column."""
        return self.means

    @property
    def unit(self) -> FloatArray:
        """What one standard unit is in input values, per column; ∞ for a constant column."""
        return self.units

    def rescaled(self, which: IntArray, factor: FloatArray) -> "MomentRows":
        """Some of the columns, in units multiplied by a factor."""
        same = np.array_equal(which, np.arange(self.n_columns))
        gram = self._gram[0][np.ix_(which, which)] / factor / factor[:, None]
        return replace(
            self, X=self.X if same else self.X[:, which], mean=self.mean[which], scale=self.scale[which] * factor,
            _gram=[gram], _square=[gram.diagonal().copy()], means=self.means[which], units=self.units[which] * factor,
            constant_part=self.constant_part[which] / factor,
        )  # fmt: skip

    def correlation(self, which: IntArray) -> FloatArray:
        """Correlations between some of the columns."""
        part = self.constant_part[which]
        return correlation_of(self._gram[0][np.ix_(which, which)] - np.multiply.outer(part, part))


def _targets(products: FloatArray, cross: FloatArray) -> tuple[FloatArray, FloatArray]:
    """T (a row for each target) with T Tᵀ = `products`, and what the same rows are in the columns: T C = `cross`."""
    factor, order, rank, _ = lapack.dpstrf(products, lower=0)
    order, rank = order - 1, int(rank)
    upper = np.triu(factor)[:rank]
    T = np.zeros((len(products), rank))
    T[order] = upper.T
    C = lapack.dtrtrs(upper[:, :rank], cross[order[:rank]], trans=1)[0] if rank else np.zeros((0, cross.shape[1]))
    return T, np.asarray(C)
