"""Rows in memory as a NumPy array."""

from dataclasses import dataclass, field

import numpy as np

from sparsebayes.core.linalg import weighted_gram
from sparsebayes.core.types import BoolArray, FloatArray, IntArray, Scalar

BLOCK_BYTES = 2**22
"""Work on standardised copies of at most this many bytes at a time."""
FULL_GRAM_COLUMNS = 512
"""Up to this width the whole Gram matrix costs less than the columns of it that a search asks for one by one."""


@dataclass(frozen=True)
class DenseRows:
    """The design Φ = diag(root_weight) (X - 1 meanᵀ) diag(1/scale), never formed as a whole.

    X is the user's array, untouched: centring (which eliminates a flat intercept exactly), scaling and row weights are
    folded into each reduction, so that wide data needs no second copy.
    """

    X: FloatArray
    mean: FloatArray
    scale: FloatArray
    root_weight: FloatArray
    _gram: list[FloatArray] = field(default_factory=list, repr=False)
    """The Gram matrix with unit weights, once it was asked for."""
    _gram_columns: dict[int, FloatArray] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, X: FloatArray) -> "DenseRows":
        """The rows as they are."""
        n, m = X.shape
        return cls(X, np.zeros(m), np.ones(m), np.ones(n))

    @property
    def n_rows(self) -> int:
        """N."""
        return len(self.X)

    @property
    def n_columns(self) -> int:
        """M."""
        return len(self.mean)

    def standardised(self, weight: FloatArray, centre: bool) -> "DenseRows":
        """Rows weighted by √weight, columns (centred, if so wished, and) divided by their weighted root mean square.

        A column whose spread is within the rounding of its own values is constant: its scale is set to infinity, which
        makes it a column of zeros.
        """
        total = weight.sum()
        mean = (weight @ self.X) / total if centre else np.zeros(self.n_columns)
        square = np.empty(self.n_columns)
        for block in self._column_blocks():
            spread = self.X[:, block] - mean[block]
            if centre:  # the first pass leaves a rounding error of the mean's own size
                rest = (weight @ spread) / total
                mean[block] += rest
                spread -= rest
            square[block] = weight @ (spread * spread) / total
        rounding = 8 * np.finfo(np.float64).eps * np.abs(mean)
        scale = np.where(np.sqrt(square) <= rounding, np.inf, np.sqrt(square))
        return DenseRows(self.X, mean, scale, np.sqrt(weight))

    def columns(self, which: IntArray | BoolArray | slice) -> FloatArray:
        """Φ[:, which], formed."""
        block = (self.X[:, which] - self.mean[which]) / self.scale[which]
        block *= self.root_weight[:, None]
        return block

    def keep(self, which: IntArray | BoolArray) -> "DenseRows":
        """Rows of the chosen columns only, formed: what is kept is small, and then used many times."""
        kept = DenseRows.of(np.ascontiguousarray(self.columns(which)))
        if self._gram:
            kept._gram.append(self._gram[0][np.ix_(which, which)])
        return kept

    def gram(self, weight: FloatArray | Scalar = 1.0) -> FloatArray:
        """Φᵀ diag(weight) Φ, over blocks of rows; a shared weight costs one pass in a lifetime."""
        if np.ndim(weight):
            return self._gram_pass(np.asarray(weight))
        if not self._gram:
            self._gram.append(self._gram_pass(np.ones(self.n_rows)))
        return self._gram[0] if weight == 1.0 else self._gram[0] * weight

    def gram_column(self, j: int) -> FloatArray:
        """Φᵀφ_j, computed once."""
        if self.n_columns <= min(FULL_GRAM_COLUMNS, self.n_rows):
            return self.gram()[:, j]
        if j not in self._gram_columns:
            self._gram_columns[j] = self.project(self.columns(np.array([j]))[:, 0])
        return self._gram_columns[j]

    def _gram_pass(self, weight: FloatArray) -> FloatArray:
        total = np.zeros((self.n_columns, self.n_columns))
        half = self.root_weight * np.sqrt(weight)
        step = max(1, BLOCK_BYTES // (8 * max(1, self.n_columns)))
        for start in range(0, self.n_rows, step):
            rows = slice(start, start + step)
            total += weighted_gram((self.X[rows] - self.mean) * half[rows, None])
        return total / self.scale[:, None] / self.scale

    def outer(self, weight: FloatArray) -> FloatArray:
        """Φ diag(weight) Φᵀ, over blocks of columns."""
        total = np.zeros((self.n_rows, self.n_rows))
        for block in self._column_blocks():
            total += weighted_gram(self.columns(block).T, weight[block])
        return total

    def project(self, rows: FloatArray) -> FloatArray:
        """Φᵀ rows."""
        weighted = (self.root_weight * rows.T).T
        product = self.X.T @ weighted - np.multiply.outer(self.mean, weighted.sum(axis=0))
        return np.asarray((product.T / self.scale).T)

    def predict(self, weights: FloatArray) -> FloatArray:
        """Φ weights."""
        scaled = weights / self.scale
        return np.asarray(self.root_weight * (self.X @ scaled - self.mean @ scaled))

    def row_variance(self, root: FloatArray) -> FloatArray:
        """‖root φₙ‖² per row."""
        scaled = root / self.scale
        product = self.X @ scaled.T - scaled @ self.mean
        return np.asarray(self.root_weight**2 * (product**2).sum(axis=1))

    def _column_blocks(self) -> list[slice]:
        step = max(1, BLOCK_BYTES // (8 * max(1, self.n_rows)))
        return [slice(start, start + step) for start in range(0, self.n_columns, step)]
