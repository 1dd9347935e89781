"""The single model of ARDRegressor against closed forms, simulations and the original toolboxes."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal, t
from single_models import assert_same_model, every_min_gain, every_solver, single_model
from sklearn.base import clone

TELLS_OF_THE_FLOOR = pytest.mark.filterwarnings("ignore:the noise variance reached its floor")


@pytest.fixture
def data(make_data):
    return make_data(offset=5.0)


# --- closed forms ---


def marginal_covariance(X, precision, noise_variance):
    return noise_variance * np.eye(len(X)) + X @ np.diag(1 / precision) @ X.T


def log_evidence_flat(C, y):
    """∫ N(y; 1 m, C) dm."""
    n, ones = len(y), np.ones(len(y))
    solved = np.linalg.solve(C, np.column_stack([y, ones]))
    information = ones @ solved[:, 1]
    misfit = y @ solved[:, 0] - (ones @ solved[:, 0]) ** 2 / information
    return -0.5 * ((n - 1) * np.log(2 * np.pi) + np.linalg.slogdet(C)[1] + np.log(information) + misfit)


def design(model, X):
    """Kept columns, with a column of ones last if the model has one; and the precisions of their weights (0: flat)."""
    fit = model._fits[0]
    Phi = X[:, model.active_]
    if not fit.basis.ones:
        return Phi, model.precision_
    alpha = fit.precision if model.intercept_prior == "ard" else np.append(model.precision_, 0.0)
    return np.column_stack([Phi, np.ones(len(X))]), alpha


def test_log_evidence_is_the_density_of_the_data(one_model, data):
    X, y = data
    model = clone(one_model).fit(X, y)
    Phi, alpha = design(model, X)
    if alpha[-1] == 0:
        expected = log_evidence_flat(marginal_covariance(Phi[:, :-1], alpha[:-1], model.noise_variance_), y)
    else:
        C = marginal_covariance(Phi, alpha, model.noise_variance_)
        expected = multivariate_normal(np.zeros(len(y)), C).logpdf(y)
    assert_allclose(model.log_evidence_, expected, rtol=1e-9)


def test_flat_evidence_is_the_limit_of_a_broad_intercept_prior(data):
    X, y = data
    model = single_model().fit(X, y)
    C = marginal_covariance(X[:, model.active_], model.precision_, model.noise_variance_)
    v = 1e7  # the limit is reached like 1/v, rounding grows like v
    broad = multivariate_normal(np.zeros(len(y)), C + v).logpdf(y) + 0.5 * np.log(2 * np.pi * v)
    assert_allclose(model.log_evidence_, broad, atol=1e-5)


@pytest.mark.parametrize("shift", [0.0, 90.0])
def test_posterior_and_predictions_by_brute_force(one_model, data, rng, shift):
    X, y = data
    X = X + shift
    model = clone(one_model).fit(X, y)
    Phi, alpha = design(model, X)
    new = rng.uniform(-5, 5, (7, X.shape[1])) + shift
    Phi_new, _ = design(model, new)
    # Where the brute-force Gram matrix is bad (columns far from 0 beside ones), its own error is some 1e-8.
    close = partial(assert_allclose, rtol=1e-6)
    Sigma = np.linalg.inv(np.diag(alpha) + Phi.T @ Phi / model.noise_variance_)
    mean = Sigma @ Phi.T @ y / model.noise_variance_
    kept = len(model.active_)
    close(model.coef_[model.active_], mean[:kept])
    close(model.intercept_, mean[kept:].sum())
    close(model.covariance_, Sigma[:kept, :kept], atol=1e-6 * np.diag(Sigma)[:kept].max())
    close(model.relevance_[model.active_], 1 - alpha[:kept] * np.diag(Sigma)[:kept])
    predicted, cov = model.predict(new, return_cov=True)
    close(predicted, Phi_new @ mean)
    expected = Phi_new @ Sigma @ Phi_new.T + model.noise_variance_ * np.eye(len(new))
    close(cov, expected, atol=1e-6 * np.diag(expected).max())
    close(model.predict(new, return_std=True)[1], np.sqrt(np.diag(expected)))


@every_solver
def test_predictive_std_far_from_the_data_includes_the_intercept(rng, solver):
    x = rng.uniform(80, 100, (40, 1))
    y = 3 * x[:, 0] - 7 + rng.standard_normal(40)
    model = single_model(solver=solver).fit(x, y)
    asked = np.array([[0.0], [90.0], [200.0]])
    away = asked[:, 0] - x.mean()
    noise = model.noise_variance_
    expected = noise + noise / 40 + away**2 * model.covariance_[0, 0]
    assert_allclose(model.predict(asked, return_std=True)[1] ** 2, expected, rtol=1e-10)
    assert expected[0] > 4 * noise  # 90 away from data that are 20 wide


def test_noise_and_precisions_are_stationary(one_flat_model, data):
    """α(μ² + Σ_mm) = 1 and σ² = ‖residual‖² / (N - 1 - Σγ): the textbook's conditions (section 2), to √tol."""
    X, y = data
    model = clone(one_flat_model).set_params(tol=1e-12).fit(X, y)
    moment = model.coef_[model.active_] ** 2 + np.diag(model.covariance_)
    assert_allclose(model.precision_ * moment, 1, rtol=1e-5)
    residual = ((y - model.predict(X)) ** 2).sum()
    assert_allclose(model.noise_variance_, residual / (len(y) - 1 - model.relevance_.sum()), rtol=1e-5)


# --- simulation ---


def assert_moments(draws, mean, cov, sigmas=5):
    """Sample mean and covariance lie within 5 standard errors of what they estimate."""
    spread, root_n = np.sqrt(np.diag(cov)), np.sqrt(len(draws))
    assert_allclose((draws.mean(axis=0) - mean) / spread, 0, atol=sigmas / root_n)
    assert_allclose((np.cov(draws.T) - cov) / np.outer(spread, spread), 0, atol=sigmas * np.sqrt(2) / root_n)


def test_posterior_draws_have_the_posterior_moments(one_model, data):
    X, y = data
    model = clone(one_model).fit(X + 2, y)
    coef, intercept = model.sample_posterior(20_000, random_state=0)
    gone = np.setdiff1d(np.arange(X.shape[1]), model.active_)
    assert not coef[:, gone].any()
    assert_moments(coef[:, model.active_], model.coef_[model.active_], model.covariance_)
    # The predictor at any x, and so also the intercept's correlation with the weights:
    x = np.vstack([np.zeros(X.shape[1]), X[:2]])
    mean, cov = model.predict(x, return_cov=True)
    latent = cov - model.noise_variance_ * np.eye(3)
    if not model.fit_intercept:
        assert not intercept.any()
        x, mean, latent = x[1:], mean[1:], latent[1:, 1:]
    assert_moments(coef @ x.T + intercept[:, None], mean, latent)


def test_draws_of_observations_have_the_predictive_moments(one_model, data):
    X, y = data
    model = clone(one_model).fit(X, y)
    assert_moments(model.sample_y(X[:4], 20_000, random_state=0).T, *model.predict(X[:4], return_cov=True))


@pytest.mark.parametrize("method", ["sample_posterior", "sample_y"])
def test_draws_follow_random_state(data, method):
    X, y = data
    model = single_model().fit(X, y)
    draw = partial(getattr(model, method), *([X] if method == "sample_y" else []), n_samples=3)
    first, again, other = (np.hstack([np.ravel(part) for part in draw(random_state=seed)]) for seed in (1, 1, 2))
    assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.frequencies
def test_intervals_cover_fresh_observations_as_often_as_they_say(make_data):
    inside = {0.5: [], 0.9: [], 0.99: []}
    for seed in range(200):  # ten rows each, so few that a normal quantile would fail
        X, y = make_data(40, 3, n_true=2, noise=0.3, seed=seed)
        model = single_model().fit(X[:10], y[:10])
        for coverage, shares in inside.items():
            ends = model.predict_interval(X[10:], coverage=coverage)
            shares.append(((ends[:, 0] < y[10:]) & (y[10:] < ends[:, 1])).mean())
    for coverage, shares in inside.items():
        assert_allclose(np.mean(shares), coverage, atol=4 * np.std(shares) / np.sqrt(200))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_degrees_of_freedom_are_those_that_the_weights_leave(outputs, fit_intercept):
    """By the relevances γ and the intercept, and by the quantile of the intervals."""
    X, Y = outputs[0], outputs[1][:, :2]  # the third output is constant, and has no noise to learn
    model = single_model(fit_intercept=fit_intercept).fit(X, Y)
    freedom = model.degrees_of_freedom_
    assert_allclose(freedom, len(X) - model.relevance_.sum(axis=1) - fit_intercept)
    half = np.diff(model.predict_interval(X, 0.9))[..., 0] / 2
    assert_allclose(half, t.ppf(0.95, freedom) * model.predict(X, return_std=True)[1])
    assert single_model(fit_intercept=fit_intercept).fit(X, Y[:, 0]).degrees_of_freedom_ == freedom[0]


# --- weights of rows ---


def assert_weights_repeat_rows(regressor, X, y, weight):
    repeated = clone(regressor).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    weighted = clone(regressor).fit(X, y, sample_weight=weight)
    assert_same_model(weighted, repeated)
    for got, expected in zip(weighted.predict(X, return_std=True), repeated.predict(X, return_std=True), strict=True):
        assert_allclose(got, expected, rtol=1e-6)
    assert_allclose(weighted.predict_interval(X), repeated.predict_interval(X), rtol=1e-6)


def test_integer_weights_are_repeated_rows(regressor, data, rng):
    assert_weights_repeat_rows(regressor, *data, rng.integers(0, 4, len(data[1])))


@TELLS_OF_THE_FLOOR
def test_integer_weights_are_repeated_rows_of_wide_data(priced, make_data):
    assert_weights_repeat_rows(priced, *make_data(40, 60), np.r_[0, 2, 2, 2, np.ones(36, dtype=int)])


def test_rows_of_weight_zero_are_not_there(regressor, data):
    X, y = data
    X[5], y[9] = 1e9, -1e9
    weight = np.ones(len(y))
    weight[[5, 9]] = 0
    expected = clone(regressor).fit(np.delete(X, [5, 9], axis=0), np.delete(y, [5, 9]))
    assert_same_model(clone(regressor).fit(X, y, sample_weight=weight), expected, rtol=1e-12)


# --- several outputs ---


@pytest.fixture
def outputs(data, make_data):
    X, y = data
    return X, np.column_stack([y, 10 * X[:, 7] + make_data(seed=1)[1], np.full(len(y), 4.0)])


def test_outputs_are_fitted_as_if_alone(regressor, outputs):
    if regressor.get_params().get("multi_output") == "joint":
        pytest.skip("its outputs are fitted together (tests/estimators/test_outputs.py)")
    X, Y = outputs
    together = clone(regressor).fit(X, Y)
    mean, std = together.predict(X, return_std=True)
    cov = together.predict(X, return_cov=True)[1]
    for k, y in enumerate(Y.T):
        alone = clone(regressor).fit(X, y)
        for name in ("coef_", "intercept_", "noise_variance_", "relevance_", "log_evidence_", "optimality_gap_"):
            assert_array_equal(getattr(together, name)[k], getattr(alone, name))
        for name in ("active_", "precision_", "covariance_", "evidence_path_"):
            assert_array_equal(getattr(together, name)[k], getattr(alone, name))
        assert_array_equal(mean[:, k], alone.predict(X))
        assert_array_equal(std[:, k], alone.predict(X, return_std=True)[1])
        assert_array_equal(cov[..., k], alone.predict(X, return_cov=True)[1])
        assert_array_equal(together.predict_interval(X)[:, k], alone.predict_interval(X))
        assert together.n_iter_ >= alone.n_iter_


def test_shapes_for_several_outputs(outputs):
    X, Y = outputs
    (n, d), k = X.shape, Y.shape[1]
    model = single_model().fit(X, Y)
    assert model.coef_.shape == model.relevance_.shape == (k, d)
    assert model.intercept_.shape == model.noise_variance_.shape == model.log_evidence_.shape == (k,)
    assert len(model.active_) == len(model.precision_) == len(model.covariance_) == len(model.evidence_path_) == k
    assert model.predict(X).shape == (n, k)
    assert model.predict(X, return_std=True)[1].shape == (n, k)
    assert model.predict(X, return_cov=True)[1].shape == (n, n, k)
    assert model.predict_interval(X).shape == (n, k, 2)
    coef, intercept = model.sample_posterior(6)
    assert (coef.shape, intercept.shape) == ((6, k, d), (6, k))
    assert model.sample_y(X, 6).shape == (n, k, 6)
    assert_array_equal(model.get_support(), (model.relevance_ > 0).any(axis=0))


def test_shapes_for_one_output(data):
    X, y = data
    n, d = X.shape
    model = single_model().fit(X, y)
    kept = len(model.active_)
    assert model.coef_.shape == model.relevance_.shape == (d,)
    assert model.precision_.shape == (kept,)
    assert model.covariance_.shape == (kept, kept)
    assert np.ndim(model.intercept_) == np.ndim(model.noise_variance_) == np.ndim(model.log_evidence_) == 0
    assert model.predict(X).shape == (n,)
    assert model.predict(X, return_std=True)[1].shape == (n,)
    assert model.predict(X, return_cov=True)[1].shape == (n, n)
    assert model.predict_interval(X).shape == (n, 2)
    coef, intercept = model.sample_posterior(6)
    assert (coef.shape, intercept.shape) == ((6, d), (6,))
    assert model.sample_y(X, 6).shape == (n, 6)


def test_a_single_column_of_targets_stays_a_column(data):
    X, y = data
    column = single_model().fit(X, y[:, None])
    assert column.predict(X).shape == (len(y), 1)
    assert_array_equal(column.predict(X)[:, 0], single_model().fit(X, y).predict(X))


# --- hyper-priors ---

HYPER = {"a": 0.5, "b": 0.2, "c": 2.0, "d": 1.0}


@every_solver
@every_min_gain
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_hyper_priors_end_at_the_top_of_the_posterior(data, solver, min_gain, fit_intercept):
    X, y = data
    model = single_model(solver=solver, min_gain=min_gain, fit_intercept=fit_intercept, tol=1e-12, **HYPER).fit(X, y)
    a, b, c, d = HYPER.values()

    def objective(log_precisions):
        alpha, beta = np.exp(log_precisions[:-1]), np.exp(log_precisions[-1])
        C = marginal_covariance(X[:, model.active_], alpha, 1 / beta)
        evidence = log_evidence_flat(C, y) if fit_intercept else multivariate_normal(np.zeros(len(y)), C).logpdf(y)
        return evidence + (a * np.log(alpha) - b * alpha).sum() + c * np.log(beta) - d * beta

    top = np.log(np.append(model.precision_, 1 / model.noise_variance_))
    steps = 1e-4 * np.eye(len(top))
    slope = [(objective(top + h) - objective(top - h)) / 2e-4 for h in steps]
    # tol nats below the top of a parabola of curvature n/2 or less, the slope is at most √(n tol) = 1e-5
    assert_allclose(slope, 0, atol=2e-5)


@every_solver
def test_hyper_priors_are_in_the_units_of_the_data(data, solver):
    X, y = data
    base = single_model(solver=solver, **HYPER).fit(X, y)
    y_scale, x_scale = 1e3, 1e-2
    rates = {"b": HYPER["b"] * (y_scale / x_scale) ** 2, "d": HYPER["d"] * y_scale**2}
    model = single_model(solver=solver, **(HYPER | rates)).fit(X * x_scale, y * y_scale)
    assert_array_equal(model.active_, base.active_)
    assert_allclose(model.coef_, base.coef_ * y_scale / x_scale, rtol=1e-6)
    assert_allclose(model.noise_variance_, base.noise_variance_ * y_scale**2, rtol=1e-6)


@every_solver
def test_zero_is_the_limit_of_weak_hyper_priors(data, solver):
    weak = dict.fromkeys(HYPER, 1e-9)
    assert_same_model(single_model(solver=solver, **weak).fit(*data), single_model(solver=solver).fit(*data), rtol=1e-3)


def test_hyper_priors_pull_the_way_they_should(data):
    base = single_model().fit(*data)
    quiet = single_model(c=20.0).fit(*data)
    assert quiet.noise_variance_ < base.noise_variance_
    large = single_model(b=2.0).fit(*data)
    assert (large.precision_ < base.precision_).all()
