"""PFCVMClassifier with few vectors: samples and features that it finds, and that units and order do not matter."""

import pickle
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_ndtr
from scipy.stats import linregress
from sklearn.base import clone

from sparsebayes import PCVMClassifier, PFCVMClassifier
from sparsebayes.core.prices import false_discovery_price, worth_at
from sparsebayes.estimators.pfcvm import FEW_ROWS_ALPHA

POWER = {"rbf": 2, "laplacian": 1, "poly": 2}
"""Feature weights are per unit of the feature to this power."""


machine = partial(PFCVMClassifier, vectors="sparse")


def ring(n=150, n_useless=10, true=(2, 7), seed=0):
    """Inside or outside of a circle in two of the features, with some noise at its edge."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2 + n_useless))
    far = (X[:, true] ** 2).sum(axis=1) + 0.2 * rng.standard_normal(n) > 1.4
    return X, np.where(far, "out", "in")


def small(seed=0):
    """A ring that takes a second: the features 1 and 3 matter, 0, 2 and 4 do not; a tenth of the labels is wrong.

    Where classes hardly overlap many models are nearly as good, and rounding decides which of them is found.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((100, 5))
    far = (X[:, [1, 3]] ** 2).sum(axis=1) > 1.4
    return X, np.where(far ^ (rng.uniform(size=100) < 0.1), "out", "in")


def one_start(**parameters):
    return machine(n_restarts=1, **parameters)


@pytest.fixture(scope="module")
def fitted():
    """The small ring and its model, from one start."""
    X, y = small()
    return X, y, one_start().fit(X, y)


def columns(model, X):
    """The kernel by its formula, in the data's units; `X` are the training rows, whose means the polynomial takes."""
    Z, theta, mean = model.relevance_vectors_, model.feature_weights_, X.mean(axis=0)
    if model.kernel == "poly":
        return (((X - mean) * theta) @ (Z - mean).T + model.coef0) ** model.degree
    return np.exp(-(np.abs(X[:, None] - Z) ** POWER[model.kernel] * theta).sum(axis=-1))


def assert_same(one, other, X_one, X_other, atol=1e-3):
    """The same probabilities; turns end at a thousandth of a nat, and rounding decides where exactly."""
    assert_allclose(one.predict_proba(X_one), other.predict_proba(X_other), atol=atol)


# --- what is found ---


@pytest.fixture(scope="module")
def rings():
    """Models of five rings in twelve features, of which 2 and 7 matter, with their errors on new rows."""
    models = [machine(n_restarts=2).fit(*ring(seed=seed)) for seed in range(5)]
    return models, [1 - model.score(*ring(n=1000, seed=100 + seed)) for seed, model in enumerate(models)]


def test_the_features_that_matter_are_kept_and_hardly_others(rings):
    """The price lets 0.05 useless features in per data set: two of them in five would have a probability of 0.03."""
    kept = np.array([model.get_support() for model in rings[0]])
    assert kept[:, [2, 7]].all()
    assert kept.sum() <= 10 + 1


def test_feature_attributes_agree(rings):
    for model in rings[0]:
        kept = model.get_support()
        assert_array_equal(model.feature_weights_ > 0, kept)
        assert_array_equal(model.get_support(indices=True), np.flatnonzero(kept))
        assert (model.feature_relevance_[[2, 7]] > 0.9).all()
        assert (model.feature_relevance_[~kept] == 0).all()
        assert (model.feature_relevance_ <= 1).all()


def test_few_vectors_and_a_small_error(rings):
    """With all twelve features a kernel of one width is wrong about a quarter of the time."""
    models, errors = rings
    assert all(len(model.relevance_vectors_) <= 10 for model in models)
    assert max(errors) < 0.12
    assert errors[0] < 0.6 * (1 - PCVMClassifier().fit(*ring()).score(*ring(n=1000, seed=100)))


@pytest.mark.parametrize(
    "options", [{"kernel": "rbf"}, {"kernel": "laplacian"}, {"kernel": "poly", "degree": 2}], ids=str
)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_evidence_and_probabilities_are_those_of_the_weighted_kernel(options, fit_intercept):
    """By the formula, from the fitted numbers and in the data's own units."""
    X, y = small()
    X = X * [1, 100, 1, 0.01, 1] + [0, 5, 0, -2, 0]
    model = machine(n_restarts=4, fit_intercept=fit_intercept, tol=1e-6, **options).fit(X, y)
    assert model.get_support().any()
    K, t = columns(model, X), y == "out"
    eta, alpha = K @ model.dual_coef_ + model.intercept_, model.precision_
    p, k = expit(eta), len(alpha)
    Phi = np.column_stack([K, np.ones((len(K), int(fit_intercept)))])
    H = Phi.T @ ((p * (1 - p))[:, None] * Phi) + np.diag(np.append(alpha, np.zeros(int(fit_intercept))))
    variance = np.diag(np.linalg.inv(H))[:k]
    value = np.log(np.where(t, p, 1 - p)).sum() - 0.5 * alpha @ model.dual_coef_**2
    value += 0.5 * np.log(alpha).sum() - 0.5 * np.linalg.slogdet(H)[1] + 0.5 * fit_intercept * np.log(2 * np.pi)
    value += (np.log(2) + log_ndtr(np.abs(model.dual_coef_) / np.sqrt(variance))).sum()
    assert_allclose(model.log_evidence_, value, rtol=1e-6)
    plain = clone(model).set_params(proba="plug-in").fit(X, y)
    assert_allclose(plain.predict_proba(X)[:, 1], p, atol=1e-6)


def test_every_vector_speaks_for_its_class(fitted):
    X, y, model = fitted
    assert len(model.dual_coef_)
    assert_array_equal(np.sign(model.dual_coef_), np.where(y[model.relevance_indices_] == "out", 1, -1))
    assert_array_equal(X[model.relevance_indices_], model.relevance_vectors_)
    assert model.converged_
    assert model.optimality_gap_ <= model.tol


def test_smooth_truncation_finds_them_too():
    X, y = small()
    model = one_start(truncation="smooth").fit(X, y)
    assert model.get_support()[[1, 3]].all()
    assert_array_equal(np.sign(model.dual_coef_), np.where(y[model.relevance_indices_] == "out", 1, -1))


@pytest.mark.filterwarnings("ignore:not converged")  # five features and little to choose between the vectors
def test_without_a_price_more_features_stay(fitted):
    X, y, model = fitted
    free = one_start(min_gain=0).fit(X, y)
    assert free.get_support()[model.get_support()].all()
    assert free.get_support().sum() > model.get_support().sum()


def test_a_price_beyond_all_leaves_next_to_nothing():
    """The last feature is not the price's to take, nor one without which a climb would leap to no weight at all."""
    assert one_start(min_gain=1e6).fit(*small()).get_support().sum() <= 1
    X, y = ring(n=80, n_useless=3, true=(1, 3))  # hardly any overlap: here climbs do leap
    assert one_start(min_gain=1e6).fit(X, y).get_support().sum() <= 2


def test_labels_that_hang_on_nothing(rng):
    X, y = rng.standard_normal((60, 6)), rng.integers(0, 2, 60)
    model = one_start().fit(X, y)
    assert model.get_support().sum() <= 1
    if not model.get_support().any():
        assert_allclose(model.predict_proba(X)[:, 1], y.mean(), atol=0.02)


def shifted(n=100, n_useful=8, n_useless=12, seed=0):
    """Features that all say a little of the class, and as many and more that say nothing."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    X = rng.standard_normal((n, n_useful + n_useless))
    X[:, :n_useful] += 1.2 * y[:, None]
    return X, y


def squared_t_values(X, y):
    fits = [linregress(x, y) for x in X.T]
    return np.array([(fit.slope / fit.stderr) ** 2 for fit in fits])


@pytest.mark.parametrize("n_useless", [12, 200])
def test_features_that_each_say_a_little_are_weighed_alone(n_useless):
    """Weights of their own would not be worth what they cost, or are not even tried where features outnumber rows."""
    X, y = shifted(n_useless=n_useless)
    X_test, y_test = shifted(n=1000, n_useless=n_useless, seed=1)
    model = machine().fit(X, y)
    F = squared_t_values(X, y)
    assert_array_equal(model.get_support(), [worth_at(f) > false_discovery_price(X.shape[1]) for f in F])
    assert model.get_support()[:8].sum() >= 7
    assert model.get_support()[8:].sum() <= 1
    kept = model.get_support()
    assert_allclose((model.feature_weights_ * X.var(axis=0))[kept] / np.sqrt(F[kept] - 1), mean_of_kept(model, X, F))
    assert model.score(X_test, y_test) > 0.9
    assert np.isnan(model.restart_scores_).all() == (n_useless == 200)


def mean_of_kept(model, X, F):
    kept = model.get_support()
    return (model.feature_weights_ * X.var(axis=0))[kept].sum() / np.sqrt(F[kept] - 1).sum()


def test_a_given_start_is_weighed_together():
    X, y = shifted()
    given = machine(init=0.05, n_restarts=1).fit(X, y)
    assert np.isfinite(given.restart_scores_).all()
    assert given.get_support().sum() < machine(n_restarts=1).fit(X, y).get_support().sum()


def test_more_features_than_rows():
    """Classes are separable then. No single vector may do it all: prior precisions are bound from below."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 200))
    y = X[:, 5] > 0
    model = machine().fit(X, y)
    assert model.converged_
    assert_array_equal(model.get_support(indices=True), [5])
    K = columns(model, X)
    assert (model.precision_ >= FEW_ROWS_ALPHA * K.var(axis=0) * (1 - 1e-9)).all()
    assert (model.precision_ < 1.01 * FEW_ROWS_ALPHA * K.var(axis=0)).any()
    X_test = rng.standard_normal((500, 200))
    assert model.score(X_test, X_test[:, 5] > 0) > 0.9


def test_more_features_than_rows_of_which_none_speaks_alone():
    """Then they are weighed together after all."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 40))
    y = X[:, 3] ** 2 > 0.6
    model = one_start().fit(X, y)
    assert np.isfinite(model.restart_scores_).all()


@pytest.mark.filterwarnings("ignore:not converged")
def test_classes_far_apart_raise_no_numerical_warning():
    """Where all rows are saturated a flat intercept has hardly any curvature, and Newton's step no end."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((90, 5)), np.repeat([0, 1, 2], 30)
    X[:, 0] += 3 * (y == 1)
    X[:, 2] += 3 * (y == 2)
    for k in range(3):
        model = machine(n_restarts=2).fit(X, y == k)
        assert model.score(X, y == k) > 0.9


# --- symmetries ---


def test_units_and_origins_of_features(fitted):
    X, y, model = fitted
    unit, origin = np.array([1e-3, 50.0, 1.0, 0.1, 1e4]), np.array([0.0, 20.0, -5.0, 1.0, 0.0])
    moved = one_start().fit(X * unit + origin, y)
    assert_array_equal(moved.get_support(), model.get_support())
    assert_allclose(moved.feature_weights_ * unit**2, model.feature_weights_, rtol=1e-2)
    assert_allclose(moved.feature_relevance_, model.feature_relevance_, atol=1e-2)
    assert_same(moved, model, X * unit + origin, X)


def test_order_of_features(fitted):
    X, y, model = fitted
    order = np.array([3, 0, 4, 1, 2])
    moved = one_start().fit(np.asfortranarray(X[:, order]), y)
    assert_allclose(moved.feature_weights_, model.feature_weights_[order], rtol=1e-2)
    assert_same(moved, model, X[:, order], X)


def test_order_of_rows(fitted, rng):
    X, y, model = fitted
    order = rng.permutation(len(X))
    moved = one_start().fit(X[order], y[order])
    # rows are sorted before the weights are sought: these do not depend on the order by a single bit
    assert_array_equal(moved.feature_weights_, model.feature_weights_)
    assert_array_equal(np.sort(order[moved.relevance_indices_]), np.sort(model.relevance_indices_))
    assert_same(moved, model, X, X, atol=1e-6)


def test_weights_are_repetitions(rng):
    X, y = small()
    times = rng.integers(0, 3, len(X))
    weighted = one_start().fit(X, y, sample_weight=times)
    repeated = one_start().fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert_allclose(weighted.feature_weights_, repeated.feature_weights_, rtol=1e-9)
    assert_same(weighted, repeated, X, X, atol=1e-6)
    assert (times[weighted.relevance_indices_] > 0).all()


def test_swapped_labels_give_the_mirrored_answer(fitted):
    X, y, model = fitted
    other = one_start().fit(X, y == "in")
    assert_allclose(other.feature_weights_, model.feature_weights_, rtol=1e-2)
    assert_allclose(other.predict_proba(X)[:, ::-1], model.predict_proba(X), atol=1e-3)


def test_single_precision(fitted):
    X, y, model = fitted
    assert_same(one_start().fit(X.astype(np.float32), y), model, X.astype(np.float32), X, atol=1e-2)


def test_constant_features_are_as_if_they_were_not_there(fitted):
    X, y, model = fitted
    more = np.insert(X, [0, 2], [[1e6, -0.1]], axis=1)
    wider = one_start().fit(more, y)
    # Means over more columns round otherwise. L-BFGS-B ends at 2e-9 of the objective: θ is known to the root of that.
    assert_allclose(np.delete(wider.feature_weights_, [0, 3]), model.feature_weights_, rtol=5e-5)
    assert (wider.feature_weights_[[0, 3]] == 0).all()
    assert_same(wider, model, more, X, atol=1e-6)


def test_only_constant_features_leave_the_frequencies():
    model = machine().fit(np.ones((20, 3)), np.arange(20) % 4 == 0)
    assert not model.get_support().any()
    assert len(model.relevance_vectors_) == 0
    assert_allclose(model.predict_proba(np.ones((2, 3)))[:, 1], 0.25, atol=0.03)


# --- starts ---


def test_the_best_of_all_starts_is_taken():
    X, y = small()
    all_starts = machine(n_restarts=3, random_state=0).fit(X, y)
    assert all_starts.restart_scores_.shape == (3,)
    first = one_start().fit(X, y)
    assert first.restart_scores_.shape == (1,)
    assert_allclose(first.restart_scores_[0], all_starts.restart_scores_[0], rtol=1e-9)
    with pytest.raises(AttributeError):
        first.gamma_  # noqa: B018


@pytest.mark.parametrize("factor", [0.01, 100.0])
def test_a_start_far_off_ends_at_a_model_as_good_or_the_scores_say_so(factor):
    X, y = small()
    near = machine(n_restarts=2).fit(X, y)
    far = machine(n_restarts=3, init=near.feature_weights_ * factor + 1e-6).fit(X, y)
    assert far.restart_scores_.shape == (3,)
    assert far.restart_scores_.max() > near.restart_scores_.max() - 3
    assert_array_equal(far.get_support(), near.get_support())


def test_init_is_in_the_units_of_the_data(fitted):
    """A start with the same weights in other units goes the same way; a feature that it leaves out can come back."""
    X, y, _ = fitted
    unit = np.array([1e-3, 50.0, 1.0, 0.1, 1e4])
    init = np.array([0.3, 0.5, 0.0, 0.0, 0.2])
    base = one_start(init=init).fit(X, y)
    scaled = one_start(init=init / unit**2).fit(X * unit, y)
    assert_allclose(scaled.feature_weights_ * unit**2, base.feature_weights_, rtol=1e-2)
    assert_array_equal(base.get_support(indices=True), [1, 3])


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"n_restarts": 0}, "n_restarts"),
        ({"n_restarts": 1.5}, "n_restarts"),
        ({"init": "equal"}, "init"),
        ({"init": 0.0}, "init"),
        ({"init": [1.0, 2.0]}, "init"),
        ({"init": [1.0, 2.0, -1.0]}, "init"),
        ({"init": [1.0, np.nan, 1.0]}, "init"),
        ({"init": [0.0, 0.0, 0.0]}, "init"),
        ({"min_gain": -1.0}, "min_gain"),
        ({"kernel": "linear"}, "kernel"),
        ({"truncation": "hard"}, "truncation"),
        ({"vectors": "few"}, "vectors"),
    ],
    ids=str,
)
def test_errors_name_the_parameter(parameters, named):
    X = np.random.default_rng(0).standard_normal((20, 3))
    with pytest.raises(ValueError, match=f"'{named}' parameter"):
        machine(**parameters).fit(X, X[:, 0] > 0)


# --- classes, and scikit-learn ---


@pytest.fixture(scope="module")
def three():
    """Three classes by two features: of five, 0 and 2 tell them apart."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((120, 5)), np.repeat([0, 1, 2], 40)
    X[:, 0] += 2 * (y == 1)
    X[:, 2] += 2 * (y == 2)
    names = np.array(["a", "b", "c"])[y]
    return X, names, machine(n_restarts=2).fit(X, names)


def test_more_than_two_classes_have_weights_each(three):
    X, y, model = three
    assert model.feature_weights_.shape == model.feature_relevance_.shape == (3, 5)
    assert np.shape(model.restart_scores_) == (3, 2)
    assert_array_equal(model.get_support(), (model.feature_weights_ > 0).any(axis=0))
    assert_array_equal(model.get_support(indices=True), [0, 2])
    assert model.feature_weights_[1, 0] > 0  # what tells b from the rest
    assert model.feature_weights_[2, 2] > 0
    for k, name in enumerate(model.classes_):
        signs = np.where(y[model.relevance_indices_[k]] == name, 1, -1)
        assert_array_equal(np.sign(model.dual_coef_[k]), signs)
    probability = model.predict_proba(X)
    assert_allclose(probability.sum(axis=1), 1)
    assert model.score(X, y) > 0.75


def test_each_class_is_the_fit_against_the_rest(three):
    X, y, model = three
    alone = machine(n_restarts=2).fit(X, y == "b")
    assert_allclose(model.feature_weights_[1], alone.feature_weights_, rtol=1e-9)
    assert_allclose(model.restart_scores_[1], alone.restart_scores_, rtol=1e-9)


def test_pickle_and_clone(fitted):
    X, y, model = fitted
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert_array_equal(again.get_support(), model.get_support())
    copy = clone(one_start(init=np.ones(5), kernel="laplacian"))
    assert copy.get_params()["kernel"] == "laplacian"
    assert not hasattr(clone(model), "feature_weights_")
    assert_array_equal(clone(model).fit(X, y).feature_weights_, model.feature_weights_)


def test_drawn_candidates(fitted):
    X, y, _ = fitted
    model = one_start(candidates=30, random_state=3).fit(X, y)
    again = one_start(candidates=30, random_state=3).fit(X, y)
    assert_array_equal(model.feature_weights_, again.feature_weights_)
    assert model.get_support()[[1, 3]].all()


def test_balanced_classes_are_weights(fitted):
    X, y, _ = fitted
    balanced = one_start(class_weight="balanced").fit(X, y)
    share = np.where(y == "out", (y == "out").mean(), (y == "in").mean())
    assert_allclose(balanced.feature_weights_, one_start().fit(X, y, 0.5 / share).feature_weights_, rtol=1e-6)
