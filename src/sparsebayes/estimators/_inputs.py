"""Validated inputs, dense or sparse, in double or single precision, and predictions for them block by block."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from sparsebayes.core.threads import blas
from sparsebayes.core.types import AnyArray
from sparsebayes.estimators._elsewhere import refuse_dask
from sparsebayes.estimators._validation import validate_data

FLOATS = (np.float64, np.float32)
"""Types that are taken as they are. Arithmetic is in double precision."""
SINGLE = 2**26
"""Bytes of a float32 array from which on it is not copied to float64 for a fit."""
BLOCK = 2**21
"""Numbers of a block of rows, or of its columns in the model, for which predictions are made at a time: 16 MB."""
LEAST_ROWS = 256
"""Rows of a block, at least."""
DENSE = 2**27
"""Most numbers of sparse rows that are made dense for a kernel model: 1 GB."""
NODES = 64
"""Numbers that a prediction takes for each row, at least: nodes of a quadrature."""


class Prepared(NamedTuple):
    """Inputs with their design, which is made once for all classes."""

    X: Any
    rows: Any
    flat: bool
    """Whether the intercept is flat."""


def sparse_forms(model: Any, forms: Any) -> Any:
    """The sparse formats that the validation accepts: these, or False if the model takes none."""
    return forms if get_tags(model).input_tags.sparse else False


def validated(model: Any, X: Any, y: Any, **options: Any) -> tuple[Any, AnyArray]:
    """Rows and targets to be fitted; large float32 arrays stay what they are."""
    refuse_dask(model, X)
    keeps = isinstance(X, np.ndarray) and X.dtype == np.float32 and X.nbytes >= SINGLE
    forms = type(X) is not np.ndarray and sparse_forms(model, ("csc", "csr"))
    X, y = validate_data(model, X, y, accept_sparse=forms, dtype=FLOATS if keeps else np.float64, **options)
    return as_the_model_needs(model, X), y


def validated_rows(model: Any, X: Any) -> Any:
    """Rows to be predicted."""
    check_is_fitted(model)
    X = validate_data(model, X, accept_sparse=sparse_forms(model, "csr"), dtype=FLOATS, reset=False)
    return as_the_model_needs(model, X)


def as_the_model_needs(model: Any, X: Any) -> Any:
    """Sparse rows are made dense for kernel models, whose distances have nearly no zeros."""
    if not (sparse.issparse(X) and getattr(model, "_needs_dense", False)):
        return X
    numbers = X.shape[0] * X.shape[1]
    if numbers > DENSE:
        raise ValueError(
            f"{type(model).__name__} makes sparse rows dense, which takes {numbers / 2**27:.1f} GiB here: reduce X (by "
            "TruncatedSVD, say), choose an estimator that is linear in the features, or give fewer rows at a time"
        )
    return X.toarray()


def double(X: Any) -> Any:
    """The rows in double precision."""
    return X.astype(np.float64, copy=False) if sparse.issparse(X) else np.asarray(X, dtype=np.float64)


def over_blocks(function: Callable[..., Any], X: Any, *aligned: Any, width: int = 1) -> Any:
    """Apply a function to blocks of rows (and of arrays aligned with them), and join the results.

    `width` is the number of columns that it forms. Small products in a loop are slower with several BLAS threads.
    """
    per_row = max(width, NODES, 0 if sparse.issparse(X) else X.shape[1])
    n, step = X.shape[0], max(LEAST_ROWS, BLOCK // per_row)
    with nullcontext() if n <= step else blas().limit(limits=1):
        blocks = [slice(start, start + step) for start in range(0, max(n, 1), step)]
        parts = [function(double(X[rows]), *(each[rows] for each in aligned)) for rows in blocks]
    return parts[0] if len(parts) == 1 else _joined(parts)


def _joined(parts: Sequence[Any]) -> Any:
    if isinstance(parts[0], tuple):
        return tuple(np.concatenate(each) for each in zip(*parts, strict=True))
    return np.concatenate(parts)
