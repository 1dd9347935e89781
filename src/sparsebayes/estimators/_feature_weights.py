"""What models with feature weights share: their parameters, standard units for the inputs, and the way back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, Generic, TypeVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sparsebayes.core.prices import false_discovery_price
from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.core.weighted import POWER, WEIGHTED, FeatureKernel, weighted_kernel
from sparsebayes.engine.drvm import RegressionBlock
from sparsebayes.engine.least_squares import Solution
from sparsebayes.engine.loop import Settings, Trace
from sparsebayes.engine.theta import (
    Beginning,
    Weighed,
    Weigher,
    best_weights,
    first_weights,
    random_weights,
    weights_alone,
)
from sparsebayes.engine.width import Fit
from sparsebayes.estimators._base import counted, wanted
from sparsebayes.estimators._kernel import KERNEL_CONSTRAINTS, KernelFit

Model = TypeVar("Model")

WEIGHT_CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": [StrOptions(set(WEIGHTED))],
    "degree": KERNEL_CONSTRAINTS["degree"],
    "coef0": KERNEL_CONSTRAINTS["coef0"],
    "candidates": KERNEL_CONSTRAINTS["candidates"],
    "min_gain": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
    "init": [StrOptions({"auto"}), "array-like", Interval(Real, 0, None, closed="neither")],
    "n_restarts": [Interval(Integral, 1, None, closed="left")],
    "random_state": ["random_state"],
}
TURN = 50
"""A turn of climb and search that brings less than so many times `tol` ends a start; the best is then settled."""


@dataclass(frozen=True)
class WeightedFit(KernelFit):
    """The posterior of the kept kernel weights, and the weights of the inputs."""

    feature_weights: FloatArray = field(default_factory=lambda: np.empty(0))
    feature_relevance: FloatArray = field(default_factory=lambda: np.empty(0))
    scores: FloatArray = field(default_factory=lambda: np.empty(0))
    """Of all starts."""


class FeatureWeightsMixin:
    """The face of a model with feature weights."""

    @property
    def _weighs(self) -> bool:
        """Whether the inputs have weights."""
        return True

    def _store_weights(self, fits: Sequence[KernelFit], *, single: bool) -> None:
        """Fitted attributes: plain for a single fit, else with one row per output or class."""
        weighed = [fit for fit in fits if isinstance(fit, WeightedFit)]
        if weighed:
            take = 0 if single else slice(None)
            self.feature_weights_ = np.array([fit.feature_weights for fit in weighed])[take]
            self.feature_relevance_ = np.array([fit.feature_relevance for fit in weighed])[take]
            self.restart_scores_ = np.array([fit.scores for fit in weighed])[take]

    @available_if(lambda self: self._weighs)
    def get_support(self, indices: bool = False) -> BoolArray | IntArray:
        """Which features have a weight, as a mask or as indices; with several outputs or classes, for any of them.

        Parameters
        ----------
        indices : bool, default=False
            Whether to return indices rather than a mask.
        """
        check_is_fitted(self)
        mask = np.asarray((np.atleast_2d(self.feature_weights_) > 0).any(axis=0))
        return np.flatnonzero(mask) if indices else mask


@dataclass(frozen=True)
class Inputs:
    """Inputs in standard units, and how they came there."""

    X: FloatArray
    y: FloatArray
    weight: FloatArray
    Z: FloatArray
    centres: IntArray
    """Which of the given centres those in Z are."""
    centre: FloatArray
    unit: FloatArray

    @classmethod
    def of(cls, X: FloatArray, y: FloatArray, weight: FloatArray, Z: FloatArray, labels: FloatArray) -> "Inputs":
        """Rows and centres with inputs of mean zero and variance one; a constant input is all zero.

        Equal rows become one and all are sorted: then it makes no difference, not even by rounding, in which order rows
        came, or whether they were repeated or weighted. The way to a maximum among many must not depend on that.
        `labels` tell equal centres apart.
        """
        table, place = np.unique(np.column_stack([X, y]), axis=0, return_inverse=True)
        weight, X, y = np.asarray(np.bincount(place.ravel(), weight), np.float64), table[:, :-1], table[:, -1]
        centres = np.lexsort(np.column_stack([Z, labels]).T[::-1])
        Z = Z[centres]
        total = weight.sum()
        centre = weight @ X / total
        unit = np.sqrt(weight @ (X - centre) ** 2 / total)
        unit[unit <= 8 * np.finfo(np.float64).eps * np.abs(X).max(axis=0, initial=0.0)] = np.inf
        return cls((X - centre) / unit, y, weight, (Z - centre) / unit, centres, centre, unit)

    @property
    def n_varied(self) -> int:
        """Inputs that are not constant: others can neither be chosen nor share a start."""
        return int(np.isfinite(self.unit).sum())


@dataclass(frozen=True)
class Weighing(Generic[Model]):
    """Where the search for feature weights has ended."""

    kernel: FeatureKernel
    best: Weighed[Model]
    scores: FloatArray
    weights: FloatArray
    relevance: FloatArray
    trace: Trace
    inputs: Inputs

    @classmethod
    def of(
        cls,
        model: Any,
        inputs: Inputs,
        best: Weighed[Model],
        relevance: Callable[[Weighed[Model]], FloatArray],
        scores: FloatArray,
        trace: Trace,
    ) -> "Weighing[Model]":
        """The same in the data's units; where no vector is left, no feature has a say."""
        n_features = inputs.X.shape[1]
        if not len(best.fit.active):
            best = replace(best, theta=np.zeros(n_features))
        columns = np.flatnonzero(best.theta)
        theta = best.theta[columns] / inputs.unit[columns] ** POWER[model.kernel]
        weights, known = np.zeros(n_features), np.zeros(n_features)
        weights[columns] = theta
        if len(columns):
            known[columns] = relevance(best)
        kernel = FeatureKernel(model.kernel, columns, theta, inputs.centre[columns], model.degree, model.coef0)
        return cls(kernel, best, scores, weights, known, trace, inputs)

    @property
    def fit(self) -> Fit[Model]:
        """The model on the kernel columns, by the numbers of the given centres."""
        return replace(self.best.fit, active=self.inputs.centres[self.best.fit.active])

    def annotated(self, fit: KernelFit) -> WeightedFit:
        """A fit on the columns with all that is known of the inputs, none of which has a say where no vector has."""
        has_say = len(fit.active) > 0
        weights, relevance = self.weights * has_say, self.relevance * has_say
        return WeightedFit(**vars(fit), feature_weights=weights, feature_relevance=relevance, scores=self.scores)


def weigher_of(model: Any, inputs: Inputs, block: RegressionBlock, settings: Settings) -> Weigher[Solution]:
    """What weighs inputs by the model's parameters."""
    if model.kernel not in WEIGHTED:
        raise ValueError(f"feature weights need one of the kernels {sorted(WEIGHTED)}, not kernel={model.kernel!r}")
    price = false_discovery_price(inputs.n_varied) if model.min_gain == "auto" else float(model.min_gain)
    kernel = weighted_kernel(model.kernel, degree=model.degree, coef0=model.coef0)
    tol, callback = TURN * settings.tol, settings.callback
    return Weigher(kernel, inputs.X, inputs.Z, block, price, block.template.n, tol, callback)


def weighed_inputs(
    model: Any,
    inputs: Inputs,
    block: RegressionBlock,
    weigher: Weigher[Solution],
    trace: Trace,
    beginning: Beginning[Solution] | None = None,
) -> tuple[Weighed[Solution], FloatArray]:
    """Feature weights that a regression speaks for, and the scores of all starts (nan: not made).

    Where the user gives a start, or features have no price, none is weighed alone.
    """
    share = np.zeros(inputs.X.shape[1])
    if isinstance(model.init, str) and weigher.price > 0:
        target = block.t / np.sqrt(block.weight)
        share = weights_alone(inputs.X, target, block.weight, weigher.n, weigher.price)
    starts = _starts(model, inputs)
    wanted_starts = wanted(counted(starts, len(starts), "start"))
    first = weigher if beginning is None else beginning
    best, scores = best_weights(weigher, share, wanted_starts, trace, first, model.tol)
    return best, np.append(scores, np.full(len(starts) - len(scores), np.nan))


def _starts(model: Any, inputs: Inputs) -> list[FloatArray]:
    """First feature weights in standard units: what `init` says, then several sizes, then as the dice fall."""
    starts = [] if isinstance(model.init, str) else [_given(model, inputs)]
    n_more = model.n_restarts - len(starts)
    equal = np.full(inputs.n_varied, 1 / max(inputs.n_varied, 1))
    more = first_weights(equal)[: max(n_more, 0)]
    more += random_weights(inputs.n_varied, n_more - len(more), check_random_state(model.random_state))
    for weights in more:
        starts.append(np.zeros(inputs.X.shape[1]))
        starts[-1][np.isfinite(inputs.unit)] = weights
    return starts


def _given(model: Any, inputs: Inputs) -> FloatArray:
    """The weights that `init` holds, in standard units."""
    n_features = inputs.X.shape[1]
    given = np.asarray(model.init, dtype=np.float64)
    given = np.full(n_features, float(given)) if given.ndim == 0 else given
    if given.shape != (n_features,) or not (np.isfinite(given) & (given >= 0)).all() or not given.any():
        raise ValueError(
            f"The 'init' parameter must hold a finite weight >= 0 for each of the {n_features} features of X, and not "
            f"only zeros; got {model.init!r}"
        )
    unit = np.where(np.isinf(inputs.unit), 0.0, inputs.unit)
    return np.asarray(given * unit ** POWER[model.kernel])
