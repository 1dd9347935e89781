"""Values of allowed types that compiled code takes on trust: out of range, they would reach beyond an array."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.preprocessing import OneHotEncoder

from sparsebayes.io.archive import Refused


def check_values(model: Any) -> None:
    """Refuse a model with values that scikit-learn's own `fit` cannot have made, where that matters."""
    for part in _estimators(model):
        if isinstance(part, OneHotEncoder) and hasattr(part, "categories_") and not _sound_one_hot(part):
            raise Refused("a OneHotEncoder whose one-hot columns do not fit its categories")


def _estimators(thing: Any) -> Iterator[BaseEstimator]:
    if isinstance(thing, BaseEstimator):
        yield thing
        thing = vars(thing)
    if isinstance(thing, dict):
        thing = list(thing.values())
    if isinstance(thing, list | tuple):
        for item in thing:
            yield from _estimators(item)


def _sound_one_hot(encoder: OneHotEncoder) -> bool:
    """`transform` makes a sparse matrix whose column numbers SciPy does not check."""
    n_features = len(encoder.categories_)
    mappings = encoder._default_to_infrequent_mappings if encoder._infrequent_enabled else [None] * n_features
    drops = encoder._drop_idx_after_grouping
    drops = [None] * n_features if drops is None else list(drops)
    if not len(mappings) == len(drops) == len(encoder._n_features_outs) == n_features:
        return False
    columns = zip(encoder.categories_, mappings, drops, encoder._n_features_outs, strict=True)
    return all(_n_columns(*column[:3]) == column[3] for column in columns)


def _n_columns(categories: Any, mapping: Any, drop: Any) -> int:
    """Columns that a feature becomes; -1 where its values could go astray."""
    n = len(categories)
    if categories.dtype.kind not in "OU" and not np.array_equal(np.searchsorted(categories, categories), np.arange(n)):
        return -1  # not sorted, or not unique: a search for a category may end behind the last
    if mapping is not None:
        if mapping.shape != (n,) or mapping.dtype.kind not in "iu" or not n or mapping.min() < 0:
            return -1
        n = int(mapping.max()) + 1
    if drop is None:
        return n
    return n - 1 if isinstance(drop, int | np.integer) and 0 <= drop < n else -1
