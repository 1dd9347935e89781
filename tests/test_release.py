"""What a release says in several places is the same everywhere (docs/releasing.md)."""

import re
import shlex
import tomllib
from datetime import date

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version
from test_documents import ROOT

import sparsebayes

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
EXTRAS = PROJECT["optional-dependencies"]


def requirements(*extras):
    """Lower bounds of what the package and these extras need, extras of extras too."""
    bounds = {}
    wanted, seen = [*PROJECT["dependencies"], *(line for extra in extras for line in EXTRAS[extra])], set(extras)
    while wanted:
        requirement = Requirement(wanted.pop())
        if requirement.name == "sparsebayes":
            new = requirement.extras - seen
            wanted += [line for extra in new for line in EXTRAS[extra]]
            seen |= new
            continue
        (bound,) = requirement.specifier
        assert bound.operator == ">=", f"{requirement}: the newest versions are tried, so there is no upper bound"
        bounds[requirement.name] = max(bounds.get(requirement.name, Version("0")), Version(bound.version))
    return bounds


def steps(workflow):
    return [step for job in yaml.safe_load(workflow.read_text())["jobs"].values() for step in job["steps"]]


# --- numbers ---


def test_the_version_is_the_last_of_the_changelog_and_that_of_the_citation():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    number, day = re.findall(r"^## \[(\d[^\]]*)\] - (\S+)$", changelog, flags=re.MULTILINE)[0]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    recipe = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text())
    assert sparsebayes.__version__ == number == str(citation["version"]) == recipe["context"]["version"]
    assert date.fromisoformat(day) == citation["date-released"]
    assert changelog.count("## [Unreleased]") == 1
    assert f"compare/v{number}...HEAD" in changelog
    assert f"[{number}]: " in changelog


def test_the_oldest_versions_are_those_of_the_constraints():
    lines = (ROOT / "tests/oldest.txt").read_text().splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert {name: Version(number) for name, number in tested.items()} == requirements("test")


def test_the_recipe_asks_for_what_the_package_asks_for():
    recipe = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text())
    asked = {}
    for line in recipe["requirements"]["run"]:
        name, _, bound = line.partition(" >=")
        if name != "python":
            asked[name.removesuffix("-base")] = Version(bound)
    assert asked == requirements("app")
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert {line.replace(" ", "") for line in recipe["requirements"]["host"]} >= set(build)


def test_every_dependency_is_explained():
    text = (ROOT / "docs/dependencies.md").read_text()
    for extra, lines in EXTRAS.items():
        assert f"| `{extra}` |" in text, extra
        for name in {Requirement(line).name for line in lines} - {"sparsebayes"}:
            assert re.search(rf"\b{name}\b", text), name
    for name in requirements():
        assert re.search(rf"^\| {name} \|", text, flags=re.MULTILINE), name


def test_the_python_versions_agree():
    supported = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert PROJECT["requires-python"] == f">={supported[0]}"
    matrix = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == supported


# --- workflows ---


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_only_read_and_names_what_is_there(workflow):
    text = workflow.read_text()
    parsed = yaml.safe_load(text)
    assert parsed["permissions"] == {"contents": "read"}
    assert "concurrency" in parsed
    assert all("timeout-minutes" in job for job in parsed["jobs"].values())
    for path in re.findall(r"\b(?:tests|docs|src)/[\w./]*\w", text):
        assert "_build" in path or (ROOT / path).exists(), path
    for extras in re.findall(r"'\.\[(.*?)\]'", text):
        assert set(extras.split(",")) <= set(EXTRAS), extras
    assert all(re.search(r"@(release/)?v\d", step["uses"]) for step in steps(workflow) if "uses" in step)


def test_only_the_job_that_publishes_may_write():
    jobs = yaml.safe_load((ROOT / ".github/workflows/wheels.yml").read_text())["jobs"]
    assert [name for name, job in jobs.items() if "permissions" in job] == ["publish"]
    assert set(jobs["publish"]["needs"]) == set(jobs) - {"publish"}
    assert "refs/tags/v" in jobs["publish"]["if"]


def test_the_site_is_built_in_the_same_way_everywhere():
    there = yaml.safe_load((ROOT / ".readthedocs.yaml").read_text())
    (elsewhere,) = there["build"]["jobs"]["build"]["html"]
    (here,) = [step["run"] for step in steps(ROOT / ".github/workflows/docs.yml") if "sphinx" in step.get("run", "")]
    assert shlex.split(here)[:-1] == shlex.split(elsewhere)[:-1]
    assert there["python"]["install"][0]["extra_requirements"] == ["docs"]


def test_issue_forms_have_names_and_unique_ids():
    for form in sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")):
        parsed = yaml.safe_load(form.read_text())
        if form.stem == "config":
            assert not parsed["blank_issues_enabled"]
            continue
        ids = [field["id"] for field in parsed["body"]]
        assert parsed["name"]
        assert len(ids) == len(set(ids))
