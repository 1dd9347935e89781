"""`fit_blocks` of relevance vector machines, against `fit` on the rows; samples of rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from sparsebayes import RVMClassifier, RVMRegressor
from sparsebayes.core.kernel_statistics import RowSample
from sparsebayes.data.blocks import array_blocks
from sparsebayes.engine.leave_one_out import HeldOut


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    X = rng.uniform(-3, 3, (1200, 2)) * [1, 100] + [5, -50]
    f = np.sin(X[:, 0] - 5) + np.cos((X[:, 1] + 50) / 100)
    targets = {
        "y": f + 0.2 * rng.standard_normal(1200),
        "two": np.where(f + 0.3 * rng.logistic(size=1200) > 0.5, "yes", "no"),
        "three": np.digitize(f + 0.3 * rng.logistic(size=1200), [-0.3, 0.8]),
    }
    return X, targets, rng.integers(1, 3, 1200).astype(float)


@pytest.mark.parametrize("rows", [64, 500, 8192])
@pytest.mark.parametrize(
    "parameters",
    [{}, {"fit_intercept": False}, {"intercept_prior": "ard"}, {"solver": "fixed-point"}, {"kernel": "laplacian"}],
    ids=str,
)
def test_a_sparse_regression_is_that_of_the_rows(parameters, rows, data):
    """Centres, width and units are given, so that no sample makes a difference."""
    X, targets, weight = data
    X = (X - [5, -50]) / [1, 100]
    model = RVMRegressor(**{"vectors": "sparse", "candidates": X[:25], "gamma": 0.5, "standardize": False} | parameters)
    whole = clone(model).fit(X, targets["y"], sample_weight=weight)
    found = clone(model).fit_blocks(array_blocks(X, targets["y"], weight, rows=rows))
    assert_allclose(found.predict(X), whole.predict(X), rtol=1e-5, atol=1e-5)
    assert found.noise_variance_ == pytest.approx(whole.noise_variance_, rel=1e-6)
    assert found.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-7)
    assert found.converged_


def test_a_gaussian_process_is_that_of_the_rows(data):
    X, targets, weight = data
    centres = X[:60]
    model = RVMRegressor(vectors="all", candidates=centres, gamma=0.3, standardize=True)
    found = clone(model).fit_blocks(array_blocks(X, targets["y"], weight, rows=300))
    whole = clone(model).fit(X, targets["y"], sample_weight=weight)
    # The sample is all of the rows, in another order.
    assert_allclose(found.predict(X, return_std=True), whole.predict(X, return_std=True), rtol=1e-6, atol=1e-7)
    assert found.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-9)
    assert found.excess_variance_ == pytest.approx(whole.excess_variance_, abs=1e-9)
    assert_allclose(found.predict_interval(X[:5]), whole.predict_interval(X[:5]), rtol=1e-6)


def test_what_the_fit_absorbed_is_found_by_leaving_rows_out():
    """The excess of a pass is that of fits without each row, at the same scales. The kernel is too narrow."""
    rng = np.random.default_rng(2)
    X = rng.uniform(-3, 3, (60, 2))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.3 * rng.standard_normal(60)
    model = RVMRegressor(vectors="sparse", candidates=rng.uniform(-3, 3, (150, 2)), gamma=10.0, standardize=False)
    found = model.fit_blocks(array_blocks(X, y))
    Phi = np.exp(-10 * ((X[:, None] - found.relevance_vectors_[None]) ** 2).sum(axis=2))
    A, noise = np.diag(found.precision_), found.noise_variance_
    errors, variances = np.empty(60), np.empty(60)
    for i in range(60):
        others = np.arange(60) != i
        P = Phi[others] - Phi[others].mean(axis=0)
        S = np.linalg.inv(A + P.T @ P / noise)
        here = Phi[i] - Phi[others].mean(axis=0)
        errors[i] = y[i] - y[others].mean() - here @ S @ P.T @ (y[others] - y[others].mean()) / noise
        variances[i] = noise + noise / 59 + here @ S @ here
    assert found.excess_variance_ > 0
    assert found.excess_variance_ == pytest.approx(HeldOut(errors, variances, np.ones(60)).excess, rel=1e-6)


@pytest.mark.parametrize("target", ["two", "three"])
@pytest.mark.parametrize("parameters", [{}, {"fit_intercept": False}, {"class_weight": "balanced"}], ids=str)
def test_classes(target, parameters, data):
    """A sample that has all rows finds the same vectors, and passes over the rows then change nothing else."""
    X, targets, weight = data
    y = targets[target]
    model = RVMClassifier(vectors="sparse", candidates=X[:50], **parameters)
    found = clone(model).fit_blocks(array_blocks(X, y, weight, rows=500))
    whole = clone(model).fit(X, y, sample_weight=weight)
    assert_array_equal(found.classes_, whole.classes_)
    assert found.converged_
    # With class weights the vectors of the sample, which has none, are others.
    near = 0.15 if parameters.get("class_weight") else 1e-3
    assert_allclose(found.predict_proba(X), whole.predict_proba(X), atol=near)
    assert np.isnan(found.optimality_gap_).all()


def test_rare_classes_are_in_the_sample():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 2))
    y = np.where((X[:, 0] > 2.6) & (rng.uniform(size=60_000) < 0.9), "rare", "common")
    found = RVMClassifier(candidates=50, random_state=0).fit_blocks(array_blocks(X, y))
    rare = y == "rare"
    assert 100 < rare.sum() < 400
    labels, counts = np.unique(y, return_counts=True)
    sample = array_blocks(X, y).reduce(RowSample(1000, 0, labels, 1 / counts))
    assert (sample.t == "rare").sum() > 0.8 * rare.sum()  # of a plain sample about four
    p = found.predict_proba(X)[:, 1]
    assert p.mean() == pytest.approx(rare.mean(), rel=0.05)  # by all rows, not by the balanced sample
    assert p[rare].mean() > 0.6


def test_a_sample_is_random_and_by_weight():
    n, size = 4000, 500
    X, y = np.arange(n, dtype=float)[:, None], np.zeros(n)
    weight = np.where(np.arange(n) < n // 2, 3.0, 1.0)
    weight[:10] = 0
    for rows in (100, 4000):
        sample = array_blocks(X, y, weight, rows=rows).reduce(RowSample(size, 0))
        chosen = sample.X[:, 0].astype(int)
        assert len(np.unique(chosen)) == size
        assert chosen.min() >= 10
        # Three of four draws fall into the first half, at first; it has 0.74 of them at the end.
        assert abs((chosen < n // 2).mean() - 0.74) < 4 * np.sqrt(0.74 * 0.26 / size)
        again = array_blocks(X, y, weight, rows=rows).reduce(RowSample(size, 0))
        assert_array_equal(again.X, sample.X)
        assert not np.array_equal(array_blocks(X, y, weight, rows=rows).reduce(RowSample(size, 1)).X, sample.X)


@pytest.mark.parametrize("cls", [RVMRegressor, RVMClassifier])
def test_an_interrupted_fit_goes_on(cls, data, tmp_path):
    X, targets, _ = data
    y = targets["y" if cls is RVMRegressor else "two"]
    first = cls(candidates=30).fit_blocks(array_blocks(X, y), checkpoint=tmp_path)
    held = len(list(tmp_path.iterdir()))
    again = cls(candidates=30).fit_blocks(array_blocks(np.full_like(X, np.nan), y), checkpoint=tmp_path)
    assert_array_equal(again.predict(X), first.predict(X))
    assert len(list(tmp_path.iterdir())) == held


@pytest.mark.parametrize("cls", [RVMRegressor, RVMClassifier])
def test_missing_values_are_named(cls, data):
    X, targets, _ = data
    y = targets["y" if cls is RVMRegressor else "two"]
    holed = X.copy()
    holed[700, 1] = np.nan
    with pytest.raises(ValueError, match=r"X is NaN or infinite in block 1 .*, row 200, column 1 of the block"):
        cls().fit_blocks(array_blocks(holed, y, rows=500))
    if cls is RVMRegressor:
        y = np.where(np.arange(len(y)) == 1100, np.inf, y)
        with pytest.raises(ValueError, match=r"y is NaN or infinite in block 2 .*, row 100 of the block"):
            cls().fit_blocks(array_blocks(X, y, rows=500))


def test_several_outputs(data):
    X, targets, _ = data
    Y = np.column_stack([targets["y"], -2 * targets["y"], np.full(len(X), 7.0)])
    found = RVMRegressor(vectors="sparse", candidates=30, random_state=0).fit_blocks(array_blocks(X, Y))
    answer = found.predict(X)
    assert_allclose(answer[:, 1], -2 * answer[:, 0], atol=1e-6)
    assert_array_equal(answer[:, 2], np.full(len(X), 7.0))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RVMRegressor(kernel="precomputed"), "kernel='precomputed'"),
        (RVMRegressor(far_variance="augment"), "far_variance='none'"),
        (RVMClassifier(multi_class="softmax"), "multi_class='one-vs-rest'"),
        (RVMClassifier(vectors="all"), "vectors='auto' or 'sparse'"),
        (RVMClassifier(inference="variational"), "inference='laplace'"),
        (RVMClassifier(intercept_prior="ard"), "intercept_prior='flat'"),
    ],
    ids=str,
)
def test_what_passes_cannot_do_is_refused(model, message, data):
    X, targets, _ = data
    with pytest.raises(ValueError, match=message):
        model.fit_blocks(array_blocks(X, targets["y"] > 0))
    assert not hasattr(model, "relevance_vectors_")
