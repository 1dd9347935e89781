"""Relevance vector machine for classification."""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.priors import ARD
from sparsebayes.core.types import AnyArray, BoolArray, FloatArray, IntArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.data.lowrank import NotLowRank
from sparsebayes.engine import glm, softmax
from sparsebayes.engine.label_regression import regression_centres
from sparsebayes.engine.loop import Trace
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.process import VARIANCE_FACTORS, label_centres, regression_signal
from sparsebayes.estimators._base import threads_for
from sparsebayes.estimators._classifier import GaussianClassifier
from sparsebayes.estimators._joint import JointFit
from sparsebayes.estimators._kernel import CLASSIFIER_CONSTRAINTS, KERNEL_CONSTRAINTS, VECTOR_CONSTRAINTS, KernelFit
from sparsebayes.estimators._kernel_blocks import BlockKernelClassifierMixin
from sparsebayes.estimators._kernel_classifier import (
    MAX_CANDIDATES,
    MIN_ALPHA,
    KernelClassifierMixin,
    StandardColumns,
    choose_classifier_kernel,
)
from sparsebayes.estimators._kernel_design import ChosenKernel, KernelDesign, KernelFunction, kernel_design
from sparsebayes.estimators._label_process import LabelProcess, LabelSquares, Rivals
from sparsebayes.estimators._linear import glm_fit
from sparsebayes.estimators._process import ProcessDesign, judged_classes, process_design

MANY_WEIGHTS = 3000
"""Candidates times classes up to which a softmax model begins with all of them. The time of an iteration grows with the
cube; beyond, each class begins with the vectors that it keeps against the rest."""


@dataclass(frozen=True)
class KernelJoint(JointFit):
    """A softmax model on kernel columns; for new rows only the columns that any class keeps are formed."""

    kernel: KernelFunction
    centres: FloatArray
    kept: IntArray

    def latent(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of every row's predictors."""
        K = np.zeros((len(X), self.n_features))
        K[:, self.kept] = self.kernel(X, self.centres)
        return super().latent(K)


class RVMClassifier(BlockKernelClassifierMixin, KernelClassifierMixin, GaussianClassifier):
    """Relevance vector machine: classification with a few kernel functions, centred on training rows.

    The log-odds are a weighted sum of kernel functions. Every weight has a zero-mean Gaussian prior with its own
    precision, which maximises the evidence. Most precisions become infinite and their weights zero; the rows whose
    weights remain are the *relevance vectors*.

    Parameters
    ----------
    kernel, gamma, degree, coef0, standardize, vectors, candidates, random_state
        As in `RVMRegressor`. vectors="all" needs inference="laplace" and multi_class="one-vs-rest"; it is a Gaussian
        process for the log-odds or for the labels, whichever makes held-out labels more probable. Above 1,000 rows,
        candidates=None takes 1,000 of them, evenly by their distance from the mean (a process for the labels 35 √rows).
    solver : {"sequential", "fixed-point", "em"}, default="sequential"
        "sequential" adds or deletes one vector at a time (Tipping & Faul 2003); "fixed-point" (MacKay) and "em" start
        with all vectors and re-estimate all precisions at once (Tipping 2001).
    inference : {"laplace", "variational"}, default="laplace"
        Expand the likelihood at the posterior mode, or bound it from below (as the RVM of the SLR toolbox does).
    multi_class : {"one-vs-rest", "softmax"}, default="one-vs-rest"
        With more than two classes: one fit per class, or a joint softmax model. The latter needs inference="laplace",
        and re-estimates all precisions at once by the rule of `solver` (the fixed point for "sequential").
    proba : {"quadrature", "probit", "plug-in", "bound"}, default="quadrature"
        How class probabilities are averaged over the posterior: exactly, by MacKay's approximation, not at all, or by
        the normalised variational bounds.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with `sample_weight`.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    intercept_prior : {"flat", "ard"}, default="flat"
        "flat": neither shrunk nor pruned. "ard": one more weight with its own precision, as in SparseBayes and the SLR
        toolbox.
    max_iter : int, default=10000
        Largest number of steps.
    tol : float, default=1e-3
        The fit has converged when no single change of the model promises more nats than this.
    n_jobs : int, default=None
        Parallel one-vs-rest fits, with more than two classes.
    verbose : int, default=0
        1: show progress in a live line in terminals and notebooks. 2: print a line on standard error for each step.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    relevance_vectors_ : ndarray of shape (n_vectors, n_features) or None
        The kept centres; None for a precomputed kernel. With more than two classes, this and all arrays below that
        belong to vectors are lists with one array per class.
    relevance_indices_ : ndarray of int
        Indices of the vectors among the rows of X, the rows of `candidates` or the columns of a precomputed kernel.
    dual_coef_ : ndarray of shape (n_vectors,)
        Posterior mean of the kept weights.
    intercept_ : ndarray of shape (n_fits,)
        Constant of the expansion `Σ dual_coef_ k(x, relevance_vectors_) + intercept_`; one for two classes, else one
        per class.
    precision_, relevance_ : ndarray of shape (n_vectors,)
        Prior precisions of the kept weights, and γ in [0, 1]: how well the data determine them.
    covariance_ : ndarray
        Posterior covariance of the kept weights.
    gamma_ : float or None
        The γ used; None for kernels without γ.
    log_evidence_ : float or ndarray of shape (n_classes,)
        Log evidence by the chosen inference: Laplace's approximation or the variational bound. For a Gaussian process
        of the labels the log probability of held-out labels, of all classes together.
    optimality_gap_ : float
        Gain in nats of the best single change, by the local Gaussian approximation. Changes that were tried and gained
        less than predicted are not counted.
    evidence_path_, converged_, n_iter_, n_jittered_
        As in `RVMRegressor`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsebayes import RVMClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 2))
    >>> y = np.where((X**2).sum(axis=1) + 0.3 * rng.standard_normal(200) > 1.5, "out", "in")
    >>> model = RVMClassifier(vectors="sparse").fit(X, y)
    >>> len(model.relevance_vectors_) < 20
    True
    >>> probabilities = model.predict_proba([[0.0, 0.0]])
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **KERNEL_CONSTRAINTS,
        **VECTOR_CONSTRAINTS,
        **CLASSIFIER_CONSTRAINTS,
        "solver": [StrOptions({"sequential", "fixed-point", "em"})],
        "inference": [StrOptions({"laplace", "variational"})],
        "multi_class": [StrOptions({"one-vs-rest", "softmax"})],
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
        self.standardize = standardize
        self.vectors = vectors
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

    def _fit_rows(self, X: FloatArray, codes: AnyArray, weight: FloatArray, counts: BoolArray) -> None:
        if self.multi_class == "softmax" and self.inference != "laplace":
            raise ValueError(f"multi_class='softmax' needs inference='laplace', not inference={self.inference!r}")
        joint = len(self.classes_) > 2 and self.multi_class == "softmax"
        if self.vectors == "all" and (joint or self.inference != "laplace"):
            raise ValueError("vectors='all' needs inference='laplace' and multi_class='one-vs-rest'")
        ones = self.fit_intercept and not self._has_flat_intercept()
        chosen = choose_classifier_kernel(self, X, codes, weight, flat_intercept=self._has_flat_intercept())
        design = kernel_design(self, X, weight, counts, chosen.kernel, ones=ones, most=MAX_CANDIDATES)
        with threads_for(len(X) * design.n_columns):
            inputs = self._standardise(design, weight)
            if joint:
                self._store_joint(design, self._fit_joint(inputs, codes, weight))
                self.gamma_ = chosen.gamma
            else:
                fits, self.gamma_ = self._fit_classes(inputs, codes, weight, counts, chosen)
                self._store(fits)

    def _fit_classes(
        self, inputs: StandardColumns, codes: AnyArray, weight: FloatArray, counts: BoolArray, chosen: ChosenKernel
    ) -> tuple[list[KernelFit], float | None]:
        """One fit for two classes, one against the rest for each of more, as `vectors` says; and γ of their kernel."""
        offered = self.inference == "laplace" and not inputs.design.ones
        several = len(self.classes_) > 2
        most = label_centres(len(weight), len(self.classes_) if several else 1)
        process = process_design(self.vectors, inputs.design, lambda: chosen.signal, most) if offered else None
        if process is None:
            return self._fit_all(inputs, codes, weight), chosen.gamma
        variances = np.asarray(VARIANCE_FACTORS * np.median(chosen.signal.variance), np.float64)
        odds = LabelProcess(process, variances, self._has_flat_intercept())
        squares, gamma = self._label_squares(inputs.design.X, codes, weight, counts)
        rivals = Rivals(odds, squares, self._fit_fold if self.vectors == "auto" else None)
        judged = rivals.judge(codes, weight, judged_classes(inputs.design, codes, weight))
        if judged.best == "sparse":
            return self._fit_all(inputs, codes, weight), chosen.gamma
        if judged.best == "squares" and squares is not None:
            T = np.column_stack([codes == k for k in (range(len(self.classes_)) if several else [1])])
            return squares.fit(T.astype(np.float64), weight), gamma
        if several and judged.variances:
            odds = replace(odds, variances=np.array([np.median(judged.variances)]))
        return self._fit_all(odds, codes, weight), chosen.gamma

    def _label_squares(
        self, X: FloatArray, codes: AnyArray, weight: FloatArray, counts: BoolArray
    ) -> tuple[LabelSquares | None, float | None]:
        """A process for the labels with a kernel of its own, and γ; None where there is no such process."""
        flat = self._has_flat_intercept()
        chosen = choose_classifier_kernel(self, X, codes, weight, regression_signal, flat_intercept=flat)
        design = kernel_design(self, X, weight, counts, chosen.kernel, most=regression_centres(len(X)))
        with suppress(NotLowRank):
            return LabelSquares.of(design, float(chosen.signal.ratio.max()), flat), chosen.gamma
        return None, None

    def _fit_fold(self, fold: ProcessDesign, t: FloatArray, weight: FloatArray) -> KernelFit:
        """A sparse model of some of the rows."""
        return self._fit_binary(self._standardise(fold.design, weight), t, weight)

    def _has_flat_intercept(self) -> bool:
        return self.fit_intercept and self.intercept_prior == "flat"

    def _standardise(self, design: KernelDesign, weight: FloatArray) -> StandardColumns:
        return StandardColumns.of(design, weight, centre=self._has_flat_intercept())

    def _problem(self, columns: DenseRows, t: FloatArray, weight: FloatArray) -> Problem:
        return Problem(
            design=columns,
            t=t,
            weight=weight,
            likelihood=Bernoulli(),
            prior=ARD(min_alpha=MIN_ALPHA),
            flat_intercept=self._has_flat_intercept(),
            bounded=self.inference == "variational",
        )

    def _fit_binary(self, inputs: StandardColumns | LabelProcess, t: FloatArray, weight: FloatArray) -> KernelFit:
        if isinstance(inputs, LabelProcess):
            return inputs.fit(t, weight)
        design, problem = inputs.design, self._problem(inputs.columns, t, weight)
        if self.solver == "sequential":
            result = glm.find(problem, self._settings())
        else:
            result = glm.batch_then_search(problem, self.solver, self._settings())
        return design.kernel_fit(glm_fit(problem, result, len(design.indices)))

    def _fit_joint(self, inputs: StandardColumns, codes: AnyArray, weight: FloatArray) -> JointFit:
        design, columns = inputs.design, inputs.columns
        n_columns = len(design.indices)
        flat, no_prior = self._has_flat_intercept(), (0.0, np.zeros(columns.n_columns))
        problem = softmax.SoftmaxProblem(columns, codes, len(self.classes_), weight, flat, 0.0, *no_prior)
        trace, alpha = Trace(), None
        if columns.n_columns * len(self.classes_) > MANY_WEIGHTS:
            alpha = self._first_precisions(inputs, codes, weight)
        rule = glm.RULES["ard"]["em" if self.solver == "em" else "fixed-point"]
        fit = softmax.solve(problem, rule=rule, shared=False, trace=trace, settings=self._settings(), alpha=alpha)
        parts = fit.bare(), columns.origin, columns.unit, n_columns, 0.0, trace
        if design.kernel is None or design.centres is None:
            return JointFit(*parts)
        kept = np.flatnonzero(fit.active[:, :n_columns].any(axis=0))
        return KernelJoint(*parts, design.kernel, design.centres[kept], kept)

    def _first_precisions(self, inputs: StandardColumns, codes: AnyArray, weight: FloatArray) -> FloatArray:
        """Precisions of the vectors that each class keeps against the rest; infinite for all others."""
        alpha = np.full((len(self.classes_), inputs.columns.n_columns), np.inf)
        for k in range(len(self.classes_)):
            problem = self._problem(inputs.columns, (codes == k).astype(np.float64), weight)
            found = glm.find(problem, self._settings())
            alpha[k, found.active] = found.alpha
        return alpha

    def _store_joint(self, design: KernelDesign, joint: JointFit) -> None:
        """Fitted attributes of a softmax model: lists with one array per class."""
        kept = [np.flatnonzero(row < np.inf) for row in joint.precision]
        centres = design.centres
        self.relevance_vectors_ = None if centres is None else [centres[columns] for columns in kept]
        self.relevance_indices_ = [design.indices[columns] for columns in kept]
        self.dual_coef_ = [row[columns] for row, columns in zip(joint.coef, kept, strict=True)]
        self.precision_ = [row[columns] for row, columns in zip(joint.precision, kept, strict=True)]
        self.relevance_ = [row[columns] for row, columns in zip(joint.relevance, kept, strict=True)]
        self._store_joint_common(joint)

    def sample_posterior(self, n_samples: int = 1, random_state: Any = None) -> Any:
        """Draws from the posterior of the kept weights.

        Returns
        -------
        dual_coef : ndarray of shape (n_samples, n_vectors)
        intercept : ndarray of shape (n_samples,)
            For more than two classes both are lists with one array per class.
        """
        check_is_fitted(self)
        if self._joint is None:
            return super().sample_posterior(n_samples, random_state)
        coef, level = self._joint.weight_samples(n_samples, check_random_state(random_state))
        kept = [np.flatnonzero(row < np.inf) for row in self._joint.precision]
        return [coef[:, k, columns] for k, columns in enumerate(kept)], list(level.T)
