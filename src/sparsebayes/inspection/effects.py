"""Weights of the kept or claimed features in units that can be compared, for displays, command line and report."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.estimators import Kept


@dataclass(frozen=True)
class Effects:
    """The kept or claimed features (or relevance vectors) of one output or class, most important first."""

    index: IntArray
    """Columns of the kept features, or rows of the relevance vectors."""
    weight: FloatArray
    lower: FloatArray
    """Lower ends of the posterior intervals; nan if the model has none."""
    upper: FloatArray
    gain: FloatArray
    """Nats of evidence that each feature adds; empty if the model does not compute them."""
    probability: FloatArray
    """Inclusion probability of each feature; empty for a single model."""
    per_sd: bool
    """True if weights are effects of one standard deviation, False if they are per unit of the feature."""


def effects_of(part: Kept, spread: FloatArray | None, coverage: float = 0.95) -> Effects:
    """Scale the weights of one output by the standard deviations of the features, and sort them.

    Parameters
    ----------
    part : Kept
        One output or class of a fitted model.
    spread : ndarray of shape (n_features,) or None
        Standard deviations of the model's inputs. With them, effects are comparable and sorted by size. Without
        them, weights are per unit of the feature and sorted by probability or evidence. Weights of relevance vectors
        are not scaled.
    coverage : float, default=0.95
        Posterior probability of the intervals.
    """
    if part.what == "feature" and spread is not None:
        per_sd, scale = True, spread[part.index] ** part.power
    else:
        per_sd, scale = False, np.ones(len(part.index))
    weight, interval = part.weight * scale, part.interval(coverage) * scale[:, None]
    order = np.argsort(-np.abs(weight), kind="stable") if per_sd else part.order()
    index = part.index[order]
    gain = part.gain[index] if len(part.gain) else np.empty(0)
    probability = np.empty(0) if part.choice is None else part.choice.probability[index]
    return Effects(index, weight[order], interval[order, 0], interval[order, 1], gain, probability, per_sd)


def weight_label(model: Any, per_sd: bool) -> str:
    """The unit of a model's weights, as an axis label."""
    if getattr(model, "feature_weights_", None) is not None:
        return "weight in the kernel, " + (
            "for inputs of standard deviation one" if per_sd else "per unit of the input"
        )
    if hasattr(model, "dual_coef_"):
        label = "weight of the kernel function"
    else:
        label = "effect of one standard deviation of the feature" if per_sd else "weight per unit of the feature"
    if is_classifier(model):
        return f"{label} on the log-odds"
    return f"{label} on the log rate" if hasattr(model, "dispersion_") else label
