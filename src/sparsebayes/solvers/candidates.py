"""The state of the search: the model, and what every candidate would bring to it (mathematics, section 4)."""

from collections.abc import Callable

import numpy as np

from sparsebayes.core.evidence import Moves, best_moves, log_evidence, log_hyper_prior, noise_gain
from sparsebayes.core.posterior import GaussianPosterior, posterior_from_gram
from sparsebayes.core.scales import TINY, NoiseRule, candidate, gain, is_flat, noise_mackay
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.solvers.joint import joint_change
from sparsebayes.solvers.problem import NOISE_FLOOR, GaussianProblem, Solution

COPY = 1 - 1e-10
"""Columns with a larger cosine are copies of each other; only one of them may be in the model."""
PREFETCH = 32
"""Gram columns that are computed in one pass over the rows."""


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

    @property
    def is_scale_free(self) -> bool:
        """Whether neither a price nor a prior of the precisions minds one factor on σ² and all prior variances."""
        return self.problem.price == 0 and self.problem.rate == 0 and is_flat(self.problem.a, self._rate)

    def rescale(self) -> None:
        """Multiply σ² and all prior variances by one factor, the best.

        That only scales C: μ stays, Σ grows with the factor, S and Q shrink. As a function of σ² the objective is then
        -(½N + c) log σ² - (2d + tᵀ(t - Φμ))/(2σ²), where tᵀ(t - Φμ) = ‖t - Φμ‖² + σ² μᵀAμ without cancellation.
        """
        residual, noise, gamma_sum, n, c, d = self.noise_terms
        penalty = float(self.alpha[self.active] @ self.mean**2)
        best = (2 * d + residual + noise * penalty) / (2 * c + n)
        self.noise = max(best, NOISE_FLOOR)
        factor = self.noise / noise
        self.objective -= (0.5 * n + c) * float(np.log(factor) + best / self.noise - best / noise)
        self.alpha[self.active] /= factor
        self.Sigma *= factor
        self.S /= factor
        self.Q /= factor
        self.noise_terms = (residual, self.noise, gamma_sum, n, c, d)

    def settle(self, tol: float) -> None:
        """One Newton step of all log α together, with σ² in tow; left undone where it brings less than `tol`.

        Whether it is made or not, everything is from scratch afterwards.
        """
        before, at, noise = self.objective, self.alpha[self.active], self.noise
        change = joint_change(at, self.mean, self.Sigma, self.problem.n + 2 * self.problem.c, tol)
        self.alpha[self.active] = at * np.exp(change)
        self.refresh()
        if not change.any():
            return
        self.rescale()
        if self.objective < before:
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
