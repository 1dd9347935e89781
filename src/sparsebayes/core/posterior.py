"""The Gaussian posterior of the weights given the sites, in the cheaper of its two shapes.

Σ = (A + Φᵀ B Φ)⁻¹ and μ = Σ Φᵀ h. With M weights and N rows this is a Cholesky factor of an M×M matrix, or of the N×N
matrix C' = I + √B Φ A⁻¹ Φᵀ √B; the choice is made here, on the number of weights that are left, and nowhere else.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from sparsebayes.core.linalg import factorise
from sparsebayes.core.types import FloatArray, Scalar


class Reductions(Protocol):
    """The products with Φ (N×M) that a posterior needs; every class that stores rows has these methods."""

    @property
    def n_rows(self) -> int:
        """N."""

    @property
    def n_columns(self) -> int:
        """M."""

    def gram(self, weight: FloatArray | Scalar = 1.0) -> FloatArray:
        """Φᵀ diag(weight) Φ."""

    def outer(self, weight: FloatArray) -> FloatArray:
        """Φ diag(weight) Φᵀ."""

    def project(self, rows: FloatArray) -> FloatArray:
        """Φᵀ rows, for a vector or a matrix with N rows."""

    def predict(self, weights: FloatArray) -> FloatArray:
        """Φ weights, the linear predictor of every row."""

    def row_variance(self, root: FloatArray) -> FloatArray:
        """‖root φₙ‖² for every row, for a root with M columns."""


@dataclass(frozen=True)
class GaussianPosterior:
    """μ and Σ, the latter as diag(diagonal) + sign · rootᵀ root so that no M×M matrix is needed when M > N."""

    mean: FloatArray
    var: FloatArray
    gamma: FloatArray
    logdet: float
    root: FloatArray
    diagonal: FloatArray
    sign: int
    jitter: float
    known_covariance: FloatArray | None = field(default=None, repr=False)
    """Σ in full, if it was computed."""
    known_variance: "tuple[Reductions, FloatArray] | None" = field(default=None, repr=False)
    """A design and φₙᵀ Σ φₙ for each of its rows, if they were computed."""

    def covariance(self) -> FloatArray:
        """Σ in full (M×M)."""
        if self.known_covariance is not None:
            return self.known_covariance
        Sigma = self.root.T @ self.root
        if self.sign < 0:
            np.negative(Sigma, out=Sigma)
        Sigma.flat[:: len(Sigma) + 1] += self.diagonal
        return Sigma

    def quadratic(self, rows: FloatArray) -> FloatArray:
        """rᵀ Σ r for every row r of a matrix with M columns."""
        projected = rows @ self.root.T
        return np.asarray(self.sign * np.einsum("ij,ij->i", projected, projected) + rows**2 @ self.diagonal)

    def predictor_variance(self, rows: Reductions) -> FloatArray:
        """φₙᵀ Σ φₙ for every row."""
        if self.known_variance is not None and self.known_variance[0] is rows:
            return self.known_variance[1]
        explained = self.sign * rows.row_variance(self.root)
        if self.sign < 0:
            explained += np.diag(rows.outer(self.diagonal))
        return np.maximum(explained, 0.0)


def gaussian_posterior(
    rows: Reductions,
    precision: FloatArray | Scalar,
    shift: FloatArray,
    alpha: FloatArray,
    own_shift: FloatArray | Scalar = 0.0,
) -> GaussianPosterior:
    """Posterior of the weights under sites with precision b and shift h and prior precisions α.

    `own_shift` is a linear term of the prior: it adds own_shiftᵀw to the log density of the weights.
    """
    if rows.n_columns <= rows.n_rows:
        return posterior_from_gram(rows.gram(precision), rows.project(shift) + own_shift, alpha)
    return _by_rows(rows, precision, shift, alpha, own_shift)


def relevance(alpha: FloatArray, var: FloatArray) -> FloatArray:
    """γ = 1 - αΣ_jj, which lies in [0, 1] but for rounding: how well the data determine each weight."""
    return np.minimum(np.maximum(1 - alpha * var, 0.0), 1.0)


def posterior_from_gram(gram: FloatArray, projection: FloatArray, alpha: FloatArray) -> GaussianPosterior:
    """M×M shape, from ΦᵀBΦ and Φᵀh. Dividing by √α on both sides keeps the factor safe for α over many decades.

    Φᵀh may have a column for each of several outputs with the same sites; so has the mean, then.
    """
    scale = 1 / np.sqrt(alpha)
    inner = scale[:, None] * gram * scale
    inner.flat[:: len(inner) + 1] += 1.0
    factor = factorise(inner)
    root = factor.inverse_root() * scale
    var = (root**2).sum(axis=0)
    mean = (scale * factor.solve((scale * projection.T).T).T).T
    gamma = relevance(alpha, var)
    logdet = -factor.logdet - float(np.log(alpha).sum())
    return GaussianPosterior(mean, var, gamma, logdet, root, np.zeros_like(alpha), 1, factor.jitter)


def _by_rows(
    rows: Reductions,
    precision: FloatArray | Scalar,
    shift: FloatArray,
    alpha: FloatArray,
    own_shift: FloatArray | Scalar,
) -> GaussianPosterior:
    """N×N shape: C' = I + √B Φ A⁻¹ Φᵀ √B needs no 1/b, so saturated rows (b → 0) do no harm."""
    b = np.broadcast_to(np.asarray(precision, dtype=np.float64), (rows.n_rows,))
    half = np.sqrt(b)
    variance = 1 / alpha
    prior = rows.outer(variance)
    inner = half[:, None] * prior * half
    inner.flat[:: len(inner) + 1] += 1.0
    factor = factorise(inner)
    # Σ(Φᵀh + l) = A⁻¹[Φᵀ(h - √B C'⁻¹ √B Φ A⁻¹(Φᵀh + l)) + l], the push-through identity without 1/b.
    own = np.broadcast_to(own_shift, variance.shape)
    residual = shift - half * factor.solve(half * (prior @ shift + rows.predict(variance * own)))
    mean = variance * (rows.project(residual) + own)
    root = rows.project((factor.inverse_root() * half).T).T * variance
    explained = (root**2).sum(axis=0)
    gamma = np.clip(alpha * explained, 0.0, 1.0)
    logdet = -factor.logdet - float(np.log(alpha).sum())
    solved = factor.half_solve(half[:, None] * prior)  # ΦΣΦᵀ = K - K √B C'⁻¹ √B K with K = Φ A⁻¹ Φᵀ
    known = rows, np.maximum(np.diag(prior) - (solved**2).sum(axis=0), 0.0)
    return GaussianPosterior(
        mean, variance - explained, gamma, logdet, root, variance, -1, factor.jitter, known_variance=known
    )
