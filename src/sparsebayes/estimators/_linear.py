"""A fitted linear model in the user's units: made from a solver's result, and asked for predictions."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag

from sparsebayes.core.basis import LinearBasis
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.solvers.ard import Result
from sparsebayes.solvers.problem import GaussianProblem, Solution


@dataclass(frozen=True)
class LinearFit:
    """Posterior N(mean, rootᵀ root) of the kept weights, and of the intercept (last) where there is one.

    The intercept is the predictor at `basis.reference`, not at zero: there it is uncorrelated with the weights, and
    nothing cancels when the inputs lie far from the origin.
    """

    basis: LinearBasis
    mean: FloatArray
    root: FloatArray
    columns: IntArray
    """Columns of the design that have a precision: the kept features and, with an ARD prior on it, the intercept."""
    precision: FloatArray
    gamma: FloatArray
    noise_variance: float
    freedom: float
    log_evidence: float
    path: FloatArray
    worth: FloatArray
    min_gain: float
    gap: float = 0.0
    converged: bool = True
    noise_at_floor: bool = False
    n_jittered: int = 0

    @property
    def active(self) -> IntArray:
        """Features that are kept."""
        return self.basis.columns

    @property
    def coef(self) -> FloatArray:
        """Posterior mean of the kept features' weights."""
        return self.mean[: len(self.active)]

    @property
    def covariance(self) -> FloatArray:
        """Posterior covariance of the kept features' weights."""
        root = self.root[:, : len(self.active)]
        return root.T @ root

    @property
    def intercept(self) -> float:
        """Posterior mean of the predictor at x = 0."""
        at_reference = self.mean[-1] if self.basis.ones else 0.0
        return float(at_reference - self.basis.reference @ self.coef)

    def latent(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean of the linear predictor, and a root of its covariance (rows × weights)."""
        Phi = self.basis(X)
        return Phi @ self.mean, Phi @ self.root.T

    def draw(self, n_samples: int, rng: np.random.RandomState) -> FloatArray:
        """Draws of the kept weights (and of the intercept at the reference), one per row."""
        return self.mean + rng.standard_normal((n_samples, len(self.root))) @ self.root


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
        """An earlier fit as a start, without the columns that have become constant."""
        usable = np.isfinite(self.scale[fit.columns])
        columns = fit.columns[usable]
        return Solution(columns, fit.precision[usable] / self.scale[columns] ** 2, fit.noise_variance / self.unit**2)

    def fit(self, problem: GaussianProblem, result: Result, n_features: int) -> LinearFit:
        """The solver's result in the data's units, features in their own order."""
        order = np.argsort(result.solution.active)
        columns = result.solution.active[order]
        scale = self.scale[columns]
        noise = result.solution.noise * self.unit**2
        mean = result.posterior.mean[order] / scale
        root = result.posterior.root[:, order] / scale
        if problem.flat_intercept:
            mean = np.append(mean, self.centre)
            root = block_diag(root, np.sqrt(noise / problem.n_weighted))
        features = columns[columns < n_features]
        ones = problem.flat_intercept or len(features) < len(columns)
        per_unit = problem.n * np.log(self.unit)  # a density of y, not of t
        return LinearFit(
            LinearBasis(features, problem.rows.mean[features], ones),
            mean,
            root,
            columns,
            result.solution.alpha[order] * scale**2,
            result.posterior.gamma[order],
            noise,
            max(problem.n - float(result.posterior.gamma.sum()), 1.0),
            result.log_evidence - per_unit,
            np.array(result.trace.objective) - per_unit,
            result.worth[:n_features],
            problem.price,
            result.gap,
            result.converged,
            result.noise_at_floor,
            result.trace.n_jittered,
        )


def constant_fit(value: float, ones: bool, n_features: int, min_gain: float) -> LinearFit:
    """The model of a target without any spread: nothing to explain, nothing uncertain, infinite density."""
    nothing, nowhere = np.empty(0), np.empty(0, dtype=np.intp)
    width = int(ones)
    return LinearFit(
        LinearBasis(nowhere, nothing, ones),
        np.full(width, value),
        np.zeros((width, width)),
        nowhere,
        nothing,
        nothing,
        0.0,
        1.0,
        np.inf,
        np.array([np.inf]),
        np.zeros(n_features),
        min_gain,
    )
