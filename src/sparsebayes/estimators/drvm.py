"""DRVMRegressor: regression that chooses samples and features together."""

from typing import Any

from sklearn.utils._param_validation import StrOptions

from sparsebayes.core.types import BoolArray, FloatArray
from sparsebayes.engine.kernel_regression import ARDSolver, KernelSolver, LaplaceSolver
from sparsebayes.estimators._feature_weights import (
    FEWER_FEATURES,
    WEIGHTED_KERNEL_CONSTRAINTS,
    FeatureWeights,
    FeatureWeightsMixin,
    store_feature_weights,
)
from sparsebayes.estimators._kernel import REGRESSOR_CONSTRAINTS, VECTOR_CONSTRAINTS
from sparsebayes.estimators._kernel_design import centred_design
from sparsebayes.estimators._kernel_regressor import Fitted, KernelRegression, KernelRegressorMixin, Target
from sparsebayes.estimators._regressor import GaussianRegressor
from sparsebayes.estimators._weighted_regression import fit_weighted_outputs


class DRVMRegressor(FeatureWeightsMixin, KernelRegressorMixin, GaussianRegressor):
    """Kernel regression that selects samples and features, both by evidence (DRVM).

    The model is a relevance vector machine whose kernel has a weight θ_k ≥ 0 for every feature, for instance
    k(x, z) = exp(-Σ_k θ_k (x_k - z_k)²). The weights of features and vectors maximise the evidence together. Most of
    both become exactly 0; the remaining features are those that matter, linearly or not. Inputs need no scaling: they
    are standardised internally, and θ is reported in the units of the data.

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "poly"}, default="rbf"
        exp(-Σθ(x - z)²), exp(-Σθ|x - z|) or (Σθ(x - m)(z - m) + coef0)^degree, where m is the mean of the feature.
    degree, coef0 : float, default=3, 1.0
        Degree and constant of the polynomial kernel.
    vectors : {"auto", "sparse", "all"}, default="auto"
        As in `RVMRegressor`. The feature weights are those of the sparse model; for "all" their common size is found
        anew.
    solver : {"fast", "batch"}, default="fast"
        How each start begins. "fast" adds, deletes and re-estimates vectors one by one. "batch" starts with all vectors
        and re-estimates all scales at once, alternating with damped Newton steps in the feature weights. Both continue
        with a search for vectors and L-BFGS-B on the evidence in turns, until nothing improves.
    prior : {"ard", "bls"}, default="ard"
        Prior of the vectors' weights: "ard" gives each its own precision; "bls" is the Laplace prior of `BLSRegressor`,
        with the noise that was estimated together with the feature weights. Feature weights maximise the evidence of
        "ard" in both cases.
    min_gain : "auto" or float, default="auto"
        Evidence, in nats, that a feature must bring given the others. "auto" is the price at which 0.05 useless
        features are expected to be kept; 0 keeps every feature that increases the evidence.
    init : "auto", float or array-like of shape (n_features,), default="auto"
        Feature weights of the first start. "auto" starts with equal weights in standard units, and compares the results
        of all starts with weights that each feature earns alone (docs/feature_weights.md).
    n_restarts : int, default=3
        Number of starts: beyond the first they are equal weights of other sizes, then random weights. The evidence has
        many maxima; `restart_scores_` compares those found.
    candidates : int, array-like of shape (n_candidates, n_features) or None, default=None
        As in `RVMRegressor`.
    fit_intercept : bool, default=True
        Whether the model has an intercept (with a flat prior).
    far_variance : {"none", "augment"}, default="none"
        As in `RVMRegressor`.
    max_iter : int, default=10000
        Largest number of actions of a search for vectors.
    tol : float, default=1e-3
        The fit has converged when neither a single change of a vector nor a further turn gains more than this many
        nats.
    random_state : int, RandomState instance or None, default=None
        Seed for drawing candidates, and for random starts.
    verbose : int, default=0
        1: show progress in a live line in terminals and notebooks. 2: print a line on standard error for each step.

    Attributes
    ----------
    feature_weights_ : ndarray of shape (n_features,)
        θ in the units of the data; 0 for features that do not matter. `get_support` is their mask.
    feature_relevance_ : ndarray of shape (n_features,)
        How well the data determine each weight, between 0 (not at all, or dropped) and 1.
    restart_scores_ : ndarray of shape (n_restarts,) or (n_outputs, n_restarts)
        Log evidence at the end of each start, less the price of its features and vectors. nan for starts that were not
        made, because features outnumber rows and got their weights one by one.
    gamma_ : None
        There is no common width.
    relevance_vectors_, relevance_indices_, dual_coef_, intercept_, precision_, covariance_, relevance_
        As in `RVMRegressor`.
    noise_variance_, excess_variance_, log_evidence_, evidence_path_, optimality_gap_, converged_, n_iter_
        As in `RVMRegressor`. The path has all starts one after the other.
    n_jittered_, n_features_in_, feature_names_in_
        As in scikit-learn; `n_jittered_` as in `RVMRegressor`.

    References
    ----------
    Tipping (2001), Sparse Bayesian learning and the relevance vector machine, JMLR 1, section 4.4 (input scales);
    Heimsæter (2021), on relevance vector machines with feature weights (DRVM).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_friedman1
    >>> from sparsebayes import DRVMRegressor
    >>> X, y = make_friedman1(n_samples=150, n_features=8, noise=0.5, random_state=0)
    >>> DRVMRegressor().fit(X, y).get_support(indices=True)
    array([0, 1, 2, 3, 4])
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **WEIGHTED_KERNEL_CONSTRAINTS,
        **VECTOR_CONSTRAINTS,
        **REGRESSOR_CONSTRAINTS,
        "solver": [StrOptions({"fast", "batch"})],
        "prior": [StrOptions({"ard", "bls"})],
    }

    def __init__(
        self,
        *,
        kernel: str = "rbf",
        degree: float = 3,
        coef0: float = 1.0,
        vectors: str = "auto",
        solver: str = "fast",
        prior: str = "ard",
        min_gain: str | float = "auto",
        init: Any = "auto",
        n_restarts: int = 3,
        candidates: Any = None,
        fit_intercept: bool = True,
        far_variance: str = "none",
        max_iter: int = 10_000,
        tol: float = 1e-3,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.vectors = vectors
        self.solver = solver
        self.prior = prior
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

    def _fit_rows(self, X: FloatArray, y: FloatArray, weight: FloatArray, counts: BoolArray) -> Fitted:
        design = centred_design(X, weight, counts, self.candidates, self.random_state)
        regression = KernelRegression.of(self, design, y, weight, flat=self.fit_intercept)
        with regression.threads():
            batch, weights = self.solver == "batch", FeatureWeights.of(self)
            fits = fit_weighted_outputs(regression, weights, self._solver, batch=batch, vectors=self.vectors)
        return Fitted(fits, remedy=FEWER_FEATURES)

    def _solver(self, target: Target, noise: float) -> KernelSolver:
        if self.prior == "bls":
            return LaplaceSolver(None, noise, self._settings())
        return ARDSolver("sequential", self._settings())

    def _store(self, fitted: Fitted, *, single: bool) -> None:
        super()._store(fitted, single=single)
        store_feature_weights(self)
