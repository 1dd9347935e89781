"""DRVMRegressor (and BLSRegressor with feature weights): what is found, where it ends, and that units do not matter."""

import pickle
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import make_friedman1

from sparsebayes import BLSRegressor, DRVMRegressor, RVMRegressor
from sparsebayes.engine.theta import STARTS
from sparsebayes.estimators._feature_weights import FeatureWeights, StandardInputs

POWER = {"rbf": 2, "laplacian": 1, "poly": 2}
"""Feature weights are per unit of the feature to this power."""
KERNELS = {"rbf": {}, "laplacian": {}, "poly": {"degree": 2}}


searched = partial(DRVMRegressor, vectors="sparse")
"""The machine whose feature weights are found together with few vectors."""


def friedman(n=100, d=8, noise=1.0, seed=1):
    return make_friedman1(n_samples=n, n_features=d, noise=noise, random_state=seed)


def wave(n=40, n_useless=2, seed=0):
    """One feature in a curve, one in a straight line, and some that do not matter."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2 + n_useless))
    return X, np.sin(2 * X[:, 0]) + 0.7 * X[:, 1] + 0.1 * rng.standard_normal(n) + 3


def ripple():
    """A feature so much in a curve that the size of its weight is well determined in a kernel with a kink, too."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 4))
    return X, np.sin(3 * X[:, 0]) + 0.7 * X[:, 1] + 0.1 * rng.standard_normal(60) + 3


def bowl(n=40, n_useless=2, seed=0):
    """Two features that a polynomial of second degree is right for."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2 + n_useless))
    return X, X[:, 0] ** 2 + X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(n) + 3


DATA = {"rbf": wave, "laplacian": ripple, "poly": bowl}


def weighted_columns(model, X, theta, centre):
    """The kernel by its formula, in the data's units."""
    Z = model.relevance_vectors_
    if model.kernel == "poly":
        return (((X - centre) * theta) @ (Z - centre).T + model.coef0) ** model.degree
    distance = np.abs(X[:, None] - Z) ** POWER[model.kernel]
    return np.exp(-(distance * theta).sum(axis=-1))


def log_evidence(model, X, y, theta):
    """Density of the target on the directions beside the ones, and the flat intercept of density one beside them."""
    n = len(y)
    Phi = weighted_columns(model, X, theta, X.mean(axis=0))
    C = model.noise_variance_ * np.eye(n) + (Phi / model.precision_) @ Phi.T
    basis = np.linalg.svd(np.ones((1, n)))[2][1:]
    return multivariate_normal(np.zeros(n - 1), basis @ C @ basis.T).logpdf(basis @ y) - 0.5 * np.log(n)


def slope_in_log_theta(model, X, y, k, h=1e-3):
    theta = model.feature_weights_
    ends = (log_evidence(model, X, y, theta * (1 + sign * h * np.eye(len(theta))[k])) for sign in (1, -1))
    return np.subtract(*ends) / (2 * h)


def gain_of_return(model, X, y, k):
    """The most nats that any weight of a dropped feature would bring, up to that of the largest in standard units."""
    unit, theta = X.std(axis=0) ** POWER[model.kernel], model.feature_weights_
    steps = np.geomspace(1e-6, 1, 13) * (theta * unit).max() / unit[k]
    return max(log_evidence(model, X, y, theta + step * np.eye(len(unit))[k]) for step in steps) - model.log_evidence_


@pytest.mark.parametrize("kernel", KERNELS)
def test_evidence_and_predictions_are_those_of_the_weighted_kernel(kernel):
    X, y = DATA[kernel]()
    model = searched(kernel=kernel, n_restarts=1, **KERNELS[kernel]).fit(X, y)
    assert_allclose(model.log_evidence_, log_evidence(model, X, y, model.feature_weights_), rtol=1e-8)
    Phi = weighted_columns(model, X, model.feature_weights_, X.mean(axis=0))
    assert_allclose(model.predict(X), Phi @ model.dual_coef_ + model.intercept_, rtol=1e-6)
    assert model.converged_
    assert model.optimality_gap_ <= model.tol


@pytest.mark.parametrize("solver", ["fast", "batch"])
@pytest.mark.parametrize(("kernel", "seed"), [("rbf", 1), ("rbf", 3), ("rbf", 7), ("laplacian", 1), ("poly", 1)])
def test_without_a_price_it_ends_at_a_maximum_of_the_evidence(solver, kernel, seed):
    """Nothing to gain from a kept feature in either direction, nor from a dropped one in the only direction it has.

    Turns end at a thousandth of a nat, so that a feature may be out that would bring as much. With a curvature of about
    one nat per squared e-fold, a slope of √(2 × 0.001) = 0.045 would gain as much.
    """
    X, y = friedman(n=50, seed=seed)
    model = searched(kernel=kernel, solver=solver, min_gain=0, n_restarts=2, **KERNELS[kernel]).fit(X, y)
    kept = model.get_support()
    assert kept.any()
    for k in np.flatnonzero(kept):
        assert abs(slope_in_log_theta(model, X, y, k)) < 0.045  # nats per e-fold
    for k in np.flatnonzero(~kept):
        assert gain_of_return(model, X, y, k) < 0.005


@pytest.mark.parametrize("options", [{}, {"solver": "batch"}, {"prior": "bls"}], ids=str)
def test_friedman_keeps_exactly_the_five(options):
    X, y = friedman()
    X_test, f = friedman(n=500, noise=0.0, seed=9)
    model = searched(n_restarts=2, **options).fit(X, y)
    assert_array_equal(model.get_support(indices=True), np.arange(5))
    assert (model.feature_relevance_[:5] > 0.8).all()
    assert (model.feature_relevance_[5:] == 0).all()
    assert np.sqrt(np.mean((model.predict(X_test) - f) ** 2)) < 1.4  # sd of f is 5; the best RVM has 2.2 here
    assert len(model.relevance_vectors_) <= 15


def test_friedman_with_other_draws():
    kept = [searched().fit(*friedman(d=7, seed=seed)).get_support() for seed in range(3)]
    assert all(mask[:5].all() for mask in kept)
    assert sum(mask[5:].any() for mask in kept) <= 1


def test_bls_with_feature_weights_finds_them_too():
    X, y = friedman()
    X_test, f = friedman(n=500, noise=0.0, seed=9)
    model = BLSRegressor(feature_weights=True, n_restarts=2).fit(X, y)
    assert_array_equal(model.get_support(indices=True), np.arange(5))
    assert np.sqrt(np.mean((model.predict(X_test) - f) ** 2)) < 1.4
    assert model.converged_


def test_bls_without_feature_weights_has_none():
    model = BLSRegressor().fit(*wave())
    assert not hasattr(model, "feature_weights_")
    assert not hasattr(model, "get_support")


def test_the_laplace_prior_finds_its_rate_in_a_wide_kernel():
    """Columns with little spread need large weights; at the usual first rate none would enter."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = X[:, 0] + 0.5 * rng.standard_normal(60)
    for model in (searched(prior="bls"), BLSRegressor(feature_weights=True)):
        model.set_params(n_restarts=1, init=1e-6).fit(X, y)
        assert 0 < model.feature_weights_[0] < 1e-3
        assert model.score(X, y) > 0.7


@pytest.mark.parametrize("factor", [0.01, 100.0])
def test_a_start_far_off_ends_as_well_or_is_seen_to_be_worse(factor):
    X, y = wave(n=60)
    near = searched(n_restarts=2).fit(X, y)
    far = searched(n_restarts=3, init=near.feature_weights_ * factor + 1e-6).fit(X, y)
    assert far.restart_scores_.shape == (3,)
    assert far.restart_scores_.max() > near.restart_scores_.max() - 3
    assert far.get_support()[:2].all()


def test_the_best_of_all_starts_is_taken():
    X, y = wave(n=30)
    models = [searched(n_restarts=k).fit(X, y) for k in (1, 2, 3)]
    scores = models[-1].restart_scores_
    best = int(np.argmax(scores))
    assert scores.shape == (3,)
    assert np.ptp(scores) > 0
    assert_array_equal(models[1].restart_scores_, scores[:2])
    assert models[best].log_evidence_ == models[-1].log_evidence_


def test_starts_are_given_then_fixed_then_drawn():
    X, y = wave(n=25)
    unit = X.std(axis=0)
    inputs = StandardInputs.of(X, y, np.ones(25), X)
    model = searched(n_restarts=8, init=[0.1, 0.2, 0.3, 0.0], random_state=0)

    def starts_of(model):
        return FeatureWeights.of(model).starts(inputs)

    starts = starts_of(model)
    assert len(starts) == 8
    assert_allclose(starts[0], [0.1, 0.2, 0.3, 0.0] * unit**2)
    assert_allclose(np.array(starts[1:6]) * 8, np.outer(STARTS, np.ones(4)))
    assert (np.ptp(starts[6:], axis=1) > 0).all()
    assert_array_equal(starts, starts_of(model))
    other = starts_of(clone(model).set_params(random_state=1))
    assert_array_equal(starts[:6], other[:6])
    assert (np.array(starts[6:]) != other[6:]).all()
    assert len(starts_of(searched(n_restarts=2))) == 2
    assert len(starts_of(clone(model).set_params(n_restarts=1))) == 1


@pytest.mark.parametrize("kernel", KERNELS)
def test_units_and_places_of_features_and_target(kernel):
    X, y = DATA[kernel]()
    unit, place = np.array([1e3, 1e-2, 1.0, 7.0]), np.array([50.0, -1.0, 3.0, 0.0])
    model = searched(kernel=kernel, n_restarts=1, **KERNELS[kernel])
    base, moved = clone(model).fit(X, y), clone(model).fit(X * unit + place * unit, 1e4 * y - 7e4)
    assert_allclose(moved.feature_weights_ * unit ** POWER[kernel], base.feature_weights_, rtol=1e-3)
    assert_array_equal(moved.get_support(), base.get_support())
    assert_allclose(moved.restart_scores_, base.restart_scores_, atol=1e-2)
    assert_allclose(moved.noise_variance_, 1e8 * base.noise_variance_, rtol=1e-3)
    assert_allclose(moved.predict(X * unit + place * unit), 1e4 * base.predict(X) - 7e4, atol=1e4 * 1e-3)


@pytest.mark.parametrize("solver", ["fast", "batch"])
def test_order_of_features(solver, rng):
    X, y = wave()
    order = np.array([2, 0, 3, 1])
    base, moved = (searched(solver=solver, n_restarts=1).fit(table, y) for table in (X, X[:, order]))
    assert_allclose(moved.feature_weights_, base.feature_weights_[order], rtol=1e-3)
    assert_allclose(moved.predict(X[:, order]), base.predict(X), atol=1e-3)


@pytest.mark.parametrize("solver", ["fast", "batch"])
def test_order_of_rows_changes_no_bit_of_the_weights(solver, rng):
    X, y = wave()
    order = rng.permutation(len(X))
    base, moved = (searched(solver=solver, n_restarts=1).fit(X[rows], y[rows]) for rows in (slice(None), order))
    assert_array_equal(moved.feature_weights_, base.feature_weights_)
    assert_array_equal(moved.restart_scores_, base.restart_scores_)
    assert set(order[moved.relevance_indices_]) == set(base.relevance_indices_)
    assert_allclose(moved.predict(X), base.predict(X), rtol=1e-6)


@pytest.mark.parametrize("solver", ["fast", "batch"])
def test_whole_weights_are_repetitions(solver, rng):
    X, y = wave()
    weight = rng.integers(1, 4, len(X))
    model = searched(solver=solver, n_restarts=1)
    weighted = clone(model).fit(X, y, sample_weight=weight)
    repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_array_equal(weighted.feature_weights_, repeated.feature_weights_)
    assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-6)
    assert_allclose(weighted.log_evidence_, repeated.log_evidence_, rtol=1e-6)


def test_two_outputs_have_weights_of_their_own():
    X, y = wave()
    Y = np.column_stack([y, X[:, 2] ** 2 + 0.1 * np.sin(100 * y)])
    both, first = searched(n_restarts=1).fit(X, Y), searched(n_restarts=1).fit(X, y)
    assert both.feature_weights_.shape == (2, 4)
    assert_array_equal(both.feature_weights_[0], first.feature_weights_)
    assert_array_equal(np.flatnonzero(both.feature_weights_[1]), [2])
    assert_array_equal(both.get_support(), first.get_support() | [False, False, True, False])
    assert_allclose(both.predict(X)[:, 0], first.predict(X))
    assert [len(scores) for scores in both.restart_scores_] == [1, 1]


def test_a_constant_feature_has_no_weight_and_changes_nothing():
    X, y = wave()
    base = searched(n_restarts=1).fit(X, y)
    for value in (0.0, 1e6):
        model = searched(n_restarts=1).fit(np.column_stack([X, np.full(len(X), value)]), y)
        assert model.feature_weights_[4] == 0
        assert_allclose(model.feature_weights_[:4], base.feature_weights_, rtol=1e-6)


def test_only_constant_features():
    X, y = wave()
    model = searched().fit(np.ones((len(X), 3)), y)
    assert not model.get_support().any()
    assert_allclose(model.predict(np.zeros((2, 3))), y.mean())


@pytest.mark.parametrize("solver", ["fast", "batch"])
def test_a_constant_target_needs_no_feature(solver):
    X, _ = wave()
    model = searched(solver=solver).fit(X, np.full(len(X), 7.0))
    assert_array_equal(model.feature_weights_, np.zeros(4))
    assert_array_equal(model.feature_relevance_, np.zeros(4))
    assert_allclose(model.predict(X), 7.0)


def test_nothing_is_the_answer_where_no_feature_pays_its_price():
    X, y = friedman(n=60, d=5)
    model = searched(n_restarts=1, min_gain=1e4).fit(X, y)
    assert not model.get_support().any()
    assert len(model.relevance_vectors_) == 0
    assert_allclose(model.predict(X), y.mean(), rtol=1e-12)


@pytest.mark.parametrize("solver", ["fast", "batch"])
def test_noise_needs_few_features_or_none(solver):
    kept, excess = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = rng.standard_normal((60, 6)), rng.standard_normal(60)
        model = searched(solver=solver, n_restarts=1).fit(X, y)
        kept.append(model.get_support().sum())
        excess.append(np.mean(model.predict(rng.standard_normal((500, 6))) ** 2))
    assert max(kept) <= 2
    assert np.median(excess) < 0.3  # of the target's variance: the last feature is kept, whatever it brings


# So few rows may well be reproduced by features of their own, of which the estimator tells.
@pytest.mark.filterwarnings("ignore:the noise variance reached its floor")
@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("solver", ["fast", "batch"])
def test_very_few_rows(n, solver):
    rng = np.random.default_rng(n)
    X, y = rng.standard_normal((n, 3)), rng.standard_normal(n)
    mean, std = searched(solver=solver).fit(X, y).predict(X, return_std=True)
    assert np.isfinite(mean).all()
    assert (std > 0).all()


def test_duplicates_of_rows_and_features():
    X, y = wave()
    model = searched(n_restarts=1).fit(np.column_stack([X, X[:, 0]])[np.r_[:40, :10]], y[np.r_[:40, :10]])
    assert model.get_support()[[0, 4]].any()
    assert not model.get_support()[[0, 4]].all()  # a copy brings nothing, and has its price
    assert model.get_support()[1]
    assert model.score(np.column_stack([X, X[:, 0]]), y) > 0.95


def test_ten_times_as_many_features_as_rows():
    rng = np.random.default_rng(1)
    X, X_test = rng.standard_normal((30, 300)), rng.standard_normal((500, 300))
    y, f = (np.sin(table[:, 0]) + table[:, 1] for table in (X, X_test))
    model = searched(n_restarts=1).fit(X, y + 0.1 * rng.standard_normal(30))
    assert model.get_support()[:2].any()
    assert model.get_support().sum() <= 4
    assert model.score(X_test, f) > 0.3  # the better of the two alone explains 0.7


def test_pickle_and_clone():
    X, y = wave()
    model = searched(n_restarts=1, init=[0.1, 0.2, 0.3, 0.4]).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_interval(X), model.predict_interval(X))
    assert_array_equal(again.feature_weights_, model.feature_weights_)
    assert clone(model).get_params()["init"] == [0.1, 0.2, 0.3, 0.4]
    assert_array_equal(clone(model).fit(X, y).feature_weights_, model.feature_weights_)


def test_intervals_cover_what_they_say():
    """0.9 on Friedman #1, over several data sets; the standard error of the mean is below 0.01."""
    shares = []
    for seed in range(3):
        X, y = friedman(n=400, d=6, seed=seed)
        low, high = searched(n_restarts=1).fit(X[:100], y[:100]).predict_interval(X[100:], coverage=0.9).T
        shares.append(np.mean((low <= y[100:]) & (y[100:] <= high)))
    assert 0.86 < np.mean(shares) < 0.94


def test_it_is_better_than_one_width_for_all():
    X, y = friedman()
    X_test, f = friedman(n=500, noise=0.0, seed=9)
    errors = [
        np.mean((model.fit(X, y).predict(X_test) - f) ** 2)
        for model in (searched(n_restarts=2), RVMRegressor(gamma="evidence"))
    ]
    assert errors[0] < 0.6 * errors[1]


@pytest.mark.parametrize(
    "init",
    [[0.1, 0.2], [0.1, 0.2, 0.3, -1.0], [0.1, np.nan, 0.3, 0.4], [0.0, 0.0, 0.0, 0.0], np.ones((2, 2)), 0.0, "large"],
    ids=str,
)
def test_bad_init_is_named(init):
    with pytest.raises(ValueError, match="init"):
        searched(init=init).fit(*wave())


def test_init_may_be_a_number():
    X, y = wave()
    one, each = (searched(n_restarts=1, init=init).fit(X, y) for init in (0.2, np.full(4, 0.2)))
    assert_array_equal(one.feature_weights_, each.feature_weights_)


@pytest.mark.parametrize("n_restarts", [0, -1, 1.5])
def test_bad_n_restarts_is_named(n_restarts):
    with pytest.raises(ValueError, match="n_restarts"):
        searched(n_restarts=n_restarts).fit(*wave())


def test_kernels_without_feature_weights_are_refused():
    with pytest.raises(ValueError, match="kernel"):
        searched(kernel="sigmoid").fit(*wave())
    with pytest.raises(ValueError, match="feature weights need one of the kernels"):
        BLSRegressor(feature_weights=True, kernel="linear").fit(*wave())


def test_candidates_may_be_given():
    X, y = wave()
    model = searched(n_restarts=1, candidates=X[:15] + 0.01).fit(X, y)
    assert set(map(tuple, model.relevance_vectors_)) <= set(map(tuple, X[:15] + 0.01))
    assert model.score(X, y) > 0.6


def test_a_larger_price_keeps_fewer():
    X, y = friedman(n=60, d=6)
    kept = [searched(min_gain=gain, n_restarts=1).fit(X, y).get_support().sum() for gain in (0.0, 1.0, 1e6)]
    assert kept[0] >= kept[1] > kept[2]
    assert kept[2] <= 1


def with_new_rows(n, n_features, seed):
    X, y = make_friedman1(n_samples=n + 500, n_features=n_features, noise=1.0, random_state=seed)
    _, f = make_friedman1(n_samples=n + 500, n_features=n_features, noise=0.0, random_state=seed)
    return X[:n], y[:n], X[n:], f[n:]


def test_by_default_friedmans_five_are_found_and_the_error_is_below_that_of_few_vectors():
    X, y, X_new, f = with_new_rows(200, 8, 1)
    model, few = DRVMRegressor().fit(X, y), searched().fit(X, y)
    assert model.get_support(indices=True).tolist() == [0, 1, 2, 3, 4]
    errors = [np.sqrt(np.mean((each.predict(X_new) - f) ** 2)) for each in (model, few)]
    assert errors[0] < min(0.7, errors[1])
    assert len(model.dual_coef_) < 100


def test_by_default_no_feature_is_kept_of_noise():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((120, 6)), rng.standard_normal(120)
    assert DRVMRegressor().fit(X, y).get_support().sum() <= 1


def test_with_few_rows_for_each_feature_they_are_chosen_with_few_vectors():
    X, y, X_new, f = with_new_rows(100, 40, 0)
    model = DRVMRegressor().fit(X, y)
    assert set(model.get_support(indices=True)) <= set(range(5))
    assert np.sqrt(np.mean((model.predict(X_new) - f) ** 2)) < 0.6 * f.std()


def test_the_sparse_model_that_won_on_folds_is_the_one_that_is_fitted():
    """It was not charged for vectors there. With a charge this draw ended with 2 vectors and an error of 3.8."""
    X, f = make_friedman1(n_samples=1240, noise=0.0, random_state=3)
    y = f[:240] + np.random.default_rng(3).standard_normal(240)
    model = DRVMRegressor().fit(X[:240], y)
    assert np.sqrt(np.mean((model.predict(X[240:]) - f[240:]) ** 2)) < 0.7


def test_a_parabola_is_found_among_many_useless_features():
    """With few rows for each feature a sparse model comes first, and judges features by their slope."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (100, 30))
    y = 2 * X[:, 4] + 3 * X[:, 9] ** 2 + 0.2 * rng.standard_normal(100)
    assert_array_equal(DRVMRegressor().fit(X, y).get_support(indices=True), [4, 9])
