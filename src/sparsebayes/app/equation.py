"""The equation of a linear model in the units of the table."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from sparsebayes.app.study import Study
from sparsebayes.app.words import name, number
from sparsebayes.core.types import FloatArray

MOST = 12
"""Terms that a text shows, the largest effects first; the others are counted."""


@dataclass(frozen=True)
class Equation:
    """One prediction: intercept + Σ weight × feature."""

    left: str
    """What is predicted: the target, the log of an expected count, or the log-odds of a class.

    Probabilities are averages over the weights; their log-odds are nearer to zero than those at the mean weights.
    """
    intercept: float
    names: list[str]
    """Features with a weight, the largest effect of a standard deviation first."""
    weights: FloatArray

    def text(self, digits: int = 4) -> str:
        """The equation on one line."""
        terms = [
            f"{number(weight, digits, sign=True)} × {name(each, 40)}"
            for each, weight in zip(self.names[:MOST], self.weights, strict=False)
        ]
        signed = "".join(f" {term[0]} {term[1:]}" for term in terms)
        more = f" + {len(self.names) - MOST} smaller terms" if len(self.names) > MOST else ""
        return f"{self.left} = {number(self.intercept, digits)}{signed}{more}"


def equations_of(study: Study, spread: FloatArray) -> list[Equation]:
    """The equations of a linear model, one for each set of weights; none for other models.

    `spread` are the standard deviations of the model's inputs, which order the terms.
    """
    pipeline = study.pipeline
    model = pipeline[-1] if isinstance(pipeline, Pipeline) else pipeline
    if not hasattr(model, "coef_") or hasattr(model, "relevance_indices_"):
        return []
    mean, scale = _units(pipeline, model.n_features_in_)
    if len(study.features) != model.n_features_in_:
        return []
    weights = np.atleast_2d(model.coef_)
    intercepts = np.atleast_1d(model.intercept_).astype(np.float64) - (weights * (mean / scale)).sum(axis=1)
    found = []
    for k, (row, intercept) in enumerate(zip(weights, intercepts, strict=True)):
        order = [int(j) for j in np.argsort(-np.abs(row * spread), kind="stable") if row[j]]
        names = [study.features[j] for j in order]
        found.append(Equation(_left(study, model, k, len(weights)), float(intercept), names, (row / scale)[order]))
    return found


def _left(study: Study, model: Any, k: int, n: int) -> str:
    if not study.classes:
        is_count = hasattr(model, "dispersion_")  # the weights are those of a log rate
        return f"log of the expected {name(study.target, 40)}" if is_count else name(study.target, 40)
    label = study.classes[1] if n == 1 else study.classes[k]
    return f"log-odds of {name(label, 40)} (at the mean weights)"


def _units(pipeline: Any, n: int) -> tuple[FloatArray, FloatArray]:
    """Mean and scale by which a step before the model has standardised."""
    steps = [step for _, step in pipeline.steps] if isinstance(pipeline, Pipeline) else []
    scaler = next((step for step in steps if isinstance(step, StandardScaler)), None)
    return (np.zeros(n), np.ones(n)) if scaler is None else (scaler.mean_, scaler.scale_)
