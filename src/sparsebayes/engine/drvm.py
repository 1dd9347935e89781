"""Regression that chooses samples and features together (DRVM; docs/mathematics.md, section 5).

engine/theta.py finds the weights of the inputs; this module is what it asks of a regression.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sparsebayes.core.posterior import gaussian_posterior
from sparsebayes.core.prices import HalfTheRows
from sparsebayes.core.types import FloatArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.evidence_gradient import Slopes, gaussian_evidence
from sparsebayes.engine.least_squares import LOW_NOISE, LeastSquares, Solution
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.regression import maximum, priced
from sparsebayes.engine.theta import LEAST, Weighed, Weigher, relevance
from sparsebayes.engine.width import Fit


@dataclass(frozen=True)
class RegressionBlock:
    """Relevance vector regression as the model whose inputs are weighed."""

    t: FloatArray
    """The target in standard units, rows multiplied by the root of their weight."""
    weight: FloatArray
    flat_intercept: bool
    settings: Settings
    unreachable: float = 0.0
    """Part of the target's variance that no model is to explain."""

    def problem_on(self, K: FloatArray) -> LeastSquares:
        """The problem on kernel columns as they are, in the solver's units."""
        rows = DenseRows.of(K).standardised(self.weight, centre=self.flat_intercept)
        total = float(self.weight.sum())
        return LeastSquares(
            design=rows,
            t=self.t,
            n_weighted=total,
            flat_intercept=self.flat_intercept,
            price=HalfTheRows(total - self.flat_intercept, LEAST),
            rest=self.unreachable * total,
            start_alpha=1.0,
            start_noise=LOW_NOISE,
        )

    @cached_property
    def template(self) -> LeastSquares:
        """The problem without columns: target, weights and prices are the same on all."""
        return self.problem_on(np.empty((len(self.t), 0)))

    def search(self, K: FloatArray, near: Fit[Solution] | None) -> Fit[Solution]:
        """The best model on these columns, from a fit on similar ones or from nothing."""
        problem = self.problem_on(K)
        start = None if near is None else start_on(problem, near)
        result = maximum(problem, "sequential", self.settings, start)
        found = result.solution
        scales = np.log(np.append(found.alpha * problem.design.scale[found.active] ** 2, found.noise))
        return Fit(priced(problem, result), found.active, scales, found)

    def evidence(self, K: FloatArray, scales: FloatArray) -> Slopes:
        """Priced evidence of a model that keeps just these columns, and its slopes."""
        found = gaussian_evidence(self.template)(K, scales)
        return found._replace(value=found.value - self.template.total_price(list(range(K.shape[1]))))


def start_on(problem: LeastSquares, near: Fit[Solution]) -> Solution:
    """A fit on similar columns as a start of a search on these."""
    scale = problem.design.scale[near.active]
    useful = np.isfinite(scale)  # a very wide kernel is constant, but for rounding
    alpha = np.exp(near.scales[:-1][useful]) / scale[useful] ** 2
    return Solution(near.active[useful], alpha, float(np.exp(near.scales[-1])))


class Linearised(NamedTuple):
    """A regression as a linear model in the weights of vectors and inputs, around where it stands."""

    w: FloatArray
    """Posterior mean of the vectors' weights, for columns as they are."""
    residual: FloatArray
    """(t - η)/σ², times the root of the row's weight."""
    Phi: FloatArray
    """∂η/∂w of every row, times the root of its precision."""
    D: FloatArray
    """∂η/∂θ, the same way."""


def linearised(
    weigher: Weigher[Solution], block: RegressionBlock, theta: FloatArray, centres: FloatArray, scales: FloatArray
) -> Linearised:
    """Around the posterior mean, for the kept inputs; a flat intercept takes the weighted mean of every column."""
    kept = theta > 0
    X, Z, kernel = weigher.X[:, kept], centres[:, kept], weigher.kernel
    shape = kernel(X, Z, theta[kept])
    problem = block.problem_on(shape.value)
    noise = float(np.exp(scales[-1]))
    rows, alpha = problem.design, np.exp(scales[:-1]) / problem.design.scale**2
    mean = gaussian_posterior(rows, 1 / noise, problem.t / noise, alpha).mean
    D = kernel.jacobian(X, Z, shape, mean / rows.scale)
    if problem.flat_intercept:
        D = D - rows.root_weight**2 @ D / problem.n_weighted
    D = D * (rows.root_weight / np.sqrt(noise))[:, None]
    Phi = rows.columns(slice(None)) * rows.scale / np.sqrt(noise)
    residual = rows.root_weight * (problem.t - rows.predict(mean)) / noise
    return Linearised(mean / rows.scale, residual, Phi, D)


def feature_relevance(block: RegressionBlock, weigher: Weigher[Solution], best: Weighed[Solution]) -> FloatArray:
    """γ of the kept features (see `relevance`)."""
    fit = best.fit
    around = linearised(weigher, block, best.theta, weigher.Z[fit.active], fit.scales)
    return relevance(np.column_stack([around.Phi, around.D]), np.exp(fit.scales[:-1]), best.theta[best.kept])
