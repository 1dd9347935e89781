"""The single model of ARDRegressor against closed forms, simulations and the original toolboxes."""

import json
import tracemalloc
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal, t
from sklearn.base import clone

from sparsebayes import ARDRegressor
from sparsebayes.engine.regression import SOLVERS

single_model = partial(ARDRegressor, average=False)
REFERENCE = Path(__file__).parent.parent / "reference"
every_solver = pytest.mark.parametrize("solver", sorted(SOLVERS))
TELLS_OF_THE_FLOOR = pytest.mark.filterwarnings("ignore:the noise variance reached its floor")
every_min_gain = pytest.mark.parametrize("min_gain", ["auto", 0.0])


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


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.99])
def test_intervals_cover_fresh_observations_as_often_as_they_say(make_data, coverage):
    inside = []
    for seed in range(200):  # ten rows each, so few that a normal quantile would fail
        X, y = make_data(40, 3, n_true=2, noise=0.3, seed=seed)
        ends = single_model().fit(X[:10], y[:10]).predict_interval(X[10:], coverage=coverage)
        inside.append(((ends[:, 0] < y[10:]) & (y[10:] < ends[:, 1])).mean())
    assert_allclose(np.mean(inside), coverage, atol=4 * np.std(inside) / np.sqrt(200))


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


def assert_same_model(model, other, rtol=1e-6):
    assert_array_equal(model.active_, other.active_)
    for name in ("coef_", "intercept_", "precision_", "noise_variance_", "relevance_", "log_evidence_"):
        assert_allclose(getattr(model, name), getattr(other, name), rtol, err_msg=name)
    largest = np.diag(other.covariance_).max(initial=0)
    assert_allclose(model.covariance_, other.covariance_, rtol, rtol * largest, err_msg="covariance_")


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


# --- the originals ---


def original(name):
    """Training and test rows, and what the original program made of them."""
    content = json.loads((REFERENCE / f"{name}__tight.json").read_text())
    train, test = (np.loadtxt(REFERENCE / content["data"][part], delimiter=",") for part in ("train", "test"))
    return train[:, :-1], train[:, -1], test[:, :-1], content["results"]


@every_solver
@pytest.mark.parametrize("program", ["sparsebayes", "sb1rvm"])
def test_textbook_answer_is_that_of_the_originals(solver, program):
    X, y, X_new, expected = original(f"reg_lin_n100_d50__{program}_gaussian_lin_bias")
    model = single_model(solver=solver, min_gain=0, intercept_prior="ard", tol=1e-12).fit(X, y)
    fit = model._fits[0]
    assert_allclose(model.log_evidence_, expected["logML_final"] - len(y) / 2 * np.log(2 * np.pi), atol=1e-6)
    assert_array_equal(fit.columns, expected["relevant_0based"])
    # tol nats below the top the weights are √tol away, times how soft the weakest of them is.
    assert_allclose(fit.mean, expected["w"], atol=1e-5)
    assert_allclose(fit.noise_variance, expected["noise_var"], rtol=1e-5)
    assert_allclose(model.predict(X_new), expected["pred_mean"], atol=1e-5)
    assert_allclose(model.predict(X_new, return_std=True)[1] ** 2, expected["pred_var_derived"], rtol=1e-5)


@every_solver
def test_default_is_not_lost_where_the_original_overfits(solver):
    X, y, _, expected = original("reg_lin_n50_d100__sparsebayes_gaussian_lin_bias")
    assert len(expected["relevant_0based"]) == 46
    active = set(single_model(solver=solver).fit(X, y).active_)
    assert active >= {7, 27, 32, 35, 66}
    assert len(active) <= 8


@TELLS_OF_THE_FLOOR
@every_solver
def test_textbook_evidence_is_not_below_the_original_on_wide_data(solver):
    X, y, _, expected = original("reg_lin_n50_d100__sparsebayes_gaussian_lin_bias")
    model = single_model(solver=solver, min_gain=0, intercept_prior="ard").fit(X, y)
    assert model.log_evidence_ > expected["logML_final"] - len(y) / 2 * np.log(2 * np.pi) - 0.5


# --- search ---


@every_min_gain
def test_all_solvers_end_at_the_same_top(make_data, min_gain):
    X, y = make_data(100, 30, n_true=6)
    fits = [single_model(solver=solver, min_gain=min_gain, tol=1e-10).fit(X, y) for solver in SOLVERS]
    for model in fits[1:]:
        assert_array_equal(model.active_, fits[0].active_)
        # tol nats of a top of curvature about one: √tol in the parameters, tol itself in the evidence
        assert_allclose(model.log_evidence_, fits[0].log_evidence_, atol=1e-8)
        assert_allclose(model.coef_, fits[0].coef_, atol=1e-5)


def test_certificate_holds_and_the_path_ends_at_the_evidence(one_model, make_data):
    X, y = make_data(80, 40, n_true=6, offset=1.0)
    model = clone(one_model).fit(X, y)
    assert model.converged_
    assert model.optimality_gap_ <= model.tol
    assert model.n_iter_ == len(model.evidence_path_)
    # each entry is the objective before a step, and the last step found nothing left to do
    assert_allclose(model.evidence_path_[-1], model.log_evidence_, atol=1e-9)
    assert model.n_jittered_ == 0


@pytest.mark.filterwarnings("ignore:not converged")
def test_path_holds_the_evidence_of_each_model_on_the_way(make_data):
    X, y = make_data(150, 40, n_true=15)
    path = single_model(solver="sequential").fit(X, y).evidence_path_
    assert len(path) > 20
    for n_steps in range(1, len(path), 3):
        stopped = single_model(solver="sequential", max_iter=n_steps).fit(X, y)
        assert_allclose(stopped.log_evidence_, path[n_steps], rtol=1e-9)


@pytest.mark.parametrize("solver", ["em", "sequential"])
def test_textbook_evidence_never_falls(make_data, solver):
    X, y = make_data(80, 40, n_true=6)
    path = single_model(solver=solver, min_gain=0).fit(X, y).evidence_path_
    # a batch solver drops a weight when that moves the evidence by less than 1e-3 nats
    assert np.diff(path).min() > (-1e-3 if solver == "em" else -1e-9)


@every_solver
def test_certificate_is_what_a_further_step_would_bring(make_data, solver):
    X, y = make_data(80, 40, n_true=6)
    rough = single_model(solver=solver, min_gain=0, tol=0.1).fit(X, y)
    fine = single_model(solver=solver, min_gain=0, tol=1e-10).fit(X, y)
    assert 1e-10 < rough.optimality_gap_ <= 0.1
    assert fine.optimality_gap_ <= 1e-10
    assert fine.log_evidence_ >= rough.log_evidence_


@every_solver
@every_min_gain
def test_warm_start_continues_where_the_last_fit_ended(make_data, solver, min_gain):
    X, y = make_data(100, 40, n_true=6)
    model = single_model(solver=solver, min_gain=min_gain, warm_start=True, tol=1e-10).fit(X[:90], y[:90])
    first = model.n_iter_
    before = clone(model).fit(X[:90], y[:90])
    model.fit(X[:90], y[:90])
    assert model.n_iter_ < first / 2
    assert_same_model(model, before, rtol=1e-4)  # √tol, times how soft the weakest weight is
    model.fit(X, y)
    cold = clone(model).set_params(solver="sequential").fit(X, y)  # counts the same kind of step
    assert model.n_iter_ <= cold.n_iter_
    assert_allclose(model.log_evidence_, cold.log_evidence_, atol=1e-8)
    assert_array_equal(model.active_, cold.active_)


def test_warm_start_survives_a_feature_that_became_constant(data):
    X, y = data
    model = single_model(warm_start=True, tol=1e-12).fit(X, y)
    X[:, 0] = 1.0
    assert_same_model(model.fit(X, y), single_model(tol=1e-12).fit(X, y), rtol=1e-5)
    assert 0 not in model.active_


@every_solver
def test_wide_data_needs_no_square_matrix(make_data, solver):
    X, y = make_data(60, 5000, noise=0.1)
    tracemalloc.start()
    try:
        model = single_model(solver=solver).fit(X, y)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert {0, 1, 2} <= set(model.active_)
    assert peak < 5000 * 5000 * 8 / 5, f"{peak / 2**20:.0f} MiB"


def test_default_finds_the_truth_and_the_textbook_keeps_more(make_data):
    exact = []
    for seed in range(10):
        X, y = make_data(300, 100, n_true=8, noise=1.0, seed=seed)
        truth = set(range(8))
        kept, textbook = (set(single_model(min_gain=gain).fit(X, y).active_) for gain in ("auto", 0))
        assert kept >= truth
        assert len(textbook) > 12
        exact.append(kept == truth)
    assert np.mean(exact) >= 0.8


def test_min_gain_is_a_price(make_data):
    X, y = make_data(100, 30, n_true=6)
    fits = [single_model(min_gain=price).fit(X, y) for price in (0, 1, np.log(30), 20, 1e6)]
    kept = [len(model.active_) for model in fits]
    assert kept == sorted(kept, reverse=True)
    assert kept[0] > kept[2] >= 6
    assert kept[-1] == 0
    assert_array_equal(fits[2].coef_, single_model().fit(X, y).coef_)
    # What is kept is worth its price: without any one of them the evidence falls by more.
    for j in fits[3].active_:
        fewer = single_model(min_gain=20).fit(np.delete(X, j, axis=1), y)
        assert fits[3].log_evidence_ - 20 * kept[3] > fewer.log_evidence_ - 20 * len(fewer.active_)


def test_get_support(data):
    model = single_model().fit(*data)
    assert_array_equal(model.get_support(indices=True), model.active_)
    assert_array_equal(np.flatnonzero(model.get_support()), model.active_)
    assert model.get_support().dtype == bool


@every_solver
def test_progress_goes_to_standard_error_only_when_asked_for(data, capsys, solver):
    single_model(solver=solver).fit(*data)
    assert capsys.readouterr() == ("", "")
    single_model(solver=solver, verbose=1).fit(*data)  # lives in terminals only
    assert capsys.readouterr() == ("", "")
    model = single_model(solver=solver, verbose=2).fit(*data)
    out, every = capsys.readouterr()
    assert out == ""
    assert len(every.splitlines()) >= model.n_iter_
    assert all("log evidence" in line for line in every.splitlines())


@TELLS_OF_THE_FLOOR
@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize(
    ("shape", "min_gain", "chosen"),
    [((60, 12), 0, "fixed-point"), ((60, 12), "auto", "sequential"), ((10, 30), 0, "sequential")],
)
def test_auto_chooses_as_documented(make_data, shape, min_gain, chosen):
    X, y = make_data(*shape)
    model = single_model(min_gain=min_gain, max_iter=100)
    names = ("auto", "fixed-point", "sequential")
    paths = {solver: model.set_params(solver=solver).fit(X, y).evidence_path_ for solver in names}
    auto = paths.pop("auto")
    assert [solver for solver, path in paths.items() if np.array_equal(path, auto)] == [chosen]


@pytest.mark.parametrize("columns", [[-1, 1], [0, 10**6], [0, 0]])
def test_warm_start_refuses_columns_that_are_not_there(columns, data):
    """A model may come from a file; the compiled search would write beyond its arrays."""
    model = single_model(warm_start=True).fit(*data)
    model._fits = [replace(model._fits[0], columns=np.array(columns), precision=np.ones(2))]
    with pytest.raises(ValueError, match="warm_start=False"):
        model.fit(*data)
