"""The numbers that a least-squares problem hands to every solver."""

import numpy as np
import pytest
from scipy.stats import norm

from sparsebayes.core.priors import ARD
from sparsebayes.core.scales import noise_em
from sparsebayes.engine.ascent import Ascent
from sparsebayes.engine.least_squares import NOISE_FLOOR, Solution


@pytest.mark.parametrize("intercept", [True, False])
def test_summaries_are_those_of_the_design(intercept, make_problem, design):
    problem = make_problem(20, 5, flat=intercept)
    Phi = design(problem)
    np.testing.assert_allclose(problem.projection, Phi.T @ problem.t, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(problem.column_energy, (Phi**2).sum(axis=0), rtol=1e-12)
    assert problem.energy == pytest.approx(20, rel=1e-12)
    assert problem.n == 20 - intercept
    assert problem.n_columns == 5


def test_a_constant_column_has_no_energy(make_problem, rng):
    X = rng.standard_normal((12, 3))
    X[:, 1] = 4.0
    np.testing.assert_allclose(make_problem(12, 3, X=X).column_energy, [12, 0, 12])


@pytest.mark.parametrize("noise", [1.0, 1e-3, 1e-7])
def test_residual_keeps_its_digits_on_nearly_noise_free_data(noise, make_problem, design):
    problem = make_problem(20, 5, n_relevant=5, noise=noise)
    Phi = design(problem)
    w = np.linalg.lstsq(Phi, problem.t)[0]
    active = np.arange(5)
    expected = ((problem.t - Phi @ w) ** 2).sum()
    # the expanded square loses eps · ‖t‖², and is only used above 1e-6 of that
    assert problem.residual(active, w, Phi.T @ Phi) == pytest.approx(expected, rel=1e-8, abs=0)


def test_fit_is_the_log_likelihood(make_problem, rng):
    problem = make_problem(20, 5, flat=False)
    eta = rng.standard_normal(20)
    expected = norm.logpdf(problem.t, eta, np.sqrt(0.4)).sum()
    assert problem.fit(((problem.t - eta) ** 2).sum(), 0.4) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("intercept", [True, False])
def test_a_compressed_problem_is_the_same_problem(intercept, make_problem, evidence, everywhere):
    problem = make_problem(40, 6, flat=intercept, prior=ARD(0.3, 0.1), c=0.2, d=0.1)
    small = problem.compressed()
    assert (small.design.n_rows, small.n, small.n_weighted) == (6, problem.n, 40)
    np.testing.assert_allclose(small.design.gram(), problem.design.gram(), atol=1e-12 * 40)
    np.testing.assert_allclose(small.design.columns(slice(None)).T @ small.t, problem.projection, atol=1e-12 * 40)
    assert small.energy == pytest.approx(problem.energy, rel=1e-12)
    solution = Solution(np.array([4, 0]), np.array([3.0, 0.5]), 0.3)
    one, other = Ascent(problem, solution).snapshot(), Ascent(small, solution).snapshot()
    for name in ("Sigma", "S", "Q", "objective", "residual"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-9, atol=1e-11, err_msg=name)
    assert other.evidence == pytest.approx(evidence(problem, everywhere(problem, solution), 0.3), rel=1e-10)


def test_dependent_columns_do_not_spoil_the_compression(make_problem, rng):
    X = rng.standard_normal((40, 6))
    X[:, 5] = X[:, 0] + X[:, 1]
    problem = make_problem(40, 6, X=X)
    solution = Solution(np.array([0, 1, 5]), np.array([3.0, 0.5, 1.0]), 0.3)
    one, other = Ascent(problem, solution).snapshot(), Ascent(problem.compressed(), solution).snapshot()
    assert other.evidence == pytest.approx(one.evidence, rel=1e-10)
    np.testing.assert_allclose(other.S, one.S, rtol=1e-9)


@pytest.mark.parametrize("unfit", ["wide", "constant", "noise-free"])
def test_what_cannot_be_compressed_safely_is_left_alone(unfit, make_problem, rng):
    X = rng.standard_normal((8 if unfit == "wide" else 40, 6))
    if unfit == "constant":
        X[:, 5] = 1.0
    problem = make_problem(len(X), 6, X=X, noise=0.0 if unfit == "noise-free" else 0.5)
    assert problem.compressed() is problem


@pytest.mark.parametrize("shape", [(40, 6), (8, 20)])
def test_a_noise_step_is_the_evidence_less_the_scale_term_and_the_rule(shape, make_problem, objective, design):
    problem = make_problem(*shape, prior=ARD(0.3, 0.1), c=0.2, d=0.1)
    alpha, noise = np.linspace(0.5, 3, shape[1]), 0.3
    found = problem.noise_step(problem.design, alpha, noise, noise_em)
    assert found.value + problem.prior.scale_term(alpha) == pytest.approx(objective(problem, alpha, noise), rel=1e-10)
    Phi, n = design(problem), problem.n
    Sigma = np.linalg.inv(np.diag(alpha) + Phi.T @ Phi / noise)
    mean = Sigma @ Phi.T @ problem.t / noise
    np.testing.assert_allclose(found.posterior.mean, mean, rtol=1e-9, atol=1e-11)
    # EM: the expected squared residual, with the hyper-prior, over the degrees of freedom.
    expected = (((problem.t - Phi @ mean) ** 2).sum() + np.trace(Phi @ Sigma @ Phi.T) + 0.2) / (n + 0.4)
    assert found.carry.variance == pytest.approx(expected, rel=1e-9)


def test_the_noise_stays_above_its_floor(make_problem):
    problem = make_problem(20, 3, n_relevant=3, noise=0.0)
    found = problem.noise_step(problem.design, np.full(3, 1e-6), 1e-12, noise_em)
    assert found.carry.variance == NOISE_FLOOR


def test_prices_are_those_of_the_columns_that_are_kept(make_problem):
    problem = make_problem(20, 5, price=np.arange(1.0, 6.0))
    assert problem.total_price([0, 4]) == pytest.approx(6 * 19 / 17)
    assert not problem.is_scale_free
    assert make_problem(20, 5).is_scale_free
