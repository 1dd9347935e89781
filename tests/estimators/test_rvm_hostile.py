"""`RVMRegressor` in any units, on hostile and on large data."""

import numpy as np
import pytest
from machines import FLOOR_TOLD, evidence_from_scratch, friedman, machine, nlpd, sinc
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sparsebayes import RVMRegressor
from sparsebayes.engine.state import ALL_COLUMNS
from sparsebayes.estimators import _kernel_design


@pytest.fixture(scope="module")
def data():
    return sinc(60, 0)


# --- units ---


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_of_target_and_inputs(kernel_regressor, data, scale):
    X, y = data
    base = clone(kernel_regressor).fit(X, y)
    model = clone(kernel_regressor).fit(X / scale, scale * y)
    assert_array_equal(model.relevance_indices_, base.relevance_indices_)
    for ours, theirs in zip(model.predict(X / scale, return_std=True), base.predict(X, return_std=True), strict=True):
        assert_allclose(ours, scale * theirs, rtol=1e-5, atol=1e-6 * scale * y.std())


def test_place_of_target_and_inputs(data):
    X, y = data
    base, model = machine().fit(X, y), machine().fit(X + 1e4, y + 1e3)
    assert_array_equal(model.relevance_indices_, base.relevance_indices_)
    assert_allclose(model.predict(X + 1e4), base.predict(X) + 1e3, rtol=1e-8)


def test_order_of_rows_and_kind_of_numbers(kernel_regressor, data):
    X, y = data
    base = clone(kernel_regressor).fit(X, y)
    order = np.random.default_rng(1).permutation(len(y))
    model = clone(kernel_regressor).fit(np.asfortranarray(X[order]), y[order])
    # Batch solvers feel in which order sums are taken; all ends are within tol of the top.
    assert_allclose(model.predict(X), base.predict(X), atol=1e-3 * y.std())
    single = clone(kernel_regressor).fit(X.astype(np.float32), y.astype(np.float32))
    assert_allclose(single.predict(X), base.predict(X), atol=5e-3 * y.std())


def test_order_of_rows_where_few_candidates_are_kept_current():
    """With many columns most bring nothing most of the time; which of those are looked at must not matter."""
    X, y = friedman(600, 5, seed=0)
    order = np.random.default_rng(0).permutation(600)
    assert len(y) > ALL_COLUMNS
    base, moved = machine().fit(X, y), machine().fit(X[order], y[order])
    assert_array_equal(np.sort(order[moved.relevance_indices_]), np.sort(base.relevance_indices_))
    assert_allclose(moved.predict(X), base.predict(X), atol=1e-6 * y.std())


# --- hostile data ---


@FLOOR_TOLD
def test_noise_free_target_is_reproduced(kernel_regressor):
    X, y = sinc(50, 0, noise=0.0)
    model = clone(kernel_regressor).set_params(gamma=0.1, standardize=False)
    if "noise_variance" in model.get_params():
        model.set_params(noise_variance=1e-6, rate=1e-6)  # it assumes a tenth of the variance, and shrinks
    model.fit(X, y)
    assert np.abs(model.predict(X) - y).max() < 1e-2
    X_new, y_new = sinc(50, 1, noise=0.0)
    assert np.mean((model.predict(X_new) - y_new) ** 2) < 1e-3 * y_new.var()


@FLOOR_TOLD
@pytest.mark.parametrize("n", [2, 3, 4])
def test_very_few_rows(kernel_regressor, n):
    X, y = sinc(n, 0)
    mean, std = clone(kernel_regressor).fit(X, y).predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0).all()


def test_duplicate_rows_and_constant_columns(kernel_regressor, data):
    X, y = (np.repeat(array, 2, axis=0) for array in data)
    y = y + 0.1 * np.random.default_rng(0).standard_normal(len(y))
    X = np.column_stack([X, np.full(len(X), 7.0)])
    model = clone(kernel_regressor).set_params(gamma=0.2, standardize=False).fit(X, y)
    assert model.converged_
    assert model.score(X, y) > 0.6
    assert len(np.unique(model.relevance_vectors_, axis=0)) == len(model.relevance_vectors_)


def test_pure_noise_is_predicted_by_its_mean_or_nearly(kernel_regressor, rng):
    X, y = rng.uniform(-10, 10, size=(100, 1)), rng.standard_normal(100)
    model = clone(kernel_regressor).set_params(gamma=0.05, standardize=False).fit(X, y)
    new, y_new = rng.uniform(-10, 10, size=(500, 1)), rng.standard_normal(500)
    mean, std = model.predict(new, return_std=True)
    assert nlpd(y_new, mean, std**2) < nlpd(y_new, 0.0, 1.0) + 0.15


def test_inputs_that_are_all_the_same_leave_the_mean(kernel_regressor, rng):
    y = rng.standard_normal(30)
    for standardize in (True, False):
        model = clone(kernel_regressor).set_params(standardize=standardize).fit(np.ones((30, 2)), y)
        if model.fit_intercept and model.get_params().get("intercept_prior", "flat") == "flat":
            assert len(model.dual_coef_) == 0
        # a kernel column is here a constant too, which can shrink
        assert_allclose(model.predict([[1.0, 1.0]]), y.mean(), atol=0.3 * y.std())


# --- large data ---


@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}], ids=str)
def test_large_problems_are_solved_without_the_matrix_and_alike(monkeypatch, options):
    X, y = sinc(300, 5)
    exact = machine(gamma=0.2, **options).fit(X, y)
    monkeypatch.setattr(_kernel_design, "LARGE", 100)
    seen = []
    make = _kernel_design.LowRankRows.of
    monkeypatch.setattr(_kernel_design.LowRankRows, "of", lambda *args: seen.append(1) or make(*args))
    model = machine(gamma=0.2, **options).fit(X, y)
    assert seen
    assert_allclose(model.log_evidence_, exact.log_evidence_, atol=0.1)
    assert_allclose(model.log_evidence_, evidence_from_scratch(model, X, y), rtol=1e-8)
    assert_allclose(model.predict(X), exact.predict(X), atol=0.05 * y.std())
    assert_allclose(model.excess_variance_, exact.excess_variance_, atol=0.05 * model.noise_variance_)


def test_a_kernel_that_is_not_definite_falls_back_to_the_matrix(monkeypatch, data):
    monkeypatch.setattr(_kernel_design, "LARGE", 10)
    X, y = data
    model = machine(kernel="sigmoid", gamma=0.05).fit(X, y)
    monkeypatch.undo()
    assert_allclose(model.predict(X), machine(kernel="sigmoid", gamma=0.05).fit(X, y).predict(X), rtol=1e-9)


def test_a_kernel_so_wide_that_rounding_decides_is_told_and_does_no_harm():
    """With many rows and a wide kernel, columns depend on each other but for rounding, and updates lose all digits."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (20_000, 3))
    f = np.sin(2 * X[:, 0]) + X[:, 1] * np.cos(X[:, 2])
    y = f + 0.5 * rng.standard_normal(20_000)
    model = RVMRegressor(vectors="sparse", candidates=300, gamma=0.2, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"rounding ended the search .* choose a narrower kernel"):
        model.fit(X, y)
    assert np.sqrt(np.mean((model.predict(X[:1000]) - f[:1000]) ** 2)) < 0.3  # of a function with deviation 1.5
    assert 0.2 < model.noise_variance_ < 0.4
    K = np.exp(-0.2 * ((((X[:50, None] - model.relevance_vectors_) / X.std(axis=0)) ** 2).sum(axis=2)))
    assert_allclose(model.predict(X[:50]), K @ model.dual_coef_ + model.intercept_, rtol=1e-3, atol=1e-3)
    narrow = RVMRegressor(vectors="sparse", candidates=300, gamma=0.7, random_state=0).fit(X, y)
    assert narrow.converged_


@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_intervals_that_open_far_away_have_the_units_of_the_target(size, rng):
    X = rng.standard_normal((30, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(30)
    model = RVMRegressor(far_variance="augment", vectors="sparse")
    new = np.vstack([X, 100 * X])
    usual, other = (clone(model).fit(X, unit * y).predict_interval(new) / unit for unit in (1.0, size))
    assert_allclose(other, usual, rtol=1e-9)
