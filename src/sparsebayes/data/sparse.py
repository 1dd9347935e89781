"""Rows in memory as a SciPy sparse matrix. Centring and scaling are implicit: only a few columns are ever dense."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from sparsebayes.core.linalg import correlation_of
from sparsebayes.core.types import BoolArray, FloatArray, IntArray, Scalar
from sparsebayes.data.dense import NARROW, WHOLE_GRAM, DenseRows
from sparsebayes.data.formed import FormedColumns
from sparsebayes.data.on_the_fly import OnTheFly

FORMED = 2**23
"""Numbers of columns that may be formed as a dense array, 64 MB: products with few dense columns are faster."""

DENSITY = 20
"""Kept columns are formed if at least one in 20 of their numbers is stored: then dense products are faster."""


@dataclass(frozen=True)
class SparseRows(OnTheFly):
    """The design Φ = diag(root_weight) (X - 1 meanᵀ) diag(1/scale) with X sparse, by columns (CSC)."""

    X: Any
    mean: FloatArray
    scale: FloatArray
    root_weight: FloatArray
    _offset: FloatArray | None = field(default=None, repr=False)
    _gram: list[FloatArray] = field(default_factory=list, repr=False)
    _gram_columns: dict[int, FloatArray] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, X: Any) -> "SparseRows":
        """The rows as they are, of any sparse form."""
        X = sparse.csc_array(X)
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        n, m = X.shape
        return cls(X, np.zeros(m), np.ones(m), np.ones(n))

    @property
    def n_rows(self) -> int:
        """N."""
        return int(self.X.shape[0])

    @property
    def n_columns(self) -> int:
        """M."""
        return len(self.mean)

    @property
    def can_form(self) -> bool:
        """Whether all columns may be formed."""
        return self.n_rows * self.n_columns <= FORMED

    @cached_property
    def _weight(self) -> FloatArray:
        return self.root_weight**2

    @cached_property
    def _sums(self) -> FloatArray:
        """Xᵀ weight, for the rows' own weights."""
        return np.asarray(self.X.T @ self._weight)

    @cached_property
    def _column(self) -> IntArray:
        """The column of every stored number."""
        return np.repeat(np.arange(self.n_columns), np.diff(self.X.indptr))

    def standardised(self, weight: FloatArray, centre: bool) -> "SparseRows":
        """Rows weighted by √weight, columns centred if `centre` and divided by their weighted root mean square.

        A column that differs from a constant by no more than rounding has the scale infinity.
        """
        total = weight.sum()
        mean = self.X.T @ weight / total if centre else np.zeros(self.n_columns)
        rows = SparseRows(self.X, mean, np.ones(self.n_columns), np.sqrt(weight))
        spread = np.sqrt(rows.column_square() / total)
        rounding = 8 * np.sqrt(self.n_rows) * np.finfo(np.float64).eps * np.abs(mean)
        return replace(rows, scale=np.where(spread <= rounding, np.inf, spread))

    def centred(self, weight: FloatArray) -> "SparseRows":
        """The columns less their weighted means, which eliminates a flat intercept."""
        mean = self.X.T @ weight / weight.sum()
        return SparseRows(self.X, mean, self.scale, self.root_weight, (mean - self.mean) / self.scale)

    @property
    def offset(self) -> FloatArray:
        """Where the columns are measured from since they were centred, in standard units."""
        return np.zeros(self.n_columns) if self._offset is None else self._offset

    def unweighted(self) -> "SparseRows":
        """The same columns with all rows alike."""
        return SparseRows(self.X, self.mean, self.scale, np.ones(self.n_rows))

    def weighted(self, root_weight: FloatArray) -> "SparseRows":
        """Each row multiplied by a factor."""
        return SparseRows(self.X, self.mean, self.scale, self.root_weight * root_weight)

    def chosen(self, which: IntArray | BoolArray) -> "SparseRows":
        """Some of the columns, still sparse."""
        offset = None if self._offset is None else self._offset[which]
        return SparseRows(self.X[:, which], self.mean[which], self.scale[which], self.root_weight, offset)

    def keep(self, which: IntArray | BoolArray) -> "FormedColumns | SparseRows":
        """Some of the columns: formed if that is small and not mostly zeros."""
        part = self.chosen(which)
        filled = part.n_rows * part.n_columns <= DENSITY * part.X.nnz
        return FormedColumns(part.columns(slice(None))) if part.can_form and filled else part

    def under(self, which: IntArray, weight: FloatArray, centre: bool) -> "SparseRows":
        """Some columns, less their weighted means if `centre`, and rows multiplied by √weight."""
        part = self.chosen(which)
        return (part.centred(weight) if centre else part).weighted(np.sqrt(weight))

    def columns(self, which: IntArray | BoolArray | slice) -> FloatArray:
        """Φ[:, which], formed."""
        block = self.X[:, which].toarray()
        block -= self.mean[which]
        block /= self.scale[which]
        block *= self.root_weight[:, None]
        return np.ascontiguousarray(block)

    def rows(self, which: IntArray) -> FloatArray:
        """Some rows of the standardised design, not weighted."""
        return np.asarray((self.X[which].toarray() - self.mean) / self.scale)

    def column_square(self, weight: FloatArray | None = None) -> FloatArray:
        """diag(Φᵀ diag(weight) Φ), a sum of positive terms: of the stored numbers, and mean² for all others."""
        row_weight = self._weight if weight is None else self._weight * weight
        stored = row_weight[self.X.indices]
        deviation = self.X.data - self.mean[self._column]
        deviation *= deviation
        deviation *= stored
        square = np.bincount(self._column, deviation, self.n_columns)
        absent = row_weight.sum() - np.bincount(self._column, stored, self.n_columns)
        return np.asarray((square + np.maximum(absent, 0.0) * self.mean**2) / self.scale**2)

    def gram(self, weight: FloatArray | Scalar = 1.0) -> FloatArray:
        """Φᵀ diag(weight) Φ."""
        if np.ndim(weight):
            return self._products(slice(None), self._weight * weight)
        if not self._gram:
            self._gram.append(self._products(slice(None), self._weight))
        return self._gram[0] if weight == 1.0 else self._gram[0] * weight

    def _products(self, which: IntArray | slice, weight: FloatArray) -> FloatArray:
        """Σₙ weightₙ (xₙ - mean)(xₙ - mean)ᵀ[:, which], in standard units."""
        part = self.X[:, which].copy()
        part.data = part.data * weight[part.indices]
        gram = (self.X.T @ part).toarray()
        sums, total = self._sums if weight is self._weight else self.X.T @ weight, weight.sum()
        gram -= np.multiply.outer(self.mean, sums[which] - total * self.mean[which])
        gram -= np.multiply.outer(sums, self.mean[which])
        gram /= self.scale[which]
        gram /= self.scale[:, None]
        return np.asarray(gram)

    def gram_columns(self, which: IntArray) -> FloatArray:
        """ΦᵀΦ[:, which]."""
        return self._gram[0][:, which] if self._gram else self._products(which, self._weight)

    def gram_column(self, j: int, ahead: Callable[[], IntArray]) -> FloatArray:
        """Φᵀφ_j, computed once, together with those that `ahead` expects to be asked for next."""
        if (gram := self.known_gram) is not None:
            return gram[j, :]
        if j not in self._gram_columns:
            wanted = [j, *(int(i) for i in ahead() if i != j and int(i) not in self._gram_columns)]
            block = np.asfortranarray(self.gram_columns(np.array(wanted)))
            self._gram_columns.update({i: block[:, k] for k, i in enumerate(wanted)})
        return self._gram_columns[j]

    @property
    def known_gram(self) -> FloatArray | None:
        """The Gram matrix, if it was computed before or is small."""
        if not self._gram and self.n_columns <= min(NARROW, self.n_rows):
            self.gram()
        return self._gram[0] if self._gram else None

    def prepare_gram(self) -> None:
        """Compute the whole Gram matrix now, unless it is larger than the data: columns of it are cheap."""
        if self.n_columns <= WHOLE_GRAM and self.n_columns**2 <= self.X.nnz:
            self.gram()

    def compressed(self, R: FloatArray) -> DenseRows:
        """Rows R that replace these, with RᵀR = ΦᵀΦ."""
        return replace(DenseRows.of(np.ascontiguousarray(R)), _gram=[self.gram()])

    def exact(self, which: IntArray) -> "SparseRows | None":
        """None: these columns are exact already."""
        return None

    def outer(self, weight: FloatArray) -> FloatArray:
        """Φ diag(weight) Φᵀ."""
        factor = weight / self.scale**2
        total = (self.X @ sparse.diags_array(factor) @ self.X.T).toarray()
        shift = self.X @ (factor * self.mean)
        total -= shift[:, None]
        total -= shift - factor @ self.mean**2
        total *= self.root_weight[:, None]
        total *= self.root_weight
        return np.asarray(total)

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
        """‖root φₙ‖² per row, a few rows of the root at a time."""
        total, step = np.zeros(self.n_rows), max(1, FORMED // max(1, self.n_rows))
        for start in range(0, len(root), step):
            scaled = root[start : start + step] / self.scale
            product = self.X @ scaled.T - scaled @ self.mean
            total += np.einsum("ij,ij->i", product, product)
        return np.asarray(self._weight * total)

    def correlation(self, which: IntArray) -> FloatArray:
        """Correlations between some of the columns; the rows count by their weights."""
        part = self.chosen(which).centred(self._weight)
        return correlation_of(part.gram())
