"""One chain over sets of columns: blocks of flips, and between them a draw of c, an exchange and a draw of weights.

The states of the tempered chain have the weight 1/Z, Z the sum of all columns' eagerness to flip. A move that is drawn from
the posterior itself is therefore accepted with probability Z'/Z (Zanella & Roberts 2019; docs/mathematics.md, section 9).
"""

from dataclasses import dataclass, field
from functools import cached_property
from weakref import proxy

import numpy as np

from scipy.special import gammaln, logsumexp
from sparsebayes.core.inclusion import InclusionPrior
from sparsebayes.core.linalg import factorise
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine.flips import Sums, make_flips
from sparsebayes.engine.least_squares import NOISE_FLOOR, LeastSquares
from sparsebayes.engine.spectrum import OfColumns, OfRows, Spectrum

TRIED = 5.0
"""κ: columns that are unlikely to be in are tried as often as if so many of them were likely (Jankowiak 2022)."""
LEAP = True
def log_binomial(n: int, m: int) -> float:
    return float(gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1))
BLOCK = 20
"""Least number of flips between two draws of c."""


@dataclass(frozen=True)
class Averaging:
    """A least-squares problem whose sets of columns are averaged over."""

    problem: LeastSquares
    log_prior: FloatArray
    """Log prior odds of each column, on top of those of the set's size; infinite: always in, or never."""
    prior: InclusionPrior
    learns_noise: bool = True

    @cached_property
    def n(self) -> float:
        """Degrees of freedom of the noise; infinite where it is known."""
        return self.problem.n + 2 * self.problem.c if self.learns_noise else np.inf

    @cached_property
    def floor(self) -> float:
        """What the prior of the noise adds to ρ: it cannot vanish."""
        return NOISE_FLOOR * self.problem.n + 2 * self.problem.d if self.learns_noise else 0.0

    @cached_property
    def forced(self) -> IntArray:
        """Columns that are always in."""
        return np.flatnonzero(self.log_prior == np.inf)


@dataclass
class Place:
    """Where a chain is: all that it needs to go on."""

    active: IntArray
    slab: int
    """Index of c."""
    rng: np.random.Generator


@dataclass(frozen=True)
class Draw:
    """One draw of everything: the weights of a set, the noise and the intercept, and its weight."""

    active: IntArray
    weights: FloatArray
    noise: float
    level: float
    share: float


@dataclass
class Stretch:
    """What one stretch of a chain has seen."""

    sums: Sums
    draws: list[Draw] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)


class Chain:
    """A chain at work."""

    def __init__(self, target: Averaging, place: Place) -> None:
        self.target, self.rng, self.slab = target, place.rng, place.slab
        problem = target.problem
        self.design = problem.design
        n_columns = self.design.n_columns
        wide = n_columns > self.design.n_rows
        self.rows = self.design.columns(slice(None)) if wide else np.empty((0, n_columns))
        this = proxy(self)  # no circle of references: the compiled flips could not be collected
        self.flips = make_flips(
            lambda j: this.design.gram_column(j, nothing),
            self.rows,
            problem.projection,
            target.log_prior,
            target.n,
            TRIED / max(target.prior.n_features, 1),
        )
        self.movable = np.isfinite(target.log_prior)
        self.settle(place.active, draw=place.slab < 0)
        self.stretch = Stretch(Sums(*self.flips.sums))

    def settle(self, active: IntArray, draw: bool = False) -> Spectrum:
        """Compute a set from scratch, and draw c first where there is none yet."""
        problem = self.target.problem
        self.by_rows = len(self.rows) > 0 and 2 * len(active) > len(self.rows)
        if self.by_rows:
            self.gram = np.empty((0, self.design.n_columns))
            spectrum: Spectrum = OfRows.of(self.rows, active, problem.t, problem.rest + self.target.floor)
        else:
            self.gram = self._gram(active)
            spectrum = OfColumns.of(
                self.gram, active, problem.column_energy, problem.projection, problem.energy + self.target.floor
            )
        self.active = active
        if draw:
            self.slab = self._draw_slab(spectrum)
        self.put(spectrum)
        return spectrum

    def put(self, spectrum: Spectrum) -> None:
        """Hand the set at the present c to the flips."""
        c = float(self.target.prior.slabs[self.slab])
        s, q = spectrum.factors(c)
        odds = self.target.prior.log_odds(self.slab)
        if len(self.target.forced):
            odds = np.concatenate([np.repeat(odds[0], len(self.target.forced)), odds])
        rest = float(spectrum.rest(np.array(c)))
        self.flips.place(self.active, self.gram, spectrum.inner(c), self.by_rows, s, q, rest, c, odds)

    def _gram(self, active: IntArray) -> FloatArray:
        known = self.design.known_gram
        if known is not None:
            return known[active]
        columns = [self.design.gram_column(int(j), nothing) for j in active]
        return np.array(columns).reshape(len(active), self.design.n_columns)

    def _log_slabs(self, spectrum: Spectrum, k: int) -> FloatArray:
        """log p(set, c, t) for all c, with weights, noise and inclusion rate integrated out."""
        slabs, target = self.target.prior.slabs, self.target
        rest = spectrum.rest(slabs)
        fit = -0.5 * target.n * np.log(np.maximum(rest, target.floor)) if target.learns_noise else -0.5 * rest
        return target.prior.log_size(k - len(target.forced)) + fit - 0.5 * spectrum.log_volume(slabs)

    def _draw_slab(self, spectrum: Spectrum) -> int:
        """A draw of c given the set."""
        return self._draw_one(self._log_slabs(spectrum, len(self.active)))

    def _draw_one(self, log_p: FloatArray) -> int:
        """An index, with probabilities known up to a factor."""
        cumulative = np.cumsum(np.exp(log_p - log_p.max()))
        return int(np.searchsorted(cumulative, self.rng.random() * cumulative[-1], side="right"))

    def change_slab(self) -> None:
        """Draw c, accept it with Z'/Z."""
        before, slab = self.flips.total, self.slab
        spectrum = self.settle(np.array(self.flips.active, dtype=np.intp))
        self.slab = self._draw_slab(spectrum)
        if self.slab == slab:
            return
        self.put(spectrum)
        if self.rng.random() * before > self.flips.total:
            self.slab = slab
            self.put(spectrum)

    def exchange(self) -> None:
        """Take a column out and put one in with its posterior probability; accept with Z'/Z.

        Columns that stand in for each other change places so, where two flips would pass through an unlikely set.
        """
        inside = [j for j in self.flips.active if self.movable[j]]
        if not inside:
            return
        before, out = self.flips.total, inside[int(self.rng.random() * len(inside))]
        self.flips.toggle(out)
        log_in = np.where(self.movable, self.flips.log_in, -np.inf)
        log_in[self.flips.active] = -np.inf
        into = self._draw_one(log_in)
        self.flips.toggle(into)
        if self.rng.random() * before > self.flips.total:
            self.flips.toggle(into)
            self.flips.toggle(out)

    def leap(self) -> None:
        """Add or take out many columns at once, and draw c anew: between sparse and dense models single flips are slow.

        The columns are any; their number is log-uniform. The first test needs the evidence of the new set alone; only
        a set that passes it is computed for all columns, for the second test, Z'/Z.
        """
        before, k = self.flips.total, len(self.flips.active)
        inside = self.target_mask(self.flips.active)
        grows = self.rng.random() < 0.5
        pool = np.flatnonzero(self.movable & (~inside if grows else inside))
        most = max(1, int(self.movable.sum()) // 8)
        m = int(most ** self.rng.random())
        if m > len(pool):
            return
        chosen = self.rng.choice(pool, m, replace=False)
        old = np.array(self.flips.active, dtype=np.intp)
        new = np.union1d(old, chosen) if grows else np.setdiff1d(old, chosen)
        n_out = int(self.movable.sum()) - (k - len(self.target.forced))
        n_in = k - len(self.target.forced)
        ways = log_binomial(n_out, m) - log_binomial(n_in + m, m) if grows else log_binomial(n_in, m) - log_binomial(n_out + m, m)
        here, there = (logsumexp(self._log_slabs(self._bare(each), len(each))) for each in (old, new))
        if np.log(self.rng.random()) > there - here + ways:
            return
        self.tries = getattr(self,'tries',0)+1
        slab = self.slab
        self.settle(new, draw=True)
        if self.rng.random() * before > self.flips.total:
            self.slab = slab
            self.settle(old)
        else: self.leaps=getattr(self,'leaps',0)+1

    def target_mask(self, active):
        mask = np.zeros(self.design.n_columns, dtype=bool)
        mask[active] = True
        return mask

    def _bare(self, active: IntArray) -> Spectrum:
        """The spectrum of a set without what it says of other columns."""
        problem = self.target.problem
        nobody = np.empty(0)
        if len(self.rows) and 2*len(active) > len(self.rows):
            chosen = self.rows[:, active]
            e, U = np.linalg.eigh(chosen @ chosen.T)
            return OfRows(np.maximum(e, 0), U, U, U.T @ problem.t, problem.rest + self.target.floor)
        if len(self.rows):
            chosen = self.rows[:, active]
            gram = chosen.T @ chosen
        else:
            gram = self._gram(active)[:, active]
        if not len(active): return OfColumns(nobody,nobody,nobody,nobody,nobody,nobody,problem.energy+self.target.floor)
        e, U = np.linalg.eigh(gram)
        return OfColumns(np.maximum(e, 0), U, U, U.T @ problem.projection[active], nobody, nobody, problem.energy + self.target.floor)

    def block(self, collect: bool) -> int:
        """A draw of c, an exchange, and as many flips as cost about the same. Returns the number of flips."""
        self.change_slab()
        self.exchange()
        if LEAP and self.rng.random() < 0.25: self.leap()
        n = max(BLOCK, len(self.flips.active) // 2)
        share = self.flips.run(self.rng.random(n), self.rng.random(n))
        if collect:
            self.stretch.draws.append(self.draw(np.sort(np.array(self.flips.picked, dtype=np.intp)), share))
            self.stretch.sizes.append(len(self.flips.picked))
            self.stretch.shares.append(share)
        return n

    def draw(self, active: IntArray, share: float) -> Draw:
        """Draw noise, weights and intercept given a set and the present c."""
        problem, rng, c = self.target.problem, self.rng, float(self.target.prior.slabs[self.slab])
        k = len(active)
        if len(self.rows) and k > len(self.rows):
            weights, noise = self._draw_by_rows(active, c)
        else:
            matrix = self._gram(active)[:, active]
            matrix.flat[:: k + 1] += 1 / c
            factor, projection = factorise(matrix), problem.projection[active]
            mean = factor.solve(projection)
            noise = self._draw_noise(problem.energy + self.target.floor - float(projection @ mean))
            weights = mean + np.sqrt(noise) * factor.colour(rng.standard_normal(k))
        spread = np.sqrt(noise / problem.n_weighted) if problem.flat_intercept else 0.0
        return Draw(active, weights, noise, spread * rng.standard_normal(), share)

    def _draw_noise(self, rest: float) -> float:
        if not self.target.learns_noise:
            return 1.0
        return max(rest, self.target.floor) / (2 * self.rng.gamma(0.5 * self.target.n))

    def _draw_by_rows(self, active: IntArray, c: float) -> tuple[FloatArray, float]:
        """A draw from the prior, corrected by what the rows say of it (Bhattacharya and others 2016)."""
        Phi, t = self.rows[:, active], self.target.problem.t
        factor = factorise(np.eye(len(Phi)) + c * (Phi @ Phi.T))
        rest = float(t @ factor.solve(t)) + self.target.problem.rest + self.target.floor
        noise = self._draw_noise(rest)
        prior = np.sqrt(noise * c) * self.rng.standard_normal(len(active))
        data = Phi @ prior + np.sqrt(noise) * self.rng.standard_normal(len(t))
        return prior + c * (Phi.T @ factor.solve(t - data)), noise


def nothing() -> IntArray:
    """No column is computed ahead of its need: its digits would depend on which others are."""
    return np.empty(0, dtype=np.intp)


def run(target: Averaging, place: Place, n_flips: int, collect: bool) -> tuple[Place, Stretch]:
    """Let a chain go on for so many flips."""
    chain = Chain(target, place)
    done = 0
    while done < n_flips:
        done += chain.block(collect)
    chain.stretch.sums = Sums(*chain.flips.sums)
    return Place(np.array(chain.flips.active, dtype=np.intp), chain.slab, chain.rng), chain.stretch
