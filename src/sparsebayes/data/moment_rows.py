"""A few rows with the moments of many: all that a regression with Gaussian noise asks of its rows."""

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import lapack

from sparsebayes.core.linalg import correlation_of
from sparsebayes.core.moments import Moments
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.data.dense import DenseRows


@dataclass(frozen=True)
class MomentRows(DenseRows):
    """Standardised rows R with RᵀR = ΦᵀΦ, as many as columns at most; `means` and `units` lead back to the data.

    Where the data have fewer rows than columns, so has R.
    """

    means: FloatArray = field(default_factory=lambda: np.empty(0))
    units: FloatArray = field(default_factory=lambda: np.empty(0))
    constant_part: FloatArray = field(default_factory=lambda: np.empty(0))
    """Means of the columns in standard units; 0 where they have been centred."""

    @classmethod
    def from_moments(cls, moments: Moments, *, centre: bool, ones: bool = False) -> "tuple[MomentRows, FloatArray]":
        """The design, and a row for each target in the target's own units.

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
        R = _root(products / unit / unit[:, None], int(np.ceil(moments.n)))
        gram = products[:width, :width] / unit[:width] / unit[:width, None]
        rows = cls(
            np.ascontiguousarray(R[:, :width]), np.zeros(width), np.ones(width), np.ones(len(R)),
            _gram=[gram], _square=[gram.diagonal().copy()],
            means=np.zeros(width) if not centre else mean[:width], units=unit[:width],
            constant_part=np.zeros(width) if centre else mean[:width] / unit[:width] * np.sqrt(moments.n),
        )  # fmt: skip
        return rows, R[:, width:].T * unit[width:, None]

    @property
    def origin(self) -> FloatArray:
        """The input values that count as zero, per column."""
        return self.means

    @property
    def unit(self) -> FloatArray:
        """What one standard unit is in input values, per column; ∞ for a constant column."""
        return self.units

    def correlation(self, which: IntArray) -> FloatArray:
        """Correlations between some of the columns."""
        part = self.constant_part[which]
        return correlation_of(self._gram[0][np.ix_(which, which)] - np.multiply.outer(part, part))


def _root(products: FloatArray, n_rows: int) -> FloatArray:
    """R with RᵀR = products, and no more rows than the data have: a Cholesky factor with pivots."""
    factor, order, rank, _ = lapack.dpstrf(products, lower=0)
    R = np.zeros((min(n_rows, len(products)), len(products)))
    rank = min(int(rank), len(R))
    R[:rank, order - 1] = np.triu(factor)[:rank]
    return R
