"""Rows that are not in this process's memory: Dask collections and arrays on graphics cards.

`fit` makes passes over them, and predictions for Dask collections are lazy. scikit-learn's setting
`array_api_dispatch=True` says that arrays of torch and CuPy are meant to stay where they are.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

import numpy as np
from sklearn import get_config
from sklearn.utils.validation import check_is_fitted

from sparsebayes.core.arrays import like, on_device, to_numpy
from sparsebayes.data.read import read_blocks
from sparsebayes.estimators._base import Fit


def is_dask(X: Any) -> bool:
    """Whether it is a Dask collection."""
    return hasattr(X, "__dask_graph__")


def stays(X: Any) -> bool:
    """Whether it is an array of another library that stays on its device."""
    return on_device(X) and bool(get_config()["array_api_dispatch"])


def refuse_dask(model: Any, X: Any) -> None:
    """Raise TypeError with advice where a fit would load a whole Dask collection into memory."""
    if is_dask(X):
        raise TypeError(
            f"{type(model).__name__} needs its rows in memory, and X is a Dask collection: fit a sample "
            "(X.compute() of some of its rows), or an estimator with fit_blocks"
        )


def streamed(fit: Fit) -> Fit:
    """Let `fit` read rows that are not in memory in passes."""

    @wraps(fit)
    def passed(self: Any, X: Any, y: Any = None, sample_weight: Any = None, **others: Any) -> Any:
        if (is_dask(X) or stays(X)) and hasattr(self, "fit_blocks"):
            named = [name for name, value in others.items() if value is not None]
            if named:
                raise ValueError(f"{named[0]} is not supported for rows that are read in passes")
            return self.fit_blocks(read_blocks(X, y, weight=sample_weight))
        return fit(self, X, y, sample_weight, **others)

    return cast(Fit, passed)


def lazily(predict: Callable[..., Any]) -> Callable[..., Any]:
    """Let a prediction for a Dask collection be one, too; and give arrays of other libraries back as such."""

    @wraps(predict)
    def lazy(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if is_dask(X):
            return _lazy(self, predict, X, args, kwargs)
        if stays(X):
            found = predict(self, to_numpy(X), *args, **kwargs)
            return tuple(_back(each, X) for each in found) if isinstance(found, tuple) else _back(found, X)
        return predict(self, X, *args, **kwargs)

    return lazy


def _back(values: Any, X: Any) -> Any:
    return like(values, X) if values.dtype.kind == "f" else values


def _lazy(model: Any, predict: Callable[..., Any], X: Any, args: Any, kwargs: Any) -> Any:
    """A Dask array whose blocks are predictions; of several answers (mean and spread) one for each."""
    import dask
    import dask.array as da

    check_is_fitted(model)
    if not hasattr(X, "columns"):
        X = X.rechunk({1: -1})
        parts, lengths = X.to_delayed().ravel(), X.chunks[0]
    else:
        parts, lengths = X.to_delayed(), [np.nan] * X.npartitions
    names = getattr(model, "feature_names_in_", None)
    example = _frame(np.zeros((1, model.n_features_in_)), names if hasattr(X, "columns") else None)
    shown = predict(model, example, *args, **kwargs)
    several = isinstance(shown, tuple)

    def one(k: int) -> Any:
        answer = np.asarray(shown[k] if several else shown)
        call = dask.delayed(_predicted, pure=False)
        pieces = [
            da.from_delayed(
                call(model, predict.__name__, part, args, kwargs, k if several else None),
                shape=(n, *answer.shape[1:]),
                dtype=answer.dtype,
            )
            for part, n in zip(parts, lengths, strict=True)
        ]
        return da.concatenate(pieces, allow_unknown_chunksizes=True)

    return tuple(one(k) for k in range(len(shown))) if several else one(0)


def _frame(values: Any, names: Any) -> Any:
    if names is None:
        return values
    import pandas as pd

    return pd.DataFrame(values, columns=names)


def _predicted(model: Any, name: str, part: Any, args: Any, kwargs: Any, k: int | None) -> Any:
    """One block, on a worker."""
    names = getattr(model, "feature_names_in_", None)
    rows = part if names is None or not hasattr(part, "columns") else part[list(names)]
    if hasattr(rows, "columns") and names is None:
        rows = rows.to_numpy()
    found = getattr(model, name)(rows, *args, **kwargs)
    return found if k is None else found[k]
