"""The loop of every solver: stop rule, trace, callback, and an exception when the objective is not finite."""

import math
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

FIND_STEPS = 1000
"""Most steps of the stage that finds a first model (where columns are copies it can be slow). The search goes on."""

State = TypeVar("State")


@dataclass
class Info:
    """What is reported of one step."""

    objective: float
    """Log evidence (with hyper-prior) of the model before the step."""
    change: float
    """The number in nats that the stop rule compares with the tolerance."""
    n_active: int
    jitter: float = 0.0
    """Largest relative jitter that a Cholesky factor needed."""
    action: str = ""


Callback = Callable[[int, Info], bool | None]
"""Called after each step; return True to stop this loop and all later ones of the same fit."""


@dataclass
class Trace:
    """The steps of all stages of one fit."""

    infos: list[Info] = field(default_factory=list)

    @property
    def objective(self) -> list[float]:
        """The objective before each step."""
        return [info.objective for info in self.infos]

    @property
    def n_jittered(self) -> int:
        """Number of steps that needed numerical rescue."""
        return sum(info.jitter > 0 for info in self.infos)

    def add(self, steps: Iterable[Info], callback: Callback | None = None) -> bool:
        """Append steps that were made, and report each to the callback. Returns whether it asks to stop."""
        stop = False
        for info in steps:
            if not math.isfinite(info.objective):
                raise FloatingPointError(
                    f"the log evidence became {info.objective} at step {len(self.infos) + 1} with {info.n_active} "
                    "active weights; check X and y for extreme values, or set hyper-priors (c, d) on the noise "
                    "precision"
                )
            self.infos.append(info)
            if callback is not None and callback(len(self.infos), info):
                stop = True
        return stop


@dataclass(frozen=True)
class Settings:
    """Tolerance in nats, largest number of steps, and a callback."""

    tol: float
    max_iter: int
    callback: Callback | None = None

    def loose(self) -> "Settings":
        """Settings for a stage that only has to come near a maximum: a tolerance of √tol nats."""
        return Settings(self.tol**0.5, min(self.max_iter, FIND_STEPS), self.callback)


def iterate(
    state: State,
    step: Callable[[State], tuple[State, Info]],
    *,
    trace: Trace,
    settings: Settings,
) -> tuple[State, bool]:
    """Step until `info.change <= tol`, at most `max_iter` times, or until the callback asks to stop.

    Returns whether the tolerance was reached.
    """
    for _ in range(settings.max_iter):
        state, info = step(state)
        stop = trace.add((info,), settings.callback)
        if info.change <= settings.tol:
            return state, True
        if stop:
            break
    return state, False


def warn_not_converged(gap: float, tol: float, max_iter: int, category: type[Warning]) -> None:
    """Warn that the certificate was not reached, and name the parameter to raise."""
    warnings.warn(
        f"not converged: a single change of the model could still raise the log evidence by {gap:.3g} nats "
        f"(tol={tol:g}). Raise max_iter (now {max_iter}) or tol.",
        category,
        stacklevel=2,
    )
