"""VBLogisticRegression against the original program and against updates by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from sparsebayes import VBLogisticRegression
from sparsebayes.engine.incremental import Belief, update


@pytest.fixture
def with_ones(log_data):
    """Design [X, 1], and classes."""

    def load(problem, part="train"):
        X, t = log_data(problem, part)
        return np.column_stack([X, np.ones(len(X))]), t

    return load


@pytest.fixture(scope="module")
def stream():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 4)) + 1
    return X, np.where(X[:, 0] - X[:, 1] + rng.logistic(size=60) > 0, "yes", "no")


@pytest.fixture(scope="module")
def three_classes():
    rng = np.random.default_rng(5)
    codes = np.arange(90) % 3
    return np.array([[2.0, 0], [0, 2.0], [-1.0, -1.0]])[codes] + rng.standard_normal((90, 2)), codes


@pytest.fixture
def belief_of():
    """Mean and covariance of the weights and of the intercept at x = 0 (last)."""

    def of(model):
        fit = model._fits[0]
        to_zero = np.eye(len(fit.mean))
        if fit.basis.ones:
            to_zero[-1, :-1] = -fit.basis.reference
        covariance = to_zero @ (np.diag(fit.diagonal) + fit.sign * fit.root.T @ fit.root) @ to_zero.T
        return to_zero @ fit.mean, covariance

    return of


# --- all at once ---


@pytest.mark.parametrize("ard", [False, True], ids=["shared", "ard"])
def test_fit_is_the_originals(log_problem, ard, with_ones, recorded):
    record = recorded(log_problem, "vb_logit_fit_ard__tight" if ard else "vb_logit_fit__tight")
    expected = record["results"]
    if record["stopped_on_iteration_limit"]:
        pytest.skip("the original had not converged; its iterations are compared in tests/engine/test_glm.py")
    X, t = with_ones(log_problem)
    model = VBLogisticRegression(ard=ard, fit_intercept=False, tol=1e-8, max_iter=5000).fit(X, t)
    assert model.converged_
    # The bound of 301 weights is so flat that 1e-8 nats leave the third digit of some open.
    assert_allclose(model.coef_[0], expected["w"], atol=1e-2 if log_problem == "log_n60_d300" else 1e-3)
    assert_allclose(model.log_evidence_, expected["bound"], rtol=1e-8)
    assert (np.diff(model.evidence_path_) > -1e-12 * np.abs(model.log_evidence_)).all()
    assert model.n_samples_seen_ == len(t)
    p = model.set_params(proba="plug-in").predict_proba(with_ones(log_problem, "test")[0])[:, 1]
    assert_allclose(p, expected["p_test_plugin_derived"], atol=1e-3)


@pytest.mark.parametrize("ard", [False, True], ids=["shared", "ard"])
@pytest.mark.parametrize("problem", ["log_n200_d10", "log_iris_vv"])
def test_weights_of_a_tighter_run(problem, ard, with_ones, recorded):
    expected = recorded(problem, "vb_logit_fit_ard__tight" if ard else "vb_logit_fit__tight")["results"]
    X, t = with_ones(problem)
    model = VBLogisticRegression(ard=ard, fit_intercept=False, tol=1e-10, max_iter=5000).fit(X, t)
    assert_allclose(model.coef_[0], expected["w"], atol=1e-4)
    assert_allclose(model.precision_, np.broadcast_to(expected["E_alpha"], X.shape[1]), rtol=1e-3)
    assert_allclose(np.diag(model.covariance_), expected["w_var"], rtol=1e-3)


@pytest.mark.parametrize("ard", [False, True], ids=["shared", "ard"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_bound_never_falls_and_all_is_kept(ard, fit_intercept, stream):
    X, y = stream
    model = VBLogisticRegression(ard=ard, fit_intercept=fit_intercept, tol=1e-7).fit(X, y)
    assert len(model.evidence_path_) > 3
    assert (np.diff(model.evidence_path_) > -1e-11).all()
    assert model.log_evidence_ >= model.evidence_path_[-1] - 1e-11
    assert_array_equal(model.active_, np.arange(4))
    assert model.score(X, y) > 0.6
    assert (model.intercept_[0] != 0) == fit_intercept


def test_integer_weights_are_repeated_rows(stream):
    X, y = stream
    weight = np.arange(60) % 4
    model = VBLogisticRegression(tol=1e-8, max_iter=5000)
    one = clone(model).fit(X, y, sample_weight=weight)
    many = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(one.coef_, many.coef_, atol=1e-6)
    assert_allclose(one.log_evidence_, many.log_evidence_, rtol=1e-9)
    assert one.n_samples_seen_ == weight.sum()


def test_place_of_the_origin_does_not_matter(stream):
    X, y = stream
    one, other = VBLogisticRegression().fit(X, y), VBLogisticRegression().fit(X + 1e4, y)
    assert_allclose(one.coef_, other.coef_, atol=1e-5)
    assert_allclose(one.predict_proba(X), other.predict_proba(X + 1e4), atol=1e-5)


def test_too_few_iterations_are_told(stream):
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = VBLogisticRegression(max_iter=2).fit(*stream)
    assert not model.converged_


# --- row by row ---


def test_rows_one_by_one_are_the_originals(log_problem, with_ones, recorded):
    X, t = with_ones(log_problem)
    expected = recorded(log_problem, "vb_logit_fit_iter__shipped")["results"]
    model = VBLogisticRegression(fit_intercept=False)  # by default as exact as the original: 1e-5 of the bound
    for i in range(len(t)):
        model.partial_fit(X[i : i + 1], t[i : i + 1], classes=[0, 1])
    assert_allclose(model.coef_[0], expected["w"], atol=1e-6)
    assert_allclose(np.diag(model.covariance_), expected["w_var"], rtol=1e-6)
    assert model.n_samples_seen_ == len(t)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_blocks_are_updates_of_the_belief(fit_intercept, stream, belief_of):
    X, y = stream
    weight = np.linspace(0.5, 2, 60)
    model = VBLogisticRegression(fit_intercept=fit_intercept, prior_precision=0.7, tol=1e-7)
    belief = Belief.prior(np.array([0.7] * 4 + [1e-6] * fit_intercept))
    Phi = np.column_stack([X, np.ones(60)]) if fit_intercept else X
    for rows in (slice(0, 25), slice(25, 28), slice(28, 60)):
        model.partial_fit(X[rows], y[rows], classes=["yes", "no"], sample_weight=weight[rows])
        belief = update(belief, Phi[rows], (y[rows] == "yes") * 1.0, weight[rows], 1e-9)
    mean, covariance = belief_of(model)
    assert_allclose(mean, belief.mean, atol=1e-9)
    assert_allclose(covariance, belief.covariance, atol=1e-9)
    assert_allclose(model.coef_[0], belief.mean[:4], atol=1e-9)
    assert_allclose(model.intercept_, belief.mean[4:].sum(), atol=1e-9)
    assert_allclose(model.n_samples_seen_, weight.sum(), rtol=1e-12)
    eta = Phi @ belief.mean
    assert_allclose(model.set_params(proba="plug-in").decision_function(X), eta, atol=1e-8)
    assert model.score(X, y) > 0.6


@pytest.mark.parametrize("ard", [False, True], ids=["shared", "ard"])
@pytest.mark.parametrize("shift", [0.0, 20.0])
def test_partial_fit_goes_on_from_the_posterior_of_fit(ard, shift, stream, belief_of):
    X, y = stream
    X = X + shift
    model = VBLogisticRegression(ard=ard, tol=1e-7).fit(X[:40], y[:40])
    mean, covariance = belief_of(model)
    precision = np.linalg.inv(covariance)
    belief = Belief(precision, precision @ mean, covariance, np.linalg.slogdet(covariance)[1], 40.0)
    belief = update(belief, np.column_stack([X, np.ones(60)])[40:], (y[40:] == "yes") * 1.0, np.ones(20), 1e-9)
    model.partial_fit(X[40:], y[40:])
    assert_allclose(model.coef_[0], belief.mean[:4], atol=1e-6)
    assert_allclose(model.intercept_, belief.mean[4:], rtol=1e-6, atol=1e-6)
    assert_allclose(model.covariance_, belief.covariance[:4, :4], rtol=1e-5, atol=1e-9)
    assert model.n_samples_seen_ == 60


def test_partial_fit_after_fit_with_more_features_than_rows(rng):
    X, y = rng.standard_normal((30, 50)), np.arange(30) % 2
    model = VBLogisticRegression(tol=1e-3).fit(X[:20], y[:20])
    before = model.predict_proba(X[20:])[np.arange(10), y[20:]]
    model.partial_fit(X[20:], y[20:])
    after = model.predict_proba(X[20:])[np.arange(10), y[20:]]
    assert np.log(after).mean() > np.log(before).mean()
    assert model.n_samples_seen_ == 30


def test_fit_forgets(stream):
    X, y = stream
    model = VBLogisticRegression().partial_fit(X[:30], y[:30], classes=["no", "yes"]).fit(X, y)
    assert_array_equal(model.coef_, VBLogisticRegression().fit(X, y).coef_)
    assert model.n_samples_seen_ == 60


def test_first_call_needs_all_classes(stream):
    X, y = stream
    with pytest.raises(ValueError, match="classes must be given in the first call"):
        VBLogisticRegression().partial_fit(X, y)
    with pytest.raises(ValueError, match="one class only"):
        VBLogisticRegression().partial_fit(X[y == "yes"], y[y == "yes"], classes=["yes"])
    model = VBLogisticRegression().partial_fit(X[y == "yes"], y[y == "yes"], classes=["no", "yes"])
    assert model.predict_proba(X)[:, 1].mean() > 0.5


def test_unknown_labels_change_nothing(stream):
    X, y = stream
    model = VBLogisticRegression().partial_fit(X, y, classes=["no", "yes"])
    before = model.coef_.copy()
    with pytest.raises(ValueError, match="'perhaps'"):
        model.partial_fit(X[:1], ["perhaps"])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:1, :2], y[:1])
    assert_array_equal(model.coef_, before)
    assert model.n_samples_seen_ == 60


def test_class_weights_in_blocks(stream):
    X, y = stream
    one = VBLogisticRegression(class_weight={"yes": 3.0}).partial_fit(X, y, classes=["no", "yes"])
    by_hand = np.where(y == "yes", 3.0, 1.0)
    other = VBLogisticRegression().partial_fit(X, y, classes=["no", "yes"], sample_weight=by_hand)
    assert_array_equal(one.coef_, other.coef_)
    with pytest.raises(ValueError, match="balanced"):
        VBLogisticRegression(class_weight="balanced").partial_fit(X, y, classes=["no", "yes"])


def test_many_rows_in_blocks_are_near_the_whole(rng):
    X = rng.standard_normal((3000, 3))
    y = X @ [1.0, -1.0, 0.0] + rng.logistic(size=3000) > 0
    whole = VBLogisticRegression(fit_intercept=False).fit(X, y)
    parts = VBLogisticRegression(fit_intercept=False)
    for start in range(0, 3000, 300):
        parts.partial_fit(X[start : start + 300], y[start : start + 300], classes=[False, True])
    assert_allclose(parts.coef_, whole.coef_, atol=0.03)


# --- more than two classes ---


def test_one_belief_per_class(three_classes):
    X, codes = three_classes
    whole = VBLogisticRegression().fit(X, codes)
    parts = VBLogisticRegression()
    for start in range(0, 90, 30):
        parts.partial_fit(X[start : start + 30], codes[start : start + 30], classes=[0, 1, 2])
    for model in (whole, parts):
        assert model.coef_.shape == (3, 2)
        p = model.predict_proba(X)
        assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
        assert model.score(X, codes) > 0.75
        assert model.n_samples_seen_ == 90
    alone = VBLogisticRegression().fit(X, codes == 1)
    assert_allclose(whole.coef_[1], alone.coef_[0], rtol=1e-12)
    goes_on = clone(whole).fit(X[:60], codes[:60]).partial_fit(X[60:], codes[60:])
    assert goes_on.n_samples_seen_ == 90
    assert goes_on.score(X, codes) > 0.75


def test_a_million_rows_in_blocks_stay_right():
    truth, level, n, block = np.array([1.0, -0.5, 0.0]), 0.3, 1_000_000, 20_000
    rng = np.random.default_rng(12)
    model = VBLogisticRegression()
    for _ in range(n // block):
        X = rng.standard_normal((block, 3))
        model.partial_fit(X, rng.random(block) < 1 / (1 + np.exp(-X @ truth - level)), classes=[False, True])
    assert model.n_samples_seen_ == n
    sd = np.sqrt(np.diag(model.covariance_))
    assert_allclose(sd, 1 / np.sqrt(0.2 * n), rtol=0.1)  # E[σ'(η)] is about 0.2 here
    # The bound is tight where a block's posterior is narrow, so nothing but sampling error is left.
    assert np.all(np.abs(model.coef_[0] - truth) < 4 * sd)
    assert abs(model.intercept_[0] - level) < 4 * sd.max()


def test_a_weak_prior_of_blocks_costs_no_digits(rng):
    """Differences of covariances would: half of them at 1e-8, nearly all at 1e-12."""
    X = rng.standard_normal((60, 4))
    y = X[:, 0] + rng.logistic(size=60) > 0
    coef = []
    for precision in (1e-8, 1e-10, 1e-12):
        model = VBLogisticRegression(prior_precision=precision)
        for k in range(0, 60, 3):
            model.partial_fit(X[k : k + 3], y[k : k + 3], classes=[False, True])
        coef.append(model.coef_[0])
    # Against rows of precision one and more the two weakest priors are as good as none.
    assert_allclose(coef[2], coef[1], rtol=1e-4)
    assert np.abs(coef[1] - coef[0]).max() < 0.05 * np.abs(coef[0]).max()


@pytest.mark.parametrize("precision", [1e-16, 1e-50, 1e-300])
def test_a_prior_too_weak_for_blocks_is_refused_by_name(precision, rng):
    X, y = rng.standard_normal((6, 4)), np.array([0, 1, 0, 1, 0, 1])
    model = VBLogisticRegression(prior_precision=precision)
    with pytest.raises(ValueError, match="prior_precision"):
        model.partial_fit(X[:3], y[:3], classes=[0, 1])
    assert not hasattr(model, "classes_")


def test_units_of_features_do_not_matter_to_blocks(rng):
    """Under a prior that is as good as none, which has no units."""
    X = rng.standard_normal((80, 3))
    y = X[:, 0] + rng.logistic(size=80) > 0
    unit = np.array([1e-5, 1.0, 1e5])
    found = [
        VBLogisticRegression(prior_precision=1e-16, tol=1e-8).partial_fit(rows, y, classes=[False, True])
        for rows in (X, X * unit)
    ]
    assert_allclose(found[1].coef_ * unit, found[0].coef_, rtol=1e-4)
    assert_allclose(found[1].predict_proba(X * unit), found[0].predict_proba(X), rtol=1e-4)
