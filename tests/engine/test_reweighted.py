"""Reweighted L1: each lasso is a tangent bound of the same objective."""

import numpy as np
import pytest

from sparsebayes.engine import reweighted
from sparsebayes.engine.loop import Settings, Trace


@pytest.fixture
def run(lasso):
    def run(problem, tol=1e-9, max_iter=100):
        trace = Trace()
        state, converged = reweighted.run(problem, lasso=lasso, trace=trace, settings=Settings(tol, max_iter))
        return state, converged, trace

    return run


@pytest.fixture
def held_noise(monkeypatch):
    monkeypatch.setattr(reweighted, "noise_em", lambda residual, noise, *others: noise)


@pytest.mark.usefixtures("held_noise")
def test_with_the_noise_held_no_step_lowers_the_evidence(shape, make_problem, run):
    """With a free noise this does not hold: the tangent z is then taken at the noise before its update."""
    for seed in range(5):
        _, _, trace = run(make_problem(*shape, seed=seed))
        path = np.array(trace.objective)
        assert len(path) > 3
        assert path[-1] > path[0]
        assert (np.diff(path) >= -1e-9 * np.abs(path[1:])).all()


def test_the_objective_is_that_of_brute_force(shape, make_problem, run, evidence, everywhere):
    problem = make_problem(*shape)
    before, _, _ = run(problem, max_iter=3)
    state, _, trace = run(problem, max_iter=4)
    alpha = everywhere(problem, state.solution)
    assert trace.objective[-1] == pytest.approx(evidence(problem, alpha, before.noise), rel=1e-9)


def test_penalties_are_the_tangent_of_the_log_determinant(shape, make_problem, run, design, everywhere):
    """z_m = ∂ log|C| / ∂v_m with v = 1/α, by differences of the log-determinant."""
    problem = make_problem(*shape)
    before, _, _ = run(problem, max_iter=2)
    state, _, _ = run(problem, max_iter=3)
    Phi, v = design(problem), 1 / everywhere(problem, state.solution)

    def logdet(v):
        return np.linalg.slogdet(before.noise * np.eye(len(problem.t)) + (Phi * v) @ Phi.T)[1]

    h = 1e-6  # an error of (h z)²/3, and of 1e-14/(h z) by rounding
    for j in (0, 1, problem.n_columns - 1):
        step = h * (np.arange(problem.n_columns) == j)
        # at v = 0 the central difference looks at a small negative variance, which C bears
        z = (logdet(v + step) - logdet(v - step)) / (2 * h)
        assert state.root_z[j] ** 2 == pytest.approx(z, rel=1e-6)


def test_it_ends_where_the_evidence_is_flat(make_problem, run, slopes, everywhere):
    problem = make_problem(40, 6, n_relevant=6)
    state, converged, _ = run(problem, tol=1e-12, max_iter=2000)
    assert converged
    # A stop at 1e-12 nats leaves slopes of about its root.
    assert np.abs(slopes(problem, everywhere(problem, state.solution), state.solution.noise)).max() < 1e-5


def test_a_price_keeps_what_pays_and_drops_what_does_not(make_problem, run):
    problem = make_problem(60, 20, n_relevant=3, noise=0.5, price=np.log(20))
    state, converged, _ = run(problem, tol=1e-6, max_iter=500)
    assert converged
    np.testing.assert_array_equal(np.sort(state.solution.active), [0, 1, 2])
