"""Features that enter and leave together: regression, classes and counts, one model and averaged."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

from sparsebayes import ARDRegressor, SparseLogisticRegression, SparsePoissonRegressor, load, save
from sparsebayes.estimators._groups import labels_of

LABELS = np.repeat(np.arange(12), 3)
TRUE = [2, 7]


def draw(n=150, seed=0, kind="numbers"):
    """Twelve groups of three correlated features, two of which matter."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, 12, 1)) + rng.standard_normal((n, 12, 3))).reshape(n, 36)
    eta = X[:, np.isin(LABELS, TRUE)] @ np.array([1.0, -0.7, 0.8, -1.0, 0.6, -0.9])
    if kind == "classes":
        return X, eta + rng.logistic(size=n) > 0
    return X, rng.poisson(np.exp(0.4 * eta)) if kind == "counts" else eta + rng.standard_normal(n)


MODELS = {
    "numbers": (ARDRegressor, {}),
    "student": (ARDRegressor, {"noise": "student"}),
    "classes": (SparseLogisticRegression, {}),
    "variational": (SparseLogisticRegression, {"inference": "variational"}),
    "counts": (SparsePoissonRegressor, {}),
}


@pytest.fixture(params=MODELS)
def case(request):
    cls, options = MODELS[request.param]
    kind = {"student": "numbers", "variational": "classes"}.get(request.param, request.param)
    return cls, options, draw(300 if kind == "classes" else 150, kind=kind)


def test_groups_that_matter_are_kept_as_a_whole(case):
    cls, options, (X, y) = case
    model = cls(groups=LABELS, average=False, **options).fit(X, y)
    assert_array_equal(np.unique(LABELS[np.ravel(model.active_)]), TRUE)
    assert len(np.ravel(model.active_)) == 6
    # One precision for a group, in units of its features' variances.
    relative = np.ravel(model.precision_) / X[:, np.ravel(model.active_)].var(axis=0)
    assert_allclose(relative, np.repeat(relative[::3], 3), rtol=1e-6)
    assert np.ravel(model.group_relevance_).shape == (12,)
    assert (np.ravel(model.group_relevance_)[TRUE] > 0.5).all()
    assert np.ravel(model.group_relevance_).astype(bool).sum() == 2
    worth = np.ravel(model.gain_).reshape(12, 3)
    assert_array_equal(worth, worth[:, :1].repeat(3, axis=1))
    assert (worth[TRUE] > model.min_gain_).all()


def test_averages_flip_whole_groups(case):
    cls, options, (X, y) = case
    if options:
        pytest.skip("this form does not average")
    model = cls(groups=LABELS, average=True, n_chains=2, max_flips=400).fit(X, y)
    probability = np.ravel(model.inclusion_probability_).reshape(12, 3)
    assert_array_equal(probability, probability[:, :1].repeat(3, axis=1))
    assert_array_equal(np.ravel(model.group_inclusion_probability_), probability[:, 0])
    assert (probability[TRUE] > 0.95).all()
    assert np.delete(probability[:, 0], TRUE).max() < 0.5
    # Draws have whole groups.
    drawn = model.sample_posterior(50, random_state=0)[0].reshape(50, 36)
    assert_array_equal((drawn != 0).reshape(50, 12, 3).any(axis=2), (drawn != 0).reshape(50, 12, 3).all(axis=2))


def test_evidence_is_that_of_the_density():
    X, y = draw()
    model = ARDRegressor(groups=LABELS, average=False, fit_intercept=False).fit(X, y)
    Phi = X[:, model.active_]
    C = model.noise_variance_ * np.eye(150) + (Phi / model.precision_) @ Phi.T
    assert model.log_evidence_ == pytest.approx(multivariate_normal(np.zeros(150), C).logpdf(y), rel=1e-9)
    assert model.min_gain_ == pytest.approx(np.log(12))


def test_groups_in_any_form_and_order():
    X, y = draw()
    names = np.array([f"g{k}" for k in LABELS])
    lists = [[int(j) for j in np.flatnonzero(k == LABELS)] for k in range(11)]  # the last three on their own
    here = ARDRegressor(groups=names, average=False).fit(X, y)
    for groups in (LABELS, LABELS.tolist(), names.tolist(), -5 * LABELS):
        assert_array_equal(ARDRegressor(groups=groups, average=False).fit(X, y).coef_, here.coef_)
    some = ARDRegressor(groups=lists, average=False).fit(X, y)
    assert len(np.unique(some.groups_)) == 14
    assert_array_equal(some.active_, here.active_)
    order = np.random.default_rng(0).permutation(36)
    moved = ARDRegressor(groups=LABELS[order], average=False).fit(1e3 * X[:, order], 1e-3 * y)
    assert_allclose(moved.coef_, 1e-6 * here.coef_[order], rtol=1e-5, atol=1e-14)


def test_groups_of_one_feature_are_features():
    X, y = draw()
    plain, groups = (ARDRegressor(groups=each, average=False).fit(X, y) for each in (None, np.arange(36)))
    assert_array_equal(groups.active_, plain.active_)
    assert_allclose(groups.coef_, plain.coef_, atol=1e-4)
    assert not hasattr(plain, "groups_")


def test_one_vs_rest_has_groups_for_each_class():
    rng = np.random.default_rng(0)
    X, _ = draw(300)
    y = np.argmax(
        np.column_stack([2 * X[:, 0] + X[:, 1], 2 * X[:, 3] - X[:, 5], np.zeros(300)]) + rng.gumbel(size=(300, 3)), 1
    )
    model = SparseLogisticRegression(groups=LABELS, average=False).fit(X, y)
    assert model.group_relevance_.shape == (3, 12)
    assert 0 in LABELS[model.active_[0]]
    assert 1 in LABELS[model.active_[1]]


def test_a_column_of_one_value_may_be_in_a_group():
    X, y = draw()
    X[:, 6] = 3.0  # of group 2
    for average in (False, True):
        model = ARDRegressor(groups=LABELS, average=average, n_chains=2, max_flips=300).fit(X, y)
        assert set(LABELS[model.active_]) >= {2}
        assert model.coef_[6] == 0
        assert np.isfinite(model.predict(X, return_std=True)[1]).all()


def test_copies_of_a_column_may_be_in_a_group():
    X, y = draw()
    X[:, 7] = -2 * X[:, 6]  # both of group 2
    for average in (False, True):
        model = ARDRegressor(groups=LABELS, average=average, n_chains=2, max_flips=300).fit(X, y)
        assert set(LABELS[model.active_]) == set(TRUE)
        assert_allclose(model.coef_[7], -0.5 * model.coef_[6] * 1.0, rtol=1e-6)  # alike in units of their spread


def test_it_is_saved(tmp_path):
    X, y = draw()
    model = ARDRegressor(groups=[[0, 1, 2], [3, 4]], n_chains=2, max_flips=200).fit(X, y)
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    assert_array_equal(again.predict(X), model.predict(X))
    assert_array_equal(again.groups_, model.groups_)


@pytest.mark.parametrize(
    ("groups", "named"),
    [
        (np.arange(35), r"shape \(35,\)"),
        ([[0, 1], [1, 2]], "in a group already"),
        ([[0, 36]], "column 36"),
        ([[0, -1]], "column"),
        ([[0], []], "not empty"),
        ([[0.5, 1.5]], "column numbers"),
        (np.full(36, np.nan), "not finite"),
    ],
)
def test_groups_that_make_no_sense_are_refused(groups, named):
    X, y = draw()
    with pytest.raises(ValueError, match=named):
        ARDRegressor(groups=groups).fit(X, y)


@pytest.mark.parametrize(
    ("cls", "options", "named"),
    [
        (ARDRegressor, {"solver": "em"}, "solver"),
        (ARDRegressor, {"a": 1.0}, "a=b=0"),
        (ARDRegressor, {"min_gain": 0.0}, "positive min_gain"),
        (ARDRegressor, {"min_gain": np.ones(36)}, "one number"),
        (ARDRegressor, {"min_gain": {0: 1.0}}, "one number"),
        (SparseLogisticRegression, {"prior": "ridge"}, "prior='ard'"),
        (SparseLogisticRegression, {"inference": "reweighted-l1"}, "inference"),
        (SparsePoissonRegressor, {"min_gain": 0.0}, "positive min_gain"),
    ],
)
def test_what_does_not_go_together_is_named(cls, options, named):
    kind = {SparseLogisticRegression: "classes", SparsePoissonRegressor: "counts"}.get(cls, "numbers")
    X, y = draw(kind=kind)
    with pytest.raises(ValueError, match=named):
        cls(groups=LABELS, **options).fit(X, y)


def test_labels():
    assert_array_equal(labels_of(["b", "a", "b"], 3), [1, 0, 1])
    assert_array_equal(labels_of([[2], [0, 3]], 5), [1, 2, 0, 1, 3])
