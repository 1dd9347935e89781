"""The facts of a study are right, and terminal, JSON and report give the same numbers."""

import io
import re
from dataclasses import replace
from functools import cache
from html import unescape

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from scipy import stats
from sklearn.base import clone

from sparsebayes.app.facts import COVERAGE, facts_of, held_out_intervals, spread
from sparsebayes.app.json_output import study_json
from sparsebayes.app.load_data import Request, prepared
from sparsebayes.app.report.page import html
from sparsebayes.app.run_study import Settings, studied
from sparsebayes.app.selection import CREDIBLE, FeatureSet, selection_of
from sparsebayes.app.sentences import sentences
from sparsebayes.app.terminal import print_study
from sparsebayes.app.words import error_text, for_terminal, number, percent
from sparsebayes.estimators import probable
from sparsebayes.inspection import RelevanceDisplay

STUDIES = {
    "linear regression": ("y", "ard", {"average": False}),
    "averaged regression": ("y", "ard", {"max_flips": 600}),
    "kernel regression": ("y", "rvm", {}),
    "feature weights": ("y", "drvm", {}),
    "two classes": ("sign", "slr", {"average": False}),
    "three classes": ("level", "slr", {"average": False}),
    "averaged classes": ("level", "slr", {"average": True, "max_flips": 300, "n_chains": 2}),
    "kernel of classes": ("sign", "rvm", {}),
}
REGRESSIONS = ["linear regression", "averaged regression", "kernel regression", "feature weights"]
ROWS = 45


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table with a number, two classes and three classes as targets; one value is missing."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS, 3)) * (1, 10, 100)
    y = X @ (2, -0.1, 0) + 0.5 * rng.standard_normal(ROWS)
    columns = {"x0": X[:, 0], "x1": X[:, 1], "x2": X[:, 2], "y": y, "sign": np.where(y > 0, "up", "down")}
    columns["level"] = np.array(["low", "middle", "high"])[np.digitize(y, [-1, 1])]
    columns["x2"][4] = np.nan
    path = tmp_path_factory.mktemp("facts") / "table.parquet"
    pl.DataFrame(columns).write_parquet(path)
    return str(path)


@pytest.fixture(scope="module")
def study(table):
    """A study by its name, made once; tests leave it as it is."""

    @cache
    def make(name):
        target, model, given = STUDIES[name]
        problem = prepared(Request(table, target, features=["x*"], impute="median", cv=3))
        return studied(problem, model, Settings("median", given))

    return make


def printed(facts):
    """What the terminal shows, with single spaces."""
    file = io.StringIO()
    print_study(Console(file=file, width=200, markup=False, highlight=False), facts)
    return " ".join(file.getvalue().split())


def page(facts):
    """The text of the report, with the characters of a keyboard and single spaces."""
    text = re.sub("<style.*?</style>|<svg.*?</svg>", " ", html(facts), flags=re.DOTALL)
    return " ".join(for_terminal(unescape(re.sub("<[^>]+>", " ", text))).split())


# --- the same numbers everywhere ---


@pytest.mark.parametrize("name", STUDIES)
def test_terminal_json_and_report_give_the_same_numbers(name, study):
    facts = facts_of(study(name))
    terminal, said, report = printed(facts), study_json(facts), page(facts)
    classes = bool(facts.study.classes)

    def everywhere(text):
        assert for_terminal(text) in terminal
        assert for_terminal(text) in report

    first, constant = said["scores"][0], said["scores"][-1]
    everywhere(error_text(first["error"], first["error_se"], percent=classes))
    everywhere(error_text(constant["error"], constant["error_se"], percent=classes))
    found = said["calibration"]
    everywhere(f"{percent(found['observed'])} of")
    everywhere(f"{100 * found['lower']:.0f} to {percent(found['upper'])}")
    if classes:
        everywhere(percent(found["promised"]))
    assert f"the mean gives {for_terminal(number(constant['error']))}." in report or classes
    assert f"misclassifies {for_terminal(percent(constant['error']))}." in report or not classes
    for line in said["kept"]:
        assert f"{line['effect']:+.3g}" in terminal
        assert for_terminal(number(line["effect"], sign=facts.selection.signed)) in report
        kept_in = f"{round(3 * line['folds'])} of 3"
        assert kept_in in terminal
        assert kept_in in report
    if not said["kept"]:
        everywhere(f"{said['n_vectors']:.0f} of {ROWS}")
    difference, (low, high) = constant["difference"], constant["difference_interval"]
    half = stats.t.ppf(0.975, 2) * constant["difference_se"]
    assert (low, high) == (pytest.approx(difference - half), pytest.approx(difference + half))
    assert ("The model is clearly better" in terminal) == (low > 0)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_every_output_takes_the_quantile_of_predict_interval(name, study):
    """Two thirds of the rows lie between the normal and Student's quantile, the others in the middle."""
    made = study(name)
    held = made.held_out
    assert held.freedom.max() < 40
    normal, student = stats.norm.ppf(0.95), stats.t.ppf(0.95, held.freedom)[held.fold]
    off = np.where(np.arange(ROWS) % 3 == 0, 0.0, (normal + student) / 2)
    facts = facts_of(replace(made, held_out=replace(held, truth=held.mean + off * held.std)))
    assert study_json(facts)["coverage"] == {"asked": 0.9, "found": 1.0}
    assert "100 % of held-out rows lie in their 90 % intervals" in printed(facts)
    assert "100 % of held-out rows lie in their 90 % intervals" in page(facts)
    assert f"{ROWS} rows lie in their 90 % intervals" in page(facts)


def test_a_difference_is_clear_by_a_paired_t_test_in_every_output(study):
    made = study("linear regression")
    threshold = stats.t.ppf(0.975, 2)
    for ratio, clear in ((0.95 * threshold, False), (1.05 * threshold, True)):
        last = replace(made.scores[-1], difference=ratio, difference_se=1.0, error=0.0)
        facts = facts_of(replace(made, scores=[made.scores[0], last]))
        assert ("The model is clearly better" in printed(facts)) is clear
        assert ("The mean alone is clearly worse" in page(facts)) is clear
        assert (study_json(facts)["scores"][1]["difference_interval"][0] > 0) is clear


# --- facts by a second road ---


@pytest.mark.parametrize("name", REGRESSIONS)
def test_intervals_are_those_of_the_models_of_the_folds(name, study):
    made = study(name)
    held = made.held_out
    for k in range(3):
        here = held.fold == k
        fit = clone(made.pipeline).fit(made.X[held.rows[~here]], made.y[held.rows[~here]])
        inputs = fit[:-1].transform(made.X[held.rows[here]])
        for level in (0.5, COVERAGE):
            # The folds were fitted to the same rows in the same order, so that only rounding differs.
            expected = fit[-1].predict_interval(inputs, level)
            np.testing.assert_allclose(held_out_intervals(held, level)[here], expected, rtol=1e-9)


def test_effects_of_an_averaged_model_are_averages(study):
    made = study("averaged regression")
    model, selection = made.pipeline[-1], facts_of(made).selection
    assert selection.averaged
    assert [effect.index for effect in selection.effects] == [0, 1]
    filled = np.where(np.isnan(made.X), np.nanmedian(made.X, axis=0), made.X)
    for effect in selection.effects:
        unit = filled[:, effect.index].std()
        assert effect.weight == pytest.approx(model.coef_[effect.index] * unit)
        ends = model.coef_interval(CREDIBLE)[effect.index] * unit
        assert (effect.lower, effect.upper) == pytest.approx(tuple(ends))
        assert effect.probability == model.inclusion_probability_[effect.index]
        assert np.isnan(effect.gain)
    assert selection.near == []


@pytest.mark.parametrize("name", ["averaged regression", "averaged classes"])
def test_sets_likely_features_and_sizes_are_in_every_output(name, study):
    facts = facts_of(study(name))
    model, selection = facts.model, facts.selection
    terminal, said, report = printed(facts), study_json(facts), page(facts)
    probability, names = np.atleast_2d(model.inclusion_probability_), facts.study.features
    nested = name == "averaged classes"
    sets = [found for part in (model.credible_sets_ if nested else [model.credible_sets_]) for found in part]
    assert said["averaged"] is True
    assert len(said["credible_sets"]) == len(sets)
    told = [({names[j] for j in each.features}, each.probability) for each in sets]
    assert [({*each["names"]}, each["probability"]) for each in said["credible_sets"]] == sorted(
        told, key=lambda each: -each[1]
    )
    likely = (probability >= 0.5) & (probability < 0.9)
    assert len(said["likely"]) == likely.sum()
    for line in said["likely"]:
        told = f"“{line['feature']}”" + (f" for “{line['output']}”" if line["output"] else "")
        told += f" ({probable(line['probability'])})"
        assert told in terminal
        assert told in report
    for size in said["n_features_posterior"]:
        assert 0 <= size["lower"] <= size["median"] <= size["upper"] <= 3
    assert f"It claims {len(selection.distinct)} of 3 features (inclusion probability at least 90 %)." in terminal
    assert any("It claims" in sentence for sentence in said["verdict"])
    assert "In the model: " in terminal
    assert "In the model: " in report
    assert f"{model.n_flips_:,} flips of each" in terminal
    for line in said["kept"]:
        assert probable(line["probability"]) in terminal
        assert probable(line["probability"]) in report
    assert "nats" not in terminal.split("Averaged over models")[0].split("The chains")[0]


def test_stand_ins_are_named_in_every_output(study):
    made = study("averaged regression")
    facts = facts_of(made)
    first = replace(facts.selection.effects[0], stand_ins=("x7", "x8"))
    selection = replace(facts.selection, effects=[first], ranked=[first], distinct=[first])
    selection = replace(selection, sets=[FeatureSet("", ["x0", "x7", "x8"], 0.974, 0.93)])
    facts = replace(facts, selection=selection)
    assert "One of these 3, 97 %: “x0”, “x7” and “x8”." in printed(facts)
    assert "One of these 3, 97 %: “x0”, “x7” and “x8”." in page(facts)
    assert "x7 and x8" in printed(facts)
    assert "x7 and x8" in page(facts)
    assert study_json(facts)["kept"][0]["stand_ins"] == ["x7", "x8"]
    assert study_json(facts)["credible_sets"][0]["purity"] == 0.93


def test_effects_are_those_of_one_standard_deviation(study):
    made = study("linear regression")
    model = made.pipeline[-1]
    effects = facts_of(made).selection.effects
    assert [effect.name for effect in effects] == ["x0", "x1"]
    filled = np.where(np.isnan(made.X), np.nanmedian(made.X, axis=0), made.X)
    std = np.sqrt(np.diag(model.covariance_))[:2]
    quantile = stats.t.ppf(0.975, model.degrees_of_freedom_)
    for j, effect in enumerate(effects):
        unit = filled[:, j].std()
        assert effect.weight == pytest.approx(model.coef_[j] * unit)
        assert effect.upper - effect.weight == pytest.approx(quantile * std[list(model.active_).index(j)] * unit)
        assert effect.frequency == made.kept_by_fold[:, j].mean()


@pytest.mark.parametrize("name", STUDIES)
def test_effects_are_those_of_the_display(name, study):
    made = study(name)
    selection = facts_of(made).selection
    X = pl.DataFrame(made.X, schema=made.features)
    for output in selection.outputs:
        shown = RelevanceDisplay.from_estimator(made.pipeline, X, coverage=CREDIBLE, output=output or None)
        mine = [effect for effect in selection.effects if effect.output == output]
        assert shown.names == [effect.name for effect in mine]
        for key in ("weight", "lower", "upper"):
            np.testing.assert_array_equal(getattr(shown, key), [getattr(effect, key) for effect in mine])
        assert shown.weight_label.startswith(selection.label)


def test_without_spreads_weights_are_per_unit_and_ordered_by_evidence(study):
    made = study("linear regression")
    model = made.pipeline[-1]
    selection = selection_of(model, made.features)
    assert not selection.per_sd
    assert [effect.weight for effect in selection.effects] == [
        model.coef_[effect.index] for effect in selection.effects
    ]
    gains = [effect.gain for effect in selection.effects]
    assert gains == sorted(gains, reverse=True)
    assert all(np.isnan(effect.frequency) for effect in selection.effects)


def test_spreads_are_those_of_what_the_model_sees(study):
    for name in ("kernel regression", "linear regression"):
        made = study(name)
        filled = np.where(np.isnan(made.X), np.nanmedian(made.X, axis=0), made.X)  # by the step before the model
        np.testing.assert_allclose(spread(made.pipeline, made.X), filled.std(axis=0))


# --- sentences ---


def test_sentences_say_the_numbers(study):
    made = study("linear regression")
    told = " ".join(sentences(facts_of(made)))
    assert f"{made.scores[0].error:.3f} ± {made.scores[0].error_se:.3f}" in told
    assert "It keeps 2 of 3 features." in told
    assert "3-fold cross-validation" in told
    vectors = " ".join(sentences(facts_of(study("feature weights"))))
    assert re.search(r"It keeps \d of 3 features and \d+ of 45 rows \(relevance vectors\)\.", vectors)


@pytest.mark.parametrize(
    ("name", "factor", "told"),
    [
        ("linear regression", 0.2, "the intervals are too narrow"),
        ("linear regression", 1.0, "the intervals are well calibrated"),
        ("linear regression", 5.0, "the intervals are wider than necessary"),
        ("three classes", 9.0, "they are too confident"),
        ("three classes", 0.05, "they are not confident enough"),
    ],
)
def test_calibration_is_said(name, factor, told, study):
    """Wrong standard deviations, and probabilities to a power."""
    made = study(name)
    power = made.held_out.probabilities**factor
    with np.errstate(invalid="ignore"):
        probabilities = power / power.sum(axis=1, keepdims=True)
    held = replace(made.held_out, std=factor * made.held_out.std, probabilities=probabilities)
    assert told in " ".join(sentences(facts_of(replace(made, held_out=held))))
