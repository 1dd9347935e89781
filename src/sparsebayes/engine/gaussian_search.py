"""A maximum of the priced evidence of a least-squares problem that neither single moves nor perturbations improve."""

from dataclasses import replace

import numpy as np

from sparsebayes.core.prices import is_free
from sparsebayes.engine.ascent import Ascent, Limits, Snapshot
from sparsebayes.engine.least_squares import LOW_NOISE, NOISE_FLOOR, LeastSquares, Solution, empty
from sparsebayes.engine.loop import Settings, Trace

LOW_NOISE_GAIN = 0.5
"""The noise is held low until no action gains more nats than this: finer work waits for the real noise.
Half or twice as much: the evidence differs by less than its scatter (experiments/constants.py)."""
LOW_NOISE_ADDITIONS = 640
"""Most columns that enter while the noise is held low, so that large designs do not stay in this stage. On Friedman #1
(5,000×20) one of three data sets ends 900 nats lower with 128, with an error of 1.69 instead of 1.41; 1,024 end at
about the same evidence, in a tenth more time."""
ROWS_PER_COLUMN = 4
"""Rows for each of these columns: three quarters of the rows are left to estimate the noise when it is released."""
FEW_ROWS = 512
"""With more rows, columns that have little outside the model may enter too (`low_noise_limits`)."""
LITTLE_NEW = 1e-5
"""Share of its squared length that such a column must have outside. On Friedman #1 (1,000×10, γ = 0.02, means of eight
data sets) the error is 1.68, 1.37, 1.29 and 1.29 with 1e-3, 1e-4, 1e-5 and 1e-6, and the evidence rises by 150 to 170
nats. With 240 rows it is 2.01, 1.97, 1.97 and 1.97 with 4e-3, 4e-4 and so on. With 5e-7 a search on 20,000 rows loses
its digits."""
NOISE_FACTORS = (0.1, 4.0)
"""A perturbation holds the noise at the found value times these; see `search`. Both together find the truth more often
than either (docs/min_gain.md)."""
PERTURBED_ADDITIONS = 10
"""Columns that a perturbation may add before the noise is released; 5 or 20 end at the same models."""
PERTURBED_TOL = 1e-2
"""Nats by which the end of a perturbation must be better; its climb has at least this tolerance. A tenth or ten times
as much ends at the same models."""


def exchanges_count(problem: LeastSquares) -> bool:
    """Whether exchanges are tried: columns have a price, and move one by one."""
    return not is_free(problem.price) and problem.prior.ties is None


def climb(
    problem: LeastSquares, start: Solution, limits: Limits, trace: Trace, settings: Settings
) -> tuple[Snapshot, bool]:
    """Single moves and, where columns have a price, exchanges, until none gains more than the limit's `tol`."""
    return finish(Ascent(problem, start), limits, trace, settings)


def finish(ascent: Ascent, limits: Limits, trace: Trace, settings: Settings) -> tuple[Snapshot, bool]:
    """Continue a climb until neither single moves nor exchanges gain enough."""
    for _ in range(settings.max_iter):
        converged = ascent.run(limits, trace, settings.max_iter, settings.callback)
        snapshot = ascent.snapshot()
        if not converged or not exchanges_count(ascent.problem):
            break
        found = snapshot.best_exchanges
        if found.best_gain <= limits.tol:
            break
        ascent.state.move(int(found.out[0]), np.inf)
        ascent.state.move(int(found.into[0]), float(found.alpha[0]))
    return snapshot, converged and not ascent.lost_digits


def least_new(n: float) -> list[float]:
    """Shares of its squared length that a column must have outside the model to enter while the noise is held low.

    One row's share is 1/n. In a wide kernel few columns have that much, and a function that many rows determine well
    needs more columns: the search would end where the noise is overestimated, often with half of the vectors and a
    quarter more error. So with many rows less is tried first.
    """
    row = 1 / max(n, 1.0)
    return [LITTLE_NEW, row] if n > FEW_ROWS and row > LITTLE_NEW else [row]


def low_noise_limits(problem: LeastSquares, least: float | None = None) -> Limits:
    """Limits of a climb from the empty model while the noise is held low; `least` is the first of `least_new`."""
    room = min(LOW_NOISE_ADDITIONS, int(problem.n / ROWS_PER_COLUMN))
    least = least_new(problem.n)[0] if least is None else least
    return Limits(LOW_NOISE_GAIN, hold_noise=True, max_additions=room, min_novelty=least)


def cold_start(problem: LeastSquares, trace: Trace, settings: Settings) -> tuple[Snapshot, bool]:
    """Climb from the empty model, where columns are free: in the beginning the noise is held low.

    Alone, the first of several columns that pay together explains little. If all the rest counted as noise at once, the
    others would never enter: in a wide kernel, where no column does much by itself, the search would end at a straight
    line. Too many columns enter this way, but those that are not worth it leave when the noise is released.

    Where columns with little outside the model cost digits, a second climb lets in only those with a row's share, and
    the better of the two ends counts.
    """
    n_before, best = len(trace.infos), None
    for least in least_new(problem.n):
        steps, ascent = Trace(trace.infos[:n_before]), Ascent(problem, empty(LOW_NOISE))
        found = _from_nothing(ascent, low_noise_limits(problem, least), steps, settings)
        if best is None or found[0].evidence > best[0].evidence:
            best, infos = found, steps.infos
        if not ascent.lost_digits:
            break
    assert best is not None
    trace.infos[:] = infos
    return best


def _from_nothing(ascent: Ascent, low: Limits, trace: Trace, settings: Settings) -> tuple[Snapshot, bool]:
    """Climb with the noise held low, then with the noise released."""
    if ascent.run(low, trace, settings.max_iter, settings.callback):
        return finish(ascent, Limits(settings.tol), trace, settings)
    ascent.state.set_scales(ascent.state.alpha_inside, ascent.problem.next_noise(ascent.state))
    return ascent.snapshot(), False


def search(problem: LeastSquares, start: Solution, trace: Trace, settings: Settings) -> tuple[Snapshot, bool]:
    """Climb from a start; with a price, perturb the end and climb again while that helps.

    With a price, the choice of features and the noise hold each other in place. The first of several features that only
    pay together never enters while the others count as noise; a feature that pays at the low noise which it brought
    itself never leaves, though both together may not pay. So the noise is held at a tenth of its value, and a bounded
    number of features enter that would not otherwise; or at four times its value, and what then does not pay leaves.
    Then the noise is released. If the end is better, it is the new start.
    """
    if not len(start.active) and problem.is_scale_free and problem.total_price([0]) == 0:
        return cold_start(problem, trace, settings)
    limits = Limits(settings.tol, hold_noise=problem.known_noise is not None)
    best, converged = climb(problem, start, limits, trace, settings)
    if is_free(problem.price) or not converged:
        return best, converged
    held = Limits(max(settings.tol, PERTURBED_TOL), hold_noise=True, max_additions=PERTURBED_ADDITIONS)
    factors = list(NOISE_FACTORS)
    while factors:
        here, extra = best.solution, Trace()
        ascent = Ascent(problem, replace(here, noise=max(here.noise * factors.pop(0), NOISE_FLOOR)))
        ascent.run(held, extra, settings.max_iter, settings.callback)
        released = Ascent(problem, _released(ascent))
        arrived = released.run(limits, extra, settings.max_iter, settings.callback)
        there = released.snapshot()
        if arrived and there.priced_evidence > best.priced_evidence + held.tol:
            best, _ = finish(released, limits, extra, settings)
            factors = list(NOISE_FACTORS)
            trace.infos.extend(extra.infos)
    return best, True


def _released(ascent: Ascent) -> Solution:
    """The end of a perturbation with its noise re-estimated, without the columns that then do not pay.

    All are dropped at once, which is quick; it cannot do harm, because the end is compared with the model before.
    """
    ascent.state.set_scales(ascent.state.alpha_inside, ascent.problem.next_noise(ascent.state))
    snapshot = ascent.snapshot()
    stays = np.isfinite(snapshot.best_moves.alpha[snapshot.active])
    solution = snapshot.solution
    return Solution(solution.active[stays], solution.alpha[stays], solution.noise)


def certificate(snapshot: Snapshot, hold_noise: bool = False) -> float:
    """The optimality gap: nats that the best change of a precision, of the noise, or exchange would still bring."""
    gap = float(snapshot.best_moves.gain.max(initial=0.0))
    if not hold_noise:
        gap = max(gap, snapshot.problem.noise_left(snapshot))
    return max(gap, snapshot.best_exchanges.best_gain) if exchanges_count(snapshot.problem) else gap
