"""Averaging over sets of columns with several chains that start far apart, and a figure of how well they agree."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from sparsebayes.core.threads import blas
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine.chain import Place, Stretch, added
from sparsebayes.engine.loop import Callback, Info
from sparsebayes.engine.sets import Draw, Sets, Visit

AGREEMENT = 0.07
"""Standard error of the least certain inclusion probability, between chains, at which they are said to agree."""
SETTLING, ROUND = 500, 1500
"""Flips of each chain that are not counted, and between two looks at how well the chains agree. On 100×200 data a chain
leaves a start that is far too dense within 500 flips."""
SETTLED = 0.6
"""Last share of the settling at which a first look is taken: chains with an easy task agree there already."""
PARTS = 3
"""Looks within the first round."""
DENSEST = 64
"""Most columns of a start. Chains at 500×10,000 spent half of their time on leaving one with 250."""
GRAM_AHEAD = 256
"""Columns of the Gram matrix that are computed in one pass beforehand, where it is too large as a whole."""
GRAM_FLOPS = 2e8
"""Multiplications for the whole Gram matrix up to which it is computed beforehand: a hundredth of a second's work."""
N_DRAWS = 1000
"""Draws that are kept, however long the chains were: means of draws are then right to 0.03 standard deviations, and the
ends of 90 % intervals to 0.07."""

Run = Callable[[Place, int], tuple[Place, Stretch]]
"""Lets a chain go on from its place, for a number of flips."""
Drawing = Callable[[IntArray, float, np.random.Generator, int], list[Draw]]
"""Draws the weights of a set at one c, so many times."""


@dataclass(frozen=True)
class Schedule:
    """How long chains run, in flips of each."""

    settling: int
    """Not counted."""
    round: int
    """Between two looks at how well the chains agree."""
    most: int

    def is_enough(self, found: "Averaged", n_flips: int, n_chains: int) -> bool:
        """Whether chains of this length agree; a single chain needs a whole round.

        Chains that are shorter than a round must agree better, by the square root of their length: a few short ones can
        agree by chance.
        """
        share = min(n_flips / self.round, 1.0)
        return found.error <= AGREEMENT * np.sqrt(share) and (n_chains > 1 or share == 1)


@dataclass(frozen=True)
class Averaged:
    """Averages over the sets that the chains have visited, in the problem's standard units."""

    probability: FloatArray
    """That each column is in."""
    mean: FloatArray
    std: FloatArray
    """Of each weight, zero where it is out."""
    sizes: FloatArray
    """Probability of 0, 1, … columns."""
    rest: Any
    """Mean of ρ, from which the noise follows; for several outputs an entry for each."""
    error: float
    """Largest standard error of an inclusion probability, from the spread between the chains."""
    effective_size: float
    """Equally weighted blocks, or sweeps, that those of the chains are worth."""
    n_flips: int
    """Of each chain."""
    draws: list[Draw] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        """Whether the chains agree."""
        return self.error <= AGREEMENT


def average(
    run: Run,
    starts: list[IntArray],
    schedule: Schedule,
    *,
    seed: int,
    draw: Drawing | None = None,
    n_draws: int = N_DRAWS,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> Averaged:
    """Let chains run from these sets until their inclusion probabilities agree, or as long as the schedule allows.

    `draw` draws weights for the sets that chains have visited; None: the chains have drawn them. `n_draws` are kept.
    """
    seeds = np.random.SeedSequence(seed).spawn(len(starts) + 1)
    *generators, last = (np.random.default_rng(each) for each in seeds)
    places = [Place(active, -1, rng) for active, rng in zip(starts, generators, strict=True)]
    parallel = Parallel(n_jobs=n_jobs)

    def go_on(n_flips: int) -> list[Stretch]:
        ends = parallel(delayed(single_threaded)(run, place, n_flips) for place in places)
        places[:] = [place for place, _ in ends]
        return [stretch for _, stretch in ends]

    settling = min(schedule.settling, schedule.most)
    settled = max(int(SETTLED * settling), 1)
    go_on(settling - settled)
    chains = [[stretch] for stretch in go_on(settled)]
    done, steps, stopped = settled, 0, False
    while True:
        found, steps = summary(chains, done), steps + 1
        if callback is not None:
            size = int(found.sizes @ np.arange(len(found.sizes)))
            stopped = bool(callback(steps, Info(np.nan, found.error, size, action="average")))
        if schedule.is_enough(found, done, len(chains)) or stopped or done >= schedule.most:
            return replace(found, draws=drawn(visits_of(chains), draw, last, n_draws))
        if steps == 1:  # that was the settling
            chains, done = [[] for _ in places], 0
        n = schedule.round if done >= schedule.round else min(-(-schedule.round // PARTS), schedule.round - done)
        n = min(n, schedule.most - done)
        for chain, stretch in zip(chains, go_on(n), strict=True):
            chain.append(stretch)
        done += n


def prepared(sets: Sets) -> Sets:
    """The same sets, with the products of columns that chains will need: all, or those most likely to be asked for.

    The rest is computed column by column when a chain needs it, so that no bit depends on what other chains asked for.
    """
    problem, design = sets.problem, sets.problem.design
    if design.n_rows * design.n_columns**2 <= GRAM_FLOPS:
        design.prepare_gram()
    if design.known_gram is not None:
        return sets
    score = np.square(problem.projection).reshape(problem.n_columns, -1).sum(axis=1)
    likely = np.argsort(-score, kind="stable")[:GRAM_AHEAD]
    for j in likely:  # the first that is not known yet brings all others with it
        design.gram_column(int(j), lambda: likely)
    return replace(sets, likely=likely)


def first_sets(found: IntArray, score: FloatArray, log_prior: FloatArray, n_rows: int, n_chains: int) -> list[IntArray]:
    """Starts far apart: what a search found, nothing, and half as many columns as there can be, by their score.

    The last has no more than `DENSEST` columns.
    """
    usable, forced = np.flatnonzero(np.isfinite(log_prior)), np.flatnonzero(log_prior == np.inf)
    order = usable[np.argsort(-np.abs(score[usable]), kind="stable")]
    others = [usable[:0], order[: min(min(n_rows, len(usable)) // 2, DENSEST)]]
    chosen = [np.intersect1d(found, usable) if k % 2 == 0 else others[k // 2 % 2] for k in range(n_chains)]
    return [np.union1d(each, forced).astype(np.intp) for each in chosen]


def single_threaded(run: Run, place: Place, n_flips: int) -> tuple[Place, Stretch]:
    """One BLAS thread: products are small, and the answer must not depend on the number of threads."""
    with blas().limit(limits=1):
        return run(place, n_flips)


def summary(chains: list[list[Stretch]], n_flips: int) -> Averaged:
    """Averages over all chains, each with the same say; a chain's states count by their weights."""
    sums = [added([stretch.sums for stretch in chain]) for chain in chains]
    totals = np.array([each.total for each in sums])
    each_probability = np.array([each.included for each in sums]) / totals[:, None]
    mean, second, sizes, rest = (
        np.mean([np.asarray(part) / total for part, total in zip(parts, totals, strict=True)], axis=0)
        for parts in zip(*(each[1:5] for each in sums), strict=True)
    )
    blocks = [[block for stretch in chain for block in stretch.visits] for chain in chains]
    shares = np.concatenate([shares_of(each) for each in blocks])
    several = len(chains) > 1
    return Averaged(
        probability=each_probability.mean(axis=0),
        mean=mean,
        std=np.sqrt(np.maximum(second - mean**2, 0.0)),
        sizes=sizes,
        rest=rest,
        error=float(each_probability.std(axis=0, ddof=1).max() / np.sqrt(len(chains))) if several else 0.0,
        effective_size=float(shares.sum() ** 2 / (shares**2).sum()),
        n_flips=n_flips,
    )


def shares_of(blocks: Sequence[Sequence[Visit | Draw]]) -> FloatArray:
    """Of each block of one chain; they sum to one."""
    shares = np.array([sum(visit.share for visit in block) for block in blocks])
    return np.asarray(shares / shares.sum())


def visits_of(chains: list[list[Stretch]]) -> list[Visit | Draw]:
    """All visits; those of each chain have shares that sum to one."""
    found = []
    for chain in chains:
        visits = [visit for stretch in chain for block in stretch.visits for visit in block]
        total = sum(visit.share for visit in visits)
        found += [replace(visit, share=visit.share / total) for visit in visits]
    return found


def drawn(visits: Sequence[Visit | Draw], draw: Drawing | None, rng: np.random.Generator, n_draws: int) -> list[Draw]:
    """`n_draws` draws of equal weight: of every set as many as its share asks for, at evenly spaced places.

    What chains have drawn themselves is kept as it is if there is not more of it.
    """
    made = [visit for visit in visits if isinstance(visit, Draw)]
    if draw is None and len(made) <= n_draws:
        return made
    ends = np.cumsum([0.0, *(visit.share for visit in visits)])
    times = np.diff(np.floor(n_draws * ends / ends[-1] + rng.random())).astype(int).tolist()
    if draw is None:
        return [replace(each, share=1.0) for each, n in zip(made, times, strict=True) for _ in range(n)]
    # A set that was visited often is factorised once.
    wanted: Counter[tuple[bytes, float]] = Counter()
    for visit, n in zip(visits, times, strict=True):
        if n and isinstance(visit, Visit):
            wanted[visit.active.tobytes(), visit.c] += n
    with blas().limit(limits=1):
        return [each for (key, c), n in wanted.items() for each in draw(np.frombuffer(key, dtype=np.intp), c, rng, n)]
