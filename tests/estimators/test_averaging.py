"""ARDRegressor as an average over models: what it finds, what it depends on, prices, odd data and its attributes."""

import warnings

import numpy as np
import pandas as pd
import pytest
from enumeration import enumerated
from forms import SHORT_CHAINS
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from sparsebayes import ARDRegressor, SparseLogisticRegression, SparsePoissonRegressor
from sparsebayes.core.inclusion import InclusionPrior
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.sets import Sets
from sparsebayes.estimators import _averaging

FLOOR_TOLD = pytest.mark.filterwarnings("ignore:the noise variance reached its floor")
AGREEMENT_TOLD = pytest.mark.filterwarnings("ignore:the chains do not agree")
ATTRIBUTES = (
    "inclusion_probability_",
    "coef_",
    "coef_std_",
    "intercept_",
    "noise_variance_",
    "n_features_posterior_",
    "chain_error_",
    "effective_sample_size_",
    "n_flips_",
)


def quick(**parameters):
    return ARDRegressor(**{**SHORT_CHAINS, **parameters})


@pytest.fixture(scope="module")
def data():
    """Two clear features, one doubtful and one of two that stand in for each other, of eight."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 8))
    X[:, 5] = X[:, 4] + 0.1 * rng.standard_normal(50)
    return X, 2 * X[:, 0] - X[:, 1] + 0.25 * X[:, 2] + 0.7 * X[:, 4] + rng.standard_normal(50) + 3


@pytest.fixture(scope="module")
def model(data):
    return ARDRegressor().fit(*data)


def exact_posterior(X, y):
    """All sets of columns, in standard units; and the units."""
    rows = DenseRows.of(X).standardised(np.ones(len(y)), centre=True)
    unit = y.std()
    problem = LeastSquares(design=rows, t=(y - y.mean()) / unit, n_weighted=float(len(y)), flat_intercept=True)
    m = X.shape[1]
    return enumerated(Sets(problem, np.zeros(m), InclusionPrior.of(m))), unit, unit / rows.unit


# --- the posterior ---


def test_the_estimator_agrees_with_the_enumeration(data):
    """In the data's units. Chains of 8 × 6,000 flips; the tolerance is five of their standard errors."""
    X, y = data
    model = ARDRegressor(n_chains=8, max_flips=6000, random_state=1).fit(X, y)
    exact, unit, scale = exact_posterior(X, y)
    atol = 5 * max(model.chain_error_, 0.004)
    assert_allclose(model.inclusion_probability_, exact.probability, atol=atol)
    assert_allclose(model.coef_ / scale, exact.mean, atol=atol)
    assert_allclose(model.coef_std_ / scale, np.sqrt(exact.second - exact.mean**2), atol=atol)
    assert_allclose(model.n_features_posterior_, exact.sizes[: len(model.n_features_posterior_)], atol=atol)
    assert_allclose(model.noise_variance_, unit**2 * exact.rest / (len(y) - 3), rtol=0.02)


def test_attributes_fit_together(model, data):
    X, _ = data
    assert_array_equal(model.active_, np.flatnonzero(model.inclusion_probability_ >= 0.9))
    assert_array_equal(model.active_, [0, 1])
    assert_allclose(model.n_features_posterior_.sum(), 1.0)
    assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_, rtol=1e-12)
    assert (model.coef_std_ > 0).all()
    assert model.converged_
    assert 0 < model.chain_error_ < 0.1
    assert 10 < model.effective_sample_size_ <= 4 * model.n_flips_
    assert model.n_flips_ <= model.max_flips


def test_the_mean_of_the_intercept_is_exact(model, data):
    """At the columns' means it is the target's mean, and not that of some draws."""
    X, y = data
    assert_allclose(model.predict(X.mean(axis=0)[None]), y.mean(), rtol=1e-12)


def test_stand_ins_are_a_credible_set(model):
    by_features = {tuple(sorted(each.features.tolist())): each for each in model.credible_sets_}
    assert set(by_features) == {(0,), (1,), (4, 5)}
    assert by_features[4, 5].probability > 0.95 > model.inclusion_probability_[[4, 5]].max()
    assert by_features[4, 5].purity > 0.95


def test_get_support_at_any_probability(model):
    for probability in (0.0, 0.3, 0.9, 0.999):
        expected = model.inclusion_probability_ >= probability
        assert_array_equal(model.get_support(probability=probability), expected)
        assert_array_equal(model.get_support(indices=True, probability=probability), np.flatnonzero(expected))
    assert_array_equal(model.get_support(), model.get_support(probability=0.9))


def test_the_single_model_is_that_without_averaging(model, data):
    X, y = data
    single, plain = model.model_, ARDRegressor(average=False).fit(X, y)
    assert single.get_params() == {**model.get_params(), "average": False}
    assert vars(single).keys() == vars(plain).keys()
    for name in ("coef_", "intercept_", "active_", "precision_", "covariance_", "log_evidence_", "evidence_path_"):
        assert_array_equal(getattr(single, name), getattr(plain, name))
    for ask in (lambda m: m.predict(X), lambda m: m.predict_interval(X), lambda m: m.sample_posterior(2, 0)[0]):
        assert_array_equal(ask(single), ask(plain))
    for name in ("relevance_", "gain_", "min_gain_", "log_evidence_", "optimality_gap_", "evidence_path_"):
        assert_array_equal(getattr(model, name), getattr(plain, name))
    assert plain.model_ is plain
    assert not hasattr(plain, "credible_sets_")
    assert not hasattr(plain, "inclusion_probability_")


def test_draws_have_the_posterior_moments(model, data):
    X, _ = data
    coef, intercept = model.sample_posterior(20_000, random_state=0)
    error = model.coef_std_ / np.sqrt(model.effective_sample_size_)
    assert (np.abs(coef.mean(axis=0) - model.coef_) < 5 * error).all()
    likely = model.inclusion_probability_ > 0.5
    assert_allclose(coef.std(axis=0)[likely], model.coef_std_[likely], rtol=5 / np.sqrt(model.effective_sample_size_))
    assert_allclose((coef != 0).mean(axis=0), model.inclusion_probability_, atol=0.1)
    latent = coef @ X[:5].T + intercept[:, None]
    mean, std = model.predict(X[:5], return_std=True)
    spread = np.sqrt(std**2 - model.noise_variance_)
    assert_allclose(latent.mean(axis=0), mean, atol=5 * spread.max() / np.sqrt(model.effective_sample_size_))
    assert_allclose(latent.std(axis=0), spread, rtol=0.05)  # of the draws that were kept both are made


def test_intervals_of_weights_are_quantiles_of_the_draws(model):
    coef, _ = model.sample_posterior(50_000, random_state=1)
    ends = model.coef_interval(0.5)
    assert ends.shape == (8, 2)
    assert_allclose(ends, np.quantile(coef, [0.25, 0.75], axis=0).T, atol=0.05 * model.coef_std_.max())
    out = model.inclusion_probability_ < 0.2
    assert out.any()
    assert_array_equal(ends[out], 0.0)
    assert (ends[0] > 0).all()


@AGREEMENT_TOLD
@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_intervals_and_deviations_cover_fresh_observations(coverage):
    """40 data sets of 30 rows, and 50 new rows each: they hold as often as they say, within 4 standard errors."""
    inside, scaled = [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((80, 10))
        y = X[:, 0] + 0.4 * X[:, 1] + 0.2 * X[:, 2] + rng.standard_normal(80)
        model = quick(random_state=seed).fit(X[:30], y[:30])
        low, high = model.predict_interval(X[30:], coverage).T
        inside.append(((low < y[30:]) & (y[30:] < high)).mean())
        mean, std = model.predict(X[30:], return_std=True)
        scaled.append((((y[30:] - mean) / std) ** 2).mean())
    for values, expected in ((inside, coverage), (scaled, 1.0)):
        assert abs(np.mean(values) - expected) < 4 * np.std(values) / np.sqrt(40)


@AGREEMENT_TOLD
def test_claims_are_true():
    """Of features claimed at 0.9 in 40 data sets at least nine of ten are in the truth, but for chance (0.1 %)."""
    claims = []
    for seed in range(40):
        rng = np.random.default_rng([1, seed])
        X = rng.standard_normal((60, 20))
        weight = np.where(np.arange(20) < 4, [1.0, -0.6, 0.4, 0.3] + [0.0] * 16, 0.0)
        X[:, 10:14] = 0.8 * X[:, :4] + 0.6 * X[:, 10:14]
        y = X @ weight + rng.standard_normal(60)
        claims += list(ARDRegressor(n_chains=2, max_flips=1000).fit(X, y).active_ < 4)
    assert len(claims) > 40
    assert sum(claims) >= binom.ppf(0.001, len(claims), 0.9)


# --- what the answer depends on ---


def assert_same_bits(model, other, X):
    for name in ATTRIBUTES:
        assert_array_equal(getattr(model, name), getattr(other, name), err_msg=name)
    assert_array_equal(model.predict_interval(X), other.predict_interval(X))
    assert_array_equal(model._fits[0].draws, other._fits[0].draws)


def test_same_seed_same_bits(data):
    X, y = data
    base = quick().fit(X, y)
    assert_same_bits(quick().fit(X, y), base, X)
    assert_same_bits(quick(n_jobs=2).fit(X, y), base, X)
    with threadpool_limits(4):
        assert_same_bits(quick().fit(X, y), base, X)
    assert_same_bits(quick(random_state=np.random.RandomState(0)).fit(X, y), base, X)
    assert (quick(random_state=1).fit(X, y).coef_ != base.coef_).all()


def test_same_seed_same_bits_with_more_features_than_rows():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((15, 40))
    y = X[:, :10].sum(axis=1) + rng.standard_normal(15)  # dense enough for the form by rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        base, many = quick().fit(X, y), quick(n_jobs=2).fit(X, y)
        with threadpool_limits(4):
            threaded = quick().fit(X, y)
    assert_same_bits(many, base, X)
    assert_same_bits(threaded, base, X)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_other_seeds_agree_within_the_error_that_they_tell(model, data, seed):
    """Two errors of three degrees of freedom each: six of them together are 1 in 1,000."""
    other = clone(model).set_params(random_state=seed).fit(*data)
    tolerance = 6 * np.hypot(model.chain_error_, other.chain_error_)
    assert_allclose(other.inclusion_probability_, model.inclusion_probability_, atol=tolerance)
    assert tolerance < 0.3


def test_weights_are_repeated_rows(data):
    """On tall data to rounding: nothing is drawn row by row."""
    X, y = data
    weight = np.arange(50) % 3
    weighted = quick().fit(X, y, sample_weight=weight)
    repeated = quick().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    for name in ATTRIBUTES:
        assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-7, err_msg=name)
    for one, other in zip(weighted.credible_sets_, repeated.credible_sets_, strict=True):
        assert_array_equal(one.features, other.features)
        assert_allclose(one.purity, other.purity, rtol=1e-9)


@AGREEMENT_TOLD
def test_weights_are_repeated_rows_on_wide_data_within_the_monte_carlo_error():
    """0.1: four standard errors of 4 × 3,000 flips, which the chains put at 0.02."""
    rng = np.random.default_rng(3)
    X, weight = rng.standard_normal((10, 12)), np.array([0, 1, 2, 3, 1, 1, 2, 1, 1, 1])
    y = X[:, :6].sum(axis=1) + rng.standard_normal(10)
    params = {"n_chains": 4, "max_flips": 3000}
    weighted = ARDRegressor(**params).fit(X, y, sample_weight=weight)
    repeated = ARDRegressor(**params).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(weighted.inclusion_probability_, repeated.inclusion_probability_, atol=0.1)
    counted = X[weight > 0]
    assert_allclose(weighted.predict(counted), repeated.predict(counted), atol=0.1 * y.std())


def targets(cls, y):
    return {
        ARDRegressor: y,
        SparseLogisticRegression: y > np.median(y),
        SparsePoissonRegressor: np.rint(np.exp(y / 3)),
    }[cls]


@AGREEMENT_TOLD
@pytest.mark.parametrize("cls", [SparseLogisticRegression, SparsePoissonRegressor])
def test_weights_of_classes_and_counts_are_repeated_rows_within_the_monte_carlo_error(cls, data):
    X, y = data[0], targets(cls, data[1])
    weight = 1 + np.arange(50) % 2
    weighted = cls(n_chains=2, max_flips=3000).fit(X, y, sample_weight=weight)
    repeated = cls(n_chains=2, max_flips=3000).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(weighted.inclusion_probability_, repeated.inclusion_probability_, atol=0.12)


def test_several_outputs_are_fitted_as_if_alone(data):
    X, y = data
    Y = np.column_stack([y, X[:, 3] - y, np.full(50, 4.0)])
    together = quick().fit(X, Y)
    assert together.inclusion_probability_.shape == together.coef_std_.shape == together.coef_.shape == (3, 8)
    assert len(together.credible_sets_) == len(together.n_features_posterior_) == len(together.active_) == 3
    errors = []
    for k, column in enumerate(Y.T):
        alone = quick().fit(X, column)
        for name in ("inclusion_probability_", "coef_", "coef_std_", "intercept_", "noise_variance_", "active_"):
            assert_array_equal(getattr(together, name)[k], getattr(alone, name), err_msg=name)
        assert_array_equal(together.n_features_posterior_[k], alone.n_features_posterior_)
        assert_array_equal(together.predict_interval(X)[:, k], alone.predict_interval(X))
        assert [each.features.tolist() for each in together.credible_sets_[k]] == [
            each.features.tolist() for each in alone.credible_sets_
        ]
        errors.append(alone.chain_error_)
    assert together.chain_error_ == max(errors)
    any_of_them = (together.inclusion_probability_ >= 0.9).any(axis=0)
    assert_array_equal(together.get_support(), any_of_them)
    assert together.model_.coef_.shape == (3, 8)


# --- prices ---


def test_prices_by_array_and_by_name_are_the_same(data):
    X, y = data
    usual, names = np.log(8), [f"gene {j}" for j in range(8)]
    prices = np.full(8, usual)
    prices[2], prices[3] = 1.0, 9.0
    by_array = quick(min_gain=prices).fit(X, y)
    by_list = quick(min_gain=prices.tolist()).fit(X, y)
    by_number = quick(min_gain={2: 1.0, 3: 9.0}).fit(X, y)
    by_name = quick(min_gain={"gene 2": 1.0, "gene 3": 9.0, "gene 5": "auto"}).fit(pd.DataFrame(X, columns=names), y)
    for other in (by_list, by_number, by_name):
        assert_allclose(other.inclusion_probability_, by_array.inclusion_probability_, rtol=1e-6)


def test_usual_prices_are_no_prices(data):
    X, y = data
    X = np.column_stack([X, np.ones(50)])  # constant columns count among the features that are charged
    plain, priced = quick().fit(X, y), quick(min_gain=np.full(9, np.log(9))).fit(X, y)
    assert_allclose(priced.inclusion_probability_, plain.inclusion_probability_, rtol=1e-6, atol=1e-200)


@pytest.mark.parametrize("cls", [SparseLogisticRegression, SparsePoissonRegressor])
@AGREEMENT_TOLD
def test_a_price_of_one_feature_is_none_of_the_others(cls, data):
    X, y = data[0], targets(cls, data[1])
    plain = cls(**SHORT_CHAINS).fit(X, y)
    same = cls(min_gain={3: "auto"}, **SHORT_CHAINS).fit(X, y)
    assert_allclose(same.inclusion_probability_, plain.inclusion_probability_, rtol=1e-6)


def test_a_free_feature_is_always_in_and_a_dear_one_never(data):
    X, y = data
    model = quick(min_gain={7: 0, 0: 1e6, 1: np.inf}).fit(X, y)
    assert_allclose(model.inclusion_probability_[[7, 0, 1]], [1.0, 0.0, 0.0], atol=1e-12)
    assert model.coef_[7] != 0
    assert_array_equal(model.coef_[[0, 1]], 0.0)
    assert model.n_features_posterior_[0] == 0
    assert {7} <= set(model.active_)


def test_all_features_free(data):
    X, y = data
    model = quick(min_gain=np.zeros(8)).fit(X, y)
    assert_allclose(model.inclusion_probability_, 1.0)
    assert_allclose(model.n_features_posterior_, np.eye(9)[8])
    assert np.isfinite(model.predict(X)).all()


def test_odds_of_a_price_are_those_of_the_prior(data):
    """A nat less multiplies the odds of a feature by e, where that feature alone is in doubt."""
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
        quick(min_gain=min_gain).fit(*data)


def test_wrong_names_of_a_frame_are_told(data):
    X, y = data
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(8)])
    with pytest.raises(ValueError, match=r"min_gain has a price for 0.*names of X's columns"):
        quick(min_gain={0: 1.0}).fit(frame, y)


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
    assert not hasattr(quick(**params).fit(*data), "inclusion_probability_")


@pytest.mark.parametrize("params", [{"c": 1.0, "d": 0.5}, {"fit_intercept": False, "intercept_prior": "ard"}], ids=str)
def test_auto_averages_otherwise(data, params):
    assert hasattr(quick(**params).fit(*data), "inclusion_probability_")


@pytest.mark.parametrize(
    ("params", "needs"),
    [
        ({"noise": "student"}, "noise='gaussian'"),
        ({"intercept_prior": "ard"}, "intercept_prior"),
        ({"a": 1.0}, "a=b=0"),
    ],
    ids=str,
)
def test_what_cannot_be_averaged_is_told(data, params, needs):
    with pytest.raises(ValueError, match=f"average=True needs.*{needs}"):
        quick(average=True, **params).fit(*data)


def test_one_price_is_a_known_rate(data):
    X, y = data
    cheap, dear = (quick(average=True, min_gain=price).fit(X, y) for price in (1.0, 6.0))
    assert (cheap.inclusion_probability_ > dear.inclusion_probability_)[[2, 3, 6, 7]].all()


def test_a_refit_forgets_the_averages(data):
    X, y = data
    model = quick().fit(X, y)
    model.set_params(average=False).fit(X, y)
    plain = quick(average=False).fit(X, y)
    assert vars(model).keys() == vars(plain).keys()
    assert_array_equal(model.get_support(), plain.get_support())
    model.set_params(average="auto").fit(X, y).fit(X, y)
    assert vars(model.model_).keys() == vars(plain).keys()


def test_warm_starts_begin_at_the_single_model(data):
    X, y = data
    model = quick(warm_start=True).fit(X, y)
    first = model.n_iter_
    again = model.fit(X, y)
    assert again.n_iter_ < first
    assert_allclose(again.inclusion_probability_, quick().fit(X, y).inclusion_probability_, atol=0.05)


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
    model = quick(fit_intercept=fit_intercept).fit(X, y)
    assert ((model.inclusion_probability_ >= 0) & (model.inclusion_probability_ <= 1)).all()
    assert np.isfinite(model.predict(X, return_std=True)).all()
    assert np.isfinite(model.coef_interval()).all()


def test_constant_target(data):
    X, _ = data
    model = quick().fit(X, np.full(50, 7.0))
    assert_array_equal(model.inclusion_probability_, 0.0)
    assert_array_equal(model.n_features_posterior_, [1.0])
    assert_array_equal(model.predict(X), 7.0)
    assert model.credible_sets_ == []
    assert_array_equal(model.model_.predict(X), 7.0)


def test_constant_columns_are_never_in(data):
    X, y = data
    spoilt = np.column_stack([X, np.full(50, 3.0), np.zeros(50)])
    model = quick().fit(spoilt, y)
    assert_allclose(model.inclusion_probability_[8:], 0.0, atol=1e-200)
    assert_array_equal(model.coef_std_[8:], 0.0)
    assert_allclose(model.inclusion_probability_[:8], quick().fit(X, y).inclusion_probability_, rtol=1e-6)


def test_noise_free_target(data):
    X, _ = data
    with pytest.warns(RuntimeWarning, match="floor"):
        model = quick().fit(X, 2 * X[:, 0] - X[:, 1])
    assert_array_equal(model.active_, [0, 1])
    assert_allclose(model.coef_, [2, -1, 0, 0, 0, 0, 0, 0], atol=1e-3)


def test_float32_is_the_same_numbers_in_double(data):
    X, y = (array.astype(np.float32) for array in data)
    single, double = quick().fit(X, y), quick().fit(X.astype(np.float64), y.astype(np.float64))
    for name in ATTRIBUTES:
        assert_array_equal(getattr(single, name), getattr(double, name), err_msg=name)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_do_not_change_the_sets(data, scale):
    X, y = data
    base = quick().fit(X, y)
    moved = quick().fit(X * np.logspace(-3, 3, 8), y * scale)
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

    model = quick()
    if before:
        model.fit(*data)
    monkeypatch.setattr(_averaging, "progress", lambda verbose: interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data)
    assert vars(model) == quick().get_params()
    monkeypatch.undo()
    assert_array_equal(model.fit(*data).coef_, quick().fit(*data).coef_)


def test_progress_names_the_standard_error(data, capsys):
    ARDRegressor(verbose=2, **SHORT_CHAINS).fit(*data)
    out, told = capsys.readouterr()
    assert out == ""
    *search, last = told.splitlines()
    assert all("log evidence" in line for line in search)
    assert "standard error" in last
    assert last.endswith("average")
    assert "nan" not in told
