"""Weighted kernels: values by loops over pairs, derivatives by differences, and the same in the user's units."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparsebayes.core.weighted_kernels import WEIGHTED, FeatureKernel, Shape, power, weighted_kernel

THETA = np.array([0.7, 0.0, 0.2, 1.1])
INSIDE = np.array([0.7, 0.1, 0.2, 1.1])
"""With room for a difference on both sides."""
OFFSET = np.array([0.0, 1.0, -2.0, 0.5])
"""Centres need not be where the rows are; they are near, because the estimators centre."""
POLY = {"degree": 3, "coef0": 0.5}


@pytest.fixture(params=WEIGHTED)
def name(request):
    return request.param


@pytest.fixture
def kernel(name):
    return weighted_kernel(name, **POLY)


@pytest.fixture
def pairs(rng):
    """Rows, centres, and weights of the centres."""
    X = 0.6 * rng.standard_normal((9, 4)) + OFFSET
    return X, X[:5] + 0.3 * rng.standard_normal((5, 4)), rng.standard_normal(5)


def brute(name, x, z, theta, *, degree, coef0):
    if name == "poly":
        return (sum(t * a * b for t, a, b in zip(theta, x, z, strict=True)) + coef0) ** degree
    size = 2 if name == "rbf" else 1
    return np.exp(-sum(t * abs(a - b) ** size for t, a, b in zip(theta, x, z, strict=True)))


def differences(f, theta, h=1e-3):
    """Derivatives in each weight by central differences of fourth order: an error of about h⁴."""

    def central(step, h):
        return (f(theta + h * step) - f(theta - h * step)) / (2 * h)

    return np.moveaxis([(4 * central(e, h / 2) - central(e, h)) / 3 for e in np.eye(len(theta))], 0, -1)


def test_values_are_those_of_a_loop_over_pairs(name, kernel, pairs):
    X, Z, _ = pairs
    expected = [[brute(name, x, z, THETA, **POLY) for z in Z] for x in X]
    assert_allclose(kernel(X, Z, THETA).value, expected, rtol=1e-12)


def test_without_any_weight_the_kernel_is_constant(kernel, pairs):
    X, Z, _ = pairs
    value = kernel(X[:, :0], Z[:, :0], np.empty(0)).value
    assert value.shape == (9, 5)
    assert np.ptp(value) == 0
    assert_allclose(kernel(X, Z, np.zeros(4)).value, value)


def test_jacobian_is_a_difference(kernel, pairs):
    X, Z, w = pairs
    at = kernel(X, Z, INSIDE)
    expected = differences(lambda theta: kernel(X, Z, theta).value @ w, INSIDE)
    assert_allclose(kernel.jacobian(X, Z, at, w), expected, rtol=1e-6, atol=1e-9)


def test_jacobian_with_weights_for_every_row(kernel, pairs, rng):
    X, Z, _ = pairs
    at, W = kernel(X, Z, INSIDE), rng.standard_normal((9, 5))
    expected = differences(lambda theta: (kernel(X, Z, theta).value * W).sum(axis=1), INSIDE)
    assert_allclose(kernel.jacobian(X, Z, at, W), expected, rtol=1e-6, atol=1e-9)


def test_gradient_of_a_function_of_the_kernel_is_a_difference(kernel, pairs, rng):
    X, Z, _ = pairs
    goal = rng.standard_normal((9, 5))
    at = kernel(X, Z, INSIDE)
    expected = differences(lambda theta: ((kernel(X, Z, theta).value - goal) ** 2).sum(), INSIDE)
    assert_allclose(kernel.gradient(X, Z, at, 2 * (at.value - goal)), expected, rtol=1e-6)


def test_bend_is_a_difference_of_the_gradient(kernel, pairs, rng):
    X, Z, _ = pairs
    slope = rng.standard_normal((9, 5))
    expected = differences(lambda theta: kernel.gradient(X, Z, kernel(X, Z, theta), slope), INSIDE)
    found = kernel.bend(X, Z, kernel(X, Z, INSIDE), slope)
    assert_allclose(found, expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())
    assert_allclose(found, found.T, rtol=1e-10, atol=1e-12 * np.abs(found).max())


@pytest.mark.parametrize("distance", ["rbf", "laplacian"])
def test_offsets_of_a_hundred_spreads_cost_four_digits_of_a_derivative(distance, pairs):
    """The square is expanded into products, so an offset costs its square in digits: the estimators centre."""
    X, Z, w = pairs
    kernel = weighted_kernel(distance)
    at, far = kernel(X, Z, INSIDE), kernel(X + 60, Z + 60, INSIDE)
    assert_allclose(far.value, at.value, rtol=1e-10)
    exact = kernel.jacobian(X, Z, at, w)
    assert_allclose(kernel.jacobian(X + 60, Z + 60, far, w), exact, atol=1e-10 * np.abs(exact).max())


@pytest.mark.parametrize("degree", [1, 2, 3, 2.5])
def test_the_power_and_its_derivatives(degree, rng):
    U = rng.uniform(0.5, 2, (4, 3))
    value, slope, bend = power(U, degree=degree, coef0=0.5)
    h = 1e-4
    up, down = (power(U + step, degree=degree, coef0=0.5) for step in (h, -h))
    assert_allclose(value, (U + 0.5) ** degree, rtol=1e-14)
    assert_allclose(slope, (up.value - down.value) / (2 * h), rtol=1e-6)
    assert_allclose(bend, (up.slope - down.slope) / (2 * h), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_the_power_has_derivatives_where_it_is_zero(degree):
    found = power(np.array([[-0.5]]), degree=degree, coef0=0.5)
    assert isinstance(found, Shape)
    assert np.isfinite([part[0, 0] for part in found]).all()
    assert found.value[0, 0] == 0


def test_feature_kernel_takes_rows_in_the_users_units(name, pairs):
    """Only some columns have a weight; the others may hold anything."""
    X, Z, _ = pairs
    columns, unit, centre = np.array([0, 2]), np.array([1e3, 1e-3]), np.array([5.0, -7e-3])
    theta = THETA[columns] / unit ** WEIGHTED[name].power
    kernel = FeatureKernel(name, columns, theta, centre, POLY["degree"], POLY["coef0"])
    users = np.full((9, 4), np.nan), np.full((5, 4), np.nan)
    for table, rows in zip(users, (X, Z), strict=True):
        table[:, columns] = rows[:, columns] * unit + centre
    expected = [[brute(name, x[columns], z[columns], THETA[columns], **POLY) for z in Z] for x in X]
    assert_allclose(kernel(*users), expected, rtol=1e-10)


def test_feature_kernel_without_columns_is_constant(name):
    kernel = FeatureKernel(name, np.empty(0, dtype=np.intp), np.empty(0), np.empty(0))
    value = kernel(np.ones((3, 2)), np.zeros((4, 2)))
    assert value.shape == (3, 4)
    assert np.ptp(value) == 0


@pytest.mark.parametrize("name", WEIGHTED)
def test_leaving_an_input_out_is_a_weight_of_zero(name, rng):
    X, Z, theta = rng.standard_normal((9, 4)), rng.standard_normal((5, 4)), np.array([0.8, 0.3, 0.1, 1.2])
    kernel = weighted_kernel(name)
    for k, K in zip([2, 0], kernel.leaving_out(X, Z, theta, np.array([2, 0])), strict=True):
        assert_allclose(K, kernel(X, Z, theta * (np.arange(4) != k)).value, rtol=1e-12)
