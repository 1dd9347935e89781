"""Sample and feature weights in batch: both in turns, all scales at once (docs/mathematics.md, section 5).

The source's alternation, with three corrections: the step in θ follows the gradient of the evidence rather than that of
the likelihood at the posterior mean, its curvature is kept positive definite, and a line search makes sure that the
step gains. It only has to come near a maximum; engine/theta.py goes on from there.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from sparsebayes.core.posterior import gaussian_posterior
from sparsebayes.core.scales import mackay, noise_mackay
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine.drvm import RegressionBlock, linearised
from sparsebayes.engine.least_squares import INITIAL_NOISE, NOISE_FLOOR, Solution
from sparsebayes.engine.loop import Info, Settings, Trace, iterate
from sparsebayes.engine.theta import Weighed, Weigher
from sparsebayes.engine.width import Fit

LEAST_SHARE = 1e-3
"""What the data says of a scale, as a share: a weight of which they say less is gone."""
TURNS = 200
HALVINGS = 12


@dataclass(frozen=True)
class State:
    """Both blocks: weights of the inputs with their precisions, precisions of the vectors (of raw columns), noise."""

    theta: FloatArray
    beta: FloatArray
    active: IntArray
    alpha: FloatArray
    noise: float


@dataclass(frozen=True)
class Alternation:
    """A regression and its inputs, to be weighed in batch."""

    block: RegressionBlock
    weigher: Weigher[Solution]
    trace: Trace

    def begun(self, theta: FloatArray, near: Fit[Solution] | None) -> Weighed[Solution]:
        """Where the alternation ends that starts with all vectors and these weights."""
        n_centres = len(self.weigher.Z)
        scale = self.block.problem_on(self.weigher.columns(theta, self.weigher.Z)).design.scale
        useful = np.flatnonzero(np.isfinite(scale))
        with np.errstate(divide="ignore"):
            beta = theta**-2.0
        state = State(theta, beta, useful, n_centres * scale[useful] ** 2.0, INITIAL_NOISE)
        settings = Settings(self.weigher.tol, TURNS, self.weigher.callback)
        state, _ = iterate(state, self.step, trace=self.trace, settings=settings)
        scales, model = np.log(np.append(state.alpha, state.noise)), Solution(state.active, state.alpha, state.noise)
        return Weighed(state.theta, Fit(self.evidence(state, state.theta), state.active, scales, model))

    def step(self, state: State) -> tuple[State, Info]:
        """One turn: scales of the vectors and the noise, then the weights of the inputs and theirs."""
        before = self.evidence(state, state.theta)
        state = self.weighed(self.rescaled(state))
        # Not the objective: where the kernel is nearly linear already, the prior of θ would rise for ever as θ → 0.
        change = abs(self.evidence(state, state.theta) - before)
        return state, Info(before, change, len(state.active), action="alternate")

    def evidence(self, state: State, theta: FloatArray) -> float:
        """Log evidence with other weights of the inputs."""
        K = self.weigher.columns(theta, self.weigher.Z[state.active])
        return self.block.evidence(K, np.log(np.append(state.alpha, state.noise))).value

    def objective(self, state: State, theta: FloatArray) -> float:
        """Log evidence, and the prior of θ at its present precisions."""
        kept, value = theta > 0, self.evidence(state, theta)
        prior = 0.5 * np.log(state.beta[kept]).sum() - 0.5 * float(state.beta[kept] @ theta[kept] ** 2)
        return value + float(prior)

    def rescaled(self, state: State) -> State:
        """MacKay's rule for all precisions of vectors, and for the noise; what the data says nothing of goes."""
        problem = self.block.problem_on(self.weigher.columns(state.theta, self.weigher.Z[state.active]))
        useful = np.isfinite(problem.design.scale)
        if not useful.all():  # a column that has become constant, but for rounding
            return self.rescaled(replace(state, active=state.active[useful], alpha=state.alpha[useful]))
        square = problem.design.scale**2
        posterior = gaussian_posterior(problem.design, 1 / state.noise, problem.t / state.noise, state.alpha / square)
        residual = problem.distance(problem.design.predict(posterior.mean))
        gamma = posterior.gamma
        stays = (gamma > LEAST_SHARE) | (gamma == gamma.max(initial=0.0))
        alpha = mackay(posterior.mean, posterior.var, gamma, 0.0, 0.0) * square
        noise = max(noise_mackay(residual, state.noise, float(gamma.sum()), problem.n, 0.0, 0.0), NOISE_FLOOR)
        return State(state.theta, state.beta, state.active[stays], alpha[stays], noise)

    def weighed(self, state: State) -> State:
        """A damped Newton step in θ, and MacKay's rule for its precisions β; what the data says nothing of goes."""
        kept, centres = np.flatnonzero(state.theta), self.weigher.Z[state.active]
        theta, beta, scales = state.theta[kept], state.beta[kept], np.log(np.append(state.alpha, state.noise))
        X, Z, kernel = self.weigher.X[:, kept], centres[:, kept], self.weigher.kernel
        shape = kernel(X, Z, theta)
        slope = self.block.evidence(shape.value, scales).design
        gradient = kernel.gradient(X, Z, shape, slope) - beta * theta
        around = linearised(self.weigher, self.block, state.theta, centres, scales)
        if len(kept) <= len(X):
            bend = kernel.bend(X, Z, shape, np.outer(around.residual, around.w))
            inverse = np.linalg.inv(positive(around.D.T @ around.D - bend) + np.diag(beta))
            change, var = inverse @ gradient, np.diag(inverse)
        else:
            change, var = by_rows(around.D, beta, gradient)
        theta = self._along(state, kept, change)
        gamma = np.clip(1 - beta * var, 0.0, 1.0)
        stays = (theta > 0) & ((gamma > LEAST_SHARE) | (theta == theta.max()))
        new_theta, new_beta = np.zeros(len(state.theta)), np.full(len(state.theta), np.inf)
        new_theta[kept[stays]] = theta[stays]
        new_beta[kept[stays]] = np.maximum(gamma[stays], LEAST_SHARE) / theta[stays] ** 2
        return State(new_theta, new_beta, state.active, state.alpha, state.noise)

    def _along(self, state: State, kept: IntArray, change: FloatArray) -> FloatArray:
        """As far along a step as the objective rises; no weight below 0."""
        before = self.objective(state, state.theta)
        for halving in range(HALVINGS):
            theta = state.theta.copy()
            theta[kept] = np.maximum(theta[kept] + 0.5**halving * change, 0.0)
            if theta.any() and self.objective(state, theta) >= before:
                return theta[kept]
        return state.theta[kept]


def positive(H: FloatArray) -> FloatArray:
    """The nearest positive semi-definite matrix: the full curvature in θ is often indefinite."""
    values, vectors = np.linalg.eigh(0.5 * (H + H.T))
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def by_rows(D: FloatArray, beta: FloatArray, gradient: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(B + DᵀD)⁻¹g and its diagonal in N×N form, for more features than rows (the Gauss-Newton curvature)."""
    felt = D / beta
    factor = cho_factor(np.eye(len(D)) + felt @ D.T)
    change = gradient / beta - felt.T @ cho_solve(factor, felt @ gradient)
    return change, 1 / beta - np.einsum("ij,ij->j", felt, cho_solve(factor, felt))
