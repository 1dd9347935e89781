"""The state of the Gaussian search: the model, and what every candidate would bring to it.

`State` is the readable definition; `native/state.hpp` is the same compiled. Both hold the posterior of the model and
S, Q of the candidates, and keep them current by rank-one updates while columns come and go (docs/mathematics.md,
section 4.2; Tipping & Faul 2003). What to do next is decided in engine/ascent.py.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from sparsebayes.core.evidence import log_evidence, log_hyper_prior
from sparsebayes.core.linalg import JITTER_LADDER, typical
from sparsebayes.core.posterior import posterior_from_gram
from sparsebayes.core.prices import Marginal
from sparsebayes.core.priors import Moves
from sparsebayes.core.scales import MIN_SHARE_LEFT, gain
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine import compiled
from sparsebayes.engine.least_squares import LOST_DIGITS, LeastSquares, Solution
from sparsebayes.engine.moves import column_factors, unit_moves
from sparsebayes.engine.scales import DAMPING, LONGEST, MIN_GAMMA, STEP_PARTS, newton_step

if TYPE_CHECKING:
    from sparsebayes.engine import _native

COPY = 1 - 1e-10
"""Columns with a larger cosine are copies of each other: they differ by no more than rounding of their products,
sin² = 2e-10; a search that kept both could not tell their weights apart."""
PREFETCH = 32
"""Gram columns that are computed in one pass over the rows: the pass is then bound by arithmetic, not by memory.
(20,000×2,000, one thread: 8 ms a column instead of 19.)"""
WORKING_SET = 64
"""Candidates that are kept current between two surveys of all; the next few actions are nearly always among them.
32 and 128 end at the same models (experiments/constants.py)."""
ALL_COLUMNS = 512
"""With at most this many columns all of them are kept current: that costs less than a survey. 256
and 1,024 end at the same models."""


def working_set_size(n_columns: int) -> int:
    """How many candidates are kept current."""
    return n_columns if n_columns <= ALL_COLUMNS else WORKING_SET


def rank_candidates(gain: FloatArray, S: FloatArray, Q: FloatArray) -> IntArray:
    """Candidates by what they bring; those that bring nothing by q²/s, so that the order of columns does not matter."""
    return np.lexsort((-np.where(S > 0, Q**2 / np.where(S > 0, S, 1.0), 0.0), -gain))


class State:
    """μ, Σ of the model and S, Q of the candidates.

    An action changes S and Q of every candidate, but the next few actions are nearly always among the few best. So a
    survey recomputes all and chooses a working set; actions keep that current until a candidate outside it may bring
    more than any inside (`outside_gain`). S and Q of the others are those of the last survey.

    The problem may have several outputs (engine/outputs.py). Then μ and Q have a column for each.
    """

    def __init__(self, problem: LeastSquares, start: Solution) -> None:
        self.problem = problem
        self.active: list[int] = []
        self.alpha = np.full(problem.n_columns, np.inf)
        self.noise = start.noise
        self._gram = np.empty((problem.n_columns, 8), order="F")
        self.copies = np.zeros(problem.n_columns, dtype=np.intp)
        """Of how many columns in the model each candidate is a multiple."""
        for j, alpha in zip(start.active, start.alpha, strict=True):
            self._include(int(j), float(alpha), start.active)
        self.working: IntArray = np.empty(0, dtype=np.intp)
        self.outside_gain = 0.0
        self.S, self.Q = np.empty(problem.n_columns), np.empty_like(problem.projection)
        self.refresh()

    def _include(self, j: int, alpha: float, ahead: IntArray) -> None:
        """Put a column of the start in. Of a copy only the prior variance is added to the first one's: the same model.

        Not so in a group, whose columns have one precision whatever they are.
        """
        if self.copies[j] and self.problem.prior.ties is None:
            norm = np.sqrt(self.problem.column_energy[j] * self.problem.column_energy[self.active])
            twin = self.active[int(np.argmax(np.abs(self.gram[j]) / norm))]
            scale = self.problem.column_energy[j] / self.problem.column_energy[twin]
            self.alpha[twin] = 1 / (1 / self.alpha[twin] + scale / alpha)
            return
        self._append_column(len(self.active), j, lambda: ahead)
        self.active.append(j)
        self.alpha[j] = alpha

    @property
    def gram(self) -> FloatArray:
        """ΦᵀΦ_active (all candidates × active)."""
        return self._gram[:, : len(self.active)]

    @property
    def n_active(self) -> int:
        """Columns in the model."""
        return len(self.active)

    @property
    def n_units(self) -> int:
        """Units in the model: columns, or groups of them."""
        return len(self.problem.prior.units(self.active))

    @property
    def alpha_inside(self) -> FloatArray:
        """Precisions of the columns in the model."""
        return self.alpha[self.active]

    @property
    def penalty(self) -> float:
        """μᵀAμ."""
        return float(self.alpha_inside @ typical(self.mean) ** 2)

    @property
    def variance_sum(self) -> float:
        """Σ 1/α."""
        return float((1 / self.alpha_inside).sum())

    def survey(self, price: Marginal) -> Moves:
        """Everything from scratch; then the working set is chosen anew. Returns the best change of every unit."""
        self.working = np.arange(self.problem.n_columns)
        self.refresh()
        outside, moves = np.flatnonzero(np.isinf(self.alpha)), self.moves(price)
        brings = moves.gain[outside]
        order = rank_candidates(brings, self.S[outside], typical(self.Q[outside]))
        count = working_set_size(self.problem.n_columns)
        self.working = outside[order[:count]]
        self.outside_gain = float(brings[order[count]]) if len(order) > count else 0.0
        return moves

    def fresh_objective(self) -> float:
        """The objective from scratch; the state stays as it is."""
        here = Solution(np.array(self.active, dtype=np.intp), self.alpha_inside, self.noise)
        return State(self.problem, here).objective

    def refresh(self) -> None:
        """The model and the working set from scratch, for the present α and σ²."""
        active, alpha, p = self.active, self.alpha_inside, self.problem
        working, beta = self.working, 1 / self.noise
        self.age = 0
        """Moves since then."""
        gram = self.gram[active]
        self.posterior = posterior_from_gram(beta * gram, beta * p.projection[active], alpha)
        self.mean, self.Sigma, self.jitter = self.posterior.mean, self.posterior.covariance(), self.posterior.jitter
        P = self.gram[working]
        projected = P @ self.posterior.root.T  # Σ = rootᵀ root
        self.S[working] = beta * p.column_energy[working] - beta**2 * np.einsum("ij,ij->i", projected, projected)
        self.Q[working] = beta * (p.projection[working] - P @ self.mean)
        self._measure()
        fit, size = p.fit(self.residual, self.noise), typical(self.mean)
        self.evidence = log_evidence(fit, size, alpha, self.posterior.logdet)
        self.objective = self.evidence + self._prior_term(active, alpha) + float(log_hyper_prior(beta, p.c, p.d))

    def _prior_term(self, columns: list[int], alpha: FloatArray) -> float:
        """What the prior adds to the evidence for the precisions of these columns."""
        prior = self.problem.prior.of(np.array(columns, dtype=np.intp)).at_noise(self.noise)
        return prior.scale_term(alpha) - 0.5 * float(np.log(alpha).sum())

    def _measure(self) -> None:
        """‖t - Φμ‖² and Σγ."""
        self.residual = self.problem.residual(self.active, self.mean, self.gram[self.active])
        self.gamma_sum = float((1 - self.alpha_inside * self.Sigma.diagonal()).sum())

    def factors(self) -> tuple[FloatArray, FloatArray]:
        """s and q of every candidate."""
        return column_factors(self)

    def moves(self, price: Marginal) -> Moves:
        """The best change of every unit, given all others."""
        return unit_moves(self, price)

    def best(self, may_add: bool, min_novelty: float, price: Marginal) -> tuple[int, float, float]:
        """The column whose move brings most among the model and the working set, the nats, and its new precision.

        What enters must have the share `min_novelty` of its length outside the model; with nothing in, s = β‖φ‖².
        """
        moves, reachable = self.moves(price), np.isfinite(self.alpha)
        if may_add:
            novel = min_novelty * self.problem.column_energy <= self.S * self.noise
            reachable[self.working[novel[self.working]]] = True
        brings = np.where(reachable, moves.gain, 0.0)
        best = int(np.argmax(brings)) if len(brings) else -1
        return (best, float(brings[best]), float(moves.alpha[best])) if best >= 0 else (-1, 0.0, np.inf)

    def advance(
        self,
        n: int,
        tol: float,
        additions: int,
        min_novelty: float,
        price: Callable[[int], Marginal],
        noise_floor: float,
        follows: bool,
        every: int,
        due: str,
    ) -> list[tuple[float, float, int, float, str]]:
        """Up to n best moves in a row, and what to report of each: the fields of `Info`.

        It ends when none gains more than `tol`, or when a candidate outside the working set may bring more. `price` is
        that of a model by its number of units. Where σ² `follows`, it is the best after every move (`rescale`). After
        `every` moves something is due: "joint", a step of all precisions together; "noise", a new estimate of σ²; or
        "refresh", all numbers from scratch.
        """
        made: list[tuple[float, float, int, float, str]] = []
        while len(made) < n:
            j, gain, alpha = self.best(additions > 0, min_novelty, price(self.n_units))
            if gain <= max(tol, self.outside_gain):
                break
            before, action = self.objective, self.move(j, alpha)
            additions -= action == "add"
            if follows:
                self.rescale(noise_floor)
            made.append((before, gain, self.n_active, self.jitter, action))
            if self.age >= every:
                if due == "joint":
                    self.joint_step(tol, noise_floor if follows else 0.0)
                else:
                    noise = self.problem.next_noise(self) if due == "noise" else self.noise
                    self.set_scales(self.alpha_inside, noise)
        return made

    def set_scales(self, alpha: FloatArray, noise: float) -> None:
        """All precisions of the model, and the noise; everything that depends on them from scratch."""
        self.alpha[self.active], self.noise = alpha, noise
        self.refresh()

    def joint_step(self, tol: float, noise_floor: float) -> None:
        """One Newton step of all log α together, or a part of it; with a positive `noise_floor` σ² follows.

        Left undone where it promises less than `tol`. Either way everything is from scratch afterwards.
        """
        p, before, alpha, noise = self.problem, self.objective, self.alpha_inside, self.noise
        prior = p.prior.of(np.array(self.active, dtype=np.intp)).at_noise(noise)
        n = p.n + 2 * p.c if noise_floor > 0 else np.inf
        step, promise = newton_step(alpha, self.mean, self.Sigma, prior, n)
        for part in STEP_PARTS if promise > tol else ():
            self.set_scales(alpha * np.exp(part * step), noise)
            if noise_floor > 0:
                self.rescale(noise_floor)
            if self.objective >= before:
                return
        self.set_scales(alpha, noise)

    def rescale(self, noise_floor: float) -> None:
        """Multiply σ² and all prior variances by one factor, the best: μ stays, Σ grows with it, S and Q shrink.

        As a function of σ² the objective is then -(½N + c) log σ² - (2d + tᵀ(t - Φμ))/(2σ²), where
        tᵀ(t - Φμ) = ‖t - Φμ‖² + σ² μᵀAμ without cancellation. A Laplace prior's part, -½ λΣg with g = 1/(ασ²), stays.
        """
        p, before = self.problem, self.noise
        best = (2 * p.d + self.residual + before * self.penalty) / (2 * p.c + p.n)
        self.noise = max(best, noise_floor)
        factor = self.noise / before
        self.objective -= (0.5 * p.n + p.c) * float(np.log(factor) + best / self.noise - best / before)
        self.alpha[self.active] /= factor
        self.Sigma *= factor
        self.S[self.working] /= factor
        self.Q[self.working] /= factor

    def move(self, j: int, alpha: float) -> str:
        """Give column j and its unit the precision α (∞: take it out); says which of the three actions that was."""
        for i in self.problem.prior.unit(j):
            action = self._move_column(int(i), alpha)
        self.age += 1
        return action

    def _move_column(self, j: int, alpha: float) -> str:
        was = self.alpha[j]
        if np.isinf(was) and j not in self.working:
            self._update_factors(j)
        s, q = (each[j : j + 1] for each in self.factors())
        for at, sign in ((np.array([alpha]), 1), (np.array([was]), -1)):
            if np.isfinite(at[0]):
                self.objective += sign * (float(gain(at, s, q)[0]) + self._prior_term([j], at))
        if np.isinf(was):
            action = "add"
            self._add(j, alpha)
        elif np.isinf(alpha):
            action = "delete"
            self._delete(j, float(s[0]))
        else:
            action = "re-estimate"
            position, change = self.active.index(j), alpha - was
            self._rank_one(position, change / (1 + change * self.Sigma[position, position]))
            self.alpha[j] = alpha
        self._measure()
        return action

    def _update_factors(self, j: int) -> None:
        """S and Q of a candidate outside the working set, which were those of the last survey."""
        beta, P = 1 / self.noise, self.gram[j]
        self.S[j] = beta * self.problem.column_energy[j] - beta**2 * float(P @ self.Sigma @ P)
        self.Q[j] = beta * (self.problem.projection[j] - P @ self.mean)

    def _add(self, j: int, alpha: float) -> None:
        beta, M, working = 1 / self.noise, len(self.active), self.working
        self._append_column(M, j, lambda: working[:PREFETCH])
        g = self.Sigma @ (beta * self._gram[j, :M])
        # φ_mᵀ B e_j, where e_j is what φ_j has outside the model
        beta_e = beta * (self._gram[working, M] - self._gram[working, :M] @ g)
        var = 1 / (alpha + self.S[j])
        mean = var * self.Q[j]
        corner = -var * g[:, None]
        self.Sigma = np.block([[self.Sigma + var * np.outer(g, g), corner], [corner.T, np.full((1, 1), var)]])
        self.mean = np.concatenate([self.mean - np.multiply.outer(g, mean), [mean]])
        self.S[working] -= var * beta_e**2
        self.Q[working] -= np.multiply.outer(beta_e, mean)
        self.active.append(j)
        self.alpha[j] = alpha

    def _delete(self, j: int, s: float) -> None:
        position = self.active.index(j)
        q = self.mean[position] / self.Sigma[position, position]
        self._rank_one(position, 1 / self.Sigma[position, position])
        self.S[j], self.Q[j] = s, q
        if j not in self.working:
            self.working = np.append(self.working, j)
        self.Sigma = np.delete(np.delete(self.Sigma, position, 0), position, 1)
        self.mean = np.delete(self.mean, position, axis=0)
        self.copies -= self._is_copy(self._gram[:, position], j)
        self._gram[:, position : len(self.active) - 1] = self._gram[:, position + 1 : len(self.active)]
        self.active.pop(position)
        self.alpha[j] = np.inf

    def _rank_one(self, position: int, kappa: float) -> None:
        column, mean = self.Sigma[:, position].copy(), self.mean[position].copy()
        common = (self.gram[self.working] @ column) / self.noise  # φ_mᵀ B Φ Σ_j
        self.Sigma -= kappa * np.outer(column, column)
        self.mean = self.mean - kappa * np.multiply.outer(column, mean)
        self.S[self.working] += kappa * common**2
        self.Q[self.working] += kappa * np.multiply.outer(common, mean)

    def _append_column(self, position: int, j: int, ahead: Callable[[], IntArray]) -> None:
        if position == self._gram.shape[1]:
            wider = np.empty((len(self._gram), max(8, 2 * position)), order="F")
            wider[:, :position] = self._gram
            self._gram = wider
        self._gram[:, position] = self.problem.design.gram_column(j, ahead)
        self.copies += self._is_copy(self._gram[:, position], j)

    def _is_copy(self, gram_column: FloatArray, j: int) -> IntArray:
        """1 for every other candidate that is a multiple of φ_j."""
        energy = self.problem.column_energy
        copy = gram_column**2 >= COPY**2 * energy * energy[j]
        copy[j] = False
        return np.asarray(copy, dtype=np.intp)


AnyState: TypeAlias = "State | _native.State"


def state_of(problem: LeastSquares, start: Solution) -> AnyState:
    """Compiled if available and the prior's rules are, else NumPy; several outputs have the NumPy form only."""
    rules, n = problem.prior.rules, problem.n_columns
    if not compiled.COMPILED or rules is None or problem.t.ndim > 1:
        return State(problem, start)
    state = compiled.native.State(
        problem,
        start.active.tolist(),
        start.alpha.tolist(),
        start.noise,
        _constants(),
        working_set_size(n),
        a=rules.a,
        b=_per_column(rules.b, n),
        rate=rules.rate,
        min_alpha=rules.min_alpha,
        positive=rules.positive,
        nats=_per_column(problem.price.nats, n),
    )
    state.problem = problem
    return state


@cache
def _constants() -> "_native.Constants":
    """All constants of the compiled state."""
    return compiled.native.Constants(
        copy=COPY,
        lost_digits=LOST_DIGITS,
        min_share_left=MIN_SHARE_LEFT,
        prefetch=PREFETCH,
        jitter_ladder=JITTER_LADDER,
        step_parts=STEP_PARTS,
        longest=LONGEST,
        min_gamma=MIN_GAMMA,
        damping=tuple(DAMPING),
    )


def _per_column(value: FloatArray | float, n: int) -> FloatArray:
    return value if isinstance(value, np.ndarray) else np.full(n, value, dtype=np.float64)
