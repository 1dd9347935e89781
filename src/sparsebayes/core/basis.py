"""From inputs to the design matrix Φ: the columns that a model keeps, as a function of new rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsebayes.core.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class LinearBasis:
    """The input columns themselves, measured from a reference point, with a column of ones last if wanted."""

    columns: IntArray
    reference: FloatArray
    ones: bool = False

    def __call__(self, X: Any) -> FloatArray:
        """Φ for these rows, which may be sparse."""
        chosen = X[:, self.columns]
        dense = chosen if isinstance(X, np.ndarray) else chosen.toarray()
        return _with_ones(dense - self.reference, self.ones)

    def keep(self, which: IntArray | BoolArray) -> "LinearBasis":
        """The same basis with these columns only."""
        chosen, ones = _split(which, len(self.columns), self.ones)
        return LinearBasis(self.columns[chosen], self.reference[chosen], ones)


@dataclass(frozen=True)
class KernelBasis:
    """One kernel function per centre, measured from a reference value, with a column of ones last if wanted."""

    kernel: Callable[[FloatArray, FloatArray], FloatArray]
    centres: FloatArray
    reference: FloatArray
    ones: bool = False

    def __call__(self, X: FloatArray) -> FloatArray:
        """Φ for these rows."""
        return _with_ones(self.kernel(X, self.centres) - self.reference, self.ones)

    def keep(self, which: IntArray | BoolArray) -> "KernelBasis":
        """The same basis with these columns only."""
        chosen, ones = _split(which, len(self.centres), self.ones)
        return KernelBasis(self.kernel, self.centres[chosen], self.reference[chosen], ones)


def _with_ones(Phi: FloatArray, ones: bool) -> FloatArray:
    return np.column_stack([Phi, np.ones(len(Phi))]) if ones else Phi


def _split(which: IntArray | BoolArray, n_columns: int, ones: bool) -> tuple[IntArray, bool]:
    """Kept columns apart from whether the column of ones, which is always the last, is kept."""
    kept = np.arange(n_columns + ones)[which]
    return kept[kept < n_columns], bool((kept == n_columns).any())
