"""ARDRegressor(noise="outliers"): gross errors are named, and change neither what is kept nor the error."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsebayes import ARDRegressor, load, save

WEIGHTS = np.linspace(0.4, 1.5, 8) * (-1) ** np.arange(8)


def draw(seed=0, share=0.1, n=200, d=100):
    """Eight true features, noise of standard deviation ½, gross errors of either sign, and clean new rows."""
    rng = np.random.default_rng([seed, n, d])
    X, fresh = rng.standard_normal((n, d)), rng.standard_normal((1000, d))
    y, new = (3 + each[:, :8] @ WEIGHTS + 0.5 * rng.standard_normal(len(each)) for each in (X, fresh))
    bad = rng.permutation(n) < round(share * n)
    spoiled = y + bad * rng.choice([-1, 1], n) * rng.uniform(5, 20, n)
    return X, y, spoiled, np.flatnonzero(bad), fresh, new


def robust(**parameters):
    return ARDRegressor(noise="outliers", **parameters)


def rmse(model, X, y):
    return np.sqrt(np.mean((model.predict(X) - y) ** 2))


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("share", [0.1, 0.2])
def test_gross_errors_change_neither_support_nor_error(share, average):
    found, ratio, named, false, plain = [], [], [], [], []
    for seed in range(3):
        X, clean, y, bad, fresh, new = draw(seed, share)
        model = robust(average=average, n_chains=2, max_flips=1200).fit(X, y)
        found.append(np.isin(np.arange(8), model.active_).sum())
        ratio.append(rmse(model, fresh, new) / rmse(ARDRegressor(average=False).fit(X, clean), fresh, new))
        named.append(np.isin(bad, model.outliers_).mean())
        false.append(len(np.setdiff1d(model.outliers_, bad)))
        assert model.outlier_share_ == pytest.approx(share, abs=0.05)
        assert np.sqrt(model.noise_variance_) == pytest.approx(0.5, rel=0.2)
        plain.append(np.isin(np.arange(8), ARDRegressor(average=False).fit(X, y).active_).sum())
    assert np.mean(found) >= 7.5
    assert np.mean(ratio) < 1.05
    assert min(named) == 1
    assert np.mean(false) <= 2
    assert np.mean(plain) <= 5


@pytest.mark.parametrize("average", [False, True])
def test_clean_data_are_as_with_gaussian_noise(average):
    X, y, *_ = draw()
    model, usual = (ARDRegressor(noise=noise, average=average).fit(X, y) for noise in ("outliers", "gaussian"))
    assert_array_equal(model.active_, usual.active_)
    assert_allclose(model.coef_[:8], usual.coef_[:8], atol=0.03)
    assert len(model.outliers_) <= 2
    assert model.outlier_probability_.shape == (200,)


def test_student_noise_averages_too():
    X, _, y, _, fresh, new = draw()
    model = ARDRegressor(noise="student", average=True, n_chains=2, max_flips=1200).fit(X, y)
    assert_array_equal(model.active_, np.arange(8))
    assert rmse(model, fresh, new) < 0.56
    assert model.noise_freedom_ < 5
    assert model.outlier_weight_.shape == (200,)
    assert not hasattr(ARDRegressor(noise="student").fit(X, y), "inclusion_probability_")


def test_intervals_are_about_rows_that_are_right():
    inside = []
    for seed in range(5):
        X, _, y, _, fresh, new = draw(seed, share=0.2)
        ends = robust(average=False).fit(X, y).predict_interval(fresh, coverage=0.9)
        inside.append(((ends[:, 0] <= new) & (new <= ends[:, 1])).mean())
    # Five data sets, each with a noise level that is known to a twentieth: ± 0.01.
    assert np.mean(inside) == pytest.approx(0.9, abs=0.03)


def test_units_do_not_matter():
    X, _, y, *_ = draw(d=30)
    here, there = robust(average=False).fit(X, y), robust(average=False).fit(1e-3 * X, 1e4 * y - 7e5)
    assert_allclose(there.coef_, 1e7 * here.coef_, rtol=1e-4, atol=1e-3)
    assert_array_equal(there.outliers_, here.outliers_)


def test_rows_without_weight_have_no_probability():
    X, _, y, bad, *_ = draw(d=30)
    weight = np.ones(200)
    weight[:3] = 0
    model = robust().fit(X, y, sample_weight=weight)
    assert np.isnan(model.outlier_probability_[:3]).all()
    assert_array_equal(np.setdiff1d(bad, [0, 1, 2]), np.intersect1d(model.outliers_, bad))


def test_several_outputs_and_groups():
    X, clean, y, bad, *_ = draw(d=30)
    model = robust(average=False, groups=np.arange(30) // 2).fit(X, np.column_stack([y, clean, np.ones(200)]))
    assert set(bad) <= set(model.outliers_[0])
    assert len(model.outliers_[1]) <= 2
    assert not model.outlier_probability_[:, 2].any()
    assert_array_equal(model.active_[0], np.arange(8))


def test_it_is_saved(tmp_path):
    X, _, y, *_ = draw(d=30)
    for average in (False, True):
        model = robust(average=average, n_chains=2, max_flips=200).fit(X, y)
        save(model, tmp_path / "model.skops")
        again = load(tmp_path / "model.skops")
        assert_array_equal(again.predict(X, return_std=True), model.predict(X, return_std=True))
        assert_array_equal(again.outliers_, model.outliers_)
    student = ARDRegressor(noise="student", average=True, n_chains=2, max_flips=200).fit(X, y)
    save(student, tmp_path / "model.skops")
    assert_array_equal(load(tmp_path / "model.skops").predict_interval(X), student.predict_interval(X))


def test_unequal_weights_are_not_averaged():
    X, _, y, *_ = draw(d=30)
    weight = np.linspace(1, 2, 200)
    assert not hasattr(robust().fit(X, y, sample_weight=weight), "inclusion_probability_")
    with pytest.raises(ValueError, match="equal sample_weight"):
        robust(average=True).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("parameters", [{"solver": "em"}, {"c": 1.0}, {"warm_start": True}, {"noise_variance": 1.0}])
def test_what_does_not_go_together_is_named(parameters):
    X, _, y, *_ = draw(d=10)
    with pytest.raises(ValueError, match="noise="):
        robust(**parameters).fit(X, y)
