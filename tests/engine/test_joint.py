"""What moves all precisions at once: the common scale and the joint Newton step, against brute force."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sparsebayes.engine.joint import LONGEST, joint_change

from sparsebayes.engine import candidates
from sparsebayes.engine.candidates import Candidates
from sparsebayes.engine.problem import NOISE_FLOOR, Solution

PRIORS = [{}, {"c": 2.0, "rate": 0.2}, {"c": 2.0, "rate": 0.2, "laplace": 3.0}]
"""Of the noise, and of g = 1/(ασ²)."""


@pytest.fixture
def anywhere(make_problem, rng):
    """A model that is at no maximum."""

    def make(shape=(40, 8), active=(6, 0, 3, 1, 5), laplace=0.0, **keywords):
        problem = replace(make_problem(*shape, **keywords), rate=laplace)
        return Candidates(problem, Solution(np.array(active), np.exp(rng.standard_normal(len(active))), 0.3))

    return make


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("priors", PRIORS)
def test_the_best_common_scale(shape, intercept, priors, anywhere, objective):
    state = anywhere(shape, flat=intercept, **priors)
    problem, noise, alpha = state.problem, state.noise, state.alpha.copy()

    def loss(log_factor):
        there, scaled = noise * np.exp(log_factor), alpha / np.exp(log_factor)
        return 0.5 * problem.rate * float((1 / (scaled * there)).sum()) - objective(problem, scaled, there)

    best = minimize_scalar(loss, bounds=(-5, 5), method="bounded", options={"xatol": 1e-9})
    state.rescale()
    assert np.log(state.noise / noise) == pytest.approx(best.x, abs=1e-6)
    assert state.objective == pytest.approx(-best.fun, rel=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("priors", PRIORS)
def test_rescaled_state_equals_a_computation_from_scratch(shape, intercept, priors, anywhere):
    state = anywhere(shape, flat=intercept, **priors)
    state.rescale()
    fresh = Candidates(state.problem, state.solution())
    for name in ("mean", "Sigma", "S", "Q", "objective", "noise_gain", "noise_terms"):
        found, expected = np.array(getattr(state, name)), np.array(getattr(fresh, name))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10 * np.abs(expected).max())


def test_the_scale_stops_at_the_floor_of_the_noise(make_problem):
    problem = make_problem(30, 3, n_relevant=3, noise=0.0)
    state = Candidates(problem, Solution(np.arange(3), np.full(3, 1e-8), 1e-4))
    state.rescale()
    assert state.noise == NOISE_FLOOR
    assert state.objective == pytest.approx(Candidates(problem, state.solution()).objective, rel=1e-9)


@pytest.mark.parametrize(
    ("free", "keywords"),
    [
        (True, {}),
        (True, {"c": 2.0, "rate": 0.2}),
        (True, {"laplace": 3.0}),
        (False, {"price": 1.0}),
        (False, {"a": 0.1}),
        (False, {"b": 0.1}),
    ],
)
def test_only_the_evidence_and_the_noise_prior_know_the_common_scale(free, keywords, anywhere):
    assert anywhere(**keywords).problem.is_scale_free == free


def moved_objective(state, log_change, held):
    """The objective at changed precisions, and at the best common scale if the noise is not held."""
    solution = state.solution()
    moved = Candidates(state.problem, Solution(solution.active, solution.alpha * np.exp(log_change), solution.noise))
    if not held:
        moved.rescale()
    return moved.objective


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("priors", PRIORS)
def test_the_joint_step_is_newtons(shape, intercept, priors, held, anywhere):
    """Slopes and curvatures of the objective by differences; near a maximum, where no step is too long."""
    state = anywhere(shape, active=(2, 0, 1), n_relevant=3, flat=intercept, **priors)
    for _ in range(20):
        state.settle(1e-9, held)
    state.alpha[state.active] *= [1.2, 0.9, 1.1]
    state.refresh()
    if not held:
        state.rescale()
    h, axes = 1e-3, np.eye(3)

    def at(*steps):
        return moved_objective(state, h * sum(steps), held)

    slope = np.array([(at(e) - at(-e)) / (2 * h) for e in axes])
    curvature = np.array([[at(e, f) - at(e, -f) - at(-e, f) + at(-e, -f) for f in axes] for e in axes]) / (4 * h**2)
    damped = -curvature + 0.5e-6 * np.eye(3)
    assert np.linalg.eigvalsh(damped).min() > 0
    expected = np.linalg.solve(damped, slope)
    assert np.abs(expected).max() < LONGEST
    n = np.inf if held else state.problem.n + 2 * state.problem.c
    at = state.solution().alpha, state.mean, state.Sigma, n, state.pull
    found = joint_change(*at, 0.0)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())
    promise = 0.5 * slope @ expected
    for tol, made in ((0.99 * promise, True), (1.01 * promise, False)):
        assert joint_change(*at, tol).any() == made


def test_settling_never_lowers_the_objective_and_ends_where_all_slopes_vanish(shape, anywhere, slopes, everywhere):
    state = anywhere(shape)
    path = [state.objective]
    for _ in range(60):
        state.settle(1e-12)
        path.append(state.objective)
    assert (np.diff(path) >= -1e-9).all()
    assert path[-1] > path[0] + 0.1
    # A precision without a finite maximum is on its way to infinity, by no more than LONGEST e-folds a step.
    state.refresh()
    assert np.abs(slopes(state.problem, everywhere(state.problem, state.solution()), state.noise)).max() < 1e-4


def test_a_joint_step_that_fails_is_undone(anywhere, monkeypatch):
    state = anywhere()
    before = state.objective, state.noise, state.alpha.copy(), state.Sigma.copy(), state.S.copy()
    monkeypatch.setattr(candidates, "joint_change", lambda alpha, *_: np.full(len(alpha), -20.0))
    state.settle(0.0)
    after = state.objective, state.noise, state.alpha, state.Sigma, state.S
    for found, expected in zip(after, before, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_model_without_weights_can_be_rescaled_and_settled(make_problem):
    problem = make_problem(40, 8)
    state = Candidates(problem, Solution(np.empty(0, dtype=np.intp), np.empty(0), 0.3))
    state.rescale()
    assert state.noise == pytest.approx(problem.energy / problem.n)
    state.settle(1e-6)
    assert state.noise_gain == pytest.approx(0, abs=1e-12)
