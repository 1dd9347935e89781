"""The evidence against a dense density, its slopes against differences, and maximisation where the maximum is known."""

import numpy as np
import pytest
from numpy.linalg import LinAlgError
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from sparsebayes.core.kernels import rbf
from sparsebayes.core.weighted_kernels import WEIGHTED, weighted_kernel
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.evidence_gradient import (
    MAX_LOG_CHANGE,
    Slopes,
    gaussian_evidence,
    maximise_evidence,
)
from sparsebayes.engine.least_squares import NOISE_FLOOR, LeastSquares

GOAL = np.array([[1.0, -2.0, 0.5]])
FREE = [(-np.inf, None)] * 3


def bowl(goal=GOAL, best=(0.0, 0.0)):
    """An evidence that is largest where the design is `goal` and the scales are `best`."""
    best = np.array(best)

    def at(K, scales):
        value = -0.5 * ((K - goal) ** 2).sum() - 0.5 * ((scales - best) ** 2).sum()
        return Slopes(float(value), goal - K, best - scales)

    return at


def identity(parameters):
    """The design is the parameters themselves."""
    return parameters[None], lambda slope: slope[0]


def test_the_end_is_the_maximum():
    top = maximise_evidence(bowl(best=(1.0, -0.3)), identity, np.zeros(3), FREE, np.zeros(2), 1)
    assert_allclose(top.parameters, GOAL[0], atol=1e-4)
    assert_allclose(top.scales, [1.0, -0.3], atol=1e-4)
    assert top.value == pytest.approx(0.0, abs=1e-6)


def test_parameters_stay_within_their_limits():
    limits = [(0.0, None), (0.0, None), (0.0, 0.2)]
    top = maximise_evidence(bowl(), identity, np.array([0.1, 0.1, 0.1]), limits, np.zeros(2), 2)
    assert_allclose(top.parameters, [1.0, 0.0, 0.2], atol=1e-4)
    assert top.parameters[1] == 0
    assert top.parameters[2] <= 0.2


def test_a_weight_that_is_zero_comes_back_where_that_pays():
    top = maximise_evidence(bowl(), identity, np.zeros(3), [(0.0, None)] * 3, np.zeros(2), 2)
    assert_allclose(top.parameters, [1.0, 0.0, 0.5], atol=1e-4)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_unit_of_the_parameters_changes_nothing(unit):
    """Parameters a million times larger, of which the design takes a millionth, and a unit that says so."""

    def design(parameters):
        return parameters[None] / unit, lambda slope: slope[0] / unit

    limits = [(0.0, None), (-3 * unit, None), (0.0, 0.2 * unit)]
    top = maximise_evidence(bowl(), design, np.full(3, 0.1 * unit), limits, np.zeros(2), 2, unit=unit)
    base = maximise_evidence(bowl(), identity, np.full(3, 0.1), [(0.0, None), (-3, None), (0.0, 0.2)], np.zeros(2), 2)
    assert_allclose(top.parameters / unit, base.parameters, rtol=1e-9)
    assert top.value == pytest.approx(base.value, rel=1e-9)


def test_it_ends_early_once_the_evidence_is_enough():
    stretch = np.array([1.0, 3.0, 10.0])  # a round bowl takes one step

    def design(parameters):
        return (stretch * parameters)[None], lambda slope: stretch * slope[0]

    start = np.array([40.0, 30.0, -20.0])
    whole = maximise_evidence(bowl(), design, start, FREE, np.ones(2), 2)
    part = maximise_evidence(bowl(), design, start, FREE, np.ones(2), 2, stop_at=-1000.0)
    assert whole.value == pytest.approx(0, abs=1e-3)
    assert -1000 <= part.value < -1


def test_scales_go_far_but_not_out_of_range():
    top = maximise_evidence(bowl(best=(100.0, -100.0, -100.0)), identity, np.zeros(3), FREE, np.zeros(3), 2)
    assert_allclose(top.scales[:2], [MAX_LOG_CHANGE, -MAX_LOG_CHANGE])
    assert top.scales[2] == pytest.approx(np.log(NOISE_FLOOR))
    top = maximise_evidence(bowl(best=(0.0, 0.0, 100.0)), identity, np.zeros(3), FREE, np.zeros(3), 2)
    assert top.scales[2] == pytest.approx(1.0)  # the noise is no larger than the target, or not by much


def test_the_line_search_turns_back_from_where_there_is_no_evidence():
    def at(K, scales):
        if K[0, 0] > 0.9:
            raise LinAlgError
        return bowl()(K, scales)

    top = maximise_evidence(at, identity, np.zeros(3), FREE, np.zeros(2), 2)
    assert np.isfinite(top.value)
    assert 0 <= top.parameters[0] <= 0.9
    assert top.value > -0.5 * (GOAL**2).sum()


SCALES = np.log([0.5, 2.0, 1.0, 0.3, 0.2])
"""log α of four columns, and log σ²."""


@pytest.fixture(params=[True, False], ids=["flat intercept", "no intercept"])
def regression(request, rng):
    """Inputs, and a regression of a target on anything that can be made of them."""
    X, weight = rng.uniform(-1, 1, (30, 4)), rng.uniform(0.3, 2, 30)
    y = np.sin(3 * X[:, 0]) + 0.3 * rng.standard_normal(30)
    t = np.sqrt(weight) * (y - weight @ y / weight.sum() if request.param else y)
    rows = DenseRows.of(np.empty((30, 0))).standardised(weight, centre=request.param)
    return X, LeastSquares(design=rows, t=t, n_weighted=float(weight.sum()), flat_intercept=request.param)


def central(f, x, h=1e-3):
    """Derivative with an error of order h⁴."""
    wide = [(f(x + 2 * h * e) - f(x - 2 * h * e)) / (4 * h) for e in np.eye(len(x))]
    narrow = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))]
    return (4 * np.array(narrow) - np.array(wide)) / 3


def test_the_evidence_is_the_density_of_the_target(regression):
    X, problem = regression
    K = rbf(X, X[:4], gamma=0.4)
    alpha, noise = np.exp(SCALES[:-1]), np.exp(SCALES[-1])
    # rows that count w times have the noise σ²/w; with a flat intercept C has an infinite variance along the ones
    weight = problem.design.root_weight**2
    C = np.diag(noise / weight) + (K / alpha) @ K.T
    t, ones = problem.t / problem.design.root_weight, np.ones(len(K))
    density = multivariate_normal(np.zeros(len(K)), C).logpdf(t)
    # the library counts a row of weight w as w rows: w log densities N(0, σ²) instead of one of N(0, σ²/w)
    density += 0.5 * (len(K) - weight.sum()) * np.log(2 * np.pi * noise) - 0.5 * np.log(weight).sum()
    if problem.flat_intercept:
        across, along = np.linalg.solve(C, np.column_stack([ones, t])).T @ ones
        density += 0.5 * np.log(2 * np.pi / across) + along**2 / (2 * across)
    assert gaussian_evidence(problem)(K, SCALES).value == pytest.approx(density, rel=1e-10)


def test_slopes_in_the_scales_are_differences(regression):
    X, problem = regression
    evidence, K = gaussian_evidence(problem), rbf(X, X[:4], gamma=0.4)
    numerical = central(lambda scales: evidence(K, scales).value, SCALES)
    assert_allclose(evidence(K, SCALES).scales, numerical, rtol=1e-6, atol=1e-8)


def test_the_slope_of_every_entry_of_the_design_is_a_difference(regression):
    X, problem = regression
    evidence, K = gaussian_evidence(problem), rbf(X, X[:4], gamma=0.4)
    numerical = central(lambda flat: evidence(flat.reshape(K.shape), SCALES).value, K.ravel())
    assert_allclose(evidence(K, SCALES).design.ravel(), numerical, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", WEIGHTED)
def test_the_slope_in_feature_weights_is_a_difference(name, regression):
    X, problem = regression
    theta, kernel, evidence = np.array([0.8, 0.3, 0.1, 1.2]), weighted_kernel(name), gaussian_evidence(problem)
    shape = kernel(X, X[:4], theta)
    found = theta * kernel.gradient(X, X[:4], shape, evidence(shape.value, SCALES).design)
    expected = central(lambda at: evidence(kernel(X, X[:4], np.exp(at)).value, SCALES).value, np.log(theta))
    assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
