"""Relevance vector machine for regression."""

from typing import Any

from sklearn.utils._param_validation import StrOptions

from sparsebayes.core.types import BoolArray, FloatArray
from sparsebayes.engine.kernel_regression import ARDSolver
from sparsebayes.engine.process import MAX_CENTRES
from sparsebayes.estimators._kernel import KERNEL_CONSTRAINTS, REGRESSOR_CONSTRAINTS, VECTOR_CONSTRAINTS
from sparsebayes.estimators._kernel_blocks import BlockKernelRegressionMixin, Choice
from sparsebayes.estimators._kernel_design import kernel_design
from sparsebayes.estimators._kernel_regressor import (
    Fitted,
    KernelRegression,
    KernelRegressorMixin,
    choose_regression_kernel,
)
from sparsebayes.estimators._process import process_design
from sparsebayes.estimators._regressor import GaussianRegressor


class RVMRegressor(BlockKernelRegressionMixin, KernelRegressorMixin, GaussianRegressor):
    """Relevance vector machine: regression with a few kernel functions, centred on training rows.

    Every kernel function has a weight with a zero-mean Gaussian prior and its own precision. The precisions and the
    noise variance maximise the evidence. Most precisions become infinite and their weights zero; the rows whose weights
    remain are the *relevance vectors*.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "laplacian", "sigmoid", "precomputed"} or callable, default="rbf"
        The kernel, by name or as a function of two sets of rows that returns the matrix of their kernel values. It need
        not be positive definite. With "precomputed", X is the kernel matrix: one column per candidate, square or not.
        Predictions need the same columns for the new rows.
    gamma : "evidence", "scale" or float, default="evidence"
        γ of the kernels "rbf", exp(-γ‖x - z‖²), "laplacian", "poly" and "sigmoid", for inputs in standard units.
        "evidence" is the γ with which a Gaussian process has the largest evidence; it needs no cross-validation.
        For "poly" and "sigmoid", which have no width, it is "scale": 1 / (n_features × variance of the inputs).
    degree : float, default=3
        Degree of "poly", (γ xᵀz + coef0)^degree.
    coef0 : float, default=1.0
        Constant of "poly" and "sigmoid".
    standardize : bool, default=True
        Whether the kernel sees each feature with mean 0 and standard deviation 1, so that units do not matter. Far
        values do not stretch the deviation, and constant features are ignored. A kernel that is a function gets the
        rows as they are.
    vectors : {"auto", "sparse", "all"}, default="auto"
        "sparse" is the relevance vector machine. "all" is a Gaussian process with the same kernel: all weights have one
        common prior, and as many vectors are kept as that needs (at most 2,000). "auto" is the one of them that gives
        rows which were held out the larger density, in five folds of at most 500 rows.
    solver : {"sequential", "fixed-point", "em"}, default="sequential"
        "sequential" adds, re-estimates or deletes one vector at a time (Tipping & Faul 2003). "fixed-point" (MacKay)
        and "em" start with all vectors and re-estimate all precisions at once (Tipping 2001); they need n³ operations
        per iteration, and often end with more vectors and a smaller error.
    candidates : None, int or array-like of shape (n_candidates, n_features), default=None
        The centres to choose from: all training rows, a number of them drawn at random, or the given points.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    intercept_prior : {"flat", "ard"}, default="flat"
        "flat": a flat prior, integrated out exactly. "ard": one more weight with its own precision, as in SparseBayes.
    far_variance : {"none", "augment"}, default="none"
        Far from its vectors, the predictive variance of a relevance vector machine shrinks to the noise. "augment" adds
        a basis function at each new point, so that the variance grows where there are no data. The fitted model then
        contains the training rows.
    max_iter : int, default=10000
        Largest number of steps of each stage: iterations of a batch solver, or actions of the search.
    tol : float, default=1e-3
        The fit has converged when no single change of a precision or of the noise gains more than this many nats.
    random_state : int, RandomState or None, default=None
        Seed for drawing candidates, if `candidates` is an integer.
    verbose : int, default=0
        1: show progress in a live line in terminals and notebooks. 2: print a line on standard error for each step.

    Attributes
    ----------
    relevance_vectors_ : ndarray of shape (n_vectors, n_features) or None
        The kept centres; None for a precomputed kernel. For 2-D y, this and all arrays below are lists with one array
        per output.
    relevance_indices_ : ndarray of int
        Indices of the vectors among the rows of X, the rows of `candidates` or the columns of a precomputed kernel.
    dual_coef_ : ndarray of shape (n_vectors,)
        Posterior mean of the kept weights.
    intercept_ : float or ndarray of shape (n_outputs,)
        Constant of the expansion `Σ dual_coef_ k(x, relevance_vectors_) + intercept_`.
    precision_ : ndarray of shape (n_vectors,)
        Prior precisions of the kept weights.
    covariance_ : ndarray of shape (n_vectors, n_vectors)
        Posterior covariance of the kept weights.
    relevance_ : ndarray of shape (n_vectors,)
        γ in [0, 1]: how well the data determine each kept weight.
    noise_variance_ : float or ndarray of shape (n_outputs,)
        Noise variance of largest evidence.
    excess_variance_ : float or ndarray of shape (n_outputs,)
        Variance of new observations beyond noise and posterior, estimated by leave-one-out errors. Predictions include
        it. Zero if the leave-one-out errors are as small as the model expects.
    gamma_ : float or None
        The γ used; None for kernels without γ.
    log_evidence_ : float or ndarray of shape (n_outputs,)
        Log density of y with the weights integrated out. A flat intercept has the prior density one.
    evidence_path_ : ndarray
        The log evidence before each step.
    optimality_gap_ : float or ndarray of shape (n_outputs,)
        Certificate: gain in nats of the best single change of the model.
    converged_ : bool
        Whether the search reached `tol` (for all outputs).
    n_iter_ : int
        Number of steps (the largest over outputs).
    n_jittered_ : int
        Number of steps that needed jitter in a Cholesky factorisation.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsebayes import RVMRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-10, 10, size=(100, 1))
    >>> y = np.sinc(X[:, 0] / np.pi) + 0.1 * rng.standard_normal(100)
    >>> model = RVMRegressor(gamma=0.1).fit(X, y)
    >>> len(model.relevance_vectors_) < 10
    True
    >>> mean, std = model.predict([[0.0]], return_std=True)
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **KERNEL_CONSTRAINTS,
        **VECTOR_CONSTRAINTS,
        **REGRESSOR_CONSTRAINTS,
        "solver": [StrOptions({"sequential", "fixed-point", "em"})],
        "intercept_prior": [StrOptions({"flat", "ard"})],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        gamma: str | float = "evidence",
        degree: float = 3,
        coef0: float = 1.0,
        standardize: bool = True,
        vectors: str = "auto",
        solver: str = "sequential",
        candidates: Any = None,
        fit_intercept: bool = True,
        intercept_prior: str = "flat",
        far_variance: str = "none",
        max_iter: int = 10_000,
        tol: float = 1e-3,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.standardize = standardize
        self.vectors = vectors
        self.solver = solver
        self.candidates = candidates
        self.fit_intercept = fit_intercept
        self.intercept_prior = intercept_prior
        self.far_variance = far_variance
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose

    def _fit_rows(self, X: FloatArray, y: FloatArray, weight: FloatArray, counts: BoolArray) -> Fitted:
        choice = self._choose(X, y, weight, counts, low_rank=self.solver == "sequential")
        regression = choice.regression
        with regression.threads():
            if choice.process is not None:
                return Fitted(regression.process_fits(choice.process), choice.gamma)
            return Fitted(regression.fit_outputs(lambda target: choice.solver), choice.gamma)

    def _choose(
        self,
        X: FloatArray,
        y: FloatArray,
        weight: FloatArray,
        counts: BoolArray,
        *,
        low_rank: bool = False,
        most: int | None = None,
    ) -> Choice:
        """Kernel, centres, and whether a Gaussian process takes the place of a sparse model, by these rows."""
        flat = self.fit_intercept and self.intercept_prior == "flat"
        chosen = choose_regression_kernel(self, X, y, weight, flat_intercept=flat)
        ones = self.fit_intercept and not flat
        design = kernel_design(self, X, weight, counts, chosen.kernel, ones=ones, low_rank=low_rank, most=most)
        regression = KernelRegression.of(self, design, y, weight, flat=flat)
        solver = ARDSolver(self.solver, regression.settings)
        process = None
        if self.vectors != "sparse":
            with regression.threads():
                process = process_design(self.vectors, design, lambda: chosen.signal, MAX_CENTRES)
                if self.vectors == "auto" and process is not None:
                    better = regression.process_predicts_better(process, lambda target: solver)
                    process = process if better else None
        return Choice(regression, solver, process, chosen.gamma)
