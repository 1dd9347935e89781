"""ARD by iteratively reweighted L1 (Wipf & Nagarajan 2008; docs/mathematics.md, section 2).

log|C| is concave in the prior variances v = 1/α, so a tangent bounds it from above; minimising the bound over v as well
leaves a lasso with penalties √z_m (times σ², for Gaussian noise), where z_m = φ_mᵀC⁻¹φ_m is S_m of the model. Every
outer step lowers the same cost as the other solvers do.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sparsebayes.core.prices import FREE, Marginal, is_free
from sparsebayes.core.scales import ard_candidate, gain, noise_em
from sparsebayes.core.types import FloatArray
from sparsebayes.engine.ascent import Snapshot
from sparsebayes.engine.batch import PRICE_INFLATION
from sparsebayes.engine.least_squares import INITIAL_NOISE, NOISE_FLOOR, LeastSquares, Solution, empty
from sparsebayes.engine.loop import Info, Settings, Trace, iterate
from sparsebayes.engine.state import state_of

Lasso = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], FloatArray]
"""(Φ, t, penalties, start) → argmin ½‖t - Φw‖² + Σ penalty_m |w_m|."""
MAX_INFLATION = 1e6
"""Largest factor on the penalty of a column that does not pay: with it the lasso leaves the column out.
A tenth or ten times as much changes nothing (experiments/constants.py)."""


@dataclass(frozen=True)
class State:
    """What the next outer step needs: the lasso's weights and penalties (before the factor σ²), and the noise."""

    w: FloatArray
    root_z: FloatArray
    inflation: FloatArray
    noise: float
    solution: Solution
    objective: float = -np.inf


def run(problem: LeastSquares, *, lasso: Lasso, trace: Trace, settings: Settings) -> tuple[State, bool]:
    """Alternate lasso and tangent until the objective moves by less than `tol` nats.

    The hyper-prior of the weights plays no part here (with it the inner problem is no lasso): the certifying search
    that follows brings it in. With a price, the penalty of what does not pay grows, as in the batch solver.
    """
    usable = problem.column_energy > 0
    design = np.asfortranarray(problem.design.columns(usable))
    unpriced = Marginal.at(FREE, [])

    def step(state: State) -> tuple[State, Info]:
        penalty = state.root_z * state.inflation
        w = np.zeros(problem.n_columns)
        w[usable] = lasso(design, problem.t, state.noise * penalty[usable], state.w[usable])
        active = np.flatnonzero(w)
        solution = Solution(active, penalty[active] / np.abs(w[active]), state.noise)
        model = Snapshot.of(state_of(problem, solution), unpriced)
        s, q = model.factors()
        inflation = state.inflation
        if not is_free(problem.price):
            pays = gain(ard_candidate(s, q), s, q) > problem.price.nats
            inflation = np.where(pays, 1.0, np.minimum(PRICE_INFLATION * inflation, MAX_INFLATION))
        # Rounding may leave S of a column that the model explains fully below zero.
        root_z = np.sqrt(np.maximum(model.S, np.finfo(np.float64).eps * problem.n / state.noise))
        noise = max(noise_em(*problem.noise_terms(model)), NOISE_FLOOR)
        new = State(w, root_z, inflation, noise, solution, model.objective)
        change = abs(model.objective - state.objective)
        return new, Info(model.objective, change, len(active), model.posterior.jitter)

    ones = np.ones(problem.n_columns)
    first = State(np.zeros(problem.n_columns), ones, ones, INITIAL_NOISE, empty(INITIAL_NOISE))
    return iterate(first, step, trace=trace, settings=settings)
