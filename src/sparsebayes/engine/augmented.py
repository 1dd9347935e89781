"""Chains for likelihoods that are a mixture of Gaussian ones: a sweep draws every row's site, then samples as for noise one.

Given the sites (Pólya-Gamma precisions of a logistic likelihood) weights and intercept are integrated out as in a regression.
A draw of the weights gives the predictor, from which the next sites are drawn. The chain is not tempered: its flips are
accepted with Z/Z', so that new sites need no test (docs/mathematics.md, section 9).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sparsebayes.core.inclusion import InclusionPrior
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.candidates import under_sites
from sparsebayes.engine.chain import Chain, Place, Stretch, added
from sparsebayes.engine.flips import Sums
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.sets import Draw, Sets

FLIPS = 12
"""Flips of a sweep: about the work of computing everything for the new sites."""


class ExactChain(Chain):
    """A chain whose states all count the same: moves that keep the posterior are always accepted."""

    def _accepts(self, before: float) -> bool:
        return True

    def sweep(self, n: int) -> None:
        """A leap, an exchange and flips."""
        self.leap()
        self.change_slab()
        self.exchange()
        self.flips.walk(self.rng.random(n), self.rng.random(n))


@dataclass(frozen=True)
class Augmented:
    """A problem whose likelihood draws its sites, and what is believed about its sets of columns beforehand."""

    problem: Problem
    log_prior: FloatArray
    prior: InclusionPrior

    @cached_property
    def Phi(self) -> FloatArray:
        """All columns, formed."""
        return self.problem.design.columns(slice(None))

    def first_predictor(self) -> FloatArray:
        """Of the model without weights."""
        return np.full(len(self.problem.t), self.problem.base_level(self.problem.likelihood))

    def run(self, place: Place, n_flips: int) -> tuple[Place, Stretch]:
        """Let a chain go on for so many flips."""
        eta = self.first_predictor() if place.eta is None else place.eta
        sums, draws = [], []
        for _ in range(max(1, n_flips // FLIPS)):
            place, part, draw = self._sweep(place, eta)
            eta = draw.level + self.Phi[:, draw.active] @ draw.weights
            sums.append(part)
            draws.append(draw)
        return replace(place, eta=eta), Stretch(added(sums), draws)

    def _sweep(self, place: Place, eta: FloatArray) -> tuple[Place, Sums, Draw]:
        problem = self.problem
        sites = problem.likelihood.draw_sites(problem.t, problem.weight, eta, place.rng)
        rows = under_sites(self.Phi, sites, problem.flat_intercept)
        least_squares = LeastSquares(
            design=DenseRows.formed(rows.Phi),
            t=rows.t,
            n_weighted=float(np.sum(sites.precision)),
            flat_intercept=problem.flat_intercept,
        )
        if len(place.active):  # in one pass, where a chain would ask for them one by one
            least_squares.design.gram_column(int(place.active[0]), lambda: place.active)
        sets = Sets(least_squares, self.log_prior, self.prior, learns_noise=False)
        chain = ExactChain(sets, place)
        chain.sweep(FLIPS)
        active = np.sort(chain.active)
        draw = sets.draw(active, chain.c, chain.rng)
        level = rows.level + draw.level - float(rows.means[active] @ draw.weights)
        return Place(active, chain.slab, chain.rng), Sums(*chain.flips.sums), replace(draw, level=level, share=1.0)
