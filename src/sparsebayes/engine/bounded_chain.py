"""Averaging over models whose weights may not be negative: a chain over sets of columns and their weights.

The truncated slab leaves no closed form for the evidence of a set, because the share of the posterior in the positive
orthant has none. So the weights stay in the state. Given all others, one weight is easy: its density is a Gaussian
times the truncated slab, and the odds that its column is in are 2√(v/(σ²c)) exp(m²/2v) Φ(m/√v), times the prior odds
(docs/mathematics.md, section 9.7). Every move below is built on these.
"""

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.engine.averaging import Averaged
from sparsebayes.engine.chain import Place, Stretch
from sparsebayes.engine.flips import STEEPEST, Sums
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.model_average import Chains, Odds
from sparsebayes.engine.sets import Draw, Sets

FLIPS = 2
"""Flips of an ordinary chain for which one step counts: it has a birth or death, an exchange and new weights."""
FAR = -30.0
"""m/√v below which a normal variable above zero is exponential up to a relative error of FAR⁻²."""


@dataclass(frozen=True)
class BoundedSets(Sets):
    """Sets of columns, some of whose weights may not be negative."""

    positive: BoolArray | None = None
    """Which columns have a bound."""

    @cached_property
    def gram_all(self) -> FloatArray:
        """ΦᵀΦ."""
        design = self.problem.design
        design.prepare_gram()
        known = design.known_gram
        return self.gram_rows(np.arange(design.n_columns)) if known is None else known


class BoundedChain:
    """A chain at work: the weights (zero outside), σ² and c."""

    def __init__(self, sets: BoundedSets, place: Place) -> None:
        self.sets, self.rng, self.slab = sets, place.rng, max(place.slab, 0)
        self.bounded = np.asarray(sets.positive)
        self.inside = np.zeros(sets.problem.n_columns, dtype=bool)
        self.w = np.zeros(sets.problem.n_columns)
        self.left = sets.problem.projection.copy()
        """Φᵀ(t - Φw)."""
        self.noise = 1.0 if place.noise is None else place.noise
        if place.slab < 0:
            self.slab = int(np.abs(np.log(sets.prior.slabs * self.inside.size)).argmin())
        self.inside[place.active] = True
        weights = np.zeros(len(place.active)) if place.eta is None else place.eta
        for j, weight in zip(place.active.tolist(), weights.tolist(), strict=True):
            self._set(j, weight)

    @property
    def c(self) -> float:
        """Prior variance of a weight over the noise variance, before the truncation."""
        return float(self.sets.prior.slabs[self.slab])

    def _set(self, j: int, weight: float) -> None:
        if weight != self.w[j]:
            self.left -= (weight - self.w[j]) * self.sets.gram_all[j]
            self.w[j] = weight

    def _odds(self, j: IntArray | slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Of columns whose weights are zero now: log odds without the prior, and m and √v of the weight, were it in."""
        precision = self.sets.problem.column_energy[j] + 1 / self.c
        mean, std = self.left[j] / precision, np.sqrt(self.noise / precision)
        log_odds = 0.5 * (mean / std) ** 2 - 0.5 * np.log(self.c * precision)
        return log_odds + np.where(self.bounded[j], np.log(2) + log_ndtr(mean / std), 0.0), mean, std

    def _weight(self, j: int, mean: float, std: float) -> float:
        """A draw of one weight, by inversion; `mean` and `std` are those without a bound."""
        z = mean / std
        if not self.bounded[j]:
            return mean + std * self.rng.standard_normal()
        if z < FAR:
            return std * self.rng.exponential() / -z
        return max(mean - std * float(ndtri(ndtr(z) * (1 - self.rng.random()))), 0.0)

    def _outside(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Log odds of all columns that could enter (-∞ for others), and m and √v."""
        log_odds, mean, std = self._odds(slice(None))
        prior = self.sets.prior.log_odds(self.slab)
        free = int((self.inside & self.sets.movable).sum())
        log_odds = log_odds + prior[min(free, len(prior) - 1)] + self.sets.log_prior
        return np.where(self.inside | ~self.sets.movable, -np.inf, log_odds), mean, std

    def _enter(self, log_odds: FloatArray, mean: FloatArray, std: FloatArray) -> None:
        """Put one column in, with probability proportional to its odds."""
        cumulative = np.cumsum(np.exp(log_odds - log_odds.max()))
        j = int(np.searchsorted(cumulative, self.rng.random() * cumulative[-1], side="right"))
        self.inside[j] = True
        self._set(j, self._weight(j, float(mean[j]), float(std[j])))

    def birth_or_death(self) -> None:
        """A column enters with probability ∝ its odds, or one of those inside leaves.

        The odds cancel: with S their sum over the columns outside, an entry into k columns is accepted with S/(k + 1),
        and an exit out of k with k/S of the columns that are outside then.
        """
        movable = np.flatnonzero(self.inside & self.sets.movable)
        k, test = len(movable), np.log(self.rng.random())
        if self.rng.random() < 0.5:
            found = self._outside()
            if test < _log_sum(found[0]) - np.log(k + 1):
                self._enter(*found)
        elif k:
            j = int(movable[int(self.rng.random() * k)])
            before = float(self.w[j])
            self._set(j, 0.0)
            self.inside[j] = False
            if test >= np.log(k) - _log_sum(self._outside()[0]):
                self.inside[j] = True
                self._set(j, before)

    def exchange(self) -> None:
        """One column leaves, and one enters with probability ∝ its odds: a Gibbs step."""
        movable = np.flatnonzero(self.inside & self.sets.movable)
        if len(movable):
            j = int(movable[int(self.rng.random() * len(movable))])
            self._set(j, 0.0)
            self.inside[j] = False
            self._enter(*self._outside())

    def renew(self) -> FloatArray:
        """Draw the weights inside, σ² and c; returns the probability of every column, given the others."""
        log_odds = self._outside()[0]
        active = np.flatnonzero(self.inside)
        prior = self.sets.prior.log_odds(self.slab)
        free = int((self.inside & self.sets.movable).sum())
        for j in self.rng.permutation(active).tolist():
            self._set(j, 0.0)
            own, mean, std = self._odds(np.array([j]))
            log_odds[j] = own[0] + prior[max(free - 1, 0)] + self.sets.log_prior[j]
            self._set(j, self._weight(j, float(mean[0]), float(std[0])))
        self._renew_scales(active, free)
        return np.asarray(1 / (1 + np.exp(-np.clip(log_odds, -STEEPEST, STEEPEST))))

    def _renew_scales(self, active: IntArray, free: int) -> None:
        sets, weights = self.sets, self.w[active]
        square = float(weights @ weights)
        log_p = sets.prior.log_size(free) - 0.5 * len(active) * np.log(sets.prior.slabs)
        log_p = log_p - 0.5 * square / (self.noise * sets.prior.slabs)
        cumulative = np.cumsum(np.exp(log_p - log_p.max()))
        self.slab = int(np.searchsorted(cumulative, self.rng.random() * cumulative[-1], side="right"))
        if sets.learns_noise:
            rest = max(self._rest(), sets.floor) + square / self.c
            self.noise = rest / (2 * self.rng.gamma(0.5 * (sets.n + len(active))))

    def _rest(self) -> float:
        """‖t - Φw‖², and the floor."""
        return float(self.sets.energy - self.w @ (self.sets.problem.projection + self.left))

    def step(self) -> tuple[FloatArray, Draw]:
        """All moves once; returns the columns' probabilities and one draw."""
        self.birth_or_death()
        self.exchange()
        probability = self.renew()
        active, problem = np.flatnonzero(self.inside), self.sets.problem
        spread = np.sqrt(self.noise / problem.n_weighted) if problem.flat_intercept else 0.0
        return probability, Draw(active, self.w[active], self.noise, spread * self.rng.standard_normal(), 1.0)


def _log_sum(log_odds: FloatArray) -> float:
    top = float(log_odds.max(initial=-np.inf))
    return top if np.isinf(top) else top + float(np.log(np.exp(log_odds - top).sum()))


def run(sets: BoundedSets, place: Place, n_flips: int) -> tuple[Place, Stretch]:
    """Let a chain go on for so many flips."""
    chain, n, draws = BoundedChain(sets, place), sets.problem.n_columns, []
    included, first, second, sizes, noise = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n + 1), 0.0
    for _ in range(max(1, n_flips // FLIPS)):
        probability, draw = chain.step()
        included += probability
        first[draw.active] += draw.weights
        second[draw.active] += draw.weights**2
        sizes[len(draw.active)] += 1
        noise += draw.noise
        draws.append([draw])
    active = np.flatnonzero(chain.inside)
    place = replace(place, active=active, slab=chain.slab, noise=chain.noise, eta=chain.w[active])
    return place, Stretch(Sums(included, first, second, sizes, noise, float(len(draws))), draws)


def average_bounded(
    problem: LeastSquares, positive: BoolArray, odds: Odds, start: IntArray, chains: Chains
) -> Averaged:
    """Of a least-squares problem some of whose weights may not be negative; a noise that is known must be one."""
    sets = BoundedSets(problem, odds.log_prior, odds.prior(), problem.known_noise is None, positive=positive)
    found = chains.sample(partial(run, sets), odds, start, problem.projection, problem.design.n_rows)
    return replace(found, rest=found.rest * max(problem.n - 2, 1.0))  # in the place of the noise itself
