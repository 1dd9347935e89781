"""The link that averaged log-odds are given: strong where the model is too cautious, none on ordinary data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparsebayes import SparseLogisticRegression, load, save


def separated(rng, n):
    """A fifth of 200 features say the same."""
    y = np.arange(n) % 2
    X = rng.standard_normal((n, 200))
    X[:, :40] += 2.0 * y[:, None]
    return X, y


def log_loss(y, p):
    return -np.log(np.where(y == 1, p, 1 - p)).mean()


def test_a_cautious_average_is_made_surer(tmp_path):
    """Few rows and many features that say the same: the prior of the weights decides how sure the average is."""
    rng = np.random.default_rng(1)
    model = SparseLogisticRegression(max_flips=2000).fit(*separated(rng, 40))
    assert model.link_.shape == (1, 2)
    a, b = model.link_[0]
    assert a > 1.3
    X, y = separated(rng, 500)
    p = model.predict_proba(X)[:, 1]
    without = 1 / (1 + np.exp(-(np.log(p / (1 - p)) - b) / a))
    assert log_loss(y, p) < 0.8 * log_loss(y, without)
    save(model, tmp_path / "model.sbm")
    assert_allclose(load(tmp_path / "model.sbm").link_, model.link_)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_ordinary_data_keep_their_log_odds(fit_intercept):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 10))
    y = X[:, 0] - X[:, 1] + rng.logistic(size=300) > 0
    model = SparseLogisticRegression(max_flips=2000, fit_intercept=fit_intercept).fit(X, y)
    assert_allclose(model.link_[0], [1, 0], atol=0.15)
    assert fit_intercept or model.link_[0, 1] == 0
    assert not hasattr(model.set_params(average=False).fit(X, y), "link_")
