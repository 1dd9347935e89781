"""Which features a model keeps again and again, on folds or on random halves of the rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.feature_selection import SelectorMixin
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, _routing_enabled, process_routing
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_method_params, check_is_fitted, indexable

from sparsebayes.core.types import AnyArray, BoolArray, FloatArray, IntArray
from sparsebayes.estimators._base import as_tasks, fit_context, watched, whole_fit
from sparsebayes.estimators._callbacks import CallbackSupportMixin
from sparsebayes.estimators._progress import shown
from sparsebayes.estimators._validation import validate_data

N_RESAMPLES = 100
"""Fifty pairs of halves, as Shah & Samworth recommend."""


@dataclass(frozen=True)
class Selections:
    """What an estimator kept in each repetition."""

    selected: BoolArray
    """(n_repetitions, n_features)"""
    weight_mean: FloatArray
    """Mean of the weights over the repetitions, a feature that was not kept counting as zero."""
    weight_std: FloatArray

    @property
    def frequency(self) -> FloatArray:
        """Share of the repetitions that kept each feature."""
        return np.asarray(self.selected.sum(axis=0) / len(self.selected))


def selection_frequency(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    cv: Any = None,
    n_resamples: int = N_RESAMPLES,
    groups: Any = None,
    fit_params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    verbose: int = 0,
) -> Selections:
    """Fit an estimator to the training parts of folds, or to random halves of the rows, and count what it keeps.

    Parameters
    ----------
    estimator : estimator
        One that keeps features: with `get_support`, or with weights per input (`feature_weights_` or `coef_`) of which
        some are zero. A pipeline is asked by its last step, whose inputs must still be the features of X.
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    cv : int, splitter or iterable, default=None
        As in scikit-learn: the estimator is fitted to the training part of each fold. None is random halves.
    n_resamples : int, default=100
        Number of random halves, without `cv`. They come in complementary pairs: a random half, and the rest. For
        classifiers each half has the same share of every class. Must be even.
    groups : array-like of shape (n_samples,), optional
        Rows of one group (subject, batch, plate) are never torn apart; also handed to `cv`.
    fit_params : dict, optional
        More arguments of the estimator's `fit`; of those with one entry per row, such as `sample_weight`, it gets the
        entries of its rows.
    n_jobs : int, default=None
        How many repetitions are fitted at the same time.
    random_state : int, RandomState or None, default=None
        Which rows the halves hold.
    verbose : int, default=0
        Show a progress bar, in terminals and notebooks.

    Returns
    -------
    Selections
        With the fields `frequency`, `selected` (n_repetitions × n_features), `weight_mean` and `weight_std`.
    """
    X, y, groups = indexable(X, y, groups)
    parts = _parts(estimator, X, y, groups, cv, n_resamples, random_state)
    fit = delayed(_fitted_weights)
    jobs = (fit(estimator, X, y, rows, fit_params or {}) for rows in parts)
    results = Parallel(n_jobs=n_jobs, return_as="generator")(jobs)
    told = as_tasks(results, len(parts), "repetition")
    return _gathered(shown(told, len(parts), "selecting", verbose))


def _parts(estimator: Any, X: Any, y: Any, groups: Any, cv: Any, n_resamples: int, random_state: Any) -> list[IntArray]:
    """The rows of each repetition."""
    classes = is_classifier(estimator)
    if classes:
        check_classification_targets(y)
    if cv is not None:
        splitter = check_cv(cv, y, classifier=classes)
        return [train for train, _ in splitter.split(X, y, groups)]
    if n_resamples % 2:
        raise ValueError(f"n_resamples={n_resamples} must be even: the halves come in complementary pairs")
    if classes:
        halves = StratifiedKFold if groups is None else StratifiedGroupKFold
    else:
        halves = KFold if groups is None else GroupKFold
    rng = check_random_state(random_state)
    seeds = rng.randint(np.iinfo(np.int32).max, size=n_resamples // 2)
    # Two folds of shuffled rows are a pair of complementary halves.
    splitters = [halves(2, shuffle=True, random_state=int(seed)) for seed in seeds]
    return [train for splitter in splitters for train, _ in splitter.split(X, y, groups)]


def _fitted_weights(
    estimator: Any, X: Any, y: Any, rows: IntArray, fit_params: dict[str, Any]
) -> tuple[BoolArray, FloatArray]:
    """Which features a fit to these rows keeps, and their weights."""
    params = _check_method_params(X, fit_params, indices=rows)
    model = clone(estimator).fit(_safe_indexing(X, rows), _safe_indexing(y, rows), **params)
    last = model[-1] if isinstance(model, Pipeline) else model
    if last.n_features_in_ != model.n_features_in_:
        raise ValueError(
            f"the last step of the pipeline sees {last.n_features_in_} inputs, but X has {model.n_features_in_} "
            "features: the features that it keeps cannot be matched to those of X. Transform X first."
        )
    weights = getattr(last, "feature_weights_", None)
    weights = getattr(last, "coef_", None) if weights is None else weights
    if weights is None:
        raise TypeError(
            f"{type(last).__name__} keeps no features: it has neither 'feature_weights_' nor 'coef_'. Choose a linear "
            "model, or a kernel model that learns feature weights."
        )
    weights = np.asarray(weights, dtype=np.float64)
    if hasattr(last, "get_support"):
        return np.asarray(last.get_support()), weights
    return np.asarray((np.atleast_2d(weights) != 0).any(axis=0)), weights


def _gathered(results: Iterable[tuple[BoolArray, FloatArray]]) -> Selections:
    """Selections with mean and standard deviation of the weights, added up as they come (Welford)."""
    selected: list[BoolArray] = []
    mean, square = np.zeros(()), np.zeros(())
    for support, weights in results:
        if selected and weights.shape != mean.shape:
            raise ValueError(
                f"the weights have shape {weights.shape} after {mean.shape} before: a class is missing from some of "
                "the repetitions. Give every class at least two rows (and groups), or choose folds that hold all."
            )
        selected.append(support)
        step = weights - mean
        mean = mean + step / len(selected)
        square = square + step * (weights - mean)
    return Selections(np.array(selected), mean, np.sqrt(square / len(selected)))


class StabilitySelector(CallbackSupportMixin, SelectorMixin, MetaEstimatorMixin, BaseEstimator):
    """Select the features that an estimator keeps on most of many random halves of the rows, or on most folds.

    A single fit says what these rows speak for; how often a feature is kept when the rows change says how much of that
    is chance (Meinshausen & Bühlmann 2010). The halves come in complementary pairs (Shah & Samworth 2013).

    Parameters
    ----------
    estimator : estimator
        One that keeps features: with `get_support`, or with weights per input (`feature_weights_` or `coef_`) of which
        some are zero. A pipeline is asked by its last step, whose inputs must still be the features of X.
    cv : int, splitter or iterable, default=None
        As in scikit-learn: the estimator is fitted to the training part of each fold. None is random halves.
    n_resamples : int, default=100
        Number of random halves, without `cv`; even. For classifiers each half has the same share of every class.
    threshold : float, default=0.6
        Share of the repetitions in which a feature must be kept to be selected. Results differ little between 0.6 and
        0.9 (Meinshausen & Bühlmann); the lower end loses least where the estimator itself keeps few false features.
    n_jobs : int, default=None
        How many repetitions are fitted at the same time.
    random_state : int, RandomState or None, default=None
        Which rows the halves hold. (A `random_state` of the estimator is its own.)
    verbose : int, default=0
        Show a progress bar, in terminals and notebooks.

    Attributes
    ----------
    selection_frequency_ : ndarray of shape (n_features,)
        Share of the repetitions that kept each feature.
    selections_ : ndarray of bool, shape (n_repetitions, n_features)
        What each repetition kept.
    weight_mean_, weight_std_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Mean and standard deviation of the weights over the repetitions; a feature that was not kept counts as zero.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    References
    ----------
    N. Meinshausen, P. Bühlmann. Stability selection. *Journal of the Royal Statistical Society B* 72:417–473, 2010.

    R. D. Shah, R. J. Samworth. Variable selection with error control: another look at stability selection. *Journal of
    the Royal Statistical Society B* 75:55–80, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsebayes import ARDRegressor, StabilitySelector
    >>> rng = np.random.default_rng(1)
    >>> X = rng.standard_normal((100, 50))
    >>> y = 2 * X[:, 3] - X[:, 7] + 0.5 * rng.standard_normal(100)
    >>> selector = StabilitySelector(ARDRegressor(average=False), n_resamples=20, random_state=0).fit(X, y)
    >>> selector.get_support(indices=True)
    array([3, 7])
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "estimator": [HasMethods(["fit"])],
        "cv": ["cv_object"],
        "n_resamples": [Interval(Integral, 2, None, closed="left")],
        "threshold": [Interval(Real, 0, 1, closed="right")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        cv: Any = None,
        n_resamples: int = N_RESAMPLES,
        threshold: float = 0.6,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.cv = cv
        self.n_resamples = n_resamples
        self.threshold = threshold
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @whole_fit
    @fit_context(prefer_skip_nested_validation=False)
    @watched
    def fit(self, X: Any, y: Any, groups: Any = None, **fit_params: Any) -> Self:
        """Fit the estimator again and again, and count what it keeps.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        groups : array-like of shape (n_samples,), optional
            Rows of one group are never torn apart; also handed to `cv`.
        **fit_params
            More arguments of the estimator's `fit`; of those with one entry per row, such as `sample_weight`, it gets
            the entries of its rows.
        """
        validate_data(
            self, X, y, accept_sparse=True, dtype=None, ensure_all_finite=False, multi_output=True, ensure_min_samples=4
        )
        if fit_params and _routing_enabled():
            fit_params = process_routing(self, "fit", **fit_params).estimator.fit
        found = selection_frequency(
            self.estimator,
            X,
            y,
            cv=self.cv,
            n_resamples=self.n_resamples,
            groups=groups,
            fit_params=fit_params,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
            verbose=self.verbose,
        )
        self.selection_frequency_ = found.frequency
        self.selections_ = found.selected
        self.weight_mean_, self.weight_std_ = found.weight_mean, found.weight_std
        return self

    def _get_support_mask(self) -> AnyArray:
        check_is_fitted(self)
        return np.asarray(self.selection_frequency_ >= self.threshold)

    def expected_false_selections(self) -> float:
        """Bound on how many of the selected features are there by chance, in expectation.

        "By chance" are features that the estimator keeps, on a random half of the rows, less often than a feature
        drawn at random would be: with probability below q/p, where q is the mean number that it keeps and p the number
        of features. If the rows are independent draws, at most q²/((2 threshold - 1) p) of them are selected on
        average, whatever the estimator (Shah & Samworth 2013, theorem 1). q is estimated by its mean over the halves.
        """
        check_is_fitted(self)
        if self.cv is not None:
            raise ValueError("the bound holds for random halves of the rows: leave cv at None")
        if self.threshold <= 0.5:
            raise ValueError(f"the bound holds for a threshold above 0.5, not threshold={self.threshold}")
        q, p = self.selections_.sum(axis=1).mean(), self.n_features_in_
        return float(q**2 / ((2 * self.threshold - 1) * p))

    def get_metadata_routing(self) -> MetadataRouter:
        """How metadata reach the estimator's `fit` (scikit-learn's metadata routing)."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.target_tags.required = True
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags
