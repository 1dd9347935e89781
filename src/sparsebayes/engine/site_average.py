"""Averages over models under shared sites: the chains, short ones while the sites are looked for."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from sparsebayes.core.inclusion import DENSE
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine import chain
from sparsebayes.engine.averaging import Averaged, prepared
from sparsebayes.engine.group_sets import sets_of
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.model_average import Chains, Odds
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.shared_sites import average_under_sites

QUICK_CHAINS, QUICK_FLIPS = 2, 150
"""Chains, and flips of each, between two looks at the sites: enough for the moments of η, of which sites go half way
only."""
QUICK_DRAWS = 200
"""Draws that these moments are taken of: each costs a product of all rows. A variance is then right to a tenth."""


def average_by_sites(
    problems: Sequence[Problem],
    odds: Odds,
    starts: Sequence[IntArray],
    chains: Chains,
    moments: tuple[FloatArray, FloatArray],
    noise: float,
    typical: float,
) -> list[Averaged]:
    """Under sites that all models of a problem share; several problems are the classes of a softmax.

    `moments` are mean and variance of every row's predictors (N×C) to begin with.
    """
    prior = odds.prior(noise, typical, DENSE)
    quick_chains, quick_flips = min(chains.n_chains, QUICK_CHAINS), min(chains.max_flips, QUICK_FLIPS)
    short = replace(chains, n_chains=quick_chains, max_flips=quick_flips, n_draws=QUICK_DRAWS, n_jobs=None)

    def sample(least_squares: LeastSquares, start: IntArray, quick: bool) -> Averaged:
        sets = prepared(sets_of(least_squares, odds.log_prior, prior, odds.labels, learns_noise=False))
        given = partial(chain.run, sets), odds, start, least_squares.projection, least_squares.design.n_rows
        return (short if quick else chains).sample(*given, draw=sets.draw)

    return average_under_sites(problems, *moments, starts, sample)
