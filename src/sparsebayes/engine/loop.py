"""The one loop that every solver runs in: stop rule, trace, callback, and a loud end when something is wrong."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

State = TypeVar("State")


@dataclass
class Info:
    """What a person wants to know of one step."""

    objective: float
    """Log evidence (with hyper-prior) of the model before the step."""
    change: float
    """What the stop rule looks at, in nats."""
    n_active: int
    jitter: float = 0.0
    """Largest relative jitter that a Cholesky factor needed."""
    action: str = ""


@dataclass
class Trace:
    """What happened, over all the stages of one fit."""

    infos: list[Info] = field(default_factory=list)

    @property
    def objective(self) -> list[float]:
        """The objective before each step."""
        return [info.objective for info in self.infos]

    @property
    def n_jittered(self) -> int:
        """Number of steps that needed numerical rescue."""
        return sum(info.jitter > 0 for info in self.infos)


Callback = Callable[[int, Info], bool | None]
"""Told of a step; true asks the loop to end, and is the answer to all that the same fit tells afterwards."""


@dataclass(frozen=True)
class Settings:
    """How exactly, how long, and whom to tell; `vars(settings)` are arguments of every loop."""

    tol: float
    max_iter: int
    callback: Callback | None = None


def iterate(
    state: State,
    step: Callable[[State], tuple[State, Info]],
    *,
    trace: Trace,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> tuple[State, bool]:
    """Step until `info.change <= tol`, at most `max_iter` times, or until the callback has had enough.

    Says whether the tolerance was reached.
    """
    for _ in range(max_iter):
        state, info = step(state)
        if not math.isfinite(info.objective):
            raise FloatingPointError(
                f"the log evidence became {info.objective} at step {len(trace.infos) + 1} with {info.n_active} active "
                "weights; check X and y for extreme values, or set hyper-priors (c, d) on the noise precision"
            )
        trace.infos.append(info)
        stop = callback is not None and callback(len(trace.infos), info)
        if info.change <= tol:
            return state, True
        if stop:
            break
    return state, False


def warn_not_converged(gap: float, tol: float, max_iter: int, category: type[Warning]) -> None:
    """Tell the user that the certificate was not reached, and which parameter to raise."""
    warnings.warn(
        f"not converged: a single change of the model could still raise the log evidence by {gap:.3g} nats "
        f"(tol={tol:g}). Raise max_iter (now {max_iter}) or tol.",
        category,
        stacklevel=2,
    )
