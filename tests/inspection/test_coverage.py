import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom
from sklearn.calibration import calibration_curve
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsebayes import ARDRegressor, SparseLogisticRegression
from sparsebayes.inspection import CoverageDisplay


def test_shares_of_intervals_are_counted(make_data):
    X, y = make_data(200, 5, noise=2.0)
    model = ARDRegressor().fit(X[:100], y[:100])
    shown = CoverageDisplay.from_estimator(model, X[100:], y[100:], levels=(0.5, 0.9))
    for level, share in zip((0.5, 0.9), shown.observed, strict=True):
        inside = [
            low <= value <= high
            for value, (low, high) in zip(y[100:], model.predict_interval(X[100:], level), strict=True)
        ]
        assert share == np.mean(inside)
    assert_array_equal(shown.count, [100, 100])
    assert f"The 90 % intervals contain {100 * shown.observed[1]:.3g} % of 100 rows" in shown.text()
    scaled = make_pipeline(StandardScaler(), ARDRegressor()).fit(X[:100], y[:100])
    assert_allclose(
        CoverageDisplay.from_estimator(scaled, X[100:], y[100:], levels=(0.5, 0.9)).observed, shown.observed
    )


def test_several_outputs(make_data):
    X, y = make_data(100, 5, noise=2.0)
    model = ARDRegressor().fit(X, np.column_stack([y, y + X[:, 4]]))
    one = CoverageDisplay.from_estimator(model, X, np.column_stack([y, np.full(100, 1e9)]), output=0)
    two = CoverageDisplay.from_estimator(model, X, np.column_stack([y, np.full(100, 1e9)]), output=1)
    assert one.observed.min() > 0
    assert_array_equal(two.observed, 0.0)


@pytest.mark.parametrize("digits", [1, 15])
def test_probabilities_are_those_of_scikit_learns_calibration_curve(digits):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=500).round(digits)  # with one digit many lie on the edges of the bins
    came = rng.uniform(size=500) < p
    shown = CoverageDisplay.from_probabilities(came, p, n_bins=8)
    observed, nominal = calibration_curve(came, p, n_bins=8, strategy="quantile")
    assert_allclose(shown.observed, observed)
    assert_allclose(shown.nominal, nominal)
    assert shown.count.sum() == 500


def test_probabilities_that_are_all_the_same_are_one_point():
    shown = CoverageDisplay.from_probabilities(np.array([True, False, True, True]), np.full(4, 0.7))
    assert_allclose([shown.nominal, shown.observed], [[0.7], [0.75]])
    assert_array_equal(shown.count, [4])


def test_the_band_holds_a_model_that_tells_the_truth():
    """The range by chance, against a simulation of the rows themselves."""
    rng = np.random.default_rng(0)
    shown = CoverageDisplay(
        nominal=np.array([0.3, 0.9]), observed=np.zeros(2), count=np.array([50, 80]), kind="interval"
    )
    shares = rng.binomial(shown.count, shown.nominal, size=(20_000, 2)) / shown.count
    held = ((shown.lower <= shares) & (shares <= shown.upper)).mean(axis=0)
    assert (held >= 0.95 - 0.01).all()  # a discrete share is held a little more often than asked for
    # No narrower range with the same ends' probability would do.
    assert (binom.cdf(shown.count * shown.lower - 1, shown.count, shown.nominal) <= 0.025).all()
    assert (binom.sf(shown.count * shown.upper, shown.count, shown.nominal) <= 0.025).all()


def test_points_outside_the_band_are_diamonds():
    count = np.full(3, 100)
    shown = CoverageDisplay(
        nominal=np.array([0.2, 0.5, 0.8]), observed=np.array([0.21, 0.9, 0.8]), count=count, kind="interval"
    ).plot()
    assert_array_equal(shown.inside, [True, False, True])
    _, line, inside, outside = shown.ax_.lines
    assert_array_equal(line.get_xydata(), np.column_stack([shown.nominal, shown.observed]))
    assert_array_equal(inside.get_xydata(), [[0.2, 0.21], [0.8, 0.8]])
    assert_array_equal(outside.get_xydata(), [[0.5, 0.9]])
    assert outside.get_marker() == "D"
    assert "2 of 3 points" in shown.text()


def test_classes(make_data):
    X, y = make_data(400, 4, noise=2.0)
    train, test = slice(200), slice(200, 400)
    two = np.where(y > 0, "yes", "no")
    model = SparseLogisticRegression(average=False).fit(X[train], two[train])
    shown = CoverageDisplay.from_estimator(model, X[test], two[test], n_bins=5)
    p = model.predict_proba(X[test])[:, 1]
    assert_allclose(np.average(shown.nominal, weights=shown.count), p.mean())
    assert_allclose(np.average(shown.observed, weights=shown.count), (two[test] == "yes").mean())
    no = CoverageDisplay.from_estimator(model, X[test], two[test], n_bins=5, output="no")
    assert_allclose(np.average(no.nominal, weights=no.count), 1 - p.mean())
    three = np.digitize(y, [-2, 2])
    model = SparseLogisticRegression(average=False).fit(X[train], three[train])
    top = CoverageDisplay.from_estimator(model, X[test], three[test])
    assert_allclose(np.average(top.observed, weights=top.count), model.score(X[test], three[test]))
    assert_allclose(np.average(top.nominal, weights=top.count), model.predict_proba(X[test]).max(axis=1).mean())
    assert top.plot().ax_.get_xlabel() == "predicted probability"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: CoverageDisplay.from_intervals([1.0], [[[0, 1]]], [0.5, 0.9]), "intervals has shape"),
        (lambda: CoverageDisplay.from_probabilities([True], [0.5, 0.5]), "came has shape"),
        (lambda: CoverageDisplay.from_probabilities([True], [0.5], n_bins=0), "n_bins=0"),
    ],
)
def test_complaints_name_the_fault(call, message):
    with pytest.raises(ValueError, match=message):
        call()
