"""The two forms of the models that can average: an average over models, and the best single one."""

from numbers import Real

import numpy as np
from sklearn.base import BaseEstimator

from sparsebayes import ARDRegressor, SparseLogisticRegression, SparsePoissonRegressor

SHORT_CHAINS = {"n_chains": 2, "max_flips": 300}
"""Enough for the features of small data with clear signals, in a tenth of the time of the defaults."""


def can_average(cls: type[BaseEstimator]) -> bool:
    """Whether a class has the averaged form."""
    return "average" in cls._parameter_constraints


def averages(model: BaseEstimator) -> bool:
    """Whether an estimator with these parameters averages small data over models."""
    params = model.get_params()
    if params.get("average", False) == "auto":
        needed = {"intercept_prior": "flat", "inference": "laplace", "prior": "ard"}
        usual = all(params.get(key, value) == value for key, value in needed.items())
        usual = usual and params.get("noise") != "student"
        usual = usual and params.get("multi_class") != "softmax"
        return usual and not isinstance(params["min_gain"], Real)
    return bool(params.get("average", False))


AVERAGED_ATTRIBUTES = (
    "inclusion_probability_",
    "coef_",
    "coef_std_",
    "intercept_",
    "noise_variance_",
    "n_features_posterior_",
    "chain_error_",
    "effective_sample_size_",
    "n_flips_",
)
"""What a regression averages."""


def quick_average(**parameters) -> ARDRegressor:
    """A regression with short chains."""
    return ARDRegressor(**{**SHORT_CHAINS, **parameters})


def stand_ins() -> tuple[np.ndarray, np.ndarray]:
    """Of eight features two clear ones, a doubtful one, and two that stand in for each other; and a target."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 8))
    X[:, 5] = X[:, 4] + 0.1 * rng.standard_normal(50)
    return X, 2 * X[:, 0] - X[:, 1] + 0.25 * X[:, 2] + 0.7 * X[:, 4] + rng.standard_normal(50) + 3


def target_for(cls: type[BaseEstimator], y: np.ndarray) -> np.ndarray:
    """The target as numbers, classes or counts."""
    kinds = {
        ARDRegressor: lambda: y,
        SparseLogisticRegression: lambda: y > np.median(y),
        SparsePoissonRegressor: lambda: np.rint(np.exp(y / 3)),
    }
    return kinds[cls]()
