"""The project's averaged and single models and their rivals, as functions (X, y) → `Answer`.

Rivals get standardised columns and targets: most of them depend on the units. What a rival "keeps" are its nonzero
weights; ours claim the features of `get_support`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from scipy.stats import norm
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import ARDRegression, BayesianRidge, ElasticNetCV, LassoCV, LogisticRegressionCV, RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from sparsebayes import ARDRegressor, SparseLogisticRegression

COVERAGE = 0.9
"""Of all intervals."""
N_DRAWS = 2_000
"""Posterior draws for the interval of a weight: its ends are the 100th smallest and largest, known to 10 %."""


@dataclass
class Answer:
    """What a fitted model says; None where it says nothing. Intervals have two columns."""

    predict: Callable
    """Of fresh rows: the mean, or the probability of class 1."""
    kept: np.ndarray | None = None
    """Indices of the features that it claims to matter."""
    interval: Callable | None = None
    """Of fresh observations."""
    weight_interval: Callable | None = None
    """Of all weights, in the units of the data."""
    probability: np.ndarray | None = None
    """That each feature is in the model."""
    sets: list | None = None
    """Credible sets, each with `features`, `probability` and `purity`."""
    n_vectors: int | None = None
    """Rows of the training data that predictions need."""


# --- Ours ---


def _ours(model, predict, interval=None):
    """The answer of a fitted linear model of this project."""

    def weight_interval():
        draws = model.sample_posterior(N_DRAWS, random_state=0)[0].reshape(N_DRAWS, -1)
        return np.quantile(draws, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2], axis=0).T

    answer = Answer(predict, model.get_support(indices=True), interval, weight_interval)
    if hasattr(model, "inclusion_probability_"):
        answer.probability = np.ravel(model.inclusion_probability_)
        answer.sets = model.credible_sets_
    return answer


def our_regressor(**parameters):
    def fit(X, y):
        model = ARDRegressor(**parameters).fit(X, y)
        return _ours(model, model.predict, lambda Z: model.predict_interval(Z, coverage=COVERAGE))

    return fit


def our_classifier(**parameters):
    def fit(X, y):
        model = SparseLogisticRegression(**parameters).fit(X, y)
        return _ours(model, lambda Z: model.predict_proba(Z)[:, 1])

    return fit


# --- Rivals ---


class Units:
    """Standardises columns and target, and takes predictions back to the units of the data."""

    def __init__(self, X, y):
        self.columns = StandardScaler().fit(X)
        self.centre, self.scale = y.mean(axis=0), y.std(axis=0)

    def fit(self, model, X, y):
        return model.fit(self.columns.transform(X), (y - self.centre) / self.scale)

    def back(self, predict):
        """The predictions of a fitted model for rows in the units of the data."""
        return lambda Z: self.centre + self.scale * predict(self.columns.transform(Z))


def selector(make):
    """A linear model that sets weights to zero."""

    def fit(X, y):
        units = Units(X, y)
        model = units.fit(make(), X, y)
        coef = getattr(model, "best_estimator_", model).coef_
        return Answer(units.back(model.predict), np.flatnonzero(coef))

    return fit


def ridge(X, y):
    """Ridge regression, its penalty by leave-one-out error; it selects nothing."""
    answer = selector(lambda: RidgeCV(alphas=np.geomspace(1e-2, 1e5, 36)))(X, y)
    answer.kept = None
    return answer


def bayesian(make, selects):
    """A Bayesian linear model of scikit-learn, with the normal quantiles of its own standard deviations."""
    ends = norm.ppf([[(1 - COVERAGE) / 2, (1 + COVERAGE) / 2]])

    def fit(X, y):
        units = Units(X, y)
        model = units.fit(make(), X, y)

        def interval(Z):
            mean, std = model.predict(Z, return_std=True)
            return mean[:, None] + std[:, None] * ends

        def weight_interval():
            std = np.zeros(X.shape[1])
            inside = model.lambda_ < model.threshold_lambda if selects else slice(None)
            std[inside] = np.sqrt(np.diag(model.sigma_))
            unit = units.scale / units.columns.scale_
            return unit[:, None] * (model.coef_[:, None] + std[:, None] * ends)

        kept = np.flatnonzero(model.coef_) if selects else None
        return Answer(units.back(model.predict), kept, units.back(interval), weight_interval)

    return fit


class Concave(RegressorMixin, BaseEstimator):
    """Least squares with a penalty of skglm, MCP or SCAD.

    `ratio` is the penalty as a share of the least one that sets all weights to zero.
    """

    def __init__(self, penalty="MCP", ratio=0.1):
        self.penalty = penalty
        self.ratio = ratio

    def fit(self, X, y):
        from skglm import GeneralizedLinearEstimator, datafits, penalties, solvers

        largest = np.abs((X - X.mean(axis=0)).T @ (y - y.mean())).max() / len(y)
        # The shapes that the authors of the two penalties recommend.
        make, shape = {"MCP": (penalties.MCPenalty, 3.0), "SCAD": (penalties.SCAD, 3.7)}[self.penalty]
        penalty = make(self.ratio * largest, shape)
        solver = solvers.AndersonCD(fit_intercept=True)
        self.model_ = GeneralizedLinearEstimator(datafits.Quadratic(), penalty, solver).fit(X, y)
        self.coef_ = np.ravel(self.model_.coef_)
        return self

    def predict(self, X):
        return self.model_.predict(X)


def concave_cv(penalty):
    return GridSearchCV(Concave(penalty), {"ratio": np.geomspace(1, 1e-2, 30)}, cv=5)


def without_constants(fit):
    """abess refuses constant columns: the same method on the others."""

    def fit_others(X, y):
        columns = np.flatnonzero(np.ptp(X, axis=0) > 0)
        answer = fit(X[:, columns], y)
        return Answer(lambda Z: answer.predict(Z[:, columns]), columns[answer.kept])

    return fit_others


def best_subset(**parameters):
    """Linear regression of abess; a third as many features as rows at most, because its default misses dense truths."""

    def make(X, y):
        from abess import LinearRegression

        sizes = range(min(X.shape[1], len(y) // 3) + 1)
        return LinearRegression(support_size=sizes, **parameters)

    return without_constants(lambda X, y: selector(lambda: make(X, y))(X, y))


@without_constants
def best_subset_logistic(X, y):
    """Logistic regression of abess with its default sizes: GIC prefers larger models that separate the classes."""
    from abess import LogisticRegression

    scaler = StandardScaler().fit(X)
    model = LogisticRegression(ic_type="gic").fit(scaler.transform(X), y)
    return Answer(lambda Z: model.predict_proba(scaler.transform(Z))[:, 1], np.flatnonzero(model.coef_))


def penalised_logistic(l1_ratio, solver, **others):
    """scikit-learn's logistic regression, its penalty by 5-fold cross-validation of the log loss."""
    parameters = {"l1_ratios": (l1_ratio,), "cv": 5, "scoring": "neg_log_loss", "use_legacy_attributes": False}
    return LogisticRegressionCV(solver=solver, **parameters, **others)


def logistic_cv(l1_ratio, solver):
    """The same as a contender for two classes."""

    def fit(X, y):
        scaler = StandardScaler().fit(X)
        model = penalised_logistic(l1_ratio, solver, max_iter=1_000).fit(scaler.transform(X), y)
        kept = np.flatnonzero(model.coef_) if l1_ratio else None
        return Answer(lambda Z: model.predict_proba(scaler.transform(Z))[:, 1], kept)

    return fit


AVERAGED, SINGLE = "averaged", "single model"
REGRESSORS = {
    AVERAGED: our_regressor(),
    SINGLE: our_regressor(average=False),
    "LassoCV": selector(lambda: LassoCV(cv=5)),
    "ElasticNetCV": selector(lambda: ElasticNetCV(cv=5, l1_ratio=[0.1, 0.5, 0.9])),
    "RidgeCV": ridge,
    "MCP, CV": selector(lambda: concave_cv("MCP")),
    "SCAD, CV": selector(lambda: concave_cv("SCAD")),
    "abess, GIC": best_subset(ic_type="gic"),
    "abess, CV": best_subset(cv=5),
    "scikit-learn ARD": bayesian(ARDRegression, selects=True),
    "BayesianRidge": bayesian(BayesianRidge, selects=False),
}
CLASSIFIERS = {
    AVERAGED: our_classifier(),
    SINGLE: our_classifier(average=False),
    "L1, CV": logistic_cv(1, "liblinear"),
    "L2, CV": logistic_cv(0, "lbfgs"),
    "abess, GIC": best_subset_logistic,
}
PACKAGES = {
    "MCP": "skglm",
    "SCAD": "skglm",
    "abess": "abess",
    "millipede": "millipede",
    "pysusie": "pysusie",
    "celer": "celer",
    "fastrvm": "fastrvm",
    "sklearn-rvm": "sklearn_rvm",
    "gpytorch GP": "gpytorch",
    "lightgbm": "lightgbm",
    "skglm": "skglm",
}
"""The package that a method needs, by the part of its name before the comma."""


def available(methods, wanted=None):
    """The methods asked for whose package is installed; a note on each that is left out."""
    unknown = set(wanted or ()) - set(methods)
    if unknown:
        raise SystemExit(f"unknown methods: {', '.join(sorted(unknown))}. Known: {', '.join(methods)}")
    chosen = {}
    for name in wanted or methods:
        package = PACKAGES.get(name.split(",")[0])
        if package and find_spec(package) is None:
            print(f"{package} is not installed: {name} is left out")
        else:
            chosen[name] = methods[name]
    return chosen
