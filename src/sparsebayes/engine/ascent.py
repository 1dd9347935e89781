"""Climb the priced evidence of a least-squares problem: add, re-estimate or delete one column at a time.

Tipping & Faul (2003), with four differences: S and Q of the candidates are kept by rank-one updates, the action taken
is the one with the largest gain of *priced* evidence, the certificate (no action gains more than `tol`) is the stop
rule, and where columns are free and the prior is scale-free, σ² is re-estimated after every action, and all precisions
take a common Newton step every few actions.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import starmap

import numpy as np

from sparsebayes.core.posterior import GaussianPosterior, relevance
from sparsebayes.core.prices import Marginal
from sparsebayes.core.priors import Moves
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine.exchange import Exchange, exchanges
from sparsebayes.engine.least_squares import NOISE_FLOOR, LeastSquares, Solution
from sparsebayes.engine.loop import Callback, Info, Trace
from sparsebayes.engine.moves import column_factors
from sparsebayes.engine.state import AnyState, State, state_of

AT_ONCE = 100
"""Most actions in one call of the compiled state: between calls an interrupt is noticed, and digits are checked."""
DIGITS_LOST = 1e-6
"""Share of the objective, and nats beside it, by which rank-one updates may be off after `AT_ONCE` actions. Where they
work it is 1e-10; between columns that are linearly dependent up to rounding it soon grows without bound."""
BREAKDOWNS = (FloatingPointError, ZeroDivisionError, np.linalg.LinAlgError)
"""Exceptions that are raised when rounding has left no correct digits."""
NOVELTIES = (1e-12, 1e-10, 1e-8)
"""Share of its squared length that a column must have outside the model, each time that digits were lost: columns that
are linearly dependent up to rounding cannot be told apart."""
UNLIMITED = 2**62
"""Any number of additions."""
EARLY_ACTIONS = 8
"""σ² is re-estimated after every one of the first actions: it changes most while the first columns enter. With 5 or 10
the evidence differs by less than its scatter; with none one search for feature weights keeps a useless feature."""
REFRESH_EVERY = 5
"""Later σ² is re-estimated, and everything recomputed from scratch, every 5 actions; half or twice as many end at
the same evidence."""
JOINT_EVERY = 15
"""All precisions move together every 15 actions: neighbouring columns take as many to share their work. Half or
twice as many end at evidences that differ by less than their scatter."""
COLUMNS_PER_ACTION = 20
"""With M columns inside, both happen no more often than every M/20 actions: each takes some M³ operations, an action
M². On Friedman #1 (5,000×20), where some 780 columns stay, that saves a tenth of the time; with M/10 actions one of two
data sets ends 50 nats lower."""


@dataclass(frozen=True)
class Snapshot:
    """A model at the end of a search, with what every candidate would bring; all numbers are computed from scratch."""

    problem: LeastSquares
    active: IntArray
    alpha: FloatArray
    """Of all candidates; ∞ outside the model."""
    noise: float
    S: FloatArray
    Q: FloatArray
    posterior: GaussianPosterior
    Sigma: FloatArray
    gram: FloatArray
    copies: IntArray
    evidence: float
    objective: float
    residual: float
    gamma_sum: float
    best_moves: Moves
    """The best change of every unit, given all others."""

    @classmethod
    def of(cls, state: AnyState, price: Marginal) -> "Snapshot":
        """The present model of a state."""
        moves = Moves(*state.survey(price))
        active = np.array(state.active, dtype=np.intp)
        alpha, Sigma, inside = state.alpha, state.Sigma, state.alpha_inside
        if isinstance(state, State):
            posterior = replace(state.posterior, known_covariance=Sigma)
        else:
            var = Sigma.diagonal()
            zeros, gamma = np.zeros(len(inside)), relevance(inside, var)
            known = state.mean, var, gamma, state.logdet, state.root, zeros, 1, state.jitter, Sigma
            posterior = GaussianPosterior(*known)
        more = state.gram, state.copies, state.evidence, state.objective, state.residual, state.gamma_sum, moves
        return cls(state.problem, active, alpha, state.noise, state.S, state.Q, posterior, Sigma, *more)

    @property
    def solution(self) -> Solution:
        """The model."""
        return Solution(self.active, self.alpha[self.active], self.noise)

    def factors(self) -> tuple[FloatArray, FloatArray]:
        """s and q of every candidate."""
        return column_factors(self)

    @property
    def mean(self) -> FloatArray:
        """μ."""
        return self.posterior.mean

    @property
    def variance_sum(self) -> float:
        """Σ 1/α of the model."""
        return float((1 / self.alpha[self.active]).sum())

    @property
    def priced_evidence(self) -> float:
        """Log evidence less the price of what is kept: the log posterior probability of the model, up to a constant."""
        return self.evidence - self.problem.total_price(self.active)

    @cached_property
    def best_exchanges(self) -> Exchange:
        """The best replacement of every column in the model."""
        p, active = self.problem, self.active
        prior, across = p.prior.at_noise(self.noise), self.gram / self.noise
        model = self.alpha[active], self.posterior.mean, self.Sigma
        return exchanges(prior, p.price, active, *model, across, self.S, self.Q, self.copies > 0)


@dataclass(frozen=True)
class Limits:
    """Stopping rule and allowed actions of one ascent."""

    tol: float
    """The ascent ends when no action gains more nats than this."""
    hold_noise: bool = False
    max_additions: int = UNLIMITED
    min_novelty: float = 0.0
    """A column may enter only if at least this share of its squared length is outside the model."""


class Ascent:
    """A climb from a start, by actions on single columns and re-estimations of the noise."""

    def __init__(self, problem: LeastSquares, start: Solution) -> None:
        self.problem, self.state = problem, state_of(problem, start)
        self.verified = start
        """The best model whose objective was computed from scratch."""
        self.highest = self.state.objective
        self.lost_digits = False
        """Whether rank-one updates have lost their digits during the climb."""
        self._uniform = not isinstance(problem.price.nats, np.ndarray)
        self._price = problem.marginal_price if self._uniform else self._own_price
        self.state.survey(self._price(self.state.n_units))

    def run(self, limits: Limits, trace: Trace, max_iter: int, callback: Callback | None = None) -> bool:
        """Step until no allowed action gains more than the limit. Returns whether that was reached."""
        self.limits, self.n_actions, self.spacing = limits, 0, 0
        self.additions_left = limits.max_additions
        # A climb with few additions is too short for joint steps.
        limited = limits.hold_noise and limits.max_additions < UNLIMITED
        self.joint = self.problem.is_scale_free and not limited
        self.follows = self.joint and not limits.hold_noise
        # A callback sees, and may stop, every single action; a price that differs by column depends on all before.
        self.at_once = AT_ONCE if callback is None and self._uniform else 1
        for novelty in (limits.min_novelty, *NOVELTIES):
            if novelty > limits.min_novelty:
                self.limits = replace(limits, min_novelty=novelty)
            try:
                return self._climb(trace, max_iter, callback)
            except BREAKDOWNS:
                self.state, self.lost_digits = state_of(self.problem, self.verified), True
        return False

    def _climb(self, trace: Trace, max_iter: int, callback: Callback | None) -> bool:
        left, stop = max_iter, False
        while left > 0 and not stop:
            made = self._steps(left)
            stop = trace.add(made, callback)
            if made[-1].change <= self.limits.tol:
                return True
            left -= len(made)
        return False

    def snapshot(self) -> Snapshot:
        """The present model, computed from scratch."""
        return Snapshot.of(self.state, self._price(self.state.n_units))

    def _steps(self, most: int) -> list[Info]:
        """The next actions; if none is left, a check of the noise."""
        if made := self._actions(most):
            return made
        if self.joint and self.state.age:
            self.state.joint_step(self.limits.tol, NOISE_FLOOR if self.follows else 0.0)
        moves = Moves(*self.state.survey(self._price(self.state.n_units)))
        if made := self._actions(most):
            return made
        any_worthless = self.joint and not moves.worth[self.state.active].all()
        return (self._drop_worthless() if any_worthless else []) or [self._noise()]

    def _drop_worthless(self) -> list[Info]:
        """Delete columns whose best precision is infinite, although each deletion gains less than `tol`.

        Joint steps leave many columns that bring nothing, and everything takes longer while they are inside: without
        this the climb takes twice to three times as long on Friedman #1 (5,000×20). They are deleted one at a time,
        because of two copies each is worthless as long as the other is there.
        """
        state, problem, made = self.state, self.problem, list[Info]()
        while state.n_active:
            active, alpha, var = np.array(state.active, dtype=np.intp), state.alpha_inside, state.Sigma.diagonal()
            prior = problem.prior.of(active).at_noise(state.noise)
            s, q = relevance(alpha, var) / var, state.mean / var
            worthless = np.isinf(prior.candidate(s, q))
            if not worthless.any():
                break
            present = np.where(worthless, prior.gain(alpha, s, q), np.inf)
            before, j = state.objective, int(active[np.argmin(present)])
            action = state.move(j, np.inf)
            made.append(Info(before, np.inf, state.n_active, state.jitter, action))
        return made

    def _actions(self, most: int) -> list[Info]:
        """The best actions, with the re-estimations that are due after every few; none if no action gains enough."""
        if self.n_actions % AT_ONCE == 0:  # whether or not a callback sees single actions
            self.spacing = self.state.n_active // COLUMNS_PER_ACTION
        limits, every, due = self.limits, REFRESH_EVERY, "noise"
        until = min(most, self.at_once, AT_ONCE - self.n_actions % AT_ONCE)
        early = not limits.hold_noise and self.n_actions < EARLY_ACTIONS
        if early:
            until, every = min(until, EARLY_ACTIONS - self.n_actions), 1
        elif self.joint:
            every, due = max(JOINT_EVERY, self.spacing), "joint"
        elif limits.hold_noise:
            every, due = max(REFRESH_EVERY, self.spacing), "refresh"
        allowed = limits.tol, self.additions_left, limits.min_novelty
        follows = self.follows and not early
        steps = self.state.advance(until, *allowed, self._price, NOISE_FLOOR, follows, every, due)
        made = list(starmap(Info, steps))
        self.n_actions += len(made)
        self.additions_left -= [info.action for info in made].count("add")
        if made and self.n_actions % AT_ONCE == 0:
            self._check_digits()
            made += self._drop_worthless() if self.joint else []
        return made

    def _check_digits(self) -> None:
        """Compare the objective with that from scratch; the state stays as it is."""
        state = self.state
        objective = state.fresh_objective()
        if objective > self.highest:
            self.verified = Solution(np.array(state.active, dtype=np.intp), state.alpha_inside, state.noise)
            self.highest = objective
        if not abs(objective - state.objective) <= DIGITS_LOST * (1 + abs(objective)):
            raise FloatingPointError("rank-one updates have lost their digits")

    def _noise(self) -> Info:
        """Re-estimate the noise if that gains more than `tol`; no action does."""
        state, tol = self.state, self.limits.tol
        before, to_gain = state.objective, 0.0 if self.limits.hold_noise else self.problem.noise_left(state)
        if to_gain > tol:
            state.set_scales(state.alpha_inside, self.problem.next_noise(state))
        return Info(before, to_gain, state.n_active, state.jitter, "noise")

    def _own_price(self, k: int) -> Marginal:
        """The marginal price of the present model, whatever its number of units k, where prices differ by column."""
        return Marginal.at(self.problem.price, self.problem.prior.units(self.state.active))
