"""The regression whose evidence chooses feature weights: models on columns, its linear form by brute force, labels."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsebayes.core.weighted_kernels import WEIGHTED
from sparsebayes.engine.kernel_regression import start_on
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.theta_model import UNEXPLAINED_LABELS, feature_relevance, label_model, linearise
from sparsebayes.engine.width import VectorFit

SETTINGS = Settings(1e-5, 5000)
THETA = np.array([0.5, 0.1, 0.0, 0.3])


@pytest.fixture(params=[(name, flat) for name in WEIGHTED for flat in (True, False)], ids=str)
def search(request, make_theta_search, rng):
    name, flat = request.param
    X = rng.uniform(-2, 2, (30, 4))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 3] + 0.2 * rng.standard_normal(30) + 1
    return make_theta_search(X, y, kernel=name, weight=rng.uniform(0.5, 2, 30), flat=flat)


@pytest.fixture
def found(search):
    return search.search_vectors(THETA)


def test_scales_are_those_of_the_columns_as_they_are(search, found):
    columns = search.columns(THETA, search.Z[found.fit.active])
    assert search.model.evidence(columns, found.fit.scales).value == pytest.approx(found.fit.objective, abs=1e-6)


def test_a_search_from_a_model_near_by_ends_no_lower(search, found):
    K = search.columns(THETA, search.Z)
    again = search.model.search(K, found.fit)
    assert again.objective >= found.fit.objective - 1e-6
    scale = search.model.problem_on(K).design.scale
    start = start_on(scale, found.fit)
    assert_array_equal(start.active, found.fit.active)
    assert_allclose(start.alpha * scale[start.active] ** 2, np.exp(found.fit.scales[:-1]), rtol=1e-10)
    assert start.noise == pytest.approx(np.exp(found.fit.scales[-1]))


def test_a_start_has_no_columns_that_are_constant(make_theta_search, rng):
    X = rng.uniform(-2, 2, (30, 4))
    search = make_theta_search(X, X[:, 0])
    K = search.columns(THETA, search.Z)
    K[:, 2] = 1.0
    near = VectorFit(0.0, np.array([1, 2, 3]), np.log([1.0, 2.0, 3.0, 0.1]))
    problem = search.model.problem_on(K)
    start = start_on(problem.design.scale, near)
    assert_array_equal(start.active, [1, 3])
    assert_allclose(start.alpha * problem.design.scale[[1, 3]] ** 2, [1.0, 3.0])


def predictor(search, theta, centres, w, weight, flat):
    """Kw, with the weighted mean of every column taken by a flat intercept; rows times the root of their weight."""
    K = search.columns(theta, centres)
    eta = K @ w
    return np.sqrt(weight) * (eta - flat * np.average(eta, weights=weight))


def test_linear_form(search, found):
    fit, model = found.fit, search.model
    problem, centres = model.template, search.Z[fit.active]
    weight, flat = problem.design.root_weight**2, problem.flat_intercept
    alpha, noise = np.exp(fit.scales[:-1]), np.exp(fit.scales[-1])
    around = linearise(search, model, THETA, centres, fit.scales)
    K = search.columns(THETA, centres)
    Phi = np.sqrt(weight)[:, None] * (K - flat * np.average(K, axis=0, weights=weight))
    w = np.linalg.solve(Phi.T @ Phi / noise + np.diag(alpha), Phi.T @ problem.t / noise)
    assert_allclose(around.w, w, rtol=1e-6)
    assert_allclose(around.by_w, Phi / np.sqrt(noise), rtol=1e-9, atol=1e-9)
    residual = np.sqrt(weight) * (problem.t - Phi @ w) / noise
    assert_allclose(around.residual, residual, atol=1e-6 * np.abs(residual).max())

    def central(k, h):
        step = h * np.eye(4)[k]
        ends = (predictor(search, THETA + sign * step, centres, w, weight, flat) for sign in (1, -1))
        return np.subtract(*ends) / (2 * h)

    kept = np.flatnonzero(THETA)
    expected = np.column_stack([(4 * central(k, 5e-4) - central(k, 1e-3)) / 3 for k in kept]) / np.sqrt(noise)
    assert_allclose(around.by_theta, expected, atol=1e-6 * np.abs(expected).max())


def test_relevance_tells_what_matters_from_what_does_not(make_theta_search, rng):
    X = rng.uniform(-2, 2, (60, 3))
    y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.standard_normal(60)
    search = make_theta_search(X, y)
    found = search.maximise_theta(search.search_vectors(np.full(3, 0.3)), search.varying)
    found = replace(found, theta=np.maximum(found.theta, [0, 0, 1e-4]))
    known = feature_relevance(search.model, search, found)
    assert known.shape == (3,)
    assert (known[:2] > 0.9).all()
    assert 0 <= known[2] < 0.5


# --- labels as the target of a regression ---


@pytest.mark.parametrize("intercept", [True, False])
def test_labels_are_a_target_in_standard_units(intercept, rng):
    t, weight = (rng.uniform(size=50) < 0.3).astype(float), rng.uniform(0.5, 2, 50)
    model = label_model(t, weight, intercept, SETTINGS)
    y = model.t / np.sqrt(weight)
    assert_allclose(np.average(y**2, weights=weight), 1)
    assert (np.average(y, weights=weight) == pytest.approx(0, abs=1e-12)) == intercept
    assert_allclose(np.ptp(y[t == 1]), 0, atol=1e-12)
    assert y[t == 1][0] > y[t == 0][0]
    swapped = label_model(1 - t, weight, intercept, SETTINGS)
    assert_allclose(swapped.t, -model.t)


@pytest.mark.parametrize("n_rows", [20, 80])
def test_labels_that_are_reproduced_leave_a_noise(n_rows, rng):
    """A column for each row explains everything, but for the part that none may."""
    t = (rng.uniform(size=n_rows) < 0.5).astype(float)
    model = label_model(t, np.ones(n_rows), True, SETTINGS)
    K = np.exp(-100 * np.subtract.outer(np.arange(n_rows), np.arange(n_rows)) ** 2.0)
    slopes = [model.evidence(K, np.append(np.zeros(n_rows), at)).scales[-1] for at in (-20.0, 0.0)]
    assert slopes[0] > 0 > slopes[1]  # a noise next to nothing wants to be more, and one that is all less
    values = [model.evidence(K, np.append(np.zeros(n_rows), at)).value for at in np.linspace(-12, 0, 60)]
    assert np.exp(np.linspace(-12, 0, 60)[int(np.argmax(values))]) > UNEXPLAINED_LABELS / 2
    fit = model.search(K, None)
    assert np.exp(fit.scales[-1]) >= UNEXPLAINED_LABELS * (1 - 1e-9)
