"""Probabilistic classification vector machine."""

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions

from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.predictive import PROBABILITIES
from sparsebayes.core.priors import NonNegative
from sparsebayes.core.types import AnyArray, BoolArray, FloatArray, IntArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import glm
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.width import Fit
from sparsebayes.estimators._base import progress, threads_for, warn_unless_converged, watched, whole_fit
from sparsebayes.estimators._kernel import (
    KERNEL_CONSTRAINTS,
    Dictionary,
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
class Labelled:
    """A dictionary, and which of the rows that were given are its rows."""

    book: Dictionary
    counts: BoolArray

    def columns(self, t: FloatArray) -> Dictionary:
        """The dictionary with a column for each centre and each class (0 or 1) that has a row there.

        A column carries the sign of its class in its scale: dividing by it makes the kernel column a label-signed one,
        and the weight of that (which is positive) a coefficient of the kernel again.
        """
        book, sign = self.book, 2 * t - 1
        if book.centres is None:
            signs = np.full(book.rows.n_columns, np.inf)  # rows that do not count are no candidates
            signs[self.counts] = sign
            return replace(book, rows=_scaled(book.rows, np.arange(len(signs)), signs))
        centre, row = first_rows(book.X, t, book.centres)
        rows = _scaled(book.rows, centre, sign[row])
        return replace(book, rows=rows, centres=book.centres[centre], indices=np.flatnonzero(self.counts)[row])


def first_rows(X: FloatArray, t: FloatArray, centres: FloatArray) -> tuple[IntArray, IntArray]:
    """For each centre and each class with rows there: the place of the centre, and the first such row."""
    _, place = np.unique(np.concatenate([X, centres]), axis=0, return_inverse=True)
    here, of_centre = np.split(place.ravel(), [len(X)])
    pairs = []
    for label in (0, 1):
        first = np.full(place.max() + 1, -1)
        rows = np.flatnonzero(t == label)[::-1]
        first[here[rows]] = rows
        row = first[of_centre]
        pairs.append(np.stack([np.flatnonzero(row >= 0), row[row >= 0]]))
    both = np.concatenate(pairs, axis=1)
    centre, row = both[:, np.argsort(both[1])]
    return centre, row


def _scaled(rows: DenseRows, which: IntArray, factor: FloatArray) -> DenseRows:
    """The chosen columns, their scales multiplied by a factor; the matrix is copied only where it must be."""
    same = np.array_equal(which, np.arange(rows.n_columns))
    X = rows.X if same else rows.X[:, which]
    return DenseRows(X, rows.mean[which], rows.scale[which] * factor, rows.root_weight)


class PCVMClassifier(KernelClassifier):
    """Probabilistic classification vector machine: a few training rows speak, each for its own class only.

    The log-odds are Σ w_j y_j k(x, x_j) + intercept, with y_j = ±1 the class of training row j and weights w_j ≥ 0,
    each with a Gaussian prior truncated to w ≥ 0 whose precision is chosen by evidence. A relevance vector machine
    (`RVMClassifier`) may place a negative weight on a row of the positive class; this one may not, so that every kept
    row is an example of its class.

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "linear", "poly", "sigmoid", "precomputed"} or callable, default="rbf"
        A name, a function of two arrays of rows that gives the matrix of their kernel values, or "precomputed": X is
        then the square matrix of kernel values of the training rows, and later that of new and training rows.
    gamma : "scale", "evidence" or float, default="scale"
        γ of the kernel: 1 / (n_features × variance of X); that of largest evidence (rbf and laplacian), charged as in
        `RVMClassifier`; or a number.
    degree, coef0 : float, default=3 and 1.0
        Degree and constant of "poly" (the constant also of "sigmoid").
    truncation : {"exact", "smooth"}, default="exact"
        Weights are kept from being negative by the bound itself, or by the factor 2σ(steepness × w) of their prior.
    steepness : float, default=5.0
        Of the smooth truncation, for the weight of a kernel column of unit variance. No value is needed for "exact".
    proba : {"quadrature", "probit", "plug-in", "bound"}, default="quadrature"
        How class probabilities are averaged over the posterior: exactly, by MacKay's approximation, not at all, or by
        the normalised variational bounds.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with `sample_weight`.
    candidates : None or int, default=None
        Choose among all training rows, or among so many of them drawn at random.
    fit_intercept : bool, default=True
        Whether the model has an intercept (with a flat prior).
    max_iter : int, default=10000
        Largest number of steps of the search.
    tol : float, default=1e-3
        The search ends when no single change promises more nats than this.
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
        The kept rows; None for a precomputed kernel. With more than two classes (each against the rest), this and all
        arrays below that belong to vectors are lists with one array per class.
    relevance_indices_ : ndarray of int
        Which rows of X they are; of equal rows of one class the first.
    dual_coef_ : ndarray of shape (n_vectors,)
        w_j y_j: positive for rows of the second class (of the class itself, with more than two), negative for others.
    intercept_ : ndarray of shape (n_fits,)
        Constant of the expansion Σ dual_coef_ k(x, relevance_vectors_) + intercept_; one for two classes, else one per
        class.
    precision_, relevance_ : ndarray of shape (n_vectors,)
        Prior precisions of the kept weights, and γ in [0, 1]: how well the data determine them.
    covariance_ : ndarray
        Covariance of the kept weights in the Gaussian approximation of their posterior.
    gamma_ : float or None
        γ that was used; None for kernels without it.
    log_evidence_ : float or ndarray of shape (n_classes,)
        Laplace's approximation with the truncated prior's normaliser; docs/pcvm.md says what is approximated.
    optimality_gap_ : float
        Nats that the best single change would bring by the local Gaussian view; changes that were tried and did not
        bring what the view promised are not counted.
    evidence_path_, converged_, n_iter_, n_jittered_
        As in `RVMClassifier`.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

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
        "truncation": [StrOptions({"exact", "smooth"})],
        "steepness": [Interval(Real, 0, None, closed="neither")],
        "proba": [StrOptions(set(PROBABILITIES))],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "candidates": [Interval(Integral, 1, None, closed="left"), None],
        "fit_intercept": ["boolean"],
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

    @whole_fit
    @_fit_context(prefer_skip_nested_validation=True)
    @watched
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "PCVMClassifier":
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            For a precomputed kernel of shape (n_samples, n_samples).
        y : array-like of shape (n_samples,)
            Class labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts: an integer weight is the same as repeated rows.
        """
        X, codes, weight, counts = self._validated_rows(X, y, sample_weight)
        self._check_square(X, counts)
        book = dictionary(self, X, weight, counts, ones=False, low_rank=False)
        self.gamma_ = first_gamma(self.gamma, X, weight) if has_gamma(self) else None
        with threads_for(book.rows.n_rows * book.rows.n_columns):
            if self.gamma_ is not None and self.gamma == "evidence":
                self.gamma_ = self._width(book, codes, weight, counts)
                book = book.at(kernel_of(self, self.gamma_))
            self._store(self._fits_on(book, codes, weight, counts))
        warn_unless_converged(self)
        return self

    def _check_square(self, X: FloatArray, counts: BoolArray) -> None:
        if isinstance(self.kernel, str) and self.kernel == "precomputed" and X.shape[1] != len(counts):
            raise ValueError(
                "kernel='precomputed' needs the square matrix of the kernel values of all training rows, because each "
                f"column belongs to a row and its class; got {len(counts)} rows and {X.shape[1]} columns"
            )

    def _fits_on(self, book: Dictionary, codes: AnyArray, weight: FloatArray, counts: BoolArray) -> list[KernelFit]:
        """One fit, or one per class, on the columns of a dictionary."""
        rows = book.rows.standardised(weight, centre=self.fit_intercept).unweighted()
        return self._fit_all(Labelled(replace(book, rows=rows), counts), codes, weight)

    def _fit_binary(self, labelled: Labelled, t: FloatArray, weight: FloatArray) -> KernelFit:
        return self._fit_columns(labelled.columns(t), t, weight)

    def _prior(self, min_alpha: float) -> NonNegative:
        if self.truncation == "exact":
            return NonNegative(min_alpha=min_alpha)
        return NonNegative.smooth(self.steepness, min_alpha)

    def _settings(self) -> Settings:
        return Settings(self.tol, self.max_iter, progress(self.verbose))

    def _fit_columns(
        self, book: Dictionary, t: FloatArray, weight: FloatArray, least_alpha: float = LEAST_ALPHA
    ) -> KernelFit:
        """The fit on label-signed columns."""
        problem = Problem(
            design=book.rows,
            t=t,
            weight=weight,
            likelihood=Bernoulli(),
            prior=self._prior(least_alpha),
            flat_intercept=self.fit_intercept,
        )
        result = glm.find(problem, self._settings())
        return book.kernel_fit(glm_fit(problem, result, len(book.indices)), np.arange(book.rows.n_columns))

    def _width(self, book: Dictionary, codes: AnyArray, weight: FloatArray, counts: BoolArray) -> float:
        """γ of largest evidence, over the fits of all classes."""

        def fit_at(book: Dictionary, near: Fit[Any] | None) -> Fit[None]:
            fits = self._fits_on(book, codes, weight, counts)
            active = np.concatenate([fit.active for fit in fits])
            scales = np.log(np.concatenate([fit.precision for fit in fits]))
            return Fit(float(sum(fit.log_evidence for fit in fits)), active, scales, None)

        return gamma_of_evidence(self, book, weight, fit_at, None)[0]
