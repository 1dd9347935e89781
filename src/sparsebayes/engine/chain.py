"""One chain over sets of columns: flips in blocks, and between the blocks moves that flips make slowly.

The states of the tempered chain have the weight 1/Z, Z the sum of all columns' eagerness to flip. A move that leaves
the posterior itself unchanged is therefore accepted with Z'/Z in the place of one (Zanella & Roberts 2019;
docs/mathematics.md, section 9).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from sparsebayes.core.special import log_sum
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine.flips import Sums
from sparsebayes.engine.sets import Draw, Sets, Visit
from sparsebayes.engine.spectrum import Spectrum

TRIED = 5.0
"""κ: columns that are unlikely to be in are tried as often as if five of them were likely (Jankowiak 2023)."""
BLOCK = 20
"""Least number of flips between two draws of c."""
NEAR = 5
"""Flips of which one state is kept, as a visit. On 30 rows and 8 columns, with chains of 300 flips, deviations of draws
were 5 % off; with one state in twenty 12 %."""
LEAPS = 0.25
"""Share of the blocks with a leap. It costs as much as a block of flips, and is for dense models only."""
REFRESHED = 8
"""Draws of the same c after which everything is computed from scratch: rank-one updates collect rounding."""
WORST_CONDITION = 1e5
"""Condition of M up to which M itself is updated, if it is smaller. In 160 flips with as many columns as rows, log odds
are 1e-5 off at this condition and worth nothing at 1e7; updates by columns, which are refined, are 1e-4 off at 1e9."""
FURTHEST = 8
"""A leap changes at most one column in eight."""


@dataclass
class Place:
    """Where a chain is: all that it needs to go on."""

    active: IntArray
    slab: int
    """Index of c; -1: to be drawn."""
    rng: np.random.Generator
    eta: FloatArray | None = None
    """The predictor, where sites are drawn from it."""
    noise: float | None = None
    """The noise variance, where sites depend on it."""
    favourites: IntArray | None = None
    """The columns that are in every sweep, where not all are."""


@dataclass
class Stretch:
    """What one stretch of a chain has seen."""

    sums: Sums
    visits: Sequence[Sequence[Visit | Draw]] = field(default_factory=list)
    """Those of each block, or sweep. Weights are drawn at the end, or at once where the chain needs them to go on."""


class Seen(NamedTuple):
    """A set, as a function of c, and its evidence for all c, with the prior odds of its columns."""

    active: IntArray
    spectrum: Spectrum
    log_evidence: FloatArray


class Chain:
    """A chain at work."""

    def __init__(self, sets: Sets, rng: np.random.Generator) -> None:
        self.sets, self.rng, self.slab = sets, rng, -1
        self._kept = 0  # draws of c since it changed, or the set by a leap
        self.flips = sets.flips(TRIED * sets.tried)

    def start(self, active: IntArray, slab: int) -> None:
        """Take up a set; c is drawn where it is not known."""
        spectrum = self.sets.spectrum(active)
        self.slab = self._draw_one(self.sets.log_evidence(spectrum, len(active))) if slab < 0 else slab
        self._put(active, spectrum)

    @property
    def active(self) -> IntArray:
        """The columns inside."""
        return np.array(self.flips.active, dtype=np.intp)

    @property
    def c(self) -> float:
        """Prior variance of a weight over the noise variance."""
        return float(self.sets.prior.slabs[self.slab])

    def _put(self, active: IntArray, spectrum: Spectrum) -> None:
        """Hand a set at the present c to the flips, everything from scratch."""
        sets, problem, by_rows = self.sets, self.sets.problem, self.sets.by_rows(len(active))
        if by_rows and self.c * spectrum.e.max() > WORST_CONDITION:
            by_rows, spectrum = False, sets.spectrum_by_columns(active)
        others = sets.rows if by_rows else sets.gram_rows(active)
        s, q = spectrum.factors(self.c, others, problem.column_energy, problem.projection)
        odds = sets.prior.log_odds(self.slab)
        if sets.n_uncounted:
            odds = np.concatenate([np.repeat(odds[0], sets.n_uncounted), odds])
        rest = np.maximum(spectrum.rest(np.array(self.c)), sets.floor)
        self.flips.place(
            active, others[: 0 if by_rows else None], spectrum.inner(self.c), by_rows, s, q, rest, self.c, odds
        )

    def _draw_one(self, log_p: FloatArray) -> int:
        """An index, with probabilities known up to a factor."""
        cumulative = np.cumsum(np.exp(log_p - log_p.max()))
        return int(np.searchsorted(cumulative, self.rng.random() * cumulative[-1], side="right"))

    def _accepts(self, before: float) -> bool:
        """With probability Z'/Z."""
        return bool(np.log(self.rng.random()) < self.flips.log_total - before)

    def renew(self, old: IntArray, leaps: bool) -> None:
        """Draw c given the set `old`, or given another that a leap leads to."""
        before, slab = self.flips.log_total, self.slab
        here = self._seen(old)
        there = self._leap(old, here) if leaps else here
        self.slab = self._draw_one(there.log_evidence)
        self._kept = self._kept + 1 if self.slab == slab and there is here else 0
        if self._kept % REFRESHED:
            return
        self._put(there.active, there.spectrum)
        if self._kept == 0 and not self._accepts(before):
            self.slab = slab
            self._put(old, here.spectrum)

    def _seen(self, active: IntArray) -> "Seen":
        spectrum, own = self.sets.spectrum(active), self.sets.log_prior[active]
        log_evidence = self.sets.log_evidence(spectrum, len(active)) + own[np.isfinite(own)].sum()
        return Seen(active, spectrum, log_evidence)

    def _leap(self, old: IntArray, here: "Seen") -> "Seen":
        """Add or take out many columns at once: flips are slow between sparse and dense models.

        Any columns, and their number is log-uniform. This test of the new set needs its evidence alone, with c summed
        out; only a set that passes it is computed for all columns, for the second test, Z'/Z (delayed acceptance).
        """
        movable = self.sets.movable
        inside = np.zeros(len(movable), dtype=bool)
        inside[old] = True
        n_in = int((movable & inside).sum())
        n_out = int(movable.sum()) - n_in
        n = int(max(1, (n_in + n_out) // FURTHEST) ** self.rng.random())
        grows = self.rng.random() < 0.5
        if n > (n_out if grows else n_in):
            return here
        inside[self.rng.choice(np.flatnonzero(movable & (inside != grows)), n, replace=False)] = grows
        there = self._seen(np.flatnonzero(inside))
        forth, back = (n_out, n_in + n) if grows else (n_in, n_out + n)
        ways = log_binomial(forth, n) - log_binomial(back, n)
        gain = float(log_sum(there.log_evidence) - log_sum(here.log_evidence))
        return there if np.log(self.rng.random()) < gain + ways else here

    def exchange(self) -> None:
        """Take a column out and put one in with its posterior probability.

        Columns that stand in for each other change places so, where two flips would pass through an unlikely set.
        """
        active = self.active
        inside = active[self.sets.movable[active]]
        if not len(inside):
            return
        before, out = self.flips.log_total, int(inside[int(self.rng.random() * len(inside))])
        self.flips.toggle(out)
        log_in = np.where(self.sets.movable, self.flips.log_in, -np.inf)
        log_in[active[active != out]] = -np.inf
        into = self._draw_one(log_in)
        self.flips.toggle(into)
        if not self._accepts(before):
            self.flips.toggle(into)
            self.flips.toggle(out)

    def block(self) -> tuple[int, list[Visit]]:
        """A draw of c, perhaps after a leap, an exchange, and flips. Returns the number of flips and the visits."""
        self.renew(self.active, leaps=self.rng.random() < LEAPS)
        self.exchange()
        n = max(BLOCK, len(self.flips.active) // 2)
        choices, picks = self.rng.random((2, n))
        return n, [self._visit(choices[at : at + NEAR], picks[at : at + NEAR]) for at in range(0, n, NEAR)]

    def _visit(self, choices: FloatArray, picks: FloatArray) -> Visit:
        """Some flips, and one of their states."""
        share = self.flips.run(choices, picks)
        return Visit(np.sort(np.array(self.flips.picked, dtype=np.intp)), self.c, share)


def log_binomial(n: int, m: int) -> float:
    """Logarithm of the number of ways to choose m out of n."""
    return float(gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1))


def added(parts: list[Sums]) -> Sums:
    """Sums of several stretches of one chain."""
    return Sums(*(sum(values[1:], start=values[0]) for values in zip(*parts, strict=True)))


def run(sets: Sets, place: Place, n_flips: int) -> tuple[Place, Stretch]:
    """Let a chain go on for `n_flips` flips."""
    chain, done, visits = Chain(sets, place.rng), 0, []
    chain.start(place.active, place.slab)
    while done < n_flips:
        n, seen = chain.block()
        done += n
        visits.append(seen)
    return Place(chain.active, chain.slab, chain.rng), Stretch(Sums(*chain.flips.sums), visits)
