"""A fitted model, linear in its basis, in the user's units: made from a solver's result, and asked for predictions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparsebayes.core.basis import KernelBasis, LinearBasis
from sparsebayes.core.likelihoods import StudentT
from sparsebayes.core.mixtures import student_half_width
from sparsebayes.core.posterior import GaussianPosterior
from sparsebayes.core.predictive import central_interval
from sparsebayes.core.prices import Price
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine.least_squares import LeastSquares, Solution
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.result import Result


@dataclass(frozen=True)
class LinearFit:
    """Posterior of the kept weights, and of the intercept (last) where there is one.

    The covariance is diag(diagonal) + sign · rootᵀ root: with more weights than rows (ridge) no square matrix is kept.
    The intercept is the predictor at `basis.reference`, not at zero: there it is uncorrelated with the weights, and
    nothing cancels when the inputs lie far from the origin.
    """

    basis: LinearBasis | KernelBasis
    mean: FloatArray
    root: FloatArray
    diagonal: FloatArray
    sign: int
    columns: IntArray
    """Columns of the design that have a precision: those kept and, with an ARD prior on it, the intercept (last)."""
    precision: FloatArray
    gamma: FloatArray
    log_evidence: float
    path: FloatArray
    worth: FloatArray
    min_gain: float
    gap: float = 0.0
    converged: bool = True
    n_jittered: int = 0
    noise_variance: float = 0.0
    freedom: float = np.inf
    noise_at_floor: bool = False

    @property
    def width(self) -> int:
        """Numbers that a prediction forms for each row."""
        return len(self.mean)

    @property
    def active(self) -> IntArray:
        """Columns that are kept."""
        return self.columns[: len(self.mean) - self.basis.ones]

    @property
    def coef(self) -> FloatArray:
        """Posterior mean of the kept columns' weights."""
        return self.mean[: len(self.active)]

    @property
    def covariance(self) -> FloatArray:
        """Posterior covariance of the kept columns' weights."""
        n = len(self.active)
        root = self.root[:, :n]
        Sigma = self.sign * (root.T @ root)
        Sigma.flat[:: n + 1] += self.diagonal[:n]
        return Sigma

    @property
    def intercept(self) -> float:
        """Posterior mean of the predictor where all columns are zero (for a linear basis: at x = 0)."""
        at_reference = self.mean[-1] if self.basis.ones else 0.0
        return float(at_reference - self.basis.reference @ self.coef)

    def latent(self, X: FloatArray) -> FloatArray:
        """Mean of the linear predictor."""
        return self.basis(X) @ self.mean

    def latent_variance(self, X: FloatArray) -> FloatArray:
        """Variance of the linear predictor, row by row."""
        return self.variance_at(X, self.basis(X))

    def variance_at(self, X: FloatArray, Phi: FloatArray) -> FloatArray:
        """The same where Φ of these rows is known."""
        projected = Phi @ self.root.T
        return np.maximum(Phi**2 @ self.diagonal + self.sign * np.einsum("ij,ij->i", projected, projected), 0.0)

    def latent_moments(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the linear predictor."""
        return self.latent(X), self.latent_variance(X)

    def latent_covariance(self, X: FloatArray) -> FloatArray:
        """Joint covariance of the linear predictor of all rows."""
        Phi = self.basis(X)
        projected = Phi @ self.root.T
        return (Phi * self.diagonal) @ Phi.T + self.sign * (projected @ projected.T)

    def own_variance(self, X: FloatArray) -> FloatArray:
        """Variance of each new observation that it shares with no other: here the noise."""
        return np.full(X.shape[0], self.noise_variance)

    def interval(self, X: FloatArray, coverage: float) -> FloatArray:
        """Central interval of new observations, lower and upper end on the last axis."""
        std = np.sqrt(self.latent_variance(X) + self.own_variance(X))
        return central_interval(self.latent(X), std, coverage, self.freedom)

    def noise_draws(self, X: FloatArray, n_samples: int, rng: np.random.RandomState) -> FloatArray:
        """Draws of what new observations share with no other, one row per row of X."""
        return np.sqrt(self.own_variance(X))[:, None] * rng.standard_normal((X.shape[0], n_samples))

    def weight_interval(self, coverage: float, n_features: int) -> FloatArray:
        """Central posterior intervals of all weights, lower and upper end on the last axis; zeros for dropped ones."""
        ends, n = np.zeros((n_features, 2)), len(self.active)
        root = self.root[:, :n]
        std = np.sqrt(np.maximum(self.diagonal[:n] + self.sign * np.einsum("ij,ij->j", root, root), 0.0))
        ends[self.active] = central_interval(self.coef, std, coverage, self.freedom)
        return ends

    def draw(self, n_samples: int, rng: np.random.RandomState) -> FloatArray:
        """Draws of the kept weights (and of the intercept at the reference), one per row."""
        if self.sign > 0:
            return self.mean + rng.standard_normal((n_samples, len(self.root))) @ self.root
        # Σ = √d (I - UᵀU) √d with U = root/√d; on the singular vectors V of U the root of I - UᵀU is √(1 - σ²).
        half = np.sqrt(self.diagonal)
        _, singular, V = np.linalg.svd(self.root / np.where(half > 0, half, 1.0), full_matrices=False)
        z = rng.standard_normal((n_samples, len(self.mean)))
        shrink = np.sqrt(np.maximum(1 - singular**2, 0.0)) - 1
        return self.mean + half * (z + ((z @ V.T) * shrink) @ V)

    def weight_samples(
        self, n_samples: int, n_features: int, rng: np.random.RandomState
    ) -> tuple[FloatArray, FloatArray]:
        """Draws of all weights (zeros for dropped ones) and of the intercept at x = 0."""
        kept, intercept = self.kept_samples(n_samples, rng)
        coef = np.zeros((n_samples, n_features))
        coef[:, self.active] = kept
        return coef, intercept

    def kept_samples(self, n_samples: int, rng: np.random.RandomState) -> tuple[FloatArray, FloatArray]:
        """Draws of the kept weights, and of the intercept where all columns are zero."""
        draws = self.draw(n_samples, rng)
        kept = draws[:, : len(self.active)]
        return kept, (draws[:, -1] if self.basis.ones else 0.0) - kept @ self.basis.reference


@dataclass(frozen=True)
class StudentFit(LinearFit):
    """A linear fit whose noise is Student; `noise_variance` is its squared scale σ²."""

    noise_freedom: float = np.inf

    @property
    def variance_of_noise(self) -> float:
        """σ²ν/(ν - 2); infinite for ν ≤ 2."""
        nu = self.noise_freedom
        return self.noise_variance * nu / (nu - 2) if nu > 2 else np.inf

    def own_variance(self, X: FloatArray) -> FloatArray:
        """Variance of the noise."""
        return np.full(X.shape[0], self.variance_of_noise)

    def interval(self, X: FloatArray, coverage: float) -> FloatArray:
        """Central interval of the sum of Gaussian predictor and Student noise."""
        mean, variance = self.latent(X), self.latent_variance(X)
        half = student_half_width(variance, self.noise_variance, self.noise_freedom, coverage, self.freedom)
        return np.stack([mean - half, mean + half], axis=-1)

    def noise_draws(self, X: FloatArray, n_samples: int, rng: np.random.RandomState) -> FloatArray:
        """Draws of Student noise."""
        return np.sqrt(self.noise_variance) * rng.standard_t(self.noise_freedom, (X.shape[0], n_samples))

    def outlier_weight(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """E[u] of training rows, the factor of their precision; small for outliers."""
        likelihood = StudentT(self.noise_variance, self.noise_freedom)
        return likelihood.mixing((y - self.latent(X)) ** 2 + self.latent_variance(X))


def in_data_units(
    posterior: GaussianPosterior,
    columns: IntArray,
    alpha: FloatArray,
    scale: FloatArray,
    reference: FloatArray,
    level: tuple[float, float] | None,
    **known: Any,
) -> LinearFit:
    """A posterior of standardised weights as one of weights per unit of input, columns in their own order.

    `scale` and `reference` belong to all columns of the design. `level` is the mean and variance of a flat intercept,
    which is independent of the weights at the reference; a column of ones becomes one by `with_ones_column`. What else
    is `known` of the fit is taken as it is.
    """
    order = np.argsort(columns)
    columns = columns[order]
    unit, n, ones = scale[columns], len(columns), level is not None
    mean, diagonal = np.zeros(n + ones), np.zeros(n + ones)
    mean[:n], diagonal[:n] = posterior.mean[order] / unit, posterior.diagonal[order] / unit**2
    rows, in_root = len(posterior.root), ones and posterior.sign > 0
    root = np.zeros((rows + in_root, n + ones))
    root[:rows, :n] = posterior.root[:, order] / unit
    if level is not None:
        mean[n] = level[0]
        if in_root:
            root[rows, n] = np.sqrt(level[1])
        else:
            diagonal[n] = level[1]
    basis = LinearBasis(columns, reference[columns], ones)
    precision, gamma = alpha[order] * unit**2, posterior.gamma[order]
    return LinearFit(basis, mean, root, diagonal, posterior.sign, columns, precision, gamma, **known)


def with_ones_column(fit: LinearFit, n_features: int) -> LinearFit:
    """The same where the last column of the design, if kept, was a column of ones: it becomes the intercept."""
    if not (fit.columns == n_features).any():
        return fit
    return replace(fit, basis=LinearBasis(fit.columns[:-1], fit.basis.reference[:-1], ones=True))


def _search_results(price: Price, result: Result, n_features: int, per_unit: float) -> dict[str, Any]:
    """Facts that every result has; `per_unit` turns a density of t into one of y."""
    return {
        "log_evidence": result.log_evidence - per_unit,
        "path": np.array(result.trace.objective) - per_unit,
        "worth": result.worth[:n_features],
        "min_gain": float(np.max(price.nats)) if np.ndim(price.nats) else float(price.nats),
        "gap": result.gap,
        "converged": result.converged,
        "n_jittered": result.trace.n_jittered,
    }


def glm_fit(
    problem: Problem, result: Result, n_features: int, centre: float = 0.0, unit: float = 1.0, **known: Any
) -> LinearFit:
    """The result of a search on any likelihood in the data's units; the target was y = centre + unit t.

    The flat intercept is independent of the weights at the columns' means under the sites' precisions: those are the
    reference point.
    """
    design = problem.design
    reference = design.origin.copy()
    scale = design.unit[result.active]
    reference[result.active] += result.origin * np.where(np.isfinite(scale), scale, 0.0)  # a constant column has none
    # A density of y, not of t; the intercept is integrated in the units of y too.
    per_unit = (float(problem.weight.sum()) - problem.flat_intercept) * np.log(unit)
    fit = in_data_units(
        result.posterior,
        result.active,
        result.alpha,
        design.unit / unit,
        reference,
        (centre + unit * result.level, unit**2 * result.level_variance) if problem.flat_intercept else None,
        **_search_results(problem.price, result, n_features, per_unit),
        **known,
    )
    return fit if problem.flat_intercept else with_ones_column(fit, n_features)


@dataclass(frozen=True)
class Units:
    """Between the solver's standard units and the data's: y = centre + unit t, and w = w_standard / scale."""

    centre: float
    unit: float
    scale: FloatArray

    def rate(self, rate: float) -> FloatArray:
        """Rate of a Gamma prior on the weight precisions (α scale² in the data's units); 0 for constant columns."""
        return rate * np.where(np.isfinite(self.scale), self.scale, 0.0) ** 2

    def start(self, fit: LinearFit) -> Solution:
        """An earlier fit as a start, without the columns that have become constant.

        The fit may come from a file, and the compiled search does not check the columns that it is given.
        """
        known = np.arange(len(self.scale))
        if not np.isin(fit.columns, known).all() or len(np.unique(fit.columns)) < len(fit.columns):
            raise ValueError(
                f"the earlier fit keeps columns {fit.columns.tolist()[:10]}, but there are {len(known)}: "
                "set warm_start=False"
            )
        usable = np.isfinite(self.scale[fit.columns])
        columns = fit.columns[usable]
        return Solution(columns, fit.precision[usable] / self.scale[columns] ** 2, fit.noise_variance / self.unit**2)

    def fit(self, problem: LeastSquares, result: Result, n_features: int) -> LinearFit:
        """The solver's result in the data's units, features in their own order."""
        noise = result.noise * self.unit**2
        per_unit = problem.n * np.log(self.unit)  # a density of y, not of t
        fit = in_data_units(
            result.posterior,
            result.active,
            result.alpha,
            self.scale,
            problem.design.origin,
            (self.centre, noise / problem.n_weighted) if problem.flat_intercept else None,
            **_search_results(problem.price, result, n_features, per_unit),
            noise_variance=noise,
            freedom=np.inf if problem.known_noise else max(problem.n - float(result.posterior.gamma.sum()), 1.0),
            noise_at_floor=result.noise_at_floor,
        )
        return fit if problem.flat_intercept else with_ones_column(fit, n_features)


def constant_fit(value: float, ones: bool, n_features: int, min_gain: float) -> LinearFit:
    """The model of a target without any spread: nothing to explain, nothing uncertain, infinite density."""
    nothing, nowhere = np.empty(0), np.empty(0, dtype=np.intp)
    width = int(ones)
    return LinearFit(
        LinearBasis(nowhere, nothing, ones),
        np.full(width, value),
        np.zeros((width, width)),
        np.zeros(width),
        1,
        nowhere,
        nothing,
        nothing,
        log_evidence=np.inf,
        path=np.array([np.inf]),
        worth=np.zeros(n_features),
        min_gain=min_gain,
        freedom=1.0,
    )


def of_all_features(fits: Sequence[LinearFit], n_features: int) -> tuple[FloatArray, FloatArray]:
    """Weights and relevance of all features, a row for each fit; zeros for dropped ones."""
    coef, relevance = np.zeros((2, len(fits), n_features))
    for k, fit in enumerate(fits):
        coef[k, fit.active] = fit.coef
        relevance[k, fit.active] = fit.gamma[: len(fit.active)]
    return coef, relevance


def moments_of(fits: Sequence[LinearFit], X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of every fit's predictor, as columns.

    The classes of a regression on the labels differ in their means only: their basis is formed once, and their common
    variance too, which takes most of the time of a prediction (USPS with ten classes: a seventh is left).
    """
    means: list[FloatArray] = []
    variances: list[FloatArray] = []
    for k, fit in enumerate(fits):
        if not k or fit.basis is not fits[k - 1].basis:
            Phi = fit.basis(X)
        means.append(Phi @ fit.mean)
        same = k and fit.basis is fits[k - 1].basis and fit.root is fits[k - 1].root
        variances.append(variances[-1] if same else fit.variance_at(X, Phi))
    return np.column_stack(means), np.column_stack(variances)
