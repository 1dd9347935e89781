"""Every reduction against the design formed in plain sight, and the memory that it may take."""

import tracemalloc
from itertools import product

import numpy as np
import pytest

from sparsebayes.data import dense
from sparsebayes.data.dense import DenseRows

EPS = np.finfo(np.float64).eps


def written_out(X, weight, centre):
    """Φ by its definition."""
    mean = np.average(X, axis=0, weights=weight) if centre else np.zeros(X.shape[1])
    scale = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
    return np.sqrt(weight)[:, None] * (X - mean) / scale


@pytest.fixture(params=product([(12, 5), (5, 12)], [True, False]), ids=str)
def case(request, rng):
    """Standardised rows and their design, with weights and columns of very different size and place."""
    shape, centre = request.param
    X = (rng.standard_normal(shape) + rng.uniform(-3, 3, shape[1])) * np.logspace(-3, 3, shape[1])
    weight = rng.uniform(0.2, 3, shape[0])
    return DenseRows.of(X).standardised(weight, centre), written_out(X, weight, centre)


@pytest.fixture(params=[None, 200], ids=["one block", "many blocks"], autouse=True)
def blocks(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(dense, "BLOCK_BYTES", request.param)


def no_others() -> np.ndarray:
    return np.empty(0, dtype=np.intp)


def test_every_reduction_is_that_of_the_design(case, rng):
    rows, Phi = case
    n, m = Phi.shape
    weight, per_row, per_column = rng.uniform(size=m), rng.uniform(size=n), rng.standard_normal((n, 3))
    root = rng.standard_normal((4, m))
    reductions = {
        "columns": (rows.columns(slice(None)), Phi),
        "chosen columns": (rows.columns(np.array([3, 1])), Phi[:, [3, 1]]),
        "gram": (rows.gram(), Phi.T @ Phi),
        "gram, shared weight": (rows.gram(2.5), 2.5 * Phi.T @ Phi),
        "gram, weights": (rows.gram(per_row), Phi.T @ np.diag(per_row) @ Phi),
        "outer": (rows.outer(weight), Phi @ np.diag(weight) @ Phi.T),
        "project": (rows.project(per_column), Phi.T @ per_column),
        "project, vector": (rows.project(per_row), Phi.T @ per_row),
        "predict": (rows.predict(weight), Phi @ weight),
        "row_variance": (rows.row_variance(root), ((Phi @ root.T) ** 2).sum(axis=1)),
        "size": ((rows.n_rows, rows.n_columns), (n, m)),
    }
    for name, (found, expected) in reductions.items():
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12, err_msg=name)


def test_standard_columns_have_mean_square_one_and_no_mean(case):
    rows, Phi = case
    weight = rows.root_weight**2
    np.testing.assert_allclose((Phi**2).sum(axis=0), weight.sum(), rtol=1e-12)
    np.testing.assert_allclose(np.diag(rows.gram()), weight.sum(), rtol=1e-12)
    if rows.mean.any():
        np.testing.assert_allclose(rows.project(rows.root_weight) / weight.sum(), 0.0, atol=1e-13)


def test_gram_columns_are_those_of_the_gram_whether_or_not_it_is_there(case):
    rows, Phi = case
    gram = Phi.T @ Phi
    for ahead in (no_others, lambda: np.array([2, 0, 4])):
        for j in (4, 1, 4):
            np.testing.assert_allclose(rows.gram_column(j, ahead), gram[:, j], rtol=1e-11, atol=1e-11)
    rows.gram()
    np.testing.assert_allclose(rows.gram_column(3, no_others), gram[:, 3], rtol=1e-11, atol=1e-11)


def test_gram_columns_are_computed_once(case, monkeypatch):
    rows, Phi = case
    rows.gram_column(1, lambda: np.array([1, 3]))
    for expensive in ("project", "columns", "_gram_pass"):
        monkeypatch.setattr(DenseRows, expensive, None)
    for j in (1, 3):
        np.testing.assert_allclose(rows.gram_column(j, no_others), Phi.T @ Phi[:, j], rtol=1e-11, atol=1e-11)


def test_the_gram_is_computed_once(case, monkeypatch):
    rows, _ = case
    first = rows.gram()
    monkeypatch.setattr(DenseRows, "_gram_pass", None)
    assert rows.gram() is first
    np.testing.assert_array_equal(rows.gram(2.0), 2 * first)


@pytest.mark.parametrize("which", [np.array([True, False, True, False, True]), np.array([0, 2, 4])])
@pytest.mark.parametrize("cached", [True, False])
def test_kept_rows_are_the_kept_columns(which, cached, rng):
    rows = DenseRows.of(rng.standard_normal((9, 5)) + 2).standardised(rng.uniform(0.5, 2, 9), centre=True)
    if cached:
        rows.gram()
    kept = rows.keep(which)
    Phi = rows.columns(which)
    np.testing.assert_allclose(kept.columns(slice(None)), Phi, rtol=1e-13)
    np.testing.assert_allclose(kept.gram(), Phi.T @ Phi, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(kept.predict(np.ones(3)), Phi.sum(axis=1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("value", [0.0, 0.1, -3.3, 1e8, 1 / 3])
def test_a_constant_column_becomes_zeros_in_every_reduction(value, rng):
    X = rng.standard_normal((20, 3))
    X[:, 1] = value
    rows = DenseRows.of(X).standardised(rng.uniform(0.1, 2, 20), centre=True)
    assert np.isinf(rows.scale[1])
    assert np.isfinite(rows.scale[[0, 2]]).all()
    assert not rows.columns(np.array([1])).any()
    assert not rows.gram()[1].any()
    assert rows.project(rng.standard_normal(20))[1] == 0
    assert not rows.predict(np.array([0.0, 1.0, 0.0])).any()
    assert not rows.row_variance(np.array([[0.0, 1.0, 0.0]])).any()
    assert not rows.outer(np.array([0.0, 1.0, 0.0])).any()


def test_without_centring_only_a_column_of_zeros_is_gone(rng):
    X = np.column_stack([np.zeros(8), np.full(8, 3.0), rng.standard_normal(8)])
    rows = DenseRows.of(X).standardised(np.ones(8), centre=False)
    np.testing.assert_array_equal(np.isinf(rows.scale), [True, False, False])
    np.testing.assert_allclose(rows.columns(np.array([1])), 1.0)


@pytest.mark.parametrize(("offset", "spread"), [(1.0, 1e-9), (1e6, 1e-3), (0.0, 1e-100)])
def test_a_tiny_spread_is_still_a_spread(offset, spread, rng):
    X = offset + spread * rng.standard_normal((9, 1))
    assert DenseRows.of(X).standardised(np.ones(9), centre=True).scale == pytest.approx(X.std(axis=0), rel=1e-6, abs=0)


@pytest.mark.parametrize("centre", [True, False])
def test_integer_weights_are_repeated_rows(centre, rng):
    X, times = rng.standard_normal((8, 4)) + 1, np.array([1, 3, 2, 1, 5, 1, 1, 2])
    once = DenseRows.of(X).standardised(times.astype(float), centre)
    repeated = DenseRows.of(X.repeat(times, axis=0)).standardised(np.ones(times.sum()), centre)
    t = rng.standard_normal(8)
    np.testing.assert_allclose(once.mean, repeated.mean, rtol=1e-12)
    np.testing.assert_allclose(once.scale, repeated.scale, rtol=1e-12)
    np.testing.assert_allclose(once.gram(), repeated.gram(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(once.project(once.root_weight * t), repeated.project(t.repeat(times)), atol=1e-12)
    alpha = rng.uniform(size=4)
    # what belongs to one row counts √weight times (predictor) or weight times (variance)
    predictor = once.predict(alpha) / once.root_weight
    np.testing.assert_allclose(predictor.repeat(times), repeated.predict(alpha), atol=1e-12)


def test_columns_far_from_the_origin_keep_their_digits(rng):
    offset = 1e6
    X = rng.standard_normal((40, 6))
    # this subtraction is exact (the results have fewer digits), so that both designs hold the same numbers
    far = X + offset
    near = far - offset
    weight = np.ones(40)
    rows, plain = (DenseRows.of(matrix).standardised(weight, centre=True) for matrix in (far, near))
    t, w = rng.standard_normal(40), rng.standard_normal(6)
    for name in ("gram", "project", "predict", "columns"):
        argument = {"gram": 1.0, "project": t, "predict": w, "columns": slice(None)}[name]
        found, expected = getattr(rows, name)(argument), getattr(plain, name)(argument)
        # sums of 40 terms of size `offset`, each rounded by eps relative
        np.testing.assert_allclose(found, expected, atol=40 * EPS * offset, err_msg=name)


def test_wide_data_needs_no_second_copy(rng, monkeypatch):
    monkeypatch.setattr(dense, "BLOCK_BYTES", 2**20)
    X = rng.standard_normal((100, 20_000))
    weight, t = np.ones(100), rng.standard_normal(100)
    per_column, root = np.ones(20_000), np.ones((2, 20_000))
    tracemalloc.start()
    rows = DenseRows.of(X).standardised(weight, centre=True)
    rows.project(t)
    rows.predict(per_column)
    rows.outer(per_column)
    rows.row_variance(root)
    rows.gram_column(7, no_others)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # a few blocks, and about a dozen vectors with an entry per column, are a half of the 16 MB of X at most
    assert peak < X.nbytes / 2


def test_the_users_array_is_left_alone(case, rng):
    rows, _ = case
    before = rows.X.copy()
    rows.gram()
    rows.outer(np.ones(rows.n_columns))
    rows.keep(np.array([0, 1]))
    rows.project(rng.standard_normal(rows.n_rows))
    np.testing.assert_array_equal(rows.X, before)
