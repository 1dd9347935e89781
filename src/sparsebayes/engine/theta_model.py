"""The regression whose evidence chooses feature weights, of a target or of labels (docs/mathematics.md, section 5).

engine/theta.py searches for the weights; this file has the model that it needs.

Class labels are regressed on as numbers ±1. A classification vector machine with weights inside its kernel has an
evidence of its own, in Laplace's approximation, but that is a poor judge of features: each feature brings the classes
nearer to being separable, rows saturate, and without curvature the approximation means nothing. The regression of the
labels on the same kernel columns has an exact evidence, and it estimates the difference of the class probabilities. So
the weights are found by regression, and the machine is then fitted with the kernel that they make.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sparsebayes.core.posterior import gaussian_posterior
from sparsebayes.core.types import FloatArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.ascent import Limits
from sparsebayes.engine.evidence_gradient import Evidence, Slopes, gaussian_evidence
from sparsebayes.engine.gaussian_search import climb, cold_start
from sparsebayes.engine.kernel_regression import kernel_problem, log_scales, start_on
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.loop import Settings, Trace
from sparsebayes.engine.theta import VECTOR_PRICE, ThetaFit, ThetaSearch, relevance
from sparsebayes.engine.width import VectorFit

UNEXPLAINED_LABELS = 0.05
"""Share of the labels' variance that no regression can explain. Without it a narrow kernel in a single feature would
reproduce the labels, the noise would vanish, and the evidence would grow without bound. A class probability of 0.99
leaves a share of 0.04."""


@dataclass(frozen=True)
class RegressionModel:
    """Relevance vector regression as the model on the kernel columns."""

    t: FloatArray
    """The target in standard units, rows multiplied by the root of their weight."""
    weight: FloatArray
    flat_intercept: bool
    settings: Settings
    unexplained: float = 0.0
    """Share of the target's variance that no model can explain."""

    def problem_on(self, K: FloatArray) -> LeastSquares:
        """The problem on given kernel columns, which it standardises."""
        rows = DenseRows.of(K).standardised(self.weight, centre=self.flat_intercept)
        total = float(self.weight.sum())
        rest = self.unexplained * total
        return kernel_problem(rows, self.t, total, self.flat_intercept, vector_price=VECTOR_PRICE, rest=rest)

    @cached_property
    def template(self) -> LeastSquares:
        """The problem without columns: target, weights and prices are the same for all columns."""
        return self.problem_on(np.empty((len(self.t), 0)))

    @cached_property
    def _unpriced(self) -> Evidence:
        return gaussian_evidence(self.template)

    def search(self, K: FloatArray, near: VectorFit | None) -> VectorFit:
        """The best model on these columns, from a fit on similar columns or from nothing.

        From nothing the noise is held low at first, as for free columns. Without that, 13 rather than 16 of 20 searches
        for two relevant inputs of five ended right.
        """
        problem = self.problem_on(K)
        problem.design.prepare_gram()
        scale, trace = problem.design.unit, Trace()  # the steps of these searches are not reported
        if near is None:
            end, _ = cold_start(problem, trace, self.settings)
        else:
            end, _ = climb(problem, start_on(scale, near), Limits(self.settings.tol), trace, self.settings)
        return VectorFit(end.priced_evidence, end.active, log_scales(scale, end.solution))

    def evidence(self, K: FloatArray, scales: FloatArray) -> Slopes:
        """Priced evidence of the model that keeps exactly these columns, and its slopes."""
        found = self._unpriced(K, scales)
        return found._replace(value=found.value - self.template.total_price(list(range(K.shape[1]))))


def label_values(t: FloatArray, weight: FloatArray, flat_intercept: bool) -> FloatArray:
    """Classes t in {0, 1} as a target ±1 in standard units."""
    sign = 2 * t - 1
    y = sign - flat_intercept * (weight @ sign) / weight.sum()
    return np.asarray(y / np.sqrt(weight @ y**2 / weight.sum()))


def label_model(t: FloatArray, weight: FloatArray, flat_intercept: bool, settings: Settings) -> RegressionModel:
    """The regression of classes t in {0, 1}, as a target ±1 in standard units."""
    target = np.sqrt(weight) * label_values(t, weight, flat_intercept)
    return RegressionModel(target, weight, flat_intercept, settings, UNEXPLAINED_LABELS)


class Linearisation(NamedTuple):
    """A regression as a linear model in the weights w of its vectors and in θ, around a point."""

    w: FloatArray
    """Posterior mean of the vectors' weights, for columns as they are."""
    residual: FloatArray
    """(t - η)/σ², times the root of the row's weight."""
    by_w: FloatArray
    """∂η/∂w of every row, times the root of its precision."""
    by_theta: FloatArray
    """∂η/∂θ of every row, times the root of its precision."""


def linearise(
    search: ThetaSearch, model: RegressionModel, theta: FloatArray, centres: FloatArray, scales: FloatArray
) -> Linearisation:
    """Around the posterior mean, for the kept inputs; a flat intercept takes the weighted mean of every column."""
    kept = theta > 0
    X, Z, kernel = search.X[:, kept], centres[:, kept], search.kernel
    shape = kernel(X, Z, theta[kept])
    problem = model.problem_on(shape.value)
    noise = float(np.exp(scales[-1]))
    rows, alpha = problem.design, np.exp(scales[:-1]) / problem.design.unit**2
    mean = gaussian_posterior(rows, 1 / noise, problem.t / noise, alpha).mean
    by_theta = kernel.jacobian(X, Z, shape, mean / rows.unit)
    if problem.flat_intercept:
        by_theta = by_theta - rows.root_weight**2 @ by_theta / problem.n_weighted
    by_theta = by_theta * (rows.root_weight / np.sqrt(noise))[:, None]
    by_w = rows.columns(slice(None)) * rows.unit / np.sqrt(noise)
    residual = rows.root_weight * (problem.t - rows.predict(mean)) / noise
    return Linearisation(mean / rows.unit, residual, by_w, by_theta)


def feature_relevance(model: RegressionModel, search: ThetaSearch, best: ThetaFit) -> FloatArray:
    """γ of the kept features (see `relevance`)."""
    fit = best.fit
    around = linearise(search, model, best.theta, search.Z[fit.active], fit.scales)
    J = np.column_stack([around.by_w, around.by_theta])
    return relevance(J, np.exp(fit.scales[:-1]), best.theta[best.kept])
