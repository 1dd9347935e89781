"""Predictions are made in blocks of rows; nothing depends on their size, and temporaries stay small."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone, is_classifier

from sparsebayes import ARDRegressor, SparseLogisticRegression
from sparsebayes.estimators import _inputs

METHODS = {
    "predict": [{}],
    "predict_interval": [{}],
    "predict_proba": [{}],
    "decision_function": [{}],
    "sample_y": [{"n_samples": 2, "random_state": 0}],
}


def answers(model, X):
    calls = [(name, options) for name, each in METHODS.items() if hasattr(model, name) for options in each]
    if not is_classifier(model):
        calls.append(("predict", {"return_std": True}))
    return [np.asarray(getattr(model, name)(X, **options)) for name, options in calls]


def test_blocks_do_not_matter(every, data_for, monkeypatch):
    X, y = data_for(every)
    model = clone(every).fit(X, y)
    whole = answers(model, X)
    monkeypatch.setattr(_inputs, "BLOCK", 1)
    monkeypatch.setattr(_inputs, "LEAST_ROWS", 7)
    for found, expected in zip(answers(model, X), whole, strict=True):
        if expected.dtype.kind == "f":
            # The variance of a Gaussian process is a difference that loses up to six digits, so that probabilities are
            # right to 1e-10 of the largest.
            assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())
        else:
            assert (found == expected).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_many_rows_take_little_memory(dtype, rng):
    """A prediction of 400,000 rows: no more than the answers and a few vectors of as many numbers."""
    X = rng.standard_normal((400_000, 30)).astype(dtype)
    eta = X[:, 0] - X[:, 1]
    regression = ARDRegressor(average=False, min_gain=0).fit(X[:500], eta[:500] + rng.standard_normal(500))
    classes = SparseLogisticRegression(average=False).fit(X[:500], eta[:500] > rng.logistic(size=500))
    tracemalloc.start()
    regression.predict(X, return_std=True)
    classes.predict_proba(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    vector = 8 * len(X)
    assert peak < 8 * vector + 64 * 2**20  # blocks of 16 MB with their copies; 30 columns of all rows would be 96 MB


def test_single_precision_gives_the_answers_of_double(rng):
    X = rng.standard_normal((60, 5)).astype(np.float32)
    model = ARDRegressor().fit(X, X[:, 0] + 0.1 * rng.standard_normal(60))
    assert_allclose(model.predict(X), model.predict(X.astype(np.float64)), rtol=1e-14)


@pytest.mark.parametrize("shape", [(80, 300), (300, 20)])
def test_large_arrays_in_single_precision_are_not_copied(shape, monkeypatch, rng):
    monkeypatch.setattr(_inputs, "SINGLE", 1)
    X = rng.standard_normal(shape).astype(np.float32)
    y = 2 * X[:, 0] - X[:, 5] + 0.5 * rng.standard_normal(len(X))
    for cls, target in ((ARDRegressor, y), (SparseLogisticRegression, y > 0)):
        model, expected = cls(average=False).fit(X, target), cls(average=False).fit(X.astype(np.float64), target)
        assert_allclose(model.coef_, expected.coef_, rtol=1e-7, atol=1e-9)
