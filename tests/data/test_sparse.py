"""Every reduction of sparse rows against the same rows made dense."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from sparsebayes.data import sparse as room
from sparsebayes.data.dense import DenseRows
from sparsebayes.data.formed import FormedColumns
from sparsebayes.data.source import design_of
from sparsebayes.data.sparse import SparseRows

FORMS = (sparse.csr_array, sparse.csc_array, sparse.csr_matrix, sparse.csc_matrix, sparse.coo_array)


@pytest.fixture(params=product([(30, 6), (6, 30)], [True, False]), ids=str)
def pair(request, rng):
    """Sparse and dense designs of the same rows, with weights."""
    shape, centre = request.param
    X = np.where(rng.uniform(size=shape) < 0.4, rng.normal(2.0, 1.0, shape), 0.0) * np.logspace(-3, 3, shape[1])
    X[0] = 1.0  # no column is empty
    weight = rng.uniform(0.2, 3, shape[0])
    return SparseRows.of(sparse.csr_array(X)).standardised(weight, centre), DenseRows.of(X).standardised(weight, centre)


def test_every_reduction_is_that_of_the_dense_rows(pair, rng):
    few, many = pair
    n, m = many.n_rows, many.n_columns
    per_row, per_column = rng.uniform(size=n), rng.uniform(size=m)
    for name, arguments in {
        "columns": (np.array([3, 1]),),
        "gram": (),
        "outer": (per_column,),
        "project": (rng.standard_normal((n, 3)),),
        "predict": (per_column,),
        "row_variance": (rng.standard_normal((4, m)),),
        "column_square": (per_row,),
        "gram_columns": (np.array([2, 0]),),
        "rows": (np.array([4, 2]),),
        "correlation": (np.array([5, 1, 2]),),
    }.items():
        found, expected = getattr(few, name)(*arguments), getattr(many, name)(*arguments)
        assert_allclose(found, expected, rtol=1e-10, atol=1e-10, err_msg=name)
    assert_allclose(few.gram(per_row), many.gram(per_row), rtol=1e-10, atol=1e-10)
    assert_allclose(few.project(per_row), many.project(per_row), rtol=1e-10, atol=1e-10)
    assert_allclose(few.gram_column(2, lambda: np.array([1])), many.gram()[2], rtol=1e-10, atol=1e-10)
    assert_allclose((few.origin, few.unit), (many.origin, many.unit), rtol=1e-12)


def test_centring_weighting_and_choice(pair, rng):
    few, many = pair
    weight, which = rng.uniform(0.1, 1, many.n_rows), np.array([4, 0, 2])
    for found, expected in (
        (few.centred(weight), many.centred(weight)),
        (few.weighted(weight), many.weighted(weight)),
        (few.unweighted(), many.unweighted()),
        (few.keep(which), many.keep(which)),
    ):
        assert_allclose(found.columns(slice(None)), expected.columns(slice(None)), rtol=1e-9, atol=1e-9)
        assert_allclose(found.offset, expected.offset, rtol=1e-9, atol=1e-9)
    for centre in (True, False):
        found, expected = (rows.unweighted().under(which, weight, centre) for rows in pair)
        assert_allclose(found.columns(slice(None)), expected.columns(slice(None)), rtol=1e-9, atol=1e-9)


def test_what_is_mostly_zeros_stays_sparse(monkeypatch):
    X = sparse.random_array((400, 8), density=0.01, random_state=0)
    rows = SparseRows.of(X).standardised(np.ones(400), True)
    assert isinstance(rows.keep(np.arange(3)), SparseRows)
    monkeypatch.setattr(room, "DENSITY", 1000)
    assert isinstance(rows.keep(np.arange(3)), FormedColumns)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_design(form, rng):
    dense = rng.poisson(0.5, (9, 4)).astype(float)
    rows = design_of(form(dense), ones=True)
    assert_array_equal(rows.columns(slice(None)), np.column_stack([dense, np.ones(9)]))


def test_duplicates_are_added_up_and_the_input_is_left_alone():
    X = sparse.coo_array(([1.0, 2.0, 4.0], ([0, 0, 1], [0, 0, 1])), shape=(2, 2)).tocsr()
    messy = sparse.csr_array((np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    assert_array_equal(SparseRows.of(messy).columns(slice(None)), X.toarray())
    assert messy.nnz == 3


def test_constant_and_empty_columns_are_constant(rng):
    X = np.column_stack([np.full(50, 0.1), np.zeros(50), rng.poisson(1.0, 50)])
    rows = SparseRows.of(sparse.csr_array(X)).standardised(np.ones(50), True)
    assert rows.usable.tolist() == [False, False, True]
    assert_array_equal(rows.column_square()[:2], 0.0)
