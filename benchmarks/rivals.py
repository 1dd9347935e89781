"""The methods of the peer table, for each kind of data: functions (X, y) → `Answer`, ours first.

Rivals get standardised columns, and what their users would choose: parameters by cross-validation, or by likelihood
where that is their way. Kernel methods are in kernel_rivals.py.
"""

from functools import partial

import numpy as np
from contenders import CLASSIFIERS, REGRESSORS, Answer, Units, penalised_logistic, selector
from kernel_rivals import BOUNDARY, CURVE, TREES, em_machine, fast_machine, ours, trees
from samplers import millipede, susie
from sklearn.linear_model import LassoCV, MultiTaskLassoCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from sparsebayes import ARDRegressor, RVMClassifier, SparseLogisticRegression

# --- Linear models ---


PATH = {"alpha": np.geomspace(1, 1e-2, 30)}
"""Penalties in standard units, where one is about the largest of use."""


def celer_lasso():
    """Its own `LassoCV` does not take scikit-learn's present arguments."""
    from celer import Lasso

    return GridSearchCV(Lasso(), PATH, cv=5, error_score="raise")


LINEAR = {
    name: REGRESSORS[name]
    for name in (
        "averaged",
        "single model",
        "LassoCV",
        "ElasticNetCV",
        "RidgeCV",
        "MCP, CV",
        "abess, GIC",
        "abess, CV",
        "scikit-learn ARD",
        "BayesianRidge",
    )
} | {"celer, CV": selector(celer_lasso), "millipede": millipede, "pysusie": susie, "lightgbm": trees("LGBMRegressor")}


def celer_logistic(X, y):
    """celer's L1 logistic regression, its penalty by 5-fold cross-validation of the log loss."""
    from celer import LogisticRegression

    scaler = StandardScaler().fit(X)
    grid = {"C": np.geomspace(1e-3, 1e1, 10)}  # fewer rows than 1/C leave nothing, more separate the classes
    model = GridSearchCV(LogisticRegression(solver="celer-pn"), grid, cv=5, scoring="neg_log_loss")
    model.fit(scaler.transform(X), y)
    kept = np.flatnonzero(model.best_estimator_.coef_)
    return Answer(lambda Z: model.predict_proba(scaler.transform(Z))[:, 1], kept)


LOGISTIC = CLASSIFIERS | {"celer, CV": celer_logistic, "lightgbm": trees("LGBMClassifier")}


def multinomial(l1_ratio, solver):
    """scikit-learn's logistic regression of several classes, penalty by 5-fold cross-validation of the log loss."""

    def fit(X, y):
        scaler = StandardScaler().fit(X)
        # Five penalties and 300 steps, because each fit of all classes takes long.
        model = penalised_logistic(l1_ratio, solver, Cs=5, max_iter=300).fit(scaler.transform(X), y)
        kept = np.flatnonzero(model.coef_.any(axis=0)) if l1_ratio else None
        return Answer(lambda Z: model.predict_proba(scaler.transform(Z)), kept)

    return fit


def subset_multinomial(X, y):
    """abess with one-hot classes."""
    from abess import MultinomialRegression

    columns = np.flatnonzero(np.ptp(X, axis=0) > 0)  # abess refuses constant columns
    scaler = StandardScaler().fit(X[:, columns])
    hot = (y[:, None] == np.unique(y)).astype(int)
    model = MultinomialRegression(ic_type="gic").fit(scaler.transform(X[:, columns]), hot)
    kept = columns[np.flatnonzero(np.any(model.coef_, axis=1))]
    return Answer(lambda Z: model.predict_proba(scaler.transform(Z[:, columns])), kept)


MULTICLASS = {
    "averaged": ours(SparseLogisticRegression),
    "single model": ours(partial(SparseLogisticRegression, average=False)),
    "RVMClassifier": ours(RVMClassifier),
    "L1, CV": multinomial(1, "saga"),
    "L2, CV": multinomial(0, "lbfgs"),
    "abess, GIC": subset_multinomial,
    "fastrvm": fast_machine("RVC"),
    "sklearn-rvm": em_machine("EMRVC"),
    "SVC, CV": BOUNDARY["SVC, CV"],
    "lightgbm": trees("LGBMClassifier"),
}


# --- Several outputs, sparse matrices ---


def joint(make):
    """A model of others that selects features for all outputs together."""

    def fit(X, Y):
        units = Units(X, Y)
        model = units.fit(make(), X, Y)
        coef = np.asarray(getattr(model, "best_estimator_", model).coef_)
        coef = coef.T if coef.shape[0] == Y.shape[1] else coef
        return Answer(units.back(model.predict), np.flatnonzero(coef.any(axis=1)))

    return fit


def our_outputs(**parameters):
    def fit(X, Y):
        model = ARDRegressor(**parameters).fit(X, Y)
        return Answer(model.predict, np.unique(np.concatenate(model.active_)))

    return fit


def celer_outputs():
    from celer import MultiTaskLasso

    return GridSearchCV(MultiTaskLasso(), PATH, cv=5, error_score="raise")


def skglm_outputs():
    from skglm import MultiTaskLasso

    return GridSearchCV(MultiTaskLasso(), PATH, cv=5, error_score="raise")


def subset_outputs():
    from abess import MultiTaskRegression

    return MultiTaskRegression(ic_type="gic")


OUTPUTS = {
    "joint": our_outputs(multi_output="joint"),
    "averaged": our_outputs(),
    "single model": our_outputs(average=False),
    "MultiTaskLassoCV": joint(partial(MultiTaskLassoCV, cv=5)),
    "celer, CV": joint(celer_outputs),
    "skglm, CV": joint(skglm_outputs),
    "abess, GIC": joint(subset_outputs),
}


def stored(make):
    """A model of others on a sparse matrix, whose columns are scaled but not centred."""

    def fit(X, y):
        model = make_pipeline(MaxAbsScaler(), make()).fit(X, y)
        return Answer(model.predict, np.flatnonzero(getattr(model[-1], "best_estimator_", model[-1]).coef_))

    return fit


def stored_lasso(X, y):
    """celer on penalties below the least one that sets all weights to zero; rare columns have little variance."""
    from celer import Lasso

    largest = np.abs(X.T @ (y - y.mean())).max() / len(y)
    penalties = {"alpha": largest * PATH["alpha"]}
    return stored(lambda: GridSearchCV(Lasso(), penalties, cv=5, error_score="raise"))(X, y)


def stored_trees(X, y):
    from lightgbm import LGBMRegressor

    return Answer(LGBMRegressor(**TREES).fit(X, y).predict)


def stored_subset():
    from abess import LinearRegression

    return LinearRegression(ic_type="gic")


SPARSE = {
    "averaged": ours(ARDRegressor),
    "single model": ours(partial(ARDRegressor, average=False)),
    "LassoCV": stored(partial(LassoCV, cv=5)),
    "celer, CV": stored_lasso,
    "abess, GIC": stored(stored_subset),
    "lightgbm": stored_trees,
}

KINDS = {
    "curve": CURVE,
    "boundary": BOUNDARY,
    "linear": LINEAR,
    "logistic": LOGISTIC,
    "multi-class": MULTICLASS,
    "outputs": OUTPUTS,
    "sparse": SPARSE,
}
"""Methods by kind; the first is the one whose time is the unit."""
OURS = {
    "averaged",
    "single model",
    "joint",
    *(name for kind in (CURVE, BOUNDARY) for name in kind if name.split(",")[0].endswith(("Regressor", "Classifier"))),
}
"""Names of the methods of this project."""
