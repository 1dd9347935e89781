"""Averaging over sets of columns with several chains that start far apart, and a figure of how well they agree."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import ThreadpoolController

from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine.chain import Place, Stretch, added, run
from sparsebayes.engine.loop import Callback, Info
from sparsebayes.engine.sets import Draw, Sets

SETTLING = 500
"""Flips of each chain that are not counted."""
ROUND = 1500
"""Flips of each chain between two looks at how well the chains agree."""
AGREEMENT = 0.1
"""Standard error of an inclusion probability, between chains, at which they are said to agree."""
GRAM_AHEAD = 256
"""Columns of the Gram matrix that are computed in one pass beforehand, where it is too large as a whole."""
GRAM_FLOPS = 4e9
"""Multiplications for the whole Gram matrix up to which it is computed beforehand: about a second's work."""


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
    noise: float
    draws: list[Draw]
    error: float
    """Largest standard error of an inclusion probability, from the spread between the chains."""
    effective_size: float
    """Independent sets that the draws are worth."""
    n_flips: int
    """Of each chain."""
    converged: bool


def average(
    sets: Sets,
    start: IntArray,
    *,
    n_chains: int,
    max_flips: int,
    seed: int,
    n_jobs: int | None = None,
    callback: Callback | None = None,
) -> Averaged:
    """Let chains run until their inclusion probabilities agree, or for `max_flips` flips each.

    Every second chain starts at `start`; the others start with nothing and with half as many columns as there can be.
    """
    prepare(sets)
    generators = [np.random.default_rng(each) for each in np.random.SeedSequence(seed).spawn(n_chains)]
    starts = first_sets(sets, start, n_chains)
    places = [Place(active, -1, rng) for active, rng in zip(starts, generators, strict=True)]
    parallel = Parallel(n_jobs=n_jobs)
    ends = parallel(delayed(single_threaded)(sets, place, min(SETTLING, max_flips)) for place in places)
    places = [place for place, _ in ends]
    chains: list[list[Stretch]] = [[] for _ in places]
    done, steps, stopped = 0, 0, False
    while True:
        n = min(ROUND, max_flips - done)
        ends = parallel(delayed(single_threaded)(sets, place, n) for place in places)
        done += n
        places = [place for place, _ in ends]
        for chain, (_, stretch) in zip(chains, ends, strict=True):
            chain.append(stretch)
        found = summary(sets, chains, done)
        if callback is not None:
            steps += 1
            size = int(found.sizes @ np.arange(len(found.sizes)))
            stopped = bool(callback(steps, Info(np.nan, found.error, size, action="average")))
        if found.converged or stopped or done >= max_flips:
            return found


def prepare(sets: Sets) -> None:
    """Compute the Gram matrix, or the columns of it that are most likely to be asked for.

    The rest is computed column by column when a chain needs it, so that no bit depends on what other chains asked for.
    """
    problem, design = sets.problem, sets.problem.design
    if design.n_rows * design.n_columns**2 <= GRAM_FLOPS:
        design.prepare_gram()
    if design.known_gram is None:
        likely = np.argsort(-np.abs(problem.projection), kind="stable")[:GRAM_AHEAD]
        design.gram_column(int(likely[0]), lambda: likely)


def first_sets(sets: Sets, start: IntArray, n_chains: int) -> list[IntArray]:
    """Far apart: what the search found, nothing, and the columns that go best with the sets alone."""
    usable = np.flatnonzero(np.isfinite(sets.log_prior))
    order = usable[np.argsort(-np.abs(sets.problem.projection[usable]), kind="stable")]
    many = order[: min(sets.problem.design.n_rows, len(usable)) // 2]
    others = [usable[:0], many]
    start = np.intersect1d(start, usable)
    chosen = [start if k % 2 == 0 else others[k // 2 % 2] for k in range(n_chains)]
    return [np.union1d(each, sets.forced).astype(np.intp) for each in chosen]


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def single_threaded(sets: Sets, place: Place, n_flips: int) -> tuple[Place, Stretch]:
    """One BLAS thread: products are small, and the answer must not depend on the number of threads."""
    with _blas().limit(limits=1):
        return run(sets, place, n_flips)


def summary(sets: Sets, chains: list[list[Stretch]], n_flips: int) -> Averaged:
    """Averages over all chains, each with the same say; a chain's states count by their weights."""
    sums = [added([stretch.sums for stretch in chain]) for chain in chains]
    totals = np.array([each.total for each in sums])
    each_probability = np.array([each.included for each in sums]) / totals[:, None]
    probability, mean, second, sizes = (
        np.mean([np.asarray(part) / total for part, total in zip(parts, totals, strict=True)], axis=0)
        for parts in zip(*(each[:4] for each in sums), strict=True)
    )
    noise = float(np.mean([each.noise / each.total for each in sums])) / max(sets.n - 2, 1.0)
    error = float(each_probability.std(axis=0, ddof=1).max()) / np.sqrt(len(chains)) if len(chains) > 1 else 0.0
    draws = [
        replace(draw, share=draw.share / (total * len(chains)))
        for chain, total in zip(chains, totals, strict=True)
        for stretch in chain
        for draw in stretch.draws
    ]
    shares = np.array([draw.share for draw in draws])
    return Averaged(
        probability=probability,
        mean=mean,
        std=np.sqrt(np.maximum(second - mean**2, 0.0)),
        sizes=sizes,
        noise=noise if sets.learns_noise else 1.0,
        draws=draws,
        error=error,
        effective_size=float(shares.sum() ** 2 / (shares**2).sum()),
        n_flips=n_flips,
        converged=error <= AGREEMENT,
    )
