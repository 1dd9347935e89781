"""PFCVMClassifier: classification that chooses samples and features together."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sparsebayes.core.types import AnyArray, BoolArray, FloatArray
from sparsebayes.engine.process import label_centres
from sparsebayes.engine.theta_model import label_model
from sparsebayes.estimators._base import threads_for
from sparsebayes.estimators._classifier import GaussianClassifier
from sparsebayes.estimators._feature_weights import (
    WEIGHTED_KERNEL_CONSTRAINTS,
    FeatureWeightFit,
    FeatureWeights,
    FeatureWeightsMixin,
    StandardInputs,
    store_feature_weights,
)
from sparsebayes.estimators._kernel import VECTOR_CONSTRAINTS, KernelFit
from sparsebayes.estimators._kernel_classifier import (
    MIN_ALPHA,
    KernelClassifierMixin,
    LabelledColumns,
    StandardColumns,
    VectorMachine,
    first_rows,
)
from sparsebayes.estimators._kernel_design import KernelDesign, centred_design
from sparsebayes.estimators._label_process import LabelSquares, Rivals
from sparsebayes.estimators._label_weights import LabelWeights
from sparsebayes.estimators._process import ProcessDesign, process_design
from sparsebayes.estimators._validation import check_total
from sparsebayes.estimators.pcvm import MACHINE_CONSTRAINTS

FEW_ROWS_ALPHA = 0.25
"""Smallest prior precision where there are at least as many features as rows. Classes are then separable, and a single
vector with a large weight would reproduce them. A prior standard deviation of 2 lets one vector of unit size move a
probability from 0.5 to 0.88."""


class Candidates(NamedTuple):
    """Candidate centres without a kernel, and which of the given rows count."""

    design: KernelDesign
    counts: BoolArray


class PFCVMClassifier(FeatureWeightsMixin, KernelClassifierMixin, GaussianClassifier):
    """Classification vector machine that selects samples and features, both by evidence (PFCVM).

    `PCVMClassifier` with a weight θ_k ≥ 0 for every feature inside the kernel, for instance
    k(x, z) = exp(-Σ_k θ_k (x_k - z_k)²). Features that do not matter get the weight 0; where held-out rows say that
    choosing among features does not pay, all share one weight. Inputs need no scaling: they are standardised
    internally, and θ is reported in the units of the data. See docs/feature_weights.md.

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "poly"}, default="rbf"
        exp(-Σθ(x - z)²), exp(-Σθ|x - z|) or (Σθ(x - m)(z - m) + coef0)^degree, where m is the mean of the feature.
    degree, coef0 : float, default=3, 1.0
        Degree and constant of the polynomial kernel.
    vectors : {"auto", "sparse", "all"}, default="auto"
        "sparse": feature weights and few vectors of largest evidence of a regression of the labels, then the machine,
        in which every vector has the sign of its class. "all": feature weights of largest evidence of a Gaussian
        process, and that process, whose vectors have any sign. "auto": with these weights the process or the machine,
        whichever makes held-out labels more probable. Where features outnumber rows, "auto" and "all" are "sparse".
    min_gain : "auto" or float, default="auto"
        Evidence, in nats, that a feature must bring given the others, or alone where features outnumber rows. "auto" is
        the price at which 0.05 useless features are expected to be kept; 0 keeps every feature that increases it.
    init : "auto", float or array-like of shape (n_features,), default="auto"
        Feature weights of the first start. "auto" starts with equal weights in standard units, and compares the results
        of all starts with one weight for all features or (`vectors="sparse"`) those that each feature earns alone.
    n_restarts : int, default=3
        Number of starts: beyond the first they are equal weights of other sizes, then random weights.
        `restart_scores_` compares the maxima found.
    truncation, steepness, proba, class_weight, candidates, fit_intercept
        As in `PCVMClassifier`.
    max_iter : int, default=10000
        Largest number of steps of a search for vectors.
    tol : float, default=1e-3
        The fit has converged when neither a single change of a vector nor a further turn gains more than this many
        nats.
    random_state : int, RandomState instance or None, default=None
        Seed for drawing candidates, and for random starts.
    n_jobs : int, default=None
        Parallel one-vs-rest fits, with more than two classes.
    verbose : int, default=0
        1: show progress in a live line in terminals and notebooks. 2: print a line on standard error for each step.

    Attributes
    ----------
    feature_weights_ : ndarray of shape (n_features,) or (n_classes, n_features)
        θ in the units of the data; 0 for features that do not matter. With more than two classes each
        one-vs-rest fit has its own. `get_support` is the mask of features that matter to any class.
    feature_relevance_ : ndarray of the same shape
        How well the data determine each weight, between 0 (not at all, or dropped) and 1.
    restart_scores_ : ndarray of shape (n_restarts,) or (n_classes, n_restarts)
        Log evidence (of the labels as numbers) at the end of each start, less the price of its features and vectors.
        nan where features share one weight, and for starts that were not made, because features outnumber rows and got
        their weights one by one.
    classes_, relevance_vectors_, relevance_indices_, dual_coef_, intercept_, precision_, relevance_, covariance_
        As in `PCVMClassifier`.
    log_evidence_, optimality_gap_, evidence_path_, converged_, n_iter_, n_jittered_, n_features_in_, feature_names_in_
        As in `PCVMClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsebayes import PFCVMClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((150, 6))
    >>> y = X[:, 1] ** 2 + X[:, 4] ** 2 > 1.4
    >>> PFCVMClassifier().fit(X, y).get_support(indices=True)
    array([1, 4])
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **WEIGHTED_KERNEL_CONSTRAINTS,
        **VECTOR_CONSTRAINTS,
        **MACHINE_CONSTRAINTS,
    }

    def __init__(
        self,
        *,
        kernel: str = "rbf",
        degree: float = 3,
        coef0: float = 1.0,
        vectors: str = "auto",
        min_gain: str | float = "auto",
        init: Any = "auto",
        n_restarts: int = 3,
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
        self.degree = degree
        self.coef0 = coef0
        self.vectors = vectors
        self.min_gain = min_gain
        self.init = init
        self.n_restarts = n_restarts
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
        check_total(weight, self.fit_intercept)
        design = centred_design(X, weight, counts, self.candidates, self.random_state)
        with threads_for(len(X) * design.n_columns):
            self._store(self._fit_all(Candidates(design, counts), codes, weight))

    def _fit_binary(self, candidates: Candidates, t: FloatArray, weight: FloatArray) -> KernelFit:
        design = candidates.design
        assert design.centres is not None
        centre, row = first_rows(design.X, t, design.centres)
        inputs = StandardInputs.of(design.X, t, weight, design.centres[centre], t[row])
        if self.vectors == "sparse" or not 0 < inputs.n_varying < len(inputs.X):
            return self._fit_together(candidates, inputs, t, weight)
        return self._fit_by_process(candidates, inputs, t, weight)

    def _fit_together(
        self, candidates: Candidates, inputs: StandardInputs, t: FloatArray, weight: FloatArray
    ) -> FeatureWeightFit:
        """Feature weights and few vectors of one regression of the labels, then the machine."""
        settings = self._settings()
        labels = label_model(inputs.y, inputs.weight, self.fit_intercept, settings)
        found = FeatureWeights.of(self).find(inputs, labels, settings)
        least = MIN_ALPHA if inputs.n_varying < labels.template.n else FEW_ROWS_ALPHA
        fit = self._machine(candidates.design.at(found.kernel), candidates.counts, t, weight, least)
        return found.annotate(fit)

    def _fit_by_process(
        self, candidates: Candidates, inputs: StandardInputs, t: FloatArray, weight: FloatArray
    ) -> FeatureWeightFit:
        """Feature weights of a Gaussian process; then that, one for the labels, or the machine: what predicts best."""
        flat, design = self.fit_intercept, candidates.design
        weighted = LabelWeights(FeatureWeights.of(self), flat).find(design, inputs, t, weight)
        found, design = weighted.found, design.at(weighted.found.kernel)
        used = len(found.kernel.columns) > 0
        most = label_centres(len(weight), 1)
        process = process_design(self.vectors, design, lambda: weighted.signal, most) if used else None
        if process is None:
            return found.annotate(self._machine(design, candidates.counts, t, weight))
        dense = weighted.process(process, flat)
        own = weighted.for_labels(inputs, flat)
        squares = LabelSquares.of(design.at(own.found.kernel), float(own.signal.ratio.max()), flat)
        sparse = self._fit_fold if self.vectors == "auto" else None
        best = Rivals(dense, squares, sparse).judge(t, weight, [1]).best
        if best == "squares":
            return own.found.annotate(squares.fit(t[:, None], weight)[0])
        if best == "odds":
            return found.annotate(dense.fit(t, weight))
        return found.annotate(self._machine(process.among_centres(), candidates.counts, t, weight))

    def _fit_fold(self, fold: ProcessDesign, t: FloatArray, weight: FloatArray) -> KernelFit:
        """A machine of some of the rows."""
        return self._machine(fold.among_centres(), np.ones(len(t), dtype=bool), t, weight)

    def _machine(
        self, design: KernelDesign, counts: BoolArray, t: FloatArray, weight: FloatArray, least: float = MIN_ALPHA
    ) -> KernelFit:
        """The machine on these columns."""
        columns = StandardColumns.of(design, weight, centre=self.fit_intercept)
        return VectorMachine.of(self, least).fit(LabelledColumns(columns, counts), t, weight)

    def _store(self, fits: Sequence[KernelFit]) -> None:
        super()._store(fits)
        store_feature_weights(self)
