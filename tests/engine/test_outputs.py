"""Several outputs with one precision per feature, against densities from SciPy and against one output at a time."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from sparsebayes.core.prices import FREE, PerUnit
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import regression
from sparsebayes.engine.ascent import Ascent, Limits
from sparsebayes.engine.least_squares import LeastSquares, Solution, empty
from sparsebayes.engine.loop import Settings, Trace
from sparsebayes.engine.outputs import OutputsProblem, solve_outputs
from sparsebayes.engine.state import State

TIGHT = Settings(1e-9, 5000)


def draw(n=40, m=8, T=3, noise=(0.5, 1.0, 2.0), seed=0):
    """Columns of mean square one, and outputs with noise levels of their own; the first two features matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    X /= np.sqrt((X**2).mean(axis=0))
    W = np.zeros((m, T))
    W[:2] = rng.choice([-1, 1], (2, T)) * rng.uniform(1, 2, (2, T))
    return X, X @ W + np.resize(noise, T) * rng.standard_normal((n, T))


def problem_of(X, Y, price=0.0):
    """Without an intercept, in the units of the data: what the densities below are about."""
    n, T = Y.shape
    nats = PerUnit(price / T, float(n)) if price else FREE
    return OutputsProblem(design=DenseRows.of(X), t=Y, n_weighted=float(n), flat_intercept=False, price=nats)


def joint_density(X, Y, alpha, noise):
    """Σ_t log N(y_t; 0, σ_t²(I + Φ A⁻¹ Φᵀ)), α relative to the noise; ∞ for what is out."""
    shape = np.eye(len(X)) + (X / alpha) @ X.T
    return sum(
        multivariate_normal(np.zeros(len(X)), v * shape).logpdf(y)
        for y, v in zip(Y.T, np.broadcast_to(noise, Y.shape[1]), strict=True)
    )


def test_evidence_and_moves_are_those_of_the_density():
    X, Y = draw(noise=(1.0,))
    problem = problem_of(X, Y, price=2.0)
    start = Solution(np.array([0, 3, 5]), np.array([0.8, 5.0, 30.0]), 0.7)
    snapshot = Ascent(problem, start).snapshot()
    alpha = snapshot.alpha * 0.7  # relative to the noise
    here = joint_density(X, Y, alpha, 0.7)
    assert 3 * snapshot.evidence == pytest.approx(here, rel=1e-11)
    moves = snapshot.best_moves
    for j in range(8):
        changed = alpha.copy()
        changed[j] = moves.alpha[j] * 0.7
        k = np.array([np.isfinite(each).sum() for each in (changed, alpha)])
        price = 2.0 * k * 40 / (40 - k)
        brings = joint_density(X, Y, changed, 0.7) - here - price[0] + price[1]
        assert 3 * moves.gain[j] == pytest.approx(brings, abs=1e-9)
        for other in np.logspace(-3, 4, 15):
            changed[j] = other
            k = np.isfinite(changed).sum()
            value = joint_density(X, Y, changed, 0.7) - 2.0 * k * 40 / (40 - k)
            assert value <= here - price[1] + 3 * moves.gain[j] + 1e-9


def test_exchanges_are_differences_of_the_density():
    X, Y = draw(noise=(1.0,))
    snapshot = Ascent(problem_of(X, Y, price=2.0), Solution(np.array([0, 3]), np.array([0.8, 5.0]), 0.7)).snapshot()
    alpha = snapshot.alpha * 0.7
    found = snapshot.best_exchanges
    for out, into, scale, gain in zip(*found, strict=True):
        changed = alpha.copy()
        changed[out], changed[into] = np.inf, scale * 0.7
        assert 3 * gain == pytest.approx(joint_density(X, Y, changed, 0.7) - joint_density(X, Y, alpha, 0.7), abs=1e-9)
    assert found.out[0] == 3
    assert found.into[0] == 1


@pytest.mark.parametrize("in_working_set", [True, False])
def test_updates_of_the_state_agree_with_a_fresh_one(in_working_set):
    X, Y = draw()
    problem = problem_of(X, Y)
    state = State(problem, empty(0.4))
    if in_working_set:
        state.survey(problem.marginal_price(0))
    for j, alpha in ((0, 2.0), (5, 0.5), (1, 3.0), (0, 7.0), (5, np.inf)):
        state.move(j, alpha)
        fresh = State(problem, Solution(np.array(state.active), state.alpha_inside, 0.4))
        fresh.survey(problem.marginal_price(0))
        assert_allclose(state.mean, fresh.mean, rtol=1e-9)
        assert_allclose(state.Sigma, fresh.Sigma, rtol=1e-9, atol=1e-12)
        outside = np.isinf(state.alpha) & np.isin(np.arange(8), state.working)
        assert_allclose(state.S[outside], fresh.S[outside], rtol=1e-9)
        assert_allclose(state.Q[outside], fresh.Q[outside], rtol=1e-9, atol=1e-9)
        assert state.objective == pytest.approx(fresh.objective, rel=1e-10)


@pytest.mark.parametrize("shared", [False, True])
def test_the_solution_is_a_maximum_of_the_joint_density(shared):
    X, Y = draw()
    found = solve_outputs(problem_of(X, Y, price=3.0), TIGHT, shared)
    active = found.outputs[0].active
    assert sorted(active) == [0, 1]
    noise = np.array([each.noise for each in found.outputs]) * found.unit**2
    assert (np.ptp(noise) == 0) == shared
    relative = found.outputs[0].alpha * found.outputs[0].noise

    def density(x):
        alpha = np.full(8, np.inf)
        alpha[active] = np.exp(x[:2])
        return -joint_density(X, Y, alpha, np.exp(x[2:]))

    start = np.log([*relative, *(noise[:1] if shared else noise)])
    assert found.log_evidence == pytest.approx(-density(start), rel=1e-10)
    best = minimize(density, start + 0.3, method="BFGS", options={"gtol": 1e-7})
    assert_allclose(start, best.x, atol=2e-4)  # √tol over a curvature of order one
    by_output = [each.log_evidence - 40 * np.log(unit) for each, unit in zip(found.outputs, found.unit, strict=True)]
    assert sum(by_output) == pytest.approx(found.log_evidence, rel=1e-10)
    assert found.outputs[0].gap <= 4e-9
    # The objective never falls, within a turn or between turns, but for a column's price.
    assert (np.diff(found.path) > -3.0 * 40 / 38 - 1e-6).all()


def test_one_output_is_the_usual_model():
    X, Y = draw(T=1)
    problem = problem_of(X, Y, price=2.0)
    one = replace(problem_single(problem), price=PerUnit(2.0, 40.0))
    joint, usual = solve_outputs(problem, TIGHT, False), regression.solve(one, "sequential", TIGHT)
    assert sorted(joint.outputs[0].active) == sorted(usual.active)
    assert joint.log_evidence == pytest.approx(usual.log_evidence, abs=1e-8)
    assert_allclose(np.sort(joint.outputs[0].posterior.mean * joint.unit[0]), np.sort(usual.posterior.mean), rtol=1e-4)


def problem_single(problem):
    """The same with the first output alone."""
    return LeastSquares(
        design=problem.design, t=problem.t[:, 0], n_weighted=problem.n_weighted, flat_intercept=False, price=FREE
    )


def test_copies_of_an_output_are_one_output_with_more_weight():
    """With T copies the density is the T-th power of one's, so that the price counts a T-th part."""
    X, Y = draw(T=1)
    four = solve_outputs(problem_of(X, np.repeat(Y, 4, axis=1), price=8.0), TIGHT, False)
    one = solve_outputs(problem_of(X, Y, price=2.0), TIGHT, False)
    assert sorted(four.outputs[0].active) == sorted(one.outputs[0].active)
    assert four.log_evidence == pytest.approx(4 * one.log_evidence, rel=1e-8)


def test_an_output_without_noise_does_no_harm():
    X, Y = draw()
    Y[:, 0] = X[:, 0] + X[:, 1]
    found = solve_outputs(problem_of(X, Y / Y.std(axis=0), price=3.0), Settings(1e-6, 2000), False)
    assert sorted(found.outputs[0].active) == [0, 1]
    assert [each.noise_at_floor for each in found.outputs] == [True, False, False]


def test_a_run_that_is_cut_short_says_so():
    X, Y = draw()
    ascent = Ascent(problem_of(X, Y, price=3.0), empty(0.1))
    assert not ascent.run(Limits(1e-9), Trace(), 1)
    assert not solve_outputs(problem_of(X, Y, price=3.0), Settings(1e-9, 1), False).outputs[0].converged
