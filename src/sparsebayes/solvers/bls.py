"""Regression with a Laplace prior on the weights, scaled by the noise (BLS; mathematics, section 4).

Each weight has the variance σ²g with its own g, and the g have the density (λ/2) exp(-λg/2). That is one more
candidate rule for the sequential search, which is ARD's at λ = 0; the larger λ is, the fewer weights stay and the
smaller they are.
"""

from dataclasses import dataclass, replace

import numpy as np

from sparsebayes.solvers import ard
from sparsebayes.solvers.candidates import Candidates
from sparsebayes.solvers.loop import Callback, Trace
from sparsebayes.solvers.problem import NOISE_FLOOR, NOISE_START, GaussianProblem, Solution
from sparsebayes.solvers.sequential import ascend, certificate, empty

START_RATE = 1.0
"""First λ where it is learned: weights are expected to be about as large as the noise, in standard units."""


@dataclass(frozen=True)
class Result(ard.Result):
    """A fitted model in the problem's standard units, and λ in them."""

    rate: float


def solve(
    problem: GaussianProblem,
    rate: float | None = None,
    *,
    shape: float = 1.0,
    scale: float = 0.0,
    noise: float | None = None,
    tol: float,
    max_iter: int,
    start: Solution | None = None,
    start_rate: float = START_RATE,
    callback: Callback | None = None,
) -> Result:
    """Search with the given λ; where that is None, alternate search and λ until λ has no more than `tol` nats to gain.

    λ has the prior Gamma(shape, scale), flat as it stands; `noise`, if given, is held. Of a model without weights λ
    learns nothing, and stays. Where a weight comes in or goes the best λ jumps, and there may be no λ that is its own
    best: so as soon as one was found too small and one too large, the way is halved between such two.
    """
    if problem.a or problem.b.any():
        raise ValueError("a, b must be 0: the Laplace prior takes the place of the Gamma prior on the precisions")
    if rate is not None and not rate > 0:
        raise ValueError(f"rate={rate!r} must be positive, or None to learn it; solvers.ard is the limit of rate 0")
    trace, here = Trace(), empty(NOISE_START) if start is None else start
    if noise is not None:
        here = replace(here, noise=max(noise, NOISE_FLOOR))
    present, low, high = start_rate if rate is None else rate, 0.0, np.inf
    for _ in range(max_iter):
        state, converged = ascend(
            replace(problem, rate=present),
            here,
            trace=trace,
            tol=tol,
            max_iter=max_iter,
            callback=callback,
            hold_noise=noise is not None,
        )
        best = present if rate is not None else best_rate(state, shape, scale)
        low, high = (present, high) if best > present else (low, present)
        if not converged or min(rate_gain(state, best, shape), rate_gain(state, present * low / high, shape)) <= tol:
            break
        here, present = state.solution(), best if low == 0 or high == np.inf else float(np.sqrt(low * high))
    else:
        converged = False
    gap = certificate(state) if noise is None else float(state.moves().gain.max(initial=0.0))
    return Result(**vars(ard.describe(state, gap, converged, trace)), rate=present)


def best_rate(state: Candidates, shape: float, scale: float) -> float:
    """λ of largest objective for the weights in the model; as it stands where there are none."""
    count = len(state.active) + shape - 1
    return rate_of(state.solution(), shape, scale) if state.active and count > 0 else state.problem.rate


def rate_of(model: Solution, shape: float = 1.0, scale: float = 0.0) -> float:
    """λ = 2(M + a - 1)/(Σg + 2b) of M weights with the variances σ²g = 1/α."""
    g = 1 / (model.alpha * model.noise)
    return float(2 * (len(g) + shape - 1) / (g.sum() + 2 * scale))


def rate_gain(state: Candidates, other: float, shape: float) -> float:
    """Nats between the present λ and another that is the best: (M + a - 1)(x - 1 - log x) with x = λ/other."""
    x = state.problem.rate / other if other > 0 else np.inf
    return float((len(state.active) + shape - 1) * (x - 1 - np.log(x))) if np.isfinite(x) else np.inf
