"""Averaging under Gaussian sites that all sets share, for likelihoods without a draw of their sites, and for many rows.

The sites are those of a variational Gaussian: slope and curvature of log p(t | η), averaged over the posterior of η,
which is itself an average over sets. They are found by turns: sites, chains, sites again. With many rows, or with
counts, the likelihood is nearly Gaussian where the posterior is, and one set of sites serves all models
(docs/mathematics.md, section 9).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sparsebayes.core.likelihoods import Likelihood, Sites
from sparsebayes.core.types import FloatArray
from sparsebayes.data.design import Design
from sparsebayes.engine.averaging import Averaged
from sparsebayes.engine.candidates import target_under
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.sets import Draw

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
"""Gauss-Hermite quadrature: exact for the mean of a polynomial of degree 17 under a Gaussian."""
TURNS = 4
"""Times that the sites are computed anew; the last changes no inclusion probability by more than the chains' error."""

N_DRAWS = 200
"""Draws that the moments are taken of: each costs a product of all rows. A variance is then right to a tenth."""


def averaged_sites(
    likelihood: Likelihood, t: FloatArray, weight: FloatArray, mean: FloatArray, variance: FloatArray
) -> Sites:
    """Sites with the slope and curvature of log p(t | η) averaged over η ~ N(mean, variance)."""
    slope, curvature, spread = np.zeros_like(mean), np.zeros_like(mean), np.sqrt(variance)
    for node, share in zip(NODES, WEIGHTS / WEIGHTS.sum(), strict=True):
        each = likelihood.derivatives(t, mean + node * spread)
        slope, curvature = slope + share * each[0], curvature + share * each[1]
    if not np.isfinite(curvature).all():
        raise FloatingPointError(
            "the likelihood overflows where rows with next to no weight leave the predictor open: set sample_weight of "
            "such rows to zero, or average=False"
        )
    return Sites(weight * curvature, weight * (curvature * mean + slope), np.zeros_like(mean))


@dataclass(frozen=True)
class UnderSites:
    """A problem under sites: a regression with noise one, and the way back to the problem's own intercept."""

    problem: LeastSquares
    level: float
    offset: FloatArray
    """Where the columns are measured from, in standard units."""

    @classmethod
    def of(cls, problem: Problem, sites: Sites) -> "UnderSites":
        """Rows multiplied by the root of their precision; a flat intercept is eliminated by centring."""
        b, t, level = target_under(sites, problem.flat_intercept)
        design: Design = problem.design.centred(b) if problem.flat_intercept else problem.design
        least_squares = LeastSquares(
            design=design.weighted(np.sqrt(b)),
            t=t,
            n_weighted=float(b.sum()),
            flat_intercept=problem.flat_intercept,
        )
        return cls(least_squares, level, design.offset)

    def own(self, draw: Draw) -> Draw:
        """The draw with its intercept where the problem's columns are zero."""
        shift = float(self.offset[draw.active] @ draw.weights)
        return replace(draw, level=self.level + draw.level - shift)


def predictor_moments(problem: Problem, draws: list[Draw]) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of every row's η over the draws."""
    total = sum(draw.share for draw in draws)
    mean, square = np.zeros(len(problem.t)), np.zeros(len(problem.t))
    for draw in draws:
        eta = draw.level + problem.design.columns(draw.active) @ draw.weights
        mean += draw.share / total * eta
        square += draw.share / total * eta**2
    return mean, np.maximum(square - mean**2, 0.0)


def average_under_sites(
    problem: Problem, mean: FloatArray, variance: FloatArray, sample: Callable[[LeastSquares], Averaged]
) -> Averaged:
    """Sites from the moments of η, chains under them, moments from their draws, and again."""
    for _ in range(TURNS):
        under = UnderSites.of(problem, averaged_sites(problem.likelihood, problem.t, problem.weight, mean, variance))
        found = sample(under.problem)
        found = replace(found, draws=[under.own(draw) for draw in found.draws])
        mean, variance = predictor_moments(problem, found.draws[:: max(1, len(found.draws) // N_DRAWS)])
    return found
