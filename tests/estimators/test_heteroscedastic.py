"""ARDRegressor(noise="heteroscedastic"): the noise has a sparse model of its own."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from sparsebayes import ARDRegressor, load, save

WEIGHTS, LOUD = np.array([1.0, -0.7, 0.5]), np.array([1.2, -0.8])


def level(X):
    return np.exp(0.5 * (-1 + X[:, [0, 5]] @ LOUD))


def draw(seed=0, n=300, d=30):
    rng = np.random.default_rng(seed)
    X, fresh = rng.standard_normal((n, d)), rng.standard_normal((3000, d))
    y, new = (2 + each[:, :3] @ WEIGHTS + level(each) * rng.standard_normal(len(each)) for each in (X, fresh))
    return X, y, fresh, new


def model(**parameters):
    return ARDRegressor(noise="heteroscedastic", **parameters)


def density(fitted, X, y):
    mean, std = fitted.predict(X, return_std=True)
    return np.mean(0.5 * np.log(2 * np.pi * std**2) + (y - mean) ** 2 / (2 * std**2))


@pytest.mark.parametrize("average", [False, True])
def test_noise_is_found_and_intervals_follow_it(average):
    gains, inside = [], []
    for seed in range(3):
        X, y, fresh, new = draw(seed)
        fitted = model(average=average, n_chains=2, max_flips=600).fit(X, y)
        assert_array_equal(np.flatnonzero(fitted.noise_coef_), [0, 5])
        assert_allclose(fitted.noise_coef_[[0, 5]], LOUD, atol=0.35)  # a weight is known to √(2/n) = 0.08
        assert fitted.noise_intercept_ == pytest.approx(-1, abs=0.3)
        variances = np.exp(fitted.noise_intercept_ + X @ fitted.noise_coef_)
        assert fitted.noise_variance_ == pytest.approx(variances.mean(), rel=1e-9)
        assert set(fitted.active_) >= {0, 1, 2}
        gains.append(density(ARDRegressor(average=False).fit(X, y), fresh, new) - density(fitted, fresh, new))
        ends = fitted.predict_interval(fresh)
        loud = level(fresh) > np.median(level(fresh))
        hit = (ends[:, 0] <= new) & (new <= ends[:, 1])
        inside.append([hit[loud].mean(), hit[~loud].mean()])
    assert np.mean(gains) > 0.3
    assert_allclose(np.mean(inside, axis=0), 0.9, atol=0.04)


def test_the_noise_model_is_that_of_largest_penalised_likelihood():
    """At the learned precisions, for the residuals of the fitted regression."""
    X, y, *_ = draw()
    fitted = model(average=False).fit(X, y)
    fit = fitted._fits[0]
    square = (y - fit.latent(X)) ** 2 + fit.latent_variance(X)
    kept, alpha = fit.log_noise.active, fit.log_noise.precision

    def loss(x):
        eta = x[0] + X[:, kept] @ x[1:]
        return 0.5 * np.sum(eta + square * np.exp(-eta)) + 0.5 * alpha @ x[1:] ** 2

    best = minimize(loss, np.zeros(1 + len(kept)), method="BFGS", options={"gtol": 1e-8}).x
    assert_allclose([fitted.noise_intercept_, *fitted.noise_coef_[kept]], best, atol=0.01)  # turns end at 0.001


def test_equal_noise_is_gaussian_noise():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 10))
    y = X[:, 0] + rng.standard_normal(200)
    fitted, usual = model(average=False).fit(X, y), ARDRegressor(average=False).fit(X, y)
    assert not fitted.noise_coef_.any()
    assert_allclose(fitted.coef_, usual.coef_, rtol=1e-8)
    assert fitted.noise_variance_ == pytest.approx(usual.noise_variance_, rel=1e-8)


def test_units_do_not_matter():
    X, y, fresh, _ = draw()
    here, there = model(average=False).fit(X, y), model(average=False).fit(1e3 * X, 1e-4 * y + 9)
    assert_allclose(there.noise_coef_, 1e-3 * here.noise_coef_, rtol=1e-3)
    assert_allclose(
        there.predict(1e3 * fresh, return_std=True)[1], 1e-4 * here.predict(fresh, return_std=True)[1], rtol=1e-3
    )


def test_several_outputs_files_and_weights(tmp_path):
    X, y, *_ = draw(n=150, d=8)
    Y = np.column_stack([y, np.ones(150)])
    fitted = model(n_chains=2, max_flips=200).fit(X, Y, sample_weight=np.linspace(0, 2, 150))
    assert fitted.noise_coef_.shape == (2, 8)
    assert np.isneginf(fitted.noise_intercept_[1])
    save(fitted, tmp_path / "model.skops")
    assert_array_equal(load(tmp_path / "model.skops").predict(X, return_std=True), fitted.predict(X, return_std=True))
    single = model(average=False).fit(X, y)
    assert single.sample_y(X, 5, random_state=0).shape == (150, 5)
    assert single.predict(X[:4], return_cov=True)[1].shape == (4, 4)


@pytest.mark.parametrize(
    "parameters", [{"solver": "em"}, {"c": 1.0}, {"noise_variance": 1.0}, {"intercept_prior": "ard"}]
)
def test_what_does_not_go_together_is_named(parameters):
    X, y, *_ = draw(d=8)
    with pytest.raises(ValueError, match="noise="):
        model(**parameters).fit(X, y)
