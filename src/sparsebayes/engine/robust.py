"""Chains for noise that is a mixture of normal distributions: Student's, and gross errors.

Given a factor u of every row's precision the model is a regression with weights u, whose noise variance is integrated
out. A draw of weights and noise gives the residuals, from which the next factors are drawn. What is left of the noise's
distribution (degrees of freedom; share and size of gross errors) stays as the single model has learned it
(docs/mathematics.md, section 9.4).
"""

from dataclasses import dataclass, replace

import numpy as np

from sparsebayes.core.likelihoods import Sites, StudentT
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.augmented import FLIPS, ROUND, SETTLING, Augmented, ExactChain, prepare
from sparsebayes.engine.averaging import Averaged
from sparsebayes.engine.candidates import under_sites
from sparsebayes.engine.chain import Place
from sparsebayes.engine.flips import Sums
from sparsebayes.engine.group_sets import sets_of
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.model_average import Chains, Odds
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.sets import Draw


@dataclass(frozen=True, kw_only=True)
class RobustSampler(Augmented):
    """A problem whose noise is such a mixture, with the predictor that the single model has."""

    first_eta: FloatArray

    def first_predictor(self) -> FloatArray:
        """That of the single model: from nothing nearly every row would be an outlier."""
        return self.first_eta

    def _sweep(self, place: Place, eta: FloatArray) -> tuple[Place, Sums, Draw]:
        problem, likelihood = self.problem, self.problem.likelihood
        assert isinstance(likelihood, StudentT)
        noise = likelihood.noise if place.noise is None else place.noise
        u = replace(likelihood, noise=noise).draw_precisions((problem.t - eta) ** 2, place.rng)
        rows = under_sites(self.Phi, Sites(u, u * problem.t, np.zeros_like(u)), problem.flat_intercept)
        design, n = DenseRows.formed(rows.Phi), len(u)
        prepare(design, self.columns(place.active))
        least_squares = LeastSquares(
            design=design, t=rows.t, n_weighted=float(n), flat_intercept=problem.flat_intercept
        )
        sets = sets_of(least_squares, self.log_prior, self.prior, self.labels, learns_noise=True)
        chain = ExactChain(sets, place.rng)
        chain.sweep(place.active, FLIPS)
        active = np.sort(chain.active)
        draw = sets.draw(active, chain.c, chain.rng)
        # The intercept's variance is σ²/Σu, where a draw has σ²/n.
        shift = draw.level * np.sqrt(n / u.sum()) - float(rows.means[draw.active] @ draw.weights)
        draw = replace(draw, level=rows.level + shift, share=1.0)
        return Place(active, chain.slab, chain.rng, noise=draw.noise), Sums(*chain.flips.sums), draw


def average_robust(problem: Problem, odds: Odds, start: IntArray, chains: Chains, eta: FloatArray) -> Averaged:
    """Averages over models with the mixture that a single model, of predictor `eta`, has learned."""
    sampler = RobustSampler(problem, odds.log_prior, odds.prior(), odds.labels, first_eta=eta)
    level = problem.base_level(problem.likelihood)
    residual = problem.likelihood.derivatives(problem.t, np.full(len(problem.t), level))[0]
    lengths = FLIPS * SETTLING, FLIPS * ROUND
    return chains.sample(sampler.run, odds, start, problem.design.project(residual), len(problem.t), *lengths)
