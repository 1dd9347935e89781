"""`fit_moments` against `fit` on the rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsebayes import ARDRegressor, Moments

FORMS = (
    {},
    {"average": False},
    {"average": False, "fit_intercept": False},
    {"average": False, "intercept_prior": "ard"},
    {"average": False, "solver": "em"},
    {"average": False, "solver": "reweighted-l1"},
    {"min_gain": 0.0},
    {"fit_intercept": False},
)


def data(rng, n=80, d=12):
    X = rng.standard_normal((n, d)) * np.logspace(-2, 2, d) + rng.uniform(-5, 5, d)
    X[:, 5] = 3.3 if n > d else 0.0
    return X, X[:, [0, 8]] @ [50.0, -0.5] + rng.standard_normal(n) + 4


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_the_model_is_that_of_the_rows(form, rng):
    X, y = data(rng)
    if "intercept_prior" in form:
        X[:, 5] = rng.standard_normal(80)  # a constant column could stand in for the intercept
    if not form.get("fit_intercept", True):
        X -= (
            X.mean(axis=0) - 1e-2
        )  # columns far from zero are nearly dependent, and the two ways then round differently
    rows, moments = ARDRegressor(**form).fit(X, y), ARDRegressor(**form).fit_moments(Moments.of(X, y))
    assert_array_equal(moments.active_, rows.active_)
    assert_allclose(moments.coef_, rows.coef_, rtol=1e-9, atol=1e-11)
    assert_allclose(moments.log_evidence_, rows.log_evidence_, rtol=1e-10)
    for found, expected in zip(moments.predict(X, return_std=True), rows.predict(X, return_std=True), strict=True):
        assert_allclose(found, expected, rtol=1e-8)
    assert_allclose(moments.predict_interval(X), rows.predict_interval(X), rtol=1e-8)


def test_more_features_than_rows(rng):
    X, y = data(rng, 25, 60)
    rows, moments = (
        ARDRegressor(average=False).fit(X, y),
        ARDRegressor(average=False).fit_moments(Moments.of(X, y)),
    )
    assert_allclose(moments.coef_, rows.coef_, rtol=1e-9, atol=1e-12)
    averaged, expected = ARDRegressor().fit_moments(Moments.of(X, y)), ARDRegressor().fit(X, y)
    assert_allclose(averaged.inclusion_probability_, expected.inclusion_probability_, atol=0.14)  # two chain errors


def test_averages_weights_and_credible_sets(rng):
    X, y = data(rng)
    X[:, 9] = X[:, 8] + 10 * rng.standard_normal(80)
    weight = rng.integers(1, 4, 80).astype(float)
    rows = ARDRegressor().fit(X, y, sample_weight=weight)
    moments = ARDRegressor().fit_moments(Moments.of(X, y, weight))
    assert_allclose(moments.inclusion_probability_, rows.inclusion_probability_, rtol=1e-8)
    for found, expected in zip(moments.credible_sets_, rows.credible_sets_, strict=True):
        assert_array_equal(found.features, expected.features)
        assert found.purity == pytest.approx(expected.purity, rel=1e-9)


def test_several_targets_and_names(rng):
    X, y = data(rng)
    Y = np.column_stack([y, X[:, 3] + 0.1 * rng.standard_normal(80), np.full(80, 2.5)])
    names = [f"x{j}" for j in range(12)]
    rows = ARDRegressor().fit(X, Y)
    moments = ARDRegressor().fit_moments(Moments.of(X, Y), feature_names=names)
    assert_allclose(moments.coef_, rows.coef_, rtol=1e-9, atol=1e-11)
    assert_allclose(moments.noise_variance_, rows.noise_variance_, rtol=1e-9)
    assert moments.feature_names_in_.tolist() == names
    assert not hasattr(moments.fit_moments(Moments.of(X, y)), "feature_names_in_")


def test_units_of_the_data_do_not_matter(rng):
    X, y = data(rng)
    plain = ARDRegressor().fit_moments(Moments.of(X, y))
    scaled = ARDRegressor().fit_moments(Moments.of(X * 1e6, y * 1e-6 - 3))
    assert_allclose(scaled.coef_, plain.coef_ * 1e-12, rtol=1e-6, atol=1e-22)


def test_warm_start_goes_on(rng):
    X, y = data(rng)
    model = ARDRegressor(average=False, warm_start=True).fit_moments(Moments.of(X, y))
    steps = model.n_iter_
    assert model.fit_moments(Moments.of(X, y)).n_iter_ < steps


@pytest.mark.parametrize(
    ("parameters", "moments", "message"),
    [
        ({"noise": "student"}, Moments(10, np.zeros(2), np.eye(2)), "noise='gaussian'"),
        ({}, Moments(2, np.zeros(2), np.eye(2)), "2 rows: give at least 3"),
        ({}, Moments(5, np.zeros(1), np.eye(1)), "no features"),
        ({}, np.eye(3), "must be a sparsebayes.Moments"),
    ],
)
def test_what_cannot_be_fitted_is_refused(parameters, moments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ARDRegressor(**parameters).fit_moments(moments)


def test_wrong_number_of_names():
    with pytest.raises(ValueError, match="feature_names has 2 names"):
        ARDRegressor().fit_moments(Moments(9, np.zeros(2), np.eye(2)), feature_names=["a", "b"])
