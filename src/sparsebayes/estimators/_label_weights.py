"""Feature weights of a Gaussian process for classes: one for each feature, or one that all share."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sparsebayes.core.types import FloatArray
from sparsebayes.data.lowrank import NotLowRank
from sparsebayes.engine.process import VARIANCE_FACTORS, Signal, label_centres, label_signal, regression_signal
from sparsebayes.engine.theta_model import label_values
from sparsebayes.estimators._feature_weights import FeatureWeights, StandardInputs, ThetaResult, resize
from sparsebayes.estimators._kernel_design import KernelDesign
from sparsebayes.estimators._label_process import LabelProcess, log_probability
from sparsebayes.estimators._process import MOST_JUDGED_LABELS, ProcessDesign, folds

JUDGED_FOLDS = 3
"""Folds of the five in which weights are found anew to tell whether they are worth having. The search takes most of the
time of a fit; in a fold it has one start only."""


class Weighted(NamedTuple):
    """Feature weights, and the signal of a Gaussian process with them."""

    found: ThetaResult
    signal: Signal

    def process(self, process: ProcessDesign, flat_intercept: bool) -> LabelProcess:
        """The Gaussian process itself."""
        return LabelProcess(process, np.asarray(VARIANCE_FACTORS * self.signal.variance[0], np.float64), flat_intercept)

    def for_labels(self, inputs: StandardInputs, flat_intercept: bool) -> "Weighted":
        """The same shares of the features at the size that is best for a regression on the labels."""
        return Weighted(*resize(self.found, inputs, inputs.y - 0.5, regression_signal, flat_intercept=flat_intercept))

    def dense(self, design: KernelDesign, flat_intercept: bool) -> LabelProcess:
        """The same on a design."""
        most = label_centres(len(design.X), 1)
        process = ProcessDesign.of(design.at(self.found.kernel), float(self.signal.ratio.max()), most)
        return self.process(process, flat_intercept)


class LabelWeights(NamedTuple):
    """How feature weights of a classifier are found: parameters, and whether the intercept is flat."""

    weights: FeatureWeights
    flat: bool

    def find(self, design: KernelDesign, inputs: StandardInputs, t: FloatArray, weight: FloatArray) -> Weighted:
        """A weight for each feature, or one for all where that makes held-out labels more probable.

        With few rows for each feature the evidence finds features that only seem to matter. So in each fold both are
        found anew. A start or a price of the user asks for a weight for each feature.
        """
        each = self._each(inputs)
        if not (isinstance(self.weights.init, str) and self.weights.min_gain == "auto"):
            return each
        common = self._common(inputs)
        gain, once = 0.0, self._replace(weights=replace(self.weights, n_restarts=1))
        for k, (train, test) in enumerate(folds(design.at(common.found.kernel), weight, MOST_JUDGED_LABELS, t)):
            if k < JUDGED_FOLDS and len(np.unique(t[train])) == 2:
                gains = once._gains(design.subset(train, weight), t[train], weight[train], design.X[test], t[test])
                gain += float(weight[test] @ gains)
        return each if gain > 0 else common

    def _gains(
        self, design: KernelDesign, t: FloatArray, weight: FloatArray, X_new: FloatArray, t_new: FloatArray
    ) -> FloatArray:
        """Log probability of each new label under a weight for each feature, above that under one for all."""
        inputs = StandardInputs.of(design.X, t, weight, design.X)
        each, common = self._each(inputs), self._common(inputs)
        if not len(each.found.kernel.columns):
            return np.full(len(t_new), -np.inf)
        try:
            fits = [rival.dense(design, self.flat).fit(t, weight) for rival in (each, common)]
        except NotLowRank:  # rows so far out that their distances have no digits left: the fold has no say
            return np.zeros(len(t_new))
        return np.subtract(*(log_probability(fit, X_new, t_new) for fit in fits))

    def _each(self, inputs: StandardInputs) -> Weighted:
        return self._resized(self.weights.find_for_labels(inputs, self._values(inputs), self.flat), inputs)

    def _common(self, inputs: StandardInputs) -> Weighted:
        return self._resized(self.weights.find_common(inputs, self._values(inputs), self.flat), inputs)

    def _values(self, inputs: StandardInputs) -> FloatArray:
        return label_values(inputs.y, inputs.weight, self.flat)

    def _resized(self, found: ThetaResult, inputs: StandardInputs) -> Weighted:
        if not len(found.kernel.columns):
            return Weighted(found, Signal(0.0, np.zeros(1), np.zeros(1)))
        return Weighted(*resize(found, inputs, inputs.y - 0.5, label_signal, flat_intercept=self.flat))
