"""Squared extrapolation of an iteration that creeps (Varadhan & Roland 2008; docs/mathematics.md, section 1).

After two plain steps x₀ → x₁ → x₂, with r = x₁ - x₀ and v = x₂ - 2x₁ + x₀, the iteration goes on from
x₀ + 2λr + λ²v, λ = ‖r‖/‖v‖: for a linear map with one slow direction that is the fixed point itself. A plain step
from there follows, and if the objective has fallen it goes on from x₂ instead. So the objective never falls where it
does not under the plain steps.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

from sparsebayes.core.types import FloatArray
from sparsebayes.engine.loop import Info

LONGEST_EXTRAPOLATION = 30.0
"""Largest λ, in steps; two steps do not determine a longer extrapolation. 15 and 60 end at the same evidence
(experiments/constants.py)."""
ROUNDING = 1e-13
"""Share of the objective, a sum over a thousand rows, that an extrapolation may seem to lose by rounding."""

State = TypeVar("State")


def extrapolate(
    x0: FloatArray, x1: FloatArray, x2: FloatArray, weight: FloatArray, longest: float = LONGEST_EXTRAPOLATION
) -> FloatArray:
    """x₀ + 2λr + λ²v; x₂ where λ is not above one. In the norms coordinates count by their weight."""
    r, v = x1 - x0, x2 - 2 * x1 + x0
    first, bend = float(weight @ r**2), float(weight @ v**2)
    length = float(np.sqrt(first / bend)) if bend * longest**2 > first else longest
    return np.asarray(x0 + 2 * length * r + length**2 * v) if length > 1 else x2


@dataclass(frozen=True)
class Extrapolated(Generic[State]):
    """A state of an iteration with extrapolations."""

    here: State
    before: tuple[FloatArray, ...] = ()
    """Coordinates of the plain steps since the last extrapolation."""
    fallback: State | None = None
    """The state before `here` was extrapolated; the iteration continues from it if `here` is worse."""
    reached: float = -np.inf
    """The last objective."""


@dataclass(frozen=True)
class Extrapolation(Generic[State]):
    """Plain steps, and after every two of them an extrapolation."""

    step: Callable[[State], tuple[State, Info]]
    """The plain step: the next state, and the objective at the given one."""
    coordinates: Callable[[State], FloatArray]
    at: Callable[[State, FloatArray], State]
    """The state with other coordinates."""
    weight: FloatArray
    """Of the coordinates."""
    longest: float = LONGEST_EXTRAPOLATION

    def __call__(self, state: Extrapolated[State]) -> tuple[Extrapolated[State], Info]:
        """One step."""
        new, info = self.step(state.here)
        if state.fallback is not None:
            if not info.objective >= state.reached - ROUNDING * (1 + abs(state.reached)):
                new, info = self.step(state.fallback)
            # A plain step damps the errors of the extrapolation.
            return Extrapolated(new, reached=info.objective), info
        if not state.before:
            return Extrapolated(new, (self.coordinates(state.here),), reached=info.objective), info
        x2 = self.coordinates(new)
        there = extrapolate(state.before[0], self.coordinates(state.here), x2, self.weight, self.longest)
        if there is x2:
            return Extrapolated(new, reached=info.objective), info
        return Extrapolated(self.at(new, there), fallback=new, reached=info.objective), info
