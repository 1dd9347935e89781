"""The compiled form of settling and of the pass over candidates: the models, numbers and manners of the NumPy form."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sparsebayes.engine.bernoulli import BernoulliProblem, Contact, Mode
from sparsebayes.engine.linearised import Model
from sparsebayes.engine.settling import CompiledSettler, Settler

import sparsebayes
from sparsebayes.data.dense import DenseRows
from sparsebayes.data.lowrank import LowRankRows
from sparsebayes.engine import compiled, rvc, settling, slr
from sparsebayes.engine.loop import Settings

pytestmark = pytest.mark.skipif(compiled.Settler is None, reason="the compiled module is not there, or switched off")

TOL = 1e-6
EXACTLY = Settings(TOL, 1000)
INFERENCES = ("laplace", "variational")


def kernel(X, Z, gamma=4.0):
    return np.exp(-gamma * ((X[:, None] - Z[None]) ** 2).sum(axis=-1))


def classes(n, seed=0, spread=0.17):
    """Two classes in the plane, each a mixture of two Gaussians."""
    rng = np.random.default_rng(seed)
    t = (np.arange(n) % 2).astype(np.float64)
    centres = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
    return centres[t.astype(int), rng.integers(0, 2, n)] + spread * rng.standard_normal((n, 2)), t


@pytest.fixture
def make_problem():
    """Kernel columns on two overlapping classes, by default with a flat intercept."""

    def make(n=70, seed=0, *, spread=0.17, flat=True, weighted=False, a=0.0, b=0.0, least_alpha=1e-6):
        X, t = classes(n, seed, spread)
        Phi = kernel(X, X)
        weight = np.random.default_rng(1).integers(1, 4, n).astype(np.float64) if weighted else np.ones(n)
        rows = DenseRows.of(Phi if flat else np.column_stack([Phi, np.ones(n)]))
        rows = rows.standardised(weight, centre=flat).unweighted()
        return BernoulliProblem(rows, t, weight, flat, 0.0, a, np.full(rows.n_columns, b), least_alpha)

    return make


@pytest.fixture
def both(monkeypatch):
    """Runs the search in both forms, holds each step of one to that of the other, returns the compiled form's end."""

    def run(problem, inference, settings=EXACTLY, near=None):
        found = rvc.solve(problem, inference, settings, near)
        with monkeypatch.context() as patch:
            patch.setattr(compiled, "Settler", None)
            expected = rvc.solve(problem, inference, settings, near)
        ours, theirs = found.trace.infos, expected.trace.infos
        assert [(info.action, info.n_active) for info in ours] == [(info.action, info.n_active) for info in theirs]
        assert_array_equal(found.active, expected.active)
        assert found.converged == expected.converged
        # The end is settled until a turn moves the evidence by less than TOL; so nearly are the two alike.
        close = {"rtol": 0, "atol": TOL}
        assert_allclose(found.trace.objective, expected.trace.objective, **close)
        assert_allclose([info.change for info in ours], [info.change for info in theirs], rtol=1e-4, atol=TOL)
        assert [info.jitter for info in ours] == [info.jitter for info in theirs]
        assert_allclose(found.log_evidence, expected.log_evidence, **close)
        assert_allclose(np.log(found.alpha), np.log(expected.alpha), atol=np.sqrt(TOL))
        assert_allclose(found.worth, expected.worth, atol=1e-4 * expected.worth.max(initial=1.0))
        return found

    return run


def settled_by_both(problem, model, tol):
    """One model, settled by both forms; the NumPy form's first."""
    Phi = Settler(problem).formed(model.active)
    return [form(problem).settle(model, Phi, tol) for form in (Settler, CompiledSettler)]


def assert_same(expected, found):
    """Turn for turn the same operations: rounding, times the condition of matrices that are not far from singular."""
    assert found.arrived == expected.arrived
    assert_array_equal(found.model.active, expected.model.active)
    assert_allclose(found.model.alpha, expected.model.alpha, rtol=1e-6)
    assert_allclose(found.model.evidence, expected.model.evidence, rtol=1e-10)
    carry, other = found.model.carry, expected.model.carry
    assert type(carry) is type(other)
    for name, value in vars(other).items():
        assert_allclose(getattr(carry, name), value, rtol=1e-6, atol=1e-6)
    view, seen = found.view, expected.view
    assert_array_equal(view.Phi, seen.Phi)
    for part, wanted in zip(view.sites, seen.sites, strict=True):
        assert_allclose(part, wanted, rtol=1e-6, atol=1e-8)
    assert_allclose(view.mean, seen.mean, rtol=1e-6, atol=1e-6)
    Sigma = seen.root.T @ seen.root
    assert_allclose(view.root.T @ view.root, Sigma, atol=1e-6 * np.abs(Sigma).max(initial=0.0))
    assert_array_equal(view.root, np.tril(view.root))
    assert view.logdet == pytest.approx(seen.logdet, abs=1e-6)
    assert view.jitter == seen.jitter


def start(problem, inference, active, seed=0):
    """A model that is far from settled."""
    rng = np.random.default_rng(seed)
    active = np.asarray(active, dtype=np.intp)
    alpha = np.exp(rng.normal(0.0, 1.5, len(active)))
    carry = Mode(rng.standard_normal(len(active)), 0.3 * problem.flat_intercept)
    if inference == "variational":
        carry = Contact(rng.uniform(0.0, 3.0, len(problem.t)))
    return Model(active, alpha, carry)


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_same_search(seed, free, weighted, inference, make_problem, both):
    assert both(make_problem(seed=seed, flat=free, weighted=weighted), inference).converged


@pytest.fixture
def from_nothing(monkeypatch):
    """Searches that do not begin with a crowd, and so take more steps."""
    monkeypatch.setattr(rvc, "NARROW", 0)


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.usefixtures("from_nothing")
def test_same_search_from_nothing(seed, inference, make_problem, both):
    result = both(make_problem(seed=seed, weighted=True), inference)
    assert result.converged
    assert {info.action for info in result.trace.infos} >= {"add", "survey"}


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.usefixtures("from_nothing")
def test_same_search_by_small_pools(seed, inference, make_problem, both, monkeypatch):
    monkeypatch.setattr(rvc, "POOL", 8)
    result = both(make_problem(150, seed=seed), inference)
    assert result.converged
    assert {info.action for info in result.trace.infos} >= {"add", "refill", "survey"}


@pytest.mark.parametrize("inference", INFERENCES)
def test_same_search_with_hyper_priors(inference, make_problem, both):
    both(make_problem(a=0.5, b=0.2), inference)


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("least_alpha", [1e-6, 0.0])
def test_same_search_on_separable_classes(inference, least_alpha, make_problem, both):
    both(make_problem(80, spread=0.03, least_alpha=least_alpha), inference, Settings(TOL, 30))


@pytest.mark.parametrize("inference", INFERENCES)
def test_same_search_from_where_another_came_near(inference, make_problem, both):
    problem = make_problem()
    near = slr.sparse(problem, inference, "fixed-point", Settings(1e-2, 50))
    assert len(near.active) > 2
    both(problem, inference, near=near)


def test_same_search_on_a_kernel_matrix_that_is_never_formed(make_problem, both):
    X, _ = classes(120, 6)
    dense = make_problem(120, 6)
    rows = LowRankRows.of(kernel, X).standardised(dense.weight, centre=True).unweighted()
    both(replace(dense, rows=rows), "laplace", Settings(1e-3, 100))


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("free", [True, False])
def test_same_settling(free, inference, make_problem):
    problem = make_problem(flat=free, weighted=True, a=0.1, b=0.05)
    for seed, active in enumerate(([], [3], [3, 40, 17], [1, 9, 60, 30, 44])):
        expected, found = settled_by_both(problem, start(problem, inference, active, seed), TOL)
        assert_same(expected, found)
        assert found.arrived


@pytest.mark.parametrize("inference", INFERENCES)
def test_same_bases_leave(inference, make_problem):
    """Thirty neighbouring columns, of which the classes need a few."""
    problem = make_problem()
    expected, found = settled_by_both(problem, start(problem, inference, np.arange(30)), 1e-4)
    assert_array_equal(found.model.active, expected.model.active)
    assert 1 < len(found.model.active) < 15
    assert found.model.evidence == pytest.approx(expected.model.evidence, abs=1e-4)
    assert_array_equal(found.view.Phi, Settler(problem).formed(found.model.active))


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("turns", [1, 2, 3, 5, 8])
def test_same_turns(turns, inference, make_problem, monkeypatch):
    """Stopped on the way: every turn takes the same step."""
    monkeypatch.setattr(settling, "SETTLING", turns)
    problem = make_problem()
    for seed in range(3):
        expected, found = settled_by_both(problem, start(problem, inference, [3, 40, 17, 55], seed), TOL)
        assert_same(expected, found)
        assert not found.arrived


def test_same_way_back_from_saturation(make_problem):
    """All rows far out on the wrong side: the model without weights is the better start."""
    problem = make_problem()
    model = Model(np.array([2, 5]), np.array([1.0, 1.0]), Mode(np.array([300.0, -500.0]), 0.0))
    assert_same(*settled_by_both(problem, model, TOL))


@pytest.mark.parametrize("order", ["C", "F", "strided", "backwards"])
@pytest.mark.parametrize(("n", "m", "k"), [(50, 7, 3), (64, 300, 5), (33, 129, 0), (90, 150, 40)])
def test_same_factors(n, m, k, order):
    """Any layout in memory, row weights, and models that are wider than what is summed up by hand (the last)."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, m)) + 3
    X[:, 1] = 2 * X[:, 0]
    X = {
        "C": np.ascontiguousarray(X),
        "F": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=1)[:, ::2],
        "backwards": np.ascontiguousarray(X[:, ::-1])[:, ::-1],
    }[order]
    weight = rng.uniform(0.5, 2.0, n)
    t = (rng.random(n) < 0.5).astype(np.float64)
    # root weights other than one, which the estimators never ask for
    problem = BernoulliProblem(
        DenseRows.of(X).standardised(weight, centre=True), t, weight, True, 0.0, 0.0, np.zeros(m), 1e-6
    )
    settler = Settler(problem)
    active = rng.permutation(np.arange(2, m))[:k] if k < m - 2 else np.arange(k)
    active = np.append(active[:-1], 0) if k else active
    model = Model(active, rng.uniform(0.5, 2.0, k), Mode(0.1 * rng.standard_normal(k), 0.1))
    view = settler.view(settler.formed(active), model)
    expected, found = settler.factors(view, problem.rows), CompiledSettler(problem).factors(view, problem.rows)
    for ours, theirs in zip(found[:2], expected[:2], strict=True):
        assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10 * np.abs(theirs).max())
    assert_array_equal(found.copy, expected.copy)
    assert found.copy.dtype == bool
    assert set(np.flatnonzero(found.copy)) == ({*active, 1} if k else set())


def test_same_factors_of_columns_far_from_the_origin():
    """Centring takes seven digits of one column, and all of a constant one."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    X[:, 1] += 1e7
    X[:, 2] = 7.0
    t = (X[:, 1] + rng.standard_normal(40) > 1e7).astype(np.float64)
    problem = BernoulliProblem(
        DenseRows.of(X).standardised(np.ones(40), centre=True).unweighted(),
        t,
        np.ones(40),
        True,
        0.0,
        0.0,
        np.zeros(5),
        1e-6,
    )
    settler, active = Settler(problem), np.array([0])
    view = settler.view(settler.formed(active), Model(active, np.ones(1), Mode(np.array([0.4]), 0.1)))
    found = CompiledSettler(problem).factors(view, problem.rows)
    centred = np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0).clip(1e-9), np.ones(40)])[:, [0, 1, 3, 4]]
    b, Phi = view.sites.precision, np.column_stack([centred[:, 0], np.ones(40)])
    Sigma = np.linalg.inv(Phi.T @ (b[:, None] * Phi) + np.diag([1.0, 0.0]))
    across = centred.T @ (b[:, None] * Phi)
    S = b @ centred**2 - np.einsum("mi,ij,mj->m", across, Sigma, across)
    assert_allclose(found.S[[0, 1, 3, 4]], S, rtol=1e-7)
    assert_allclose(found.Q[[0, 1, 3, 4]], centred.T @ (view.sites.shift - b * view.eta), rtol=1e-6, atol=1e-6)
    assert found.S[2] == found.Q[2] == 0


@pytest.mark.usefixtures("from_nothing")
def test_every_step_is_told_while_it_runs(make_problem):
    seen = []

    def stop_at_three(n, info):
        seen.append((n, info.action))
        if n == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rvc.solve(make_problem(), "laplace", Settings(TOL, 100, stop_at_three))
    assert [n for n, _ in seen] == [1, 2, 3]


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals go to the main thread")
@pytest.mark.parametrize("inference", INFERENCES)
def test_endless_settling_can_be_interrupted(inference, make_problem, monkeypatch):
    """With a switch interval of minutes the thread that interrupts only gets its turn if the lock is given up."""
    monkeypatch.setattr(settling, "SETTLING", 2**62)
    problem = make_problem()
    settler, model = CompiledSettler(problem), start(problem, inference, [3, 40])
    interval = sys.getswitchinterval()
    sys.setswitchinterval(300)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            settler.settle(model, settler.formed(model.active), -1.0)
    finally:
        sys.setswitchinterval(interval)
        timer.cancel()


@pytest.mark.parametrize("inference", INFERENCES)
def test_numbers_that_run_away_are_an_error_in_both_forms(inference, make_problem):
    problem = make_problem()
    model = replace(start(problem, inference, [3]), alpha=np.array([np.nan]))
    for form in (Settler, CompiledSettler):
        with pytest.raises((np.linalg.LinAlgError, FloatingPointError)):
            form(problem).settle(model, Settler(problem).formed(model.active), TOL)


def test_numbers_of_other_types_are_understood(make_problem):
    problem = make_problem()
    odd = replace(problem, a=0, b=np.zeros(70, dtype=int), flat_intercept=np.True_, least_alpha=np.float32(0))
    plain = replace(problem, least_alpha=0.0)
    assert rvc.solve(odd, "laplace", EXACTLY).log_evidence == rvc.solve(plain, "laplace", EXACTLY).log_evidence


@pytest.mark.parametrize("wanted", ["0", "1"])
def test_it_can_be_switched_off(wanted):
    program = "from sparsebayes.engine import compiled; print(compiled.Settler is None)"
    folder = os.path.dirname(os.path.dirname(sparsebayes.__file__))
    environment = {**os.environ, "SPARSEBAYES_COMPILED": wanted, "PYTHONPATH": folder}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == str(wanted == "0")
