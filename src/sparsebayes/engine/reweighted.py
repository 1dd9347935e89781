"""ARD by iteratively reweighted L1 (Wipf & Nagarajan 2008; mathematics, section 2).

log|C| is concave in the prior variances v = 1/α, so a tangent bounds it from above; minimising the bound over v as well
leaves a lasso with penalties σ²√z_m. At a given noise every outer step lowers the same cost as the other solvers do.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sparsebayes.core.scales import ard_candidate, gain, noise_em
from sparsebayes.core.types import FloatArray
from sparsebayes.engine.batch import CHARGE
from sparsebayes.engine.candidates import Candidates
from sparsebayes.engine.loop import Callback, Info, Trace, iterate
from sparsebayes.engine.problem import NOISE_START, GaussianProblem, Solution
from sparsebayes.engine.sequential import empty

Lasso = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], FloatArray]
"""(Φ, t, penalties, start) → argmin ½‖t - Φw‖² + Σ penalty_m |w_m|."""
MAX_CHARGE = 1e6


@dataclass(frozen=True)
class State:
    """What the next outer step needs: the lasso's weights and penalties (before the factor σ²), and the noise."""

    w: FloatArray
    root_z: FloatArray
    charge: FloatArray
    noise: float
    solution: Solution
    objective: float = -np.inf


def run(
    problem: GaussianProblem,
    *,
    lasso: Lasso,
    trace: Trace,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> tuple[State, bool]:
    """Alternate lasso and tangent until the objective moves by less than `tol` nats.

    The hyper-prior a, b of the weights plays no part here (with it the inner problem is no lasso): the certifying
    search that follows brings it in. With a price, the penalty of what does not pay grows, as in the batch solver.
    """
    usable = problem.column_energy > 0
    design = np.asfortranarray(problem.rows.columns(usable))

    def step(state: State) -> tuple[State, Info]:
        penalty = state.root_z * state.charge
        w = np.zeros(problem.n_columns)
        w[usable] = lasso(design, problem.t, state.noise * penalty[usable], state.w[usable])
        active = np.flatnonzero(w)
        solution = Solution(active, penalty[active] / np.abs(w[active]), state.noise)
        model = Candidates(problem, solution)
        s, q = model.factors()
        charge = state.charge
        if problem.price > 0:
            pays = gain(ard_candidate(s, q), s, q) > problem.price
            charge = np.where(pays, 1.0, np.minimum(CHARGE * charge, MAX_CHARGE))
        # z_m = φ_mᵀ C⁻¹ φ_m, which is S_m; rounding may leave a column that the model explains fully below zero.
        root_z = np.sqrt(np.maximum(model.S, np.finfo(np.float64).eps * problem.n / state.noise))
        new = State(w, root_z, charge, model.new_noise(noise_em), solution, model.objective)
        change = abs(model.objective - state.objective)
        return new, Info(model.objective, change, len(active), model.jitter)

    ones = np.ones(problem.n_columns)
    first = State(np.zeros(problem.n_columns), ones, ones, NOISE_START, empty(NOISE_START))
    return iterate(first, step, trace=trace, tol=tol, max_iter=max_iter, callback=callback)
