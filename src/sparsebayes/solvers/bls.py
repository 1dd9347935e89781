"""Regression with a Laplace prior on the weights, scaled by the noise (BLS; mathematics, section 4).

Each weight has the variance σ²g with its own g, and the g have the density (λ/2) exp(-λg/2). That is one more
candidate rule for the sequential search, which is ARD's at λ = 0. The larger λ is, the smaller the weights are, and in
the end none stays; on the way there may be more of them than ARD has, because each of them does less.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sparsebayes.solvers import ard
from sparsebayes.solvers.candidates import Candidates
from sparsebayes.solvers.loop import Callback, Trace
from sparsebayes.solvers.problem import NOISE_FLOOR, NOISE_START, GaussianProblem, Solution
from sparsebayes.solvers.sequential import ascend, empty

STEP = 10**-0.5
"""Where λ is learned: from each to the next on the way down from the least at which nothing enters,"""
N_STEPS = 16
"""so many of them at most (eight decades),"""
LOST = 30.0
"""and none once the best lies so many nats back."""
NO_RATE = 1.0
"""λ of a model that nothing can enter, which says nothing of it."""


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
    callback: Callback | None = None,
) -> Result:
    """Search with the given λ; where that is None, on a path of them, then alternate search and λ from the best on.

    λ has the prior Gamma(shape, scale), flat as it stands; `noise`, if given, is held. The alternation ends when λ has
    no more than `tol` nats to gain. It has many fixed points (a large λ keeps little, and what it keeps is small), so
    it begins at the best of the path. Of a model without weights λ learns nothing, and stays. Where a weight comes in
    or goes the best λ jumps, and there may be no λ that is its own best: as soon as one was found too small and one
    too large, the way is halved between such two.
    """
    if problem.a or problem.b.any():
        raise ValueError("a, b must be 0: the Laplace prior takes the place of the Gamma prior on the precisions")
    if rate is not None and not rate > 0:
        raise ValueError(f"rate={rate!r} must be positive, or None to learn it; solvers.ard is the limit of rate 0")
    trace, here = Trace(), empty(NOISE_START if noise is None else max(noise, NOISE_FLOOR))
    climb = partial(ascend, trace=trace, max_iter=max_iter, callback=callback, hold_noise=noise is not None)
    present, low, high = rate, 0.0, np.inf
    if present is None:
        first = empty(1.0) if noise is None else here  # all of the target is noise at first
        present, here = best_on_path(problem, first, partial(climb, tol=tol**0.5), shape, scale)
    for _ in range(max_iter):
        state, converged = climb(replace(problem, rate=present), here, tol=tol)
        best = present if rate is not None else best_rate(state, shape, scale)
        low, high = (present, high) if best > present else (low, present)
        if not converged or min(rate_gain(state, best, shape), rate_gain(state, present * low / high, shape)) <= tol:
            break
        here, present = state.solution(), best if low == 0 or high == np.inf else float(np.sqrt(low * high))
    else:
        converged = False
    noise_gain = state.noise_gain if noise is None else 0.0
    return Result(**vars(ard.describe(state, noise_gain, converged, trace)), rate=present)


def best_on_path(
    problem: GaussianProblem,
    here: Solution,
    climb: Callable[[GaussianProblem, Solution], tuple[Candidates, bool]],
    shape: float,
    scale: float,
) -> tuple[float, Solution]:
    """λ and model of largest objective on the way down from the least λ at which nothing enters.

    Each search begins where the last one ended.
    """
    nothing = Candidates(problem, here)
    rate = float((nothing.Q**2 - nothing.S).max(initial=0.0)) * here.noise
    if rate <= 0:
        return NO_RATE, here
    best, found, most = rate, here, -np.inf
    for _ in range(N_STEPS):
        rate *= STEP
        state, converged = climb(replace(problem, rate=rate), here)
        here, value = state.solution(), rate_objective(state, shape, scale)
        if value > most:
            best, found, most = rate, here, value
        if value < most - LOST or not converged:
            break
    return best, found


def rate_objective(state: Candidates, shape: float, scale: float) -> float:
    """Log evidence and log density of the kept log g and of λ, by which models under different λ can be compared.

    Of log g and not of g, so that it does not matter in which units the columns are.
    """
    model, rate = state.solution(), state.problem.rate
    half = 0.5 * rate / (model.alpha * model.noise)  # ½ λg
    return state.evidence + float((np.log(half) - half).sum()) + (shape - 1) * float(np.log(rate)) - scale * rate


def best_rate(state: Candidates, shape: float, scale: float) -> float:
    """λ = 2(M + a - 1)/(Σg + 2b), the best for the M weights in the model; as it stands where there are none."""
    count = len(state.active) + shape - 1
    if not state.active or count <= 0:
        return state.problem.rate
    model = state.solution()
    return float(2 * count / ((1 / (model.alpha * model.noise)).sum() + 2 * scale))


def rate_gain(state: Candidates, other: float, shape: float) -> float:
    """Nats between the present λ and another that is the best: (M + a - 1)(x - 1 - log x) with x = λ/other."""
    x = state.problem.rate / other if other > 0 else np.inf
    return float((len(state.active) + shape - 1) * (x - 1 - np.log(x))) if np.isfinite(x) else np.inf
