"""Averages over models: prices, when a model averages, odd data, and fits that do not end well."""

import numpy as np
import pandas as pd
import pytest
from forms import AVERAGED_ATTRIBUTES, SHORT_CHAINS, quick_average, stand_ins, target_for
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted

from sparsebayes import ARDRegressor, SparseLogisticRegression, SparsePoissonRegressor
from sparsebayes.engine import averaging
from sparsebayes.estimators import _averaging

FLOOR_TOLD = pytest.mark.filterwarnings("ignore:the noise variance reached its floor")
AGREEMENT_TOLD = pytest.mark.filterwarnings("ignore:the chains do not agree")


@pytest.fixture(scope="module")
def data():
    return stand_ins()


# --- prices ---


def test_prices_by_array_and_by_name_are_the_same(data):
    X, y = data
    usual, names = np.log(8), [f"gene {j}" for j in range(8)]
    prices = np.full(8, usual)
    prices[2], prices[3] = 1.0, 9.0
    by_array = quick_average(min_gain=prices).fit(X, y)
    by_list = quick_average(min_gain=prices.tolist()).fit(X, y)
    by_number = quick_average(min_gain={2: 1.0, 3: 9.0}).fit(X, y)
    by_name = quick_average(min_gain={"gene 2": 1.0, "gene 3": 9.0, "gene 5": "auto"}).fit(
        pd.DataFrame(X, columns=names), y
    )
    for other in (by_list, by_number, by_name):
        assert_allclose(other.inclusion_probability_, by_array.inclusion_probability_, rtol=1e-6)


def test_usual_prices_are_no_prices(data):
    X, y = data
    X = np.column_stack([X, np.ones(50)])  # constant columns count among the features that are charged
    plain, priced = quick_average().fit(X, y), quick_average(min_gain=np.full(9, np.log(9))).fit(X, y)
    assert_allclose(priced.inclusion_probability_, plain.inclusion_probability_, rtol=1e-6, atol=1e-200)


@pytest.mark.parametrize("cls", [SparseLogisticRegression, SparsePoissonRegressor])
@AGREEMENT_TOLD
def test_a_price_of_one_feature_is_none_of_the_others(cls, data):
    X, y = data[0], target_for(cls, data[1])
    plain = cls(**SHORT_CHAINS).fit(X, y)
    same = cls(min_gain={3: "auto"}, **SHORT_CHAINS).fit(X, y)
    assert_allclose(same.inclusion_probability_, plain.inclusion_probability_, rtol=1e-6)


def test_a_free_feature_is_always_in_and_a_dear_one_never(data):
    X, y = data
    model = quick_average(min_gain={7: 0, 0: 1e6, 1: np.inf}).fit(X, y)
    assert_allclose(model.inclusion_probability_[[7, 0, 1]], [1.0, 0.0, 0.0], atol=1e-12)
    assert model.coef_[7] != 0
    assert_array_equal(model.coef_[[0, 1]], 0.0)
    assert model.n_features_posterior_[0] == 0
    assert {7} <= set(model.active_)


def test_all_features_free(data):
    X, y = data
    model = quick_average(min_gain=np.zeros(8)).fit(X, y)
    assert_allclose(model.inclusion_probability_, 1.0)
    assert_allclose(model.n_features_posterior_, np.eye(9)[8])
    assert np.isfinite(model.predict(X)).all()


def test_odds_of_a_price_are_those_of_the_prior(monkeypatch, data):
    """A nat less multiplies the odds of a feature by e, where that feature alone is in doubt."""
    monkeypatch.setattr(averaging, "AGREEMENT", 0.0)  # so that chains use all flips
    X, y = data
    never = dict.fromkeys((2, 3, 4, 5, 6, 7), np.inf)
    params = {"n_chains": 2, "max_flips": 1000}
    noise = np.random.default_rng(0).standard_normal((50, 1))
    X = np.column_stack([X, noise])
    odds = []
    for price in (3.0, 2.0):
        p = ARDRegressor(min_gain={**never, 0: 0, 1: 0, 8: price}, **params).fit(X, y).inclusion_probability_[8]
        odds.append(p / (1 - p))
    assert_allclose(odds[1] / odds[0], np.e, rtol=0.1)


@pytest.mark.parametrize(
    ("min_gain", "message"),
    [
        ([1.0, 2.0], "min_gain has shape"),
        (np.ones((8, 2)), "min_gain has shape"),
        ([1.0] * 7 + [-1.0], "min_gain must be zero or positive"),
        ([1.0] * 7 + [np.nan], "min_gain must be zero or positive"),
        ([1.0] * 7 + ["dear"], "min_gain must be a number"),
        ({"gene 0": 1.0}, "min_gain has a price for 'gene 0'.*column numbers"),
        ({8: 1.0}, "min_gain has a price for 8"),
        ({0: "cheap"}, "min_gain must be a number"),
        ({0: None}, "min_gain"),
        ({0: -2.0}, "min_gain must be zero or positive"),
        ("dear", "'min_gain' parameter"),
    ],
    ids=str,
)
def test_wrong_prices_are_named(data, min_gain, message):
    with pytest.raises(ValueError, match=message):
        quick_average(min_gain=min_gain).fit(*data)


def test_wrong_names_of_a_frame_are_told(data):
    X, y = data
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(8)])
    with pytest.raises(ValueError, match=r"min_gain has a price for 0.*names of X's columns"):
        quick_average(min_gain={0: 1.0}).fit(frame, y)


def test_prices_of_an_intercept_with_a_precision_of_its_own(data):
    X, y = data
    model = ARDRegressor(min_gain=np.full(8, np.log(8)), intercept_prior="ard", average=False).fit(X, y)
    plain = ARDRegressor(intercept_prior="ard", average=False).fit(X, y)
    assert_array_equal(model.active_, plain.active_)
    assert_allclose(model.coef_, plain.coef_, rtol=1e-9)


# --- when it averages ---


@pytest.mark.parametrize(
    "params",
    [
        {"min_gain": 3.0},
        {"min_gain": 0},
        {"noise": "student"},
        {"a": 0.1, "b": 0.1},
        {"intercept_prior": "ard"},
        {"average": False},
    ],
    ids=str,
)
def test_auto_does_not_average_where_a_single_model_is_meant(data, params):
    assert not hasattr(quick_average(**params).fit(*data), "inclusion_probability_")


@pytest.mark.parametrize("params", [{"c": 1.0, "d": 0.5}, {"fit_intercept": False, "intercept_prior": "ard"}], ids=str)
def test_auto_averages_otherwise(data, params):
    assert hasattr(quick_average(**params).fit(*data), "inclusion_probability_")


@pytest.mark.parametrize(
    ("params", "needs"),
    [
        ({"intercept_prior": "ard"}, "intercept_prior"),
        ({"a": 1.0}, "a=b=0"),
    ],
    ids=str,
)
def test_what_cannot_be_averaged_is_told(data, params, needs):
    with pytest.raises(ValueError, match=f"average=True needs.*{needs}"):
        quick_average(average=True, **params).fit(*data)


def test_one_price_is_a_known_rate(data):
    X, y = data
    cheap, dear = (quick_average(average=True, min_gain=price).fit(X, y) for price in (1.0, 6.0))
    assert (cheap.inclusion_probability_ > dear.inclusion_probability_)[[2, 3, 6, 7]].all()


def test_a_refit_forgets_the_averages(data):
    X, y = data
    model = quick_average().fit(X, y)
    model.set_params(average=False).fit(X, y)
    plain = quick_average(average=False).fit(X, y)
    assert vars(model).keys() == vars(plain).keys()
    assert_array_equal(model.get_support(), plain.get_support())
    model.set_params(average="auto").fit(X, y).fit(X, y)
    assert vars(model.model_).keys() == vars(plain).keys()


def test_warm_starts_begin_at_the_single_model(data):
    X, y = data
    model = quick_average(warm_start=True).fit(X, y)
    first = model.n_iter_
    again = model.fit(X, y)
    assert again.n_iter_ < first
    assert_allclose(again.inclusion_probability_, quick_average().fit(X, y).inclusion_probability_, atol=0.05)


# --- odd data ---


def test_copies_share_their_probability(data):
    X, y = data
    copies = np.column_stack([X, X[:, 0], -2 * X[:, 0]])
    model = ARDRegressor(n_chains=4, max_flips=3000).fit(copies, y)
    shared = model.inclusion_probability_[[0, 8, 9]]
    assert_allclose(shared, shared.mean(), atol=0.15)
    assert shared.max() < 0.9
    (together,) = [each for each in model.credible_sets_ if 0 in each.features]
    assert set(together.features) == {0, 8, 9}
    assert together.probability > 0.95
    assert_allclose(together.purity, 1.0)
    total = model.coef_[0] + model.coef_[8] - 2 * model.coef_[9]
    assert_allclose(total, ARDRegressor().fit(X, y).coef_[0], atol=0.05)


@FLOOR_TOLD
@AGREEMENT_TOLD
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("shape", [(2, 3), (2, 1), (3, 1), (4, 30), (30, 1)], ids=str)
def test_extreme_shapes(shape, fit_intercept):
    rng = np.random.default_rng(4)
    X = rng.standard_normal(shape)
    y = X[:, 0] + 0.1 * rng.standard_normal(len(X))
    model = quick_average(fit_intercept=fit_intercept).fit(X, y)
    assert ((model.inclusion_probability_ >= 0) & (model.inclusion_probability_ <= 1)).all()
    assert np.isfinite(model.predict(X, return_std=True)).all()
    assert np.isfinite(model.coef_interval()).all()


def test_constant_target(data):
    X, _ = data
    model = quick_average().fit(X, np.full(50, 7.0))
    assert_array_equal(model.inclusion_probability_, 0.0)
    assert_array_equal(model.n_features_posterior_, [1.0])
    assert_array_equal(model.predict(X), 7.0)
    assert model.credible_sets_ == []
    assert_array_equal(model.model_.predict(X), 7.0)


def test_constant_columns_are_never_in(data):
    X, y = data
    spoilt = np.column_stack([X, np.full(50, 3.0), np.zeros(50)])
    model = quick_average().fit(spoilt, y)
    assert_allclose(model.inclusion_probability_[8:], 0.0, atol=1e-200)
    assert_array_equal(model.coef_std_[8:], 0.0)
    assert_allclose(model.inclusion_probability_[:8], quick_average().fit(X, y).inclusion_probability_, rtol=1e-6)


def test_noise_free_target(data):
    X, _ = data
    with pytest.warns(RuntimeWarning, match="floor"):
        model = quick_average().fit(X, 2 * X[:, 0] - X[:, 1])
    assert_array_equal(model.active_, [0, 1])
    assert_allclose(model.coef_, [2, -1, 0, 0, 0, 0, 0, 0], atol=1e-3)


def test_float32_is_the_same_numbers_in_double(data):
    X, y = (array.astype(np.float32) for array in data)
    single, double = quick_average().fit(X, y), quick_average().fit(X.astype(np.float64), y.astype(np.float64))
    for name in AVERAGED_ATTRIBUTES:
        assert_array_equal(getattr(single, name), getattr(double, name), err_msg=name)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_do_not_change_the_sets(data, scale):
    X, y = data
    base = quick_average().fit(X, y)
    moved = quick_average().fit(X * np.logspace(-3, 3, 8), y * scale)
    assert_array_equal(moved._fits[0].draws != 0, base._fits[0].draws != 0)
    assert_allclose(moved.inclusion_probability_, base.inclusion_probability_, rtol=1e-7)
    assert_allclose(moved.coef_ * np.logspace(-3, 3, 8) / scale, base.coef_, rtol=1e-6, atol=1e-12)


# --- fits that do not end well, and who is told ---


def hard():
    """Many features that stand in for each other."""
    rng = np.random.default_rng(5)
    common = rng.standard_normal((40, 3))
    X = common[:, np.arange(60) % 3] + 0.2 * rng.standard_normal((40, 60))
    return X, common.sum(axis=1) + 0.3 * rng.standard_normal(40)


def test_chains_that_do_not_agree_are_told():
    with pytest.warns(ConvergenceWarning, match=r"max_flips \(now 20\) or n_chains"):
        model = ARDRegressor(max_flips=20).fit(*hard())
    assert not model.converged_
    assert model.chain_error_ > 0.1
    assert model.n_flips_ == 20
    assert model.model_.converged_


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_a_warning_turned_into_an_error_leaves_no_fit():
    model = ARDRegressor(max_flips=20)
    with pytest.raises(ConvergenceWarning):
        model.fit(*hard())
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


@pytest.mark.parametrize("before", [True, False])
def test_an_interrupt_among_the_chains_leaves_no_fit(data, monkeypatch, before):
    def interrupt(n_steps, info):
        raise KeyboardInterrupt

    model = quick_average()
    if before:
        model.fit(*data)
    monkeypatch.setattr(_averaging, "progress", lambda verbose: interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data)
    assert vars(model) == quick_average().get_params()
    monkeypatch.undo()
    assert_array_equal(model.fit(*data).coef_, quick_average().fit(*data).coef_)


def test_progress_names_the_standard_error(data, capsys):
    ARDRegressor(verbose=2, **SHORT_CHAINS).fit(*data)
    out, told = capsys.readouterr()
    assert out == ""
    lines = told.splitlines()
    looks = [line for line in lines if line.endswith("average")]
    assert looks
    assert lines[-len(looks) :] == looks
    assert all("standard error" in line for line in looks)
    assert all("log evidence" in line for line in lines[: -len(looks)])
    assert "nan" not in told


# --- columns that are combinations of others ---


def of_rank_six(n, d, rng):
    """Six free columns, or none, and combinations of them: of any eight, some depend on the others."""
    return rng.standard_normal((n, 6)) @ rng.standard_normal((6, d))


@pytest.mark.filterwarnings("ignore:the chains do not agree|the noise variance reached its floor")
@pytest.mark.parametrize("noise", [1e-3, 0.0])
@pytest.mark.parametrize("shape", [(80, 26), (30, 100)], ids=["tall", "wide"])
@pytest.mark.parametrize("form", ["features", "groups", "joint"])
def test_dependent_columns_and_little_noise(form, shape, noise):
    """The inverse of their Gram matrix is as large as c there, and rounding must not grow from flip to flip."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = of_rank_six(*shape, rng)
        y = X[:, 0] - X[:, 1] + noise * rng.standard_normal(shape[0])
        y = np.column_stack([y, -y]) if form == "joint" else y
        options = {"groups": np.arange(shape[1]) // 2} if form == "groups" else {}
        options |= {"multi_output": "joint"} if form == "joint" else {}
        model = quick_average(**options).fit(X, y)
        assert model.score(X, y) > 1 - 1e-4 - 10 * noise**2
        assert_in_range(model)


def assert_in_range(model):
    p = model.inclusion_probability_
    assert ((p >= 0) & (p <= 1)).all()
