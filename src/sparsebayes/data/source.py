"""The design of the user's rows: which class stores them."""

from typing import Any

import numpy as np
from scipy import sparse

from sparsebayes.data.dense import DenseRows
from sparsebayes.data.sparse import SparseRows


def design_of(X: Any, *, ones: bool = False) -> DenseRows | SparseRows:
    """Rows as they are, with a last column of ones if wanted."""
    if sparse.issparse(X):
        return SparseRows.of(sparse.hstack([X, np.ones((X.shape[0], 1))], format="csc") if ones else X)
    return DenseRows.of(np.column_stack([X, np.ones(len(X))]) if ones else X)
