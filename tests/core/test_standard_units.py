"""Inputs in standard units: weights, constant columns, far values, and the units of the data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsebayes.core.kernels import rbf
from sparsebayes.core.standard_units import FENCE, StandardisedKernel, StandardUnits


@pytest.fixture
def X(rng):
    """Columns in different units, one of them skewed and one with few different values."""
    return np.column_stack(
        [rng.normal(5, 2, 60), 1e-6 * rng.exponential(size=60), rng.integers(0, 2, 60), 1e4 * rng.uniform(size=60)]
    )


def units_of(X):
    return StandardUnits.by_deviation(X, np.ones(len(X)))


def test_columns_have_mean_zero_and_variance_one(X):
    standard = units_of(X)(X)
    assert_allclose(standard.mean(axis=0), 0, atol=1e-9)
    assert_allclose(standard.std(axis=0), 1, rtol=1e-9)


def test_integer_weights_are_repeated_rows(X, rng):
    weight = rng.integers(1, 4, len(X))
    again = np.repeat(X, weight, axis=0)
    for make in (StandardUnits.by_deviation, StandardUnits.by_range):
        weighted, repeated = make(X, weight.astype(float)), make(again, np.ones(len(again)))
        for name, value in vars(repeated).items():
            assert_allclose(getattr(weighted, name), value, rtol=1e-12, err_msg=name)
        assert_array_equal(weighted(X), repeated(X))


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9])
def test_a_constant_column_is_zero(X, value):
    X = np.column_stack([X, np.full(len(X), value)])
    units = units_of(X)
    assert_array_equal(units.varying, [True] * 4 + [False])
    assert (units(X)[:, 4] == 0).all()
    assert (units(X + 3.0)[:, 4] == 0).all()  # also for new rows with another value


def test_a_spread_that_is_rounding_is_none():
    X = np.full((30, 1), 0.1)
    X[::2] = np.nextafter(0.1, 1)
    assert not units_of(X).varying.any()


def test_one_value_in_another_unit_changes_little(X):
    wrong = X.copy()
    wrong[7, :2] *= 1e6
    units, other = units_of(X), units_of(wrong)
    rest = np.arange(len(X)) != 7
    # It counts as a value at the fence, ten interquartile ranges from the quartiles: it may double a deviation.
    assert (other.unit[:2] < 2.5 * units.unit[:2]).all()
    assert_array_equal(other(wrong)[:, 2:], units(X)[:, 2:])
    assert np.abs(other(wrong)[rest, :2] - units(X)[rest, :2]).max() < 4
    assert np.abs(other(wrong)[7]).max() < 10
    worse = wrong.copy()
    worse[7, :2] *= 1e6
    assert_array_equal(units_of(worse)(worse), other(wrong))  # how far does not matter


def test_values_within_the_fence_are_no_outliers(X):
    quartiles = np.quantile(X, [0.25, 0.75], axis=0, method="inverted_cdf")
    units = units_of(X)
    assert_allclose(units.low[0], quartiles[0, 0] - FENCE * (quartiles[1, 0] - quartiles[0, 0]))
    assert_allclose(units.high[0], quartiles[1, 0] + FENCE * (quartiles[1, 0] - quartiles[0, 0]))
    assert_array_equal(np.clip(X, units.low, units.high), X)


def test_a_column_that_is_mostly_one_value_has_no_fence(rng):
    X = np.zeros((40, 1))
    X[:5, 0] = [1.0, 2.0, 3.0, 100.0, 1e6]
    units = units_of(X)
    assert units.low[0] == -np.inf
    assert units.high[0] == np.inf
    assert len(np.unique(units(X))) == 6


def test_units_by_range_are_middle_and_range_within_the_fence(X):
    units = StandardUnits.by_range(X, np.ones(len(X)))
    assert_allclose(units(X).min(axis=0), -np.sqrt(3), rtol=1e-9)  # a uniform variable has then deviation one
    assert_allclose(units(X).max(axis=0), np.sqrt(3), rtol=1e-9)
    wrong = X.copy()
    wrong[7, 0] *= 1e6
    other = StandardUnits.by_range(wrong, np.ones(len(X)))
    assert_allclose(2 * np.sqrt(3) * other.unit[0], other.high[0] - X[:, 0].min())


def test_without_a_fence_far_values_are_far(X):
    units = units_of(X)
    far = X[:1] + 1e6 * units.unit
    assert_allclose(units.unfenced()(far) - units.unfenced()(X[:1]), 1e6)
    assert (units(far)[:, [0, 1, 3]] < 100).all()
    assert_array_equal(units.unfenced()(X), units(X))


@pytest.mark.parametrize("make", [StandardUnits.by_deviation, StandardUnits.by_range])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 3.7, 1e6])
def test_the_units_of_the_data_change_nothing_at_all(X, scale, make):
    ones = np.ones(len(X))
    assert_array_equal(make(scale * X, ones)(scale * X), make(X, ones)(X))
    moved = scale * (X[:, [0, 2]] + 1e3)  # has lost digits: one in a thousand is rounded to the other side
    assert_allclose(make(moved, ones)(moved), make(X, ones)(X)[:, [0, 2]], rtol=0, atol=1.1e-10)


def test_mirrored_columns_are_mirrored(X):
    assert_array_equal(units_of(-X)(-X), -units_of(X)(X))


def test_order_of_rows_and_columns(X, rng):
    rows, columns = rng.permutation(len(X)), rng.permutation(4)
    moved = X[np.ix_(rows, columns)]
    assert_array_equal(units_of(moved)(moved), units_of(X)(X)[np.ix_(rows, columns)])


def test_a_kernel_of_standard_inputs(X):
    units = units_of(X)
    kernel = StandardisedKernel(rbf, units)
    assert_array_equal(kernel(X, X), rbf(units(X), units(X)))
    assert_array_equal(kernel(X[:5], X[9:12]), rbf(units(X[:5]), units(X[9:12])))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_fence_stands_on_weighted_quartiles(X, rng, weighted):
    weight = rng.uniform(0.1, 3, len(X)) if weighted else np.ones(len(X))
    low, high = np.quantile(X, [0.25, 0.75], axis=0, weights=weight, method="inverted_cdf")
    units = StandardUnits.by_deviation(X, weight)
    reach = np.where(high > low, FENCE * (high - low), np.inf)
    assert_array_equal(units.low, low - reach)
    assert_array_equal(units.high, high + reach)
