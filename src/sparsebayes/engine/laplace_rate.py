"""The rate λ of a Laplace prior on the weights, scaled by the noise (BLS; docs/mathematics.md, section 2).

Each weight has the variance σ²g with its own g, and the g have the density (λ/2) exp(-λg/2) (core/priors.py, Laplace).
At λ = 0 that is ARD; the larger λ is, the smaller the weights are, and in the end none stays.

λ is not learned by evidence. Its best value for a model is 2M/Σg, but a large λ keeps small weights, which in turn ask
for a large λ: there are many fixed points, and the one of largest density depends on the assumed noise rather than on
the real one. So λ is chosen by the prediction of held-out rows (docs/rvm.md has the numbers).
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from sparsebayes.core.priors import Laplace
from sparsebayes.engine.ascent import Limits
from sparsebayes.engine.gaussian_search import climb, search
from sparsebayes.engine.least_squares import INITIAL_NOISE, NOISE_FLOOR, LeastSquares, Solution, empty
from sparsebayes.engine.loop import Settings, Trace
from sparsebayes.engine.regression import described
from sparsebayes.engine.result import Result

STEP = 10**0.5
"""Factor from each λ to the next. A finer grid changes the error by less than its standard error (docs/rvm.md)."""
HARMLESS = 0.1
"""The first λ makes λg this for the largest g of ARD: the prior then takes λg/2 = 0.05 nats from that weight."""
EMPTY_RATE = 1.0
"""λ that is reported for a model that ARD leaves empty: any number, because no λ would change the model."""

TIE = 1e-3
"""Errors that differ by no more than this share are equal, and the largest λ is taken: where λ hardly matters, rounding
would choose otherwise."""

Error = Callable[[LeastSquares, Result], float]
"""How badly a model predicts held-out rows."""


def with_rate(problem: LeastSquares, rate: float) -> LeastSquares:
    """The same problem under a Laplace prior."""
    return replace(problem, prior=Laplace(rate=rate))


def solve(
    problem: LeastSquares, rate: float, settings: Settings, *, noise: float | None = None, start: Solution | None = None
) -> Result:
    """Climb with the given λ, from nothing or from `start`; `noise`, if given, is held."""
    if not problem.prior.is_scale_free:
        raise ValueError("the prior must be flat: the Laplace prior takes the place of a hyper-prior on the precisions")
    if not rate > 0:
        raise ValueError(f"rate={rate!r} must be positive; ARD is the limit of rate 0")
    trace, held = Trace(), noise is not None
    limits = Limits(settings.tol, hold_noise=held)
    snapshot, converged = climb(with_rate(problem, rate), start or _nothing(noise), limits, trace, settings)
    return described(snapshot, converged, trace, hold_noise=held)


def learn(
    problem: LeastSquares, error: Error, settings: Settings, *, noise: float | None = None
) -> tuple[Result, float]:
    """The model of least error on a path of growing λ that begins at ARD, and its λ; the trace is that of its path."""
    trace = Trace()
    if noise is None:
        first, _ = search(problem, _nothing(noise), trace, settings)
    else:
        first, _ = climb(problem, _nothing(noise), Limits(settings.tol, hold_noise=True), trace, settings)
    path = list(_path(problem, noise, first.solution, trace, settings))
    errors = [error(with_rate(problem, rate), model) for model, rate in path]
    return [pair for pair, each in zip(path, errors, strict=True) if each <= min(errors) * (1 + TIE)][-1]


def _path(
    problem: LeastSquares, noise: float | None, here: Solution, trace: Trace, settings: Settings
) -> Iterator[tuple[Result, float]]:
    """Models under larger and larger λ, each from the one before, up to the empty one or one that is cut short."""
    rate = HARMLESS * float((here.alpha * here.noise).min()) if len(here.active) else EMPTY_RATE
    while True:
        model = solve(problem, rate, settings, noise=noise, start=here)
        trace = Trace(trace.infos + model.trace.infos)
        yield replace(model, trace=trace), rate
        if not len(model.active) or not model.converged:
            return
        here, rate = model.solution, rate * STEP


def _nothing(noise: float | None) -> Solution:
    return empty(INITIAL_NOISE if noise is None else max(noise, NOISE_FLOOR))
