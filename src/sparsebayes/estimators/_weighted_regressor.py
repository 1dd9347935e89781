"""Regression on kernel columns with a weight for every input: everything but which model is weighed."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from sparsebayes.engine.alternating import Alternation
from sparsebayes.engine.drvm import RegressionBlock, feature_relevance, start_on
from sparsebayes.engine.least_squares import Solution
from sparsebayes.engine.loop import Trace
from sparsebayes.engine.theta import LEAST
from sparsebayes.estimators._feature_weights import (
    FeatureWeightsMixin,
    Inputs,
    Weighing,
    WeightedFit,
    weighed_inputs,
    weigher_of,
)
from sparsebayes.estimators._kernel import Dictionary, KernelFit
from sparsebayes.estimators._kernel_regressor import KernelRegressor, Target


class WeightedRegressor(FeatureWeightsMixin, KernelRegressor):
    """A kernel regressor whose inputs can have weights, by the evidence of the relevance vector machine.

    Subclasses say which model is then looked for on the weighted kernel (`_found`).
    """

    kernel: str
    min_gain: str | float
    init: Any
    n_restarts: int

    @property
    def _remedy(self) -> str:
        return "raise min_gain or choose fewer candidates" if self._weighs else super()._remedy

    @property
    def _in_batch(self) -> bool:
        """Whether each start begins with the batch alternation."""
        return False

    def _fit_output(self, book: Dictionary, target: Target, start: Solution | None) -> KernelFit:
        if not self._weighs:
            return super()._fit_output(book, target, start)
        if target.constant:
            nothing = np.zeros(book.X.shape[1])
            constant = super()._fit_output(book, target, start)
            none = np.full(self.n_restarts, np.nan)
            return WeightedFit(**vars(constant), feature_weights=nothing, feature_relevance=nothing, scores=none)
        assert book.centres is not None
        settings, weight = self._settings(), target.weight
        inputs = Inputs.of(book.X, target.y, weight, book.centres, np.zeros(len(book.centres)))
        merged = self._target(inputs.y, inputs.weight, target.flat)
        block = RegressionBlock(merged.t, merged.weight, merged.flat, settings)
        trace, weigher = Trace(), weigher_of(self, inputs, block, settings)
        beginning = Alternation(block, weigher, trace) if self._in_batch else None
        best, scores = weighed_inputs(self, inputs, block, weigher, trace, beginning)
        weighing = Weighing.of(self, inputs, best, partial(feature_relevance, block, weigher), scores, trace)
        book = book.at(weighing.kernel)
        book = replace(book, rows=self._rows(book, weight, target.flat))
        problem = target.problem(book.rows, LEAST)
        found = self._found(problem, target, book, start_on(problem, weighing.fit))
        found.result.trace.infos[:0] = weighing.trace.infos
        return weighing.annotated(self._in_user_units(book, target, found))

    def _store(self, fits: list[KernelFit], gamma: float | None, *, single: bool) -> None:
        super()._store(fits, None if self._weighs else gamma, single=single)
        self._store_weights(fits, single=single)
