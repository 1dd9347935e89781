"""Add, re-estimate or delete one basis at a time: the fast marginal likelihood search (mathematics, section 4).

Tipping & Faul (2003), with four differences: the state of every candidate is kept by rank-one updates, the action
taken is the one with the largest gain of *priced* evidence, the certificate (no action gains more than `tol`) is the
stop rule, and where nothing but the evidence has a say, σ² moves with every action and all precisions together now and
then. And `search` looks further than the next action: from nothing it begins with little noise, and because a price
makes the support a combinatorial choice, it also explores; see there.
"""

from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from sparsebayes.core.evidence import Moves, log_hyper_prior
from sparsebayes.core.linalg import JITTER_LADDER
from sparsebayes.engine import compiled
from sparsebayes.engine.candidates import COPY, PREFETCH, Candidates, n_near
from sparsebayes.engine.loop import Callback, Info, Trace, iterate
from sparsebayes.engine.problem import BEGIN_NOISE, NOISE_FLOOR, GaussianProblem, Solution

ANY = 2**62
"""Any number: of additions, of steps."""
EAGER = 10
"""After each of the first actions, so many, the noise is re-estimated (but see `Ascent`)."""
REFRESH = 5
"""Afterwards the noise is re-estimated, and all is recomputed from scratch, every so many actions."""
SETTLE = 15
"""Where there are joint steps: all precisions move together, and all is recomputed, every so many actions."""
BEGIN_GAIN = 0.5
"""A search from nothing, where nothing is priced, holds the noise low until no action gains more nats than this,"""
BEGIN_ADDITIONS = 128
"""or so many columns are in (at most one for every four rows)."""
EXPLORE_NOISE = (0.1, 4.0)
"""Excursions hold the noise at the found value times these."""
EXPLORE_ADDITIONS = 10
"""An excursion may add this many features before the noise is released."""


@dataclass(frozen=True)
class Limits:
    """How far a way up goes, and what it may do."""

    tol: float
    """It ends when no action gains more."""
    hold_noise: bool = False
    max_additions: int = ANY
    fresh: float = 0.0
    """What enters must have at least this share of its length outside the model."""

    def joint(self, problem: GaussianProblem) -> bool:
        """Whether all precisions also move together, now and then; a way with few additions is too short for that."""
        return problem.is_scale_free and (not self.hold_noise or self.max_additions == ANY)


def ascend(
    problem: GaussianProblem,
    start: Solution,
    *,
    trace: Trace,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    hold_noise: bool = False,
    max_additions: int = ANY,
) -> tuple[Candidates, bool]:
    """Take the best action until none gains more than `tol`; σ² is re-estimated in between, unless it is held."""
    ascent, limits = way_from(problem, start), Limits(tol, hold_noise, max_additions)
    converged = go(ascent, limits, trace=trace, max_iter=max_iter, callback=callback)
    return ascent.end(), converged


def from_nothing(
    problem: GaussianProblem, *, trace: Trace, tol: float, max_iter: int, callback: Callback | None
) -> tuple[Candidates, bool]:
    """The same without a start, where no column has to pay a price: in the beginning the noise is held low.

    Alone, the first of several columns that pay together explains little. Were all the rest called noise at once, the
    others would never enter: in a wide kernel, where no column does much by itself, the search would end at a straight
    line. Too many come in this way, but those that are not worth it leave again when the noise is released. What enters
    must differ from what is in by as much as one row can say; below that rounding would choose among neighbours.
    """
    low, ascent = beginning(problem), way_from(problem, empty(BEGIN_NOISE))
    for limits in (low, Limits(tol)):
        arrived = go(ascent, limits, trace=trace, max_iter=max_iter, callback=callback)
        if not arrived:
            break
    state = ascent.end()
    if limits is low:  # cut short
        state.update_noise()
    return state, arrived


def beginning(problem: GaussianProblem) -> Limits:
    """How far the noise is held low."""
    room = min(BEGIN_ADDITIONS, int(problem.n / 4))
    return Limits(BEGIN_GAIN, hold_noise=True, max_additions=room, fresh=1 / problem.n)


def go(
    ascent: "Ascent | CompiledAscent", limits: Limits, *, trace: Trace, max_iter: int, callback: Callback | None
) -> bool:
    """Step until the limits are reached; says whether they were."""
    ascent.begin(limits, ahead=min(max_iter, ANY) if callback is None else 1)
    _, arrived = iterate(
        None, lambda _: (None, ascent.step()), trace=trace, tol=limits.tol, max_iter=max_iter, callback=callback
    )
    return arrived


class Ascent:
    """The way up from a start: one step is one action, or a re-estimation of the noise, or both.

    Without a price or a Gamma prior (`Candidates.rescale`) σ² follows every action at once, unless it is held, and
    joint steps replace most of the small re-estimates by which neighbouring columns come to share their work.
    """

    def __init__(self, problem: GaussianProblem, start: Solution) -> None:
        self.state = Candidates(problem, start)
        self.state.narrow()

    def begin(self, limits: Limits, ahead: int) -> None:
        """Go on under these limits; `ahead` is for the compiled form."""
        self.tol, self.hold_noise, self.fresh = limits.tol, limits.hold_noise, limits.fresh
        self.left = limits.max_additions
        """Additions that are still allowed."""
        self.joint = limits.joint(self.state.problem)
        self.n_actions = 0
        self.age = 0
        """Actions since all was computed from scratch, where there are joint steps."""

    def step(self) -> Info:
        """The best action, if any gains more than `tol`, and what is due after it."""
        state, tol = self.state, self.tol
        before, action = state.objective, "noise"
        best, top, goal = self._best()
        to_gain = max(top, 0.0 if self.hold_noise else state.noise_gain)
        if top > tol:
            state.objective += top + _not_in_gain(state, best, goal)
            action = state.move(best, goal)
            self.left -= action == "add"
            self.n_actions += 1
        due = self.n_actions % REFRESH == 0 or top <= tol
        if self.joint and top > tol and (self.hold_noise or self.n_actions > EAGER):
            self._go_on()
        elif self.hold_noise and due:
            state.refresh()
        elif not self.hold_noise and to_gain > tol and (due or self.n_actions <= EAGER):
            state.update_noise()
        return Info(before, to_gain, len(state.active), state.jitter, action)

    def _best(self) -> tuple[int, float, float]:
        """The basis to move, the nats which that brings, and its new precision."""
        state, best = self.state, self._best_near()
        if best[1] > max(self.tol, state.beyond):
            return best
        if best[1] <= self.tol and self.age:  # before it ends, all precisions together
            self._settle()
        state.survey()
        state.narrow()
        return self._best_near()

    def _best_near(self) -> tuple[int, float, float]:
        """The same among those in the model and near it."""
        state, moves = self.state, self.state.moves()
        reachable = np.isfinite(state.alpha)
        if self.left:
            enough = self.fresh * state.problem.column_energy <= state.S * state.noise  # with nothing in, s = β‖φ‖²
            reachable[state.near[enough[state.near]]] = True
        brings = np.where(reachable, moves.gain, 0.0)
        best = int(np.argmax(brings))
        return best, float(brings[best]), float(moves.alpha[best])

    def _go_on(self) -> None:
        if not self.hold_noise:
            self.state.rescale()
        self.age += 1
        if self.age == SETTLE:
            self._settle()

    def _settle(self) -> None:
        self.state.settle(self.tol, self.hold_noise)
        self.age = 0

    def end(self) -> Candidates:
        """Where it stands, computed from scratch."""
        self.state.survey()
        return self.state


class CompiledAscent:
    """The same, compiled (`_sequential.cpp`)."""

    def __init__(self, problem: GaussianProblem, start: Solution) -> None:
        assert compiled.Search is not None
        self.problem = problem
        self.search = compiled.Search(
            problem,
            start.active.tolist(),
            start.alpha.tolist(),
            start.noise,
            copy=COPY,
            refresh=REFRESH,
            eager=EAGER,
            settle=SETTLE,
            near=n_near(problem.n_columns),
            prefetch=PREFETCH,
            noise_floor=NOISE_FLOOR,
            jitter_ladder=list(JITTER_LADDER),
        )

    def begin(self, limits: Limits, ahead: int) -> None:
        """As above; up to so many steps may be made before they are asked for."""
        joint = limits.joint(self.problem)
        self.search.begin(limits.tol, limits.hold_noise, limits.max_additions, limits.fresh, joint)
        self.ahead = ahead
        self.made: deque[Info] = deque()

    def step(self) -> Info:
        """As above."""
        if not self.made:
            self.made.extend(Info(*step) for step in self.search.steps(self.ahead))
            self.ahead = max(self.ahead - len(self.made), 1)
        return self.made.popleft()

    def end(self) -> Candidates:
        """As above."""
        return Candidates.surveyed(self.problem, self.search.standing())


def way_from(problem: GaussianProblem, start: Solution) -> Ascent | CompiledAscent:
    """In the form that there is."""
    return Ascent(problem, start) if compiled.Search is None else CompiledAscent(problem, start)


def _not_in_gain(state: Candidates, j: int, goal: float) -> float:
    """What a move adds to the objective beside its gain: there is no price in it, and the hyper-prior of what is in."""
    was, p = float(state.alpha[j]), state.problem
    if np.isfinite(was) and np.isfinite(goal):
        return 0.0
    outside, inside = state.prices()
    if np.isinf(was):
        return outside + float(log_hyper_prior(goal, p.a, p.b[j]))
    return -inside - float(log_hyper_prior(was, p.a, p.b[j]))


def search(
    problem: GaussianProblem,
    start: Solution,
    *,
    trace: Trace,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> tuple[Candidates, bool]:
    """A maximum of the priced evidence that neither single actions nor excursions can improve.

    With a price, the choice of features and the noise hold each other in place. The first of several features that only
    pay together never enters while the others count as noise; a feature that pays at the low noise which it brought
    itself never leaves, though both together may not pay. So from each maximum the search makes excursions: the noise
    is held at a tenth, and a bounded number of features enter that would not otherwise; or at four times its value, and
    what then does not pay leaves. Then the noise is released. If the end is better, it is the new start.

    Without a price a search from nothing has its own beginning (`from_nothing`), whatever the noise of the start.
    """
    if not len(start.active) and problem.is_scale_free and problem.total_price(1) == 0:
        return from_nothing(problem, trace=trace, tol=tol, max_iter=max_iter, callback=callback)
    best, converged = ascend(problem, start, trace=trace, tol=tol, max_iter=max_iter, callback=callback)
    if problem.price == 0 or not converged:
        return best, converged
    factors = list(EXPLORE_NOISE)
    while factors:
        here, excursion = best.solution(), Trace()
        away, _ = ascend(
            problem,
            replace(here, noise=max(here.noise * factors.pop(0), NOISE_FLOOR)),
            trace=excursion,
            tol=max(tol, 1e-2),
            max_iter=max_iter,
            callback=callback,
            hold_noise=True,
            max_additions=EXPLORE_ADDITIONS,
        )
        there, arrived = ascend(
            problem, _released(away), trace=excursion, tol=tol, max_iter=max_iter, callback=callback
        )
        if arrived and priced_evidence(there) > priced_evidence(best) + max(tol, 1e-2):
            best, factors = there, list(EXPLORE_NOISE)
            trace.infos.extend(excursion.infos)
    return best, True


def _released(away: Candidates) -> Solution:
    """Where an excursion ended, with the noise that fits it and without all that then does not pay.

    Dropping all at once is quick, and harmless where the end is compared anyway.
    """
    away.update_noise()
    solution = away.solution()
    stays = np.isfinite(away.moves().alpha[solution.active])
    return Solution(solution.active[stays], solution.alpha[stays], solution.noise)


def priced_evidence(state: Candidates) -> float:
    """Log evidence less the price of what is kept: the log posterior probability of the model, up to a constant."""
    return state.evidence - state.problem.total_price(len(state.active))


def certificate(moves: Moves, noise_gain: float) -> float:
    """The optimality gap: nats that the best single change of a precision or of the noise would bring."""
    return max(float(moves.gain.max(initial=0.0)), noise_gain)


def empty(noise: float) -> Solution:
    """The model without any weight."""
    return Solution(np.empty(0, dtype=np.intp), np.empty(0), noise)
