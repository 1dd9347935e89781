"""Folds, scores and the choice of a model: each number by a second road."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats
from sklearn.dummy import DummyClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

from sparsebayes import ARDRegressor
from sparsebayes.app import models
from sparsebayes.app.errors import DataError, UsageError
from sparsebayes.app.load_data import Request, prepared
from sparsebayes.app.models import MODELS, Size, named, pipeline, suitable
from sparsebayes.app.run_study import Settings, compared, studied
from sparsebayes.app.scoring import better, paired
from sparsebayes.app.validation import FoldResult, Outcome, make_folds

TASKS = ("regression", "binary", "multiclass")


def table(tmp_path, columns, name="table.parquet"):
    pl.DataFrame(columns).write_parquet(tmp_path / name)
    return str(tmp_path / name)


def linear_columns(rng, n=60, unit=1.0):
    X = unit * rng.standard_normal((n, 4))
    return {f"x{j}": X[:, j] for j in range(4)} | {"y": (2 * X[:, 0] - X[:, 1]) / unit + 0.5 * rng.standard_normal(n)}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A regression with groups and a hole in a column."""
    rng = np.random.default_rng(0)
    columns = linear_columns(rng) | {"subject": np.repeat(np.arange(20), 3)}
    columns["x3"][5] = np.nan
    data = table(tmp_path_factory.mktemp("study"), columns)
    problem = prepared(Request(data, "y", group="subject", impute="median"))
    return problem, studied(problem, "ard", Settings("median"))


# --- folds ---


def test_folds_share_out_the_rows_and_the_classes():
    y = np.repeat(["a", "b", "c"], [50, 30, 20])
    folds, note = make_folds(y, True, None, 5, seed=0)
    assert note == ""
    np.testing.assert_array_equal(np.sort(np.concatenate([test for _, test in folds])), np.arange(100))
    for train, test in folds:
        assert not set(train) & set(test)
        assert np.unique(y[test], return_counts=True)[1].tolist() == [10, 6, 4]


@pytest.mark.parametrize("classes", [True, False])
def test_folds_never_tear_a_group_apart(classes, rng):
    groups = rng.integers(0, 12, 90)
    folds, _ = make_folds(np.arange(90) % 2 if classes else rng.standard_normal(90), classes, groups, 4, seed=1)
    for train, test in folds:
        assert not set(groups[train]) & set(groups[test])


def test_fewer_folds_where_there_is_less_to_share_out(rng):
    folds, note = make_folds(np.array([0] * 30 + [1] * 3), True, None, 5, seed=0)
    assert len(folds) == 3
    assert "--cv 5 was reduced to 3, the number of rows in the smallest class" in note
    assert len(make_folds(rng.standard_normal(9), False, np.repeat([1, 2, 3], 3), 5, seed=0)[0]) == 3
    with pytest.raises(DataError, match="at least 2 groups"):
        make_folds(rng.standard_normal(9), False, np.ones(9), 5, seed=0)
    with pytest.raises(DataError, match="a class occurs in only one group"):
        make_folds(np.repeat([0, 1], 6), True, np.repeat([1, 2, 3, 4], 3) // 3, 2, seed=0)


def test_the_group_column_is_no_feature_and_rules_the_folds(study):
    problem, found = study
    assert found.features == ["x0", "x1", "x2", "x3"]
    subject = np.repeat(np.arange(20), 3)
    for train, test in problem.folds:
        assert not set(subject[train]) & set(subject[test])


def test_a_column_that_is_empty_in_a_fold_is_no_accident(tmp_path, rng):
    columns = linear_columns(rng, 30)
    columns["x3"][1:] = np.nan
    problem = prepared(Request(table(tmp_path, columns), "y", cv=3, impute="mean"))
    found = studied(problem, "ard", Settings("mean"))
    assert found.kept_by_fold.shape == (3, 4)
    assert not found.kept_by_fold[:, 3].any()


# --- scores ---


def test_held_out_predictions_are_those_of_fits_that_have_not_seen_the_row(study):
    problem, found = study
    held = found.held_out
    np.testing.assert_array_equal(held.rows, np.arange(60))
    np.testing.assert_array_equal(held.truth, problem.y)
    for k, (train, test) in enumerate(problem.folds):
        np.testing.assert_array_equal(np.flatnonzero(held.fold == k), np.sort(test))
        X = np.where(np.isnan(problem.X), np.nanmedian(problem.X[train], axis=0), problem.X)
        model = ARDRegressor().fit(X[train], problem.y[train])
        mean, std = model.predict(X[test], return_std=True)
        np.testing.assert_allclose(held.mean[test], mean, rtol=1e-10)
        np.testing.assert_allclose(held.std[test], std, rtol=1e-10)
        np.testing.assert_array_equal(found.kept_by_fold[k], model.get_support())


def test_scores_follow_from_the_held_out_predictions(study):
    problem, found = study
    held, first, last = found.held_out, found.scores[0], found.scores[-1]
    folds = range(found.n_folds)
    errors = [np.sqrt(np.mean((held.truth - held.mean)[held.fold == k] ** 2)) for k in folds]
    logs = [-stats.norm.logpdf(held.truth, held.mean, held.std)[held.fold == k].mean() for k in folds]
    assert first.error == pytest.approx(np.mean(errors))
    assert first.error_se == pytest.approx(stats.sem(errors))
    assert first.log_score == pytest.approx(np.mean(logs))
    assert first.difference == 0
    y = problem.y
    alone = [np.sqrt(np.mean((y[test] - y[train].mean()) ** 2)) for train, test in problem.folds]
    assert (last.model, last.kept_features) == ("mean", 0)
    assert last.error == pytest.approx(np.mean(alone))
    assert last.difference == pytest.approx(np.mean(alone) - first.error)


def test_paired_differences_agree_with_a_paired_t_test(rng):
    """The plain standard error is in the t statistic; the correction turns 1/k into 1/k + 1/(k - 1)."""
    a, b = rng.standard_normal((2, 8))
    difference, error = paired(a, b)
    by_t_test = difference / stats.ttest_rel(a, b).statistic
    assert difference == pytest.approx((a - b).mean())
    assert error == pytest.approx(by_t_test * np.sqrt(1 + 8 / 7))
    assert np.isnan(paired(a, b[:5])).all()


def test_classes_are_scored_as_scikit_learn_does(tmp_path, rng):
    columns = linear_columns(rng, 90)
    columns["y"] = np.array(["low", "middle", "high"])[np.digitize(columns["y"], [-1, 1])]
    problem = prepared(Request(table(tmp_path, columns), "y", cv=3))
    found = studied(problem, "slr", Settings(given={"average": False}))
    held = found.held_out
    assert found.classes == ["high", "low", "middle"]
    losses = [
        log_loss(held.truth[held.fold == k], held.probabilities[held.fold == k], labels=found.classes) for k in range(3)
    ]
    assert found.scores[0].log_score == pytest.approx(np.mean(losses))
    right = np.array(found.classes)[held.probabilities.argmax(axis=1)] == held.truth
    assert found.scores[0].error == pytest.approx(np.mean([1 - right[held.fold == k].mean() for k in range(3)]))
    shares = next(line for line in found.scores if line.model == "majority")
    dummy = cross_val_score(
        DummyClassifier(strategy="prior"), problem.X, problem.y, cv=problem.folds, scoring="neg_log_loss"
    )
    assert shares.log_score == pytest.approx(-dummy.mean())


def test_units_of_the_features_do_not_matter(tmp_path):
    scores = []
    for unit in (1e-6, 1e6):
        data = table(tmp_path, linear_columns(np.random.default_rng(3), unit=unit))
        problem = prepared(Request(data, "y", cv=3))
        scores.append([line.error for line in compared(problem, ["ard", "rvm", "ridge"], Settings()).scores])
    np.testing.assert_allclose(*scores, rtol=1e-5)  # where the searches stop, at tol nats


# --- choice ---


@pytest.mark.parametrize(
    ("data", "model", "why"),
    [
        ("sinc", "rvm", "predicts held-out rows better than the linear ard"),
        ("sparse-linear", "ard", "fewer than 5 rows for each feature"),
    ],
)
def test_auto_says_why(data, model, why):
    found = studied(prepared(Request(data, cv=3)), "auto", Settings())
    assert found.model_name == found.scores[0].model == model
    assert why in found.why


@pytest.mark.parametrize(("ahead", "wins"), [(0.1, True), (0.05, False), (0.0, False), (-0.1, False)])
def test_a_challenger_must_be_ahead_by_more_than_a_standard_error(ahead, wins):
    """Log scores with differences of spread 0.1: the corrected standard error of five folds is 0.067."""
    wobble = 0.1 * stats.zscore([1.0, -2.0, 0.5, 1.5, -1.0], ddof=1)
    logs = np.linspace(1, 2, 5)

    def outcome(values):
        nothing = np.empty(0)
        return Outcome(
            [FoldResult(0.0, value, nothing, nothing, 0.0, nothing, nothing, 0.0, nothing) for value in values]
        )

    found, difference, error = better(outcome(logs + wobble - ahead), outcome(logs))
    assert (found, difference) == (wins, pytest.approx(-ahead))
    assert error == pytest.approx(0.1 * np.sqrt(1 / 5 + 1 / 4))


def test_auto_stays_linear_with_many_rows(tmp_path, rng):
    found = studied(prepared(Request(table(tmp_path, linear_columns(rng, 2001)), "y", cv=2)), "auto", Settings())
    assert "with more than 2,000 rows only a linear model was tried" in found.why


@pytest.mark.parametrize("task", TASKS)
def test_every_name_of_ours_is_a_model_or_a_reason(task):
    there = {model.name for model in suitable(task)}
    for name in models.OURS:
        if name in there:
            assert pipeline(named(name, task), Size(50, 3, task), seed=0)[-1] is not None
        else:
            with pytest.raises(UsageError, match=f"model {name} is for (regression|classification), but the target is"):
                named(name, task)


def test_parameters_are_set_by_name():
    given = models.settings(["min_gain=0", "solver=em", "fit_intercept=false"])
    assert given == {"min_gain": 0, "solver": "em", "fit_intercept": False}
    made = pipeline(MODELS["ard"], Size(50, 3, "regression"), 0, given=given)
    assert made[-1].get_params()["solver"] == "em"
    with pytest.raises(UsageError, match="has no parameter 'solvr'; it has a, average, b"):
        pipeline(MODELS["ard"], Size(50, 3, "regression"), 0, given={"solvr": "em"})
    with pytest.raises(UsageError, match="must have the form name=value"):
        models.settings(["min_gain"])


def test_a_kernel_model_of_very_many_rows_is_refused_with_a_way_out(tmp_path, rng):
    problem = prepared(Request(table(tmp_path, linear_columns(rng, 20_001)), "y"))
    with pytest.raises(DataError, match=r"20,001 rows are too many.*--sample 5000\) or .*--model ard"):
        studied(problem, "rvm", Settings())


def test_a_sample_is_drawn_and_told(tmp_path, rng):
    problem = prepared(Request(table(tmp_path, linear_columns(rng, 500)), "y", sample=100))
    assert problem.X.shape == (100, 4)
    assert "100 of 500 rows were drawn at random" in problem.notes[0]


# --- comparison ---


def test_a_comparison_ranks_all_suitable_models_on_the_same_folds(tmp_path, rng):
    data = table(tmp_path, linear_columns(rng))
    only = ["ard", "lasso", "svm", "mean"]
    found = compared(prepared(Request(data, "y", cv=3)), only, Settings())
    errors = [line.error for line in found.scores]
    assert {line.model for line in found.scores} == set(only)
    assert errors == sorted(errors)
    assert found.scores[-1].model == "mean"
    np.testing.assert_allclose([line.difference for line in found.scores], np.array(errors) - errors[0], atol=1e-12)
    by_name = {line.model: line for line in found.scores}
    assert np.isnan(by_name["lasso"].log_score)
    assert by_name["svm"].kept_vectors > 0


def test_models_that_would_take_long_are_left_out_and_named(tmp_path, rng, monkeypatch):
    three = {name: replace(MODELS[name], compared_rows=50 if name == "gp" else 100) for name in ("ridge", "gp", "mean")}
    monkeypatch.setattr(models, "MODELS", three)
    found = compared(prepared(Request(table(tmp_path, linear_columns(rng)), "y", cv=2)), [], Settings())
    assert [line.model for line in found.scores] == ["ridge", "mean"]
    assert found.left_out == ["gp was left out: 60 rows and 4 features take too long"]


def test_with_a_million_rows_only_linear_models_are_compared():
    size = Size(10**6, 10, "regression")
    assert {model.name for model in suitable("regression") if not model.too_slow(size)} == {
        "ard",
        "lasso",
        "ridge",
        "mean",
    }


def test_a_model_that_fails_is_told_and_ranked_last(tmp_path, rng, monkeypatch):
    def fail(*args):
        raise np.linalg.LinAlgError("no such luck")

    monkeypatch.setattr(ARDRegressor, "fit", fail)
    found = compared(prepared(Request(table(tmp_path, linear_columns(rng)), "y", cv=2)), ["ard", "ridge"], Settings())
    assert [line.model for line in found.scores] == ["ridge", "ard"]
    assert found.scores[1].failed == "LinAlgError: no such luck"
    assert np.isnan(found.scores[1].error)
