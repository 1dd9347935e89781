"""Probabilistic classification vector machines: closed forms, signs, symmetries, and hostile data."""

import pickle
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, log_ndtr, roots_hermite
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from sparsebayes import PCVMClassifier, RVMClassifier

machine = partial(PCVMClassifier, gamma="scale", standardize=False)
"""The machine of the paper: the kernel sees the inputs as they are."""
TRUNCATIONS = ("exact", "smooth")


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(80, noise=0.25, random_state=0)
    return X, np.where(y == 1, "upper", "lower")


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X[:, 2:], np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.fixture(params=TRUNCATIONS)
def truncation(request):
    return request.param


def assert_signs(model, y):
    """Every kept row speaks for its own class."""
    assert len(model.dual_coef_)
    assert_array_equal(np.sign(model.dual_coef_), np.where(y[model.relevance_indices_] == model.classes_[1], 1, -1))


# --- closed forms ---


def test_evidence_and_posterior_are_laplaces_with_the_truncated_prior(moons, truncation):
    X, y = moons
    model = machine(gamma=1.0, fit_intercept=False, truncation=truncation, tol=1e-8).fit(X, y)
    t = y == "upper"
    K = rbf_kernel(X, model.relevance_vectors_, gamma=1.0)
    A, w = np.diag(model.precision_), model.dual_coef_
    c = 5.0 * np.sqrt((K**2).mean(axis=0)) * np.sign(w)  # steepness is per unit of a column of unit mean square
    if truncation == "exact":
        c = np.zeros_like(w)
    p, own = expit(K @ w), expit(c * w)
    H = A + K.T @ ((p * (1 - p))[:, None] * K) + np.diag(c**2 * own * (1 - own))
    Sigma = np.linalg.inv(H)
    value = np.log(np.where(t, p, 1 - p)).sum() - 0.5 * w @ A @ w + np.log(2 * own).sum()
    value += 0.5 * (np.linalg.slogdet(A)[1] - np.linalg.slogdet(H)[1])
    if truncation == "exact":
        value += (np.log(2) + log_ndtr(np.abs(w) / np.sqrt(np.diag(Sigma)))).sum()
    assert_allclose(model.log_evidence_, value, rtol=1e-8)
    assert model.evidence_path_[-1] == model.log_evidence_
    slope = K.T @ (t - p) - A @ w + c * (1 - own)
    assert_allclose(slope, 0, atol=1e-5 * np.abs(A @ w).max())
    assert_allclose(model.covariance_, Sigma, rtol=1e-5, atol=1e-8 * np.abs(Sigma).max())
    # the stationary point of the precisions, and the data's part of what is known of a weight
    assert_allclose(model.precision_ * (w**2 + np.diag(Sigma)), 1, atol=1e-6)
    data = np.diag(Sigma @ (H - A - np.diag(c**2 * own * (1 - own))))
    assert_allclose(model.relevance_, data, atol=1e-6)


def test_probabilities_average_over_the_posterior(moons, truncation):
    X, y = moons
    model = machine(gamma=1.0, truncation=truncation).fit(X, y)
    fit = model._fits[0]
    mean, variance = fit.latent(X), fit.latent_variance(X)
    K = rbf_kernel(X, model.relevance_vectors_, gamma=1.0)
    assert_allclose(mean, K @ model.dual_coef_ + model.intercept_, rtol=1e-7, atol=1e-9)
    nodes, weights = roots_hermite(160)
    at = mean[:, None] + np.sqrt(2 * variance)[:, None] * nodes
    assert_allclose(model.predict_proba(X)[:, 1], expit(at) @ weights / np.sqrt(np.pi), atol=1e-6)
    plain = clone(model).set_params(proba="plug-in").fit(X, y)
    assert_allclose(plain.decision_function(X), mean, rtol=1e-6, atol=1e-9)
    draws, level = model.sample_posterior(20_000, random_state=0)
    spread = np.sqrt(np.diag(model.covariance_))
    assert_allclose(draws.std(axis=0), spread, rtol=0.03)  # 20,000 draws know a spread to half a per cent
    assert level.shape == (20_000,)


# --- signs and symmetries ---


def test_every_vector_speaks_for_its_class(moons, truncation):
    X, y = moons
    model = machine(truncation=truncation).fit(X, y)
    assert model.converged_
    assert model.optimality_gap_ <= model.tol
    assert_signs(model, y)
    assert_array_equal(X[model.relevance_indices_], model.relevance_vectors_)
    assert model.score(X, y) > 0.9
    rvm = RVMClassifier(gamma="scale", standardize=False, vectors="sparse").fit(X, y)
    wrong = np.sign(rvm.dual_coef_) != np.where(y[rvm.relevance_indices_] == "upper", 1, -1)
    assert wrong.any()  # so that the bound is felt on these data


def test_swapped_labels_give_the_mirrored_answer(moons, truncation):
    X, y = moons
    one = machine(gamma=1.0, truncation=truncation).fit(X, y == "upper")
    other = machine(gamma=1.0, truncation=truncation).fit(X, y != "upper")
    assert_array_equal(one.relevance_indices_, other.relevance_indices_)
    assert_allclose(one.dual_coef_, -other.dual_coef_, rtol=1e-6)
    assert_allclose(one.decision_function(X), -other.decision_function(X), rtol=1e-6, atol=1e-9)
    assert_allclose(one.log_evidence_, other.log_evidence_, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_of_the_kernel_are_units_of_the_weights(moons, truncation, scale):
    X, y = moons
    K = rbf_kernel(X, gamma=1.0)
    base = machine(kernel="precomputed", truncation=truncation).fit(K, y)
    scaled = machine(kernel="precomputed", truncation=truncation).fit(scale * K, y)
    assert_array_equal(scaled.relevance_indices_, base.relevance_indices_)
    assert_allclose(scaled.dual_coef_ * scale, base.dual_coef_, rtol=1e-6)
    assert_allclose(scaled.precision_ / scale**2, base.precision_, rtol=1e-5)
    assert_allclose(scaled.log_evidence_, base.log_evidence_, rtol=1e-9)


def test_order_of_rows_and_units_of_inputs(moons, truncation, rng):
    X, y = moons
    order = rng.permutation(len(X))
    base = machine(truncation=truncation).fit(X, y)
    moved = machine(truncation=truncation).fit(1e5 * X[order].astype(np.float32), y[order])
    assert_array_equal(np.sort(order[moved.relevance_indices_]), np.sort(base.relevance_indices_))
    # single precision moves the inputs by 6e-8 of themselves
    assert_allclose(moved.predict_proba(1e5 * X), base.predict_proba(X), atol=1e-4)


# --- classes, weights, kernels ---


def test_more_than_two_classes(iris):
    X, y = iris
    model = machine().fit(X, y)
    probability = model.predict_proba(X)
    assert_allclose(probability.sum(axis=1), 1)
    assert model.score(X, y) > 0.94
    assert_array_equal(model.predict(X), model.classes_[model.decision_function(X).argmax(axis=1)])
    fits = model.relevance_vectors_, model.relevance_indices_, model.dual_coef_
    for label, vectors, indices, coef in zip(model.classes_, *fits, strict=True):
        assert_array_equal(X[indices], vectors)
        assert_array_equal(np.sign(coef), np.where(y[indices] == label, 1, -1))
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict_proba(X), probability)
    coef, intercept = model.sample_posterior(5, random_state=0)
    assert [part.shape for part in coef] == [(5, len(part)) for part in model.dual_coef_]
    assert len(intercept) == 3


def test_integer_weights_are_repeated_rows(moons, truncation):
    X, y = moons
    weight = np.random.default_rng(0).integers(0, 3, size=len(y))
    model = machine(gamma=1.0, truncation=truncation, proba="plug-in")
    weighted = clone(model).fit(X, y, sample_weight=weight)
    repeated = clone(model).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert_allclose(weighted.log_evidence_, repeated.log_evidence_, rtol=1e-8)
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)
    assert (weight[weighted.relevance_indices_] > 0).all()
    assert_signs(weighted, y)


def test_weights_of_zero_with_a_precomputed_kernel(moons):
    X, y = moons
    weight = (np.arange(len(y)) % 3 > 0).astype(float)
    counts = weight > 0
    K = rbf_kernel(X, gamma=1.0)
    given = machine(kernel="precomputed").fit(K, y, sample_weight=weight)
    without = machine(kernel="precomputed").fit(K[np.ix_(counts, counts)], y[counts])
    assert_array_equal(given.relevance_indices_, np.flatnonzero(counts)[without.relevance_indices_])
    assert_allclose(given.predict_proba(K), without.predict_proba(K[:, counts]), rtol=1e-9)


def test_class_weight_is_sample_weight(moons):
    X, y = moons
    by_class = machine(gamma=1.0, class_weight={"upper": 2}).fit(X, y)
    by_row = machine(gamma=1.0).fit(X, y, sample_weight=np.where(y == "upper", 2, 1))
    assert_allclose(by_class.predict_proba(X), by_row.predict_proba(X), rtol=1e-9)


def test_kernels_by_name_as_function_and_precomputed_are_the_same(moons):
    X, y = moons
    new = X[:9] + 0.1
    named = machine(gamma=2.0).fit(X, y)
    by_hand = machine(kernel=lambda A, B: rbf_kernel(A, B, gamma=2.0)).fit(X, y)
    given = machine(kernel="precomputed").fit(rbf_kernel(X, gamma=2.0), y)
    assert_array_equal(given.relevance_indices_, named.relevance_indices_)
    assert given.relevance_vectors_ is None
    assert_allclose(by_hand.predict_proba(new), named.predict_proba(new), atol=1e-6)
    assert_allclose(given.predict_proba(rbf_kernel(new, X, gamma=2.0)), named.predict_proba(new), atol=1e-6)
    assert_allclose(
        cross_val_score(machine(kernel="precomputed"), rbf_kernel(X, gamma=2.0), y, cv=3),
        cross_val_score(machine(gamma=2.0), X, y, cv=3),
    )


# With the classes weighted 1000 to 0.0001, as one check does, the precisions run to their end: that is told.
@pytest.mark.filterwarnings("ignore:not converged")
def test_precomputed_passes_scikit_learns_checks():
    theirs = {"check_decision_proba_consistency": "gives a pairwise estimator rows with two features"}
    check_estimator(machine(kernel="precomputed"), expected_failed_checks=theirs, on_skip=None)


def test_a_precomputed_kernel_that_is_not_square_is_refused(moons):
    X, y = moons
    with pytest.raises(ValueError, match="kernel='precomputed' needs the square matrix"):
        machine(kernel="precomputed").fit(X, y)


def test_candidates_and_grid_search(moons):
    X, y = moons
    few = machine(candidates=30, random_state=1, gamma=1.0).fit(X, y)
    assert_array_equal(X[few.relevance_indices_], few.relevance_vectors_)
    assert_signs(few, y)
    assert few.score(X, y) > 0.85
    search = GridSearchCV(machine(), {"gamma": [1e-5, 1.0, 1e4]}, cv=3).fit(X, y)
    assert search.best_params_ == {"gamma": 1.0}


def test_a_steep_smooth_truncation_holds_more_vectors_than_the_bound(moons):
    """What docs/pcvm.md says of it: weights near zero are held there by the truncation itself."""
    X, y = moons
    exact = machine(gamma=1.0).fit(X, y)
    smooth = machine(gamma=1.0, truncation="smooth", steepness=20.0).fit(X, y)
    assert len(smooth.dual_coef_) > len(exact.dual_coef_)
    assert smooth.relevance_.min() < 0.5 * exact.relevance_.min()


# --- hostile data ---


def test_separable_classes(truncation):
    X = np.concatenate([np.linspace(-3, -1, 20), np.linspace(1, 3, 20)])[:, None]
    y = X[:, 0] > 0
    model = machine(truncation=truncation).fit(X, y)
    assert model.score(X, y) == 1
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.predict_proba([[-2.0]])[0, 0] > 0.8
    assert_signs(model, y)


def test_classes_that_cannot_be_told_apart(rng, truncation):
    X, y = rng.uniform(-10, 10, size=(100, 1)), rng.integers(0, 2, size=100)
    model = machine(gamma=0.01, truncation=truncation).fit(X, y)
    new, y_new = rng.uniform(-10, 10, size=(500, 1)), rng.integers(0, 2, size=500)
    loss = -np.log(model.predict_proba(new)[np.arange(500), y_new]).mean()
    assert loss < np.log(2) + 0.1


@pytest.mark.parametrize("n", [2, 3])
def test_very_few_rows(truncation, n):
    X = np.arange(n, dtype=float)[:, None]
    model = machine(truncation=truncation).fit(X, X[:, 0] > 0)
    assert np.isfinite(model.predict_proba(X)).all()


def test_one_vector_is_enough_for_one_place():
    X = np.concatenate([np.zeros(30), np.linspace(3, 9, 30), -np.linspace(3, 9, 30)])[:, None]
    y = X[:, 0] == 0
    y[:3] = False
    model = machine(gamma=1.0).fit(X, y)
    assert_array_equal(model.relevance_indices_, [3])  # the first row of its class there
    assert model.dual_coef_[0] > 0
    assert model.intercept_[0] < 0
    assert_allclose(model.predict_proba([[0.0]])[0, 1], 0.9, atol=0.05)


def test_nothing_to_learn_leaves_the_intercept():
    X, y = np.tile(np.arange(4.0), 4)[:, None], np.repeat([0, 1, 1, 1], 4)  # every input has all the classes alike
    model = machine().fit(X, y)
    assert len(model.dual_coef_) == 0
    assert_allclose(model.predict_proba(X)[:, 1], 0.75, atol=0.05)
    assert model.intercept_[0] == pytest.approx(np.log(3))


def test_duplicate_rows_and_constant_columns(moons):
    X, y = moons
    X, y = np.column_stack([np.repeat(X, 2, axis=0), np.full(2 * len(X), 7.0)]), np.repeat(y, 2)
    model = machine(gamma=1.0).fit(X, y)
    assert model.score(X, y) > 0.9
    assert len(np.unique(model.relevance_vectors_, axis=0)) == len(model.relevance_vectors_)
    assert_signs(model, y)


def test_an_input_with_both_classes_may_speak_for_either():
    """Four places with shares of the second class of 0.9, 0.1, 0.6, 0.4: each can be a vector of the larger one."""
    X = np.repeat([[0.0], [10.0], [20.0], [30.0]], 50, axis=0)
    y = np.concatenate([np.arange(50) < 50 * share for share in (0.9, 0.1, 0.6, 0.4)])
    model = machine(gamma=1.0, fit_intercept=False).fit(X, y)
    assert_signs(model, y)
    coef = dict(zip(X[model.relevance_indices_, 0], model.dual_coef_, strict=True))
    assert coef[0.0] > 0 > coef[10.0]
    assert_allclose([coef[0.0], coef[10.0]], [np.log(9), -np.log(9)], rtol=0.1)  # shrunk by the prior
    first = {
        (place, label): np.flatnonzero((X[:, 0] == place) & (y == label))[0] for place in (0, 10) for label in (0, 1)
    }
    assert {first[0, 1], first[10, 0]} <= set(model.relevance_indices_)


def test_running_out_of_steps_is_told(moons):
    with pytest.warns(UserWarning, match="max_iter"):
        model = machine(max_iter=2).fit(*moons)
    assert not model.converged_
    assert model.optimality_gap_ > model.tol
