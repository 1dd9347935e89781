"""Draws from the posterior of a fitted model in the form that ArviZ reads."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsebayes import __version__
from sparsebayes.core.types import AnyArray
from sparsebayes.inspection.display import unwrapped

N_CHAINS = 4
"""ArviZ compares chains, and warns of a single one. Our draws are independent, so any split into chains is right."""

Variables = dict[str, tuple[tuple[str, ...], AnyArray]]


def to_datatree(
    estimator: Any, *, n_samples: int = 1000, feature_names: Sequence[str] | None = None, random_state: Any = None
) -> Any:
    """Draws from the posterior as an `xarray.DataTree` with the group `posterior`, for ArviZ.

    Linear models have the variables `coef` (dimensions `chain`, `draw`, `feature`) and `intercept`. With several
    outputs or classes both also have the dimension `output` or `class`. Kernel models have `dual_coef` with the
    dimension `vector`, labelled by the row of the training data. With several outputs or classes each has vectors of
    its own, and so a variable of its own, for example `dual_coef_setosa`.

    In draws of a model that is averaged over models, a weight is exactly zero where the feature is out. Draws are
    independent; they are split into four chains because ArviZ expects some.

    Parameters
    ----------
    estimator : fitted estimator of this library, or a pipeline that ends in one
    n_samples : int, default=1000
        Number of draws in each chain.
    feature_names : sequence of str, optional
        Names of the features, if the model was not fitted to a data frame.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Returns
    -------
    xarray.DataTree
        ArviZ 1 takes it as it is; ArviZ 0.x after `arviz.from_datatree`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sparsebayes import ARDRegressor
    >>> from sparsebayes.inspection import to_datatree
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> posterior = to_datatree(ARDRegressor().fit(X, y))["posterior"]  # doctest: +SKIP
    >>> float((posterior["coef"].sel(feature="bmi") > 0).mean())  # doctest: +SKIP
    1.0
    """
    xarray = _xarray()
    if n_samples < 1:
        raise ValueError(f"n_samples={n_samples} must be at least 1")
    model, _, names = unwrapped(estimator, None, feature_names)
    if not hasattr(model, "sample_posterior"):
        raise TypeError(f"{type(model).__name__} has no sample_posterior: pass a fitted estimator of sparsebayes")
    weights, intercept = model.sample_posterior(N_CHAINS * n_samples, random_state)
    if hasattr(model, "dual_coef_"):
        variables, coords = _of_vectors(model, weights, intercept)
    else:
        variables, coords = _of_features(model, weights, intercept, names)
    sampled = {
        name: (("chain", "draw", *dims), draws.reshape(N_CHAINS, n_samples, *draws.shape[1:]))
        for name, (dims, draws) in variables.items()
    }
    coords |= {"chain": np.arange(N_CHAINS), "draw": np.arange(n_samples)}
    origin = {"inference_library": "sparsebayes", "inference_library_version": __version__}
    dataset = xarray.Dataset(sampled, coords, attrs=origin | {"estimator": type(model).__name__})
    return xarray.DataTree.from_dict({"/posterior": dataset})


def _of_features(model: Any, coef: AnyArray, intercept: AnyArray, names: list[str]) -> tuple[Variables, dict[str, Any]]:
    """Draws of a linear model, with the dimensions after the draws."""
    if coef.ndim == 3 and coef.shape[1] == 1 and hasattr(model, "classes_"):  # two classes have one set of weights
        coef, intercept = coef[:, 0], intercept[:, 0]
    coords: dict[str, Any] = {"feature": names}
    parts: tuple[str, ...] = ()
    if coef.ndim == 3:
        dimension, labels = _labels(model, coef.shape[1])
        parts, coords[dimension] = (dimension,), labels
    return {"coef": ((*parts, "feature"), coef), "intercept": (parts, intercept)}, coords


def _of_vectors(model: Any, dual_coef: Any, intercept: Any) -> tuple[Variables, dict[str, Any]]:
    """Draws of a kernel model; each of several outputs or classes has its own vectors."""
    if not isinstance(dual_coef, list):
        coords = {"vector": model.relevance_indices_}
        return {"dual_coef": (("vector",), dual_coef), "intercept": ((), intercept)}, coords
    dimension, labels = _labels(model, len(dual_coef))
    variables: Variables = {"intercept": ((dimension,), np.stack(intercept, axis=1))}
    several: dict[str, Any] = {dimension: labels}
    for label, draws, rows in zip(labels, dual_coef, model.relevance_indices_, strict=True):
        variables[f"dual_coef_{label}"] = ((f"vector_{label}",), draws)
        several[f"vector_{label}"] = rows
    return variables, several


def _labels(model: Any, n: int) -> tuple[str, Any]:
    """Dimension of the parts of a model, and what the parts are called."""
    return ("class", model.classes_) if hasattr(model, "classes_") else ("output", np.arange(n))


def _xarray() -> Any:
    """Import xarray, or say how to install it."""
    try:
        import xarray
    except ImportError as error:
        raise ImportError(
            "to_datatree needs xarray, which is not installed: pip install 'sparsebayes[arviz]'"
        ) from error
    return xarray
