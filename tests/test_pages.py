"""The pages of the site: their code runs, nothing public is missing, and answers are at most two clicks away."""

import re
import runpy
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
from test_documents import ROOT, python_blocks

import sparsebayes
from sparsebayes import inspection
from sparsebayes.estimators import ESTIMATORS
from sparsebayes.estimators._averaging import MAX_RANK, WIDEST
from sparsebayes.estimators.logistic import LARGEST, TALL

DOCS = ROOT / "docs"
ELSEWHERE = {"CONTRIBUTING", "counts", "groups", "inspection", "noise", "outliers", "outputs", "positive", "progress"}
ELSEWHERE |= {"interoperation", "saving", "scaling", "which_features"}
"""Pages whose code other tests run, because they also compare what it gives."""
WITH_CODE = [path.stem for path in sorted(DOCS.glob("*.md")) if python_blocks(path.relative_to(ROOT))]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs all Python blocks of a page in one namespace, in an empty folder."""

    def blocks(page):
        namespace = {}
        for code in python_blocks(f"docs/{page}.md"):
            exec(code, namespace)
        return namespace

    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    yield blocks
    plt.close("all")


@pytest.mark.parametrize("page", sorted({*WITH_CODE} - ELSEWHERE - {"index", "tutorial"}))
def test_the_code_of_a_page_runs(page, run):
    assert run(page)


def test_what_is_run_elsewhere_is_run_there():
    tests = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py") if path != Path(__file__))
    for page in ELSEWHERE:
        assert re.search(rf"\b{page}\b", tests), page


def test_the_start_page_has_the_lines_of_the_readme():
    """Those are run, and their answer compared."""
    (start,), (readme,) = python_blocks("docs/index.md"), python_blocks("README.md")
    lines = [[line.split("#")[0].rstrip() for line in code.splitlines()] for code in (start, readme)]
    assert lines[0] == lines[1][: len(lines[0])]


def test_the_tutorial_says_what_comes_out(run):
    names = run("tutorial")
    model = names["model"]
    assert list(model.get_feature_names_out()) == ["bmi", "s5"]
    claims = dict(zip(names["X"].columns, model.inclusion_probability_, strict=True))
    told = {"bmi": 1.0, "s5": 1.0, "bp": 0.89, "s3": 0.71, "sex": 0.66, "s1": 0.57}
    assert {name: claims[name] for name in told} == pytest.approx(told, abs=0.07)  # what the chains' error allows
    assert names["inside"] == pytest.approx(0.89, abs=0.02)
    assert model.score(names["X_test"], names["y_test"]) == pytest.approx(0.41, abs=0.01)
    assert names["curve"].score(names["X_test"], names["y_test"]) == pytest.approx(0.42, abs=0.02)
    assert model.n_features_posterior_.argmax() == 6
    assert list(names["classifier"].get_feature_names_out()) == ["bmi", "s5"]
    assert model.chain_error_ < 0.07


def test_the_reference_has_every_public_name():
    listed = set(re.findall(r"^   (\w+)$", (DOCS / "api.md").read_text(), flags=re.MULTILINE))
    assert listed == {*sparsebayes.__all__, *inspection.__all__} - {"__version__"}


def test_the_choice_has_every_estimator_and_the_seconds_that_are_measured():
    chooser = runpy.run_path(str(DOCS / "figures" / "chooser.py"))
    page = (DOCS / "which_estimator.md").read_text()
    pictured = " ".join(call for _, leaves in chooser["TREE"] for _, call, _ in leaves)
    table = page.split("## The table")[1].split("## Seconds")[0]
    for cls in ESTIMATORS:
        assert cls.__name__ in pictured
        assert f"`{cls.__name__}" in table
    told = re.findall(r"^\| `(\w+\(.*?\))` \|", page.split("## Seconds")[1], flags=re.MULTILINE)
    assert told == [repr(model).replace("'", '"') for model, *_ in chooser["SECONDS"]]


def test_the_size_limits_are_those_of_the_code():
    page = (DOCS / "which_estimator.md").read_text()
    assert f"averages up to {WIDEST:,} features, if rows or features are {MAX_RANK:,} or fewer" in page
    assert f"averages up to {LARGEST:,} numbers in X, or from {TALL} rows per feature on" in page


def pages_linked_from(page):
    """Names of the pages that a page links to, by text or by its list of contents."""
    text = page.read_text()
    links = re.findall(r"\]\((?:\.\./)?([\w/]+)\.(?:md|rst)", text)
    contents = [line for part in re.findall(r"```\{toctree\}(.*?)```", text, flags=re.DOTALL) for line in part.split()]
    return {link.lower() for link in [*links, *contents] if ":" not in link}


def within_two_clicks(without=()):
    """Pages at most two links from the start page; the pages `without` lead nowhere."""
    near = pages_linked_from(DOCS / "index.md")
    there = [DOCS / f"{name}.md" for name in near - set(without)]
    return near.union(*(pages_linked_from(page) for page in there if page.exists()))


QUESTIONS = re.findall(
    r"^\d+\. \*\*(.+?)\*\*(.+?)(?=^\d+\. |\Z)", (DOCS / "questions.md").read_text(), flags=re.M | re.S
)


def test_there_are_ten_questions():
    assert len(QUESTIONS) == 10


@pytest.mark.parametrize(("question", "answer"), QUESTIONS, ids=[question[:40] for question, _ in QUESTIONS])
def test_a_newcomers_question_is_answered_two_clicks_away(question, answer):
    """Another test of all links finds the sections; here, that a reader does, even without the list of questions."""
    links = re.findall(r"\]\((?:\.\./)?(\w+)\.md(#[\w-]+)?\)", answer)
    assert links
    assert all(anchor for _, anchor in links)
    assert {page.lower() for page, _ in links} <= within_two_clicks(without={"questions"})


def cells(text, command):
    """Columns of the first table below a command, by the words at their top; the first cell of each row by its code."""
    table = text.split(command)[1].split("\n\n")[1].splitlines()
    head, _, *rows = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in table]
    return {
        (re.sub(r".*(`.+`).*", r"\1", row[0]), name): cell
        for row in rows
        for name, cell in zip(head, row, strict=True)
        if name
    }


def test_the_numbers_of_the_readme_are_those_of_the_benchmarks():
    command = "python benchmarks/averaging.py --only designs --seeds 6"
    short, long = (cells((ROOT / page).read_text(), command) for page in ("README.md", "docs/benchmarks.md"))
    long |= {(row, "claims that are true"): long[row, "claimed features that are true"] for row, _ in list(long)}
    assert len(short) == 15
    assert short.items() <= long.items()


def test_the_readme_fits_on_a_page():
    text = (ROOT / "README.md").read_text()
    first_screen = text.splitlines()[:30]
    assert len(text.splitlines()) <= 80
    assert "<!-- main command -->" in first_screen
    assert "<!-- test command -->" in first_screen
    assert len(re.findall(r"^!\[", text, flags=re.MULTILINE)) == 1
