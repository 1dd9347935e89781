"""What the search for feature weights asks of a regression: a model on columns and its linear form, by brute force."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsebayes.core.weighted import WEIGHTED
from sparsebayes.engine.drvm import feature_relevance, linearised, start_on
from sparsebayes.engine.width import Fit

THETA = np.array([0.5, 0.1, 0.0, 0.3])


@pytest.fixture(params=[(name, flat) for name in WEIGHTED for flat in (True, False)], ids=str)
def weigher(request, make_weigher, rng):
    name, flat = request.param
    X = rng.uniform(-2, 2, (30, 4))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 3] + 0.2 * rng.standard_normal(30) + 1
    return make_weigher(X, y, kernel=name, weight=rng.uniform(0.5, 2, 30), flat=flat)


@pytest.fixture
def found(weigher):
    return weigher.searched(THETA)


def test_scales_are_those_of_the_columns_as_they_are(weigher, found):
    columns = weigher.columns(THETA, weigher.Z[found.fit.active])
    assert weigher.block.evidence(columns, found.fit.scales).value == pytest.approx(found.fit.objective, abs=1e-6)


def test_a_search_from_a_model_near_by_ends_no_lower(weigher, found):
    K = weigher.columns(THETA, weigher.Z)
    again = weigher.block.search(K, found.fit)
    assert again.objective >= found.fit.objective - 1e-6
    start = start_on(weigher.block.problem_on(K), found.fit)
    assert_array_equal(start.active, found.fit.active)
    assert_allclose(start.alpha, found.fit.model.alpha, rtol=1e-10)
    assert start.noise == pytest.approx(found.fit.model.noise)


def test_a_start_has_no_columns_that_are_constant(make_weigher, rng):
    X = rng.uniform(-2, 2, (30, 4))
    weigher = make_weigher(X, X[:, 0])
    K = weigher.columns(THETA, weigher.Z)
    K[:, 2] = 1.0
    near = Fit(0.0, np.array([1, 2, 3]), np.log([1.0, 2.0, 3.0, 0.1]), None)
    problem = weigher.block.problem_on(K)
    start = start_on(problem, near)
    assert_array_equal(start.active, [1, 3])
    assert_allclose(start.alpha * problem.rows.scale[[1, 3]] ** 2, [1.0, 3.0])


def predictor(weigher, theta, centres, w, weight, flat):
    """Kw, with the weighted mean of every column taken by a flat intercept; rows times the root of their weight."""
    K = weigher.columns(theta, centres)
    eta = K @ w
    return np.sqrt(weight) * (eta - flat * np.average(eta, weights=weight))


def test_linear_form(weigher, found):
    fit, block = found.fit, weigher.block
    problem, centres = block.template, weigher.Z[fit.active]
    weight, flat = problem.rows.root_weight**2, problem.flat_intercept
    alpha, noise = np.exp(fit.scales[:-1]), np.exp(fit.scales[-1])
    around = linearised(weigher, block, THETA, centres, fit.scales)
    K = weigher.columns(THETA, centres)
    Phi = np.sqrt(weight)[:, None] * (K - flat * np.average(K, axis=0, weights=weight))
    w = np.linalg.solve(Phi.T @ Phi / noise + np.diag(alpha), Phi.T @ problem.t / noise)
    assert_allclose(around.w, w, rtol=1e-6)
    assert_allclose(around.Phi, Phi / np.sqrt(noise), rtol=1e-9, atol=1e-9)
    residual = np.sqrt(weight) * (problem.t - Phi @ w) / noise
    assert_allclose(around.residual, residual, atol=1e-6 * np.abs(residual).max())

    def central(k, h):
        step = h * np.eye(4)[k]
        ends = (predictor(weigher, THETA + sign * step, centres, w, weight, flat) for sign in (1, -1))
        return np.subtract(*ends) / (2 * h)

    kept = np.flatnonzero(THETA)
    expected = np.column_stack([(4 * central(k, 5e-4) - central(k, 1e-3)) / 3 for k in kept]) / np.sqrt(noise)
    assert_allclose(around.D, expected, atol=1e-6 * np.abs(expected).max())


def test_relevance_tells_what_matters_from_what_does_not(make_weigher, rng):
    X = rng.uniform(-2, 2, (60, 3))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(60)
    weigher = make_weigher(X, y)
    found = weigher.climbed(weigher.searched(np.full(3, 0.3)), weigher.varied)
    found = replace(found, theta=np.maximum(found.theta, [0, 0, 1e-4]))
    known = feature_relevance(weigher.block, weigher, found)
    assert known.shape == (3,)
    assert (known[:2] > 0.9).all()
    assert 0 <= known[2] < 0.5
