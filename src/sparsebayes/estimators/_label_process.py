"""Gaussian processes for the log-odds of classes, in the place of sparse models."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.predictive import quadrature
from sparsebayes.core.priors import ARD
from sparsebayes.core.types import AnyArray, FloatArray
from sparsebayes.data.lowrank import NotLowRank
from sparsebayes.engine.kernel_regression import own_scale
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.process import solve_labels
from sparsebayes.estimators._kernel import KernelFit
from sparsebayes.estimators._linear import glm_fit
from sparsebayes.estimators._process import MOST_JUDGED_LABELS, ProcessDesign, folds

FoldFit = Callable[[ProcessDesign, FloatArray, FloatArray], KernelFit]
"""A sparse model of the rows of a fold, of labels 0 and 1 and with row weights."""


class Judged(NamedTuple):
    """What held-out rows say of a Gaussian process."""

    gain: float
    """Log probability of their labels above that under sparse models."""
    variances: list[float]
    """Prior variances that were best in each fold, for each class that was tried."""


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

    def judge(self, sparse: FoldFit | None, codes: AnyArray, weight: FloatArray, classes: Sequence[int]) -> Judged:
        """How much more probable it makes labels of other folds than sparse models do, one class against the rest."""
        gain, variances, design = 0.0, [], self.process.design
        for train, test in folds(design, weight, MOST_JUDGED_LABELS, codes):
            try:
                part = self.process.subset(train, weight)
            except NotLowRank:  # rows so far out that their distances have no digits left: the fold has no say
                continue
            v, X = weight[train], design.X[test]
            for k in classes:
                t = (codes == k).astype(np.float64)
                if len(np.unique(t[train])) < 2:
                    continue
                rival = replace(self, process=part).fit(t[train], v)
                assert rival.left_out is not None
                variances.append(rival.left_out.signal)
                if sparse is not None:
                    fit = sparse(part, t[train], v)
                    more = log_probability(rival, X, t[test]) - log_probability(fit, X, t[test])
                    gain += float(weight[test] @ more)
        return Judged(gain, variances)


def log_probability(fit: KernelFit, X: FloatArray, t: FloatArray) -> FloatArray:
    """Log probability of labels 0 and 1."""
    probability = quadrature((2 * t - 1) * fit.latent(X), fit.latent_variance(X))
    return np.log(np.maximum(probability, np.finfo(np.float64).tiny))
