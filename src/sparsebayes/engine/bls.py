"""Regression with a Laplace prior on the weights, scaled by the noise (BLS; mathematics, section 4).

Each weight has the variance σ²g with its own g, and the g have the density (λ/2) exp(-λg/2). That is one more
candidate rule for the sequential search, which is ARD's at λ = 0. The larger λ is, the smaller the weights are, and in
the end none stays.

λ is not learned by evidence. Its best value for a model is 2M/Σg, but a large λ keeps small weights, which speak for a
large λ: there are many fixed points, and the one of largest density follows the noise that is assumed rather than the
noise that there is. Rows held out say which λ predicts best (docs/rvm.md has the numbers).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sparsebayes.engine import ard
from sparsebayes.engine.loop import Callback, Settings, Trace
from sparsebayes.engine.problem import NOISE_FLOOR, NOISE_START, GaussianProblem, Solution
from sparsebayes.engine.sequential import ascend, empty, search

STEP = 10**0.5
"""Where λ is learned: from each to the next on the way up."""
HARMLESS = 0.1
"""It begins where λg is this for the largest g of ARD: hardly a prior."""
NO_RATE = 1.0
"""λ of a model that ARD leaves empty, which says nothing of it."""

Error = Callable[[ard.Result], float]
"""How badly a model predicts rows that it has not seen."""


@dataclass(frozen=True)
class Result(ard.Result):
    """A fitted model in the problem's standard units, and λ in them."""

    rate: float


def solve(
    problem: GaussianProblem,
    rate: float,
    *,
    noise: float | None = None,
    start: Solution | None = None,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> Result:
    """Search with the given λ, from nothing or from `start`; `noise`, if given, is held."""
    if problem.a or problem.b.any():
        raise ValueError("a, b must be 0: the Laplace prior takes the place of the Gamma prior on the precisions")
    if not rate > 0:
        raise ValueError(f"rate={rate!r} must be positive; ARD is the limit of rate 0")
    problem, here, trace = replace(problem, rate=rate), start or _nothing(noise), Trace()
    run = Settings(tol, max_iter, callback)
    state, converged = ascend(problem, here, trace=trace, hold_noise=noise is not None, **vars(run))
    noise_gain = state.noise_gain if noise is None else 0.0
    return Result(**vars(ard.describe(state, noise_gain, converged, trace)), rate=rate)


def learn(
    problem: GaussianProblem,
    error: Error,
    *,
    noise: float | None = None,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> Result:
    """The model of least error on a way up from ARD; its trace is that of the way to it."""
    trace, run = Trace(), Settings(tol, max_iter, callback)
    if noise is None:
        first, _ = search(problem, _nothing(noise), trace=trace, **vars(run))
    else:
        first, _ = ascend(problem, _nothing(noise), trace=trace, hold_noise=True, **vars(run))
    return min(_way_up(problem, noise, first.solution(), trace, run), key=error)


def _way_up(
    problem: GaussianProblem, noise: float | None, here: Solution, trace: Trace, run: Settings
) -> Iterator[Result]:
    """Models under larger and larger λ, each from the one before, up to the empty one or one that is cut short."""
    rate = HARMLESS * float((here.alpha * here.noise).min()) if len(here.active) else NO_RATE
    while True:
        model = solve(problem, rate, noise=noise, start=here, **vars(run))
        trace = Trace(trace.infos + model.trace.infos)
        yield replace(model, trace=trace)
        if not len(model.solution.active) or not model.converged:
            return
        here, rate = model.solution, rate * STEP


def _nothing(noise: float | None) -> Solution:
    return empty(NOISE_START if noise is None else max(noise, NOISE_FLOOR))
