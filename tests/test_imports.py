"""Imports point one way, only the outer rooms know scikit-learn, and importing the package stays cheap."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import sparsebayes

SOURCE = Path(sparsebayes.__file__).parent
ROOMS = ("core", "data", "engine", "estimators", "inspection", "io", "app")
"""From the inside out: a room may import itself and those to its left."""
APART = {frozenset({"inspection", "io"})}
"""Rooms side by side, which do not know each other."""
FILES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE)


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0]


def imports(path: Path) -> set[str]:
    """Every module that a file names in an import, wherever that stands, in full."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides what it reaches for"
            assert node.module is not None
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def rooms_reached(path: Path) -> set[str]:
    parts = [name.split(".") for name in imports(path) if name.split(".")[0] == "sparsebayes"]
    return {rest[0] for _, *rest in parts if rest and rest[0] in ROOMS}


def test_every_folder_is_a_known_room():
    assert {room_of(path) for path in FILES} <= set(ROOMS)
    assert {"core", "data", "engine", "estimators"} <= {room_of(path) for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_imports_only_itself_and_rooms_further_in(path):
    room = room_of(path)
    allowed = [other for other in ROOMS[: ROOMS.index(room) + 1] if frozenset({room, other}) not in APART]
    assert rooms_reached(path) <= set(allowed)


STILL_PRIVATE = {
    f"sparsebayes.estimators.{name}"
    for name in (
        "_averaged",
        "_callbacks",
        "_classifier",
        "_heteroscedastic",
        "_joint",
        "_kernel",
        "_linear",
        "_regressor",
    )
}
"""Private modules of estimators that saving and ONNX export read, because they store and rewrite whole fits."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_imports_no_private_name_of_another(path):
    """A name with a leading underscore belongs to its room."""
    names = [name.split(".") for name in imports(path) if name.startswith("sparsebayes.")]
    foreign = [parts for parts in names if parts[1] in ROOMS and parts[1] != room_of(path)]
    private = {".".join(parts[:3]) for parts in foreign if any(part.startswith("_") for part in parts)}
    assert private <= STILL_PRIVATE


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_package_itself_is_imported_only_from_outside(path):
    """`from sparsebayes import …` inside core, data, engine or estimators would be a circle."""
    if room_of(path) in ("core", "data", "engine", "estimators"):
        assert all(name.split(".")[1] in ROOMS for name in imports(path) if name.startswith("sparsebayes."))
        assert "sparsebayes" not in imports(path)


@pytest.mark.parametrize("path", [path for path in FILES if room_of(path) in ("core", "data", "engine")], ids=str)
def test_inner_rooms_do_not_know_scikit_learn(path):
    assert "sklearn" not in {name.split(".")[0] for name in imports(path)}


def test_some_file_really_was_read():
    reached = set().union(*(rooms_reached(path) for path in FILES))
    assert {"core", "data", "engine"} <= reached
    assert any("sklearn" in {name.split(".")[0] for name in imports(path)} for path in FILES)


def loaded_by(statement: str) -> set[str]:
    """Modules that a fresh interpreter holds after the statement."""
    program = f"import sys; sys.path[:0] = {sys.path!r}; {statement}; print(*sys.modules, sep='\\n')"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    return set(result.stdout.split())


@pytest.fixture(scope="module")
def ours() -> set[str]:
    return loaded_by("from sparsebayes import ARDRegressor")


@pytest.fixture(scope="module")
def theirs() -> set[str]:
    return loaded_by("import sklearn.linear_model")


def test_importing_the_package_alone_imports_nothing_but_it():
    """So that `sparsebayes --help` does not wait for scikit-learn."""
    assert {
        name for name in loaded_by("import sparsebayes") if name.startswith(("sparsebayes", "numpy", "sklearn"))
    } == {"sparsebayes"}


def test_every_public_name_is_there_when_asked_for():
    assert sorted(sparsebayes.__all__) == sorted([*sparsebayes._ON_DEMAND, "__version__"])
    for name in sparsebayes.__all__:
        assert getattr(sparsebayes, name) is not None


def test_importing_costs_little_more_than_scikit_learns_linear_models(ours, theirs):
    assert "sparsebayes.core" in ours
    assert len(ours) <= 1.5 * len(theirs)


@pytest.mark.parametrize(
    "heavy", ["matplotlib", "pandas", "polars", "skops", "sparsebayes.app", "sparsebayes.inspection", "sparsebayes.io"]
)
def test_importing_brings_nothing_that_only_some_users_need(heavy, ours, theirs):
    """Beyond what scikit-learn loads by itself where it is installed, which some versions do with pandas."""
    assert not [name for name in ours - theirs if name == heavy or name.startswith(heavy + ".")]
