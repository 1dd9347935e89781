"""Newton's step of all log α against differences of the brute-force evidence, with and without the noise following."""

import numpy as np
import pytest

from sparsebayes.core.priors import ARD, Laplace
from sparsebayes.engine.least_squares import NOISE_FLOOR, Solution
from sparsebayes.engine.scales import DAMPING, LONGEST, newton_step
from sparsebayes.engine.state import State

CASES = {
    "flat": {},
    "noise": {"c": 2.0, "d": 0.2},
    "Laplace": {"prior": Laplace(rate=0.5), "c": 2.0, "d": 0.2},
    "Gamma": {"prior": ARD(0.4, np.linspace(0.1, 0.6, 25))},
}


def step_of(state, follows):
    """The step of the library at a state."""
    prior = state.problem.prior.of(np.array(state.active)).at_noise(state.noise)
    n = state.problem.n + 2 * state.problem.c if follows else np.inf
    return newton_step(state.alpha_inside, state.mean, state.Sigma, prior, n)


def improve(state, follows, n_steps):
    """Newton's method, the noise either held or rescaled after every step."""
    for _ in range(n_steps):
        state.set_scales(state.alpha_inside * np.exp(step_of(state, follows)[0]), state.noise)
        if follows:
            state.rescale(NOISE_FLOOR)


@pytest.fixture
def near_the_top(make_problem):
    """A model near the maximum of its precisions, where the evidence is concave and no step is too long."""

    def make(shape, follows, **keywords):
        if "prior" in keywords and isinstance(keywords["prior"].b, np.ndarray):
            keywords = keywords | {"prior": ARD(0.4, keywords["prior"].b[: shape[1]])}
        problem = make_problem(*shape, n_relevant=3, **keywords)
        state = State(problem, Solution(np.array([2, 0, 1]), np.ones(3), 0.3))
        improve(state, follows, 20)
        state.set_scales(state.alpha_inside * np.array([1.2, 0.9, 1.1]), state.noise)
        if follows:
            state.rescale(NOISE_FLOOR)
        return state

    return make


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(
    ("case", "follows"), [(case, False) for case in CASES] + [(case, True) for case in CASES if case != "Gamma"]
)
def test_the_step_is_newtons(shape, case, follows, intercept, near_the_top, objective):
    state = near_the_top(shape, follows, flat=intercept, **CASES[case])
    problem, alpha, noise, active = state.problem, state.alpha.copy(), state.noise, state.active

    def at(change):
        """The objective at changed precisions, at the best common scale if the noise follows."""
        moved = alpha.copy()
        moved[active] *= np.exp(change)
        if not follows:
            return objective(problem, moved, noise)
        there = State(problem, Solution(np.array(active), moved[active], noise))
        there.rescale(NOISE_FLOOR)
        return objective(problem, there.alpha, there.noise)

    h, axes = 1e-3, np.eye(3)
    slope = np.array([(at(h * e) - at(-h * e)) / (2 * h) for e in axes])
    curvature = [[at(h * (e + f)) - at(h * (e - f)) - at(h * (f - e)) + at(-h * (e + f)) for f in axes] for e in axes]
    curvature = -np.array(curvature) / (4 * h**2)
    assert (
        np.linalg.eigvalsh(curvature).min() > 5e3 * DAMPING[0]
    )  # which then changes the step by less than the differences do
    expected = np.linalg.solve(curvature, slope)
    assert 0.01 < np.abs(expected).max() < LONGEST
    step, promise = step_of(state, follows)
    # Differences: an error of h² of the third derivatives, and of 1e-13/h² of rounding in the curvature.
    np.testing.assert_allclose(step, expected, atol=1e-4 * np.abs(expected).max())
    assert promise == pytest.approx(0.5 * slope @ expected, rel=1e-4)


@pytest.mark.parametrize("follows", [False, True])
def test_repeated_steps_converge_quadratically(follows, near_the_top):
    state = near_the_top((40, 8), follows)
    sizes = []
    for _ in range(4):
        sizes.append(np.abs(step_of(state, follows)[0]).max())
        improve(state, follows, 1)
    assert sizes[0] > 0.1
    assert sizes[2] < sizes[1] ** 1.5 < sizes[0] ** 2
    assert sizes[3] < 1e-7


def test_where_the_evidence_is_not_concave_the_step_still_goes_up(make_problem):
    """α far above its best: the evidence is convex in log α there, and a plain Newton step would go down."""
    problem = make_problem(40, 8)
    state = State(problem, Solution(np.arange(3), np.array([1e4, 1.0, 3e3]), 0.3))
    var, mean = np.diag(state.Sigma), state.mean
    slope = 0.5 * (1 - state.alpha_inside * (mean**2 + var))
    step, promise = step_of(state, False)
    assert step[[0, 2]].max() < 0  # down from a precision that is too large
    assert slope @ step > 0
    assert promise > 0
    assert np.abs(step).max() <= LONGEST


def test_a_step_is_never_longer_than_allowed(make_problem):
    problem = make_problem(40, 8)
    state = State(problem, Solution(np.arange(8), np.logspace(-6, 6, 8), 0.3))
    assert np.abs(step_of(state, False)[0]).max() == LONGEST


def test_without_weights_there_is_no_step():
    step, promise = newton_step(np.empty(0), np.empty(0), np.empty((0, 0)), ARD())
    assert (len(step), promise) == (0, 0.0)
