"""Chains for likelihoods that are mixtures of Gaussian ones: sites are drawn, then sets as in a regression.

Given the sites (Pólya-Gamma precisions of a logistic likelihood) weights and intercept are integrated out. A draw of
the weights gives the predictor, from which the next sites are drawn. The chain is not tempered: its flips are accepted
with Z/Z', so that new sites need no test (docs/mathematics.md, section 9).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, repeat
from typing import ClassVar

import numpy as np

from sparsebayes.core.inclusion import InclusionPrior
from sparsebayes.core.likelihoods import MixedLikelihood, Sites
from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.candidates import under_sites
from sparsebayes.engine.chain import Chain, Place, Stretch
from sparsebayes.engine.flips import Sums
from sparsebayes.engine.group_sets import sets_of
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.rotation import Part, Tally, favourites, turns
from sparsebayes.engine.sets import Draw

FLIPS = 12
"""Flips of a sweep: about the work of computing everything for the new sites."""
SETTLING, ROUND = 100, 250
"""Sweeps of each chain that are not counted, and sweeps between two tests of how well the chains agree."""
N_DRAWS = 4
"""Draws of the weights in each sweep: one to go on with, the others to keep. Sixty sweeps of four chains are enough."""
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
    """A problem whose likelihood draws its sites, and the prior of its sets of columns."""

    problem: Problem
    log_prior: FloatArray
    prior: InclusionPrior
    labels: IntArray | None = None
    """The group of every column, where groups are in or out."""
    learns_noise: ClassVar[bool] = False
    """Whether the noise under the sites is to be learned; otherwise its variance is one."""

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

    def first_score(self) -> FloatArray:
        """How well each column goes with the residuals of the first predictor."""
        problem = self.problem
        slope = problem.likelihood.derivatives(problem.t, self.first_predictor())[0]
        return np.abs((problem.weight * slope) @ self.Phi)

    def run(self, place: Place, n_flips: int) -> tuple[Place, Stretch]:
        """Let a chain go on for `n_flips` flips."""
        eta = self.first_predictor() if place.eta is None else place.eta
        tally, draws = Tally(len(self.log_prior), self.Phi.shape[1]), []
        for free in islice(self._turns(place), max(1, n_flips // FLIPS)):
            place, seen = self._sweep(place, eta, free, tally)
            eta = seen[0].level + self.Phi[:, seen[0].active] @ seen[0].weights
            draws.append(seen)
        best = favourites(tally.probability, np.isfinite(self.log_prior))
        return replace(place, eta=eta, favourites=best), Stretch(tally.sums(), draws)

    def _turns(self, place: Place) -> Iterator[BoolArray]:
        """Which columns each sweep may change; groups all at once."""
        n = len(self.log_prior)
        if self.labels is not None:
            return repeat(np.ones(n, dtype=bool))
        always = place.favourites
        if always is None:
            always = favourites(self.first_score(), np.isfinite(self.log_prior))
        return turns(always, n, place.rng)

    def _draw_sites(self, place: Place, eta: FloatArray) -> Sites:
        """Given the predictor."""
        problem, likelihood = self.problem, self.problem.likelihood
        assert isinstance(likelihood, MixedLikelihood)
        return likelihood.draw_sites(problem.t, problem.weight, eta, place.rng)

    def _n_weighted(self, sites: Sites) -> float:
        """Rows by their weight."""
        return float(np.sum(sites.precision))

    def _sweep(self, place: Place, eta: FloatArray, free: BoolArray, tally: Tally) -> tuple[Place, list[Draw]]:
        """New sites, a sweep over sets of some columns, and draws of the weights; the chain goes on from the first."""
        sites, flat_intercept = self._draw_sites(place, eta), self.problem.flat_intercept
        part = Part.of(free, place.active, self.log_prior)
        at = part.columns if self.labels is None else np.arange(len(self.labels))
        rows = under_sites(self.Phi if len(at) == self.Phi.shape[1] else self.Phi[:, at], sites, flat_intercept)
        design, start, n = DenseRows.formed(rows.Phi), part.local(place.active), self._n_weighted(sites)
        prepare(design, self.columns(start))
        least_squares = LeastSquares(design=design, t=rows.t, n_weighted=n, flat_intercept=flat_intercept)
        given = least_squares, part.log_prior, self.prior, self.labels
        sets = sets_of(*given, learns_noise=self.learns_noise, n_held=part.n_held)
        chain = ExactChain(sets, place.rng)
        chain.sweep(start, FLIPS)
        active = np.sort(chain.active)
        draws = sets.draw(active, chain.c, chain.rng, N_DRAWS)
        tally.add(Sums(*chain.flips.sums), part.columns, at, free)
        # The intercept's variance is σ²/Σ precision, where a draw has σ²/n.
        wider, means, columns = np.sqrt(n / np.sum(sites.precision)), rows.means[draws[0].active], at[draws[0].active]
        levels = [rows.level + each.level * wider - float(means @ each.weights) for each in draws]
        draws = [replace(each, active=columns, level=level) for each, level in zip(draws, levels, strict=True)]
        return replace(place, active=part.columns[active], slab=chain.slab, noise=draws[0].noise), draws


def prepare(design: DenseRows, active: IntArray) -> None:
    """Compute in one pass what a sweep would ask for column by column: the Gram matrix, or the columns inside."""
    if design.n_columns <= MANY * (len(active) + FLIPS):
        design.gram()
    elif len(active):
        design.gram_column(int(active[0]), lambda: active)
