"""Feature weights of largest evidence of a Gaussian process (docs/mathematics.md, section 10).

All rows are centres and all weights of kernel columns share one prior, so that the evidence is a smooth function of the
feature weights θ alone; nothing is searched for. A feature that does not bring its price is dropped.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from sparsebayes.core.linalg import factorise
from sparsebayes.core.types import FloatArray
from sparsebayes.core.weighted_kernels import WeightedKernel
from sparsebayes.engine.width import Sample

LEAST = 1e-4
"""Smallest weight of a feature that is not dropped, relative to the start: its range is a hundred times longer."""
MOST = 1e3
"""Largest weight, relative to the start."""
MAX_STEPS = 100
"""Most steps of a maximisation; half of them end within 40."""
RATIOS = (1e-4, 1e8)
"""Limits of s/σ²: from no signal to the noise floor."""
FIRST_RATIO = 10.0
"""s/σ² to start with."""
SAMPLE_ROWS = 300
"""Rows from which the weights are found: an evaluation takes 10 ms."""


class Value(NamedTuple):
    """A value of the evidence, its slopes, and the noise σ² there."""

    value: float
    by_theta: FloatArray
    by_log_c: float
    noise: float


@dataclass(frozen=True)
class ProcessEvidence:
    """The evidence of a Gaussian process at its best noise, as a function of θ and c = s/σ², up to a constant."""

    kernel: WeightedKernel
    sample: Sample
    flat_intercept: bool

    @property
    def n(self) -> int:
        """Degrees of freedom: rows, less one for a flat intercept."""
        return len(self.sample.X) - self.flat_intercept

    def __call__(self, theta: FloatArray, c: float) -> Value:
        """Its value and slopes.

        With M = I + c √W H K Hᵀ √W (H centres by weight), a = M⁻¹t and σ² = tᵀa/n it is -½ [n log σ² + log |M|], and
        its slope by M is ½ [a aᵀ/σ² - M⁻¹].
        """
        X, weight = self.sample.X, self.sample.weight
        root, share = np.sqrt(weight), weight / weight.sum() * self.flat_intercept
        t = root * (self.sample.T[:, 0] - share @ self.sample.T[:, 0])
        shape = self.kernel(X, X, theta)
        mean = share @ shape.value
        inner = root[:, None] * (shape.value - mean - mean[:, None] + share @ mean) * root
        M = c * inner
        M.flat[:: len(M) + 1] += 1.0
        factor = factorise(M)
        a = factor.solve(t)
        noise = float(t @ a) / self.n
        half = factor.inverse_root()
        by_M = 0.5 * (np.outer(a, a) / noise - half.T @ half)
        by_K = c * root[:, None] * by_M * root
        down = by_K.sum(axis=0)
        by_K = by_K - np.outer(share, down) - np.outer(down, share) + np.outer(share, share) * down.sum()
        value = -0.5 * (self.n * np.log(noise) + factor.logdet)
        by_theta, by_c = self.kernel.gradient(X, X, shape, by_K), c * float(np.vdot(by_M, inner))
        return Value(float(value), by_theta, by_c, noise)

    def maximise(self, theta: FloatArray, c: float) -> "ProcessTheta":
        """The largest value near θ and c, and where; weights that are zero stay so."""
        free = np.flatnonzero(theta)

        def loss(x: FloatArray) -> tuple[float, FloatArray]:
            at = np.zeros_like(theta)
            at[free] = np.exp(x[:-1])
            found = self(at, float(np.exp(x[-1])))
            return -found.value, -np.append(found.by_theta[free] * at[free], found.by_log_c)

        start = np.log(np.append(theta[free], c))
        limits = [(x + np.log(LEAST), x + np.log(MOST)) for x in start[:-1]] + [(np.log(RATIOS[0]), np.log(RATIOS[1]))]
        end = minimize(loss, start, jac=True, bounds=limits, method="L-BFGS-B", options={"maxiter": MAX_STEPS})
        there = np.zeros_like(theta)
        there[free] = np.exp(end.x[:-1])
        return ProcessTheta(there, -float(end.fun), float(np.exp(end.x[-1])))


class ProcessTheta(NamedTuple):
    """Feature weights of a Gaussian process."""

    theta: FloatArray
    value: float
    """Log evidence, up to a constant."""
    c: float
    """s/σ²."""

    @property
    def n_kept(self) -> int:
        """Features with a weight."""
        return int((self.theta > 0).sum())


def process_theta(evidence: ProcessEvidence, start: FloatArray, price: float) -> ProcessTheta:
    """θ of largest evidence from a start, without the features that do not bring their price.

    Features that each seem worthless are dropped together; where they bring more than their price together, as copies
    of each other do, only the cheapest goes.
    """
    here = evidence.maximise(start, FIRST_RATIO)
    while here.n_kept > 1:
        kept = np.flatnonzero(here.theta)
        without = [np.where(np.arange(len(start)) == k, 0.0, here.theta) for k in kept]
        losses = np.array([here.value - evidence(each, here.c).value for each in without])
        cheapest, cheap = int(np.argmin(losses)), kept[losses < price]
        if not len(cheap):
            break
        trials = [without[cheapest]]
        if 1 < len(cheap) < len(kept):
            trials.insert(0, np.where(np.isin(np.arange(len(start)), cheap), 0.0, here.theta))
        ends = (evidence.maximise(trial, here.c) for trial in trials)
        there = next((end for end in ends if end.value >= here.value - price * (here.n_kept - end.n_kept)), None)
        if there is None:
            break
        here = there
    return here


def process_relevance(evidence: ProcessEvidence, at: ProcessTheta) -> FloatArray:
    """h/(1 + h) of the kept features, where h is the curvature of the evidence in log θ.

    It is the share of a prior variance of one in log θ that the data remove.
    """
    step, relevance = 1e-4, []
    for k in np.flatnonzero(at.theta):
        slopes = []
        for sign in (-1, 1):
            theta = at.theta.copy()
            theta[k] *= np.exp(sign * step)
            slopes.append(evidence(theta, at.c).by_theta[k] * theta[k])
        h = max((slopes[0] - slopes[1]) / (2 * step), 0.0)
        relevance.append(h / (1 + h))
    return np.array(relevance)
