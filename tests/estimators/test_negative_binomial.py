"""Counts that vary more than Poisson's: the likelihood against SciPy, and the estimator."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.stats import nbinom

from sparsebayes import SparsePoissonRegressor, load, save, to_onnx
from sparsebayes.core.negative_binomial import NegativeBinomial, negative_binomial_interval
from sparsebayes.core.scales import noise_mackay

T, ETA, H = np.array([0.0, 1.0, 4.0, 30.0]), np.array([-1.0, 0.5, 2.0, 3.0]), 1e-5
COUNTS = NegativeBinomial(offset=np.array([0.0, 0.3, -0.5, 1.0]), shape=2.5)
WEIGHTS = np.array([0.6, -0.5, 0.4, 0.4])


def draw(seed=0, n=500, d=50, k=2.0):
    rng = np.random.default_rng(seed)
    X, fresh = rng.standard_normal((n, d)), rng.standard_normal((4000, d))
    y, new = (rng.poisson(np.exp(1 + each[:, :4] @ WEIGHTS) * rng.gamma(k, 1 / k, len(each))) for each in (X, fresh))
    return X, y, fresh, new


def counts(**parameters):
    return SparsePoissonRegressor(distribution="negative-binomial", **parameters)


def test_density_and_derivatives():
    mean = np.exp(ETA + COUNTS.offset)
    assert_allclose(COUNTS.log_density(T, ETA), nbinom.logpmf(T, 2.5, 2.5 / (2.5 + mean)), rtol=1e-10)
    slope = (COUNTS.log_density(T, ETA + H) - COUNTS.log_density(T, ETA - H)) / (2 * H)
    bend = -(COUNTS.derivatives(T, ETA + H)[0] - COUNTS.derivatives(T, ETA - H)[0]) / (2 * H)
    skew = (COUNTS.derivatives(T, ETA + H)[1] - COUNTS.derivatives(T, ETA - H)[1]) / (2 * H)
    assert_allclose(COUNTS.derivatives(T, ETA)[0], slope, rtol=1e-6)
    assert_allclose(COUNTS.derivatives(T, ETA)[1], bend, rtol=1e-6)
    assert_allclose(COUNTS.skew(T, ETA), skew, rtol=1e-5)


def test_shape_is_that_of_largest_likelihood():
    t = np.random.default_rng(0).negative_binomial(2, 0.3, 500).astype(float)
    eta, weight = np.full(500, np.log(t.mean())), np.ones(500)
    found = NegativeBinomial().updated(t, weight, eta, 0 * eta, noise_mackay)
    best = minimize_scalar(lambda x: -replace(found, shape=np.exp(x)).log_density(t, eta).sum(), bounds=(-3, 5))
    assert found.shape == pytest.approx(np.exp(best.x), rel=1e-3)


def test_intervals_against_draws():
    m, v, rng = np.array([0.5, 3.0]), np.array([0.04, 0.3]), np.random.default_rng(0)
    rate = np.exp(m + np.sqrt(v) * rng.standard_normal((200_000, 2))) * rng.gamma(1.5, 1 / 1.5, (200_000, 2))
    y = rng.poisson(rate)
    ends = negative_binomial_interval(m, v, 1.5, 0.9)
    assert_array_equal(ends, np.rint(ends))
    for k in range(2):
        below, above = (y[:, k] < ends[k, 0]).mean(), (y[:, k] <= ends[k, 1]).mean()
        assert below < 0.05 + 0.003
        assert above > 0.95 - 0.003
        assert (y[:, k] <= ends[k, 1] - 1).mean() < 0.95 + 0.003  # no wider than it must be


@pytest.mark.parametrize("average", [False, True])
def test_overdispersed_counts(average):
    X, y, fresh, new = draw()
    model = counts(average=average, n_chains=2, max_flips=600).fit(X, y)
    assert_array_equal(model.active_, np.arange(4))
    assert model.shape_ == pytest.approx(2, rel=0.3)
    assert model.dispersion_ == pytest.approx(1, abs=0.15)
    ends = model.predict_interval(fresh)
    # The lower end is 0 in most rows: nothing lies below it, and 95 % is what the upper end leaves.
    assert 0.9 <= ((ends[:, 0] <= new) & (new <= ends[:, 1])).mean() <= 0.98
    mean, std = model.predict(fresh, return_std=True)
    assert np.mean((new - mean) ** 2 / std**2) == pytest.approx(1, abs=0.25)


def test_noise_is_not_taken_for_signal():
    kept = {"poisson": 0, "negative-binomial": 0}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((200, 50)), rng.poisson(3 * rng.gamma(2.0, 0.5, 200))
        for name in kept:
            kept[name] += len(SparsePoissonRegressor(distribution=name, average=False).fit(X, y).active_) > 0
    assert kept["negative-binomial"] <= 1 < kept["poisson"]


def test_poisson_counts_are_a_special_case():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 10))
    y, hours = rng.poisson(np.exp(1 + 0.5 * X[:, 0])), np.full(400, 2.0)
    model = counts(average=False).fit(X, y, exposure=hours)
    usual = SparsePoissonRegressor(average=False).fit(X, y, exposure=hours)
    assert model.shape_ > 20
    assert_allclose(model.coef_, usual.coef_, atol=0.02)
    usual.set_params(distribution="negative-binomial").fit(X, y).set_params(distribution="poisson").fit(X, y)
    assert not hasattr(usual, "shape_")


def test_files_and_onnx(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    X, y, *_ = draw(n=200, d=6)
    model = counts(average=False).fit(X, y)
    save(model, tmp_path / "model.skops")
    assert_array_equal(load(tmp_path / "model.skops").predict_interval(X), model.predict_interval(X))
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    assert_allclose(session.run(["std"], {"X": X})[0], model.predict(X, return_std=True)[1], rtol=1e-6)


def test_it_needs_a_price():
    X, y, *_ = draw(n=100, d=5)
    with pytest.raises(ValueError, match="positive min_gain"):
        counts(min_gain=0.0).fit(X, y)
