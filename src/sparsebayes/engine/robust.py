"""Chains for noise that is a mixture of normal distributions: Student's, and gross errors.

Given a factor u of every row's precision the model is a regression with weights u, whose noise variance is integrated
out. A draw of weights and noise gives the residuals, from which the next factors are drawn. What is left of the noise's
distribution (degrees of freedom; share and size of gross errors) stays as the single model has learned it
(docs/mathematics.md, section 9.4).
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sparsebayes.core.likelihoods import Sites, StudentT
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine.augmented import FLIPS, ROUND, SETTLING, Augmented
from sparsebayes.engine.averaging import Averaged
from sparsebayes.engine.chain import Place
from sparsebayes.engine.model_average import Chains, Odds
from sparsebayes.engine.problem import Problem


@dataclass(frozen=True, kw_only=True)
class RobustSampler(Augmented):
    """A problem whose noise is such a mixture, with the predictor that the single model has."""

    first_eta: FloatArray
    learns_noise: ClassVar[bool] = True

    def first_predictor(self) -> FloatArray:
        """That of the single model: under the empty model nearly every row would be an outlier."""
        return self.first_eta

    def first_score(self) -> FloatArray:
        """From a constant: what the single model has explained counts too."""
        problem = self.problem
        level = np.full(len(problem.t), problem.base_level(problem.likelihood))
        return np.abs(problem.likelihood.derivatives(problem.t, level)[0] @ self.Phi)

    def _draw_sites(self, place: Place, eta: FloatArray) -> Sites:
        """The rows' factors, given their residuals and the noise."""
        t, likelihood = self.problem.t, self.problem.likelihood
        assert isinstance(likelihood, StudentT)
        noise = likelihood.noise if place.noise is None else place.noise
        u = replace(likelihood, noise=noise).draw_precisions((t - eta) ** 2, place.rng)
        return Sites(u, u * t, np.zeros_like(u))

    def _n_weighted(self, sites: Sites) -> float:
        """All rows count for the noise."""
        return float(len(self.problem.t))


def average_robust(problem: Problem, odds: Odds, start: IntArray, chains: Chains, eta: FloatArray) -> Averaged:
    """Averages over models with the mixture that a single model, of predictor `eta`, has learned."""
    sampler = RobustSampler(problem, odds.log_prior, odds.prior(), odds.labels, first_eta=eta)
    level = problem.base_level(problem.likelihood)
    residual = problem.likelihood.derivatives(problem.t, np.full(len(problem.t), level))[0]
    lengths = FLIPS * SETTLING, FLIPS * ROUND
    return chains.sample(sampler.run, odds, start, problem.design.project(residual), len(problem.t), *lengths)
