"""The sequential search for every likelihood: the view proposes, only real evidence decides.

1. One wide pass gives S and Q of all candidates under the view of the present model (engine/candidates.py).
2. The most promising of them are the working set. Under the view they are a least-squares problem with known noise, on
   which the Gaussian search (engine/ascent.py) runs to its end. Columns that it added are the proposal.
3. The model with the proposal is fitted under the real likelihood, on its own few columns (engine/scale_fit.py).
   Nothing leaves except on the real priced evidence, and nothing enters that does not raise it.
4. When nothing is proposed, deletions and exchanges are tried; what the view promised and reality refused is not tried
   again under the same view. The certificate is that nothing is left, in nats.

With Gaussian noise the view is the problem itself, and engine/gaussian_search.py is all of the search. See
docs/mathematics.md, section 4.5.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from sparsebayes.core.prices import cheaper, is_free
from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.engine.ascent import Ascent, Limits
from sparsebayes.engine.candidates import Candidates, least_squares
from sparsebayes.engine.exchange import Exchange, exchanges
from sparsebayes.engine.gaussian_search import low_noise_limits
from sparsebayes.engine.least_squares import Solution
from sparsebayes.engine.loop import Info, Settings, Trace, iterate
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.scale_fit import ScaleFit, fit_scales, with_more, without
from sparsebayes.engine.state import ALL_COLUMNS, rank_candidates

WORKING_SET = 128
"""Columns whose products are formed for a proposal, beside those in the model. 256 ends at the same models,
64 elsewhere in 1 of 96 fits (experiments/constants.py); the cost grows with their square."""
BEST = 64
"""How many of the best columns the working set has. The others are spread evenly over the rest of the ranking: the best
kernel columns are neighbours of each other, and with them alone a search takes up to 1.4 times as many rounds and ends
0.9 ± 0.6 nats lower (1,000 rows, two mixtures). 32 end at evidences that differ by less than their scatter."""
LOOSE = 0.03
"""Nats to which models are fitted while the search goes on: the next proposal moves them by more. With a tenth
of it 1 of 96 fits ends elsewhere, with ten times 8, no better and no worse."""
MIN_RISE = 1e-3
"""Nats of real evidence that a move must bring where columns have a price; less is within the view's own error.
A tenth or ten times as much ends at the same models."""
DOUBT = 3.0
"""From this many prices on the view's worth of a kept column is believed; below, the model is fitted without it. 6 ends
at the same models; 1.5 loses 0.1 nats on average in variational fits."""
TRIES = 3
"""Single columns of a refused proposal, best first, that are tried alone. 2 and 6 end at the same models."""
LOWER_PRICE = 3.0
"""A perturbation divides all prices by this, so that columns enter which only pay together. 6 ends at the same
models; 1.5 loses 0.2 nats on average in variational fits."""
PERTURBED_ADDITIONS = 10
"""Columns that a perturbation may add; 5 and 20 end at the same models."""
LABEL_NOISE = 0.03
"""Noise, as a share of the target's variance under the first view, with which free columns start; see `cold_start`.
Half or twice as much ends elsewhere in 11 to 13 of 96 fits, worse by no more than 1.5 standard errors."""


@dataclass(frozen=True)
class SearchState:
    """The model, and the moves that were tried without success since it last changed."""

    fit: ScaleFit
    refused: frozenset[int] = frozenset()
    """Columns that were proposed and did not raise the evidence."""
    lost: dict[int, float] = field(default_factory=dict)
    """Columns whose deletion was tried and lowers the priced evidence: nats of evidence that are lost without each."""
    exchanged: frozenset[tuple[int, int]] = frozenset()
    """Exchanges that were tried and lower it."""
    exact: ScaleFit | None = None
    """The last model that was fitted to the tolerance of the search; each is better than the one before."""
    known_candidates: list[Candidates] = field(default_factory=list, compare=False, repr=False)
    """All candidates under the view of the model, once they have been computed."""

    def candidates(self, problem: Problem) -> Candidates:
        """All candidates under the view of the model: one wide pass, once."""
        if not self.known_candidates:
            self.known_candidates.append(Candidates.of(problem, self.fit))
        return self.known_candidates[0]


@dataclass(frozen=True)
class Search:
    """A problem, and the tolerance in nats."""

    problem: Problem
    tol: float

    @property
    def is_free(self) -> bool:
        """Whether columns have no price."""
        return is_free(self.problem.price)

    @property
    def exchanges_count(self) -> bool:
        """Whether exchanges are tried: columns have a price, and move one by one."""
        return not self.is_free and self.problem.prior.ties is None

    @property
    def min_rise(self) -> float:
        """Nats of real evidence that a move must gain."""
        return self.tol if self.is_free else max(self.tol, MIN_RISE)

    def better(self, there: ScaleFit, here: ScaleFit) -> bool:
        """Whether the real priced evidence has risen."""
        return there.priced(self.problem) > here.priced(self.problem) + self.min_rise

    def step(self, at: SearchState, room: int) -> tuple[SearchState, Info, int]:
        """Add what is proposed; else delete or exchange; else end. Also returns how many columns may still enter."""
        found = at.candidates(self.problem)
        moves = found.moves(self.problem)
        gain = np.where(np.isinf(found.alpha()) & ~found.copy, moves.gain, -np.inf)
        gain[list(at.refused)] = -np.inf  # may not enter
        best = float(gain.max(initial=0.0))
        is_exact = at.fit.tol <= self.tol
        # What is promised to a model that was fitted loosely counts only if it is more than that.
        if room > 0 and best > (self.min_rise if is_exact else max(LOOSE, self.min_rise)):
            there, n_added = self._added(at, found, gain, moves.alpha, room)
            return there, self._info(there.fit, best, "add"), room - n_added
        if not is_exact:
            exact = self._settled(at)
            return exact, self._info(exact.fit, np.inf, "settle"), room
        there = self._deleted(at, moves.worth)
        if there.fit is at.fit:
            there = self._exchanged(there, found)
        change = 0.0 if there.fit is at.fit else np.inf
        return there, self._info(there.fit, change, "exchange" if change else "end"), room

    def _info(self, fit: ScaleFit, change: float, action: str) -> Info:
        return Info(fit.evidence, change, len(fit.active), fit.view.posterior.jitter, action)

    def _settled(self, at: SearchState) -> SearchState:
        """The model fitted exactly; or the last exact one, if that was no worse, without what was added since.

        What looked like a rise may be none once all is settled, above all where classes are nearly separable.
        """
        here = at.fit
        fit = fit_scales(self.problem, here.active, here.alpha, here.point, self.tol, drop_worthless=self.is_free)
        if at.exact is None or self.better(fit, at.exact):
            return SearchState(fit, exact=fit)
        added = np.setdiff1d(at.fit.active, at.exact.active)
        return SearchState(at.exact, at.refused | {int(j) for j in added}, exact=at.exact)

    # --- additions ---

    def _added(
        self, at: SearchState, found: Candidates, gain: FloatArray, alpha: FloatArray, room: int
    ) -> tuple[SearchState, int]:
        """The model with the proposed columns that raise the real evidence; without any, they are refused."""
        columns, scales, others = self.propose(at.fit, found, gain, room)
        here = replace(at.fit, alpha=others)
        there = with_more(self.problem, here, columns, scales, LOOSE, drop_worthless=self.is_free)
        there = self._pruned(there)
        if self.better(there, at.fit):
            n_added = len(self.problem.prior.units(np.setdiff1d(there.active, at.fit.active)))
            return SearchState(there, at.refused, exact=at.exact), n_added
        best = [int(j) for j in self.problem.prior.units(np.argsort(-gain))[:TRIES] if gain[j] > self.min_rise]
        alone = [self.problem.prior.unit(j) for j in best]
        for one in alone if not np.array_equal(np.sort(columns), alone[0]) else alone[1:]:
            there = with_more(self.problem, at.fit, one, alpha[one], LOOSE, drop_worthless=self.is_free)
            if self.better(there, at.fit):
                return SearchState(there, at.refused, exact=at.exact), 1
        return replace(at, refused=at.refused.union(columns.tolist(), *(one.tolist() for one in alone))), 0

    def propose(
        self, fit: ScaleFit, found: Candidates, gain: FloatArray, room: int
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """Columns to add, their precisions, and those of the model, as the Gaussian search under its view has them."""
        columns = np.append(fit.active, self._working_set(found, gain))
        view = least_squares(self.problem, fit, columns)
        ascent = Ascent(view, Solution(np.arange(len(fit.active)), fit.alpha, 1.0))
        # Finer than a tenth of what is promised need not be: the real likelihood decides in the end.
        limits = Limits(min(LOOSE, 0.1 * float(gain.max())), hold_noise=True, max_additions=room)
        ascent.run(limits, Trace(), 10 * len(columns))  # a limit, not the stop rule
        alpha = ascent.state.alpha
        inside, new = alpha[: len(fit.active)], np.flatnonzero(np.isfinite(alpha[len(fit.active) :])) + len(fit.active)
        others = np.where(np.isfinite(inside), inside, fit.alpha)
        if not len(new):  # the first addition was taken back: the best column alone
            j = self.problem.prior.unit(int(np.argmax(gain)))
            return j, found.moves(self.problem).alpha[j], fit.alpha
        return columns[new], alpha[new], others

    def _working_set(self, found: Candidates, gain: FloatArray) -> IntArray:
        """Columns to choose from; free ones also if they only bring something after others have entered."""
        some = np.flatnonzero(gain >= 0 if self.is_free else gain > 0)
        some = some[rank_candidates(gain[some], found.S[some], found.Q[some])]
        if len(some) > WORKING_SET:
            rest = np.linspace(BEST, len(some) - 1, WORKING_SET - BEST).astype(np.intp)
            some = np.append(some[:BEST], some[rest])
        return np.sort(self.problem.prior.closed(some))

    def _unit(self, fit: ScaleFit, k: int) -> BoolArray:
        """The columns of a model that leave together with its k-th."""
        return np.isin(fit.active, self.problem.prior.unit(int(fit.active[k])))

    def _pruned(self, fit: ScaleFit) -> ScaleFit:
        """Without the columns that are not worth their price, one after the other, by the real evidence."""
        if self.is_free:
            return fit
        needed: set[int] = set()
        while True:
            worth = fit.worth(self.problem)
            price = np.broadcast_to(self.problem.price.nats, self.problem.design.n_columns)[fit.active]
            doubtful = [k for k in np.argsort(worth - price) if worth[k] < price[k] and fit.active[k] not in needed]
            if not doubtful:
                return fit
            leaves = self._unit(fit, doubtful[0])
            there = without(self.problem, fit, leaves, LOOSE)
            if there.priced(self.problem) >= fit.priced(self.problem):
                fit = there
            else:
                needed.update(fit.active[leaves].tolist())

    # --- deletions and exchanges ---

    def _deleted(self, at: SearchState, worth: FloatArray) -> SearchState:
        """The model without a column of doubtful worth, if that is better by the real evidence.

        Where the kept columns all but separate the classes there is no curvature left, and the view finds each of them
        worth next to nothing; what a column really brings is what is lost without it.
        """
        if self.is_free:
            return at
        lost = dict(at.lost)
        price = np.broadcast_to(self.problem.price.nats, len(worth))
        for k in np.argsort(worth[at.fit.active]):
            j = int(at.fit.active[k])
            if worth[j] < DOUBT * price[j] and j not in lost:
                leaves = self._unit(at.fit, k)
                there = without(self.problem, at.fit, leaves, self.tol)
                if self.better(there, at.fit):
                    return SearchState(there, exact=there)
                lost |= dict.fromkeys(at.fit.active[leaves].tolist(), at.fit.evidence - there.evidence)
        return replace(at, lost=lost)

    def exchanges(self, at: SearchState, found: Candidates) -> Exchange:
        """The exchanges that the view proposes and that were not tried yet."""
        fit, problem = at.fit, self.problem
        posterior, mean = fit.view.posterior, fit.point.weights(problem, fit.view)
        S, Q = problem.prior.outside(found.S, found.Q)
        some = exchanges(
            problem.prior, problem.price, fit.active, fit.alpha, mean, posterior.covariance(), found.across, S, Q,
            found.copy,
        )  # fmt: skip
        new = np.array([(int(i), int(j)) not in at.exchanged for i, j in zip(some.out, some.into, strict=True)], bool)
        return Exchange(*(each[new] for each in some))

    def _exchanged(self, at: SearchState, found: Candidates) -> SearchState:
        """The model with one column exchanged, if that is better by the real evidence."""
        if not self.exchanges_count:
            return at
        some, fit = self.exchanges(at, found), at.fit
        for i, j, alpha, gain in zip(*some, strict=True):
            if gain <= self.min_rise:
                break
            stays = fit.active != i
            active, scales = np.append(fit.active[stays], j), np.append(fit.alpha[stays], alpha)
            point = fit.point.keep(stays).grow(1)
            there = fit_scales(self.problem, active, scales, point, self.tol, drop_worthless=False)
            if self.better(there, fit):
                return SearchState(there, exact=there)
            at = replace(at, exchanged=at.exchanged | {(int(i), int(j))})
        return at

    def certificate(self, at: SearchState) -> tuple[FloatArray, float]:
        """Nats that each column brings or would bring, and what the best change would still bring.

        Changes that were tried and did not bring what the view promised do not count.
        """
        found = at.candidates(self.problem)
        moves = found.moves(self.problem)
        gain, worth = moves.gain.copy(), moves.worth.copy()
        gain[list(at.refused)] = 0.0
        price, without_one = np.broadcast_to(self.problem.price.nats, len(worth)), self._deleted(at, worth)
        for j, nats in without_one.lost.items():
            worth[j] = nats
            gain[j] = max(price[j] - nats, 0.0)
        rise = without_one.fit.priced(self.problem) - at.fit.priced(self.problem)  # of a search that was cut short
        gap = max(float(gain.max(initial=0.0)), rise)
        return worth, max(gap, self.exchanges(at, found).best_gain) if self.exchanges_count else gap


def climb(
    search: Search, fit: ScaleFit, settings: Settings, trace: Trace, max_additions: int | None = None
) -> tuple[SearchState, bool]:
    """Steps until none raises the real priced evidence."""
    room = search.problem.design.n_columns if max_additions is None else max_additions

    def step(at: SearchState) -> tuple[SearchState, Info]:
        nonlocal room
        there, info, room = search.step(at, room)
        return there, info

    return iterate(SearchState(fit), step, trace=trace, settings=replace(settings, tol=0.0))


def search(problem: Problem, start: ScaleFit, trace: Trace, settings: Settings) -> tuple[SearchState, bool]:
    """Climb from a start; with a price, perturb the end (at lower prices) and climb again while that helps."""
    here = Search(problem, settings.tol)
    best, converged = climb(here, start, settings, trace)
    if here.is_free:
        return best, converged
    lower = replace(here, problem=replace(problem, price=cheaper(problem.price, LOWER_PRICE)))
    while converged:
        extra = Trace()
        low, _ = climb(lower, best.fit, settings, extra, PERTURBED_ADDITIONS)
        there, converged = climb(here, low.fit, settings, extra)
        if not converged or not here.better(there.fit, best.fit):
            return best, True
        best = there
        trace.infos.extend(extra.infos)
    return best, converged


def cold_start(problem: Problem) -> ScaleFit:
    """A model to begin with: empty, or for free columns those which a regression with far too little noise takes in.

    As in regression (gaussian_search.cold_start) columns that pay together then come in together; those that are not
    worth it leave when the model is fitted. In wide designs that would take longer than the whole search.
    """
    nothing = np.empty(0, dtype=np.intp)
    first = fit_scales(problem, nothing, np.empty(0), problem.start(0), LOOSE, drop_worthless=True)
    design = problem.design
    if not is_free(problem.price) or design.n_columns > ALL_COLUMNS:
        return first
    view = least_squares(problem, first, np.arange(design.n_columns))
    ascent = Ascent(view, Solution(nothing, np.empty(0), LABEL_NOISE))
    ascent.run(low_noise_limits(view), Trace(), design.n_columns)
    active = np.array(ascent.state.active, dtype=np.intp)
    alpha = problem.weight @ design.columns(active) ** 2 / problem.weight.sum()
    return fit_scales(problem, active, alpha, problem.start(len(active)), LOOSE, drop_worthless=True)
