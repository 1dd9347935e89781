"""Variational Bayesian logistic regression, in one go or row by row."""

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from scipy.linalg import LinAlgError
from scipy.sparse import issparse
from sklearn.utils._param_validation import Interval, StrOptions

from sparsebayes.core.basis import LinearBasis
from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.linalg import factorise_balanced
from sparsebayes.core.predictive import PROBABILITIES
from sparsebayes.core.priors import VariationalGamma
from sparsebayes.core.types import FloatArray
from sparsebayes.data.source import design_of
from sparsebayes.engine import glm, incremental
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.problem import Problem
from sparsebayes.estimators._base import fit_context, progress, warn_unless_converged, watched, whole_fit
from sparsebayes.estimators._classifier import LinearClassifier
from sparsebayes.estimators._elsewhere import streamed
from sparsebayes.estimators._linear import LinearFit, glm_fit
from sparsebayes.estimators._streaming import BlockVariationalMixin
from sparsebayes.estimators._validation import checked_weight, validate_data

FLAT = 1e-6
"""Prior precision of the intercept in `partial_fit`, where an exactly flat one would have no covariance at first."""


class VBLogisticRegression(BlockVariationalMixin, LinearClassifier):
    """Logistic regression with a full variational bound, and an exact-size state for rows that keep coming.

    The weights have Gaussian priors whose precisions have Gamma(a0, b0) priors; both are integrated out variationally
    with the bound of Jaakkola and Jordan on the likelihood (Drugowitsch 2013). Nothing is pruned.

    Parameters
    ----------
    ard : bool, default=True
        A precision for each weight, or one for all.
    a0, b0 : float, default=1e-2, 1e-4
        Shape and rate of the precisions' Gamma prior, in the units of the input.
    prior_precision : "auto" or float, default="auto"
        Precision of the weights before the first row of `partial_fit`, where none is learned; "auto" is the number of
        features, which suits many small weights and shrinks a large one (see `partial_fit`).
    proba : {"quadrature", "probit", "plug-in", "bound"}, default="quadrature"
        How class probabilities are averaged over the posterior.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with `sample_weight` ("balanced" is not available in `partial_fit`).
    fit_intercept : bool, default=True
        Whether the model has an intercept (flat prior).
    max_iter : int, default=1000
        Largest number of iterations.
    tol : float, default=1e-3
        Iterations end when neither the bound (in nats) nor the log precisions move by more than this.
    n_jobs : int, default=None
        Parallel one-vs-rest fits, with more than two classes.
    verbose : int, default=0
        1: a live line in terminals and notebooks says how the fit goes. 2: a line on standard error for each step.

    Attributes
    ----------
    log_evidence_ : float or ndarray
        The variational lower bound on the log evidence.
    evidence_path_ : ndarray or list
        The bound before each iteration; it never falls.
    n_samples_seen_ : float
        Rows (by weight) that the posterior has seen.
    classes_, coef_, intercept_, active_, precision_, covariance_, relevance_, gain_, min_gain_
        As in `SparseLogisticRegression`; all features are active, and none is charged for.
    optimality_gap_, converged_, n_iter_, n_jittered_
        The last change of the bound or of a log precision, whether it was below `tol`, iterations, numerical rescues.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsebayes import VBLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 3))
    >>> y = X[:, 0] + rng.logistic(size=100) > 0
    >>> VBLogisticRegression().fit(X, y).predict(X[:3])
    array([ True,  True,  True])
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "ard": ["boolean"],
        "a0": [Interval(Real, 0, None, closed="neither")],
        "b0": [Interval(Real, 0, None, closed="neither")],
        "prior_precision": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "proba": [StrOptions(set(PROBABILITIES))],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    _beliefs: list[incremental.Belief] | None

    def __init__(
        self,
        *,
        ard: bool = True,
        a0: float = 1e-2,
        b0: float = 1e-4,
        prior_precision: str | float = "auto",
        proba: str = "quadrature",
        class_weight: Any = None,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-3,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.ard = ard
        self.a0 = a0
        self.b0 = b0
        self.prior_precision = prior_precision
        self.proba = proba
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose

    @streamed
    @whole_fit
    @fit_context(prefer_skip_nested_validation=True)
    @watched
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model to all rows at once; earlier rows are forgotten."""
        X, codes, weight = self._validated(X, y, sample_weight)
        rows = design_of(X)
        self._store(self._fit_all(rows.centred(weight) if self.fit_intercept else rows, codes, weight))
        self.n_samples_seen_ = float(weight.sum())
        self._beliefs = None
        warn_unless_converged(self)
        return self

    def _fit_binary(self, rows: Any, t: FloatArray, weight: FloatArray) -> LinearFit:
        problem = Problem(
            design=rows,
            t=t,
            weight=weight,
            likelihood=Bernoulli(),
            prior=VariationalGamma(self.a0, self.b0, shared=not self.ard),
            flat_intercept=self.fit_intercept,
            bounded=True,
        )
        result = glm.variational_bayes(problem, Settings(self.tol, self.max_iter, progress(self.verbose)))
        return glm_fit(problem, result, rows.n_columns)

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Take in a block of rows (one row is a block too); the posterior so far is the prior.

        The precisions stay as they are: at `prior_precision` before the first row, or as `fit` has learned them. A
        block's rows are taken in together, so the order of blocks matters slightly.

        With the default `prior_precision` a few large weights come out too small: a weight of 2.0 among 20 features is
        1.58 after 2,000 rows and 1.81 after 20,000, in blocks of 1 to 100 rows. Learn the precisions by `fit` on the
        first block, or set `prior_precision=1` for standardised features: the same weight is then 2.1 to 2.2.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), optional
            All classes that will ever come; needed in the first call.
        sample_weight : array-like of shape (n_samples,), optional
        """
        first = not hasattr(self, "classes_")
        if first and classes is None:
            raise ValueError(
                "classes must be given in the first call of partial_fit: all labels that occur in any call"
            )
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, reset=first)
        X = X.toarray() if issparse(X) else X  # a block is no larger than the covariance, which is dense
        known = np.unique(classes) if first else self.classes_
        strangers = np.setdiff1d(y, known)
        if len(strangers):
            raise ValueError(f"y holds {strangers.tolist()[0]!r}, which is not among classes={known.tolist()}")
        if len(known) < 2:
            raise ValueError(f"classes={known.tolist()} has one class only; at least 2 are needed")
        weight = checked_weight(sample_weight, X)
        if self.class_weight == "balanced":
            raise ValueError("class_weight='balanced' needs all rows at once; give partial_fit a dict")
        if self.class_weight:
            weight = weight * np.array([self.class_weight.get(label, 1.0) for label in y.tolist()])
        beliefs = self._first_beliefs(X.shape[1], len(known)) if first else self._current_beliefs()
        targets = [known[1]] if len(known) == 2 else known
        Phi = np.column_stack([X, np.ones(len(X))]) if self.fit_intercept else X
        try:
            beliefs = [
                incremental.update(belief, Phi, (y == label).astype(np.float64), weight, self.tol / 100)
                for belief, label in zip(beliefs, targets, strict=True)
            ]
        except LinAlgError as error:
            raise ValueError(
                f"prior_precision={self.prior_precision} is too small for rows of this size: {error}. Raise it, divide "
                "the features by their standard deviations, or give the first call more rows than there are features"
            ) from error
        self.classes_ = known
        self._beliefs = beliefs
        self._store([self._fit_of(belief) for belief in beliefs])
        self.n_samples_seen_ = beliefs[0].n_seen
        return self

    def _first_beliefs(self, n_features: int, n_classes: int) -> list[incremental.Belief]:
        precision = n_features if self.prior_precision == "auto" else self.prior_precision
        alpha = np.append(np.full(n_features, float(precision)), [FLAT] * self.fit_intercept)
        return [incremental.Belief.prior(alpha)] * (1 if n_classes == 2 else n_classes)

    def _current_beliefs(self) -> list[incremental.Belief]:
        """The state, made from the posterior of `fit` if that came last."""
        if self._beliefs is not None:
            return self._beliefs
        beliefs = []
        for fit in self._fits:
            # From the intercept at the reference to the one at zero: w₀ = level - referenceᵀ w.
            n = len(fit.mean)
            to_zero = np.eye(n)
            if fit.basis.ones:
                to_zero[-1, :-1] = -fit.basis.reference
            covariance = np.diag(fit.diagonal) + fit.sign * (fit.root.T @ fit.root)
            covariance = to_zero @ covariance @ to_zero.T
            factor, scale = factorise_balanced(covariance)
            precision = factor.solve(np.eye(n)) / scale / scale[:, None]
            logdet = factor.logdet + 2 * float(np.log(scale).sum())
            vector = precision @ (to_zero @ fit.mean)
            beliefs.append(incremental.Belief(precision, vector, covariance, logdet, self.n_samples_seen_))
        return beliefs

    def _fit_of(self, belief: incremental.Belief) -> LinearFit:
        """A belief as a fit. Precisions and bound are not kept row by row: they are nan."""
        n = len(belief.mean) - self.fit_intercept
        factor, scale = factorise_balanced(belief.covariance)
        return LinearFit(
            LinearBasis(np.arange(n), np.zeros(n), self.fit_intercept),
            belief.mean,
            factor.lower.T * scale,
            np.zeros(len(belief.mean)),
            1,
            np.arange(n),
            np.full(n, np.nan),
            np.ones(n),
            log_evidence=np.nan,
            path=np.empty(0),
            worth=np.zeros(n),
            min_gain=0.0,
        )
