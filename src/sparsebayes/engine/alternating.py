"""A batch way to a first model with feature weights: all scales change at once (docs/mathematics.md, section 5).

The alternation of the DRVM thesis, with three corrections: the step in θ follows the gradient of the evidence rather
than that of the likelihood at the posterior mean, its curvature is kept positive semi-definite, and a line search makes
sure that the step gains. It only has to come near a maximum; engine/theta.py goes on from there.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sparsebayes.core.posterior import gaussian_posterior
from sparsebayes.core.scales import mackay, noise_mackay
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine.least_squares import INITIAL_NOISE, NOISE_FLOOR
from sparsebayes.engine.loop import Info, Settings, Trace, iterate
from sparsebayes.engine.theta import ThetaFit, ThetaSearch
from sparsebayes.engine.theta_model import RegressionModel, linearise
from sparsebayes.engine.width import VectorFit

MIN_GAMMA = 1e-3
"""Weights with a smaller γ are dropped. Such a weight is determined by its prior to three digits (as in batch.py)."""
MAX_ITER = 200
"""Largest number of turns. Friedman #1 with 150 rows and 10 inputs takes 35 to 48."""
HALVINGS = 12
"""A step in θ is halved at most this often. 2⁻¹² of Newton's step changes nothing that matters to the next turn."""


@dataclass(frozen=True)
class BatchState:
    """Feature weights θ with precisions β, and the vectors' precisions α (for columns as they are) with the noise."""

    theta: FloatArray
    beta: FloatArray
    active: IntArray
    alpha: FloatArray
    noise: float

    @property
    def scales(self) -> FloatArray:
        """log α and log σ²."""
        return np.asarray(np.log(np.append(self.alpha, self.noise)))


@dataclass(frozen=True)
class Alternation:
    """A way to a first model (`theta.Start`) that begins with all vectors."""

    model: RegressionModel
    search: ThetaSearch
    trace: Trace

    def initialise(self, theta: FloatArray, near: VectorFit | None) -> ThetaFit:
        """The end of the alternation from all vectors and these feature weights."""
        n_centres = len(self.search.Z)
        scale = self.model.problem_on(self.search.columns(theta, self.search.Z)).design.unit
        usable = np.flatnonzero(np.isfinite(scale))
        with np.errstate(divide="ignore"):
            beta = theta**-2.0
        # The prior gives the predictor about the target's variance: α = M for columns of unit variance.
        state = BatchState(theta, beta, usable, n_centres * scale[usable] ** 2.0, INITIAL_NOISE)
        settings = Settings(self.search.tol, MAX_ITER, self.search.callback)
        state, _ = iterate(state, self.step, trace=self.trace, settings=settings)
        return ThetaFit(state.theta, VectorFit(self.evidence(state, state.theta), state.active, state.scales))

    def step(self, state: BatchState) -> tuple[BatchState, Info]:
        """One turn: scales of the vectors and the noise, then the feature weights and their scales."""
        before = self.evidence(state, state.theta)
        state = self.update_theta(self.update_scales(state))
        # Not the objective: where the kernel is nearly linear, the prior of θ would grow without end as θ → 0.
        change = abs(self.evidence(state, state.theta) - before)
        return state, Info(before, change, len(state.active), action="alternate")

    def evidence(self, state: BatchState, theta: FloatArray) -> float:
        """Log evidence with the given feature weights."""
        K = self.search.columns(theta, self.search.Z[state.active])
        return self.model.evidence(K, state.scales).value

    def objective(self, state: BatchState, theta: FloatArray) -> float:
        """Log evidence plus the log prior of θ at its present precisions."""
        kept, value = theta > 0, self.evidence(state, theta)
        prior = 0.5 * np.log(state.beta[kept]).sum() - 0.5 * float(state.beta[kept] @ theta[kept] ** 2)
        return value + float(prior)

    def update_scales(self, state: BatchState) -> BatchState:
        """MacKay's rule for all precisions of vectors and for the noise; vectors without information are dropped."""
        problem = self.model.problem_on(self.search.columns(state.theta, self.search.Z[state.active]))
        usable = np.isfinite(problem.design.unit)
        if not usable.all():  # a column that has become constant, up to rounding
            return self.update_scales(replace(state, active=state.active[usable], alpha=state.alpha[usable]))
        square = problem.design.unit**2
        posterior = gaussian_posterior(problem.design, 1 / state.noise, problem.t / state.noise, state.alpha / square)
        residual = problem.distance(problem.design.predict(posterior.mean))
        gamma = posterior.gamma
        stays = (gamma > MIN_GAMMA) | (gamma == gamma.max(initial=0.0))
        alpha = mackay(posterior.mean, posterior.var, gamma, 0.0, 0.0) * square
        noise = max(noise_mackay(residual, state.noise, float(gamma.sum()), problem.n, 0.0, 0.0), NOISE_FLOOR)
        return replace(state, active=state.active[stays], alpha=alpha[stays], noise=noise)

    def update_theta(self, state: BatchState) -> BatchState:
        """A damped Newton step in θ, and MacKay's rule for β; features without information are dropped."""
        kept, centres = np.flatnonzero(state.theta), self.search.Z[state.active]
        theta, beta = state.theta[kept], state.beta[kept]
        X, Z, kernel = self.search.X[:, kept], centres[:, kept], self.search.kernel
        shape = kernel(X, Z, theta)
        slope = self.model.evidence(shape.value, state.scales).design
        gradient = kernel.gradient(X, Z, shape, slope) - beta * theta
        around = linearise(self.search, self.model, state.theta, centres, state.scales)
        D = around.by_theta
        if len(kept) <= len(X):
            bend = kernel.bend(X, Z, shape, np.outer(around.residual, around.w))
            inverse = np.linalg.inv(nearest_psd(D.T @ D - bend) + np.diag(beta))
            change, var = inverse @ gradient, np.diag(inverse)
        else:
            change, var = solve_by_rows(D, beta, gradient)
        theta = self._line_search(state, kept, change)
        gamma = np.clip(1 - beta * var, 0.0, 1.0)
        stays = (theta > 0) & ((gamma > MIN_GAMMA) | (theta == theta.max()))
        new_theta, new_beta = np.zeros(len(state.theta)), np.full(len(state.theta), np.inf)
        new_theta[kept[stays]] = theta[stays]
        new_beta[kept[stays]] = np.maximum(gamma[stays], MIN_GAMMA) / theta[stays] ** 2
        return replace(state, theta=new_theta, beta=new_beta)

    def _line_search(self, state: BatchState, kept: IntArray, change: FloatArray) -> FloatArray:
        """The longest of the step and its halves that does not lower the objective; no weight becomes negative."""
        before = self.objective(state, state.theta)
        for halving in range(HALVINGS):
            theta = state.theta.copy()
            theta[kept] = np.maximum(theta[kept] + 0.5**halving * change, 0.0)
            if theta.any() and self.objective(state, theta) >= before:
                return theta[kept]
        return state.theta[kept]


def nearest_psd(H: FloatArray) -> FloatArray:
    """The nearest positive semi-definite matrix: the curvature in θ is often indefinite."""
    values, vectors = np.linalg.eigh(0.5 * (H + H.T))
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def solve_by_rows(D: FloatArray, beta: FloatArray, gradient: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(B + DᵀD)⁻¹g and the diagonal of the inverse in N×N form: a Gauss-Newton step for more features than rows."""
    scaled = D / beta
    factor = cho_factor(np.eye(len(D)) + scaled @ D.T)
    change = gradient / beta - scaled.T @ cho_solve(factor, scaled @ gradient)
    return change, 1 / beta - np.einsum("ij,ij->j", scaled, cho_solve(factor, scaled))
