"""What the command line says first is true: rare classes, uneven intervals, few rows, unstable choices, kernels."""

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from commands import here
from sklearn.metrics import log_loss, precision_score, recall_score, roc_auc_score

from sparsebayes.app.class_skill import area, class_skill
from sparsebayes.app.evenness import by_order, of_intervals, of_probabilities
from sparsebayes.app.facts import facts_of
from sparsebayes.app.importance import importance_of, shuffled
from sparsebayes.app.load_data import Request, prepared
from sparsebayes.app.report.summary import answers, lede
from sparsebayes.app.run_study import Settings, studied
from sparsebayes.app.sentences import sentences
from sparsebayes.app.study import HeldOut

QUICK = {"average": False}


def study_of(tmp_path, columns, target, model, given=None, **request):
    path = tmp_path / "table.parquet"
    pl.DataFrame(columns).write_parquet(path)
    return studied(prepared(Request(str(path), target, **request)), model, Settings(given=given or {}))


@pytest.fixture(scope="module")
def frauds(tmp_path_factory):
    """2,000 rows, 2 % of them frauds that two of five columns tell in part."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 5))
    y = rng.random(2000) < 1 / (1 + np.exp(5.2 - 1.5 * X[:, 0] - X[:, 1]))
    columns = {f"v{j}": X[:, j] for j in range(5)} | {"fraud": np.where(y, "yes", "no")}
    return study_of(tmp_path_factory.mktemp("frauds"), columns, "fraud", "slr", QUICK)


# --- rare classes ---


def test_rare_classes_lead_with_what_is_found(frauds):
    facts = facts_of(frauds)
    told = sentences(facts)
    n = int((frauds.y == "yes").sum())
    assert told[0].startswith(f"Of {n} held-out rows that are “yes”, the model finds")
    assert "than that of the class shares" in told[1]
    assert re.match(r"The model finds \d+ of \d+ held-out rows that are “yes” \(\d", lede(facts).replace("\xa0", " "))
    assert "correctly for" not in lede(facts)
    good = answers(facts)[0]
    assert good.label == "of “yes” found"
    assert "AUC" in good.text
    sure = answers(facts)[1]
    assert sure.label == f"rows of “yes” expected; there are {n}"
    assert float(sure.figure) == pytest.approx(frauds.held_out.probabilities[:, 1].sum(), rel=0.05)


def test_skill_is_that_of_scikit_learn(frauds):
    facts = facts_of(frauds)
    skill, p, truth = facts.skill, frauds.held_out.probabilities, frauds.held_out.truth
    predicted = np.where(p[:, 1] > p[:, 0], "yes", "no")
    assert skill.auc == pytest.approx(roc_auc_score(truth == "yes", p[:, 1]), rel=1e-12)
    assert skill.recall == recall_score(truth, predicted, pos_label="yes")
    assert skill.precision == pytest.approx(precision_score(truth, predicted, pos_label="yes"))
    shares = np.empty_like(p)
    for k in range(5):
        train = frauds.y[frauds.held_out.rows[frauds.held_out.fold != k]]
        shares[frauds.held_out.fold == k] = [np.mean(train == label) for label in ("no", "yes")]
    assert skill.skill == pytest.approx(1 - log_loss(truth, p) / log_loss(truth, shares), rel=1e-9)
    assert skill.clear
    highest = np.argsort(-p[:, 1])[: skill.n]
    assert skill.first == np.sum(truth[highest] == "yes")


def test_the_class_of_interest_is_the_rarest_or_the_one_asked_for(frauds):
    facts = facts_of(frauds)
    assert frauds.classes[facts.skill.interest] == "yes"
    other = facts_of(replace(frauds, positive="no"))
    assert frauds.classes[other.skill.interest] == "no"
    assert not other.skill.rare
    assert other.skill.auc == pytest.approx(facts.skill.auc, rel=1e-9)


def test_a_class_of_interest_that_is_none_is_refused():
    result = here("fit", "iris", "--positive", "rose")
    assert result.exit_code == 3
    assert "--positive 'rose' is not a class of the target: the classes are 'setosa'" in result.stderr
    assert "it is numeric" in here("fit", "sinc", "--positive", "1").stderr


def test_probabilities_without_skill_are_called_so(frauds):
    held = frauds.held_out
    shuffled_rows = np.random.default_rng(0).permutation(len(held.probabilities))
    facts = facts_of(replace(frauds, held_out=replace(held, probabilities=held.probabilities[shuffled_rows])))
    assert not facts.skill.clear
    assert lede(facts).startswith("The model predicts “fraud” no better than the class shares do")


def test_area_under_the_curve_with_ties():
    rng = np.random.default_rng(0)
    score, positive = rng.integers(0, 5, 100), rng.random(100) < 0.3
    assert area(score, positive) == pytest.approx(roc_auc_score(positive, score), rel=1e-12)
    assert np.isnan(area(score, np.zeros(100, dtype=bool)))


def test_a_class_that_a_fold_lacks_has_a_finite_skill():
    y = np.array(["a"] * 6 + ["b"] * 3)
    held = HeldOut(np.arange(9), y, np.repeat([0, 1, 2], 3), *[np.empty(0)] * 3, np.full((9, 2), 0.5))
    study = SimpleNamespace(y=y, held_out=held, classes=["a", "b"], positive=None)
    truth = (y == "b").astype(int)
    assert np.isfinite(class_skill(study, truth, np.zeros(9, dtype=int)).skill)


# --- intervals by groups ---


def test_even_models_are_called_uneven_in_one_of_twenty_studies():
    """300 studies: the share has a standard error of 1.3 %; five of them above 5 % is 11 %."""
    rng = np.random.default_rng(0)
    n, called = 200, {"intervals": 0, "probabilities": 0}
    for _ in range(300):
        mean, std = rng.standard_normal(n), rng.uniform(0.5, 2, n)
        called["intervals"] += any(each.uneven for each in of_intervals(mean, std, rng.random(n) < 0.9, 0.9))
        p = rng.beta(0.5, 0.5, n)
        called["probabilities"] += any(each.uneven for each in of_probabilities(rng.random(n) < p, p))
    assert 0.01 < called["intervals"] / 300 < 0.11
    assert 0.01 < called["probabilities"] / 300 < 0.11


def test_intervals_that_are_too_narrow_at_the_top_are_called_uneven():
    """The coverages by quarter of a real study of 442 rows: 96, 95, 85 and 82 %; 90 % on average."""
    mean = np.arange(440.0)
    inside = np.concatenate([np.arange(110) >= round(110 * (1 - share)) for share in (0.96, 0.95, 0.85, 0.82)])
    (found,) = of_intervals(mean, np.ones(440), inside, 0.9)
    assert found.uneven
    assert [round(group.observed, 2) for group in found.groups] == [0.96, 0.95, 0.85, 0.82]
    assert found.worst.low == 330


def test_the_report_says_where_intervals_fail():
    study = studied(prepared(Request("diabetes")), "ard", Settings(given=QUICK))
    facts = facts_of(study)
    assert facts.calibration.verdict == "calibrated"
    assert facts.trust == "uneven"
    assert "its intervals are right on average, but not everywhere" in lede(facts)
    assert "can be trusted" not in answers(facts)[1].text
    assert any(sentence.startswith("From low to high predicted value") for sentence in sentences(facts))


def test_few_events_are_not_grouped():
    assert by_order("x", np.arange(99.0), np.ones(99, dtype=bool), np.full(99, 0.9), 0.05) is None
    assert by_order("x", np.arange(101.0), np.ones(101, dtype=bool), np.full(101, 0.9), 0.05) is not None


# --- few rows ---


def test_three_rows_give_a_report_that_says_so(tmp_path):
    (tmp_path / "three.csv").write_text("x,z,y\n1,5,2.0\n2,3,4.1\n3,4,6.2\n")
    result = here("fit", tmp_path / "three.csv", "-t", "y", "--report", tmp_path / "report.html", "--json")
    assert result.exit_code in (0, 4), result.stderr
    said = json.loads(result.stdout)
    assert said["verdict"][0] == "The table has only 3 rows: all numbers are rough."
    assert "hard to judge with so few rows" in " ".join(said["verdict"])
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "The table has only 3 rows" in page
    assert "can be trusted" not in page
    (tmp_path / "two.csv").write_text("x,y\n1,2.0\n2,4.1\n")
    assert "the table has 2 rows; at least 3 are needed" in here("fit", tmp_path / "two.csv", "-t", "y").stderr


def test_few_rows_of_a_class_are_said(frauds):
    facts = facts_of(frauds)
    assert facts.few == ""
    few = np.flatnonzero(frauds.held_out.truth == "yes")[7:]
    truth = frauds.held_out.truth.copy()
    truth[few] = "no"
    made = facts_of(replace(frauds, y=truth, held_out=replace(frauds.held_out, truth=truth)))
    assert made.few == "Only 7 rows are “yes”: all numbers are rough"


# --- unstable choices ---


def test_an_unstable_choice_is_in_the_headline(frauds):
    kept = np.zeros_like(frauds.kept_by_fold)
    kept[:2, facts_of(frauds).selection.distinct[0].index] = True
    facts = facts_of(replace(frauds, kept_by_fold=kept))
    assert facts.unstable
    assert lede(facts).endswith("but fits without a fold choose others.")
    assert "in 2 of 5 folds" in answers(facts)[2].text
    assert any(sentence.startswith("The choice is unstable") for sentence in sentences(facts))


# --- what matters to a kernel model ---


@pytest.fixture(scope="module")
def wave(tmp_path_factory):
    """A wave in one column, a category that matters, and two columns that do not."""
    rng = np.random.default_rng(0)
    X, kind = rng.uniform(-3, 3, (120, 3)), rng.choice(["a", "b", "c"], 120)
    y = 2 * np.sin(X[:, 0]) + 2.0 * (kind == "a") + 0.2 * rng.standard_normal(120)
    columns = {"x0": X[:, 0], "x1": X[:, 1], "x2": X[:, 2], "kind": kind, "y": y}
    return study_of(tmp_path_factory.mktemp("wave"), columns, "y", "rvm")


def test_what_matters_to_a_kernel_model_is_about_features(wave):
    found = wave.importance
    assert {*found.names[:2]} == {"x0", "kind"}  # the columns of the table, not those of their encoding
    assert {"x0", "kind"} <= {*found.clear}
    facts = facts_of(wave)
    text = answers(facts)[2]
    assert text.label == "features clearly matter"
    assert "Shuffling a feature in held-out rows raises the RMSE" in text.text
    assert any("clearly matter" in sentence for sentence in sentences(facts))
    assert "clearly matter" in lede(facts)


def test_shuffling_is_that_of_a_loop(wave):
    """An importance by hand: the mean loss of shuffled rows minus the loss."""
    X, y = wave.X[:30], wave.y[:30]
    loss = lambda fitted, X, y: float(np.mean((fitted(X) - y) ** 2))  # noqa: E731
    found = shuffled(lambda X: X[:, 0], X, y, [slice(0, 1), slice(1, 2)], loss)
    assert found[1] == 0
    rng = np.random.default_rng(0)
    expected = [np.mean((X[rng.permutation(30), 0] - y) ** 2) for _ in range(5)]
    assert found[0] == pytest.approx(np.mean(expected) - np.mean((X[:, 0] - y) ** 2))
    assert not len(shuffled(None, X, y, [slice(0, 1)] * 2000, loss))


def test_importance_is_clear_by_a_t_test():
    folds = [np.array([1.0, 0.1, -0.1]), np.array([1.2, -0.1, 0.2]), np.array([0.9, 0.0, 0.1])]
    found = importance_of(["a", "b", "c"], folds, classes=False)
    assert found.names[0] == "a"
    assert found.clear == ["a"]
    assert importance_of(["a"], [np.empty(0)], classes=False) is None


def test_linear_models_need_no_shuffling(frauds):
    assert frauds.importance is None


def test_slow_folds_share_processes_and_give_the_same(tmp_path, monkeypatch):
    from sparsebayes.app import validation

    problem = prepared(Request("sinc", cv=3))
    one = studied(problem, "rvm", Settings())
    monkeypatch.setattr(validation, "SLOW", 0.0)
    several = studied(problem, "rvm", Settings(jobs=2))
    np.testing.assert_allclose(several.held_out.mean, one.held_out.mean, rtol=1e-9)
    assert several.scores[0].error == pytest.approx(one.scores[0].error)
