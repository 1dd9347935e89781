"""Add, re-estimate or delete one basis at a time: the fast marginal likelihood search (mathematics, section 4).

Tipping & Faul (2003), with three differences: the state of every candidate is kept by rank-one updates, the action
taken is the one with the largest gain of *priced* evidence, and the certificate (no action gains more than `tol`) is
the stop rule. Because a price makes the support a combinatorial choice, `search` also explores: see there.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sparsebayes.core.evidence import Moves, best_moves, log_evidence, log_hyper_prior, noise_gain
from sparsebayes.core.linalg import JITTER_LADDER
from sparsebayes.core.posterior import GaussianPosterior, posterior_from_gram
from sparsebayes.core.scales import TINY, NoiseRule, candidate, gain, noise_mackay
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.solvers import compiled
from sparsebayes.solvers.loop import Callback, Info, Trace, iterate
from sparsebayes.solvers.problem import NOISE_FLOOR, GaussianProblem, Solution

COPY = 1 - 1e-10
"""Columns with a larger cosine are copies of each other; only one of them may be in the model."""
EAGER = 10
"""After each of the first actions, so many, the noise is re-estimated."""
REFRESH = 5
"""Afterwards the noise is re-estimated, and all is recomputed from scratch, every so many actions."""
PREFETCH = 32
"""Gram columns that are computed in one pass over the rows."""
EXPLORE_NOISE = (0.1, 4.0)
"""Excursions hold the noise at the found value times these."""
EXPLORE_ADDITIONS = 10
"""An excursion may add this many features before the noise is released."""


class Candidates:
    """μ, Σ of the model and S, Q of every candidate, kept current while bases come and go."""

    def __init__(self, problem: GaussianProblem, start: Solution) -> None:
        self.problem = problem
        self.active: list[int] = []
        self.alpha = np.full(problem.n_columns, np.inf)
        self.noise = start.noise
        self._rate = problem.b if problem.b.any() else 0.0
        self._gram = np.empty((problem.n_columns, 8), order="F")
        self._copies = np.zeros(problem.n_columns, dtype=np.intp)
        for j, alpha in zip(start.active, start.alpha, strict=True):
            self._take_in(int(j), float(alpha), start.active)
        self.refresh()

    def _take_in(self, j: int, alpha: float, ahead: IntArray) -> None:
        """A basis of the start. A copy of one that is in hands over its prior variance: the model stays the same."""
        if self._copies[j]:
            norm = np.sqrt(self.problem.column_energy[j] * self.problem.column_energy[self.active])
            twin = self.active[int(np.argmax(np.abs(self.gram_columns[j]) / norm))]
            scale = self.problem.column_energy[j] / self.problem.column_energy[twin]
            self.alpha[twin] = 1 / (1 / self.alpha[twin] + scale / alpha)
            return
        self._append_column(len(self.active), j, lambda: ahead)
        self.active.append(j)
        self.alpha[j] = alpha

    @property
    def gram_columns(self) -> FloatArray:
        """ΦᵀΦ_active (all candidates × active)."""
        return self._gram[:, : len(self.active)]

    def refresh(self) -> None:
        """Everything from scratch, for the present α and σ²."""
        beta, active, P = 1 / self.noise, self.active, self.gram_columns
        posterior = self.posterior()
        self.mean, self.Sigma, self.jitter = posterior.mean, posterior.covariance(), posterior.jitter
        felt = P @ posterior.root.T  # Σ = rootᵀ root
        self.S = beta * self.problem.column_energy - beta**2 * np.einsum("ij,ij->i", felt, felt)
        self.Q = beta * (self.problem.projection - P @ self.mean)
        self._measure()
        alpha = self.alpha[active]
        fit = self.problem.fit(self.residual, self.noise)
        self.evidence = log_evidence(fit, self.mean, alpha, posterior.logdet)
        p, rate = self.problem, self._rate
        rate = rate[active] if isinstance(rate, np.ndarray) else rate
        priors = log_hyper_prior(alpha, p.a, rate).sum() + log_hyper_prior(beta, p.c, p.d)
        self.objective = self.evidence + float(priors) - 0.5 * self.pull * float((1 / alpha).sum())

    @property
    def pull(self) -> float:
        """λ/σ²: what a Laplace prior, whose scale is that of the noise, has against a prior variance."""
        return self.problem.rate / self.noise

    def _measure(self) -> None:
        """What the noise rules ask for: ‖t - Φμ‖², σ², Σγ, N, c and d."""
        problem, active, alpha = self.problem, self.active, self.alpha[self.active]
        self.residual = problem.residual(active, self.mean, self.gram_columns[active])
        gamma = 1 - alpha * np.diag(self.Sigma)
        # At given α a Laplace prior's part, -½ (λ/σ²) Σ1/α, looks to the noise like a larger rate d.
        d = problem.d + 0.5 * problem.rate * float((1 / alpha).sum())
        self.noise_terms = (self.residual, self.noise, float(gamma.sum()), problem.n, problem.c, d)

    def posterior(self) -> GaussianPosterior:
        """Posterior of the weights in the model, from scratch."""
        beta, active = 1 / self.noise, self.active
        gram = beta * self.gram_columns[active]
        return posterior_from_gram(gram, beta * self.problem.projection[active], self.alpha[active])

    def factors(self) -> tuple[FloatArray, FloatArray]:
        """s and q of every candidate; in the model through γ/Σ_jj and μ_j/Σ_jj, which do not cancel."""
        s, q = self.S.copy(), self.Q.copy()
        var = np.diag(self.Sigma)
        s[self.active] = np.clip(1 - self.alpha[self.active] * var, 0.0, 1.0) / var
        q[self.active] = self.mean / var
        return s, q

    def worth(self) -> FloatArray:
        """Nats that each candidate brings at its own best precision, whether it is in the model or not."""
        s, q = self.factors()
        return gain(candidate(s, q, self.problem.a, self._rate, self.pull), s, q, self.pull)

    def prices(self) -> tuple[float, float]:
        """What one feature more would cost, and what one of those inside does."""
        n_kept = len(self.active)
        here = self.problem.total_price(n_kept)
        return self.problem.total_price(n_kept + 1) - here, here - self.problem.total_price(max(n_kept - 1, 0))

    def moves(self) -> Moves:
        """The best change of every single precision, given all others."""
        s, q = self.factors()
        p = self.problem
        price = np.where(np.isinf(self.alpha), *self.prices())
        moves = best_moves(s, q, self.alpha, price, p.a, self._rate, self.pull)
        barred = (self._copies > 0) & np.isinf(self.alpha)
        return Moves(moves.alpha, np.where(barred, 0.0, moves.gain))

    @property
    def noise_gain(self) -> float:
        """Nats to be had from the noise variance; none when it would go below its floor."""
        if self.noise <= NOISE_FLOOR and self.new_noise(noise_mackay) <= NOISE_FLOOR:
            return 0.0
        return noise_gain(*self.noise_terms)

    def update_noise(self) -> None:
        """Re-estimate σ² and refresh."""
        self.noise = self.new_noise(noise_mackay)
        self.refresh()

    def new_noise(self, rule: NoiseRule) -> float:
        """What the rule makes of σ², kept above the floor."""
        return max(rule(*self.noise_terms), NOISE_FLOOR)

    def move(self, j: int, alpha: float) -> str:
        """Give basis j the precision α (∞: take it out); says which of the three actions that was."""
        if np.isinf(self.alpha[j]):
            action = "add"
            self._add(j, alpha)
        elif np.isinf(alpha):
            action = "delete"
            self._delete(j)
        else:
            action = "re-estimate"
            self._reestimate(j, alpha)
        self._measure()
        return action

    def _add(self, j: int, alpha: float) -> None:
        beta, M = 1 / self.noise, len(self.active)
        self._append_column(M, j, self._promising)
        g = self.Sigma @ (beta * self._gram[j, :M])
        beta_e = beta * (self._gram[:, M] - self._gram[:, :M] @ g)  # φ_mᵀ B e_j for every candidate m
        var = 1 / (alpha + self.S[j])
        mean = var * self.Q[j]
        corner = -var * g[:, None]
        self.Sigma = np.block([[self.Sigma + var * np.outer(g, g), corner], [corner.T, np.full((1, 1), var)]])
        self.mean = np.append(self.mean - mean * g, mean)
        self.S -= var * beta_e**2
        self.Q -= mean * beta_e
        self.active.append(j)
        self.alpha[j] = alpha

    def _reestimate(self, j: int, alpha: float) -> None:
        position = self.active.index(j)
        change = alpha - self.alpha[j]
        self._rank_one(position, change / (1 + change * self.Sigma[position, position]))
        self.alpha[j] = alpha

    def _delete(self, j: int) -> None:
        position = self.active.index(j)
        self._rank_one(position, 1 / self.Sigma[position, position])
        self.Sigma = np.delete(np.delete(self.Sigma, position, 0), position, 1)
        self.mean = np.delete(self.mean, position)
        self._copies -= self._is_copy(self._gram[:, position], j)
        self._gram[:, position : len(self.active) - 1] = self._gram[:, position + 1 : len(self.active)]
        self.active.pop(position)
        self.alpha[j] = np.inf

    def _rank_one(self, position: int, kappa: float) -> None:
        column, mean = self.Sigma[:, position].copy(), self.mean[position]
        felt = (self.gram_columns @ column) / self.noise  # φ_mᵀ B Φ Σ_j for every candidate m
        self.Sigma -= kappa * np.outer(column, column)
        self.mean = self.mean - kappa * mean * column
        self.S += kappa * felt**2
        self.Q += kappa * mean * felt

    def _promising(self) -> IntArray:
        """The candidates most likely to enter next."""
        return np.argsort(-(self.Q**2) / np.maximum(self.S, TINY))[:PREFETCH]

    def _append_column(self, position: int, j: int, ahead: Callable[[], IntArray]) -> None:
        if position == self._gram.shape[1]:
            wider = np.empty((len(self._gram), 2 * position), order="F")
            wider[:, :position] = self._gram
            self._gram = wider
        self._gram[:, position] = self.problem.rows.gram_column(j, ahead)
        self._copies += self._is_copy(self._gram[:, position], j)

    def _is_copy(self, gram_column: FloatArray, j: int) -> IntArray:
        """1 for every other candidate that is a multiple of φ_j."""
        energy = self.problem.column_energy
        copy = np.abs(gram_column) >= COPY * np.sqrt(energy * energy[j])
        copy[j] = False
        return np.asarray(copy, dtype=np.intp)

    def solution(self) -> Solution:
        """The model as it stands."""
        active = np.array(self.active, dtype=np.intp)
        return Solution(active, self.alpha[active], self.noise)


def ascend(
    problem: GaussianProblem,
    start: Solution,
    *,
    trace: Trace,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    hold_noise: bool = False,
    max_additions: int | None = None,
) -> tuple[Candidates, bool]:
    """Take the best action until none gains more than `tol`; σ² is re-estimated in between, unless it is held."""
    left = problem.n_columns * max_iter if max_additions is None else max_additions
    form = Ascent if compiled.Search is None else CompiledAscent
    ascent = form(problem, start, tol, hold_noise, left)
    _, converged = iterate(
        None, lambda _: (None, ascent.step()), trace=trace, tol=tol, max_iter=max_iter, callback=callback
    )
    return ascent.end(), converged


class Ascent:
    """The way up from a start: one step is one action, or a re-estimation of the noise, or both."""

    def __init__(self, problem: GaussianProblem, start: Solution, tol: float, hold_noise: bool, left: int) -> None:
        self.state = Candidates(problem, start)
        self.tol = tol
        self.hold_noise = hold_noise
        self.left = left
        """Additions that are still allowed."""
        self.n_actions = 0

    def step(self) -> Info:
        """The best action, if any gains more than `tol`, and what is due after it."""
        state, tol = self.state, self.tol
        moves = state.moves()
        brings = moves.gain if self.left else np.where(np.isinf(state.alpha), 0.0, moves.gain)
        best = int(np.argmax(brings))
        top, goal = float(brings[best]), float(moves.alpha[best])
        to_gain = max(top, 0.0 if self.hold_noise else state.noise_gain)
        before, action = state.objective, "noise"
        if top > tol:
            state.objective += top + _not_in_gain(state, best, goal)
            action = state.move(best, goal)
            self.left -= action == "add"
            self.n_actions += 1
        due = self.n_actions % REFRESH == 0 or top <= tol
        if self.hold_noise and due:
            state.refresh()
        elif not self.hold_noise and to_gain > tol and (due or self.n_actions <= EAGER):
            state.update_noise()
        return Info(before, to_gain, len(state.active), state.jitter, action)

    def end(self) -> Candidates:
        """Where it stands, computed from scratch."""
        self.state.refresh()
        return self.state


class CompiledAscent:
    """The same, compiled (`_sequential.cpp`)."""

    def __init__(self, problem: GaussianProblem, start: Solution, tol: float, hold_noise: bool, left: int) -> None:
        assert compiled.Search is not None
        self.problem = problem
        self.search = compiled.Search(
            problem,
            start.active.tolist(),
            start.alpha.tolist(),
            start.noise,
            tol=tol,
            hold_noise=hold_noise,
            max_additions=min(left, 2**62),
            copy=COPY,
            refresh=REFRESH,
            eager=EAGER,
            prefetch=PREFETCH,
            noise_floor=NOISE_FLOOR,
            jitter_ladder=list(JITTER_LADDER),
        )

    def step(self) -> Info:
        """As above."""
        return Info(*self.search.step())

    def end(self) -> Candidates:
        """As above."""
        active, alpha = np.array(self.search.active, dtype=np.intp), np.array(self.search.alpha)
        return Candidates(self.problem, Solution(active, alpha, self.search.noise))


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
    """
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


def certificate(state: Candidates) -> float:
    """The optimality gap: nats that the best single change of a precision or of the noise would bring."""
    return max(float(state.moves().gain.max(initial=0.0)), state.noise_gain)


def empty(noise: float) -> Solution:
    """The model without any weight."""
    return Solution(np.empty(0, dtype=np.intp), np.empty(0), noise)
