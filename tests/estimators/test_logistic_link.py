"""The link that averaged log-odds are given: strong where the model is too cautious, none on ordinary data."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparsebayes import SparseLogisticRegression, load, save, to_onnx


def separated(rng, n):
    """A fifth of 200 features say the same."""
    y = np.arange(n) % 2
    X = rng.standard_normal((n, 200))
    X[:, :40] += 2.0 * y[:, None]
    return X, y


def log_loss(y, p):
    return -np.log(np.where(y == 1, p, 1 - p)).mean()


@cache
def cautious():
    """Few rows and many features that say the same: the prior of the weights decides how sure the average is."""
    model = SparseLogisticRegression(max_flips=6000).fit(*separated(np.random.default_rng(1), 40))
    return model, *separated(np.random.default_rng(2), 500)


def by_hand(model, X):
    """The mean probability over the model's draws."""
    coef, level = model.sample_posterior(20_000, random_state=0)
    return (1 / (1 + np.exp(-(X @ coef[:, 0].T + level[:, 0])))).mean(axis=1)


def test_probabilities_are_means_over_the_draws_under_the_link():
    model, X, _ = cautious()
    a, b = model.link_[0]
    p = by_hand(model, X)
    assert_allclose(model.decision_function(X), a * np.log(p / (1 - p)) + b, atol=0.15)  # 20,000 draws out of 1,000
    assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-model.decision_function(X))))
    plain = SparseLogisticRegression(max_flips=6000, proba="plug-in").fit(*separated(np.random.default_rng(1), 40))
    assert_allclose(plain.decision_function(X), X @ plain.coef_[0] + plain.intercept_[0], rtol=1e-9)


def test_a_cautious_average_is_made_surer():
    model, X, y = cautious()
    assert model.link_.shape == (1, 2)
    assert model.link_[0, 0] > 1.2
    assert log_loss(y, model.predict_proba(X)[:, 1]) < 0.85 * log_loss(y, by_hand(model, X))


def test_the_link_is_saved_and_exported(tmp_path):
    model, X, _ = cautious()
    save(model, tmp_path / "model.sbm")
    again = load(tmp_path / "model.sbm")
    assert_allclose(again.link_, model.link_)
    assert_allclose(again.predict_proba(X), model.predict_proba(X), rtol=0)
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    (probabilities,) = session.run(["probabilities"], {session.get_inputs()[0].name: X})
    assert_allclose(probabilities, model.predict_proba(X), rtol=1e-9)


def test_several_classes_have_a_link_each():
    rng = np.random.default_rng(0)
    y = np.arange(45) % 3
    X = rng.standard_normal((45, 60))
    X[np.arange(45), y] += 3.0
    model = SparseLogisticRegression(max_flips=500).fit(X, y)
    assert model.link_.shape == (3, 2)
    p = model.predict_proba(X)
    assert_allclose(p.sum(axis=1), 1)
    odds = 1 / (1 + np.exp(-model.decision_function(X)))
    assert_allclose(p, odds / odds.sum(axis=1, keepdims=True))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_ordinary_data_keep_their_log_odds(fit_intercept):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 10))
    y = X[:, 0] - X[:, 1] + rng.logistic(size=300) > 0
    model = SparseLogisticRegression(max_flips=2000, fit_intercept=fit_intercept).fit(X, y)
    assert_allclose(model.link_[0], [1, 0], atol=0.15)
    assert fit_intercept or model.link_[0, 1] == 0
    assert not hasattr(model.set_params(average=False).fit(X, y), "link_")
