"""`SparseLogisticRegression` in any units, on hostile data, and when it does not end well."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from inferences import ard_inference, every_pair
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.class_weight import compute_class_weight

from sparsebayes import SparseLogisticRegression

# --- units ---


@ard_inference
@pytest.mark.parametrize("min_gain", ["auto", 0.0])
def test_units_of_columns_do_not_matter(inference, min_gain, make_classes):
    X, y = make_classes()
    unit = 10.0 ** np.array([3, -3, 0, 3, -3, 1, 2, -1])
    model = SparseLogisticRegression(average=False, inference=inference, min_gain=min_gain)
    one, other = clone(model).fit(X, y), clone(model).fit(X * unit, y)
    assert_array_equal(one.active_, other.active_)
    assert_allclose(other.coef_ * unit, one.coef_, atol=1e-6)
    assert_allclose(other.predict_proba(X * unit), one.predict_proba(X), atol=1e-6)
    assert_allclose(other.log_evidence_, one.log_evidence_, rtol=1e-8)


@every_pair
def test_place_of_the_origin_does_not_matter(prior, inference, make_classes):
    X, y = make_classes()
    model = SparseLogisticRegression(average=False, prior=prior, inference=inference)
    one, other = clone(model).fit(X, y), clone(model).fit(X + 1e4, y)
    assert_array_equal(one.active_, other.active_)
    assert_allclose(other.coef_, one.coef_, atol=1e-5)
    assert_allclose(other.predict_proba(X + 1e4), one.predict_proba(X), atol=1e-5)


# --- hostile data ---


@pytest.mark.parametrize(
    "case", ["separable", "off centre", "nearly separable", "one of a class", "contradiction", "two rows"]
)
@every_pair
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_hard_data_have_sensible_probabilities(prior, inference, case, rng):
    n = 2 if case == "two rows" else 40
    X = rng.standard_normal((n, 4))
    y = (X[:, 0] > 0).astype(int)
    if case == "off centre":  # still separable
        y[np.argmin(np.abs(X[:, 0]))] ^= 1
    if case == "nearly separable":
        y[np.argsort(np.abs(X[:, 0]))[5]] ^= 1
    if case == "one of a class":
        y = (np.arange(n) == np.argmax(X[:, 0])).astype(int)
    if case == "contradiction":
        X, y = np.repeat(X[:20], 2, axis=0), np.tile([0, 1], 20)
    if case == "two rows":
        y = np.array([0, 1])
    model = SparseLogisticRegression(average=False, prior=prior, inference=inference, max_iter=500).fit(X, y)
    p = model.predict_proba(X)[:, 1]
    assert np.isfinite(model.coef_).all()
    assert np.abs(model.intercept_).max() < 1e6
    assert -1e3 < model.log_evidence_ < 10
    assert np.isfinite(p).all()
    if case == "contradiction":
        assert_allclose(p, 0.5, atol=1e-6)
    elif case == "two rows":
        assert p[1] >= p[0]
    elif case == "one of a class":
        assert p[y == 1] >= p[y == 0].max()
        assert 0.005 < p.mean() < 0.15
    else:
        assert np.mean((p > 0.5) == y) >= 0.9
        assert p[y == 1].mean() > 0.7 > 0.3 > p[y == 0].mean()


@ard_inference
def test_constant_and_copied_columns(inference, make_classes):
    X, y = make_classes()
    X = np.column_stack([X, X[:, 0], np.full(len(X), 7.0)])
    model = SparseLogisticRegression(average=False, inference=inference).fit(X, y)
    plain = SparseLogisticRegression(average=False, inference=inference).fit(X[:, :8], y)
    assert model.coef_[0, -1] == 0
    assert_allclose(model.predict_proba(X), plain.predict_proba(X[:, :8]), atol=1e-3)
    assert (model.coef_[0, [0, 8]] != 0).sum() == 1


@pytest.mark.parametrize("prior", ["ard", "ridge"])
def test_many_features_need_no_square_matrix(prior, make_classes):
    X, y = make_classes(60, 3000, 3, size=3.0)
    tracemalloc.start()
    model = SparseLogisticRegression(average=False, prior=prior, tol=1e-3).fit(X, y)
    model.predict_proba(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3000**2 * 8 / 2
    assert np.isfinite(model.coef_).all()


# --- when it does not end well ---


@every_pair
def test_too_few_iterations_are_told(prior, inference, make_classes):
    X, y = make_classes()
    model = SparseLogisticRegression(average=False, prior=prior, inference=inference, min_gain=0, max_iter=1)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model.fit(X, y)
    assert not model.converged_
    assert model.n_iter_ == 1
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_failed_fit_leaves_nothing(make_classes):
    X, y = make_classes()
    model = SparseLogisticRegression(average=False).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X, y)
    with pytest.raises(ValueError, match="one class"):
        model.fit(X, np.zeros(len(y)))
    assert not hasattr(model, "classes_")


@pytest.mark.parametrize(
    "wrong", [{"prior": "horseshoe"}, {"penalty": 0}, {"min_gain": -1}, {"tol": 0}, {"proba": "logit"}], ids=str
)
def test_wrong_parameters_are_refused(wrong, make_classes):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SparseLogisticRegression(average=False, **wrong).fit(*make_classes())


@pytest.mark.parametrize(
    "options",
    [
        {"inference": "laplace"},
        {"inference": "variational"},
        {"inference": "reweighted-l1"},
        {"min_gain": "auto"},
        {"prior": "ridge"},
        {"multi_class": "softmax"},
    ],
    ids=str,
)
def test_max_scale_bounds_the_prior_of_every_weight(options, make_classes):
    X, y = make_classes(80, 5, 2, size=4.0)
    if options.get("multi_class"):
        y = y + (X[:, 1] > 1)
    X = X * [1.0, 10.0, 0.1, 1.0, 1.0]
    if options.get("prior") == "ridge":
        X /= X.std(axis=0)  # ridge means the user's units: here they are standard
    parameters = {"min_gain": 0, "tol": 1e-4, **options}
    free = SparseLogisticRegression(average=False, **parameters).fit(X, y)
    bound = SparseLogisticRegression(average=False, max_scale=0.5, **parameters).fit(X, y)

    def largest_scale(model):
        active, precision = model.active_, model.precision_
        pairs = zip(active, precision, strict=True) if isinstance(active, list) else [(active, precision)]
        return max(float((X.std(axis=0)[kept] / np.sqrt(alpha)).max(initial=0)) for kept, alpha in pairs)

    assert largest_scale(free) > 0.6
    assert_allclose(largest_scale(bound), 0.5, rtol=1e-6)
    assert bound.log_evidence_ < free.log_evidence_


def test_max_scale_makes_redundant_features_share_the_work():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 2, 1100)
    X = rng.standard_normal((1100, 1000))
    X[:, :12] += 0.6 * (2 * y[:, None] - 1)
    found, error = {}, {}
    for scale in (1000.0, 0.5):
        model = SparseLogisticRegression(average=False, min_gain=0, max_scale=scale, tol=1e-3).fit(X[:100], y[:100])
        found[scale] = (model.active_ < 12).sum()
        error[scale] = 1 - model.score(X[100:], y[100:])
    assert found[0.5] > found[1000.0]
    assert found[0.5] >= 9
    assert error[0.5] < 0.7 * error[1000.0]


@pytest.mark.parametrize("name", ["colon_alon", "leukemia_golub"])
def test_genes(name):
    path = Path(__file__).parents[3] / "shared" / "data" / "sets" / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"needs {path.name} of the shared data sets, which are not part of the package")
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    X, y = table[:, :-1], table[:, -1]
    X = np.log(X) if (X > 0).all() else X
    model = make_pipeline(
        StandardScaler(), SparseLogisticRegression(average=False, min_gain=0, max_scale=0.5, tol=1e-3)
    )
    assert cross_val_score(model, X, y, cv=StratifiedKFold(10, shuffle=True, random_state=0)).mean() > 0.85
    assert len(model.fit(X, y)[-1].active_) < 60


def test_balanced_weights_are_those_of_scikit_learn(make_classes):
    X, y = make_classes(90, 4, 2, offset=1.5)
    weight = compute_class_weight("balanced", classes=np.array([0, 1]), y=y)
    balanced = SparseLogisticRegression(average=False, min_gain=0, class_weight="balanced").fit(X, y)
    by_hand = SparseLogisticRegression(average=False, min_gain=0, class_weight=dict(enumerate(weight))).fit(X, y)
    plain = SparseLogisticRegression(average=False, min_gain=0).fit(X, y)
    assert_allclose(balanced.coef_, by_hand.coef_, rtol=1e-8)
    assert balanced.intercept_ < plain.intercept_ - 0.1
