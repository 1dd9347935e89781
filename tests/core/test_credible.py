"""Credible sets of draws that were made by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsebayes.core.credible import credible_sets

N = 100


def draws(*inside):
    """One column for each feature: the draws that it is in."""
    table = np.zeros((N, len(inside)), dtype=bool)
    for column, rows in zip(table.T, inside, strict=True):
        column[rows] = True
    return table


def found(inside, correlation, share=None, features=None):
    share = np.full(N, 1 / N) if share is None else share
    features = np.arange(inside.shape[1]) if features is None else np.array(features)
    return credible_sets(features, inside, share, share @ inside, np.array(correlation))


ALONE = np.eye(3)
ALIKE = np.array([[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1.0]])


def test_a_sure_feature_is_a_set_of_its_own():
    (only,) = found(draws(range(98), range(3), []), ALONE)
    assert_array_equal(only.features, [0])
    assert_allclose(only.probability, 0.98)
    assert only.purity == 1.0


def test_stand_ins_share_a_set():
    """In at different draws: 60, and 38 of the others."""
    (only,) = found(draws(range(60), range(60, 98), [3, 4]), ALIKE)
    assert_array_equal(only.features, [0, 1])
    assert_allclose(only.probability, 0.98)
    assert_allclose(only.purity, 0.9)


def test_the_sign_of_a_correlation_does_not_matter():
    (only,) = found(draws(range(60), range(60, 98), []), ALIKE * np.array([[1, -1, 1], [-1, 1, 1], [1, 1, 1]]))
    assert_array_equal(only.features, [0, 1])
    assert_allclose(only.purity, 0.9)


def test_features_that_are_not_alike_do_not_stand_in():
    assert found(draws(range(60), range(60, 98), []), ALONE) == []


def test_every_member_is_like_every_other():
    """2 is like 1 but not like 0: once 1 has joined 0, 2 may not."""
    correlation = np.array([[1, 0.8, 0.2], [0.8, 1, 0.8], [0.2, 0.8, 1]])
    assert found(draws(range(60), range(60, 80), range(80, 98)), correlation) == []


def test_nothing_is_added_to_what_is_sure_enough():
    (only,) = found(draws(range(96), range(90, 100), []), ALIKE)
    assert_array_equal(only.features, [0])


def test_the_stand_in_that_covers_most_comes_first_and_useless_ones_never():
    alike = np.full((4, 4), 0.9) + 0.1 * np.eye(4)
    (only,) = found(draws(range(50), range(50, 60), range(60, 97), range(45)), alike)
    assert_array_equal(only.features, [0, 2, 1])  # 3 is in only where 0 is
    assert_allclose(only.probability, 0.97)


def test_weak_effects_are_not_reported():
    assert found(draws(range(50), range(50, 85), []), ALIKE) == []


def test_two_effects_the_surest_first_and_no_feature_twice():
    correlation = np.eye(4)
    correlation[0, 1] = correlation[1, 0] = correlation[2, 3] = correlation[3, 2] = 0.95
    first, second = found(draws(range(70), range(70, 95), range(55), range(55, 99)), correlation)
    assert_array_equal(first.features, [2, 3])
    assert_array_equal(second.features, [0, 1])
    assert first.probability > second.probability


def test_draws_count_by_their_share():
    """Half of the draws, but nearly all of the probability."""
    share = np.where(np.arange(N) < 50, 0.0196, 0.0004)
    (only,) = found(draws(range(50), [], []), ALONE, share=share / share.sum())
    assert_array_equal(only.features, [0])
    assert_allclose(only.probability, 0.98)


def test_features_keep_their_own_numbers():
    (only,) = found(draws([], range(60), range(60, 98)), [[1, 0, 0], [0, 1, 0.9], [0, 0.9, 1]], features=[40, 7, 12])
    assert_array_equal(only.features, [7, 12])


@pytest.mark.parametrize("n_features", [0, 1])
def test_no_features_or_none_that_matters(n_features):
    assert found(draws(*[[]] * n_features), np.eye(n_features)) == []
