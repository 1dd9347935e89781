"""SparsePoissonRegressor: what is found, exposures, weights, predictions of new counts, and what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import d2_tweedie_score

from sparsebayes import ARDRegressor, SparsePoissonRegressor, load, save


def draw(seed=0, n=200, d=50, level=0.5, exposure=None):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    rate = np.exp(level + 0.6 * X[:, 0] - 0.5 * X[:, 1] + 0.4 * X[:, 2])
    return X, rng.poisson(rate if exposure is None else rate * exposure).astype(float)


def test_the_true_features_are_kept():
    X, y = draw(n=300, d=1000)
    model = SparsePoissonRegressor(average=False).fit(X, y)
    assert_array_equal(model.active_, [0, 1, 2])
    std = np.sqrt(np.diag(model.covariance_))
    assert (np.abs(model.coef_[:3] - [0.6, -0.5, 0.4]) < 3 * std).all()
    assert model.converged_


def test_weights_are_those_of_maximum_likelihood_where_the_prior_is_weak():
    X, y = draw(n=5000, d=3, level=2.0)
    model = SparsePoissonRegressor(average=False).fit(X, y)
    classic = PoissonRegressor(alpha=0, tol=1e-10, max_iter=1000).fit(X, y)
    # The prior shrinks a weight by α/Σ(rate φ²), where α = 1/w²: 1e-4 for the smallest of them.
    assert_allclose(model.coef_, classic.coef_, rtol=2e-4)
    assert_allclose(model.intercept_, classic.intercept_, rtol=2e-4)


def test_counts_of_nothing_but_noise_rarely_keep_a_feature():
    rng = np.random.default_rng(3)
    kept = []
    for _ in range(20):
        X = rng.standard_normal((150, 100))
        kept.append(len(SparsePoissonRegressor(average=False).fit(X, rng.poisson(2.0, 150)).active_))
    assert sum(n > 0 for n in kept) <= 4


@pytest.mark.parametrize("call", ["fit", "predict", "predict_interval", "score"])
def test_an_offset_is_refused_with_the_remedy(call):
    X, y = draw(d=5)
    model = SparsePoissonRegressor(average=False).fit(X, y)
    arguments = (X, y) if call in ("fit", "score") else (X,)
    with pytest.raises(TypeError, match=r"exposure=np\.exp\(offset\)"):
        getattr(model, call)(*arguments, offset=np.zeros(len(y)))


def test_exposure_is_an_offset():
    hours = np.random.default_rng(5).uniform(0.2, 20, 200)
    X, y = draw(exposure=hours)
    model = SparsePoissonRegressor(average=False).fit(X, y, exposure=hours)
    assert_array_equal(model.active_, [0, 1, 2])
    minutes = SparsePoissonRegressor(average=False).fit(X, y, exposure=60 * hours)
    assert_allclose(minutes.coef_, model.coef_, rtol=1e-6)
    assert_allclose(minutes.intercept_, model.intercept_ - np.log(60), rtol=1e-6)
    for ask in (
        lambda fitted, exposure: fitted.predict(X, exposure=exposure),
        lambda fitted, exposure: fitted.predict(X, return_std=True, exposure=exposure)[1],
        lambda fitted, exposure: fitted.predict_interval(X, exposure=exposure),
        lambda fitted, exposure: fitted.score(X, y, exposure=exposure),
    ):
        assert_allclose(ask(minutes, 60 * hours), ask(model, hours), rtol=1e-6)
    assert_allclose(model.predict(X, exposure=hours), hours * model.predict(X), rtol=1e-12)


def test_weights_are_repeats():
    X, y = draw()
    hours = np.linspace(1, 2, 200)
    weight = np.random.default_rng(0).integers(0, 4, 200)
    model = SparsePoissonRegressor(average=False).fit(X, y, sample_weight=weight, exposure=hours)
    each = np.repeat(np.arange(200), weight)
    repeated = SparsePoissonRegressor(average=False).fit(X[each], y[each], exposure=hours[each])
    assert_array_equal(model.active_, repeated.active_)
    for name in ("coef_", "intercept_", "covariance_", "log_evidence_", "dispersion_"):
        assert_allclose(getattr(model, name), getattr(repeated, name), rtol=1e-7, err_msg=name)
    assert_allclose(
        model.score(X, y, sample_weight=weight, exposure=hours), model.score(X[each], y[each], exposure=hours[each])
    )


def test_mean_and_deviation_are_those_of_draws():
    X, y = draw(n=30, d=3)
    model = SparsePoissonRegressor(average=False, min_gain=0).fit(X, y)
    coef, level = model.sample_posterior(200_000, random_state=0)
    rate = np.exp(coef @ X[:3].T + level[:, None])
    new = np.random.default_rng(0).poisson(rate)
    mean, std = model.predict(X[:3], return_std=True)
    # Four standard errors of 200,000 draws.
    assert_allclose(mean, new.mean(axis=0), rtol=4 * (std / mean).max() / np.sqrt(200_000))
    assert_allclose(std, new.std(axis=0), rtol=0.02)
    low, high = model.predict_interval(X[:3], coverage=0.8).T
    assert_array_equal(low, np.quantile(new, 0.1, axis=0, method="inverted_cdf"))
    assert_array_equal(high, np.quantile(new, 0.9, axis=0, method="inverted_cdf"))


def test_intervals_hold_on_fresh_rows():
    X, y = draw(n=1200, level=1.5)
    model = SparsePoissonRegressor(average=False).fit(X[:200], y[:200])
    low, high = model.predict_interval(X[200:], coverage=0.9).T
    assert_array_equal(low, np.rint(low))
    share = ((low <= y[200:]) & (y[200:] <= high)).mean()
    # At least 0.9, because counts are discrete; three standard errors of 1,000 rows are 0.03.
    assert 0.87 < share < 0.97


def test_score_is_the_explained_deviance():
    X, y = draw()
    model = SparsePoissonRegressor(average=False).fit(X, y)
    assert_allclose(model.score(X, y), d2_tweedie_score(y, model.predict(X), power=1))
    weight = np.linspace(0, 1, 200)
    expected = d2_tweedie_score(y, model.predict(X), power=1, sample_weight=weight)
    assert_allclose(model.score(X, y, sample_weight=weight), expected)


def test_dispersion_tells_of_counts_that_vary_too_much():
    X, y = draw(n=1000, level=1.5)
    assert SparsePoissonRegressor(average=False).fit(X, y).dispersion_ == pytest.approx(1, abs=0.15)
    rng = np.random.default_rng(0)
    wild = rng.negative_binomial(2, 2 / (2 + np.exp(1.5 + 0.6 * X[:, 0])))
    assert SparsePoissonRegressor(average=False).fit(X, wild).dispersion_ > 2


def test_the_textbook_keeps_more():
    X, y = draw()
    assert len(SparsePoissonRegressor(average=False, min_gain=0).fit(X, y).active_) > 5
    by_em = SparsePoissonRegressor(average=False, min_gain=0, rule="em", tol=1e-8).fit(X[:, :4], y)
    by_mackay = SparsePoissonRegressor(average=False, min_gain=0, tol=1e-8).fit(X[:, :4], y)
    assert_allclose(by_em.log_evidence_, by_mackay.log_evidence_, atol=1e-4)


def test_without_an_intercept_the_rate_at_the_origin_is_one():
    X, y = draw(level=0.0)
    model = SparsePoissonRegressor(average=False, fit_intercept=False).fit(X, y)
    assert model.intercept_ == 0
    assert_array_equal(model.active_, [0, 1, 2])
    assert_allclose(model.predict(np.zeros((1, 50))), 1.0)


def test_units_and_places_of_columns_do_not_matter():
    X, y = draw()
    model = SparsePoissonRegressor(average=False).fit(X, y)
    scale, shift = 10.0 ** np.linspace(-6, 6, 50), np.linspace(-5, 5, 50)
    moved = SparsePoissonRegressor(average=False).fit(X * scale + scale * shift, y)
    assert_array_equal(moved.active_, model.active_)
    assert_allclose(moved.coef_ * scale, model.coef_, rtol=1e-6)
    assert_allclose(moved.predict(X * scale + scale * shift), model.predict(X), rtol=1e-6)


def test_a_feature_that_marks_rows_without_events_stays_finite():
    X, y = draw(d=4)
    X[:, 3] = y == 0
    model = SparsePoissonRegressor(average=False, max_scale=10.0).fit(X, y)
    assert 3 in model.active_
    assert np.isfinite(model.coef_).all()
    assert model.coef_[3] < -3


@pytest.mark.parametrize("size", [1e-3, 1e3, 1e6])
def test_rates_of_any_size(size):
    X, _ = draw(n=4000, d=5)
    rng = np.random.default_rng(0)
    y = rng.poisson(size * np.exp(0.6 * X[:, 0])) if size > 1 else rng.poisson(20 * size * np.exp(0.6 * X[:, 0]))
    model = SparsePoissonRegressor(average=False).fit(X, y)
    assert 0 in model.active_
    assert model.converged_
    assert np.isfinite(model.predict(X)).all()


def test_values_between_counts_are_allowed():
    X, y = draw()
    model = SparsePoissonRegressor(average=False).fit(X, y / 2)
    assert np.isfinite(model.log_evidence_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: {"y": y - 1}, "y has negative values"),
        (lambda X, y: {"y": 0 * y}, "y is zero in every row"),
        (lambda X, y: {"exposure": np.zeros(len(y))}, "exposure must be positive"),
        (lambda X, y: {"exposure": -np.ones(len(y))}, "exposure must be positive"),
        (lambda X, y: {"exposure": np.ones(3)}, "exposure has shape"),
        (lambda X, y: {"exposure": np.full(len(y), np.nan)}, "exposure contains NaN"),
        (lambda X, y: {"exposure": np.full(len(y), np.inf)}, "exposure contains infinity"),
    ],
)
def test_bad_input_is_named(change, message):
    X, y = draw()
    with pytest.raises(ValueError, match=message):
        SparsePoissonRegressor(average=False).fit(**({"X": X, "y": y} | change(X, y)))


def test_bad_input_is_named_when_predicting():
    X, y = draw()
    model = SparsePoissonRegressor(average=False).fit(X, y)
    with pytest.raises(ValueError, match="exposure has shape"):
        model.predict(X, exposure=np.ones(3))
    with pytest.raises(ValueError, match="coverage"):
        model.predict_interval(X, coverage=1.0)
    with pytest.raises(ValueError, match="y has negative values"):
        model.score(X, y - 10)


def test_exposure_goes_through_a_file(tmp_path):
    X, y = draw()
    model = SparsePoissonRegressor(average=False).fit(X, y, exposure=np.linspace(1, 2, 200))
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    assert_array_equal(again.predict_interval(X, exposure=y + 1), model.predict_interval(X, exposure=y + 1))


def test_kinds_of_noise_are_told_in_a_notebook():
    X, y = draw()
    assert "dispersion" in SparsePoissonRegressor(average=False).fit(X, y)._repr_html_()
    shown = ARDRegressor(noise="student").fit(X, y + X[:, 0])._repr_html_()
    assert "noise scale" in shown
    assert "noise degrees of freedom" in shown


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_rate_beyond_doubles_is_infinite_and_has_an_infinite_deviation(rng):
    X = rng.standard_normal((40, 2))
    y = rng.poisson(np.exp(X[:, 0]))
    new = np.array([[1e6, 0.0], [0.0, 0.0]])
    for distribution in ("poisson", "negative-binomial"):
        model = SparsePoissonRegressor(distribution=distribution, average=False).fit(X, y)
        mean, std = model.predict(new, return_std=True)
        assert_array_equal(np.isinf(mean), [True, False])
        assert_array_equal(np.isinf(std), [True, False])
