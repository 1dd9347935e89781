"""The design of the user's rows: which class stores them."""

from typing import Any

import numpy as np
from scipy import sparse

from sparsebayes.data.dense import DenseRows
from sparsebayes.data.sparse import SparseRows


def with_ones(X: Any) -> Any:
    """Rows with a last column of ones."""
    ones = np.ones((X.shape[0], 1))
    return sparse.hstack([X, ones], format="csc") if sparse.issparse(X) else np.hstack([X, ones])


def design_of(X: Any, *, ones: bool = False) -> DenseRows | SparseRows:
    """Rows as they are, with a last column of ones if wanted."""
    columns = with_ones(X) if ones else X
    return SparseRows.of(columns) if sparse.issparse(X) else DenseRows.of(columns)
