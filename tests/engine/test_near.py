"""The few candidates that a search keeps current between two surveys of all."""

import numpy as np
import pytest
from sparsebayes.engine.sequential import ascend, certificate, empty

from sparsebayes.engine import candidates, compiled
from sparsebayes.engine.candidates import Candidates
from sparsebayes.engine.loop import Trace
from sparsebayes.engine.problem import Solution


@pytest.fixture
def few(monkeypatch):
    """Four near instead of as many as small problems have columns."""
    monkeypatch.setattr(candidates, "NEAR", 4)
    monkeypatch.setattr(candidates, "ALL_NEAR", 0)


@pytest.fixture
def state(make_problem):
    problem = make_problem(60, 30, noise=1.0)
    return Candidates(problem, Solution(np.array([2, 0, 7]), np.array([0.5, 3.0, 1.0]), 0.3))


@pytest.mark.usefixtures("few")
def test_those_near_are_the_best_outside(state):
    gain = state.moves().gain
    outside = np.setdiff1d(np.arange(30), state.active)
    ranked = outside[np.argsort(-gain[outside])]
    assert gain[ranked[4]] > 0
    state.narrow()
    assert set(state.near) == set(ranked[:4])
    assert state.beyond == gain[ranked[4]]
    state.survey()
    assert len(state.near) == 30
    assert state.beyond == 0


@pytest.mark.usefixtures("few")
def test_actions_keep_those_near_current_and_what_leaves_the_model_among_them(state):
    state.narrow()
    best = state.near[:2]
    others = np.setdiff1d(np.arange(30), [*state.near, *state.active])
    before = state.S[others].copy()
    for j, alpha in ((best[0], 2.0), (7, 4.0), (best[1], 0.7), (best[0], 3.0), (2, np.inf), (best[1], np.inf)):
        state.move(int(j), alpha)
    assert {2, best[1]} <= set(state.near)
    fresh, current = Candidates(state.problem, state.solution()), [j for j in state.near if j not in state.active]
    np.testing.assert_allclose(state.S[current], fresh.S[current], rtol=1e-9)
    np.testing.assert_allclose(state.Q[current], fresh.Q[current], rtol=1e-9, atol=1e-9 * np.abs(fresh.Q).max())
    assert np.array_equal(state.S[others], before)
    assert np.abs(fresh.S[others] / before - 1).max() > 1e-3


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("form", ["NumPy", "compiled"])
def test_the_certificate_is_that_of_all_candidates(form, make_problem, monkeypatch):
    """Sixty neighbouring columns, four of them near at a time: none of the others may be forgotten at the end."""
    if form == "NumPy":
        monkeypatch.setattr(compiled, "Search", None)
    elif compiled.Search is None:
        pytest.skip("the compiled module is not there, or switched off")
    x = np.linspace(-10, 10, 60)
    y = np.sinc(x / np.pi) + 0.1 * np.random.default_rng(1).standard_normal(60)
    for price in (0.0, 1.0):
        problem = make_problem(60, 60, X=np.exp(-((x[:, None] - x) ** 2)), y=y, price=price)
        found, converged = ascend(problem, empty(0.1), trace=Trace(), tol=1e-6, max_iter=3000)
        assert converged
        again = Candidates(problem, found.solution())
        assert certificate(again.moves(), again.noise_gain) <= 1.01e-6
        assert len(found.active) > 4
