"""The report says what the study says, in a page that stands by itself."""

import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy.stats import t
from sklearn.metrics import confusion_matrix, r2_score

from sparsebayes.app.facts import facts_of
from sparsebayes.app.report import page as report
from sparsebayes.app.report.figures import POINTS
from sparsebayes.app.report.what_matters import MOST
from sparsebayes.app.words import NO_BREAK, chance, percent, plus_minus

LIMIT = 300_000
"""Bytes."""
VOID = {"meta", "link", "br", "img", "input", "hr"}
HALF_A_DIGIT = 0.006
"""Relative: numbers are written with three digits, so the last is off by half of one in a hundred at most."""


class Page(HTMLParser):
    """A page as a tree; a tag that is closed in the wrong place is an error."""

    def __init__(self, text):
        super().__init__()
        self.open, self.builder = [], ET.TreeBuilder()
        self.feed(text)
        self.close()
        assert not self.open
        self.tree = self.builder.close()

    def handle_starttag(self, tag, attrs):
        keys = [key for key, _ in attrs]
        assert len(set(keys)) == len(keys), (tag, keys)
        self.builder.start(tag, {key: value or "" for key, value in attrs})
        if tag in VOID:
            self.builder.end(tag)
        else:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        self.builder.end(tag)

    def handle_data(self, data):
        if self.open:
            self.builder.data(data)


def parsed(text):
    return Page(text).tree


def words(element):
    return " ".join("".join(element.itertext()).split())


def section(tree, which):
    (found,) = [element for element in tree.iter("section") if element.get("id") == which]
    return found


def table_of(element, k=0):
    """The k-th table as a list of dicts, column by column."""
    table = list(element.iter("table"))[k]
    columns = [words(cell) for cell in table.find("thead").iter("th")]
    return [dict(zip(columns, map(words, row), strict=True)) for row in table.find("tbody")]


def numbers(text):
    """The numbers in a text."""
    text = text.replace("−", "-").replace(",", "")
    return [float(found) for found in re.findall(r"[+-]?\d+(?:\.\d+)?", text)]


# --- every report ---


def test_it_is_small(any_name, page):
    assert len(page(any_name).encode()) < LIMIT


def test_it_is_well_formed_and_its_references_lead_somewhere(any_name, page):
    tree = parsed(page(any_name))
    ids = [element.get("id") for element in tree.iter() if element.get("id")]
    assert len(set(ids)) == len(ids)
    referred = {element.get("href")[1:] for element in tree.iter() if element.get("href", "").startswith("#")}
    for key in ("aria-labelledby", "aria-describedby"):
        referred |= {element.get(key) for element in tree.iter() if element.get(key)}
    referred |= set(re.findall(r"url\(#([^)]+)\)", page(any_name)))
    assert len(referred) > 10
    assert referred <= set(ids)


def test_it_asks_for_nothing_and_runs_nothing(any_name, page):
    tree = parsed(page(any_name))
    tags = {element.tag for element in tree.iter()}
    assert not tags & {"script", "img", "iframe", "object", "embed", "base", "form", "foreignobject", "image"}
    for element in tree.iter():
        assert not [key for key in element.attrib if key.startswith("on") or key in ("src", "srcset", "action")]
        assert element.get("href", "#").startswith(("#", "data:,"))
    style = words(next(tree.iter("style")))
    assert "@import" not in style
    assert "url(" not in style
    assert "http" not in re.sub(r'http://www\.w3\.org/\d+/svg"', "", page(any_name))


def test_its_sections_stand_in_this_order(any_name, page, study):
    tree = parsed(page(any_name))
    order = [element.get("id") for element in tree.iter("section")]
    outcome = "confusion" if study(any_name).classes else "predicted"
    everything = [
        "summary",
        "relevance",
        "choice",
        "evidence",
        outcome,
        "calibration",
        "stability",
        "comparison",
        "kept",
        "provenance",
    ]
    optional = {"stability"} if not study(any_name).kept_by_fold.size else set()
    averaged = hasattr(study(any_name).pipeline[-1], "inclusion_probability_")
    assert ("choice" in order) == averaged
    optional |= set() if averaged else {"choice"}
    optional |= set() if len(getattr(study(any_name).pipeline[-1], "evidence_path_", [])) else {"evidence"}
    assert order == [part for part in everything if part in order]
    assert set(everything) - set(order) <= optional
    assert [element.get("href") for element in next(tree.iter("nav")).iter("a")] == [f"#{part}" for part in order[1:]]


def test_every_picture_has_words_and_a_table(any_name, page):
    tree = parsed(page(any_name))
    by_id = {element.get("id"): element for element in tree.iter()}
    pictured = [part for part in tree.iter("section") if part.find("figure") is not None]
    assert len(pictured) >= 3
    assert sum(1 for _ in tree.iter("svg")) == len(pictured)
    for part in pictured:
        picture = part.find("figure").find("svg")
        assert picture.get("role") == "img"
        assert words(by_id[picture.get("aria-labelledby")])
        assert len(words(by_id[picture.get("aria-describedby")])) > 20
        details = part.find("details")
        assert words(details.find("summary"))
        assert table_of(details)


def test_it_can_be_found_one_s_way_around_in(any_name, page):
    tree = parsed(page(any_name))
    assert tree.get("lang") == "en"
    assert any(element.get("name") == "viewport" for element in tree.iter("meta"))
    first = next(tree.iter("a"))
    assert (first.get("class"), first.get("href")) == ("skip", "#summary")
    levels = [int(element.tag[1]) for element in tree.iter() if re.fullmatch("h[1-6]", element.tag)]
    assert levels[:2] == [1, 2]
    assert levels.count(1) == 1
    assert max(np.diff(levels)) == 1
    for table in tree.iter("table"):
        assert table.find("caption") is not None
        assert {cell.get("scope") for cell in table.iter("th")} == {"col", "row"}


def test_its_pictures_take_the_colours_of_the_page(any_name, page):
    pictures = re.findall(r"<svg.*?</svg>", page(any_name), flags=re.DOTALL)
    assert all("var(--ink)" in picture for picture in pictures)
    assert not [
        colour for picture in pictures for colour in re.findall(r"#[0-9a-fA-F]{6}\b|: ?(?:black|white)", picture)
    ]
    assert not [picture for picture in pictures if "<metadata" in picture or "matplotlib" in picture]


def test_the_same_study_gives_the_same_bytes(page, study, tmp_path):
    target = tmp_path / "report.html"
    target.write_text("what was there before")
    report.write(facts_of(study("multiclass")), target)
    assert target.read_bytes().decode() == page("multiclass")
    with pytest.raises(FileNotFoundError):
        report.write(facts_of(study("multiclass")), tmp_path / "nowhere" / "report.html")


# --- the numbers ---


@pytest.mark.parametrize("which", ["regression", "binary", "multiclass", "feature weights", "fold missing"])
def test_the_comparison_is_that_of_the_study(which, page, study):
    made = study(which)
    rows = table_of(section(parsed(page(which)), "comparison"))
    assert [row["model"] for row in rows] == ["Our model (sparsebayes) (this model)"] + [
        s.title for s in made.scores[1:]
    ]
    unit = 100 if made.classes else 1
    n = len(np.unique(made.held_out.fold))
    for row, score in zip(rows[:3], made.scores, strict=False):
        np.testing.assert_allclose(numbers(row["error"]), [unit * score.error, unit * score.error_se], rtol=0.06)
        assert numbers(row["error"])[0] == pytest.approx(unit * score.error, rel=HALF_A_DIGIT)
        assert row["time"] == "0.25 s"
    for row, score in zip(rows[1:3], made.scores[1:], strict=False):
        middle, low, high = numbers(row["difference (95 % interval)"])
        half = t.ppf(0.975, n - 1) * score.difference_se
        assert middle == pytest.approx(unit * score.difference, rel=HALF_A_DIGIT)
        np.testing.assert_allclose([low, high], unit * (score.difference + np.array([-half, half])), rtol=0.06)
    assert numbers(rows[0]["log score (nats)"])[0] == pytest.approx(made.scores[0].log_score, rel=HALF_A_DIGIT)
    assert rows[1]["log score (nats)"] == "–"
    assert rows[3]["error"] == "failed: would take too long: <b>12,000</b> rows"


def answers(tree):
    return [words(article) for article in section(tree, "summary").iter("article")]


@pytest.mark.parametrize("which", ["regression", "vectors", "many rows", "fold missing"])
def test_the_summary_of_a_regression(which, page, study):
    made = study(which)
    held = made.held_out
    good, sure, _ = answers(parsed(page(which)))
    explained = 100 * r2_score(held.truth, held.mean)
    if explained > 0:
        assert numbers(good)[0] == pytest.approx(explained, abs=0.51)
    else:
        assert good.startswith("How good? None of the variance")
    assert plus_minus(made.scores[0].error, made.scores[0].error_se).replace("\xa0", " ") in good
    # Degrees of freedom: the rows of a training part less what the weights take, which is what all rows give but for
    # the share of a fold; a quantile of Student's hardly depends on them here.
    freedom = made.pipeline[-1].degrees_of_freedom_ * 0.8
    within = np.abs(held.truth - held.mean) <= t.ppf(0.95, freedom) * held.std
    assert f"How sure? {100 * within.mean():.0f} %" in sure


@pytest.mark.parametrize("which", ["binary", "multiclass", "vectors of classes"])
def test_the_summary_of_classes_and_the_confusions(which, page, study):
    made = study(which)
    p = made.held_out.probabilities
    predicted = np.array(made.classes)[p.argmax(axis=1)]
    tree = parsed(page(which))
    good, sure, _ = answers(tree)
    assert f"How good? {percent(1 - made.scores[0].error)}".replace("\xa0", " ") in good
    assert f"How sure? {percent(p.max(axis=1).mean())}".replace("\xa0", " ") in sure
    assert f"{percent(np.mean(predicted == made.y))} of".replace("\xa0", " ") in sure
    rows = table_of(section(tree, "confusion"))
    shown = [[int(row[str(label)]) for label in made.classes] for row in rows]
    np.testing.assert_array_equal(shown, confusion_matrix(made.y, predicted, labels=made.classes))


def test_of_many_classes_the_confusions_are_listed(page, study):
    made = study("many classes")
    predicted = np.array(made.classes)[made.held_out.probabilities.argmax(axis=1)]
    matrix = confusion_matrix(made.y, predicted, labels=made.classes)
    np.fill_diagonal(matrix, 0)
    rows = table_of(section(parsed(page("many classes")), "confusion"))
    for row in rows:
        assert int(numbers(row["rows"])[0]) == matrix[int(row["true class"]), int(row["predicted class"])]
    assert numbers(rows[0]["rows"])[0] == matrix.max()


@pytest.mark.parametrize(("std", "words_"), [(0.3, "too narrow"), (1.0, "can be trusted"), (4.0, "wider than")])
def test_a_model_that_is_too_sure_is_called_so(std, words_, study):
    made = study("regression")
    held = replace(made.held_out, std=std * made.held_out.std)
    assert words_ in answers(parsed(report.html(facts_of(replace(made, held_out=held)))))[1]


@pytest.mark.parametrize(("power", "words_"), [(8.0, "too confident"), (0.05, "not confident enough")])
def test_probabilities_that_are_too_bold_are_called_so(power, words_, study):
    made = study("multiclass")
    p = made.held_out.probabilities**power
    held = replace(made.held_out, probabilities=p / p.sum(axis=1, keepdims=True))
    assert words_ in answers(parsed(report.html(facts_of(replace(made, held_out=held)))))[1]


@pytest.mark.parametrize(("sign", "told"), [(1, "clearly worse"), (-1, "clearly better"), (0, "not clearly different")])
def test_the_best_of_the_others_is_judged_by_its_interval(sign, told, study):
    made = study("regression")
    other = replace(made.scores[1], difference=sign * 10.0, difference_se=2.0, error=1.0)
    page = parsed(report.html(facts_of(replace(made, scores=[made.scores[0], other]))))
    assert f"Ridge, penalty by evidence is {told}" in answers(page)[0]


@pytest.mark.parametrize("which", ["single", "binary"])
def test_the_kept_features_are_those_of_the_model(which, page, study):
    made = study(which)
    model, spread = made.pipeline[-1], made.pipeline[:-1].transform(made.X).std(axis=0)
    weight = np.ravel(model.coef_) * spread
    std = np.sqrt(np.diag(model.covariance_))[: len(model.active_)] * spread[model.active_]
    rows = table_of(section(parsed(page(which)), "kept"))
    order = np.argsort(-np.abs(weight))[: np.count_nonzero(weight)]
    assert [row["feature"] for row in rows] == [made.features[j] for j in order]
    for row, j in zip(rows, order, strict=True):
        assert numbers(row["size"])[0] == pytest.approx(weight[j], rel=HALF_A_DIGIT)
        assert row["sign"] == ("▲ raises" if weight[j] > 0 else "▼ lowers")
        low, high = numbers(row["95 % interval"])
        half = (high - low) / 2 / std[list(model.active_).index(j)]
        assert 1.9 < half < 2.1  # the normal quantile, or Student's for some 80 degrees of freedom
        assert row["folds"] == f"{made.kept_by_fold[:, j].sum()} of {len(made.kept_by_fold)}"
    stable = {row["feature"]: row["folds"] for row in table_of(section(parsed(page(which)), "stability"))}
    assert stable == {
        made.features[j]: f"{n} of 5" for j, n in enumerate(made.kept_by_fold.sum(axis=0)) if n or j in order
    }


def test_the_claimed_features_are_those_of_the_model(page, study):
    made = study("regression")
    model, spread = made.pipeline[-1], made.pipeline[:-1].transform(made.X).std(axis=0)
    tree = parsed(page("regression"))
    rows = {row["feature"]: row for row in table_of(section(tree, "kept"))}
    assert set(rows) == {made.features[j] for j in model.active_}
    for j in model.active_:
        row = rows[made.features[j]]
        assert row["probability"] == chance(model.inclusion_probability_[j]).replace(NO_BREAK, " ")
        assert numbers(row["size"])[0] == pytest.approx(model.coef_[j] * spread[j], rel=HALF_A_DIGIT)
        assert numbers(row["95 % interval"]) == pytest.approx(model.coef_interval(0.95)[j] * spread[j], rel=0.02)
        assert row["folds"] == f"{made.kept_by_fold[:, j].sum()} of {len(made.kept_by_fold)}"
    text = words(tree)
    for wrong in ("keeps", "Nearly kept", "nats of evidence to be kept", "assume that the kept"):
        assert wrong not in text
    n = len(model.active_)
    assert f"it claims {n} of 8 features." in words(section(tree, "summary"))
    assert "averaging over models starts" in words(section(tree, "evidence"))
    assert "each fitted without one fold, claim" in words(section(tree, "stability"))


def test_a_single_model_keeps_its_words(page):
    text = words(parsed(page("single")))
    assert "it keeps 3 of 8 features." in text
    assert "The intervals assume that the kept features are the right ones." in text
    assert "Its maximum decides what to keep." in text
    for wrong in ("claim", "inclusion probability", "credible set"):
        assert wrong not in text


def test_credible_sets_are_listed_with_the_picture(page, study):
    model = study("correlated").pipeline[-1]
    (three,) = [found for found in model.credible_sets_ if len(found.features) > 1]
    tree = parsed(page("correlated"))
    choice = section(tree, "choice")
    assert len(list(choice.iter("svg"))) == 1
    rows = table_of(choice)
    assert len(rows) == len(model.credible_sets_)
    (row,) = [row for row in rows if " and " in row["credible set"]]
    assert {name for name in study("correlated").features if name in row["credible set"]} == {
        f"feature {j}" for j in three.features
    }
    assert row["probability of at least one"] == chance(three.probability).replace(NO_BREAK, " ")
    assert float(row["smallest correlation"]) == pytest.approx(three.purity, abs=0.006)
    assert f"One of these {len(three.features)}, " in answers(tree)[2]
    assert "In the model: " in answers(tree)[2]


def test_nothing_claimed_is_said(page, study):
    assert not len(study("noise").pipeline[-1].active_)
    tree = parsed(page("noise"))
    assert "it claims none of 5 features" in words(section(tree, "summary"))
    assert "so none is claimed" in words(section(tree, "relevance"))
    assert "No feature has an inclusion probability of 90 % or more." in words(section(tree, "kept"))
    assert "the same for all rows" not in words(tree)


def test_the_evidence_ends_where_that_of_the_model_does(page, study):
    rows = table_of(section(parsed(page("regression")), "evidence"))
    path = study("regression").pipeline[-1].evidence_path_
    assert numbers(rows[-1]["log evidence (nats)"])[0] == pytest.approx(path[-1], rel=1e-5)
    assert int(rows[-1]["step"]) == len(path)


def test_where_it_comes_from(page, study):
    made = study("fold missing")
    found = {
        words(row.find("dt")): words(row.find("dd"))
        for row in section(parsed(page("fold missing")), "provenance").find("dl")
    }
    assert found["Data"] == "table.csv"
    assert found["Rows"] == f"{len(made.y)}, {len(made.held_out.rows)} of them predicted"
    assert found["Features"] == "8, 1 value missing and imputed"
    assert found["Cross-validation"] == "4 of 5 folds, seed 7"
    assert found["Version"] == "sparsebayes 1.2.3"
    assert "sparsebayes fit table.csv --target outcome --model ours --cv 5 --seed 7" in found["Command"]
    assert found["Warnings"] == "none"


# --- the unusual ---


def test_nothing_kept_is_said(page):
    tree = parsed(page("nothing"))
    assert "it keeps none of 3 features" in words(section(tree, "summary"))
    assert "0 of 3" in answers(tree)[2]
    assert "Nothing was kept" in words(section(tree, "kept"))


def test_of_many_rows_some_are_drawn(page, study):
    picture = section(parsed(page("many rows")), "predicted").find("figure").find("svg")
    drawn = list(picture.iter("use"))
    assert POINTS <= len(drawn) < POINTS + 40  # the points, the ticks and the signs of the legend
    assert "400 of the rows are drawn" in page("many rows")
    assert "20,000" in page("many rows")


def test_of_many_features_the_largest_are_listed(page, study):
    tree = parsed(page("all kept"))
    assert len(table_of(section(tree, "kept"))) == MOST
    assert f"The {MOST} largest of 400 features are listed." in words(section(tree, "kept"))


def test_a_warning_is_seen_at_the_top_and_told_once(page):
    tree = parsed(page("vectors"))
    assert "Note: there was a warning" in words(section(tree, "summary"))
    assert page("vectors").count("fold 2: raise max_iter") == 1


def test_names_from_the_data_are_text(page):
    text = page("hostile")
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f]", text)
    everything = words(parsed(text))
    assert "<script>alert(1)</script>" in everything
    assert "</style></title>{{ 7 * 7 }}" in everything
    assert "$\\frac{1}{2}$ & <b>bold</b>" in everything


def test_the_extra_is_named_where_it_is_missing(monkeypatch, study):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"sparsebayes\[app\]"):
        report.html(facts_of(study("nothing")))
