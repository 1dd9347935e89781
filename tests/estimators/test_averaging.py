"""ARDRegressor as an average over models: what it finds, its attributes, and what they depend on."""

import warnings

import numpy as np
import pytest
from enumeration import enumerated
from forms import AVERAGED_ATTRIBUTES, quick_average, stand_ins, target_for
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from sparsebayes import ARDRegressor, SparseLogisticRegression, SparsePoissonRegressor
from sparsebayes.core.inclusion import InclusionPrior
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.averaging import N_DRAWS
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.sets import Sets
from sparsebayes.estimators import logistic

FLOOR_TOLD = pytest.mark.filterwarnings("ignore:the noise variance reached its floor")
AGREEMENT_TOLD = pytest.mark.filterwarnings("ignore:the chains do not agree")


@pytest.fixture(scope="module")
def data():
    return stand_ins()


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
    # The draws by themselves: four standard errors of a share of 1,000, and of a mean.
    coef = model.sample_posterior(100_000, random_state=0)[0] / scale
    std = np.sqrt(exact.second - exact.mean**2)
    assert_allclose((coef != 0).mean(axis=0), exact.probability, atol=atol + 0.06)
    assert_allclose((coef.mean(axis=0) - exact.mean) / std, 0.0, atol=0.13 + 5 * model.chain_error_)


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


@pytest.mark.parametrize("make", [ARDRegressor, SparseLogisticRegression])
def test_short_chains_keep_as_many_draws_as_long_ones(data, make):
    """Means of draws are as far from the averages as the number of draws says, over eight seeds."""
    X, y = data
    far, spread = [], []
    for seed in range(8):
        model = make(random_state=seed).fit(X, target_for(make, y))
        coef, _ = model.sample_posterior(50_000, random_state=0)
        coef, mean, std = (np.reshape(each, (-1, 8)) for each in (coef, model.coef_, model.coef_std_))
        assert model.n_flips_ < 1500
        assert len(np.unique(model._fits[0].draws, axis=0)) > 0.9 * N_DRAWS
        likely = np.ravel(model.inclusion_probability_) > 0.1
        far.append(((coef.mean(axis=0) - mean[0]) / std[0])[likely])
        spread.append(np.log(coef.std(axis=0) / std[0])[likely])
    # 1/√1000 = 0.03, and as much again because neighbouring states of a chain are alike; 60 draws would give 0.13.
    assert np.sqrt(np.mean(np.concatenate(far) ** 2)) < 0.06
    assert np.sqrt(np.mean(np.concatenate(spread) ** 2)) < 0.08


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
@pytest.mark.frequencies
def test_intervals_and_deviations_cover_fresh_observations():
    """40 data sets of 30 rows, and 50 new rows each: they hold as often as they say, within 4 standard errors."""
    inside, scaled = {0.5: [], 0.9: []}, []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((80, 10))
        y = X[:, 0] + 0.4 * X[:, 1] + 0.2 * X[:, 2] + rng.standard_normal(80)
        model = quick_average(random_state=seed).fit(X[:30], y[:30])
        for coverage, shares in inside.items():
            low, high = model.predict_interval(X[30:], coverage).T
            shares.append(((low < y[30:]) & (y[30:] < high)).mean())
        mean, std = model.predict(X[30:], return_std=True)
        scaled.append((((y[30:] - mean) / std) ** 2).mean())
    for expected, values in (*inside.items(), (1.0, scaled)):
        assert abs(np.mean(values) - expected) < 4 * np.std(values) / np.sqrt(40)


@AGREEMENT_TOLD
@pytest.mark.frequencies
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
    for name in AVERAGED_ATTRIBUTES:
        assert_array_equal(getattr(model, name), getattr(other, name), err_msg=name)
    assert_array_equal(model.predict_interval(X), other.predict_interval(X))
    assert_array_equal(model._fits[0].draws, other._fits[0].draws)


def test_same_seed_same_bits(data):
    X, y = data
    base = quick_average().fit(X, y)
    assert_same_bits(quick_average().fit(X, y), base, X)
    assert_same_bits(quick_average(n_jobs=2).fit(X, y), base, X)
    with threadpool_limits(4):
        assert_same_bits(quick_average().fit(X, y), base, X)
    assert_same_bits(quick_average(random_state=np.random.RandomState(0)).fit(X, y), base, X)
    assert (quick_average(random_state=1).fit(X, y).coef_ != base.coef_).all()


def test_same_seed_same_bits_with_more_features_than_rows():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((15, 40))
    y = X[:, :10].sum(axis=1) + rng.standard_normal(15)  # dense enough for the form by rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        base, many = quick_average().fit(X, y), quick_average(n_jobs=2).fit(X, y)
        with threadpool_limits(4):
            threaded = quick_average().fit(X, y)
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
    weighted = quick_average().fit(X, y, sample_weight=weight)
    repeated = quick_average().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    for name in AVERAGED_ATTRIBUTES:
        assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-7, err_msg=name)
    for one, other in zip(weighted.credible_sets_, repeated.credible_sets_, strict=True):
        assert_array_equal(one.features, other.features)
        assert_allclose(one.purity, other.purity, rtol=1e-9)


@AGREEMENT_TOLD
def test_weights_are_repeated_rows_on_wide_data_within_the_monte_carlo_error(monkeypatch):
    """0.1: four standard errors of 4 × 3,000 flips, which the chains put at 0.02."""
    monkeypatch.setattr("sparsebayes.engine.averaging.AGREEMENT", 0.0)  # so that they use all flips
    rng = np.random.default_rng(3)
    X, weight = rng.standard_normal((10, 12)), np.array([0, 1, 2, 3, 1, 1, 2, 1, 1, 1])
    y = X[:, :6].sum(axis=1) + rng.standard_normal(10)
    params = {"n_chains": 4, "max_flips": 3000}
    weighted = ARDRegressor(**params).fit(X, y, sample_weight=weight)
    repeated = ARDRegressor(**params).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(weighted.inclusion_probability_, repeated.inclusion_probability_, atol=0.1)
    counted = X[weight > 0]
    assert_allclose(weighted.predict(counted), repeated.predict(counted), atol=0.1 * y.std())


@AGREEMENT_TOLD
@pytest.mark.parametrize("cls", [SparseLogisticRegression, SparsePoissonRegressor])
def test_weights_of_classes_and_counts_are_repeated_rows_within_the_monte_carlo_error(cls, data):
    X, y = data[0], target_for(cls, data[1])
    weight = 1 + np.arange(50) % 2
    weighted = cls(n_chains=2, max_flips=3000).fit(X, y, sample_weight=weight)
    repeated = cls(n_chains=2, max_flips=3000).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(weighted.inclusion_probability_, repeated.inclusion_probability_, atol=0.12)


def test_several_outputs_are_fitted_as_if_alone(data):
    X, y = data
    Y = np.column_stack([y, X[:, 3] - y, np.full(50, 4.0)])
    together = quick_average().fit(X, Y)
    assert together.inclusion_probability_.shape == together.coef_std_.shape == together.coef_.shape == (3, 8)
    assert len(together.credible_sets_) == len(together.n_features_posterior_) == len(together.active_) == 3
    errors = []
    for k, column in enumerate(Y.T):
        alone = quick_average().fit(X, column)
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


@pytest.mark.frequencies
def test_several_classes_share_sites_where_drawn_variables_would_take_long(monkeypatch):
    """The claims and the probabilities of classes are the same; for two classes nothing changes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 12))
    y = (X[:, :3] * 2 + rng.gumbel(size=(300, 3))).argmax(axis=1)
    drawn = SparseLogisticRegression(random_state=0).fit(X, y)
    assert not drawn._shares_sites(X)
    monkeypatch.setattr(logistic, "LARGEST_CLASSES", 3 * X.size - 1)
    shared = SparseLogisticRegression(random_state=0).fit(X, y)
    assert shared._shares_sites(X)
    assert_allclose(shared.inclusion_probability_, drawn.inclusion_probability_, atol=0.15)
    assert_allclose(shared.predict_proba(X), drawn.predict_proba(X), atol=0.06)
    assert not SparseLogisticRegression(random_state=0).fit(X, y == 0)._shares_sites(X)
    assert not shared._shares_sites(X[:119])  # fewer than ten rows for each feature
