"""All named solvers end on the top of the same hill, and a result says truly what it found."""

import numpy as np
import pytest
from sparsebayes.engine.ard import SOLVERS, solve

from sparsebayes.engine.loop import Info
from sparsebayes.engine.problem import NOISE_FLOOR, Solution

CASES = {
    "tall": {"n": 40, "d": 8},
    "tall, without intercept": {"n": 40, "d": 8, "flat": False},
    "tall, hyper-priors": {"n": 40, "d": 8, "a": 0.3, "b": 0.1, "c": 0.5, "rate": 0.2},
    # a prior on the noise, because without one a wide model without a price takes up all rows
    "wide": {"n": 14, "d": 25, "c": 2.0, "rate": 0.2},
}


@pytest.fixture(params=[(case, charged) for case in CASES for charged in (False, True)], ids=str)
def problem(request, make_problem):
    case, charged = request.param
    settings = dict(CASES[case])
    n, d = settings.pop("n"), settings.pop("d")
    return make_problem(n, d, noise=1.0, price=charged * np.log(d), **settings)


@pytest.fixture
def run(lasso):
    def run(problem, solver, **keywords):
        return solve(problem, solver, lasso=lasso, **{"tol": 1e-9, "max_iter": 5000, **keywords})

    return run


@pytest.fixture(params=SOLVERS)
def result(request, problem, run):
    return run(problem, request.param)


def test_every_solver_ends_at_a_stationary_point(problem, result, slopes, everywhere, objective, design):
    alpha, noise = everywhere(problem, result.solution), result.solution.noise
    assert result.converged
    assert result.gap <= 1e-9
    assert 0 < len(result.solution.active) < problem.n_columns
    # A gap of 1e-9 nats leaves slopes of about its root, times the root of the curvature (n/2 for the noise).
    assert np.abs(slopes(problem, alpha, noise)).max() < 5e-4
    if problem.price or problem.a:
        return
    Phi, C = design(problem), noise * np.eye(len(problem.t))
    C += (Phi / alpha) @ Phi.T
    outside = Phi[:, np.isinf(alpha)]
    s = np.einsum("nm,nm->m", outside, np.linalg.solve(C, outside))
    q = outside.T @ np.linalg.solve(C, problem.t)
    assert (q**2 <= s * (1 + 1e-3)).all()  # gains grow with the square of the excess: 1e-9 nats are some 1e-4 of it


def test_a_result_is_the_model_that_it_describes(problem, result, evidence, everywhere, design):
    solution = result.solution
    alpha = everywhere(problem, solution)
    assert result.log_evidence == pytest.approx(evidence(problem, alpha, solution.noise), rel=1e-9)
    chosen = design(problem)[:, solution.active]
    Sigma = np.linalg.inv(np.diag(solution.alpha) + chosen.T @ chosen / solution.noise)
    np.testing.assert_allclose(result.posterior.covariance(), Sigma, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(result.posterior.mean, Sigma @ chosen.T @ problem.t / solution.noise, rtol=1e-8)
    assert not result.noise_at_floor
    assert len(result.trace.infos) > 0


@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_agree_where_there_is_one_clear_answer(solver, make_problem, run):
    problem = make_problem(60, 10, noise=0.3, price=np.log(10))
    found = run(problem, solver)
    order = np.argsort(found.solution.active)
    np.testing.assert_array_equal(found.solution.active[order], [0, 1, 2])
    reference = run(problem, "sequential", start=Solution(np.arange(3), np.ones(3), 0.1))
    np.testing.assert_allclose(found.solution.alpha[order], reference.solution.alpha, rtol=1e-3)
    assert found.log_evidence == pytest.approx(reference.log_evidence, abs=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_step_is_reported(solver, make_problem, run):
    seen = []
    found = run(make_problem(40, 8), solver, callback=lambda n, info: seen.append((n, info)))
    assert [n for n, _ in seen] == list(range(1, len(seen) + 1))
    assert [info for _, info in seen] == found.trace.infos
    assert all(isinstance(info, Info) for _, info in seen)


@pytest.mark.parametrize("solver", SOLVERS)
def test_too_few_steps_are_admitted(solver, make_problem, run):
    found = run(make_problem(40, 8), solver, max_iter=2)
    assert not found.converged
    assert found.gap > 1e-9


def test_a_start_takes_the_place_of_the_named_solver(make_problem, run, lasso):
    problem = make_problem(40, 8)
    there = run(problem, "sequential")
    again = solve(problem, "em", lasso=None, tol=1e-9, max_iter=5000, start=there.solution)
    assert len(again.trace.infos) < 5
    np.testing.assert_allclose(np.sort(again.solution.alpha), np.sort(there.solution.alpha), rtol=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
def test_noise_free_data_are_reported_as_such(solver, make_problem, run):
    found = run(make_problem(30, 5, n_relevant=2, noise=0.0, price=np.log(5)), solver, tol=1e-6)
    assert found.noise_at_floor
    assert found.solution.noise == pytest.approx(NOISE_FLOOR)
    assert set(found.solution.active) == {0, 1}
