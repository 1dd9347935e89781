"""Gaussian processes for classes, in the place of sparse models: for the log-odds, or for the labels themselves."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.predictive import quadrature
from sparsebayes.core.priors import ARD
from sparsebayes.core.types import AnyArray, FloatArray, IntArray
from sparsebayes.data.lowrank import NotLowRank
from sparsebayes.engine.kernel_regression import own_scale
from sparsebayes.engine.label_regression import LabelRegression, regression_centres
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.process import solve_labels
from sparsebayes.estimators._kernel import KernelFit
from sparsebayes.estimators._kernel_design import KernelDesign
from sparsebayes.estimators._linear import glm_fit
from sparsebayes.estimators._process import MOST_JUDGED_LABELS, ProcessDesign, folds

FoldFit = Callable[[ProcessDesign, FloatArray, FloatArray], KernelFit]
"""A sparse model of the rows of a fold, of labels 0 and 1 and with row weights."""


class Judged(NamedTuple):
    """What held-out rows say of rival models."""

    log_probability: dict[str, float]
    """Of their labels, under each rival that was judged."""
    variances: list[float]
    """Prior variances of the log-odds that were best in each fold, for each class that was tried."""

    @property
    def best(self) -> str:
        """The rival under which held-out labels are most probable; of equals the first."""
        return max(self.log_probability, key=self.log_probability.__getitem__)


@dataclass(frozen=True)
class LabelProcess:
    """A Gaussian process for the log-odds of a class."""

    process: ProcessDesign
    variances: FloatArray
    """Prior variances of the log-odds that are tried, in this order."""
    flat_intercept: bool

    def fit(self, t: FloatArray, weight: FloatArray) -> KernelFit:
        """The model of labels 0 and 1."""
        columns = own_scale(self.process.columns, weight, self.flat_intercept).unweighted()
        problem = Problem(
            design=columns,
            t=t,
            weight=weight,
            likelihood=Bernoulli(),
            prior=ARD(),
            flat_intercept=self.flat_intercept,
        )
        result = solve_labels(problem, self.variances)
        return self.process.kernel_fit(glm_fit(problem, result, columns.n_columns), 1 / float(result.alpha[0]))


@dataclass(frozen=True)
class LabelSquares:
    """A Gaussian process for the labels, and a link that makes log-odds of it (engine/label_regression.py)."""

    process: ProcessDesign
    flat_intercept: bool

    @classmethod
    def of(cls, design: KernelDesign, ratio: float, flat_intercept: bool) -> "LabelSquares":
        """With as many centres as this number of rows asks for; raises NotLowRank as `ProcessDesign.of` does."""
        return cls(ProcessDesign.of(design, ratio, regression_centres(len(design.X))), flat_intercept)

    def subset(self, rows: IntArray, weight: FloatArray) -> "LabelSquares":
        """The same for some of the rows."""
        return LabelSquares.of(self.process.design.subset(rows, weight), self.process.ratio, self.flat_intercept)

    def fit(self, T: FloatArray, weight: FloatArray) -> list[KernelFit]:
        """The models of labels 0 and 1, one labelling in each column."""
        columns = own_scale(self.process.columns, weight, self.flat_intercept).unweighted()
        regression = LabelRegression(columns, T - 0.5, weight, self.flat_intercept)
        problem = Problem(
            design=columns,
            t=T[:, 0],
            weight=weight,
            likelihood=Bernoulli(),
            prior=ARD(),
            flat_intercept=self.flat_intercept,
        )
        results = regression.results(regression.choose())
        linear = [glm_fit(problem, result, columns.n_columns) for result in results]
        return self.process.kernel_fits(linear, 1 / float(results[0].alpha[0]))


@dataclass(frozen=True)
class Rivals:
    """Models of labels, of which held-out rows choose."""

    odds: LabelProcess
    squares: LabelSquares | None = None
    sparse: FoldFit | None = None

    def judge(self, codes: AnyArray, weight: FloatArray, classes: Sequence[int]) -> Judged:
        """How probable each makes labels of other folds, one class against the rest."""
        design, variances = self.odds.process.design, list[float]()
        total = {"sparse": 0.0} if self.sparse is not None else {}
        total |= {"odds": 0.0} | ({"squares": 0.0} if self.squares is not None else {})
        T = np.column_stack([codes == k for k in classes]).astype(np.float64)
        for train, test in folds(design, weight, MOST_JUDGED_LABELS, codes):
            try:
                part = self.odds.process.subset(train, weight)
                squares = None if self.squares is None else self.squares.subset(train, weight)
            except NotLowRank:  # rows so far out that their distances have no digits left: the fold has no say
                continue
            both = np.flatnonzero(np.ptp(T[train], axis=0))  # classes that this fold can learn
            if not len(both):
                continue
            labels, v, X = T[np.ix_(train, both)], weight[train], design.X[test]
            fits = {"odds": [replace(self.odds, process=part).fit(t, v) for t in labels.T]}
            variances += [fit.left_out.signal for fit in fits["odds"] if fit.left_out is not None]
            if squares is not None:
                fits["squares"] = squares.fit(labels, v)
            if self.sparse is not None:
                fits["sparse"] = [self.sparse(part, t, v) for t in labels.T]
            for name, each in fits.items():
                for fit, t in zip(each, T[np.ix_(test, both)].T, strict=True):
                    total[name] += float(weight[test] @ log_probability(fit, X, t))
        return Judged(total, variances)


def log_probability(fit: KernelFit, X: FloatArray, t: FloatArray) -> FloatArray:
    """Log probability of labels 0 and 1."""
    probability = quadrature((2 * t - 1) * fit.latent(X), fit.latent_variance(X))
    return np.log(np.maximum(probability, np.finfo(np.float64).tiny))
