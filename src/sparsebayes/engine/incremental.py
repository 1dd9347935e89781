"""Variational logistic regression on rows that arrive one by one or in blocks (docs/mathematics.md, section 7).

The posterior and the number of rows seen are the whole state. A block's ξ are iterated together; when the block has
fewer rows than there are weights, that happens among the rows (for a single row: Sherman-Morrison and the determinant
lemma), otherwise among the weights.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import LinAlgError

from sparsebayes.core.likelihoods import Bernoulli, Sites, weighted
from sparsebayes.core.linalg import factorise, factorise_balanced, weighted_gram
from sparsebayes.core.types import FloatArray

REFRESH = 1000
"""Rows after which the covariance is recomputed from the precision matrix, so that rounding does not pile up:
a thousand updates lose at most three of sixteen digits."""
MAX_SHRINKAGE = 1e7
"""Largest factor by which a block may shrink a variance if the covariance is updated by a difference, which then loses
seven of sixteen digits. Beyond it the covariance is computed from the precision matrix, which has no differences."""
MOST_INFLATED = 1e-3 / np.finfo(np.float64).eps
"""Largest variance of a weight over the variance that it would have if the others were known: three digits are left of
what prior and rows say about the least determined direction."""
MAX_INNER = 500
"""Iterations of a block's contact points: five are usual. Separable blocks under a weak prior take more; what is left
then is still a bound."""


@dataclass(frozen=True)
class Belief:
    """Gaussian belief about the weights: precision P, P μ, and the covariance and log|Σ| kept beside them."""

    precision: FloatArray
    vector: FloatArray
    covariance: FloatArray
    logdet: float
    n_seen: float = 0.0
    stale: int = 0
    """Rows since the covariance was last computed from the precision."""

    @classmethod
    def prior(cls, alpha: FloatArray) -> "Belief":
        """N(0, diag(α)⁻¹)."""
        return cls(np.diag(alpha), np.zeros(len(alpha)), np.diag(1 / alpha), -float(np.log(alpha).sum()))

    @property
    def mean(self) -> FloatArray:
        """μ."""
        return self.covariance @ self.vector


def update(belief: Belief, Phi: FloatArray, t: FloatArray, weight: FloatArray, tol: float) -> Belief:
    """Take in a block of rows.

    ξ starts at 0 and is iterated until the bound, ½ μᵀΣ⁻¹μ + ½ log|Σ| + Σ(site constants), moves by less than `tol` of
    itself. LinAlgError if prior and rows leave a direction undetermined, to working precision.
    """
    # A row's precision is a quarter at most.
    shrinkage = np.einsum("nm,nm->n", Phi @ belief.covariance, Phi) * weight / 4
    few = len(Phi) < Phi.shape[1] and shrinkage.max(initial=0.0) < MAX_SHRINKAGE
    among = _among_rows if few else _among_weights
    xi = np.zeros(len(t))
    last = -np.inf
    for _ in range(MAX_INNER):
        sites = weighted(Bernoulli().bound(t, xi), weight)
        new, eta, variance = among(belief, Phi, sites)
        bound = 0.5 * float(new.vector @ new.mean) + 0.5 * new.logdet + float(sites.const.sum())
        if abs(bound - last) < tol * abs(bound):
            break
        last = bound
        xi = np.sqrt(eta**2 + variance)
    new = replace(new, n_seen=belief.n_seen + float(weight.sum()))
    return _refreshed(new) if new.stale >= REFRESH else new


def _among_rows(belief: Belief, Phi: FloatArray, sites: Sites) -> tuple[Belief, FloatArray, FloatArray]:
    """Σ' = Σ - ΣΦᵀ√B (I + √B ΦΣΦᵀ √B)⁻¹ √BΦΣ; mean and variance of the block's η under it."""
    b = np.asarray(sites.precision)
    half = np.sqrt(b)[:, None] * Phi
    projected = half @ belief.covariance
    factor = factorise(np.eye(len(Phi)) + projected @ half.T)
    root = factor.half_solve(projected)
    covariance = belief.covariance - root.T @ root
    vector = belief.vector + Phi.T @ sites.shift
    new = Belief(
        belief.precision + weighted_gram(Phi, b),
        vector,
        covariance,
        belief.logdet - factor.logdet,
        stale=belief.stale + len(Phi),
    )
    return new, Phi @ (covariance @ vector), np.einsum("nm,nm->n", Phi @ covariance, Phi)


def _among_weights(belief: Belief, Phi: FloatArray, sites: Sites) -> tuple[Belief, FloatArray, FloatArray]:
    """Σ' = (P + ΦᵀBΦ)⁻¹ from scratch; mean and variance of the block's η under it."""
    vector = belief.vector + Phi.T @ sites.shift
    new = _refreshed(replace(belief, precision=belief.precision + weighted_gram(Phi, sites.precision), vector=vector))
    return new, Phi @ new.mean, np.einsum("nm,nm->n", Phi @ new.covariance, Phi)


def _refreshed(belief: Belief) -> Belief:
    factor, scale = factorise_balanced(belief.precision)
    root = factor.inverse_root()
    if factor.jitter or np.einsum("ij,ij->j", root, root).max() > MOST_INFLATED:
        raise LinAlgError("the precision matrix of the weights is singular to working precision")
    root /= scale
    logdet = -factor.logdet - 2 * float(np.log(scale).sum())
    return replace(belief, covariance=root.T @ root, logdet=logdet, stale=0)
