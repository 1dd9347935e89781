"""Moments against their definition, in any number of pieces."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparsebayes.core.moments import Moments, total


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((40, 3)) * [1e-3, 1.0, 1e4] + [2.0, -1.0, 5e5]
    return X, rng.standard_normal(40) + 7


def test_moments_are_count_mean_and_scatter(rows):
    moments, all_columns = Moments.of(*rows), np.column_stack(rows)
    assert (moments.n, moments.n_features, moments.n_outputs) == (40, 3, 1)
    assert_allclose(moments.mean, all_columns.mean(axis=0), rtol=1e-14)
    assert_allclose(moments.scatter, 39 * np.cov(all_columns.T), rtol=1e-10)


def test_weights_are_repeated_rows(rows, rng):
    X, y = rows
    times = rng.integers(0, 4, 40)
    weighted, repeated = Moments.of(X, y, times.astype(float)), Moments.of(X.repeat(times, 0), y.repeat(times))
    assert weighted.n == repeated.n
    assert_allclose(weighted.mean, repeated.mean, rtol=1e-13)
    assert_allclose(weighted.scatter, repeated.scatter, rtol=1e-10)


@pytest.mark.parametrize("size", [1, 7, 39])
def test_blocks_add_up(rows, size):
    X, y = rows
    parts = [Moments.of(X[i : i + size], y[i : i + size]) for i in range(0, 40, size)]
    whole, added = Moments.of(X, y), total([Moments.of(X[:0], y[:0]), *parts])
    assert added.n == 40
    assert_allclose(added.mean, whole.mean, rtol=1e-14)
    assert_allclose(added.scatter, whole.scatter, rtol=1e-9)  # one of the columns has 5e5 as mean and 1e4 as spread


@pytest.mark.parametrize("origin", [0.0, [2.0, -1.0, 5e5, 7.0]])
def test_plain_sums_give_the_same(rows, origin):
    shifted = np.column_stack(rows) - origin
    moments = Moments.from_sums(40, shifted.sum(axis=0), shifted.T @ shifted, origin)
    assert_allclose(moments.mean, Moments.of(*rows).mean, rtol=1e-12)
    # Without an origin the smallest column has lost six of its digits: (2 / 1e-3)².
    assert_allclose(moments.scatter, Moments.of(*rows).scatter, rtol=1e-7 if origin == 0.0 else 1e-10)


def test_sums_far_from_their_origin_are_told_of(rng):
    years = 2000 + 1e-3 * rng.standard_normal((50, 2))
    with pytest.warns(RuntimeWarning, match="column 0 lies so far from its origin"):
        Moments.from_sums(50, years.sum(axis=0), years.T @ years)


def test_a_constant_column_has_no_scatter_from_sums():
    rows = np.column_stack([np.full(9, 0.1), np.arange(9.0)])
    moments = Moments.from_sums(9, rows.sum(axis=0), rows.T @ rows)
    assert moments.scatter[0].tolist() == [0.0, 0.0]
    assert moments.constant().tolist() == [True, False]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": -1}, "n=-1.0 must be a finite count"),
        ({"mean": np.zeros(3)}, "one number for each column"),
        ({"mean": [0.0, np.nan]}, "column 1 is NaN or infinite"),
        ({"scatter": [[1.0, 0.5], [0.4, 1.0]]}, "not symmetric"),
        ({"scatter": [[1.0, 2.0], [2.0, 1.0]]}, "larger than its diagonal allows"),
        ({"scatter": [[-1.0, 0.0], [0.0, 1.0]]}, "negative diagonal"),
        ({"n_outputs": 3}, "n_outputs=3"),
    ],
)
def test_what_cannot_be_moments_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Moments(**{"n": 5, "mean": np.zeros(2), "scatter": np.eye(2), **change})


def test_moments_of_different_columns_do_not_add_up(rows):
    with pytest.raises(ValueError, match="do not add up"):
        Moments.of(*rows) + Moments.of(rows[0][:, :2], rows[1])
