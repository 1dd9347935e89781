"""The state of the search: the model, and what every candidate would bring to it (mathematics, section 4)."""

from collections.abc import Callable
from typing import TypedDict

import numpy as np

from sparsebayes.core.evidence import Moves, best_moves, log_evidence, log_hyper_prior, noise_gain
from sparsebayes.core.posterior import GaussianPosterior, posterior_from_gram, relevance
from sparsebayes.core.scales import NoiseRule, noise_mackay
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine.joint import PARTS, joint_change
from sparsebayes.engine.problem import NOISE_FLOOR, GaussianProblem, Solution

COPY = 1 - 1e-10
"""Columns with a larger cosine are copies of each other; only one of them may be in the model."""
PREFETCH = 32
"""Gram columns that are computed in one pass over the rows."""
NEAR = 64
"""Candidates outside the model that are kept current between two surveys of all of them,"""
ALL_NEAR = 512
"""unless there are no more than so many columns: to keep all of those current takes no time."""


def n_near(n_columns: int) -> int:
    """How many candidates are kept current."""
    return n_columns if n_columns <= ALL_NEAR else NEAR


def by_promise(gain: FloatArray, S: FloatArray, Q: FloatArray) -> IntArray:
    """Candidates by what they bring, and those that bring nothing by how near to it they are, q²/s.

    Were they taken in the order in which they happen to stand, the search would depend on it.
    """
    return np.lexsort((-np.where(S > 0, Q**2 / np.where(S > 0, S, 1.0), 0.0), -gain))


class Standing(TypedDict):
    """What a compiled search knows at its end, computed from scratch."""

    active: list[int]
    alpha: FloatArray
    noise: float
    S: FloatArray
    Q: FloatArray
    mean: FloatArray
    Sigma: FloatArray
    root: FloatArray
    """Σ = rootᵀ root."""
    logdet: float
    """log|Σ|."""
    jitter: float
    noise_terms: tuple[float, float, float, float, float, float]
    evidence: float
    objective: float
    gram: FloatArray
    copies: IntArray


class Candidates:
    """μ, Σ of the model and S, Q of the candidates, kept current while bases come and go.

    An action changes S and Q of every candidate, but the next few are nearly always among the few best. So the search
    surveys all candidates, narrows them to those few, and acts on what is in the model and `near` it until another,
    `beyond`, may bring more than any of these. The S and Q of the others are those of the last survey.
    """

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
        self.near: IntArray = np.arange(problem.n_columns)
        """Candidates whose S and Q are current."""
        self.beyond = 0.0
        """The largest gain of a candidate that is not near, at the last survey."""
        self.S, self.Q = np.empty(problem.n_columns), np.empty(problem.n_columns)
        self.survey()

    @classmethod
    def surveyed(cls, problem: GaussianProblem, known: "Standing") -> "Candidates":
        """The same where a compiled search stands, which has just computed everything itself."""
        state = cls.__new__(cls)
        state.problem, state._rate = problem, problem.b if problem.b.any() else 0.0
        state.active, state.alpha, state.noise = known["active"], known["alpha"], known["noise"]
        state.near, state.beyond = np.arange(problem.n_columns), 0.0
        state._gram, state._copies = known["gram"], known["copies"]
        state.S, state.Q, state.mean, state.Sigma = known["S"], known["Q"], known["mean"], known["Sigma"]
        alpha, var, jitter = state.alpha[state.active], state.Sigma.diagonal(), known["jitter"]
        gamma, logdet = relevance(alpha, var), known["logdet"]
        none = np.zeros(len(alpha))
        state.posterior = GaussianPosterior(state.mean, var, gamma, logdet, known["root"], none, 1, jitter)
        state.noise_terms, state.jitter = known["noise_terms"], jitter
        state.residual, state.evidence, state.objective = state.noise_terms[0], known["evidence"], known["objective"]
        return state

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

    def survey(self) -> None:
        """Everything from scratch, for the present α and σ²; all are near then."""
        self.near = np.arange(self.problem.n_columns)
        self.beyond = 0.0
        self.refresh()

    def narrow(self) -> None:
        """Of those near only the candidates of largest gain stay."""
        outside = np.flatnonzero(np.isinf(self.alpha))
        gain = self.moves().gain[outside]
        order, count = by_promise(gain, self.S[outside], self.Q[outside]), n_near(self.problem.n_columns)
        self.near = outside[order[:count]]
        self.beyond = float(gain[order[count]]) if len(order) > count else 0.0

    def refresh(self) -> None:
        """The model and those near it from scratch, for the present α and σ²."""
        active, alpha, p = self.active, self.alpha[self.active], self.problem
        posterior = self.posterior = self._posterior()
        self.mean, self.Sigma, self.jitter = posterior.mean, posterior.covariance(), posterior.jitter
        near, beta = self.near, 1 / self.noise
        P = self.gram_columns[near]
        felt = P @ posterior.root.T  # Σ = rootᵀ root
        self.S[near] = beta * p.column_energy[near] - beta**2 * np.einsum("ij,ij->i", felt, felt)
        self.Q[near] = beta * (p.projection[near] - P @ self.mean)
        self._measure()
        fit = p.fit(self.residual, self.noise)
        self.evidence = log_evidence(fit, self.mean, alpha, posterior.logdet)
        rate = self._rate[active] if isinstance(self._rate, np.ndarray) else self._rate
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

    def _posterior(self) -> GaussianPosterior:
        """Posterior of the weights in the model, from scratch."""
        beta, active = 1 / self.noise, self.active
        gram = beta * self.gram_columns[active]
        return posterior_from_gram(gram, beta * self.problem.projection[active], self.alpha[active])

    def factors(self) -> tuple[FloatArray, FloatArray]:
        """s and q of every candidate; in the model through γ/Σ_jj and μ_j/Σ_jj, which do not cancel."""
        s, q = self.S.copy(), self.Q.copy()
        active, var = np.array(self.active, dtype=np.intp), self.Sigma.diagonal()
        s[active] = relevance(self.alpha[active], var) / var
        q[active] = self.mean / var
        return s, q

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
        return moves._replace(gain=np.where(barred, 0.0, moves.gain))

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

    def rescale(self) -> None:
        """Multiply σ² and all prior variances by one factor, the best.

        That only scales C: μ stays, Σ grows with the factor, S and Q shrink. As a function of σ² the objective is then
        -(½N + c) log σ² - (2d + tᵀ(t - Φμ))/(2σ²), where tᵀ(t - Φμ) = ‖t - Φμ‖² + σ² μᵀAμ without cancellation. A
        Laplace prior's part, -½ λΣg with g = 1/(ασ²), stays.
        """
        residual, noise, gamma_sum, n, c, d = self.noise_terms
        penalty = float(self.alpha[self.active] @ self.mean**2)
        best = (2 * self.problem.d + residual + noise * penalty) / (2 * c + n)
        self.noise = max(best, NOISE_FLOOR)
        factor = self.noise / noise
        self.objective -= (0.5 * n + c) * float(np.log(factor) + best / self.noise - best / noise)
        self.alpha[self.active] /= factor
        self.Sigma *= factor
        self.S /= factor
        self.Q /= factor
        d = self.problem.d + factor * (d - self.problem.d)  # see `_measure`
        self.noise_terms = (residual, self.noise, gamma_sum, n, c, d)

    def settle(self, tol: float, hold_noise: bool = False) -> None:
        """One Newton step of all log α together, with σ² in tow or held; left undone where it brings less than `tol`.

        Where the whole of it goes too far a part of it may do. Whether it is made or not, everything is from scratch
        afterwards.
        """
        before, at, noise = self.objective, self.alpha[self.active], self.noise
        n = np.inf if hold_noise else self.problem.n + 2 * self.problem.c
        change = joint_change(at, self.mean, self.Sigma, n, self.pull, tol)
        for part in PARTS if change.any() else ():
            self.alpha[self.active], self.noise = at * np.exp(part * change), noise
            self.refresh()
            if not hold_noise:
                self.rescale()
            if self.objective >= before:
                return
        self.alpha[self.active], self.noise = at, noise
        self.refresh()

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
        self._append_column(M, j, lambda: self.near[:PREFETCH])
        g = self.Sigma @ (beta * self._gram[j, :M])
        beta_e = beta * (self._gram[self.near, M] - self._gram[self.near, :M] @ g)  # φ_mᵀ B e_j for every m near
        var = 1 / (alpha + self.S[j])
        mean = var * self.Q[j]
        corner = -var * g[:, None]
        self.Sigma = np.block([[self.Sigma + var * np.outer(g, g), corner], [corner.T, np.full((1, 1), var)]])
        self.mean = np.append(self.mean - mean * g, mean)
        self.S[self.near] -= var * beta_e**2
        self.Q[self.near] -= mean * beta_e
        self.active.append(j)
        self.alpha[j] = alpha

    def _reestimate(self, j: int, alpha: float) -> None:
        position = self.active.index(j)
        change = alpha - self.alpha[j]
        self._rank_one(position, change / (1 + change * self.Sigma[position, position]))
        self.alpha[j] = alpha

    def _delete(self, j: int) -> None:
        position = self.active.index(j)
        s, q = self.factors()
        self._rank_one(position, 1 / self.Sigma[position, position])
        self.S[j], self.Q[j] = s[j], q[j]
        if j not in self.near:
            self.near = np.append(self.near, j)
        self.Sigma = np.delete(np.delete(self.Sigma, position, 0), position, 1)
        self.mean = np.delete(self.mean, position)
        self._copies -= self._is_copy(self._gram[:, position], j)
        self._gram[:, position : len(self.active) - 1] = self._gram[:, position + 1 : len(self.active)]
        self.active.pop(position)
        self.alpha[j] = np.inf

    def _rank_one(self, position: int, kappa: float) -> None:
        column, mean = self.Sigma[:, position].copy(), self.mean[position]
        felt = (self.gram_columns[self.near] @ column) / self.noise  # φ_mᵀ B Φ Σ_j for every m near
        self.Sigma -= kappa * np.outer(column, column)
        self.mean = self.mean - kappa * mean * column
        self.S[self.near] += kappa * felt**2
        self.Q[self.near] += kappa * mean * felt

    def _append_column(self, position: int, j: int, ahead: Callable[[], IntArray]) -> None:
        if position == self._gram.shape[1]:
            wider = np.empty((len(self._gram), max(8, 2 * position)), order="F")
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
