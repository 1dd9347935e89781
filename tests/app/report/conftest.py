"""Studies made by hand, of all kinds that a report must do with."""

import warnings
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsebayes import ARDRegressor, DRVMRegressor, RVMClassifier, RVMRegressor, SparseLogisticRegression
from sparsebayes.app.facts import facts_of
from sparsebayes.app.study import HeldOut, Score, Study

pytest.importorskip("jinja2", reason="the report needs the extra 'app'")
pytest.importorskip("matplotlib", reason="the report needs the extra 'app'")

FOLDS = 5
QUICK = {"max_flips": 300, "n_chains": 2}
"""Short chains: the texts do not depend on how well they agree."""
HOSTILE = [
    "<script>alert(1)</script>",
    "$\\frac{1}{2}$ & <b>bold</b>",
    "'\"><img src=x onerror=alert(1)>",
    "line\nbreak\x00\x1b[31m",
    "long" * 200,
    "{{ 7 * 7 }}",
    "الطول 长度 😀",
    "_underscore",
    "</style></title>",
    "",
]


def made(model, X, y, names, task, **other):
    """A study with real fits and predictions, and a comparison with two made-up baselines and one that failed."""
    pipeline = make_pipeline(SimpleImputer(), StandardScaler(), model)
    classes = [] if task == "regression" else np.unique(y).tolist()
    n = len(y)
    fold, mean, std, p = np.empty(n, dtype=int), np.empty(n), np.empty(n), np.zeros((n, len(classes)))
    kept, error, log_score, base, freedom = [], [], [], [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = clone(pipeline).fit(X, y)
        for k, (train, test) in enumerate(KFold(FOLDS, shuffle=True, random_state=0).split(X)):
            fit = clone(pipeline).fit(X[train], y[train])
            fold[test], inner = k, fit[:-1].transform(X[test])
            if classes:
                p[test] = fit.predict_proba(X[test])
                right = p[test, np.searchsorted(classes, y[test])]
                error.append(np.mean(fit.predict(X[test]) != y[test]))
                log_score.append(-np.log(right).mean())
                base.append(np.mean(y[test] != classes[0]))
            else:
                mean[test], std[test] = fit[-1].predict(inner, return_std=True)
                freedom.append(fit[-1].degrees_of_freedom_)
                z = (y[test] - mean[test]) / std[test]
                error.append(np.sqrt(np.mean((y[test] - mean[test]) ** 2)))
                log_score.append(np.mean(z**2 / 2 + np.log(std[test])) + np.log(2 * np.pi) / 2)
                base.append(np.std(y[test]))
            kept.append(_support(fit[-1]))
    error, base = np.array(error), np.array(base)
    near = error * (1 + 0.02 * np.array([1, -1, 2, 0, 1]))
    scores = [
        _score("ours", "Our model (sparsebayes)", error, error, np.array(log_score)),
        _score("ridge", "Ridge, penalty by evidence", near, error, np.full(FOLDS, np.nan)),
        _score("mean", "The mean alone", base, error, np.full(FOLDS, np.nan)),
        Score("gp", "Gaussian process", False, *[np.nan] * 9, "would take too long: <b>12,000</b> rows"),
    ]
    regression = task == "regression"
    mean, std = (mean, std) if regression else (mean[:0], std[:0])
    held = HeldOut(np.arange(n), y, fold, mean, std, np.array(freedom), p)
    study = Study(
        source="table.csv",
        target="outcome",
        task=task,
        why="It was asked for.",
        model_name="ours",
        pipeline=fitted,
        features=list(names),
        X=X,
        y=y,
        classes=classes,
        held_out=held,
        kept_by_fold=np.array(kept, dtype=bool).reshape(FOLDS, -1),
        scores=scores,
        seconds=12.34,
        version="1.2.3",
        warnings=[],
        seed=7,
        n_folds=FOLDS,
    )
    return replace(study, **other)


def _support(model):
    if hasattr(model, "get_support"):
        return model.get_support()
    weights = getattr(model, "feature_weights_", None)
    return [] if weights is None else (np.atleast_2d(weights) != 0).any(axis=0)


def _score(model, title, error, ours, log_score):
    se = lambda values: float(np.std(values, ddof=1) / np.sqrt(len(values)))  # noqa: E731
    first = error is ours
    numbers = error.mean(), se(error), log_score.mean(), se(log_score), (error - ours).mean(), se(error - ours)
    return Score(model, title, first, *map(float, numbers), 3.4 if first else np.nan, np.nan, 0.25, "")


def rows(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.geomspace(1, 100, d)
    w = np.zeros(d)
    w[:3] = (2.0, -1.5, 1.0)[:d]
    return X, X / np.geomspace(1, 100, d) @ w + rng.standard_normal(n)


def named(d):
    return [f"feature {j}" for j in range(d)]


def _regression():
    X, y = rows(90, 8)
    X[3, 5] = np.nan
    return made(ARDRegressor(**QUICK), X, 100 + 10 * y, named(8), "regression")


def _single():
    X, y = rows(90, 8)
    return made(ARDRegressor(average=False), X, 100 + 10 * y, named(8), "regression")


def _correlated():
    """Three features are nearly the same, and nothing else matters."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 6))
    X[:, 1:3] = X[:, :1] + 0.05 * X[:, 1:3]
    return made(ARDRegressor(**QUICK), X, X[:, 0] + rng.standard_normal(90), named(6), "regression")


def _noise():
    X, _ = rows(60, 5)
    return made(ARDRegressor(**QUICK), X, np.random.default_rng(1).standard_normal(60), named(5), "regression")


def _binary():
    X, y = rows(120, 6)
    return made(SparseLogisticRegression(average=False), X, np.where(y > 0, "yes", "no"), named(6), "binary")


def _multiclass():
    X, y = rows(150, 5)
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-1, 1])]
    return made(SparseLogisticRegression(average=True, **QUICK), X, labels, named(5), "multiclass")


def _many_classes():
    rng = np.random.default_rng(0)
    y = np.arange(99) % 11
    X = np.eye(11)[y] @ rng.standard_normal((11, 3)) + 0.8 * rng.standard_normal((99, 3))
    return made(SparseLogisticRegression(average=False), X, y, named(3), "multiclass")


def _vectors():
    X, y = rows(60, 1)
    return made(RVMRegressor(), X, np.sin(3 * y), ["x"], "regression", warnings=["fold 2: raise max_iter"] * 3)


def _vectors_of_classes():
    X, y = rows(60, 2)
    return made(RVMClassifier(), X, y > 0, named(2), "binary")


def _feature_weights():
    X, y = rows(50, 3)
    return made(DRVMRegressor(), X, y, named(3), "regression")


def _nothing():
    X, y = rows(40, 3)
    return made(ARDRegressor(min_gain=1e6), X, y, named(3), "regression")


def _wide():
    X, y = rows(40, 2000)
    return made(ARDRegressor(**QUICK), X, y, [f"gene-{j:04d}-" + "abc" * 60 for j in range(2000)], "regression")


def _all_kept():
    X, y = rows(60, 400)
    return made(SparseLogisticRegression(prior="ridge"), X, y > 0, named(400), "binary")


def only(study, there):
    """A study whose other folds have failed."""
    held, rows = study.held_out, np.isin(study.held_out.fold, there)
    parts = {key: getattr(held, key)[rows] for key in ("rows", "truth", "fold", "mean", "std", "probabilities")}
    return replace(study, held_out=HeldOut(**parts, freedom=held.freedom), kept_by_fold=study.kept_by_fold[there])


def _fold_missing():
    return only(_regression(), [0, 1, 3, 4])


def _one_fold():
    study = only(_regression(), [0])
    unknown = {"error_se": np.nan, "log_score_se": np.nan, "difference_se": np.nan}
    return replace(study, scores=[replace(score, **unknown) for score in study.scores])


def _constant():
    study = _nothing()
    same = np.full(len(study.y), 5.0)
    held = replace(study.held_out, truth=same, mean=same, std=np.zeros(len(same)))
    return replace(study, y=same, held_out=held, scores=study.scores[:1])


def _softmax():
    X, y = rows(60, 3)
    model = SparseLogisticRegression(multi_class="softmax")
    return made(model, X, np.digitize(y, [-1, 1]), named(3), "multiclass")


def _vectors_of_three_classes():
    X, y = rows(60, 2)
    return made(RVMClassifier(), X, np.digitize(y, [-1, 1]), named(2), "multiclass")


def _many_rows():
    X, y = rows(20_000, 4)
    return made(ARDRegressor(**QUICK), X, y, named(4), "regression")


def _hostile():
    X, y = rows(120, len(HOSTILE))
    labels = np.array([HOSTILE[0], HOSTILE[1], HOSTILE[3], "z"])[np.digitize(y, [-1.5, 0, 1.5])]
    study = made(SparseLogisticRegression(average=True, **QUICK), X, labels, HOSTILE, "multiclass")
    score = replace(study.scores[1], title=HOSTILE[2] + "x" * 500)
    return replace(
        study,
        source=HOSTILE[2] + "/" * 400,
        target=HOSTILE[0],
        why=HOSTILE[8] + HOSTILE[5],
        version=HOSTILE[2],
        warnings=[f"{HOSTILE[2]} {k} " + "w" * 1000 for k in range(300)],
        scores=[study.scores[0], score, *study.scores[2:]],
    )


STUDIES = {
    "regression": _regression,
    "single": _single,
    "correlated": _correlated,
    "noise": _noise,
    "binary": _binary,
    "multiclass": _multiclass,
    "many classes": _many_classes,
    "vectors": _vectors,
    "vectors of classes": _vectors_of_classes,
    "feature weights": _feature_weights,
    "nothing": _nothing,
    "wide": _wide,
    "all kept": _all_kept,
    "fold missing": _fold_missing,
    "one fold": _one_fold,
    "constant": _constant,
    "softmax": _softmax,
    "vectors of three classes": _vectors_of_three_classes,
    "many rows": _many_rows,
    "hostile": _hostile,
}


@cache
def study_called(name):
    return STUDIES[name]()


@cache
def page_of(name):
    from sparsebayes.app.report.page import html

    return html(facts_of(study_called(name)))


@pytest.fixture(params=STUDIES)
def any_name(request):
    """Each of the studies, by name."""
    return request.param


@pytest.fixture
def study():
    """A study by its name; tests leave it as it is."""
    return study_called


@pytest.fixture
def page():
    """The report of a study by its name."""
    return page_of
