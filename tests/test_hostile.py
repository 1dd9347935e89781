"""Data and arguments that go wrong: the answer is sane, or the complaint names what is at fault."""

import numpy as np
import pytest
from forms import SHORT_CHAINS, averages
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from sparsebayes.estimators import _output_fits

FLOOR_TOLD = pytest.mark.filterwarnings("ignore:the noise variance reached its floor")
"""On data that can be reproduced exactly the estimator rightly says so."""


@pytest.fixture
def data(request, make_data):
    """A target; for a classifier its upper half against the lower; for a model of counts its exponential."""
    X, y = make_data()
    models = [value for key, value in request.node.callspec.params.items() if key in ("default", "estimator")]
    if any(model.__sklearn_tags__().target_tags.positive_only for model in models):
        return X, np.rint(np.exp(0.5 * y + 2))
    return X, (y > np.median(y)).astype(float) if any(map(is_classifier, models)) else y


def assert_sane(model, X, y):
    """Everything finite, and no worse on the data than a constant (zero, without an intercept)."""
    if averages(model):
        assert_average_is_sane(model, X, y)
        model = model.model_
    for name in ("coef_", "intercept_", "precision_", "covariance_", "noise_variance_", "log_evidence_"):
        assert np.isfinite(getattr(model, name)).all(), name
    assert model.noise_variance_ > 0
    assert (model.precision_ > 0).all()
    assert ((model.relevance_ >= 0) & (model.relevance_ <= 1)).all()
    assert_array_equal(np.flatnonzero(model.relevance_), model.active_)
    assert_array_equal(np.flatnonzero(model.coef_), model.active_)
    mean, std = model.predict(X, return_std=True)
    assert (std**2 >= model.noise_variance_ * (1 - 1e-12)).all()  # equal but for rounding where nothing is kept
    constant = np.mean(y) if model.fit_intercept and model.intercept_prior == "flat" else 0.0
    assert np.linalg.norm(y - mean) <= np.linalg.norm(y - constant) * (1 + 1e-12)
    assert model.converged_
    assert model.optimality_gap_ <= model.tol


def assert_average_is_sane(model, X, y):
    """The same of an average over models."""
    for name in ("coef_", "intercept_", "noise_variance_", "coef_std_", "chain_error_", "effective_sample_size_"):
        assert np.isfinite(getattr(model, name)).all(), name
    assert model.noise_variance_ > 0
    assert ((model.inclusion_probability_ >= 0) & (model.inclusion_probability_ <= 1)).all()
    assert_allclose(model.n_features_posterior_.sum(), 1.0)
    # Both are averages over the same states, but the probabilities also over the flip of each feature. The size varies
    # by √D/2 or less from state to state, and 600 states of short chains are worth some ten.
    expected = model.n_features_posterior_ @ np.arange(len(model.n_features_posterior_))
    assert_allclose(model.inclusion_probability_.sum(), expected, atol=0.5 * X.shape[1] ** 0.5)
    assert_array_equal(model.active_, np.flatnonzero(model.inclusion_probability_ >= 0.9))
    for each in model.credible_sets_:
        assert 0.9 <= each.probability <= 1 + 1e-12
        assert 0.5 <= each.purity <= 1
    mean, std = model.predict(X, return_std=True)
    assert (std**2 >= model.noise_variance_ * (1 - 1e-12)).all()
    constant = np.mean(y) if model.fit_intercept else 0.0
    assert np.linalg.norm(y - mean) <= np.linalg.norm(y - constant) * (1 + 1e-12)


# --- data ---


@pytest.mark.parametrize("value", [0.0, 1 / 3, -1e12])
def test_constant_target_is_predicted_and_nothing_kept(flat, data, value):
    X, y = data
    model = clone(flat).fit(X, np.full(len(y), value))
    mean, std = model.predict(X, return_std=True)
    assert_allclose(mean, value, rtol=1e-14)
    assert len(model.active_) == 0
    assert_allclose(std, 0.0, atol=1e-14 * abs(value))


def test_zero_target_without_intercept(regressor, data):
    X, _ = data
    assert_array_equal(clone(regressor).set_params(fit_intercept=False).fit(X, np.zeros(len(X))).predict(X), 0.0)


def test_noise_free_target_is_reproduced_and_told(regressor, data):
    X, _ = data
    y = 2 * X[:, 0] - X[:, 1]
    with pytest.warns(RuntimeWarning, match="min_gain"):
        model = clone(regressor).fit(X, y)
    assert_sane(model, X, y)
    assert_array_equal(model.active_, [0, 1])
    assert_allclose(model.coef_[:2], [2, -1], rtol=1e-6)  # the floor keeps the noise at 1e-4 of the target's spread


def test_constant_and_zero_columns_are_never_kept(flat, data):
    X, y = data
    X[:, 3], X[:, 4], X[:, 5] = 7.1, 0.0, 1e-9
    model = clone(flat).fit(X, y)
    assert_sane(model, X, y)
    assert not np.isin([3, 4, 5], model.active_).any()
    without = clone(flat).set_params(min_gain=np.log(12) if flat.min_gain == "auto" else 0.0)
    without.fit(np.delete(X, [3, 4, 5], axis=1), y)
    assert_allclose(model.log_evidence_, without.log_evidence_, rtol=1e-9)


def test_only_constant_columns(flat, data):
    _, y = data
    model = clone(flat).fit(np.ones((len(y), 3)), y)
    assert_allclose(model.predict(np.ones((1, 3))), y.mean())
    # The posterior mean has two degrees of freedom less than the maximum; tol nats off the top is √(2·tol/n) relative.
    assert_allclose(model.noise_variance_, y.var(ddof=3 if averages(flat) else 1), rtol=1e-3)


def test_copies_of_a_column_share_its_answer(regressor, data):
    X, y = data
    copies = np.column_stack([X, X[:, 0], -2 * X[:, 0]])
    model = clone(regressor).fit(copies, y)
    assert_sane(model, copies, y)
    priced_alike = np.log(copies.shape[1]) if regressor.min_gain == "auto" else 0.0
    single = clone(regressor) if averages(regressor) else clone(regressor).set_params(min_gain=priced_alike)
    # Which copy carries the weight is open, the prediction is not; both fits are within tol of the top. Averages over
    # models are so within their Monte Carlo error, with more ways to include the feature.
    tolerance = 0.02 if averages(regressor) else 2e-3
    assert_allclose(model.predict(copies), single.fit(X, y).predict(X), atol=tolerance * y.std())


def test_duplicated_rows(regressor, data):
    X, y = (np.repeat(array, 5, axis=0) for array in data)
    assert_sane(clone(regressor).fit(X, y), X, y)


def test_a_few_rows_twice_do_not_pass_for_data_without_noise(priced, make_data):
    X, y = make_data(40, 60)
    X, y = np.concatenate([X, X[:3]]), np.concatenate([y, y[:3]])
    assert len(clone(priced).fit(X, y).active_) <= 6


@FLOOR_TOLD
@pytest.mark.parametrize("shape", [(2, 12), (3, 1), (5, 1), (20, 400), (60, 1)], ids=str)
def test_extreme_shapes(regressor, make_data, shape):
    X, y = make_data(*shape, n_true=1)
    assert_sane(clone(regressor).fit(X, y), X, y)


def test_more_features_than_rows_by_far_finds_the_truth(priced, make_data):
    X, y = make_data(20, 400, noise=0.1)
    assert set(range(3)) <= set(clone(priced).fit(X, y).active_)


def test_too_few_rows_for_the_textbook_is_told(textbook, make_data):
    X, y = make_data(20, 400)
    with pytest.warns(RuntimeWarning, match="min_gain"):
        clone(textbook).fit(X, y)


@pytest.mark.parametrize("size", [1e12, -1e12])
def test_outlier_in_the_target(regressor, data, size):
    X, y = data
    y[7] = size
    assert_sane(clone(regressor).fit(X, y), X, y)


@pytest.mark.parametrize("size", [1e12, -1e12])
def test_outlier_in_a_column_costs_only_that_column(regressor, data, size):
    X, y = data
    X[7, 2] = size
    model = clone(regressor).fit(X, y)
    assert_sane(model, X, y)
    assert {0, 1} <= set(model.active_)


@pytest.mark.parametrize("size", [1e-150, 1e150])
def test_numbers_near_the_ends_of_the_range(regressor, data, size):
    X, y = data
    expected = clone(regressor).fit(X, y)
    assert_array_equal(clone(regressor).fit(X, y * size).active_, expected.active_)
    assert_array_equal(clone(regressor).fit(X * size, y).active_, expected.active_)


@pytest.mark.filterwarnings("ignore:the chains do not agree")
def test_pure_noise_rarely_keeps_anything_and_then_predicts_the_mean(default_regressor):
    kept, averaged = [], averages(default_regressor)
    for seed in range(40 if averaged else 100):  # averages take longer
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((100, 50)), rng.standard_normal(100)
        model = clone(default_regressor).set_params(**SHORT_CHAINS if averaged else {}).fit(X, y)
        kept.append(len(model.active_))
        if not kept[-1]:
            # An average over models shrinks what each of 50 features seems to explain, but not to nothing.
            assert_allclose(model.predict(X).std(), 0.0, atol=0.5 if averaged else 1e-12)
            assert_allclose(model.predict(X).mean(), y.mean(), atol=1e-12)
    assert np.count_nonzero(kept) <= 0.1 * len(kept)


@pytest.mark.parametrize("place", ["X", "y"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_missing_and_infinite_values_are_refused(default, data, place, value):
    X, y = data
    {"X": X[3], "y": y}[place][5] = value
    with pytest.raises(ValueError, match=f"{'Input' if place == 'y' else 'Input X'}.*(NaN|infinity)"):
        clone(default).fit(X, y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[:-1], y), "inconsistent numbers of samples"),
        (lambda X, y: (X[:, 0], y), "Expected 2D array, got 1D"),
        (lambda X, y: (X[:, :, None], y), "dim 3"),
        (lambda X, y: (X, y[:, None, None]), "dim 3"),
        (lambda X, y: (X[:1], y[:1]), "minimum of 2"),
        (lambda X, y: (X[:0], y[:0]), "minimum of 2"),
        (lambda X, y: (X[:, :0], y), "0 feature"),
        (lambda X, y: (X.astype(str).astype(object) + "x", y), "could not convert string"),
        (lambda X, y: (X + 1j, y), "Complex data not supported"),
        (lambda X, y: (X, None), "requires y"),
    ],
)
def test_wrong_shapes_and_kinds_are_refused(default, data, change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        clone(default).fit(*change(*data))


def test_words_are_no_target_of_a_regression(any_regressor, data):
    X, y = data
    with pytest.raises(ValueError, match="could not convert string"):
        clone(any_regressor).fit(X, ["high", "low"] * (len(y) // 2))


def test_sparse_matrices_are_refused_by_name(default, data):
    X, y = data
    if get_tags(default).input_tags.sparse:
        pytest.skip("it takes them: tests/estimators/test_sparse_inputs.py")
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        clone(default).fit(sparse.csr_array(X), y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (lambda n: np.full(n, -1.0), "Negative values"),
        (lambda n: np.zeros(n), "[Ss]ample.weight"),
        (lambda n: np.full(n, np.nan), "sample_weight.*NaN"),
        (lambda n: np.ones(n - 1), "sample_weight"),
        (lambda n: np.ones((n, 1)), "[Ss]ample.weight"),
    ],
    ids=["negative", "all zero", "NaN", "too short", "2-D"],
)
def test_bad_sample_weight_is_refused(default, data, weight, message):
    X, y = data
    with pytest.raises(ValueError, match=message):
        clone(default).fit(X, y, sample_weight=weight(len(y)))


def test_less_weight_than_one_row_is_refused(any_regressor, data):
    X, y = data
    with pytest.raises(ValueError, match="sample_weight"):
        clone(any_regressor).fit(X, y, sample_weight=np.full(len(y), 1e-9))


# --- arguments ---


@pytest.mark.parametrize("value", ["no such thing", -1, float("nan"), None, [1.0]], ids=repr)
def test_bad_parameters_are_named(default, data, value):
    # these do mean something
    meant = {
        -1: {"n_jobs", "coef0"},
        None: {"n_jobs", "class_weight", "candidates", "random_state", "groups"},
        "a list": {"init"},
    }
    for name in default.get_params().keys() - meant.get(value if np.ndim(value) == 0 else "a list", set()):
        with pytest.raises((ValueError, TypeError), match=f"'{name}' parameter|^{name} "):
            clone(default).set_params(**{name: value}).fit(*data)


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.1, 90, float("nan")])
def test_coverage_out_of_range_is_named(regressor, data, coverage):
    model = clone(regressor).fit(*data)
    with pytest.raises(ValueError, match="coverage"):
        model.predict_interval(data[0], coverage=coverage)


def test_std_and_cov_together_are_refused(regressor, data):
    model = clone(regressor).fit(*data)
    with pytest.raises(ValueError, match=r"return_std.*return_cov"):
        model.predict(data[0], return_std=True, return_cov=True)


METHODS = {
    "predict": lambda model, X: model.predict(X),
    "predict_interval": lambda model, X: model.predict_interval(X),
    "sample_y": lambda model, X: model.sample_y(X),
    "sample_posterior": lambda model, X: model.sample_posterior(),
    "get_support": lambda model, X: model.get_support(),
    "score": lambda model, X: model.score(X, X[:, 0]),
}


@pytest.mark.parametrize("method", METHODS)
def test_nothing_can_be_asked_before_fit(regressor, data, method):
    with pytest.raises(NotFittedError):
        METHODS[method](clone(regressor), data[0])


@pytest.mark.parametrize("method", ["predict", "predict_interval", "sample_y"])
def test_new_rows_of_another_width_are_refused(regressor, data, method):
    model = clone(regressor).fit(*data)
    with pytest.raises(ValueError, match="expecting 12 features"):
        METHODS[method](model, data[0][:, 1:])


# --- fits that do not end well ---


@pytest.mark.parametrize("before", [True, False], ids=["fitted before", "never fitted"])
@pytest.mark.parametrize("after_steps", [1, 2])
def test_interrupted_fit_leaves_no_fit(regressor, data, monkeypatch, before, after_steps):
    model = clone(regressor)
    if before:
        model.fit(*data)
    parameters = model.get_params()

    def interrupt(n_steps, info):
        if n_steps == after_steps:
            raise KeyboardInterrupt

    monkeypatch.setattr(_output_fits, "progress", lambda verbose: interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    assert vars(model) == parameters
    monkeypatch.undo()
    assert_array_equal(model.fit(*data).coef_, clone(regressor).fit(*data).coef_)


def test_interrupt_while_storing_leaves_no_fit(regressor, data, monkeypatch):
    def interrupt(self, fits):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(regressor), "_warn", interrupt)
    model = clone(regressor)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data)
    assert vars(model) == regressor.get_params()


def test_refused_refit_leaves_no_fit(estimator, data):
    X, y = data
    model = clone(estimator).fit(X, y)
    with pytest.raises(ValueError, match="inconsistent"):
        model.fit(X, y[:-1])
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_warning_turned_into_an_error_leaves_no_fit(regressor, data):
    model = clone(regressor).set_params(max_iter=1)
    with pytest.raises(ConvergenceWarning):
        model.fit(*data)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_running_out_of_steps_is_told(regressor, make_data):
    X, y = make_data(50, 30, n_true=8)
    model = clone(regressor).set_params(max_iter=2)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model.fit(X, y)
    assert not model.converged_
    assert model.optimality_gap_ > model.tol
    assert np.isfinite(model.predict(X)).all()
