"""The gain of the best move of each column, or unit of columns: s and q by the state, moves by the prior."""

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sparsebayes.core.linalg import typical
from sparsebayes.core.posterior import relevance
from sparsebayes.core.prices import Marginal
from sparsebayes.core.priors import Moves
from sparsebayes.core.types import FloatArray, IntArray

if TYPE_CHECKING:
    from sparsebayes.engine.ascent import Snapshot
    from sparsebayes.engine.state import State


def column_factors(model: "State | Snapshot") -> tuple[FloatArray, FloatArray]:
    """s and q of every candidate; in the model through γ/Σ_jj and μ_j/Σ_jj, which do not cancel.

    Without noise rank-one updates may leave no digit of a variance. It is at least 1/(α + β‖φ‖²), that of a column
    alone.
    """
    s, q, active = model.S.copy(), typical(model.Q).copy(), model.active
    alpha = model.alpha[active]
    alone = 1 / (alpha + model.problem.column_energy[active] / model.noise)
    var = np.maximum(model.Sigma.diagonal(), alone)
    s[active] = relevance(alpha, var) / var
    q[active] = typical(model.mean) / var
    return s, q


class Surroundings(NamedTuple):
    """Numbers from which S and Q of units follow, as if the units were not in the model."""

    own: FloatArray
    """Φ_uᵀBΦ_u of every unit."""
    across: FloatArray
    """φᵀBΦ of every candidate with every column of the model."""
    Q: FloatArray
    """Of every candidate, given the whole model."""
    active: IntArray
    alpha: FloatArray
    """Of every candidate; ∞ outside the model."""
    mean: FloatArray
    Sigma: FloatArray


def unit_blocks(at: Surroundings, units: IntArray) -> tuple[FloatArray, FloatArray]:
    """S (as matrices) and Q of units of one size, as if none of their columns were in the model.

    Outside, S = Φ_uᵀBΦ_u - PΣPᵀ with P the unit's products with the model. Inside, the unit's block of Σ is (A + S)⁻¹,
    and its μ is that times Q.
    """
    P = at.across[units]
    S, Q = at.own - (P @ at.Sigma) @ P.swapaxes(1, 2), at.Q[units].copy()
    inside = np.flatnonzero(np.isfinite(at.alpha[units[:, 0]]))
    if len(inside):
        place = np.full(len(at.alpha), -1)
        place[at.active] = np.arange(len(at.active))
        S[inside], Q[inside] = inside_blocks(at.alpha[at.active], at.mean, at.Sigma, place[units[inside]])
    return S, Q


def inside_blocks(
    alpha: FloatArray, mean: FloatArray, Sigma: FloatArray, units: IntArray
) -> tuple[FloatArray, FloatArray]:
    """S and Q of units of a model, given by their places among its columns."""
    precision = np.asarray(np.linalg.inv(Sigma[units[:, :, None], units[:, None, :]]), dtype=np.float64)
    S = precision - np.eye(units.shape[1]) * alpha[units][:, None, :]
    return S, (precision @ mean[units][:, :, None])[:, :, 0]


def search_blocks(model: "State", units: IntArray) -> tuple[FloatArray, FloatArray]:
    """The same under the model of a Gaussian search."""
    beta, problem = 1 / model.noise, model.problem
    Q = beta * (problem.projection - model.gram @ model.mean)
    active = np.array(model.active, dtype=np.intp)
    own = beta * problem.own_products(units)
    return unit_blocks(Surroundings(own, beta * model.gram, Q, active, model.alpha, model.mean, model.Sigma), units)


def unit_moves(model: "State", price: Marginal) -> Moves:
    """The best change of every unit, given all others; a copy of a column in the model has no move."""
    problem, inside = model.problem, np.isfinite(model.alpha)
    prices, blocks = price.of(inside, problem.price.nats), partial(search_blocks, model)
    moves = problem.prior.at_noise(model.noise).moves(*model.factors(), model.alpha, prices, blocks)
    copy = (model.copies > 0) & ~inside
    return moves._replace(alpha=np.where(copy, np.inf, moves.alpha), gain=np.where(copy, 0.0, moves.gain))
