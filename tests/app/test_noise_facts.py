"""Rows that look wrong, noise that depends on features, and counts: in sentences, JSON and report."""

from html import unescape

import numpy as np
import polars as pl
import pytest

from sparsebayes.app.facts import facts_of
from sparsebayes.app.json_output import study_json
from sparsebayes.app.load_data import Request, prepared
from sparsebayes.app.noise_facts import NoiseFacts, NoiseTerm, Outlier
from sparsebayes.app.report.page import html
from sparsebayes.app.run_study import Settings, compared, studied
from sparsebayes.app.sentences import sentences
from sparsebayes.app.words import for_terminal

ONE = {"average": False}


def problem_of(tmp_path, kind):
    """60 rows and four columns; the target has three gross errors, unequal noise, or is a count."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 4))
    y = X[:, 0] - X[:, 1]
    if kind == "counts":
        y = rng.poisson(np.exp(1 + 0.5 * y)).astype(float)
    else:
        y = y + 0.3 * np.exp(1.0 * X[:, 2] * (kind == "unequal")) * rng.standard_normal(60)
    if kind == "errors":
        y[[5, 17, 40]] += [8.0, -8.0, 9.0]
    path = tmp_path / f"{kind}.parquet"
    pl.DataFrame({f"x{j}": X[:, j] for j in range(4)} | {"y": y}).write_parquet(path)
    return prepared(Request(str(path), "y", task="regression", cv=3)), y


def facts(tmp_path, kind, model):
    problem, y = problem_of(tmp_path, kind)
    return facts_of(studied(problem, model, Settings(given=ONE, baselines=False))), y


def test_gross_errors_are_named(tmp_path):
    found, y = facts(tmp_path, "errors", "robust")
    told = study_json(found)
    assert sorted(each["row"] for each in told["outliers"]) == [5, 17, 40]
    probability = [each["probability"] for each in told["outliers"]]
    assert probability == sorted(probability, reverse=True)
    assert all(0.5 < each <= 1 for each in probability)
    held = dict(zip(found.study.held_out.rows.tolist(), found.study.held_out.mean.tolist(), strict=True))
    for each in told["outliers"]:
        assert each["truth"] == pytest.approx(y[each["row"]])
        assert each["predicted"] == pytest.approx(held[each["row"]])
    assert told["noise_features"] is None
    assert any(each.startswith("3 rows (5") and "gross errors" in each for each in sentences(found))
    page = unescape(html(found))
    assert "Rows that look wrong" in page
    assert "row 17" in page


def test_what_the_noise_depends_on_is_named(tmp_path):
    found, _ = facts(tmp_path, "unequal", "noisy")
    told = study_json(found)
    assert [each["feature"] for each in told["noise_features"]] == ["x2"]
    spread = found.study.X[:, 2].std()
    # The standard deviation is that of exp(x2), so that one sd of the feature multiplies it by exp(sd).
    assert np.log(told["noise_features"][0]["factor"]) == pytest.approx(spread, rel=0.3)
    assert found.noise.terms[0].factor == pytest.approx(np.exp(0.5 * found.model.noise_coef_[2] * spread))
    assert told["outliers"] is None
    assert "What the noise depends on" in unescape(html(found))


def test_models_without_such_parts_say_nothing(tmp_path):
    found, _ = facts(tmp_path, "errors", "ard")
    assert study_json(found)["outliers"] is None
    assert not found.noise.sentences(60)
    assert "Rows that look wrong" not in html(found)


def test_sentences_for_none_one_and_many():
    assert NoiseFacts([], None).sentences(10) == ["No row looks like a gross error of the target."]
    one = [Outlier(3, 0.9, 1.0, 0.0)]
    (told,) = NoiseFacts(one, None).sentences(10)
    assert for_terminal(told) == "1 row (10 %) looks like a gross error of the target: row 3, counted from 0."
    assert "9, …, counted" in NoiseFacts([Outlier(k, 0.9, 1.0, 0.0) for k in range(12)], None).sentences(50)[0]
    assert NoiseFacts(None, []).sentences(10) == ["The noise does not depend on the features."]
    assert "and 2 more" in NoiseFacts(None, [NoiseTerm(f"x{k}", 2.0) for k in range(8)]).sentences(10)[0]


@pytest.mark.parametrize("model", ["poisson", "negbin"])
def test_counts(tmp_path, model):
    found, _ = facts(tmp_path, "counts", model)
    assert {effect.name for effect in found.selection.effects} == {"x0", "x1"}
    (equation,) = found.equations
    assert equation.left == "log of the expected y"
    assert equation.intercept == pytest.approx(found.model.intercept_)
    assert (found.predicted > 0).all()
    assert "log of the expected y" in html(found)


@pytest.mark.parametrize(("kind", "tried"), [("counts", True), ("errors", False)])
def test_models_of_counts_are_compared_where_the_target_is_one(tmp_path, monkeypatch, kind, tried):
    from sparsebayes.app import models

    few = {name: models.MODELS[name] for name in ("poisson", "negbin", "mean")}
    monkeypatch.setattr(models, "MODELS", few)
    problem, _ = problem_of(tmp_path, kind)
    assert problem.size.counts == tried
    found = compared(problem, [], Settings())
    assert {line.model for line in found.scores} == ({"poisson", "negbin", "mean"} if tried else {"mean"})
