"""Rows in memory as a NumPy array."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from sparsebayes.core.linalg import correlation_of, weighted_gram
from sparsebayes.core.types import BoolArray, FloatArray, IntArray, Scalar
from sparsebayes.data.formed import FormedColumns, under_weight
from sparsebayes.data.on_the_fly import OnTheFly

BLOCK_BYTES = 2**21
"""Work on standardised copies of at most this many bytes at a time."""
GRAM_ROWS = 512
"""Least rows of a block whose Gram matrix is added up, or as many as columns: the sum itself is that large."""
SMALL = 2**22
"""Numbers of a design whose squares are kept beside it: 32 MB."""
NARROW = 512
"""Widest design whose Gram matrix is formed as a whole for any search."""
WHOLE_GRAM = 5000
"""Widest design whose Gram matrix is formed as a whole for a search on kernel columns; it takes 200 MB then."""


@dataclass(frozen=True)
class DenseRows(OnTheFly):
    """The design Φ = diag(root_weight) (X - 1 meanᵀ) diag(1/scale), never formed as a whole.

    X is the user's array, untouched: centring (which eliminates a flat intercept exactly), scaling and row weights are
    folded into each reduction, so that wide data needs no second copy.
    """

    X: FloatArray
    mean: FloatArray
    scale: FloatArray
    root_weight: FloatArray
    _offset: FloatArray | None = field(default=None, repr=False)
    _gram: list[FloatArray] = field(default_factory=list, repr=False)
    """The Gram matrix with unit weights, once it is computed."""
    _gram_columns: dict[int, FloatArray] = field(default_factory=dict, repr=False)
    _square: list[FloatArray] = field(default_factory=list, repr=False)
    _entry_squares: list[FloatArray] = field(default_factory=list, repr=False)
    """(X - mean)², once it is computed."""
    _few_products: bool = False
    """Whether a search will ask for few of the columns' products, so that no Gram matrix is formed for it."""

    @classmethod
    def of(cls, X: FloatArray) -> "DenseRows":
        """The rows as they are."""
        n, m = X.shape
        return cls(X, np.zeros(m), np.ones(m), np.ones(n))

    @classmethod
    def formed(cls, Phi: FloatArray) -> "DenseRows":
        """Columns as they are, few of whose products will be asked for: no Gram matrix is formed for them."""
        return replace(cls.of(Phi), _square=[np.einsum("ij,ij->j", Phi, Phi)], _few_products=True)

    @property
    def n_rows(self) -> int:
        """N."""
        return len(self.X)

    @property
    def n_columns(self) -> int:
        """M."""
        return len(self.mean)

    def standardised(self, weight: FloatArray, centre: bool) -> "DenseRows":
        """Rows weighted by √weight, columns centred if `centre` and divided by their weighted root mean square.

        A column whose values are all the same, or differ by no more than the rounding of their mean, is constant: its
        scale is set to infinity, which makes it a column of zeros.
        """
        total = weight.sum()
        mean = self._sums(weight) / total if centre else np.zeros(self.n_columns)
        rows = DenseRows(self.X, mean, np.ones(self.n_columns), np.sqrt(weight))
        square = rows.column_square() / total
        rounding = 8 * np.sqrt(self.n_rows) * np.finfo(np.float64).eps * np.abs(mean)
        constant = np.sqrt(square) <= rounding
        if centre:
            alike = np.flatnonzero((self.X[:8] == self.X[0]).all(axis=0))
            if alike.size:
                constant[alike] |= (self.X[:, alike] == self.X[0, alike]).all(axis=0)
        scale = np.where(constant, np.inf, np.sqrt(square))
        return DenseRows(self.X, mean, scale, rows.root_weight, _square=[np.where(constant, 0.0, total)])

    def centred(self, weight: FloatArray) -> "DenseRows":
        """The columns less their weighted means, which eliminates a flat intercept."""
        mean = self._sums(weight) / weight.sum()
        return DenseRows(self.X, mean, self.scale, self.root_weight, (mean - self.mean) / self.scale)

    @property
    def offset(self) -> FloatArray:
        """Where the columns are measured from since they were centred, in standard units."""
        return np.zeros(self.n_columns) if self._offset is None else self._offset

    def unweighted(self) -> "DenseRows":
        """The same columns with all rows alike, for likelihoods that take the weights into their sites."""
        return DenseRows(self.X, self.mean, self.scale, np.ones(self.n_rows), _entry_squares=self._entry_squares)

    def rescaled(self, which: IntArray, factor: FloatArray) -> "DenseRows":
        """Some of the columns, in units multiplied by a factor; X is copied only if columns are left out."""
        same = np.array_equal(which, np.arange(self.n_columns))
        X = self.X if same else self.X[:, which]
        return DenseRows(X, self.mean[which], self.scale[which] * factor, self.root_weight)

    def under(self, which: IntArray, weight: FloatArray, centre: bool) -> "DenseRows":
        """Some columns, less their weighted means if `centre`, and rows multiplied by √weight."""
        return DenseRows.formed(under_weight(self.columns(which), weight, centre)[0])

    def weighted(self, root_weight: FloatArray) -> "DenseRows":
        """Each row multiplied by a factor."""
        return DenseRows(self.X, self.mean, self.scale, self.root_weight * root_weight)

    def column_square(self, weight: FloatArray | None = None) -> FloatArray:
        """diag(Φᵀ diag(weight) Φ), by one pass over X."""
        own = self.root_weight**2
        if weight is not None:
            again = self.X.size <= SMALL
            square = (weight * own) @ self._squares() if again else self._square_pass(weight * own)
        elif self._square:
            return self._square[0]
        else:
            square = self._square_pass(own)
        return np.asarray(square / self.scale**2)

    def _squares(self) -> FloatArray:
        """(X - mean)², computed once: a search on a small design asks for its weighted sums again and again."""
        if not self._entry_squares:
            centred = self.X - self.mean
            self._entry_squares.append(np.multiply(centred, centred, out=centred))
        return self._entry_squares[0]

    def _square_pass(self, weight: FloatArray) -> FloatArray:
        """Σₙ weightₙ (Xₙ - mean)² over blocks of rows that stay in the cache."""
        total = np.zeros(self.n_columns)
        # A quarter of BLOCK_BYTES: the copy is read twice more, and shall still be in the cache.
        step = max(1, BLOCK_BYTES // (32 * max(1, self.n_columns)))
        for start in range(0, self.n_rows, step):
            block = self.X[start : start + step] - self.mean
            block *= block
            total += weight[start : start + step] @ block
        return total

    def columns(self, which: IntArray | BoolArray | slice) -> FloatArray:
        """Φ[:, which], formed."""
        block = self.X[:, which] - self.mean[which]
        block /= self.scale[which]
        if self._is_weighted:
            block *= self.root_weight[:, None]
        return block

    @cached_property
    def _is_weighted(self) -> bool:
        return bool((self.root_weight != 1).any())

    def keep(self, which: IntArray | BoolArray) -> FormedColumns:
        """The chosen columns only, formed."""
        return FormedColumns(np.ascontiguousarray(self.columns(which)))

    def compressed(self, R: FloatArray) -> "DenseRows":
        """Rows R that replace these, with RᵀR = ΦᵀΦ."""
        return replace(DenseRows.of(np.ascontiguousarray(R)), _gram=[self.gram()])

    def gram(self, weight: FloatArray | Scalar = 1.0) -> FloatArray:
        """Φᵀ diag(weight) Φ, over blocks of rows; with a shared weight it is computed once."""
        if np.ndim(weight):
            return self._gram_pass(np.asarray(weight))
        if not self._gram:
            self._gram.append(self._gram_pass(None))
        return self._gram[0] if weight == 1.0 else self._gram[0] * weight

    def gram_columns(self, which: IntArray) -> FloatArray:
        """ΦᵀΦ[:, which]."""
        if self._gram:
            return self._gram[0][:, which]
        return self.project(self.columns(which))

    def prepare_gram(self) -> None:
        """Compute the whole Gram matrix now, unless it is too large: a search asks for many of its columns."""
        if self.n_columns <= WHOLE_GRAM:
            self.gram()

    def exact(self, which: IntArray) -> "DenseRows | None":
        """None: these columns are exact already."""
        return None

    def rows(self, which: IntArray) -> FloatArray:
        """Some rows of the standardised design, not weighted."""
        return (self.X[which] - self.mean) / self.scale

    @property
    def known_gram(self) -> FloatArray | None:
        """The Gram matrix with unit weights, if it was computed before or is small."""
        if not self._gram and not self._few_products and self.n_columns <= min(NARROW, self.n_rows):
            self.gram()
        return self._gram[0] if self._gram else None

    def gram_column(self, j: int, ahead: Callable[[], IntArray]) -> FloatArray:
        """Φᵀφ_j, computed once.

        A pass over the rows for one column is bound by memory, so when one is needed those that `ahead` expects to be
        asked for next are computed in the same pass.
        """
        if (gram := self.known_gram) is not None:
            return gram[j, :]
        if j not in self._gram_columns:
            wanted = [j, *(int(i) for i in ahead() if i != j and i not in self._gram_columns)]
            block = np.asfortranarray(self.project(self.columns(np.array(wanted))))
            self._gram_columns.update({i: block[:, k] for k, i in enumerate(wanted)})
        return self._gram_columns[j]

    def _gram_pass(self, weight: FloatArray | None) -> FloatArray:
        blocks = self._row_blocks(max(GRAM_ROWS, self.n_columns))
        grams = (weighted_gram(block, 1.0 if weight is None else weight[rows]) for rows, block in blocks)
        total = next(grams)
        for gram in grams:
            total += gram
        if (self.scale != 1).any():
            total /= self.scale[:, None]
            total /= self.scale
        return total

    def outer(self, weight: FloatArray) -> FloatArray:
        """Φ diag(weight) Φᵀ, over blocks of columns."""
        total = np.zeros((self.n_rows, self.n_rows))
        for block in self._column_blocks():
            total += weighted_gram(self.columns(block).T, weight[block])
        return total

    def project(self, rows: FloatArray) -> FloatArray:
        """Φᵀ rows."""
        weighted = self.root_weight * rows.T if self._is_weighted else rows.T
        # A few rows times X is faster than the transpose of X times a few columns.
        product = self._sums(weighted) - np.multiply.outer(weighted.sum(axis=-1), self.mean)
        return np.asarray((product / self.scale).T)

    def predict(self, weights: FloatArray) -> FloatArray:
        """Φ weights."""
        scaled = weights / self.scale
        return np.asarray(self.root_weight * (self._times(scaled) - self.mean @ scaled))

    def row_variance(self, root: FloatArray) -> FloatArray:
        """‖root φₙ‖² per row."""
        scaled = root / self.scale
        product = self._times(scaled.T) - scaled @ self.mean
        return np.asarray(self.root_weight**2 * (product**2).sum(axis=1))

    def _sums(self, rows: FloatArray) -> FloatArray:
        """`rows` X; a design in single precision is converted a block at a time."""
        if self.X.dtype == np.float64:
            return np.asarray(rows @ self.X)
        total = np.zeros((*rows.shape[:-1], self.n_columns))
        for which, columns, block in self._double_blocks():
            total[..., columns] += rows[..., which] @ block
        return total

    def _times(self, weights: FloatArray) -> FloatArray:
        """X `weights`, likewise."""
        if self.X.dtype == np.float64:
            return np.asarray(self.X @ weights)
        total = np.zeros((self.n_rows, *weights.shape[1:]))
        for which, columns, block in self._double_blocks():
            total[which] += block @ weights[columns]
        return total

    def _double_blocks(self) -> Iterator[tuple[slice, slice, FloatArray]]:
        """Blocks of rows or, of wide designs, of columns, in double precision."""
        everything = slice(None)
        if self.n_columns > self.n_rows:
            for columns in self._column_blocks():
                yield everything, columns, self.X[:, columns].astype(np.float64)
            return
        step = max(1, BLOCK_BYTES // (8 * max(1, self.n_columns)))
        for start in range(0, self.n_rows, step):
            rows = slice(start, start + step)
            yield rows, everything, self.X[rows].astype(np.float64)

    def correlation(self, which: IntArray) -> FloatArray:
        """Correlations between some of the columns; the rows count by their weights."""
        columns = self.columns(which)
        unit = self.root_weight / np.sqrt((self.root_weight**2).sum())
        columns -= np.outer(unit, unit @ columns)
        return correlation_of(columns.T @ columns)

    def _row_blocks(self, least: int = 1) -> Iterator[tuple[slice, FloatArray]]:
        """Φ diag(scale) in pieces of a few rows; dividing the sums by the scale afterwards is less work."""
        step = max(least, BLOCK_BYTES // (8 * max(1, self.n_columns)))
        for start in range(0, self.n_rows, step):
            rows = slice(start, start + step)
            block = self.X[rows] - self.mean
            if self._is_weighted:
                block *= self.root_weight[rows, None]
            yield rows, block

    def _column_blocks(self) -> list[slice]:
        step = max(1, BLOCK_BYTES // (8 * max(1, self.n_rows)))
        return [slice(start, start + step) for start in range(0, self.n_columns, step)]
