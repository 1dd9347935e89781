"""A kept basis must give the kept columns, on rows it has never seen."""

from functools import partial

import numpy as np
import pytest

from sparsebayes.core.basis import KernelBasis, LinearBasis
from sparsebayes.core.kernels import KERNELS

REFERENCE = np.array([0.5, -1.0, 0.0, 2.0])
CENTRES = np.random.default_rng(1).standard_normal((4, 6))
BASES = {
    "linear": partial(LinearBasis, np.array([4, 0, 2, 5]), REFERENCE),
    **{name: partial(KernelBasis, kernel, CENTRES, REFERENCE) for name, kernel in KERNELS.items()},
}
MASKS = [[1, 0, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]]


@pytest.fixture(params=BASES)
def make(request):
    return BASES[request.param]


@pytest.fixture
def X(rng):
    return rng.standard_normal((7, 6))


def test_linear_design_is_the_columns_from_the_reference(X):
    design = LinearBasis(np.array([4, 0]), np.array([0.5, -1.0]), ones=True)(X)
    np.testing.assert_array_equal(design, np.column_stack([X[:, 4] - 0.5, X[:, 0] + 1.0, np.ones(7)]))


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_design_has_a_column_per_centre_from_the_reference(name, X):
    design = KernelBasis(KERNELS[name], CENTRES, REFERENCE, ones=True)(X)
    np.testing.assert_array_equal(design, np.column_stack([KERNELS[name](X, CENTRES) - REFERENCE, np.ones(7)]))


@pytest.mark.parametrize("features", MASKS)
@pytest.mark.parametrize("last", [None, False, True])
def test_keeping_by_mask_or_index_gives_these_columns(make, X, features, last):
    """`last` says whether there is a column of ones (None: no), and whether it is kept."""
    basis = make(ones=last is not None)
    mask = np.array(features if last is None else [*features, last], dtype=bool)
    expected = basis(X)[:, mask]
    assert expected.shape == (7, mask.sum())
    for which in (mask, np.flatnonzero(mask)):
        # rbf centres its arithmetic on the kept centres, hence not the very same bits
        np.testing.assert_allclose(basis.keep(which)(X), expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("which", [[2, 0], [3, 1, 0], [2, 0, 4]])
def test_indices_keep_their_order_with_the_ones_last(make, X, which):
    np.testing.assert_allclose(make(ones=True).keep(np.array(which))(X), make(ones=True)(X)[:, which], rtol=1e-13)


def test_keeping_twice_is_keeping_the_intersection(make, X):
    basis = make(ones=True)
    twice = basis.keep(np.array([0, 2, 3, 4])).keep(np.array([1, 3]))
    np.testing.assert_allclose(twice(X), basis(X)[:, [2, 4]], rtol=1e-13)
