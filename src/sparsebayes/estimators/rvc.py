"""Relevance vector machine for classification."""

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.predictive import PROBABILITIES
from sparsebayes.core.priors import ARD
from sparsebayes.core.types import AnyArray, FloatArray, IntArray
from sparsebayes.engine import glm, softmax
from sparsebayes.engine.evidence_gradient import laplace_evidence
from sparsebayes.engine.loop import Settings, Trace
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.width import Fit
from sparsebayes.estimators._base import progress, threads_for, warn_unless_converged, watched, whole_fit
from sparsebayes.estimators._joint import JointFit
from sparsebayes.estimators._kernel import (
    KERNEL_CONSTRAINTS,
    Dictionary,
    Kernel,
    KernelFit,
    dictionary,
    first_gamma,
    gamma_of_evidence,
    has_gamma,
    kernel_of,
)
from sparsebayes.estimators._kernel_classifier import KernelClassifier
from sparsebayes.estimators._linear import glm_fit

LEAST_ALPHA = 1e-6
"""Smallest prior precision of a weight, for a column of unit variance."""


@dataclass(frozen=True)
class KernelJoint(JointFit):
    """A softmax model on kernel columns, of which those kept by any class are made for new rows."""

    kernel: Kernel
    centres: FloatArray
    kept: IntArray

    def latent(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of every row's predictors."""
        K = np.zeros((len(X), self.n_features))
        K[:, self.kept] = self.kernel(X, self.centres)
        return super().latent(K)


class RVMClassifier(KernelClassifier):
    """Relevance vector machine: classification with a few kernel functions, centred on training rows.

    The log-odds are a weighted sum of kernel functions. Every weight has a zero-mean Gaussian prior with its own
    precision, chosen by evidence; most precisions run to infinity, and the rows whose weights stay are the *relevance
    vectors*.

    Parameters
    ----------
    kernel : {"rbf", "linear", "poly", "laplacian", "sigmoid", "precomputed"} or callable, default="rbf"
        The kernel, by name or as a function of two sets of rows that returns the matrix of their kernel values. It need
        not be positive definite. With "precomputed", X is the design itself: one column per candidate, square or not,
        and for predictions the same columns for the new rows.
    gamma : "scale", "evidence" or float, default="scale"
        γ of the kernels "rbf", exp(-γ‖x - z‖²), "laplacian", "poly" and "sigmoid". "scale" is
        1 / (n_features × X.var()); "evidence", for "rbf" and "laplacian", finds the γ of largest evidence, at the cost
        of some twenty fits.
    degree : float, default=3
        Degree of "poly", (γ xᵀz + coef0)^degree.
    coef0 : float, default=1.0
        Constant of "poly" and "sigmoid".
    solver : {"sequential", "fixed-point", "em"}, default="sequential"
        "sequential" adds or deletes one vector at a time (Tipping & Faul 2003); "fixed-point" (MacKay) and "em" begin
        with all of them and re-estimate all precisions at once (Tipping 2001).
    inference : {"laplace", "variational"}, default="laplace"
        Expand the posterior at its mode, or bound it from below (the RVM of the SLR toolbox).
    multi_class : {"one-vs-rest", "softmax"}, default="one-vs-rest"
        With more than two classes: one fit per class, or a joint softmax (with inference="laplace"; its precisions are
        re-estimated all at once, by the rule of `solver`, the fixed point for "sequential").
    proba : {"quadrature", "probit", "plug-in", "bound"}, default="quadrature"
        How class probabilities are averaged over the posterior: exactly, by MacKay's approximation, not at all, or by
        the normalised variational bounds.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with `sample_weight`.
    candidates : None, int or array-like of shape (n_candidates, n_features), default=None
        The centres to choose from: all training rows, so many of them drawn at random, or these points.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    intercept_prior : {"flat", "ard"}, default="flat"
        Never shrunk nor pruned; or one more weight with its own precision, as in SparseBayes and the SLR toolbox.
    max_iter : int, default=10000
        Largest number of steps.
    tol : float, default=1e-3
        The fit has converged when no single change of the model promises more nats than this.
    random_state : int, RandomState or None, default=None
        Which rows an integer `candidates` draws.
    n_jobs : int, default=None
        Parallel one-vs-rest fits, with more than two classes.
    verbose : int, default=0
        1: a live line in terminals and notebooks says how the fit goes. 2: a line on standard error for each step.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    relevance_vectors_ : ndarray of shape (n_vectors, n_features) or None
        The kept centres; None for a precomputed kernel. With more than two classes, this and all arrays below that
        belong to vectors are lists with one array per class.
    relevance_indices_ : ndarray of int
        Rows of X (or of `candidates`; for a precomputed kernel the columns) that the vectors are.
    dual_coef_ : ndarray of shape (n_vectors,)
        Posterior mean of the kept weights.
    intercept_ : ndarray of shape (n_fits,)
        Constant of the expansion Σ dual_coef_ k(x, relevance_vectors_) + intercept_; one for two classes, else one per
        class.
    precision_, relevance_ : ndarray of shape (n_vectors,)
        Prior precisions of the kept weights, and γ in [0, 1]: how well the data determine them.
    covariance_ : ndarray
        Posterior covariance of the kept weights.
    gamma_ : float or None
        γ that was used; None for kernels without it.
    log_evidence_ : float or ndarray of shape (n_classes,)
        Log evidence by the chosen inference: Laplace's approximation or the variational bound.
    optimality_gap_ : float
        Nats that the best single change would bring by the local Gaussian view; changes that were tried and did not
        bring what the view promised are not counted.
    evidence_path_, converged_, n_iter_, n_jittered_
        As in `RVMRegressor`.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsebayes import RVMClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 2))
    >>> y = np.where((X**2).sum(axis=1) + 0.3 * rng.standard_normal(200) > 1.5, "out", "in")
    >>> model = RVMClassifier().fit(X, y)
    >>> len(model.relevance_vectors_) < 20
    True
    >>> probabilities = model.predict_proba([[0.0, 0.0]])
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **KERNEL_CONSTRAINTS,
        "solver": [StrOptions({"sequential", "fixed-point", "em"})],
        "inference": [StrOptions({"laplace", "variational"})],
        "multi_class": [StrOptions({"one-vs-rest", "softmax"})],
        "proba": [StrOptions(set(PROBABILITIES))],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "fit_intercept": ["boolean"],
        "intercept_prior": [StrOptions({"flat", "ard"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        *,
        kernel: Any = "rbf",
        gamma: str | float = "scale",
        degree: float = 3,
        coef0: float = 1.0,
        solver: str = "sequential",
        inference: str = "laplace",
        multi_class: str = "one-vs-rest",
        proba: str = "quadrature",
        class_weight: Any = None,
        candidates: Any = None,
        fit_intercept: bool = True,
        intercept_prior: str = "flat",
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
        self.solver = solver
        self.inference = inference
        self.multi_class = multi_class
        self.proba = proba
        self.class_weight = class_weight
        self.candidates = candidates
        self.fit_intercept = fit_intercept
        self.intercept_prior = intercept_prior
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @whole_fit
    @_fit_context(prefer_skip_nested_validation=True)
    @watched
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "RVMClassifier":
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            For a precomputed kernel of shape (n_samples, n_candidates).
        y : array-like of shape (n_samples,)
            Class labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts: an integer weight is the same as repeated rows.
        """
        if self.multi_class == "softmax" and self.inference != "laplace":
            raise ValueError(f"multi_class='softmax' needs inference='laplace', not inference={self.inference!r}")
        X, codes, weight, counts = self._validated_rows(X, y, sample_weight)
        flat = self.fit_intercept and self.intercept_prior == "flat"
        book = dictionary(self, X, weight, counts, ones=self.fit_intercept and not flat, low_rank=False)
        joint = len(self.classes_) > 2 and self.multi_class == "softmax"
        self.gamma_ = first_gamma(self.gamma, X, weight) if has_gamma(self) else None
        with threads_for(book.rows.n_rows * book.rows.n_columns):
            if self.gamma_ is not None and self.gamma == "evidence":
                self.gamma_ = self._width(book, codes, weight, joint)
                book = book.at(kernel_of(self, self.gamma_))
            book = self._standardised(book, weight)
            if joint:
                self._store_joint(book, self._fit_joint(book, codes, weight))
            else:
                self._store(self._fit_all(book, codes, weight))
        warn_unless_converged(self)
        return self

    def _standardised(self, book: Dictionary, weight: FloatArray) -> Dictionary:
        centre = self.fit_intercept and self.intercept_prior == "flat"
        return replace(book, rows=book.rows.standardised(weight, centre=centre).unweighted())

    def _width(self, book: Dictionary, codes: AnyArray, weight: FloatArray, joint: bool) -> float:
        """γ of largest evidence, over the fits of all classes."""

        def fit_at(book: Dictionary, near: Fit[Any] | None) -> Fit[None]:
            book = self._standardised(book, weight)
            if joint:
                softmax_fit = self._fit_joint(book, codes, weight).fit
                return Fit(softmax_fit.log_evidence, np.flatnonzero(softmax_fit.active), np.empty(0), None)
            fits = self._fit_all(book, codes, weight)
            active = np.concatenate([fit.active for fit in fits])
            scales = np.log(np.concatenate([fit.precision[: len(fit.active)] for fit in fits]))
            return Fit(float(sum(fit.log_evidence for fit in fits)), active, scales, None)

        evidence = None
        if len(self.classes_) == 2 and self.inference == "laplace" and not book.ones:
            evidence = laplace_evidence(self._problem(book, codes.astype(np.float64), weight))
        return gamma_of_evidence(self, book, weight, fit_at, evidence)[0]

    def _problem(self, book: Dictionary, t: FloatArray, weight: FloatArray) -> Problem:
        return Problem(
            design=book.rows,
            t=t,
            weight=weight,
            likelihood=Bernoulli(),
            prior=ARD(min_alpha=LEAST_ALPHA),
            flat_intercept=self.fit_intercept and self.intercept_prior == "flat",
            bounded=self.inference == "variational",
        )

    def _fit_binary(self, book: Dictionary, t: FloatArray, weight: FloatArray) -> KernelFit:
        problem = self._problem(book, t, weight)
        settings = Settings(self.tol, self.max_iter, progress(self.verbose))
        if self.solver == "sequential":
            result = glm.find(problem, settings)
        else:
            result = glm.batch_then_search(problem, self.solver, settings)
        return book.kernel_fit(glm_fit(problem, result, len(book.indices)), np.arange(book.rows.n_columns))

    def _fit_joint(self, book: Dictionary, codes: AnyArray, weight: FloatArray) -> JointFit:
        rows, n_columns = book.rows, len(book.indices)
        flat = self.fit_intercept and self.intercept_prior == "flat"
        flat_prior = 0.0, np.zeros(rows.n_columns)
        problem = softmax.SoftmaxProblem(rows, codes, len(self.classes_), weight, flat, 0.0, *flat_prior)
        settings, trace = Settings(self.tol, self.max_iter, progress(self.verbose)), Trace()
        rule = glm.RULES["ard"]["em" if self.solver == "em" else "fixed-point"]
        fit = softmax.solve(problem, rule=rule, shared=False, trace=trace, settings=settings)
        parts = fit.bare(), rows.mean, rows.scale, n_columns, 0.0, trace
        if book.kernel is None or book.centres is None:
            return JointFit(*parts)
        kept = np.flatnonzero(fit.active[:, :n_columns].any(axis=0))
        return KernelJoint(*parts, book.kernel, book.centres[kept], kept)

    def _store_joint(self, book: Dictionary, joint: JointFit) -> None:
        """Fitted attributes of a softmax model: lists with one array per class."""
        kept = [np.flatnonzero(row < np.inf) for row in joint.precision]
        centres = book.centres
        self.relevance_vectors_ = None if centres is None else [centres[columns] for columns in kept]
        self.relevance_indices_ = [book.indices[columns] for columns in kept]
        self.dual_coef_ = [row[columns] for row, columns in zip(joint.coef, kept, strict=True)]
        self.precision_ = [row[columns] for row, columns in zip(joint.precision, kept, strict=True)]
        self.relevance_ = [row[columns] for row, columns in zip(joint.relevance, kept, strict=True)]
        self.intercept_, self.log_evidence_ = joint.intercept, joint.fit.log_evidence
        self.evidence_path_ = np.array(joint.trace.objective)
        self.optimality_gap_ = joint.trace.infos[-1].change
        self.converged_ = joint.fit.converged
        self.n_iter_, self.n_jittered_ = len(joint.trace.infos), joint.trace.n_jittered
        self._fits, self._joint = [], joint

    def sample_posterior(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Draws of the kept weights (n_samples, n_vectors) and the intercept (n_samples,).

        With more than two classes lists of both, with one array per class.
        """
        check_is_fitted(self)
        if self._joint is None:
            return super().sample_posterior(n_samples, random_state)
        coef, level = self._joint.weight_samples(n_samples, check_random_state(random_state))
        kept = [np.flatnonzero(row < np.inf) for row in self._joint.precision]
        return [coef[:, k, columns] for k, columns in enumerate(kept)], list(level.T)
