"""Probabilistic classification vector machine."""

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from sparsebayes.core.types import AnyArray, BoolArray, FloatArray
from sparsebayes.estimators._base import threads_for
from sparsebayes.estimators._classifier import GaussianClassifier
from sparsebayes.estimators._kernel import CLASSIFIER_CONSTRAINTS, KERNEL_CONSTRAINTS, KernelFit
from sparsebayes.estimators._kernel_classifier import (
    MAX_CANDIDATES,
    KernelClassifierMixin,
    LabelledColumns,
    StandardColumns,
    VectorMachine,
    choose_classifier_kernel,
)
from sparsebayes.estimators._kernel_design import KernelParameters, kernel_design

MACHINE_CONSTRAINTS: dict[str, list[Any]] = {
    **CLASSIFIER_CONSTRAINTS,
    "truncation": [StrOptions({"exact", "smooth"})],
    "steepness": [Interval(Real, 0, None, closed="neither")],
    "candidates": [Interval(Integral, 1, None, closed="left"), None],
}


class PCVMClassifier(KernelClassifierMixin, GaussianClassifier):
    """Probabilistic classification vector machine: a few training rows, each with a weight towards its own class.

    The log-odds are Σ w_j y_j k(x, x_j) + intercept, with y_j = ±1 the class of training row j and weights w_j ≥ 0,
    each with a Gaussian prior truncated to w ≥ 0 whose precision maximises the evidence. A relevance vector machine
    (`RVMClassifier`) may give a row of the positive class a negative weight. Here that is impossible, so every kept row
    is an example of its class.

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "linear", "poly", "sigmoid", "precomputed"} or callable, default="rbf"
        As in `RVMRegressor`, but a "precomputed" kernel must be square: the kernel values of all training rows.
        Predictions need the kernel values of new and training rows.
    gamma, degree, coef0, standardize, random_state
        As in `RVMRegressor`.
    truncation : {"exact", "smooth"}, default="exact"
        "exact" bounds the weights by 0; "smooth" multiplies their prior by 2σ(steepness × w).
    steepness : float, default=5.0
        Steepness of the smooth truncation, for the weight of a kernel column of unit variance. Not used by "exact".
    proba : {"quadrature", "probit", "plug-in", "bound"}, default="quadrature"
        How class probabilities are averaged over the posterior: exactly, by MacKay's approximation, not at all, or by
        the normalised variational bounds.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with `sample_weight`.
    candidates : None or int, default=None
        Choose among all training rows (above 1,000: among 1,000 of them, taken evenly by their distance from the mean),
        or among a number of them drawn at random.
    fit_intercept : bool, default=True
        Whether the model has an intercept (with a flat prior).
    max_iter : int, default=10000
        Largest number of steps of the search.
    tol : float, default=1e-3
        The fit has converged when no single change gains more than this many nats.
    n_jobs : int, default=None
        Parallel one-vs-rest fits, with more than two classes.
    verbose : int, default=0
        1: show progress in a live line in terminals and notebooks. 2: print a line on standard error for each step.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    relevance_vectors_ : ndarray of shape (n_vectors, n_features) or None
        The kept rows; None for a precomputed kernel. With more than two classes (each against the rest), this and all
        arrays below that belong to vectors are lists with one array per class.
    relevance_indices_ : ndarray of int
        Indices of the kept rows of X; of equal rows of one class the first.
    dual_coef_ : ndarray of shape (n_vectors,)
        w_j y_j: positive for rows of the second class (with more than two, of the class itself), negative for others.
    intercept_ : ndarray of shape (n_fits,)
        Constant of the expansion `Σ dual_coef_ k(x, relevance_vectors_) + intercept_`; one for two classes, else one
        per class.
    precision_, relevance_ : ndarray of shape (n_vectors,)
        Prior precisions of the kept weights, and γ in [0, 1]: how well the data determine them.
    covariance_ : ndarray
        Covariance of the kept weights in the Gaussian approximation of their posterior.
    gamma_ : float or None
        The γ used; None for kernels without γ.
    log_evidence_ : float or ndarray of shape (n_classes,)
        Laplace's approximation, with the normaliser of the truncated prior (docs/pcvm.md).
    optimality_gap_ : float
        Gain in nats of the best single change, by the local Gaussian approximation. Changes that were tried and gained
        less than predicted are not counted.
    evidence_path_, converged_, n_iter_, n_jittered_
        As in `RVMClassifier`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsebayes import PCVMClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 2))
    >>> y = np.where((X**2).sum(axis=1) + 0.3 * rng.standard_normal(200) > 1.5, "out", "in")
    >>> model = PCVMClassifier().fit(X, y)
    >>> len(model.relevance_vectors_) < 20
    True
    >>> bool(np.all((model.dual_coef_ > 0) == (y[model.relevance_indices_] == "out")))
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **KERNEL_CONSTRAINTS,
        **MACHINE_CONSTRAINTS,
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        gamma: str | float = "evidence",
        degree: float = 3,
        coef0: float = 1.0,
        standardize: bool = True,
        truncation: str = "exact",
        steepness: float = 5.0,
        proba: str = "quadrature",
        class_weight: Any = None,
        candidates: int | None = None,
        fit_intercept: bool = True,
        max_iter: int = 10_000,
        tol: float = 1e-3,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.standardize = standardize
        self.truncation = truncation
        self.steepness = steepness
        self.proba = proba
        self.class_weight = class_weight
        self.candidates = candidates
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _fit_rows(self, X: FloatArray, codes: AnyArray, weight: FloatArray, counts: BoolArray) -> None:
        if KernelParameters.of(self).is_precomputed and X.shape[1] != len(counts):
            raise ValueError(
                "kernel='precomputed' needs the square matrix of the kernel values of all training rows, because each "
                f"column belongs to a row and its class; got {len(counts)} rows and {X.shape[1]} columns"
            )

        chosen = choose_classifier_kernel(self, X, codes, weight, flat_intercept=self.fit_intercept)
        design = kernel_design(self, X, weight, counts, chosen.kernel, most=MAX_CANDIDATES)
        with threads_for(len(X) * design.n_columns):
            standard = StandardColumns.of(design, weight, centre=self.fit_intercept)
            self._store(self._fit_all(LabelledColumns(standard, counts), codes, weight))
        self.gamma_ = chosen.gamma

    def _fit_binary(self, labelled: LabelledColumns, t: FloatArray, weight: FloatArray) -> KernelFit:
        return VectorMachine.of(self).fit(labelled, t, weight)
