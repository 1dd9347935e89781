"""Feature weights of largest evidence of a Gaussian process (docs/mathematics.md, section 10).

All rows are centres and all weights of kernel columns share one prior, so that the evidence is a smooth function of the
feature weights θ alone; nothing is searched for. A feature that does not bring its price is dropped.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from scipy.optimize import minimize

from sparsebayes.core.linalg import factorise
from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.core.weighted_kernels import WeightedKernel
from sparsebayes.engine.width import Sample

LEAST = 1e-4
"""Smallest weight of a feature that is not dropped, relative to the start: its range is a hundred times longer."""
MOST = 1e3
"""Largest weight, relative to the start."""
MAX_STEPS = 100
"""Most steps of a maximisation; half of them end within 40."""
TRIAL_STEPS = 25
"""Most steps of a maximisation that tells whether a feature can be dropped."""
LIKELY = 10.0
"""Features that cost more than this many prices when nothing else changes are not tried: what others can take over is
less than that."""
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
    least_noise: float = 0.0
    """Smallest σ²."""

    @property
    def n(self) -> int:
        """Degrees of freedom: rows, less one for a flat intercept."""
        return len(self.sample.X) - self.flat_intercept

    def __call__(self, theta: FloatArray, c: float) -> Value:
        """Its value and slopes.

        With M = I + c √W H K Hᵀ √W (H centres by weight), a = M⁻¹t and σ² = tᵀa/n it is -½ [n log σ² + log |M|], and
        its slope by M is ½ [a aᵀ/σ² - M⁻¹]. Where σ² is held at its least value, tᵀa/σ² - n is
        added within the bracket.
        """
        X, weight = self.sample.X, self.sample.weight
        root, share = np.sqrt(weight), weight / weight.sum() * self.flat_intercept
        t = root * (self.sample.T[:, 0] - share @ self.sample.T[:, 0])
        shape = self.kernel(X, X, theta)
        mean = share @ shape.value
        inner = root[:, None] * (shape.value - mean - mean[:, None] + share @ mean) * root
        M = c * inner
        M.flat[:: len(M) + 1] += 1.0
        try:
            factor = factorise(M)
        except LinAlgError:  # rows so far out that their distances have no digits left
            return Value(-np.inf, np.zeros_like(theta), 0.0, 1.0)
        a = factor.solve(t)
        rest = float(t @ a)
        noise = max(rest / self.n, self.least_noise)
        half = factor.inverse_root()
        by_M = 0.5 * (np.outer(a, a) / noise - half.T @ half)
        by_K = c * root[:, None] * by_M * root
        down = by_K.sum(axis=0)
        by_K = by_K - np.outer(share, down) - np.outer(down, share) + np.outer(share, share) * down.sum()
        value = -0.5 * (self.n * np.log(noise) + rest / noise - self.n + factor.logdet)
        by_theta, by_c = self.kernel.gradient(X, X, shape, by_K), c * float(np.vdot(by_M, inner))
        return Value(float(value), by_theta, by_c, noise)

    def nothing(self) -> "ProcessTheta":
        """The model without any feature: only the mean and the noise."""
        theta = np.zeros(self.sample.X.shape[1])
        return ProcessTheta(theta, self(theta, RATIOS[0]).value, RATIOS[0])

    def maximise(self, theta: FloatArray, c: float, steps: int = MAX_STEPS) -> "ProcessTheta":
        """The largest value near θ and c, and where; weights that are zero stay so."""
        return self._maximise(theta, c, np.eye(len(theta))[theta > 0], steps)

    def maximise_size(self, theta: FloatArray, c: float) -> "ProcessTheta":
        """The largest value for weights in proportion to θ, and where."""
        return self._maximise(theta, c, (theta > 0)[None].astype(np.float64), MAX_STEPS)

    def _maximise(self, theta: FloatArray, c: float, groups: FloatArray, steps: int) -> "ProcessTheta":
        """By the common factor of each group of weights (a row of zeros and ones), and c."""

        def at(x: FloatArray) -> FloatArray:
            return np.asarray(theta * np.exp(x[:-1] @ groups))

        def loss(x: FloatArray) -> tuple[float, FloatArray]:
            there = at(x)
            found = self(there, float(np.exp(x[-1])))
            return -found.value, -np.append(groups @ (found.by_theta * there), found.by_log_c)

        start = np.append(np.zeros(len(groups)), np.log(c))
        limits = [(np.log(LEAST), np.log(MOST))] * len(groups) + [(np.log(RATIOS[0]), np.log(RATIOS[1]))]
        end = minimize(
            loss, start, jac=True, bounds=limits, method="L-BFGS-B", options={"maxiter": steps, "maxfun": 2 * steps}
        )
        return ProcessTheta(at(end.x), -float(end.fun), float(np.exp(end.x[-1])))


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

    Features that the start lacks, or that were dropped, return one by one if they bring their price.
    """
    here, returned = evidence.maximise(start, FIRST_RATIO), start < 0
    while True:
        here = _dropped(evidence, here, price)
        outside = np.flatnonzero((here.theta == 0) & ~returned)
        if not len(outside) or len(start) > evidence.n:  # with more features than rows any of them would do
            return here
        best = _most_promising(evidence, here, outside)
        returned[outside[best.theta[outside] > 0]] = True
        there = evidence.maximise(best.theta, here.c, TRIAL_STEPS)
        if not there.value > here.value + price:
            return here
        here = there


def _most_promising(evidence: ProcessEvidence, here: ProcessTheta, outside: IntArray) -> ProcessTheta:
    """With the feature that brings most at the mean weight of the others.

    A slope at zero would not do: to first order in its weight a feature acts linearly, and a parabola has no slope.
    """
    size, trials = float(here.theta[here.theta > 0].mean()), []
    for k in outside:
        theta = here.theta.copy()
        theta[k] = size
        trials.append(ProcessTheta(theta, evidence(theta, here.c).value, here.c))
    return max(trials, key=lambda trial: trial.value)


def _dropped(evidence: ProcessEvidence, here: ProcessTheta, price: float) -> ProcessTheta:
    """Without the features that do not bring their price.

    What a feature brings is what is lost after it has gone and the others have been maximised again: of two copies one
    goes. Features that each seem worthless are tried together, then those that seem to bring little one by one.
    """
    needed = np.zeros(len(here.theta), dtype=bool)
    while here.n_kept > 1:
        kept = np.flatnonzero((here.theta > 0) & ~needed)
        losses = np.array([here.value - evidence(_without(here.theta, np.array([k])), here.c).value for k in kept])
        order = np.argsort(losses)
        cheap, likely = kept[losses < price], kept[order[losses[order] < LIKELY * price]]
        groups = [cheap] if 1 < len(cheap) < here.n_kept else []
        there = _first_that_pays(evidence, here, [*groups, *likely[:, None]], price, needed)
        if there is None:
            break
        here = there
    return here


def _first_that_pays(
    evidence: ProcessEvidence, here: ProcessTheta, groups: list[IntArray], price: float, needed: BoolArray
) -> ProcessTheta | None:
    """The model without the first group that brings less than its price; single features that bring more are marked."""
    for group in groups:
        there = evidence.maximise(_without(here.theta, group), here.c, TRIAL_STEPS)
        if there.value >= here.value - price * len(group):
            return there
        if len(group) == 1:
            needed[group] = True
    return None


def _without(theta: FloatArray, features: IntArray) -> FloatArray:
    left = theta.copy()
    left[features] = 0.0
    return left


def process_relevance(evidence: ProcessEvidence, at: ProcessTheta) -> FloatArray:
    """h/(1 + h) of the kept features, where h is the curvature of the evidence in log θ.

    It is the share of a prior variance of one in log θ that the data remove.
    """
    step, relevance = 1e-4, []  # a central difference, with a relative error of step²
    for k in np.flatnonzero(at.theta):
        slopes = []
        for sign in (-1, 1):
            theta = at.theta.copy()
            theta[k] *= np.exp(sign * step)
            slopes.append(evidence(theta, at.c).by_theta[k] * theta[k])
        h = max((slopes[0] - slopes[1]) / (2 * step), 0.0)
        relevance.append(h / (1 + h))
    return np.array(relevance)
