"""What the command line offers beside the fit: needed columns, advice that works, baselines, provenance, equations."""

import hashlib
import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from commands import command, here
from rich.console import Console
from typer.main import get_command

import sparsebayes
from sparsebayes.app.cli import app
from sparsebayes.app.facts import facts_of
from sparsebayes.app.load_data import Request, prepared
from sparsebayes.app.modelfile import open_model, save_study
from sparsebayes.app.models import BASELINES, CHALLENGERS, MODELS, OURS
from sparsebayes.app.origin import typed
from sparsebayes.app.predicting import used_features
from sparsebayes.app.report.page import html
from sparsebayes.app.run_study import Settings, studied
from sparsebayes.app.terminal import print_study

SOURCE = Path(sparsebayes.__file__).parent / "app"
ONE = {"average": False}


def columns(n=60, classes=False):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4)) * [1, 10, 100, 1]
    y = 5 + X @ [2, -0.3, 0, 0] + 0.1 * rng.standard_normal(n)
    colour = rng.choice(["red", "green", "blue"], n)
    made = {f"x{j}": X[:, j] for j in range(4)} | {"colour": colour}
    return pl.DataFrame(made | {"y": np.where(y > 5, "up", "down") if classes else y})


def study_of(tmp_path, frame, model, given=None, **request):
    path = tmp_path / "table.csv"
    frame.write_csv(path)
    problem = prepared(Request(str(path), "y", cv=2, **request))
    return studied(problem, model, Settings(request.get("impute", ""), given or {})), problem.recipe


# --- predict asks for what it needs ---


@pytest.mark.parametrize(
    ("model", "given", "classes", "impute"),
    [
        ("ard", ONE, False, ""),
        ("ard", {"max_flips": 300}, False, ""),
        ("ard", ONE, False, "median"),
        ("slr", ONE, True, ""),
        ("slr", {"max_flips": 100, "n_chains": 2}, True, ""),
        ("drvm", {}, False, ""),
        ("rvm", {}, False, ""),
    ],
)
def test_predictions_do_not_depend_on_columns_that_are_not_asked_for(model, given, classes, impute, tmp_path):
    frame = columns(classes=classes)
    study, recipe = study_of(tmp_path, frame, model, given, impute=impute)
    save_study(study, recipe, tmp_path / "m.skops")
    needed = recipe.needed(used_features(open_model(str(tmp_path / "m.skops"))))
    assert {"x0", "x1"} <= set(needed)
    if given is ONE:
        assert "x2" not in needed
    if model == "rvm":
        assert len(needed) == 5
    options = [] if classes else ["--interval", 0.8]
    found = []
    for name, part in (("all", frame), ("needed", frame.select(needed))):
        part.write_csv(tmp_path / f"{name}.csv")
        result = here("predict", tmp_path / "m.skops", tmp_path / f"{name}.csv", *options)
        assert result.exit_code == 0, result.stderr
        found.append(pl.read_csv(io.StringIO(result.stdout)))
    for name in found[0].columns:
        if found[0][name].dtype.is_numeric():
            np.testing.assert_allclose(found[1][name], found[0][name], rtol=1e-12)
        else:
            assert found[1][name].equals(found[0][name])


def test_all_columns_that_are_missing_are_named(tmp_path):
    study, recipe = study_of(tmp_path, columns(), "rvm")
    save_study(study, recipe, tmp_path / "m.skops")
    columns().select("x2").write_csv(tmp_path / "new.csv")
    result = here("predict", tmp_path / "m.skops", tmp_path / "new.csv")
    assert "lacks 'x0', 'x1', 'x3', 'colour', which the model needs" in result.stderr


# --- advice ---


def options_of(name):
    return {option for parameter in get_command(app).commands[name].params for option in parameter.opts}


def test_every_option_that_a_message_names_exists():
    known = set().union(*(options_of(name) for name in ("fit", "predict", "compare", "inspect", "export")))
    named = set()
    for path in SOURCE.rglob("*.py"):
        named |= set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", path.read_text(encoding="utf-8")))
    assert len(named) > 10
    assert named <= known | {"--version", "--help"}


def test_advice_for_new_rows_can_be_followed(tmp_path):
    """`predict` knows neither --impute nor --exclude."""
    study, recipe = study_of(tmp_path, columns(), "ard", ONE)
    save_study(study, recipe, tmp_path / "m.skops")
    (tmp_path / "new.csv").write_text("x0,x1\n1,2\n,3\n")
    result = here("predict", tmp_path / "m.skops", tmp_path / "new.csv")
    assert "column 'x0' has a missing value in row 2" in result.stderr
    assert "fit the model again with --impute median" in result.stderr


def test_a_limit_that_is_to_be_raised_can_be(tmp_path):
    """--set needs --model; a message that says only one of them sends people in circles."""
    result = here("fit", "sparse-linear", "--model", "ard", "--cv", 2, "--set", "max_iter=2", "--no-baselines")
    assert "raise the limit with --model and --set max_iter=" in result.stdout


# --- models and baselines ---


def test_help_lists_the_models():
    for name in OURS:
        assert re.search(rf"\b{name}\b", here("fit", "--help").stdout)
    for name in MODELS:
        assert re.search(rf"\b{name}\b", here("compare", "--help").stdout)


def test_auto_tries_feature_weights_and_a_nonlinear_baseline(tmp_path):
    """Two of three features matter, not linearly: the model with feature weights wins."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (70, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(70)
    path = tmp_path / "a.parquet"
    pl.DataFrame({f"x{j}": X[:, j] for j in range(3)} | {"y": y}).write_parquet(path)
    found = studied(prepared(Request(str(path), "y", cv=3)), "auto", Settings())
    names = {line.model for line in found.scores}
    assert {"ard", *CHALLENGERS["regression"], *BASELINES["regression"], "mean"} == names
    assert "boosting" in names
    by_name = {line.model: line for line in found.scores}
    best = min(CHALLENGERS["regression"], key=lambda name: by_name[name].log_score)
    assert found.model_name == best
    assert all(line.seconds > 0 for line in found.scores)


def test_baselines_can_be_left_out(tmp_path):
    columns().write_csv(tmp_path / "a.csv")
    arguments = ["fit", tmp_path / "a.csv", "-t", "y", "-m", "ard", "--set", "average=false", "--cv", 2]
    result = here(*arguments, "--no-baselines", "--json", "--report", tmp_path / "r.html")
    assert [line["model"] for line in json.loads(result.stdout)["scores"]] == ["ard"]


# --- tables ---


@pytest.mark.parametrize("data", ["diabetes", "wine"])
def test_tables_fit_eighty_columns(data):
    model, given = ("ard", {"max_flips": 300}) if data == "diabetes" else ("slr", ONE)
    facts = facts_of(studied(prepared(Request(data, cv=2)), model, Settings(given=given)))
    file = io.StringIO()
    print_study(Console(file=file, width=80, markup=False, highlight=False), facts)
    lines = file.getvalue().splitlines()
    first = next(k for k, line in enumerate(lines) if line.startswith(("feature", "class")))
    assert max(map(len, lines[first:-1])) <= 80
    assert "…" not in "".join(line for line in lines[first:-1] if "more" not in line).replace(" … ", "")


# --- where it comes from ---


def test_reports_and_json_say_what_was_typed_when_and_on_what(tmp_path):
    columns().write_csv(tmp_path / "my table.csv")
    arguments = ["fit", "my table.csv", "-t", "y", "-m", "ard", "--set", "average=false", "--cv", "2"]
    arguments += ["--no-baselines", "--json", "--report", "r.html"]
    result = command(*arguments, cwd=tmp_path)
    said = json.loads(result.stdout)["origin"]
    digest = hashlib.sha256((tmp_path / "my table.csv").read_bytes()).hexdigest()
    assert said["digest"] == digest
    assert said["command"].startswith("sparsebayes fit 'my table.csv' -t y -m ard")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", said["date"])
    assert {"Python", "numpy", "scikit-learn"} <= set(said["versions"])
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    for text in (digest, said["date"], said["versions"]["numpy"], "-m ard"):
        assert text in page


def test_the_date_can_be_fixed(monkeypatch, tmp_path):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    study, _ = study_of(tmp_path, columns(), "ard", ONE)
    assert study.origin.date == "1970-01-01 00:00 UTC"
    assert typed([sys.executable, "fit", "a b.csv"]) == "sparsebayes fit 'a b.csv'"


def test_the_same_study_gives_the_same_bytes_and_a_second_one_differs_in_times_only(tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    pages = []
    for _ in range(2):
        study, _ = study_of(tmp_path, columns(), "ard", {"max_flips": 300})
        pages.append(re.sub(r"[\d.]+\xa0s\b", "", html(facts_of(study))))
    assert pages[0] == pages[1]


# --- equations ---


@pytest.mark.parametrize(("model", "classes"), [("ard", False), ("slr", True), ("vb", True)])
def test_equations_predict_in_the_units_of_the_table(model, classes, tmp_path):
    frame = columns(classes=classes)
    study, _ = study_of(tmp_path, frame, model, ONE if model != "vb" else {})
    (equation,) = facts_of(study).equations
    encoded = pl.DataFrame(study.X, schema=study.features)
    found = equation.intercept + encoded.select(equation.names).to_numpy() @ equation.weights
    if classes:
        assert equation.left == "log-odds of up (at the mean weights)"
        model = study.pipeline[-1]
        inputs = study.pipeline[:-1].transform(encoded) if len(study.pipeline) > 1 else study.X
        expected = (inputs @ model.coef_.T + model.intercept_)[:, 0]
        assert np.array_equal(expected > 0, study.pipeline.predict(encoded) == "up")
    else:
        assert equation.left == "y"
        expected = study.pipeline.predict(encoded)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_the_equation_is_in_the_report_and_in_json(tmp_path):
    columns().write_csv(tmp_path / "a.csv")
    arguments = ["fit", tmp_path / "a.csv", "-t", "y", "-m", "ard", "--set", "average=false", "--cv", 2]
    result = here(*arguments, "--no-baselines", "--json", "--report", tmp_path / "r.html")
    (equation,) = json.loads(result.stdout)["equations"]
    assert set(equation["weights"]) == {"x0", "x1"}
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert re.search(r"y = \S+ − \S+ × x1 \+ \S+ × x0", page)


def test_kernel_models_have_no_equation(tmp_path):
    assert not facts_of(study_of(tmp_path, columns(), "rvm")[0]).equations


# --- compare ---


def test_a_comparison_has_a_report(tmp_path):
    arguments = ["compare", "sinc", "--cv", 3, "--only", "ard", "--only", "rvm", "--only", "mean"]
    result = here(*arguments, "--report", tmp_path / "c.html")
    assert result.exit_code == 0, result.stderr
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert "Relevance vector machine (sparsebayes) has the smallest error on held-out rows" in page
    assert "0 of 2 other models are not clearly worse." in page
    assert page.count("<svg") == 1
    assert "The mean alone" in page
