"""Chains for likelihoods that are mixtures of Gaussian ones: sites are drawn, then sets as in a regression.

Given the sites (Pólya-Gamma precisions of a logistic likelihood) weights and intercept are integrated out. A draw of
the weights gives the predictor, from which the next sites are drawn. The chain is not tempered: its flips are accepted
with Z/Z', so that new sites need no test (docs/mathematics.md, section 9).
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sparsebayes.core.inclusion import InclusionPrior
from sparsebayes.core.likelihoods import MixedLikelihood
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.candidates import under_sites
from sparsebayes.engine.chain import Chain, Place, Stretch, added
from sparsebayes.engine.flips import Sums
from sparsebayes.engine.group_sets import sets_of
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.sets import Draw

FLIPS = 12
"""Flips of a sweep: about the work of computing everything for the new sites."""
SETTLING, ROUND = 100, 250
"""Sweeps of each chain that are not counted, and between two looks at how well the chains agree."""
MANY = 4
"""The whole Gram matrix is computed if a sweep is likely to need one column in four."""


class ExactChain(Chain):
    """A chain whose states all count the same: moves that keep the posterior are always accepted."""

    def _accepts(self, before: float) -> bool:
        return True

    def sweep(self, start: IntArray, n: int) -> None:
        """A leap, a draw of c, an exchange and flips."""
        self.renew(start, leaps=True)
        self.exchange()
        self.flips.walk(self.rng.random(n), self.rng.random(n))


@dataclass(frozen=True)
class Augmented:
    """A problem whose likelihood draws its sites, and what is believed about its sets of columns beforehand."""

    problem: Problem
    log_prior: FloatArray
    prior: InclusionPrior
    labels: IntArray | None = None
    """The group of every column, where groups are in or out."""

    @cached_property
    def Phi(self) -> FloatArray:
        """All columns, formed."""
        return self.problem.design.columns(slice(None))

    def columns(self, active: IntArray) -> IntArray:
        """The columns of a set of columns, or of groups."""
        return active if self.labels is None else np.flatnonzero(np.isin(self.labels, active))

    def first_predictor(self) -> FloatArray:
        """Of the model without weights."""
        return np.full(len(self.problem.t), self.problem.base_level(self.problem.likelihood))

    def run(self, place: Place, n_flips: int) -> tuple[Place, Stretch]:
        """Let a chain go on for `n_flips` flips."""
        eta = self.first_predictor() if place.eta is None else place.eta
        sums, draws = [], []
        for _ in range(max(1, n_flips // FLIPS)):
            place, part, draw = self._sweep(place, eta)
            eta = draw.level + self.Phi[:, draw.active] @ draw.weights
            sums.append(part)
            draws.append(draw)
        return replace(place, eta=eta), Stretch(added(sums), draws)

    def _sweep(self, place: Place, eta: FloatArray) -> tuple[Place, Sums, Draw]:
        problem, likelihood = self.problem, self.problem.likelihood
        assert isinstance(likelihood, MixedLikelihood)
        sites = likelihood.draw_sites(problem.t, problem.weight, eta, place.rng)
        rows = under_sites(self.Phi, sites, problem.flat_intercept)
        design = DenseRows.formed(rows.Phi)
        prepare(design, self.columns(place.active))
        least_squares = LeastSquares(
            design=design,
            t=rows.t,
            n_weighted=float(np.sum(sites.precision)),
            flat_intercept=problem.flat_intercept,
        )
        sets = sets_of(least_squares, self.log_prior, self.prior, self.labels, learns_noise=False)
        chain = ExactChain(sets, place.rng)
        chain.sweep(place.active, FLIPS)
        active = np.sort(chain.active)
        draw = sets.draw(active, chain.c, chain.rng)
        level = rows.level + draw.level - float(rows.means[draw.active] @ draw.weights)
        return Place(active, chain.slab, chain.rng), Sums(*chain.flips.sums), replace(draw, level=level, share=1.0)


def prepare(design: DenseRows, active: IntArray) -> None:
    """Compute in one pass what a sweep would ask for column by column: the Gram matrix, or the columns inside."""
    if design.n_columns <= MANY * (len(active) + FLIPS):
        design.gram()
    elif len(active):
        design.gram_column(int(active[0]), lambda: active)
