"""Re-estimate all scales at once, drop what is gone, repeat (mathematics, sections 1 to 3).

The loop knows no likelihood: a w-step finds the posterior for given precisions. The rows are touched only through the
reductions of `core.posterior.Reductions`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from sparsebayes.core.posterior import GaussianPosterior
from sparsebayes.core.scales import ScaleRule, ard_candidate, gain
from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.loop import Callback, Info, Trace, iterate

GONE = 1e-3
"""A weight with γ below this that would rather be out (its best precision is ∞) is dropped: it moves the evidence by
less than this many nats."""
CHARGE = 1.5
"""Factor by which the precision of a weight that is not worth its price grows in each iteration."""


MAX_CHANGE = 1e4
"""Factor by which a precision may change in one iteration; a mean of exactly zero would make it infinite at once."""


class Carried(Protocol):
    """What a w-step hands to the next one: a noise variance, a mode, the contact points of a bound."""

    def keep(self, which: BoolArray) -> Self:
        """The same after some weights were dropped."""


Carry = TypeVar("Carry", bound=Carried)


@dataclass(frozen=True)
class WStep(Generic[Carry]):
    """Posterior for given precisions, its log evidence less the part of the prior's scales, and what to carry on."""

    posterior: GaussianPosterior
    value: float
    carry: Carry


class Problem(Protocol):
    """What the loop asks of a problem: the candidate columns and what is believed of their weights."""

    @property
    def rows(self) -> DenseRows:
        """Φ."""

    @property
    def price(self) -> float:
        """Nats that a weight must bring."""

    @property
    def least_alpha(self) -> float:
        """Smallest precision that makes sense."""

    @property
    def a(self) -> float:
        """Shape of the Gamma prior of the precisions."""

    @property
    def b(self) -> FloatArray:
        """Its rate, per column."""

    def scale_term(self, active: IntArray, alpha: FloatArray) -> float:
        """What the precisions' own prior adds to the objective, ½ log|A| included."""


@dataclass(frozen=True)
class State(Generic[Carry]):
    """What the next iteration needs."""

    rows: DenseRows
    active: IntArray
    alpha: FloatArray
    carry: Carry
    objective: float = -np.inf


def start(problem: Problem, carry: Carry, alpha: float | None = None) -> State[Carry]:
    """Every usable column in the model, with one precision: by default the prior gives the predictor variance one."""
    usable = np.flatnonzero(np.isfinite(problem.rows.scale))
    rows = problem.rows if len(usable) == problem.rows.n_columns else problem.rows.keep(usable)
    return State(rows, usable, np.full(len(usable), float(max(1, len(usable))) if alpha is None else alpha), carry)


def run(
    problem: Problem,
    state: State[Carry],
    *,
    w_step: Callable[[DenseRows, FloatArray, Carry], WStep[Carry]],
    rule: ScaleRule,
    trace: Trace,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
    gone: float = GONE,
) -> tuple[State[Carry], bool]:
    """Alternate w-step and scale rule until neither the objective (in nats) nor γ log α moves by more than `tol`.

    With a price, the precision of each weight that is not worth it (given the others, by the same s = γ/Σ_jj and
    q = μ_j/Σ_jj as in the sequential search) grows by a constant factor instead of following the rule. Weights thus
    leave by degrees, and one that becomes worth its price when its rivals fade comes back.
    """

    def step(state: State[Carry]) -> tuple[State[Carry], Info]:
        b = problem.b[state.active]
        found = w_step(state.rows, state.alpha, state.carry)
        posterior = found.posterior
        objective = found.value + problem.scale_term(state.active, state.alpha)
        s, q = posterior.gamma / posterior.var, posterior.mean / posterior.var
        pays = gain(ard_candidate(s, q, problem.a, b), s, q) > problem.price
        alpha = rule(posterior.mean, posterior.var, posterior.gamma, problem.a, b)
        alpha = np.clip(alpha, state.alpha / MAX_CHANGE, state.alpha * MAX_CHANGE)
        alpha = np.maximum(alpha, problem.least_alpha)
        if problem.price > 0:
            alpha = np.where(pays, alpha, state.alpha * CHARGE)
        kept = pays | (posterior.gamma >= gone)
        moved = float(np.max(posterior.gamma * np.abs(np.log(alpha / state.alpha)), initial=0.0))
        change = max(abs(objective - state.objective), moved) if kept.all() else np.inf
        info = Info(objective, change, int(kept.sum()), posterior.jitter)
        if kept.all():
            return State(state.rows, state.active, alpha, found.carry, objective), info
        carry = found.carry.keep(kept)
        return State(state.rows.keep(kept), state.active[kept], alpha[kept], carry, objective), info

    return iterate(state, step, trace=trace, tol=tol, max_iter=max_iter, callback=callback)
