"""The features or vectors that a fitted model keeps or claims, output by output, for all tables and figures."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from sparsebayes.core.credible import CLAIMED, CredibleSet
from sparsebayes.core.predictive import central_interval
from sparsebayes.core.prices import Marginal, PerUnit
from sparsebayes.core.types import AnyArray, FloatArray, IntArray
from sparsebayes.core.weighted_kernels import WEIGHTED
from sparsebayes.estimators._averaged import AveragedFit
from sparsebayes.estimators._joint import JointFit
from sparsebayes.estimators._kernel import KernelFit
from sparsebayes.estimators._linear import LinearFit

NEAR = 0.5
"""Share of the price from which on a dropped feature is a near miss."""
LIKELY = 0.5
"""Inclusion probability from which on a feature that is not claimed is called likely."""
SIZE_COVERAGE = 0.9
"""Probability of the range in which the number of features is given."""


@dataclass(frozen=True)
class Choice:
    """How sure an averaged model is of its features, for one output or class."""

    probability: FloatArray
    """Inclusion probability of every feature."""
    weight: FloatArray
    """Averaged weight of every feature."""
    std: FloatArray
    ends: Callable[[float], FloatArray]
    """Posterior intervals of all weights for a given coverage."""
    sets: list[CredibleSet]
    sizes: FloatArray
    """Probability of 0, 1, … features."""

    def claimed(self) -> IntArray:
        """Features with a probability of at least 0.9, in their own order."""
        return np.flatnonzero(self.probability >= CLAIMED)

    def likely(self) -> IntArray:
        """Features with a probability of at least 0.5 that are not claimed, the most probable first."""
        found = np.flatnonzero((self.probability >= LIKELY) & (self.probability < CLAIMED))
        return found[np.argsort(-self.probability[found], kind="stable")]

    def several(self) -> list[CredibleSet]:
        """Credible sets of more than one feature: the data do not say which of them matters."""
        return [found for found in self.sets if len(found.features) > 1]

    def stand_ins(self, feature: int) -> list[int]:
        """The other features of the credible set that contains this one."""
        mine = [found.features.tolist() for found in self.sets if feature in found.features]
        return [j for j in mine[0] if j != feature] if mine else []

    def n_features(self) -> tuple[int, int, int]:
        """Number of features in the model: lower end of the central 90 % range, median, upper end."""
        cumulative = np.cumsum(self.sizes) / self.sizes.sum()
        levels = (1 - SIZE_COVERAGE) / 2, 0.5, (1 + SIZE_COVERAGE) / 2
        low, median, high = (int(np.searchsorted(cumulative, level)) for level in levels)
        return low, median, min(high, len(self.sizes) - 1)


@dataclass(frozen=True)
class Kept:
    """The kept features or relevance vectors of one output (of one class, where there are several fits).

    Of a model that is averaged over models these are the features that it claims, and `choice` has the others too.
    """

    output: str
    """Which output or class; empty where there is one only."""
    what: str
    """"feature" or "vector"."""
    index: IntArray
    weight: FloatArray
    std: FloatArray
    """Posterior standard deviations; nan where the model has none."""
    freedom: float
    gain: FloatArray
    """Nats that every feature brings or would bring; empty where the model has no price."""
    asked: float
    """Nats asked of one feature more than are kept."""
    power: int = 1
    """The weight is one per unit of the feature to this power: θ of a kernel of squared distances is one per square."""
    choice: Choice | None = None
    """Inclusion probabilities and credible sets; None for a single model."""

    def interval(self, coverage: float) -> FloatArray:
        """Central posterior intervals of the kept weights, lower and upper end on the last axis."""
        if self.choice is not None:
            return self.choice.ends(coverage)[self.index]
        return central_interval(self.weight, self.std, coverage, self.freedom)

    def order(self) -> IntArray:
        """Places of the kept features, the most important first: by probability or evidence if known, else by size."""
        if self.choice is not None:
            # Many probabilities are 1 to all digits. Among those the weight decides, in its standard deviations.
            sigma = np.where(self.std > 0, self.std, 1.0)
            return np.lexsort((-np.abs(self.weight) / sigma, -self.choice.probability[self.index]))
        size = self.gain[self.index] if len(self.gain) else np.abs(self.weight)
        return np.argsort(-size, kind="stable")

    def of(self, features: IntArray) -> "Kept":
        """The same output with other features of an averaged model in place of the claimed ones."""
        assert self.choice is not None
        return replace(self, index=features, weight=self.choice.weight[features], std=self.choice.std[features])

    def near_misses(self) -> IntArray:
        """Dropped features that would bring at least half of the price, the nearest first."""
        if not len(self.gain) or self.asked <= 0:
            return np.empty(0, dtype=np.intp)
        dropped = np.setdiff1d(np.arange(len(self.gain)), self.index)
        near = dropped[self.gain[dropped] >= NEAR * self.asked]
        return near[np.argsort(-self.gain[near], kind="stable")]


def kept(model: Any) -> list[Kept]:
    """What a fitted estimator of the register keeps or claims, one entry for each output or class that was fitted.

    Models with weights of the inputs inside their kernel are described by these weights.
    """
    weights = getattr(model, "feature_weights_", None)
    if weights is not None:
        rows = np.atleast_2d(weights)
        power = WEIGHTED[getattr(model, "kernel", "rbf")].power
        names = _names(model, len(rows))
        return [_of_feature_weights(row, name, power) for row, name in zip(rows, names, strict=True)]
    joint = getattr(model, "_joint", None)
    if joint is not None:
        vectors = getattr(model, "relevance_indices_", None)
        return [_of_class(joint, k, name, vectors) for k, name in enumerate(_names(model, len(model.classes_)))]
    if not hasattr(model, "_fits"):
        raise TypeError(f"{type(model).__name__} is not a fitted estimator of sparsebayes")
    names = _names(model, len(model._fits))
    if hasattr(model, "credible_sets_"):
        nested = isinstance(next(iter(model.credible_sets_), None), list)
        sets = model.credible_sets_ if nested else [model.credible_sets_]
        return [_of_average(*each) for each in zip(model._fits, names, sets, strict=True)]
    return [_of_fit(fit, name) for fit, name in zip(model._fits, names, strict=True)]


def _names(model: Any, n: int) -> list[str]:
    """What the outputs are called."""
    if n == 1:
        return [""]
    return [str(label) for label in model.classes_] if hasattr(model, "classes_") else [f"output {k}" for k in range(n)]


def _of_feature_weights(theta: FloatArray, name: str, power: int) -> Kept:
    index = np.flatnonzero(theta)
    return Kept(name, "feature", index, theta[index], np.full(len(index), np.nan), np.inf, np.empty(0), 0.0, power)


def _of_class(joint: JointFit, k: int, name: str, vectors: list[IntArray] | None) -> Kept:
    """One class of a softmax model, whose covariance is that of all classes' weights together."""
    design = joint.fit.posterior.design
    here = (design.classes == k) & (design.features < joint.n_features)
    index = design.features[here]
    std = np.sqrt(np.diag(joint.covariance)[here])
    called = index if vectors is None else vectors[k]
    what = "feature" if vectors is None else "vector"
    return Kept(name, what, called, joint.coef[k, index], std, np.inf, np.empty(0), 0.0)


def _of_fit(fit: LinearFit, name: str) -> Kept:
    n = len(fit.active)
    root = fit.root[:, :n]
    variance = fit.diagonal[:n] + fit.sign * np.einsum("ij,ij->j", root, root)
    std = np.sqrt(np.maximum(variance, 0.0))
    if isinstance(fit, KernelFit):
        return Kept(name, "vector", fit.indices, fit.coef, std, fit.freedom, np.empty(0), 0.0)
    gain = fit.worth if fit.min_gain > 0 or fit.worth.any() else np.empty(0)
    return Kept(name, "feature", fit.active, fit.coef, std, fit.freedom, gain, _asked(fit))


def _of_average(fit: AveragedFit, name: str, sets: list[CredibleSet]) -> Kept:
    n_features = len(fit.probability)
    weight = np.zeros(n_features)
    weight[fit.active] = fit.coef
    ends = partial(fit.weight_interval, n_features=n_features)
    choice = Choice(fit.probability, weight, fit.std, ends, sets, fit.sizes)
    nothing = np.empty(0)
    whole = Kept(name, "feature", np.empty(0, dtype=np.intp), nothing, nothing, fit.freedom, nothing, 0.0, 1, choice)
    return whole.of(choice.claimed())


def _asked(fit: LinearFit) -> float:
    """The price of one feature more; n, the rows that a learned noise has in its price, is infinite for a known one."""
    price = PerUnit(fit.min_gain, rows=fit.freedom + float(fit.gamma.sum()))
    marginal = Marginal.at(price, range(len(fit.columns)))
    return marginal.out_offset + marginal.out_factor * fit.min_gain


def feature_names(model: Any) -> AnyArray:
    """Names of the inputs: those of the frame it was fitted to, or x0, x1, … as in scikit-learn."""
    given = getattr(model, "feature_names_in_", None)
    return np.array([f"x{j}" for j in range(model.n_features_in_)], dtype=object) if given is None else given
