"""ARDRegressor(noise="student"): outliers change neither what is kept nor the error; and what it predicts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsebayes import ARDRegressor
from sparsebayes.app.errors import UsageError
from sparsebayes.app.models import MODELS, Size, pipeline

WEIGHTS = np.array([1.5, -1.2, 1.0, 0.8, -0.6])


def draw(seed=0, outliers=0.0, n=200, d=100):
    """Five true features, noise of standard deviation ½, and gross outliers of either sign."""
    rng = np.random.default_rng([seed, n, d])
    X = rng.standard_normal((n, d))
    y = 3 + X[:, :5] @ WEIGHTS + 0.5 * rng.standard_normal(n)
    bad = rng.random(n) < outliers
    y[bad] += rng.choice([-1, 1], bad.sum()) * rng.uniform(5, 20, bad.sum())
    return X, y, bad


def student(**parameters):
    return ARDRegressor(noise="student", **parameters)


def error(model):
    return np.sqrt(np.sum((model.coef_[:5] - WEIGHTS) ** 2) + np.sum(model.coef_[5:] ** 2))


@pytest.mark.parametrize("outliers", [0.1, 0.2])
@pytest.mark.parametrize("shape", [(200, 100), (150, 1000)])
def test_gross_outliers_change_neither_support_nor_error(outliers, shape):
    clean, robust, gaussian = [], [], []
    for seed in range(5):
        X, y, _ = draw(seed, 0.0, *shape)
        clean.append(error(ARDRegressor(average=False).fit(X, y)))
        X, y, bad = draw(seed, outliers, *shape)
        model = student().fit(X, y)
        assert set(range(5)) <= set(model.active_.tolist())
        assert len(model.active_) <= 6
        assert model.outlier_weight_[bad].max() < 0.1 < np.median(model.outlier_weight_[~bad])
        robust.append(error(model))
        gaussian.append(error(ARDRegressor(average=False).fit(X, y)))
    # Clean rows alone would have an error larger by 1/√0.8; the rest is what learning the tail costs.
    assert np.mean(robust) < 1.5 * np.mean(clean)
    assert np.mean(gaussian) > 4 * np.mean(robust)


def test_on_clean_data_it_is_the_gaussian_model():
    X, y, _ = draw(n=400)
    model, gaussian = student().fit(X, y), ARDRegressor(average=False).fit(X, y)
    assert_array_equal(model.active_, gaussian.active_)
    # Learned ν is at least in the dozens; a weight differs by less than a tenth of its standard deviation.
    assert model.noise_freedom_ > 15
    assert (np.abs(model.coef_ - gaussian.coef_)[:5] < 0.1 * np.sqrt(np.diag(gaussian.covariance_))).all()


def test_much_freedom_is_gaussian_noise():
    X, y, _ = draw()
    model, gaussian = student(noise_freedom=1e6, tol=1e-8).fit(X, y), ARDRegressor(tol=1e-8, average=False).fit(X, y)
    assert_array_equal(model.active_, gaussian.active_)
    # The densities differ by O(1/ν).
    assert_allclose(model.coef_, gaussian.coef_, rtol=1e-4)
    assert_allclose(model.noise_variance_, gaussian.noise_variance_, rtol=1e-4)
    assert_allclose(model.log_evidence_, gaussian.log_evidence_, atol=0.01)
    assert_allclose(model.predict_interval(X), gaussian.predict_interval(X), rtol=1e-3, atol=1e-3)
    assert_allclose(model.predict(X, return_std=True)[1], gaussian.predict(X, return_std=True)[1], rtol=1e-4)


def test_noise_is_learned():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 3))
    y = X[:, 0] + 0.5 * rng.standard_t(3, 3000)
    model = student().fit(X, y)
    # Three standard errors: those of ν are about 0.25 at 3,000 rows.
    assert model.noise_freedom_ == pytest.approx(3, abs=0.75)
    assert np.sqrt(model.noise_variance_) == pytest.approx(0.5, rel=0.08)
    assert student(noise_freedom=5.0).fit(X, y).noise_freedom_ == 5.0


def test_predictions_are_those_of_draws():
    X, y, _ = draw(n=60, d=5)
    model = student(noise_freedom=3.0, min_gain=0).fit(X, y)
    new = X[:2] * 3
    draws = model.sample_y(new, 400_000, random_state=0)
    mean, std = model.predict(new, return_std=True)
    inner = np.abs(draws - mean[:, None])
    half = np.diff(model.predict_interval(new, coverage=0.8), axis=1)[:, 0] / 2
    assert_allclose(np.median(draws, axis=1), mean, atol=0.01)
    # The interval is wider than the draws by what σ² is uncertain: Student's over the normal quantile, 27 and ∞
    # degrees of freedom.
    assert_allclose(half, np.quantile(inner, 0.8, axis=1), rtol=0.04)
    assert (half > np.quantile(inner, 0.8, axis=1)).all()
    assert_allclose(std**2, model._fits[0].latent_variance(new) + 3 * model.noise_variance_)
    assert np.isinf(student(noise_freedom=2.0).fit(X, y).predict(new, return_std=True)[1]).all()


def test_intervals_hold_with_heavy_tails():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((2200, 20))
    y = X[:, 0] - X[:, 1] + rng.standard_t(2, 2200)
    model = student().fit(X[:200], y[:200])
    for coverage in (0.5, 0.9, 0.99):
        low, high = model.predict_interval(X[200:], coverage).T
        # Scale and ν are learned from 200 rows: a few hundredths.
        assert ((low <= y[200:]) & (y[200:] <= high)).mean() == pytest.approx(coverage, abs=0.04)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_and_places_do_not_matter(scale):
    X, y, _ = draw(outliers=0.1)
    columns, shift = 10.0 ** np.linspace(-6, 6, 100), np.linspace(-5, 5, 100)
    model, moved = student().fit(X, y), student().fit((X + shift) * columns, scale * y + 7 * scale)
    assert_array_equal(moved.active_, model.active_)
    for name, unit in {"noise_variance_": scale**2, "noise_freedom_": 1.0, "outlier_weight_": 1.0}.items():
        assert_allclose(getattr(moved, name), unit * getattr(model, name), rtol=1e-6, err_msg=name)
    assert_allclose(moved.coef_ * columns, scale * model.coef_, rtol=1e-6)
    # The scale of y enters the density of every row, less one for the flat intercept.
    assert_allclose(moved.log_evidence_, model.log_evidence_ - 199 * np.log(scale), rtol=1e-6)
    expected = scale * model.predict_interval(X) + 7 * scale
    assert_allclose(moved.predict_interval((X + shift) * columns), expected, rtol=1e-6, atol=1e-6 * scale)


@pytest.mark.parametrize("options", [{}, {"intercept_prior": "ard"}, {"fit_intercept": False}], ids=str)
def test_weights_are_repeats(options):
    X, y, _ = draw(outliers=0.1, d=20)
    weight = np.random.default_rng(0).integers(0, 4, 200)
    each = np.repeat(np.arange(200), weight)
    model = student(**options).fit(X, y, sample_weight=weight)
    repeated = student(**options).fit(X[each], y[each])
    assert_array_equal(model.active_, repeated.active_)
    for name in ("coef_", "noise_variance_", "noise_freedom_", "log_evidence_"):
        assert_allclose(getattr(model, name), getattr(repeated, name), rtol=1e-6, err_msg=name)
    assert_array_equal(np.isnan(model.outlier_weight_), weight == 0)
    assert_allclose(model.outlier_weight_[each], repeated.outlier_weight_, rtol=1e-6)


def test_several_outputs():
    X, y, _ = draw(outliers=0.1)
    Y = np.column_stack([y, 2 * X[:, 9] + np.random.default_rng(0).standard_normal(200), np.full(200, 4.0)])
    model = student().fit(X, Y)
    assert model.noise_freedom_.shape == (3,)
    assert model.outlier_weight_.shape == (200, 3)
    assert model.predict_interval(X).shape == (200, 3, 2)
    alone = student().fit(X, y)
    assert_allclose(model.coef_[0], alone.coef_)
    assert_allclose(model.outlier_weight_[:, 0], alone.outlier_weight_)
    assert_allclose(model.predict(X)[:, 2], 4.0)
    assert_array_equal(model.outlier_weight_[:, 2], 1.0)


def test_a_target_with_one_value_in_most_rows():
    """Its density under Student noise has no maximum: the scale goes to its floor, which is told."""
    X, y, _ = draw(d=5)
    y[:120] = 0.0
    with pytest.warns(RuntimeWarning, match=r"floor.*noise='gaussian'"):
        model = student().fit(X, y)
    assert np.isfinite(model.predict_interval(X)).all()


@pytest.mark.filterwarnings("ignore:the noise variance reached its floor")
def test_a_target_without_noise_is_reproduced():
    X, _, _ = draw(d=8)
    y = X[:, :5] @ WEIGHTS
    with pytest.warns(RuntimeWarning, match="floor"):
        model = student().fit(X, y)
    assert_allclose(model.predict(X), y, atol=1e-3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"solver": "em"}, r"noise='student'.*solver='em'"),
        ({"solver": "fixed-point"}, r"noise='student'.*solver='fixed-point'"),
        ({"solver": "reweighted-l1"}, r"noise='student'.*solver='reweighted-l1'"),
        ({"c": 1.0}, r"noise='student'.*c=1"),
        ({"d": 1.0}, r"noise='student'.*d=1"),
        ({"warm_start": True}, r"noise='student'.*warm_start=True"),
    ],
    ids=str,
)
def test_what_does_not_go_with_it_is_named(parameters, message):
    X, y, _ = draw(d=5)
    with pytest.raises(ValueError, match=message):
        student(**parameters).fit(X, y)


def test_the_command_line_refuses_it():
    with pytest.raises(UsageError, match="noise=student"):
        pipeline(MODELS["ard"], Size(100, 5, "regression"), 0, given={"noise": "student"})
