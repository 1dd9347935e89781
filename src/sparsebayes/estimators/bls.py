"""Regression with a Laplace prior on kernel weights, scaled by the noise."""

from dataclasses import replace
from numbers import Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from sparsebayes.core.types import BoolArray, FloatArray
from sparsebayes.engine.kernel_regression import LaplaceSolver
from sparsebayes.engine.least_squares import LOW_NOISE
from sparsebayes.estimators._feature_weights import (
    FEWER_FEATURES,
    WEIGHT_CONSTRAINTS,
    FeatureWeights,
    FeatureWeightsMixin,
    store_feature_weights,
)
from sparsebayes.estimators._kernel import KERNEL_CONSTRAINTS, REGRESSOR_CONSTRAINTS
from sparsebayes.estimators._kernel_design import centred_design, kernel_design
from sparsebayes.estimators._kernel_regressor import (
    Fitted,
    KernelRegression,
    KernelRegressorMixin,
    Target,
    choose_regression_kernel,
)
from sparsebayes.estimators._regressor import GaussianRegressor
from sparsebayes.estimators._weighted_regression import fit_weighted_outputs


class BLSRegressor(KernelRegressorMixin, GaussianRegressor):
    """Sparse Bayesian regression with few kernel functions, under a Laplace prior scaled by the noise.

    Like `RVMRegressor`, but the prior variance of a weight is σ²g, and g has the density (λ/2) exp(-λg/2). The kept
    weights are shrunk, more so for a larger λ. So the noise need not be known: with an assumed noise that is too small,
    ARD would fit the noise, and λ prevents that. The model mostly keeps more vectors than `RVMRegressor`, with the same
    or a smaller error; docs/rvm.md has the numbers.

    Parameters
    ----------
    kernel, gamma, degree, coef0, standardize, candidates, random_state
        As in `RVMRegressor`.
    rate : "learn" or float, default="learn"
        λ of the Laplace prior, for kernel columns that are not rescaled. "learn" minimises the leave-one-out error.
    noise_variance : "learn", "fixed" or float, default="learn"
        The noise variance that the search assumes. "learn" estimates it with the model. "fixed" is a hundredth of the
        variance of y, as in the source: variance beyond it is estimated afterwards (`excess_variance_`) and is part of
        predictions, while `covariance_` and `log_evidence_` hold for the assumed noise. Where y is noisier than that,
        a wide kernel then fits the noise.
    feature_weights : bool, default=False
        Whether the kernel has a weight for every feature, as in `DRVMRegressor`. The kernel must then be "rbf",
        "laplacian" or "poly", and `gamma` is ignored.
    min_gain, init, n_restarts
        For feature weights, as in `DRVMRegressor`.
    fit_intercept : bool, default=True
        Whether the model has an intercept (with a flat prior).
    far_variance : {"none", "augment"}, default="none"
        As in `RVMRegressor`.
    max_iter : int, default=10000
        Largest number of actions of a search.
    tol : float, default=1e-6
        The fit has converged when no single change gains more than this many nats.
    verbose : int, default=0
        1: show progress in a live line in terminals and notebooks. 2: print a line on standard error for each step.

    Attributes
    ----------
    rate_ : float or ndarray of shape (n_outputs,)
        The λ used.
    feature_weights_, feature_relevance_, restart_scores_
        With `feature_weights`, as in `DRVMRegressor`.
    relevance_vectors_, relevance_indices_, dual_coef_, intercept_, precision_, covariance_, relevance_
        As in `RVMRegressor`.
    noise_variance_, excess_variance_, gamma_, log_evidence_, evidence_path_, optimality_gap_, converged_, n_iter_
        As in `RVMRegressor`. The path is that of the objective: evidence plus log prior of g.
    n_jittered_, n_features_in_, feature_names_in_
        As in scikit-learn; `n_jittered_` as in `RVMRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsebayes import BLSRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-10, 10, size=(100, 1))
    >>> y = np.sinc(X[:, 0] / np.pi) + 0.3 * rng.standard_normal(100)
    >>> len(BLSRegressor(gamma=0.2).fit(X, y).relevance_vectors_) < 10
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **KERNEL_CONSTRAINTS,
        "rate": [StrOptions({"learn"}), Interval(Real, 0, None, closed="neither")],
        "noise_variance": [StrOptions({"fixed", "learn"}), Interval(Real, 0, None, closed="neither")],
        "feature_weights": ["boolean"],
        **WEIGHT_CONSTRAINTS,
        **REGRESSOR_CONSTRAINTS,
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        gamma: str | float = "evidence",
        degree: float = 3,
        coef0: float = 1.0,
        standardize: bool = True,
        rate: str | float = "learn",
        noise_variance: str | float = "learn",
        feature_weights: bool = False,
        min_gain: str | float = "auto",
        init: Any = "auto",
        n_restarts: int = 3,
        candidates: Any = None,
        fit_intercept: bool = True,
        far_variance: str = "none",
        max_iter: int = 10_000,
        tol: float = 1e-6,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.standardize = standardize
        self.rate = rate
        self.noise_variance = noise_variance
        self.feature_weights = feature_weights
        self.min_gain = min_gain
        self.init = init
        self.n_restarts = n_restarts
        self.candidates = candidates
        self.fit_intercept = fit_intercept
        self.far_variance = far_variance
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    get_support = available_if(lambda self: self.feature_weights)(FeatureWeightsMixin.get_support)

    def _fit_rows(self, X: FloatArray, y: FloatArray, weight: FloatArray, counts: BoolArray) -> Fitted:
        if self.feature_weights:
            weights = FeatureWeights.of(self)
            design = centred_design(X, weight, counts, self.candidates, self.random_state)
            regression = KernelRegression.of(self, design, y, weight, flat=self.fit_intercept)
            with regression.threads():
                weighted = fit_weighted_outputs(regression, weights, self._weighted_solver)
            return Fitted(weighted, remedy=FEWER_FEATURES)
        chosen = choose_regression_kernel(self, X, y, weight, flat_intercept=self.fit_intercept)
        design = kernel_design(self, X, weight, counts, chosen.kernel)
        regression = KernelRegression.of(self, design, y, weight, flat=self.fit_intercept)
        with regression.threads():
            fits = regression.fit_outputs(self._solver)
        return Fitted(fits, chosen.gamma)

    def _weighted_solver(self, target: Target, noise: float) -> LaplaceSolver:
        """With feature weights a learned noise is the one that was estimated together with them."""
        solver = self._solver(target)
        return replace(solver, noise=noise) if self.noise_variance == "learn" else solver

    def _solver(self, target: Target) -> LaplaceSolver:
        rate = None if isinstance(self.rate, str) else float(self.rate)
        if isinstance(self.noise_variance, str):
            noise = LOW_NOISE if self.noise_variance == "fixed" else None
        else:
            noise = float(self.noise_variance) / (target.unit**2 or 1.0)  # a constant target is not searched
        return LaplaceSolver(rate, noise, self._settings())

    def _store(self, fitted: Fitted, *, single: bool) -> None:
        super()._store(fitted, single=single)
        self.rate_ = self._numbers("rate")
        if self.feature_weights:
            store_feature_weights(self)
