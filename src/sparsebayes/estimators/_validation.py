"""Checks of inputs beyond those of scikit-learn: no masks, sizes whose squares are numbers, weights that count."""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import validation

from sparsebayes.core.types import AnyArray, FloatArray

LARGEST, SMALLEST = 1e305, 1e-305
"""Between these the sum of the squares of a column must lie: the range of doubles, less a factor of a thousand."""
MOST_WEIGHT = 2.0**53
"""Largest sum of the weights, in rows. Beyond it doubles cannot count."""
HEAD = 64
"""Rows that suffice to show for most columns that their squares do not vanish; other columns are checked as a whole."""
LEAST_WEIGHT = 1e-12
"""Least weight of a class, as a share of all and in rows. With less its log-odds beforehand exceed 27."""


def validate_data(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """scikit-learn's checks, and no masked values; for a fit also the sizes of the numbers."""
    refuse_mask(X, "X")
    refuse_mask(y, "y")
    if options.get("reset", True) and is_plain(X, y, **options):
        name_features(estimator, X.shape[1], None)
        return X, y
    checked = validation.validate_data(estimator, X, y, **options)
    if isinstance(checked, tuple):
        refuse_extremes(checked[0], "X")
        if np.asarray(checked[1]).dtype.kind == "f":
            refuse_extremes(np.asarray(checked[1]), "y")
    return checked


def is_plain(
    X: Any, y: Any, *, dtype: Any, multi_output: bool = False, ensure_min_samples: int = 1, **others: Any
) -> bool:
    """Whether scikit-learn would take rows and targets just as they are, and none is extreme.

    Its checks take longer than some fits do.
    """
    types = dtype if isinstance(dtype, tuple) else (dtype,)
    if type(X) is not np.ndarray or X.ndim != 2 or X.dtype not in types or X.shape[0] < ensure_min_samples:
        return False
    if not X.shape[1] or not is_moderate(X):
        return False
    if type(y) is not np.ndarray or y.dtype.kind not in "bif" or not 1 <= y.ndim <= 1 + multi_output:
        return False
    return len(y) == len(X) and y.size > 0 and (y.dtype.kind != "f" or is_moderate(y))


def is_moderate(values: AnyArray) -> bool:
    """A quick check that all floats are finite and none is refused by `refuse_extremes`; False if it cannot decide."""
    flat = values.ravel(order="K")
    with np.errstate(over="ignore", invalid="ignore"):
        total = float(flat @ flat)
    size = np.abs(values[:HEAD]).max(axis=0)
    return total <= LARGEST / len(values) and bool((size >= np.sqrt(SMALLEST)).all())


def name_features(model: Any, n_features: int, names: Any) -> None:
    """Set what `validate_data` sets where there are rows."""
    model.n_features_in_ = n_features
    vars(model).pop("feature_names_in_", None)
    if names is None:
        return
    known = [str(name) for name in names]
    if len(known) != n_features:
        raise ValueError(f"feature_names has {len(known)} names, but there are {n_features} features")
    model.feature_names_in_ = np.array(known, dtype=object)


def refuse_mask(values: Any, name: str) -> None:
    """Refuse masked values, which scikit-learn would take for the numbers behind the mask."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        n = int(np.ma.count_masked(values))
        raise ValueError(
            f"{name} is a masked array with {n} masked value{'s' * (n != 1)}, which is not supported: "
            "remove these rows, or fill the values in"
        )


def refuse_extremes(values: Any, name: str) -> None:
    """Refuse numbers whose squares overflow or vanish, by column; of a sparse matrix altogether."""
    values = values.tocsr().data if issparse(values) else values
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f" or not values.size:
        return
    size = np.maximum(values.max(axis=0), -values.min(axis=0)).astype(np.float64)
    large = size > np.sqrt(LARGEST / len(values))
    small = (size > 0) & (size < np.sqrt(SMALLEST))
    wrong = np.atleast_1d(large | small)
    if wrong.any():
        j = int(np.flatnonzero(wrong)[0])
        where = f"column {j} of {name} has" if values.ndim > 1 else f"{name} has"
        squares = "overflow" if np.atleast_1d(large)[j] else "vanish"
        raise ValueError(
            f"{where} values up to {np.atleast_1d(size)[j]:.3g} in size, whose squares {squares}: use another unit"
        )


def checked_weight(sample_weight: Any, X: Any) -> FloatArray:
    """A weight for each row: those given, once they have been checked, or ones."""
    if sample_weight is None:
        return np.ones(X.shape[0])
    refuse_mask(sample_weight, "sample_weight")
    weight = np.asarray(validation._check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True))
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if not total:  # scikit-learn says so from version 1.9 on
        raise ValueError("sample_weight is zero for all rows: give weight to some of them")
    if total > MOST_WEIGHT:
        raise ValueError(
            f"sample_weight adds up to {total:.3g} rows; at most {MOST_WEIGHT:.3g} can be counted: divide the weights"
        )
    return weight


def check_total(weight: FloatArray, fit_intercept: bool) -> None:
    """Refuse weights that add up to no more than the row that the intercept takes, but for rounding."""
    total = float(weight.sum())
    if total <= fit_intercept * (1 + 1e-9):
        raise ValueError(f"sample_weight adds up to {total:g} rows: give more weight to the rows")


def check_class_weights(codes: AnyArray, weight: FloatArray, classes: AnyArray) -> None:
    """Refuse a class without weight: its probability could be anything."""
    share = np.bincount(codes, weights=weight, minlength=len(classes))
    total = float(share.sum())
    k = int(share.argmin())
    if not share[k]:
        raise ValueError(
            f"class '{classes[k]}' has no row with a positive weight (sample_weight, class_weight): remove its rows, "
            "or give them weight"
        )
    if share[k] < LEAST_WEIGHT * max(total, 1.0):
        raise ValueError(
            f"the rows of class '{classes[k]}' have a weight of {share[k]:.3g} in {total:.3g}; at least "
            f"{LEAST_WEIGHT:g} is needed: give them more weight, or remove them"
        )
