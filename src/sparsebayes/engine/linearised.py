"""Add or delete one basis at a time through a local Gaussian view, for likelihoods that are not Gaussian.

The sites of the present model make every candidate's s and q (engine/sequential.py); the best move is made, the model
settles (scales, mode or contact points, in the small space of its own weights), and the view is taken anew. A move
counts only if the priced evidence has really risen.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparsebayes.core.scales import mackay
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import batch
from sparsebayes.engine.batch import WStep
from sparsebayes.engine.bernoulli import BernoulliProblem, Contact, Mode
from sparsebayes.engine.candidates import Candidates
from sparsebayes.engine.loop import Callback, Info, Trace, iterate
from sparsebayes.engine.problem import Solution

MIN_RISE = 1e-3
"""Nats that a move must really bring; the view promises only approximately."""
DOUBT = 3.0
"""What a column is worth by the view is trusted from this many prices on."""
TRIES = 3
"""Moves that are tried, best first, before the model counts as a maximum."""
EXPLORE_PRICE = 3.0
"""An excursion pays a price divided by this."""
EXPLORE_ADDITIONS = 10

Carry = Mode | Contact
Step = Callable[[DenseRows, FloatArray, Any], WStep[Any]]
"""A w-step together with the kind of carry that it takes."""


@dataclass(frozen=True)
class Model:
    """Which columns, their precisions, where the view is taken, and the log evidence of it all."""

    active: IntArray
    alpha: FloatArray
    carry: Carry
    evidence: float = -np.inf

    def priced(self, price: float) -> float:
        """Log evidence less the price of what is kept."""
        return self.evidence - price * len(self.active)


@dataclass(frozen=True)
class Search:
    """A problem with a way to take its w-step, and the settings of the loops."""

    problem: BernoulliProblem
    w_step: Step
    tol: float
    max_iter: int
    callback: Callback | None = None

    def settle(self, model: Model) -> Model:
        """Converge scales and view for the columns of the model; none is dropped."""
        unpriced = replace(self.problem, price=0.0)
        state = batch.State(self.problem.rows.keep(model.active), model.active, model.alpha, model.carry)
        state, _ = batch.run(
            unpriced, state, w_step=self.w_step, rule=mackay, trace=Trace(), tol=1e-5, max_iter=200, gone=0.0
        )
        return Model(state.active, state.alpha, state.carry, state.objective)

    def candidates(self, model: Model) -> Candidates:
        """s and q of every candidate under the view of this model."""
        sites = self.problem.sites(self.problem.rows.keep(model.active), model.carry)
        return Candidates(self.problem.gaussian_view(sites), Solution(model.active, model.alpha, 1.0))

    def without_doubtful(self, model: Model, worth: FloatArray) -> dict[int, Model]:
        """The model without each column that the view finds worth little more than the price, settled anew.

        Where the kept columns all but separate the classes there is no curvature left, and the view finds each of them
        worth next to nothing; what a column really brings is what is lost without it.
        """
        doubtful = model.active[worth[model.active] < DOUBT * self.problem.price]
        return {int(j): self.settle(_moved(model, int(j), np.inf)) for j in doubtful}

    def ascend(self, model: Model, trace: Trace, price: float, max_additions: int | None = None) -> tuple[Model, bool]:
        """Take the best move that really raises the priced evidence, until there is none."""
        searcher = replace(self, problem=replace(self.problem, price=price))
        left = self.max_iter if max_additions is None else max_additions

        def step(model: Model) -> tuple[Model, Info]:
            nonlocal left
            candidates = searcher.candidates(model)
            moves = candidates.moves()
            inside = np.zeros(len(moves.gain), dtype=bool)
            inside[model.active] = True
            # Precisions inside are settled already: what counts there is whether a basis still pays.
            gains = np.where(inside & np.isfinite(moves.alpha), 0.0, moves.gain)
            if not left:
                gains[~inside] = 0.0
            best = float(gains.max(initial=0.0))
            for j in np.argsort(-gains)[:TRIES]:
                if gains[j] <= MIN_RISE:
                    break
                there = searcher.settle(_moved(model, int(j), float(moves.alpha[j])))
                if there.priced(price) > model.priced(price) + MIN_RISE:
                    left -= not inside[j]
                    return there, Info(there.evidence, best, len(there.active))
            fewer = searcher.without_doubtful(model, moves.worth).values()
            there = max(fewer, key=lambda other: other.priced(price), default=model)
            if there.priced(price) > model.priced(price) + MIN_RISE:
                return there, Info(there.evidence, best, len(there.active))
            return model, Info(model.evidence, 0.0, len(model.active))

        return iterate(model, step, trace=trace, tol=0.0, max_iter=self.max_iter, callback=self.callback)

    def run(self, model: Model, trace: Trace) -> tuple[Model, bool]:
        """Ascend; then, as in the Gaussian search, make excursions (here: at a lower price) while they pay."""
        price = self.problem.price
        best, converged = self.ascend(self.settle(model), trace, price)
        while converged and price > 0:
            excursion = Trace()
            low, _ = self.ascend(best, excursion, price / EXPLORE_PRICE, EXPLORE_ADDITIONS)
            there, converged = self.ascend(low, excursion, price)
            if not converged or there.priced(price) <= best.priced(price) + MIN_RISE:
                return best, True
            best = there
            trace.infos.extend(excursion.infos)
        return best, converged


def _moved(model: Model, j: int, alpha: float) -> Model:
    """The model with basis j added at this precision, or taken out (∞)."""
    if np.isfinite(alpha):
        return Model(np.append(model.active, j), np.append(model.alpha, alpha), model.carry.grow())
    stays = model.active != j
    return Model(model.active[stays], model.alpha[stays], model.carry.keep(stays))
