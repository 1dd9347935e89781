"""Sparse inputs: the same model as on dense ones, in every linear estimator."""

import tracemalloc

import numpy as np
import pytest
from forms import averages, can_average
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils import get_tags

from sparsebayes import (
    ARDRegressor,
    BLSRegressor,
    PCVMClassifier,
    RVMClassifier,
    RVMRegressor,
    SparseLogisticRegression,
    StabilitySelector,
    VBLogisticRegression,
)


def thinned(X, rng):
    return np.where(rng.uniform(size=X.shape) < 0.5, X, 0.0)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_matrix])
def test_the_model_is_that_of_dense_rows(selector, data_for, form, rng):
    X, y = data_for(selector, n=120)
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    if not get_tags(selector).input_tags.sparse:
        with pytest.raises(TypeError, match=r"[Ss]parse"):
            clone(selector).fit(form(X), y)
        return
    dense, found = clone(selector).fit(X, y), clone(selector).fit(form(X), y)
    variational = not averages(selector) and getattr(selector, "inference", "") == "variational"
    # Contact points creep: a variational fit ends within `tol` nats of the maximum, not at it.
    tolerance = 1e-4 if variational else 1e-6
    assert_allclose(found.coef_, dense.coef_, rtol=tolerance, atol=tolerance * np.abs(dense.coef_).max())
    assert_allclose(found.log_evidence_, dense.log_evidence_, rtol=1e-8)
    if is_classifier(selector):
        assert_allclose(found.predict_proba(form(X)), dense.predict_proba(X), atol=tolerance)
    else:
        for one, other in zip(found.predict(form(X), return_std=True), dense.predict(X, return_std=True), strict=True):
            assert_allclose(one, other, rtol=tolerance, atol=1e-8)
        assert_allclose(found.predict_interval(form(X)), dense.predict_interval(X), rtol=tolerance, atol=1e-8)
    if hasattr(found, "sample_y"):
        assert_allclose(found.sample_y(form(X), 2, 0), dense.sample_y(X, 2, 0), rtol=tolerance, atol=1e-6)


@pytest.mark.parametrize("cls", [RVMRegressor, BLSRegressor, RVMClassifier, PCVMClassifier])
def test_kernel_models_make_them_dense(cls, rng):
    X = thinned(rng.standard_normal((60, 3)), rng)
    y = X[:, 0] + 0.1 * rng.standard_normal(60)
    y = y > 0 if is_classifier(cls()) else y
    predict = "predict_proba" if is_classifier(cls()) else "predict"
    dense, found = cls().fit(X, y), cls().fit(sparse.csr_array(X), y)
    assert_allclose(getattr(found, predict)(sparse.csc_matrix(X)), getattr(dense, predict)(X), rtol=1e-12)
    wide = sparse.csr_array((60, 10**8))
    with pytest.raises(ValueError, match=r"makes sparse rows dense, which takes 44.7 GiB here: reduce X"):
        cls().fit(wide, y)


def test_weights_and_rows_of_weight_zero(rng):
    X = sparse.csr_array(rng.poisson(0.4, (200, 6)).astype(float))
    y = X @ [2.0, -2.0, 0, 0, 0, 0] + rng.standard_normal(200)
    times = rng.integers(0, 3, 200)
    weighted = ARDRegressor(average=False).fit(X, y, sample_weight=times)
    repeated = ARDRegressor(average=False).fit(X[np.repeat(np.arange(200), times)], y.repeat(times))
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-9)


def test_one_hot_features(rng):
    city = rng.integers(0, 30, (400, 2))
    y = 3.0 * (city[:, 0] == 4) - 2.0 * (city[:, 1] == 7) + 0.3 * rng.standard_normal(400)
    model = make_pipeline(OneHotEncoder(), ARDRegressor()).fit(city, y)
    names = model[0].get_feature_names_out()[model[1].active_]
    assert set(names) == {"x0_4", "x1_7"}
    assert model.score(city, y) > 0.7


def test_texts(rng):
    words = [f"word{i}" for i in range(300)]
    texts = [" ".join(rng.choice(words, 25)) for _ in range(600)]
    topic = np.array(["word7 " in f"{text} " or "word11 " in f"{text} " for text in texts])
    model = make_pipeline(TfidfVectorizer(), SparseLogisticRegression(average=False)).fit(texts, topic)
    assert set(model[0].get_feature_names_out()[model[1].active_]) == {"word7", "word11"}
    assert model.score(texts, topic) > 0.95
    assert make_pipeline(TfidfVectorizer(), VBLogisticRegression()).fit(texts, topic).score(texts, topic) > 0.95


def test_partial_fit_and_stability(rng):
    X = sparse.csr_array(rng.poisson(0.4, (300, 5)).astype(float))
    y = X @ [3.0, -3.0, 0, 0, 0] + rng.logistic(size=300) > 0
    found = VBLogisticRegression().partial_fit(X, y, classes=[False, True])
    assert_allclose(found.coef_, VBLogisticRegression().partial_fit(X.toarray(), y, classes=[False, True]).coef_)
    selector = StabilitySelector(ARDRegressor(average=False), n_resamples=6, random_state=0)
    assert selector.fit(X, X @ [3.0, -3.0, 0, 0, 0] + rng.standard_normal(300)).get_support()[:2].all()


@pytest.mark.parametrize("cls", [ARDRegressor, SparseLogisticRegression])
def test_nothing_is_made_dense(cls, rng):
    """20,000×2,000 numbers would take 320 MB; a fit and its predictions take a twentieth."""
    n, d = 20_000, 2_000
    X = sparse.random_array((n, d), density=1e-3, random_state=0, format="csr")
    X.data[:] = 1.0
    eta = X[:, :3].toarray() @ [6.0, -6.0, 6.0]
    y = eta + rng.standard_normal(n) if cls is ARDRegressor else eta + rng.logistic(size=n) > 0
    model = cls(average=False)
    tracemalloc.start()
    model.fit(X, y).predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.active_.tolist() == [0, 1, 2]
    assert peak < 8 * n * d / 10
    assert can_average(cls)


def test_missing_values_are_refused(rng):
    X = sparse.csr_array(rng.poisson(1.0, (20, 3)).astype(float))
    X.data[0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        ARDRegressor().fit(X, np.arange(20.0))
