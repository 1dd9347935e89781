"""What each column, or unit of columns, would bring to a model: s and q from its state, the moves from its prior."""

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from sparsebayes.core.linalg import typical
from sparsebayes.core.posterior import relevance
from sparsebayes.core.prices import Marginal
from sparsebayes.core.priors import Moves
from sparsebayes.core.types import FloatArray, IntArray

if TYPE_CHECKING:
    from sparsebayes.engine.state import Snapshot, State


def column_factors(model: "State | Snapshot") -> tuple[FloatArray, FloatArray]:
    """s and q of every candidate; in the model through γ/Σ_jj and μ_j/Σ_jj, which do not cancel."""
    s, q, active = model.S.copy(), typical(model.Q).copy(), model.active
    var = model.Sigma.diagonal()
    s[active] = relevance(model.alpha[active], var) / var
    q[active] = typical(model.mean) / var
    return s, q


def unit_block(model: "State | Snapshot", unit: IntArray) -> tuple[FloatArray, FloatArray]:
    """S (as a matrix) and Q of the columns of a unit, as if none of them were in the model.

    Outside, S = βG - β²PΣPᵀ with G the unit's own products and P those with the model. Inside, the unit's block of Σ is
    (A + S)⁻¹, and its μ is that times Q.
    """
    beta, problem = 1 / model.noise, model.problem
    if np.isinf(model.alpha[unit[0]]):
        P = model.gram[unit]
        S = beta * problem.design.gram_columns(unit)[unit] - beta**2 * P @ model.Sigma @ P.T
        return S, beta * (problem.projection[unit] - P @ model.mean)
    active = list(model.active)
    place = [active.index(j) for j in unit]
    precision = np.asarray(np.linalg.inv(model.Sigma[np.ix_(place, place)]), dtype=np.float64)
    return precision - np.diag(model.alpha[unit]), precision @ model.mean[place]


def unit_moves(model: "State | Snapshot", price: Marginal) -> Moves:
    """The best change of every unit, given all others; a copy of a column in the model has no move."""
    problem, inside = model.problem, np.isfinite(model.alpha)
    prices, block = price.of(inside, problem.price.nats), partial(unit_block, model)
    moves = problem.prior.at_noise(model.noise).moves(*model.factors(), model.alpha, prices, block)
    return moves._replace(gain=np.where((model.copies > 0) & ~inside, 0.0, moves.gain))
