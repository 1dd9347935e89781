"""PFCVMClassifier by default: feature weights of a Gaussian process, and the model on them that predicts better."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsebayes import PFCVMClassifier, RVMClassifier, load, save
from sparsebayes.engine.theta_model import label_values
from sparsebayes.estimators import _label_process as labels
from sparsebayes.estimators._feature_weights import FeatureWeights, StandardInputs


def ring(n=120, seed=0):
    """Inside or outside of a circle in the features 1 and 3 of six."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6))
    far = (X[:, [1, 3]] ** 2).sum(axis=1) + 0.3 * rng.standard_normal(n) > 1.4
    return X, np.where(far, "out", "in")


def shells(n=90, seed=0):
    """All of 20 features say a little: two shifted clouds."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return rng.standard_normal((n, 20)) + 0.7 * y[:, None], y


@pytest.fixture(scope="module")
def fitted():
    X, y = ring()
    return X, y, PFCVMClassifier().fit(X, y)


def test_the_features_that_matter_are_found(fitted):
    X, y, model = fitted
    assert_array_equal(model.get_support(indices=True), [1, 3])
    X_new, y_new = ring(1000, seed=1)
    assert 1 - model.score(X_new, y_new) < 0.6 * (1 - RVMClassifier().fit(X, y).score(X_new, y_new))
    assert (model.feature_relevance_[[1, 3]] > 0.5).all()
    assert np.isfinite(model.restart_scores_).all()


def test_where_all_features_say_a_little_they_share_one_weight():
    X, y = shells()
    X_new, y_new = shells(1000, seed=1)
    model = PFCVMClassifier().fit(X, y)
    assert model.get_support().all()
    shared = [model.feature_weights_ * unit**2 for unit in (X.std(axis=0), np.ptp(X, axis=0))]
    assert min(np.ptp(each) / each.mean() for each in shared) < 1e-9
    # Over ten draws RVMClassifier, which compares units more finely, is better by 0.6 ± 0.4 points; here by 2.2.
    assert model.score(X_new, y_new) > RVMClassifier().fit(X, y).score(X_new, y_new) - 0.03
    assert model.score(X_new, y_new) > PFCVMClassifier(vectors="sparse").fit(X, y).score(X_new, y_new)


def test_a_price_of_the_user_asks_for_a_weight_each():
    X, y = shells()
    assert len(np.unique(PFCVMClassifier(min_gain=1.0, n_restarts=1).fit(X, y).feature_weights_)) > 2


def test_held_out_labels_choose_between_machine_and_process(fitted, monkeypatch):
    X, y, _ = fitted
    kept = {}
    for best in ("sparse", "odds", "squares"):
        judged = labels.Judged({best: 1.0}, [])
        monkeypatch.setattr(labels.Rivals, "judge", lambda *_, judged=judged: judged)
        kept[best] = PFCVMClassifier(n_restarts=1).fit(X, y)
    few, many = kept["sparse"], kept["squares"]
    signs = np.where(y[few.relevance_indices_] == "out", 1, -1)
    assert_array_equal(np.sign(few.dual_coef_), signs)
    assert len(few.dual_coef_) < len(many.dual_coef_)
    # The process for the labels has the same shares of the features, in a kernel of its own size.
    ratio = many.feature_weights_[[1, 3]] / few.feature_weights_[[1, 3]]
    assert_allclose(ratio, ratio[0], rtol=1e-9)
    assert abs(np.log(ratio[0])) > 0.1
    assert_array_equal(few.feature_weights_, kept["odds"].feature_weights_)
    every = PFCVMClassifier(n_restarts=1, vectors="all").fit(X, y)
    assert_array_equal(every.predict_proba(X), many.predict_proba(X))
    assert np.abs(kept["odds"].predict_proba(X) - many.predict_proba(X)).max() > 0.01


def test_the_machine_takes_its_vectors_from_the_centres_of_the_process(fitted):
    """A smooth kernel has few different columns; a search among all of them would crawl."""
    X, y, model = fitted
    everywhere = PFCVMClassifier(vectors="all").fit(X, y)
    if len(model.dual_coef_) < len(everywhere.dual_coef_):
        assert np.isin(model.relevance_indices_, everywhere.relevance_indices_).all()
    assert len(everywhere.dual_coef_) < len(X)


def test_units_order_and_repetitions(fitted):
    X, y, model = fitted
    unit, origin = np.array([1e-3, 50.0, 1.0, 0.1, 1e4, 1.0]), np.array([0.0, 20.0, -5.0, 1.0, 0.0, 2.0])
    moved = PFCVMClassifier().fit(X * unit + origin, y)
    assert_allclose(moved.feature_weights_ * unit**2, model.feature_weights_, rtol=1e-2)
    assert_allclose(moved.predict_proba(X * unit + origin), model.predict_proba(X), atol=2e-3)
    order = np.random.default_rng(0).permutation(len(X))
    mixed = PFCVMClassifier().fit(X[order], y[order])
    assert_allclose(mixed.feature_weights_, model.feature_weights_, rtol=1e-9)
    assert_allclose(mixed.predict_proba(X), model.predict_proba(X), atol=1e-6)
    columns = np.array([3, 0, 5, 4, 1, 2])
    turned = PFCVMClassifier().fit(np.asfortranarray(X[:, columns]), y)
    assert_allclose(turned.feature_weights_, model.feature_weights_[columns], rtol=1e-2)


def test_weights_are_repetitions():
    X, y = ring(80)
    times = np.random.default_rng(1).integers(1, 3, 80)
    weighted = PFCVMClassifier(n_restarts=1).fit(X, y, times)
    repeated = PFCVMClassifier(n_restarts=1).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert_allclose(weighted.feature_weights_, repeated.feature_weights_, rtol=1e-6)
    assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-4)


def test_saved_and_loaded(fitted, tmp_path):
    X, _, model = fitted
    save(model, tmp_path / "model.sbm")
    assert_array_equal(load(tmp_path / "model.sbm").predict_proba(X), model.predict_proba(X))


def test_labels_that_hang_on_nothing():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((80, 5)), rng.integers(0, 2, 80)
    model = PFCVMClassifier(n_restarts=1).fit(X, y)
    probability = model.predict_proba(rng.standard_normal((500, 5)))[:, 1]
    assert np.abs(probability - y.mean()).mean() < 0.15


@pytest.mark.parametrize("in_range", [True, False])
def test_the_weight_that_all_features_share_is_in_units_of_deviation_or_range(in_range):
    """Whichever has the larger evidence: two features are nearly binary, two have thin tails."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.beta(0.2, 0.2, (200, 2)), rng.uniform(size=(200, 2, 8)).mean(axis=2)])
    units = {True: np.ptp(X, axis=0), False: X.std(axis=0)}
    waves = np.sin((1.5 + 4.5 * in_range) * (X - X.mean(axis=0)) / units[in_range]).sum(axis=1)
    inputs = StandardInputs.of(X, (waves > np.median(waves)).astype(float), np.ones(200), X)
    values = label_values(inputs.y, inputs.weight, True)
    found = FeatureWeights.of(PFCVMClassifier()).find_common(inputs, values, True)
    shared = found.weights * units[in_range] ** 2
    assert_allclose(shared, shared.mean(), rtol=1e-6)
    other = found.weights * units[not in_range] ** 2
    assert np.ptp(other) > other.mean()
