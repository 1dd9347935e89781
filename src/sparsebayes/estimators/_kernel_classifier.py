"""What kernel classifiers share: fit, stored attributes, and the machine with label-signed columns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.priors import NonNegative
from sparsebayes.core.types import AnyArray, BoolArray, FloatArray, IntArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import glm
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.process import Signal, Spectrum, label_signal
from sparsebayes.estimators._base import fit_context, warn_unless_converged, watched, whole_fit
from sparsebayes.estimators._elsewhere import streamed
from sparsebayes.estimators._kernel import KernelFit, KernelMixin, VectorsMixin
from sparsebayes.estimators._kernel_design import ChosenKernel, KernelDesign, choose_kernel
from sparsebayes.estimators._linear import glm_fit

MIN_ALPHA = 1e-6
"""Smallest prior precision of a weight, for a column of unit variance. With separable classes the evidence would take
α to 0. A prior standard deviation of 1000 restricts nothing else: at log-odds of 37 a probability is 1 in double
precision."""


MAX_CANDIDATES = 1000
"""Most centres among which a classifier chooses unless it is told. With 5,000 rows and 20 inputs 1,000 candidates give
the error of all (0.12), and take a third of the time; with 500 it is 0.13."""


@dataclass(frozen=True)
class StandardColumns:
    """A design and its columns in standard units, which each class is fitted on."""

    design: KernelDesign
    columns: DenseRows

    @classmethod
    def of(cls, design: KernelDesign, weight: FloatArray, *, centre: bool) -> "StandardColumns":
        """Columns of unit variance by weight; rows are not multiplied by their weights."""
        return cls(design, design.columns.standardised(weight, centre=centre).unweighted())


def choose_classifier_kernel(
    model: Any,
    X: FloatArray,
    codes: AnyArray,
    weight: FloatArray,
    signal: Callable[[Spectrum], Signal] = label_signal,
    *,
    flat_intercept: bool,
) -> ChosenKernel:
    """The kernel of a classifier; a γ by evidence is that of all classes, each against the rest, together.

    `signal` is the evidence of labels ±½: that of log-odds, or of a regression on the labels.
    """
    n_classes = len(model.classes_)

    def labels() -> FloatArray:
        return np.column_stack([codes == k for k in (range(n_classes) if n_classes > 2 else [1])]) - 0.5

    return choose_kernel(model, X, labels, weight, signal, flat_intercept=flat_intercept)


class KernelClassifierMixin(KernelMixin, VectorsMixin):
    """`fit` and stored attributes of the kernel classifiers, which give `_fit_rows`."""

    _validated_rows: Callable[..., tuple[FloatArray, AnyArray, FloatArray, BoolArray]]
    _store_common: Callable[[Sequence[Any]], None]

    def _fit_rows(self, X: FloatArray, codes: AnyArray, weight: FloatArray, counts: BoolArray) -> None:
        """Fit and store; `counts` marks which of the given rows are the rows of X."""
        raise NotImplementedError

    @streamed
    @whole_fit
    @fit_context(prefer_skip_nested_validation=True)
    @watched
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
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
        self._fit_rows(*self._validated_rows(X, y, sample_weight))
        warn_unless_converged(self)
        return self

    def _store(self, fits: Sequence[KernelFit]) -> None:
        """Fitted attributes; for more than two classes lists of what belongs to vectors."""
        self._store_common(fits)
        self._single = len(fits) == 1
        self._store_vectors()


# --- the probabilistic classification vector machine, of PCVMClassifier and PFCVMClassifier ---


@dataclass(frozen=True)
class LabelledColumns:
    """Standard columns, and which of the given rows they have."""

    standard: StandardColumns
    counts: BoolArray

    def signed(self, t: FloatArray) -> StandardColumns:
        """A column for each centre and each class (0 or 1) that has a row there, with the sign of the class.

        The sign is in the column's scale. Dividing by it makes the kernel column a label-signed one, and the weight of
        that (which is positive) a coefficient of the kernel again.
        """
        design, columns, sign = self.standard.design, self.standard.columns, 2 * t - 1
        if design.centres is None:
            signs = np.full(columns.n_columns, np.inf)  # rows that do not count are no candidates
            signs[self.counts] = sign
            return StandardColumns(design, columns.rescaled(np.arange(len(signs)), signs))
        centre, row = first_rows(design.X, t, design.centres)
        indices = np.flatnonzero(self.counts)[row]
        chosen = replace(design, centres=design.centres[centre], indices=indices)
        return StandardColumns(chosen, columns.rescaled(centre, sign[row]))


def first_rows(X: FloatArray, t: FloatArray, centres: FloatArray) -> tuple[IntArray, IntArray]:
    """For each centre and each class with rows there: the number of the centre, and the first such row."""
    _, point = np.unique(np.concatenate([X, centres]), axis=0, return_inverse=True)
    of_row, of_centre = np.split(point.ravel(), [len(X)])
    pairs = []
    for label in (0, 1):
        first = np.full(point.max() + 1, -1)
        rows = np.flatnonzero(t == label)[::-1]
        first[of_row[rows]] = rows
        row = first[of_centre]
        pairs.append(np.stack([np.flatnonzero(row >= 0), row[row >= 0]]))
    both = np.concatenate(pairs, axis=1)
    centre, row = both[:, np.argsort(both[1])]
    return centre, row


@dataclass(frozen=True)
class VectorMachine:
    """Classification with weights ≥ 0 on label-signed columns."""

    truncation: str
    """"exact" or "smooth"."""
    steepness: float
    flat_intercept: bool
    settings: Settings
    min_alpha: float = MIN_ALPHA

    @classmethod
    def of(cls, model: Any, min_alpha: float = MIN_ALPHA) -> "VectorMachine":
        """That of an estimator."""
        return cls(model.truncation, model.steepness, model.fit_intercept, model._settings(), min_alpha)

    def fit(self, labelled: LabelledColumns, t: FloatArray, weight: FloatArray) -> KernelFit:
        """The model of classes t in {0, 1}."""
        design, columns = (signed := labelled.signed(t)).design, signed.columns
        exact = self.truncation == "exact"
        prior = NonNegative(min_alpha=self.min_alpha) if exact else NonNegative.smooth(self.steepness, self.min_alpha)
        problem = Problem(
            design=columns,
            t=t,
            weight=weight,
            likelihood=Bernoulli(),
            prior=prior,
            flat_intercept=self.flat_intercept,
        )
        result = glm.find(problem, self.settings)
        return design.kernel_fit(glm_fit(problem, result, len(design.indices)), np.arange(columns.n_columns))
