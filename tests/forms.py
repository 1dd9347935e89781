"""The two forms of the models that can average: an average over models, and the best single one."""

from numbers import Real

from sklearn.base import BaseEstimator

SHORT_CHAINS = {"n_chains": 2, "max_flips": 300}
"""Enough for the features of small data with clear signals, in a tenth of the time of the defaults."""


def can_average(cls: type[BaseEstimator]) -> bool:
    """Whether a class has the averaged form."""
    return "average" in cls._parameter_constraints


def averages(model: BaseEstimator) -> bool:
    """Whether an estimator with these parameters averages small data over models."""
    params = model.get_params()
    if params.get("average", False) == "auto":
        needed = {"noise": "gaussian", "intercept_prior": "flat", "inference": "laplace", "prior": "ard"}
        usual = all(params.get(key, value) == value for key, value in needed.items())
        usual = usual and params.get("multi_class") != "softmax"
        return usual and not isinstance(params["min_gain"], Real)
    return bool(params.get("average", False))
