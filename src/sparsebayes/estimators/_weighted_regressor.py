"""Regression on kernel columns with a weight for every input: everything but which model is weighed."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.estimators._feature_weights import Inputs, WeightedFit, weigh_inputs
from sparsebayes.estimators._kernel import Dictionary, KernelFit
from sparsebayes.estimators._kernel_regressor import KernelRegressor, Target
from sparsebayes.solvers.alternation import Alternation
from sparsebayes.solvers.drvm import RegressionBlock, feature_relevance, start_on
from sparsebayes.solvers.feature_weights import LEAST, feature_price
from sparsebayes.solvers.problem import Solution
from sparsebayes.solvers.rvm import KernelProblem


class WeightedRegressor(KernelRegressor):
    """A kernel regressor whose inputs can have weights, by the evidence of the relevance vector machine.

    Subclasses say which model is then looked for on the weighted kernel (`_found`).
    """

    kernel: str
    min_gain: str | float
    init: Any
    n_restarts: int

    @property
    def _weighs(self) -> bool:
        """Whether the inputs have weights."""
        return True

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
            return WeightedFit(**vars(constant), feature_weights=nothing, feature_relevance=nothing)
        assert book.centres is not None
        settings, weight = self._settings(), target.weight
        inputs = Inputs.of(book.X, target.y, weight, book.centres, np.zeros(len(book.centres)))
        merged = self._target(inputs.y, inputs.weight, target.flat)

        def problem_on(K: FloatArray) -> KernelProblem:
            rows = DenseRows.of(K).standardised(merged.weight, centre=merged.flat)
            return replace(merged.problem(rows), least=LEAST)

        template = problem_on(inputs.X[:, :1])
        block = RegressionBlock(problem_on, settings, template)
        relevance = partial(feature_relevance, block)
        beginning = partial(Alternation, block) if self._in_batch else None
        price = feature_price(inputs.n_varied)
        weighing = weigh_inputs(self, inputs, block, price, template.n, settings, relevance, beginning)
        book = book.at(weighing.kernel)
        book = replace(book, rows=self._rows(book, weight, target.flat))
        problem = replace(target.problem(book.rows), least=LEAST)
        found = self._found(problem, target, book, start_on(problem, weighing.fit))
        found.result.trace.infos[:0] = weighing.trace.infos
        return weighing.annotated(self._in_user_units(book, target, found))

    def _store(self, fits: list[KernelFit], gamma: float | None, *, single: bool) -> None:
        super()._store(fits, None if self._weighs else gamma, single=single)
        weighed = [fit for fit in fits if isinstance(fit, WeightedFit)]
        if weighed:
            which = 0 if single else slice(None)
            self.feature_weights_ = np.array([fit.feature_weights for fit in weighed])[which]
            self.feature_relevance_ = np.array([fit.feature_relevance for fit in weighed])[which]
            self.restart_scores_ = self._arrays([fit.scores for fit in weighed])

    @available_if(lambda self: self._weighs)
    def get_support(self, indices: bool = False) -> BoolArray | IntArray:
        """Which features have a weight, as a mask or as indices; with several outputs, for any of them.

        Parameters
        ----------
        indices : bool, default=False
            Whether to return indices rather than a mask.
        """
        check_is_fitted(self)
        mask = np.asarray((np.atleast_2d(self.feature_weights_) > 0).any(axis=0))
        return np.flatnonzero(mask) if indices else mask
