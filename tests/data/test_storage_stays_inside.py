"""How rows are stored is known in data/ alone: the other rooms ask a design for products, and never for its class."""

import ast
import inspect
import sys
from pathlib import Path

import numpy as np
import pytest
from forms import SHORT_CHAINS
from scipy.sparse import csr_array
from sklearn.base import clone

import sparsebayes
from sparsebayes import ARDRegressor, Moments, RVMRegressor, read_blocks
from sparsebayes.data import blocks, dense, design, formed, lowrank, moment_rows, on_the_fly, sparse
from sparsebayes.data.on_the_fly import OnTheFly

SOURCE = Path(sparsebayes.__file__).parent
STORAGE = frozenset({"X", "mean", "scale"})
MODULES = (blocks, dense, design, formed, lowrank, moment_rows, on_the_fly, sparse)
CLASSES = {
    name
    for module in MODULES
    for name, thing in vars(module).items()
    if inspect.isclass(thing) and thing.__module__ == module.__name__
}


def names_in(node):
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)} | {
        each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)
    }


def asked_for_its_class(path):
    """Classes of data/ that a file hands to isinstance, issubclass or type() comparisons."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in ("isinstance", "issubclass"):
                found |= names_in(node.args[1]) & CLASSES
        elif isinstance(node, ast.Compare | ast.MatchClass):
            found |= names_in(node) & CLASSES
    return found


def test_no_room_asks_a_design_for_its_class():
    assert {"DenseRows", "SparseRows", "LowRankRows", "MomentRows", "FormedColumns", "Design"} <= CLASSES
    outside = [path for path in SOURCE.rglob("*.py") if path.parent.name != "data"]
    assert len(outside) > 100
    assert {path.name: asked_for_its_class(path) for path in outside if asked_for_its_class(path)} == {}


@pytest.fixture
def readers(monkeypatch):
    """Places outside data/ that read how a design stores its rows, noted while the test runs."""
    found = set()

    def noting(self, name):
        if name in STORAGE:
            reader = sys._getframe(1)
            path = Path(reader.f_code.co_filename)
            if path.is_relative_to(SOURCE) and path.parent.name != "data":
                found.add(f"{path.name}:{reader.f_lineno} reads .{name} of {type(self).__name__}")
        return object.__getattribute__(self, name)

    monkeypatch.setattr(OnTheFly, "__getattribute__", noting)
    return found


def test_a_reader_outside_is_noted(readers):
    rows = dense.DenseRows.of(np.eye(3))
    exec(compile("rows.X", str(SOURCE / "engine" / "search.py"), "exec"), {"rows": rows})
    exec(compile("rows.scale", str(SOURCE / "data" / "dense.py"), "exec"), {"rows": rows})
    assert readers == {"search.py:1 reads .X of DenseRows"}


@pytest.mark.filterwarnings("ignore:not converged", "ignore:the noise variance reached its floor")
def test_no_fit_reads_how_rows_are_stored(every, data_for, readers):
    X, y = data_for(every, n=40, d=4, n_true=2)
    clone(every).fit(X, y).predict(X)
    assert readers == set()


@pytest.mark.filterwarnings("ignore:not converged")
def test_no_fit_reads_how_sparse_rows_are_stored(default_selector, data_for, readers):
    X, y = data_for(default_selector, n=40, d=4, n_true=2)
    known = default_selector.get_params()
    short = {name: value for name, value in SHORT_CHAINS.items() if name in known}
    clone(default_selector).set_params(**short).fit(csr_array(X), y)
    assert readers == set()


@pytest.mark.parametrize("noise", ["student", "outliers", "heteroscedastic"])
@pytest.mark.parametrize("options", [{"average": False}, SHORT_CHAINS], ids=["one", "averaged"])
def test_no_robust_fit_reads_how_rows_are_stored(make_data, readers, noise, options):
    X, y = make_data(40, 4, n_true=2)
    for rows in (X, csr_array(X)):
        ARDRegressor(noise=noise, **options).fit(rows, y)
    assert readers == set()


def test_no_other_way_to_fit_reads_how_rows_are_stored(make_data, readers, rng, monkeypatch):
    X, y = make_data(40, 4, n_true=2)
    ARDRegressor(average=False).fit_moments(Moments.of(X, y))
    ARDRegressor(average=False, multi_output="joint").fit(X, np.column_stack([y, -y]))
    ARDRegressor(average=False).fit_blocks(read_blocks(X, y))
    monkeypatch.setattr("sparsebayes.estimators._kernel_design.LARGE", 30)
    RVMRegressor(gamma=0.1, vectors="sparse").fit(X[:, :1], y)
    assert readers == set()
