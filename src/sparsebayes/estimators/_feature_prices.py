"""The parameter `min_gain` of the linear estimators: one price for all features, or one for each."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from sparsebayes.core.types import FloatArray

MIN_GAIN = [StrOptions({"auto"}), Interval(Real, 0, None, closed="left"), "array-like", dict]
"""What `min_gain` may be."""


def feature_prices(model: Any, auto: float) -> FloatArray | float:
    """Nats asked of each feature, or of all: those of `model.min_gain`, or `auto` where it sets none."""
    min_gain, n_features = model.min_gain, model.n_features_in_
    if isinstance(min_gain, str):
        return auto
    if isinstance(min_gain, Real):
        return float(min_gain)
    if isinstance(min_gain, Mapping):
        return _by_name(min_gain, model, auto)
    nats = _numbers(min_gain)
    if nats.shape != (n_features,):
        raise ValueError(f"min_gain has shape {nats.shape}, but X has {n_features} features: give one number for each")
    _check(nats)
    return nats


def _by_name(min_gain: Mapping[Any, Any], model: Any, auto: float) -> FloatArray:
    names = getattr(model, "feature_names_in_", None)
    places = {name: j for j, name in enumerate(range(model.n_features_in_) if names is None else names)}
    unknown = [name for name in min_gain if name not in places]
    if unknown:
        known = "X has no feature names: use column numbers" if names is None else "use the names of X's columns"
        raise ValueError(f"min_gain has a price for {unknown[0]!r}, which is not a feature of X; {known}")
    nats = np.full(len(places), auto)
    given = {
        places[name]: price for name, price in min_gain.items() if not (isinstance(price, str) and price == "auto")
    }
    nats[[*given]] = _numbers([*given.values()])
    _check(nats)
    return nats


def _numbers(prices: Any) -> FloatArray:
    try:
        return np.asarray(prices, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"min_gain must be a number for every feature: {error}") from None


def _check(nats: FloatArray) -> None:
    if not (nats >= 0).all():  # also catches nan
        raise ValueError(f"min_gain must be zero or positive for every feature; one of them is {nats.min():g}")
