"""The compiled search and the readable one: the same picks, the same numbers, the same manners."""

import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
from sparsebayes.engine.joint import PARTS, joint_change
from sparsebayes.engine.sequential import Ascent, Limits, ascend, certificate, empty, search

import sparsebayes
from sparsebayes.core.scales import ard_candidate
from sparsebayes.engine import candidates, compiled, sequential
from sparsebayes.engine.candidates import Candidates
from sparsebayes.engine.loop import Trace
from sparsebayes.engine.problem import GaussianProblem, Solution

pytestmark = pytest.mark.skipif(compiled.Search is None, reason="the compiled module is not there, or switched off")

RUN = {"tol": 1e-7, "max_iter": 400}
HYPER = {"flat": {}, "noise": {"c": 2.0, "rate": 0.2}, "all": {"a": 0.4, "b": 0.2, "c": 0.5, "rate": 0.1}}


@pytest.fixture
def in_numpy(monkeypatch):
    """The same call through the NumPy form."""

    def call(function, *args, **keywords):
        with monkeypatch.context() as patch:
            patch.setattr(compiled, "Search", None)
            return function(*args, **keywords)

    return call


@pytest.fixture
def both(in_numpy):
    """Runs both forms, holds each step of one to that of the other, and returns the compiled form's end."""

    def run(function, problem, start, *, same_columns=True, **keywords):
        ours, theirs = Trace(), Trace()
        found, converged = function(problem, start, trace=ours, **keywords)
        expected, settled = in_numpy(function, problem, start, trace=theirs, **keywords)
        assert converged == settled
        assert [(info.action, info.n_active) for info in ours.infos] == [
            (info.action, info.n_active) for info in theirs.infos
        ]
        # Objectives are sums of terms of size n: 1e-10 of that is rounding times the condition of the Gram matrix.
        close = {"rtol": 1e-10, "atol": 1e-10 * problem.n}
        np.testing.assert_allclose(ours.objective, theirs.objective, **close)
        np.testing.assert_allclose(found.evidence, expected.evidence, **close)
        changes = [[info.change for info in trace.infos] for trace in (ours, theirs)]
        # Gains are differences of terms of size n/σ², from which they have their rounding.
        np.testing.assert_allclose(*changes, rtol=1e-5, atol=1e-8 + 1e-15 * problem.n / found.noise)
        assert [info.jitter for info in ours.infos] == [info.jitter for info in theirs.infos]
        if same_columns:
            assert found.active == expected.active
            np.testing.assert_allclose(found.solution().alpha, expected.solution().alpha, rtol=1e-6)
        assert found.noise == pytest.approx(expected.noise, rel=1e-7)
        return found, ours

    return run


@pytest.fixture
def kernel_problem(make_problem):
    """A noisy sinc and one RBF column per row: neighbouring columns are nearly dependent."""

    def make(n=60, **keywords):
        rng = np.random.default_rng(1)
        x = np.linspace(-10, 10, n)
        y = np.sinc(x / np.pi) + 0.1 * rng.standard_normal(n)
        return make_problem(n, n, X=np.exp(-((x[:, None] - x) ** 2) / 9), y=y, **keywords)

    return make


@pytest.mark.parametrize("hyper", HYPER)
@pytest.mark.parametrize("price", [0.0, 2.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_same_steps_on_linear_dictionaries(shape, price, intercept, hyper, make_problem, both):
    for seed in range(4):
        problem = make_problem(*shape, seed=seed, price=price, flat=intercept, **HYPER[hyper])
        # Without price and prior a wide model ends at the noise floor, by steps too small to tell apart.
        endless = shape[0] < shape[1] and not price and hyper == "flat"
        _, trace = both(ascend, problem, empty(0.2), **{**RUN, "max_iter": 30 if endless else 400})
        assert {info.action for info in trace.infos} >= {"add", "re-estimate"}


@pytest.mark.parametrize("hyper", HYPER)
@pytest.mark.parametrize("price", [0.0, 0.5])
def test_same_steps_on_kernel_dictionaries(price, hyper, kernel_problem, both):
    _, trace = both(ascend, kernel_problem(price=price, **HYPER[hyper]), empty(0.1), tol=1e-6, max_iter=2000)
    assert {info.action for info in trace.infos} >= {"add", "re-estimate", "delete"}


@pytest.mark.parametrize("n_near", [150, 16])
def test_same_steps_in_long_searches(n_near, make_problem, both, monkeypatch):
    """Hundreds of steps, with all candidates current and with few of them."""
    monkeypatch.setattr(candidates, "ALL_NEAR", 0)
    monkeypatch.setattr(candidates, "NEAR", n_near)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.random((150, 5))
        y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 5 * X[:, 3] + rng.standard_normal(150)
        distance = ((X[:, None] - X) ** 2).sum(axis=2)
        problem = make_problem(150, 150, X=np.exp(-2 * distance), y=y)
        found, trace = both(ascend, problem, empty(0.1), tol=1e-6, max_iter=5000)
        assert certificate(found.moves(), found.noise_gain) <= 1e-6
        # what the steps have kept, against the end that is computed from scratch after a last joint step
        assert trace.objective[-1] == pytest.approx(found.evidence, abs=1e-4)
        actions = [info.action for info in trace.infos]
        assert len(actions) > 10 * sequential.SETTLE
        assert actions.count("add") > actions.count("delete") > 5


@pytest.mark.parametrize("seed", [3, 4])
def test_same_steps_where_a_joint_step_is_taken_in_part(seed, make_problem, both, monkeypatch):
    """All precisions together after each action: on few rows Newton's step now and then goes too far."""
    parts, settle = [], Candidates.settle

    def watched(state, tol, hold_noise):
        n, at = state.problem.n + 2 * state.problem.c, state.solution().alpha
        change = joint_change(at, state.mean, state.Sigma, n, 0.0, tol)
        settle(state, tol, hold_noise)
        moved = np.log(state.solution().alpha / at)  # the common scale apart, which all have moved by
        if np.ptp(change) > 0:
            parts.append(np.polyfit(change, moved, 1)[0])

    monkeypatch.setattr(Candidates, "settle", watched)
    monkeypatch.setattr(sequential, "SETTLE", 1)
    monkeypatch.setattr(sequential, "EAGER", 0)
    problem = make_problem(14, 25, seed=seed, noise=1.0)
    _, trace = both(ascend, problem, Solution(np.arange(6), np.ones(6), 0.3), tol=1e-7, max_iter=60)
    whole = np.isclose(parts, 1.0)
    assert whole.any()
    assert not whole.all()
    assert set(np.round(parts, 6)) <= {*PARTS, 0.0}
    assert (np.diff(trace.objective) > -1e-9).all()


@pytest.mark.parametrize("rate", [0.0, 20.0])
def test_same_steps_where_the_noise_is_held(rate, kernel_problem, both):
    problem = replace(kernel_problem(), rate=rate)
    found, trace = both(ascend, problem, empty(0.01), tol=1e-6, max_iter=3000, hold_noise=True)
    assert found.noise == 0.01
    assert certificate(found.moves(), 0.0) <= 1e-6
    assert len(trace.infos) > sequential.SETTLE
    assert (np.diff(trace.objective) > -1e-9).all()


@pytest.mark.parametrize("rate", [0.5, 20.0])
def test_same_steps_with_a_laplace_prior(rate, shape, make_problem, kernel_problem, both):
    for problem in (make_problem(*shape, c=0.5, rate=0.1), kernel_problem()):
        both(ascend, replace(problem, rate=rate), empty(0.1), tol=1e-6, max_iter=2000)


@pytest.mark.parametrize("hyper", HYPER)
def test_the_end_is_what_the_readable_form_computes_there(hyper, kernel_problem):
    """Everything that a compiled search hands over, against the same model from scratch."""
    problem = kernel_problem(price=0.5, **HYPER[hyper])
    found, _ = ascend(problem, empty(0.1), trace=Trace(), tol=1e-6, max_iter=2000)
    again = Candidates(problem, found.solution())
    assert found.active == again.active
    assert len(found.active) > 2
    for name in ("alpha", "S", "Q", "mean", "Sigma", "noise_terms", "gram_columns", "_copies", "near"):
        scale = np.abs(np.where(np.isinf(getattr(again, name)), 0.0, getattr(again, name))).max()
        np.testing.assert_allclose(getattr(found, name), getattr(again, name), rtol=1e-7, atol=1e-9 * scale)
    for name in ("evidence", "objective", "residual", "jitter", "beyond", "noise_gain"):
        assert getattr(found, name) == pytest.approx(getattr(again, name), rel=1e-7, abs=1e-9)
    for field in fields(again.posterior):
        ours, theirs = getattr(found.posterior, field.name), getattr(again.posterior, field.name)
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-8)
    # And it can go on from there.
    found.move(0 if 0 not in found.active else 1, 3.0)
    found.update_noise()
    assert np.isfinite(found.evidence)


def test_same_steps_with_a_price_of_its_own_kind(make_problem, both):
    @dataclass
    class Dear(GaussianProblem):
        def total_price(self, n_kept):
            return 9.0 * n_kept**2

    problem = make_problem(40, 8)
    free, _ = both(ascend, problem, empty(0.1), **RUN)
    found, _ = both(
        ascend, Dear(**{field.name: getattr(problem, field.name) for field in fields(problem)}), empty(0.1), **RUN
    )
    assert 0 < len(found.active) < len(free.active)


def test_same_steps_where_gram_columns_come_one_by_one(make_problem, both):
    problem = make_problem(30, 700, price=np.log(700), n_relevant=4, noise=0.3)
    both(ascend, problem, empty(0.1), **RUN)
    assert not problem.rows._gram
    assert 0 < len(problem.rows._gram_columns) < 200


@pytest.mark.parametrize("price", [0.0, 1.5])
def test_same_steps_while_the_noise_is_held_and_additions_are_few(shape, price, make_problem, both):
    problem = make_problem(*shape, price=price, noise=0.1)
    start = Solution(np.array([5, 0]), np.array([3.0, 0.2]), 0.01)
    _, trace = both(ascend, problem, start, hold_noise=True, max_additions=2, **RUN)
    assert sum(info.action == "add" for info in trace.infos) == 2


@pytest.mark.parametrize("whole", [True, False])
def test_same_search_from_nothing(whole, kernel_problem, both):
    """Which holds the noise at first; with the Gram matrix at hand and without it."""
    problem = kernel_problem()
    if not whole:
        problem = replace(problem, rows=replace(problem.rows, _gram=[]))
    assert (problem.rows.known_gram is not None) == whole
    _, trace = both(search, problem, empty(0.1), tol=1e-6, max_iter=2000)
    assert {info.action for info in trace.infos} >= {"add", "re-estimate", "delete"}


def test_same_search_with_its_excursions(shape, make_problem, both):
    for seed in range(4):
        both(search, make_problem(*shape, seed=seed, price=np.log(shape[1]), noise=1.5), empty(0.1), **RUN)


def test_same_steps_with_copies_and_constants(make_problem, both, rng):
    X = rng.standard_normal((30, 6))
    X[:, 3], X[:, 4], X[:, 5] = -2 * X[:, 0], 7.0, X[:, 0] + 1
    y = X[:, 0] + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(30)
    problem = make_problem(30, 6, X=X, y=y)
    # which of the copies is taken is a matter of the last bit
    found, _ = both(ascend, problem, empty(0.1), same_columns=False, **RUN)
    assert len({0, 3, 5} & set(found.active)) == 1
    assert 4 not in found.active
    start = Solution(np.array([0, 1, 3, 5]), np.array([2.0, 3.0, 5.0, 7.0]), 0.5)
    found, _ = both(ascend, problem, start, tol=1e-7, max_iter=0)
    assert found.active == [0, 1]
    both(ascend, problem, start, **RUN)


@pytest.mark.parametrize("price", [0.0, np.log(5)])
def test_same_end_on_noise_free_data(price, make_problem, both):
    found, _ = both(ascend, make_problem(30, 5, n_relevant=2, noise=0.0, price=price), empty(0.1), **RUN)
    assert found.noise == sequential.NOISE_FLOOR


def test_precisions_with_a_hyper_prior_are_those_of_the_reference(make_problem):
    """One step from nothing asks the candidate rule of every column at once; its best is compared in many problems."""
    rng = np.random.default_rng(3)
    for _ in range(60):
        a, b = rng.choice([0.0, 1e-6, 0.3, 5.0]), rng.choice([0.0, 1e-8, 1e-2, 3.0, 1e3])
        problem = make_problem(20, 6, seed=int(rng.integers(1000)), a=a, b=b, noise=float(rng.choice([0.1, 5.0])))
        forms = [kind(problem, empty(0.3)) for kind in (Ascent, sequential.CompiledAscent)]
        for form in forms:
            form.begin(Limits(1e-9, hold_noise=True, max_additions=1), ahead=1)
        infos = [form.step() for form in forms]
        assert infos[0].action == infos[1].action
        ends = [form.end() for form in forms]
        assert ends[0].active == ends[1].active
        np.testing.assert_allclose(ends[1].solution().alpha, ends[0].solution().alpha, rtol=1e-6)
        if ends[0].active:
            fresh = sequential.Candidates(problem, empty(0.3))
            best = ard_candidate(fresh.S, fresh.Q, a, np.full(6, b))[ends[1].active]
            np.testing.assert_allclose(ends[1].solution().alpha, best, rtol=1e-6)


def test_numbers_of_other_types_are_understood(make_problem):
    problem = make_problem(40, 8)
    odd = replace(problem, a=0, b=np.zeros(8, dtype=int), flat_intercept=np.True_, n_weighted=40)
    ends = [ascend(p, empty(0.1), trace=Trace(), tol=1e-7, max_iter=10**18)[0] for p in (problem, odd)]
    assert ends[0].evidence == ends[1].evidence


def test_every_step_is_told_while_it_runs(make_problem):
    seen = []

    def stop_at_three(n, info):
        seen.append((n, info.action))
        if n == 3:
            raise KeyboardInterrupt

    trace = Trace()
    with pytest.raises(KeyboardInterrupt):
        ascend(make_problem(40, 8), empty(0.1), trace=trace, callback=stop_at_three, **RUN)
    assert [n for n, _ in seen] == [1, 2, 3]
    assert len(trace.infos) == 3


@pytest.mark.parametrize("max_iter", [7, 2000])
def test_steps_that_are_made_ahead_are_those_that_are_told_one_by_one(max_iter, kernel_problem):
    problem, told, alone = kernel_problem(), Trace(), Trace()
    run = {"tol": 1e-6, "max_iter": max_iter}
    ends = [
        search(problem, empty(0.1), trace=told, callback=lambda n, info: None, **run),
        search(problem, empty(0.1), trace=alone, **run),
    ]
    assert told.infos == alone.infos
    assert ends[0][1] == ends[1][1] == (max_iter > 7)
    assert ends[0][0].evidence == ends[1][0].evidence


def test_python_is_not_kept_waiting_for_long(kernel_problem):
    """A step takes much less than the 20 ms after which the search comes up for air; all of them take much longer."""
    ascent = sequential.CompiledAscent(kernel_problem(1500), empty(1e-4))
    ascent.begin(Limits(0.0, hold_noise=True), ahead=1)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        assert len(ascent.search.steps(10**6)) < 10**5
        times.append(time.perf_counter() - start)
    assert np.median(times) < 1.0


def test_what_the_rows_raise_comes_through(make_problem, monkeypatch):
    problem = make_problem(20, 40)  # a wide design, of which there is no whole Gram matrix
    monkeypatch.setattr(type(problem.rows), "gram_column", lambda *_: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError, match="disk"):
        ascend(problem, empty(0.1), trace=Trace(), **RUN)


def test_numbers_that_run_away_are_an_error_in_both_forms(make_problem, in_numpy):
    problem = make_problem(40, 8, X=np.random.default_rng(0).standard_normal((40, 8)))
    start = Solution(np.array([0]), np.array([np.nan]), 0.1)
    for call in (ascend, lambda *args, **keywords: in_numpy(ascend, *args, **keywords)):
        with pytest.raises((np.linalg.LinAlgError, FloatingPointError)):
            call(problem, start, trace=Trace(), **RUN)


def test_other_threads_run_meanwhile(kernel_problem):
    """With a switch interval of minutes another thread only gets a turn where the lock is given up of free will."""
    ascent = sequential.CompiledAscent(kernel_problem(500), Solution(np.arange(0, 500, 5), np.ones(100), 0.1))
    ascent.begin(Limits(0.0, hold_noise=True, max_additions=0), ahead=1)
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(300)
    other = threading.Thread(target=tick)
    try:
        other.start()
        before, deadline = len(ticks), time.perf_counter() + 20
        while len(ticks) - before <= 3 and time.perf_counter() < deadline:
            ascent.search.steps(1)
        meanwhile = len(ticks) - before
    finally:
        done.set()
        sys.setswitchinterval(interval)
        other.join()
    assert meanwhile > 3


@pytest.mark.parametrize("wanted", ["0", "1"])
def test_it_can_be_switched_off(wanted):
    program = "from sparsebayes.engine import compiled; print(compiled.Search is None)"
    folder = os.path.dirname(os.path.dirname(sparsebayes.__file__))
    environment = {**os.environ, "SPARSEBAYES_COMPILED": wanted, "PYTHONPATH": folder}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == str(wanted == "0")
