"""Factors and Gram matrices against numpy.linalg."""

import numpy as np
import pytest
from scipy.linalg import LinAlgError

from sparsebayes.core.linalg import JITTER_LADDER, factorise, weighted_gram

ORDERS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda matrix: np.repeat(np.repeat(matrix, 2, axis=0), 2, axis=1)[::2, ::2],
}


@pytest.fixture(params=ORDERS)
def laid_out(request):
    return ORDERS[request.param]


@pytest.fixture
def spd(rng):
    root = rng.standard_normal((6, 9))
    return root @ root.T


def test_factor_solves_and_measures_like_numpy(spd, laid_out, rng):
    spd = laid_out(spd)
    factor = factorise(spd)
    right = rng.standard_normal((6, 3))
    lower = np.linalg.cholesky(spd)
    assert factor.jitter == 0
    np.testing.assert_allclose(factor.lower, lower, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(factor.logdet, np.linalg.slogdet(spd)[1], rtol=1e-12)
    for b in (right, right[:, 0]):
        np.testing.assert_allclose(factor.solve(b), np.linalg.solve(spd, b), rtol=1e-10)
        np.testing.assert_allclose(factor.half_solve(b), np.linalg.solve(lower, b), rtol=1e-10, atol=1e-13)
    inverse_root = factor.inverse_root()
    np.testing.assert_allclose(inverse_root.T @ inverse_root, np.linalg.inv(spd), rtol=1e-10, atol=1e-13)
    np.testing.assert_array_equal(inverse_root, np.tril(inverse_root))


def test_factorising_leaves_the_matrix_as_it_was(spd, laid_out):
    matrix = laid_out(spd)
    factorise(matrix)
    np.testing.assert_array_equal(matrix, spd)


def test_an_empty_matrix_has_an_empty_factor():
    factor = factorise(np.zeros((0, 0)))
    assert factor.logdet == 0
    assert factor.inverse_root().shape == (0, 0)
    assert factor.solve(np.zeros(0)).shape == factor.half_solve(np.zeros(0)).shape == (0,)


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_a_singular_matrix_reports_a_jitter_that_does_not_depend_on_its_size(size):
    # The exact square of an integer matrix of rank 2: a zero pivot, whatever the rounding.
    root = np.array([[1.0, 2.0], [3.0, -1.0], [2.0, 2.0]])
    matrix = size * root @ root.T
    factor = factorise(matrix)
    assert factor.jitter in JITTER_LADDER[1:]
    expected = matrix + factor.jitter * np.trace(matrix) / 3 * np.eye(3)
    np.testing.assert_allclose(factor.lower @ factor.lower.T, expected, rtol=1e-12)


@pytest.mark.parametrize("diagonal", [(1.0, -1e-3), (0.0, 0.0), (-1.0, -1.0), (np.nan, 1.0)])
def test_what_is_not_positive_is_refused(diagonal):
    with pytest.raises(LinAlgError, match="2×2 matrix is not positive definite"):
        factorise(np.diag(diagonal))


@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (1, 3)])
def test_weighted_gram_is_the_product_written_out(shape, laid_out, rng):
    matrix = rng.standard_normal(shape)
    weight = rng.uniform(size=shape[0])
    weight[0] = 0.0
    given = laid_out(matrix)
    for w in (1.0, 2.5, 0.0, weight):
        expected = matrix.T @ np.diag(np.broadcast_to(w, shape[0])) @ matrix
        gram = weighted_gram(given, w)
        np.testing.assert_allclose(gram, expected, rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_array_equal(given, matrix)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_weighted_gram_of_nothing_is_zero(shape):
    for weight in (1.0, np.ones(shape[0])):
        np.testing.assert_array_equal(weighted_gram(np.empty(shape), weight), np.zeros((shape[1], shape[1])))
