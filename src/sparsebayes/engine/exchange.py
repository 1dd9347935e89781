"""Exchanges: take one column out of the model and put another in its place, as one move.

With nearly equal columns a wrong one may be in the model instead of the right one: neither its deletion nor the
other's addition pays alone. After column i has left, S and Q of every candidate are known in closed form (the
rank-one rule of a deletion), so all exchanges cost one product of the Gram columns with Σ (docs/mathematics.md, section
4.2).
"""

from typing import NamedTuple

import numpy as np

from sparsebayes.core.linalg import typical
from sparsebayes.core.prices import Price
from sparsebayes.core.priors import Prior
from sparsebayes.core.scales import TINY
from sparsebayes.core.types import BoolArray, FloatArray, IntArray


class Exchange(NamedTuple):
    """The best replacement of each column in the model."""

    out: IntArray
    """Columns of the model, best exchange first."""
    into: IntArray
    """The columns that replace them."""
    alpha: FloatArray
    """Best precisions of these."""
    gain: FloatArray
    """Nats of priced evidence that the exchange brings, everything else unchanged; may be negative."""

    @property
    def best_gain(self) -> float:
        """Nats that the best exchange brings; 0 where none helps."""
        return float(max(self.gain.max(initial=0.0), 0.0))


def exchanges(
    prior: Prior,
    price: Price,
    active: IntArray,
    alpha: FloatArray,
    mean: FloatArray,
    Sigma: FloatArray,
    across: FloatArray,
    S: FloatArray,
    Q: FloatArray,
    barred: BoolArray,
) -> Exchange:
    """The best exchange for each column in the model.

    `alpha`, `mean` and `Sigma` belong to the active columns, S and Q to all candidates, and `across` is φᵀBΦ of every
    candidate with every active column. `barred` says which candidates may not enter. With F = across Σ, deleting
    column i makes S + F_i²/Σ_ii and Q + F_i μ_i/Σ_ii of S and Q.
    """
    barred = barred.copy()
    barred[active] = True
    outside = np.flatnonzero(~barred)
    if not len(active) or not len(outside):
        nothing = np.empty(0, dtype=np.intp)
        return Exchange(nothing, nothing, np.empty(0), np.empty(0))
    var = Sigma.diagonal()
    F = across[outside] @ Sigma
    s = S[outside, None] + F**2 / var
    q = _after_deletion(Q[outside], F / var, mean)
    own = prior.of(outside)
    nats = np.broadcast_to(price.nats, len(S)) * price.factor(len(active))
    inside = prior.of(active)
    gamma = np.clip(1 - alpha * var, 0.0, 1.0)
    present = inside.gain(alpha, gamma / var, typical(mean) / var) + inside.log_density(alpha) - nats[active]
    if prior.is_scale_free and np.ndim(price.nats) == 0:
        # The largest q²/s brings most: only that one needs its logarithm.
        place = np.argmax(own.directed(q) ** 2 / np.maximum(s, TINY), axis=0)
    else:
        place = np.argmax([_worth(own, s_i, q_i, nats[outside]) for s_i, q_i in zip(s.T, q.T, strict=True)], axis=1)
    into, each = outside[place], np.arange(len(active))
    best, s, q = prior.of(into), s[place, each], q[place, each]
    scales, worth = best.candidate(s, q), _worth(best, s, q, nats[into])
    order = np.argsort(-(worth - present))
    return Exchange(active[order], into[order], scales[order], (worth - present)[order])


def _after_deletion(Q: FloatArray, F: FloatArray, mean: FloatArray) -> FloatArray:
    """q of every candidate (rows) after each deletion (columns); of several outputs the root mean square.

    The mean square over outputs of Q + F μ is that of Q, plus 2F times the mean of Qμ, plus F² times that of μ.
    """
    if Q.ndim == 1:
        return np.asarray(Q[:, None] + F * mean)
    square = typical(Q)[:, None] ** 2 + 2 * F * (Q @ mean.T) / Q.shape[1] + (F * typical(mean)) ** 2
    return np.asarray(np.sqrt(np.maximum(square, 0.0)))


def _worth(prior: Prior, s: FloatArray, q: FloatArray, nats: FloatArray) -> FloatArray:
    """Nats of columns at their best precision, less their price; -∞ where the best precision is infinite."""
    alpha = prior.candidate(s, q)
    usable = np.isfinite(alpha)
    worth = prior.gain(alpha, s, q) - nats
    worth[usable] += prior.of(usable).log_density(alpha[usable])
    return np.where(usable, worth, -np.inf)
