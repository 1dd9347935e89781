"""Re-estimate all precisions at once, drop weights that have vanished, repeat (docs/mathematics.md, sections 1 to 3).

The loop knows no likelihood: a w-step finds the posterior for given precisions, a rule the precisions for a given
posterior. Each algorithm of the literature is a choice of the two.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from sparsebayes.core.posterior import GaussianPosterior
from sparsebayes.core.prices import Price, is_free
from sparsebayes.core.priors import Prior
from sparsebayes.core.scales import ScaleRule
from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.data.design import Columns, Design
from sparsebayes.engine.loop import Info, Settings, Trace, iterate

PRUNE_BELOW = 1e-3
"""A weight with γ below this whose best precision is ∞ is dropped: the evidence moves by fewer nats than this."""
PRICE_INFLATION = 1.5
"""Factor by which the precision of a weight that is not worth its price grows in each iteration, so that rivals can
take over before it is gone. 1.25 and 2 end at the same models (experiments/constants.py)."""
MAX_CHANGE = 1e4
"""Factor by which a precision may change in one iteration; a mean of exactly zero would make it infinite at once.
A tenth or ten times as much changes nothing."""


class CarriedValue(Protocol):
    """What a w-step hands to the next one: a noise variance, or the point where the likelihood is approximated."""

    def keep(self, which: BoolArray) -> Self:
        """The same after some weights were dropped."""


Carry = TypeVar("Carry", bound=CarriedValue)


class WStep(Protocol):
    """Posterior for given precisions, its log evidence less the prior's own term, and what to carry on."""

    @property
    def posterior(self) -> GaussianPosterior:
        """Of the weights."""

    @property
    def value(self) -> float:
        """Log evidence, less what the prior's scales add."""

    @property
    def carry(self) -> Any:
        """For the next step."""


class BatchProblem(Protocol):
    """The parts of a problem that the loop needs."""

    @property
    def design(self) -> Design:
        """Φ."""

    @property
    def prior(self) -> Prior:
        """Of the weights."""

    @property
    def price(self) -> Price:
        """Of a weight."""


@dataclass(frozen=True)
class State(Generic[Carry]):
    """What the next iteration needs."""

    design: Columns
    active: IntArray
    alpha: FloatArray
    carry: Carry
    objective: float = -np.inf


def start(problem: BatchProblem, carry: Carry, alpha: float | None = None) -> State[Carry]:
    """Every usable column in the model, with one precision: by default the prior gives the predictor variance one."""
    design = problem.design
    usable = np.flatnonzero(design.usable)
    kept: Columns = design if len(usable) == design.n_columns else design.keep(usable)
    return State(kept, usable, np.full(len(usable), float(max(1, len(usable))) if alpha is None else alpha), carry)


def stepper(
    problem: BatchProblem,
    *,
    w_step: Callable[[Columns, FloatArray, Carry], WStep],
    rule: ScaleRule,
    prune_below: float = PRUNE_BELOW,
    over_weights: Callable[..., Any] = np.max,
) -> Callable[[State[Carry]], tuple[State[Carry], Info]]:
    """One iteration: a w-step, then the scale rule. `Info` has the objective before, and how far it and γ log α move.

    Of γ log α the largest move counts; `over_weights=np.sum` is for one precision, whose γ is that of all weights.

    With a price, the precision of each weight that is not worth it (given the others, by the same s = γ/Σ_jj and
    q = μ_j/Σ_jj as in the sequential search) grows by a constant factor instead of following the rule. Weights thus
    leave by degrees, and one that becomes worth its price when its rivals fade comes back.
    """
    priced = not is_free(problem.price)
    nats = np.broadcast_to(problem.price.nats, problem.design.n_columns)

    def step(state: State[Carry]) -> tuple[State[Carry], Info]:
        prior = problem.prior.of(state.active)
        found = w_step(state.design, state.alpha, state.carry)
        posterior = found.posterior
        objective = found.value + prior.scale_term(state.alpha)
        pays = np.ones(len(state.active), dtype=bool)
        if priced or (posterior.gamma < prune_below).any():  # the candidates of a Gamma prior take time
            s, q = posterior.gamma / posterior.var, posterior.mean / posterior.var
            pays = prior.gain(prior.candidate(s, q), s, q) > nats[state.active]
        alpha = prior.reestimate(rule, posterior.mean, posterior.var, posterior.gamma)
        alpha = np.clip(alpha, state.alpha / MAX_CHANGE, state.alpha * MAX_CHANGE)
        alpha = np.maximum(alpha, prior.min_alpha)
        if priced:
            alpha = np.where(pays, alpha, state.alpha * PRICE_INFLATION)
        kept = pays | (posterior.gamma >= prune_below)
        moved = float(over_weights(posterior.gamma * np.abs(np.log(alpha / state.alpha)), initial=0.0))
        change = max(abs(objective - state.objective), moved) if kept.all() else np.inf
        info = Info(objective, change, int(kept.sum()), posterior.jitter)
        if kept.all():
            return State(state.design, state.active, alpha, found.carry, objective), info
        carry = found.carry.keep(kept)
        return State(state.design.keep(kept), state.active[kept], alpha[kept], carry, objective), info

    return step


def run(
    problem: BatchProblem,
    state: State[Carry],
    *,
    w_step: Callable[[Columns, FloatArray, Carry], WStep],
    rule: ScaleRule,
    trace: Trace,
    settings: Settings,
    prune_below: float = PRUNE_BELOW,
) -> tuple[State[Carry], bool]:
    """Alternate w-step and scale rule until neither the objective (in nats) nor γ log α moves by more than `tol`."""
    step = stepper(problem, w_step=w_step, rule=rule, prune_below=prune_below)
    return iterate(state, step, trace=trace, settings=settings)
