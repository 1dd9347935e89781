"""What all kernel estimators share: constraints of their parameters, small mixins, and a fit in the user's units."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sparsebayes.core.basis import KernelBasis
from sparsebayes.core.kernels import KERNELS
from sparsebayes.core.predictive import PROBABILITIES
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.data.lowrank import diagonal
from sparsebayes.engine.loop import Settings
from sparsebayes.estimators._base import progress
from sparsebayes.estimators._linear import LinearFit

KERNEL_CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": [StrOptions({*KERNELS, "precomputed"}), callable],
    "gamma": [StrOptions({"scale", "evidence"}), Interval(Real, 0, None, closed="neither")],
    "degree": [Interval(Real, 0, None, closed="neither")],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "standardize": ["boolean"],
    "candidates": [Interval(Integral, 1, None, closed="left"), "array-like", None],
    "random_state": ["random_state"],
}
VECTOR_CONSTRAINTS: dict[str, list[Any]] = {"vectors": [StrOptions({"auto", "sparse", "all"})]}
FIT_CONSTRAINTS: dict[str, list[Any]] = {
    "fit_intercept": ["boolean"],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="neither")],
    "verbose": ["verbose"],
}
REGRESSOR_CONSTRAINTS: dict[str, list[Any]] = {**FIT_CONSTRAINTS, "far_variance": [StrOptions({"none", "augment"})]}
CLASSIFIER_CONSTRAINTS: dict[str, list[Any]] = {
    **FIT_CONSTRAINTS,
    "proba": [StrOptions(set(PROBABILITIES))],
    "class_weight": [dict, StrOptions({"balanced"}), None],
    "n_jobs": [Integral, None],
}
BLOCK_NUMBERS = 4_000_000
"""Kernel values of training rows and new rows that are held at a time, in blocks of 32 MB."""


class KernelMixin:
    """An estimator with a kernel and a search."""

    kernel: Any
    tol: float
    max_iter: int
    verbose: int
    _needs_dense = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags

    def _settings(self) -> Settings:
        return Settings(self.tol, self.max_iter, progress(self.verbose))


@dataclass(frozen=True)
class FarVariance:
    """The variance of a basis function at the new point itself (RVM*; docs/rvm.md).

    The new point x gets a column k(·, x) with its own prior precision α*. To the training rows it is a candidate like
    others, with s = k*ᵀC⁻¹k*, and it adds e²/(α* + s) to the variance at x, where e is the part of k(x, x) that the
    model does not have. Far from all rows that is k(x, x)²/α*, and α* is such that this equals `signal`.
    """

    X: FloatArray
    weight: FloatArray
    signal: float

    def __call__(self, fit: "KernelFit", X: FloatArray) -> FloatArray:
        """The added variance of these rows."""
        step = max(1, BLOCK_NUMBERS // max(1, len(self.X)))
        blocks = [self._block(fit, X[i : i + step]) for i in range(0, len(X), step)]
        return np.concatenate([np.empty(0), *blocks])

    def _block(self, fit: "KernelFit", X: FloatArray) -> FloatArray:
        assert isinstance(fit.basis, KernelBasis)
        kernel, b = fit.basis.kernel, self.weight / fit.noise_variance
        K = b[:, None] ** 0.5 * kernel(self.X, X)
        projected = fit.root @ (fit.basis(self.X) * b[:, None] ** 0.5).T @ K  # root ΦᵀBk*, with Σ = rootᵀ root
        s = np.maximum(np.einsum("ij,ij->j", K, K) - np.einsum("ij,ij->j", projected, projected), 0.0)
        itself = diagonal(kernel, X)
        beyond = itself - np.einsum("ij,ji->i", fit.basis(X) @ fit.root.T, projected)
        total = itself**2 + self.signal * s
        return self.signal * beyond**2 / np.where(total > 0, total, np.inf)


@dataclass(frozen=True)
class LeftOut:
    """Prior variance of a Gaussian process that its values at the centres leave out (engine/process.py)."""

    signal: float
    """s."""
    L: FloatArray
    """Lower factor of the kernel matrix of the centres."""

    def __call__(self, basis: KernelBasis, X: FloatArray) -> FloatArray:
        """s (k(x, x) - ‖L⁻¹ k(Z, x)‖²) of these rows."""
        step = max(1, BLOCK_NUMBERS // max(1, len(self.L)))
        blocks = [self._block(basis, X[i : i + step]) for i in range(0, len(X), step)]
        return np.concatenate([np.empty(0), *blocks])

    def _block(self, basis: KernelBasis, X: FloatArray) -> FloatArray:
        inside = solve_triangular(self.L, basis.kernel(basis.centres, X), lower=True)
        return self.signal * np.maximum(diagonal(basis.kernel, X) - np.einsum("ij,ij->j", inside, inside), 0.0)


@dataclass(frozen=True)
class KernelFit(LinearFit):
    """The posterior of the kept kernel weights: all of a kernel model that predictions need."""

    indices: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    excess: float = 0.0
    """Variance of new observations beyond noise and posterior, by leave-one-out errors."""
    far: FarVariance | None = None
    rate: float = 0.0
    """λ of a Laplace prior; 0 is ARD."""
    left_out: LeftOut | None = None
    """For a Gaussian process: what its kept vectors do not span. It counts as independent in each row."""

    @property
    def vectors(self) -> FloatArray | None:
        """The kept centres; None for a precomputed kernel."""
        return self.basis.centres if isinstance(self.basis, KernelBasis) else None

    def variance_at(self, X: FloatArray, Phi: FloatArray) -> FloatArray:
        """Variance of the predictor, row by row, where Φ of these rows is known."""
        return super().variance_at(X, Phi) + self.beyond(X)

    def latent_covariance(self, X: FloatArray) -> FloatArray:
        """Joint covariance of the predictor of all rows."""
        return super().latent_covariance(X) + np.diag(self.beyond(X))

    def beyond(self, X: FloatArray) -> FloatArray:
        """Variance of the predictor that the kept vectors do not span."""
        if self.left_out is None:
            return np.zeros(len(X))
        assert isinstance(self.basis, KernelBasis)
        return self.left_out(self.basis, X)

    def own_variance(self, X: FloatArray) -> FloatArray:
        """Variance of each new observation that it shares with no other."""
        own = np.full(len(X), self.noise_variance + self.excess)
        return own if self.far is None else own + self.far(self, X)

    def noise_draws(self, X: FloatArray, n_samples: int, rng: np.random.RandomState) -> FloatArray:
        """Draws of what new observations share with no other, one row per row of X."""
        own = self.own_variance(X) + self.beyond(X)
        return np.sqrt(own)[:, None] * rng.standard_normal((len(X), n_samples))


class VectorsMixin:
    """An estimator whose fits keep relevance vectors."""

    _fits: Sequence[LinearFit]
    """Of type KernelFit; the annotation must be that of the classes which this is mixed into."""
    _single: bool
    """Whether there is one fit, whose arrays are stored as they are; otherwise lists of arrays are stored."""

    def _store_vectors(self) -> None:
        """Fitted attributes of the kept vectors."""

        fits: Any = self._fits

        def stored(values: list[Any]) -> Any:
            return values[0] if self._single else values

        self.relevance_vectors_ = stored([fit.vectors for fit in fits])
        self.relevance_indices_ = stored([fit.indices for fit in fits])
        self.dual_coef_ = stored([fit.coef for fit in fits])
        self.relevance_ = stored([fit.gamma[: len(fit.active)] for fit in fits])

    def sample_posterior(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Draws from the posterior of the kept weights.

        Returns
        -------
        dual_coef : ndarray of shape (n_samples, n_vectors)
        intercept : ndarray of shape (n_samples,)
            For 2-D y, and for more than two classes, both are lists with one array per output or class.
        """
        check_is_fitted(self)
        rng = check_random_state(random_state)
        draws = [fit.kept_samples(n_samples, rng) for fit in self._fits]
        return draws[0] if self._single else ([coef for coef, _ in draws], [level for _, level in draws])
