"""Fits that several tests compare with: each is made once."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

_known: dict[tuple[Any, ...], BaseEstimator] = {}


def fitted_once(model: BaseEstimator, X: np.ndarray, y: np.ndarray) -> BaseEstimator:
    """The model fitted to these data. It is shared: a test may ask it anything, but not fit it again."""
    parameters = tuple((key, repr(value)) for key, value in sorted(model.get_params().items()))
    key = type(model), parameters, X.shape, X.dtype.str, X.tobytes(), y.shape, y.dtype.str, y.tobytes()
    if key not in _known:
        _known[key] = clone(model).fit(X, y)
    return _known[key]
