"""The state of the search, in both forms: after any sequence of moves its numbers are those of the definitions."""

import os
import subprocess
import sys
import threading
import time
from dataclasses import fields, replace

import numpy as np
import pytest

import sparsebayes
from sparsebayes.core.prices import Marginal, PerUnit
from sparsebayes.core.priors import ARD, Laplace, NonNegative
from sparsebayes.engine import compiled
from sparsebayes.engine.ascent import Snapshot
from sparsebayes.engine.least_squares import NOISE_FLOOR, Solution, empty
from sparsebayes.engine.state import State, state_of

PRIORS = {
    "flat": lambda m: ARD(),
    "Gamma": lambda m: ARD(0.4, np.linspace(0.1, 0.6, m)),
    "Laplace": lambda m: Laplace(rate=5.0),
    "positive": lambda m: NonNegative(),
    "bounded": lambda m: ARD(min_alpha=50.0),
}
ANYWHERE = Solution(np.array([2, 0, 7]), np.array([0.5, 3.0, 1.0]), 0.3)
"""A model that is at no maximum."""

needs_compiled = pytest.mark.skipif(not compiled.COMPILED, reason="the compiled module is not there")


def solution(state):
    return Solution(np.array(state.active, dtype=np.intp), np.asarray(state.alpha_inside), state.noise)


def price_of(state):
    return Marginal.at(state.problem.price, state.active)


def close(found, expected, rel):
    """Relative to the largest entry: single entries may be differences."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=rel * np.abs(expected).max(initial=1e-300))


def wander(state, n_moves=58, seed=5):
    """A random walk of additions, re-estimations, deletions, changes of the noise and of the common scale.

    It ends with moves only. Beyond half of the rows S would be a difference of nearly equal numbers.
    """
    rng = np.random.default_rng(seed)
    room, actions = len(state.problem.t) // 2, set()
    for k in range(n_moves):
        j = int(rng.choice(state.active) if state.active and k % 2 else rng.integers(state.problem.n_columns))
        inside = j in state.active
        leave = inside and (rng.random() < 0.4 or len(state.active) > room)
        if inside or len(state.active) <= room:
            actions.add(state.move(j, np.inf if leave else float(np.exp(2 * rng.standard_normal()))))
        if k % 20 == 19:
            state.set_scales(np.exp(rng.standard_normal(len(state.active))), float(rng.uniform(0.1, 0.6)))
        elif k % 20 == 9 and state.problem.prior.is_scale_free:  # elsewhere a search never does that
            state.rescale(NOISE_FLOOR)
    assert actions == {"add", "re-estimate", "delete"}
    assert len(state.active) > 2
    return state


@pytest.fixture(params=PRIORS)
def problem(request, shape, make_problem):
    m = shape[1]
    return make_problem(*shape, prior=PRIORS[request.param](m), price=np.linspace(0.1, 3, m), c=0.5, d=0.1)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("intercept", [True, False])
def test_after_a_walk_the_state_is_that_of_the_definitions(
    intercept, problem, make_problem, design, objective, evidence
):
    if not intercept:
        shape = problem.design.X.shape
        problem = make_problem(*shape, flat=False, prior=problem.prior, price=problem.price.nats)
    state = state_of(problem, empty(0.3))
    state.survey(price_of(state))
    wander(state)
    Phi, t, noise, alpha = design(problem), problem.t, state.noise, state.alpha
    chosen, inside = Phi[:, state.active], alpha[state.active]
    Sigma = np.linalg.inv(np.diag(inside) + chosen.T @ chosen / noise)
    mean = Sigma @ chosen.T @ t / noise
    C = noise * np.eye(len(t)) + (Phi / alpha) @ Phi.T
    S, Q = np.einsum("nm,nm->m", Phi, np.linalg.solve(C, Phi)), Phi.T @ np.linalg.solve(C, t)
    outside = np.isinf(alpha)
    close(state.Sigma, Sigma, 1e-9)
    close(state.mean, mean, 1e-9)
    close(state.S[outside], S[outside], 1e-9)
    close(state.Q[outside], Q[outside], 1e-9)
    assert state.objective == pytest.approx(objective(problem, alpha, noise), rel=1e-9)
    assert state.residual == pytest.approx(((t - chosen @ mean) ** 2).sum(), rel=1e-8)
    assert state.gamma_sum == pytest.approx((1 - inside * np.diag(Sigma)).sum(), rel=1e-8)
    assert state.penalty == pytest.approx(inside @ mean**2, rel=1e-8)
    assert state.variance_sum == pytest.approx((1 / inside).sum(), rel=1e-12)
    assert state.n_active == len(state.active) == (~outside).sum()
    close(state.gram, Phi.T @ chosen, 1e-11)
    state.refresh()
    close(state.Sigma, Sigma, 1e-10)
    assert state.objective == pytest.approx(objective(problem, alpha, noise), rel=1e-10)
    plain = objective(replace(problem, prior=ARD(), c=0.0, d=0.0), alpha, noise)
    assert state.evidence == pytest.approx(plain, rel=1e-10)


def test_factors_are_those_without_the_column_itself(problem, design):
    state = wander(State(problem, empty(0.3)))
    state.survey(price_of(state))
    Phi, t, alpha = design(problem), problem.t, state.alpha
    s, q = np.empty(len(alpha)), np.empty(len(alpha))
    for j in range(len(alpha)):
        C = state.noise * np.eye(len(t)) + (Phi / np.where(np.arange(len(alpha)) == j, np.inf, alpha)) @ Phi.T
        s[j], q[j] = Phi[:, j] @ np.linalg.solve(C, np.column_stack([Phi[:, j], t]))
    for found in (state.factors(), Snapshot.of(state, price_of(state)).factors()):
        close(found[0], s, 1e-9)
        close(found[1], q, 1e-9)


@needs_compiled
def test_both_forms_are_the_same_after_the_same_walk(problem, monkeypatch):
    states = []
    for wanted in (True, False):
        monkeypatch.setattr(compiled, "COMPILED", wanted)
        states.append(wander(state_of(problem, empty(0.3))))
    ours, theirs = states
    assert not isinstance(ours, State)
    assert isinstance(theirs, State)
    for may_add, novelty in ((True, 0.0), (True, 0.3), (False, 0.0)):
        for state in states:
            state.survey(price_of(state))
        assert ours.outside_gain == theirs.outside_gain == 0
        one, other = (state.best(may_add, novelty, price_of(state)) for state in states)
        assert one[0] == other[0]
        assert one[1:] == pytest.approx(other[1:], rel=1e-7)
        for state in states:
            state.move(one[0], one[2])
    snapshots = [Snapshot.of(state, price_of(state)) for state in states]
    for field in (field.name for field in fields(Snapshot)):
        if field not in ("problem", "posterior"):
            found, expected = (np.asarray(getattr(each, field)) for each in snapshots)
            np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
            seen = np.isfinite(expected)
            close(found[seen], expected[seen], 1e-8)
    for field in (field.name for field in fields(snapshots[0].posterior)):
        close(*(np.asarray(getattr(each.posterior, field), dtype=float) for each in snapshots), 1e-8)


@pytest.mark.usefixtures("form")
def test_the_best_move_brings_what_it_promises_and_most_of_all(problem, priced_objective):
    """Of changes by a hyper-prior only those that stay inside are real differences: it is no part of an entry."""
    state = wander(state_of(problem, empty(0.3)), seed=8)
    while problem.prior.rules.positive and min(state.mean) < 0:  # as long as a search would take them out
        state.move(state.active[int(np.argmin(state.mean))], np.inf)
    state.survey(price_of(state))
    j, gain, to = state.best(True, 0.0, price_of(state))
    moves = Snapshot.of(state, price_of(state)).best_moves
    assert gain == pytest.approx(moves.gain.max(), rel=1e-8)
    assert gain > 0
    assert to == pytest.approx(moves.alpha[j])
    if problem.prior.a:
        return
    alpha, noise = state.alpha, state.noise
    here = priced_objective(problem, alpha, noise)
    for k in range(problem.n_columns):
        changed = alpha.copy()
        changed[k] = moves.alpha[k]
        brings = priced_objective(problem, changed, noise) - here
        assert moves.gain[k] == pytest.approx(brings, rel=1e-6, abs=1e-8)


@pytest.mark.usefixtures("form")
def test_what_enters_must_have_its_share_outside_the_model(kernel_problem):
    problem = kernel_problem()
    state = state_of(problem, Solution(np.array([10, 30]), np.ones(2), 0.01))
    state.survey(price_of(state))
    share = state.S * state.noise / problem.column_energy
    for novelty in (0.5, 0.9):
        j, _, _ = state.best(True, novelty, price_of(state))
        gain = Snapshot.of(state, price_of(state)).best_moves.gain
        assert j == np.argmax(np.where((share >= novelty) | np.isfinite(state.alpha), gain, 0.0))
    assert state.best(False, 0.0, price_of(state))[0] in (10, 30)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("priors", [{}, {"c": 2.0, "d": 0.2}, {"prior": Laplace(rate=3.0), "d": 0.2}])
def test_a_rescaled_state_is_that_from_scratch(shape, priors, make_problem):
    state = state_of(make_problem(*shape, **priors), ANYWHERE)
    state.survey(price_of(state))
    was = state.noise
    state.rescale(NOISE_FLOOR)
    assert state.noise != was
    fresh = State(state.problem, solution(state))
    fresh.survey(price_of(fresh))
    outside = np.isinf(state.alpha)
    for name in ("S", "Q"):
        close(getattr(state, name)[outside], getattr(fresh, name)[outside], 1e-9)
    for name in ("mean", "Sigma", "objective", "gamma_sum", "residual"):
        close(np.asarray(getattr(state, name)), np.asarray(getattr(fresh, name)), 1e-9)


@pytest.mark.usefixtures("form")
def test_a_rescaled_state_leaves_alone_what_nobody_keeps_current(make_problem):
    """S and Q of columns in the model: many factors one after the other would take them beyond all numbers."""
    state = state_of(make_problem(40, 8), ANYWHERE)
    state.survey(price_of(state))
    before = np.array(state.S), np.array(state.Q)
    state.rescale(NOISE_FLOOR)
    inside = np.isfinite(state.alpha)
    for now, was in zip((state.S, state.Q), before, strict=True):
        np.testing.assert_array_equal(np.asarray(now)[inside], was[inside])
        assert (np.asarray(now)[~inside] != was[~inside]).all()


@pytest.mark.usefixtures("form")
def test_the_objective_from_scratch_leaves_the_state_as_it_is(problem):
    state = state_of(problem, ANYWHERE)
    state.survey(price_of(state))
    wander(state, seed=3)
    names = ("age", "evidence", "objective", "residual", "gamma_sum", "noise", "mean", "Sigma", "alpha", "S", "Q")
    before = {name: np.array(getattr(state, name)) for name in names}
    found = state.fresh_objective()
    for name, value in before.items():
        np.testing.assert_array_equal(np.asarray(getattr(state, name)), value)
    close(found, State(problem, solution(state)).objective, 1e-10)
    state.refresh()
    close(found, state.objective, 1e-10)


# --- the working set ---


@pytest.mark.usefixtures("small_working_set")
def test_the_working_set_holds_the_best_outside(make_problem):
    state = State(make_problem(60, 30, noise=1.0), ANYWHERE)
    price = price_of(state)
    state.survey(price)
    fresh = Snapshot.of(State(state.problem, ANYWHERE), price)
    gain, outside = fresh.best_moves.gain, np.flatnonzero(np.isinf(state.alpha))
    ranked = outside[np.argsort(-gain[outside])]
    assert gain[ranked[4]] > 0
    assert set(state.working) == set(ranked[:4])
    assert state.outside_gain == gain[ranked[4]]


@pytest.mark.usefixtures("form", "small_working_set")
def test_moves_of_columns_outside_the_working_set_are_exact(make_problem):
    """Their S and Q are those of the last survey until they are asked for, as after the first half of an exchange."""
    problem = make_problem(60, 30, noise=1.0)
    state = state_of(problem, ANYWHERE)
    state.survey(price_of(state))
    gain = Snapshot.of(State(problem, ANYWHERE), price_of(state)).best_moves.gain
    outside = np.flatnonzero(np.isinf(state.alpha))
    far = [int(j) for j in outside[np.argsort(-gain[outside])][4:8]]
    for j, alpha in ((0, 4.0), (far[0], 2.0), (2, np.inf), (far[1], 0.7), (far[0], 3.0), (2, 1.0), (far[1], np.inf)):
        state.move(j, alpha)
    fresh = State(problem, solution(state))
    assert state.active == fresh.active
    for name in ("mean", "Sigma"):
        close(getattr(state, name), getattr(fresh, name), 1e-9)
    assert state.objective == pytest.approx(fresh.objective, rel=1e-10)
    state.survey(price_of(state))
    close(state.mean, fresh.mean, 1e-9)


# --- copies and constants ---


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("factor", [1.0, -3.0])
def test_a_copy_of_what_is_in_the_model_is_barred(factor, make_problem, rng):
    X = rng.standard_normal((30, 4))
    X[:, 3] = factor * X[:, 0] + 5.0  # a copy once both are centred and scaled
    problem = make_problem(30, 4, X=X, y=X[:, 0] + 0.1 * rng.standard_normal(30))
    state = state_of(problem, Solution(np.array([0]), np.array([1e3]), 0.5))  # α far too large: a copy would help

    def gain():
        return Snapshot.of(state, price_of(state)).best_moves.gain

    assert gain()[3] == 0
    state.move(0, np.inf)
    assert gain()[3] > 1
    state.move(3, 1e3)
    assert gain()[0] == 0
    assert state.best(True, 0.0, price_of(state))[0] == 3


@pytest.mark.usefixtures("form")
def test_copies_in_the_start_become_one_without_a_change_of_the_model(make_problem, rng, evidence):
    X = rng.standard_normal((30, 5))
    X[:, 3], X[:, 4] = -2 * X[:, 0], X[:, 0] + 1
    problem = make_problem(30, 5, X=X, y=X[:, 0] + 0.1 * rng.standard_normal(30))
    alpha = np.array([2.0, 3.0, np.inf, 5.0, 7.0])
    state = state_of(problem, Solution(np.array([0, 1, 3, 4]), alpha[[0, 1, 3, 4]], 0.5))
    assert state.active == [0, 1]
    assert 1 / state.alpha[0] == pytest.approx(1 / 2 + 1 / 5 + 1 / 7)
    assert state.evidence == pytest.approx(evidence(problem, alpha, 0.5), rel=1e-10)


@pytest.mark.usefixtures("form")
def test_a_constant_column_brings_nothing(make_problem, rng):
    X = rng.standard_normal((15, 4))
    X[:, 2] = 7.0
    state = state_of(make_problem(15, 4, X=X), empty(0.1))
    moves = Snapshot.of(state, price_of(state)).best_moves
    assert moves.gain[2] == 0
    assert np.isinf(moves.alpha[2])


# --- manners of the compiled form ---


@pytest.mark.usefixtures("form")
def test_gram_columns_are_asked_for_one_by_one_where_there_is_no_matrix(make_problem):
    problem = make_problem(30, 700, n_relevant=4)
    state = state_of(problem, Solution(np.array([5, 600]), np.ones(2), 0.3))
    state.survey(price_of(state))
    state.move(state.best(True, 0.0, price_of(state))[0], 2.0)
    assert not problem.design._gram
    assert 2 < len(problem.design._gram_columns) < 100
    assert state.objective == pytest.approx(State(problem, solution(state)).objective, rel=1e-10)


@pytest.mark.usefixtures("form")
def test_numbers_of_other_types_are_understood(make_problem):
    problem = make_problem(40, 8, price=1.0)
    odd = replace(problem, prior=ARD(0, np.zeros(8, dtype=int)), flat_intercept=np.True_, n_weighted=40)
    odd = replace(odd, price=PerUnit(np.ones(8, dtype=int), rows=39))
    one, other = (Snapshot.of(state_of(p, ANYWHERE), Marginal.at(p.price, ANYWHERE.active)) for p in (problem, odd))
    assert one.evidence == other.evidence
    np.testing.assert_array_equal(one.best_moves.gain, other.best_moves.gain)


@pytest.mark.usefixtures("form")
def test_what_the_rows_raise_comes_through(make_problem, monkeypatch):
    problem = make_problem(20, 40)  # a wide design, of which there is no whole Gram matrix
    monkeypatch.setattr(type(problem.design), "gram_column", lambda *_: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError, match="disk"):
        state_of(problem, ANYWHERE)


@pytest.mark.usefixtures("form")
def test_a_precision_that_is_no_number_is_an_error(make_problem):
    with pytest.raises((np.linalg.LinAlgError, FloatingPointError)):
        state_of(make_problem(40, 8), Solution(np.array([0, 1]), np.array([np.nan, 1.0]), 0.1))


@pytest.mark.usefixtures("form")
def test_the_residual_keeps_its_digits_at_the_noise_floor(make_problem, design):
    problem = make_problem(30, 3, n_relevant=3, noise=1e-6)
    state = state_of(problem, Solution(np.arange(3), np.full(3, 1e-3), NOISE_FLOOR))
    # The rest is 1e-12 of ‖t‖², so that the expanded square has lost all but a few of its digits.
    expected = ((problem.t - design(problem) @ state.mean) ** 2).sum()
    assert state.residual == pytest.approx(expected, rel=1e-3)


@needs_compiled
def test_other_threads_run_meanwhile(kernel_problem):
    """With a switch interval of minutes another thread only gets a turn where the lock is given up of free will."""
    state = state_of(kernel_problem(300), Solution(np.arange(0, 300, 3), np.ones(100), 0.1))
    alpha, ticks, done = state.alpha_inside, [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(None)
            time.sleep(0)

    interval, other = sys.getswitchinterval(), threading.Thread(target=tick)
    sys.setswitchinterval(300)
    try:
        other.start()
        before, deadline = len(ticks), time.perf_counter() + 20
        while len(ticks) - before <= 3 and time.perf_counter() < deadline:
            state.set_scales(alpha, 0.1)
        meanwhile = len(ticks) - before
    finally:
        done.set()
        sys.setswitchinterval(interval)
        other.join()
    assert meanwhile > 3


@needs_compiled
@pytest.mark.parametrize("wanted", ["0", "1"])
def test_the_compiled_form_can_be_switched_off(wanted):
    program = "from sparsebayes.engine import compiled; print(compiled.COMPILED)"
    folder = os.path.dirname(os.path.dirname(sparsebayes.__file__))
    environment = {**os.environ, "SPARSEBAYES_COMPILED": wanted, "PYTHONPATH": folder}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == str(wanted == "1")
