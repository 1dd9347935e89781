"""Noise that is known, unequal or correlated, against densities from SciPy and against transformed data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import null_space
from scipy.stats import multivariate_normal

from sparsebayes import ARDRegressor, Moments, load, save
from sparsebayes.core.inclusion import InclusionPrior
from sparsebayes.engine import averaging

WEIGHTS = np.array([2.0, -1.5, 1.0])


def draw(n=80, d=12, seed=0, covariance=None):
    """Three true features, an intercept of 3, and noise with this covariance."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 1
    covariance = 0.25 * np.eye(n) if covariance is None else covariance
    return X, 3 + X[:, :3] @ WEIGHTS + np.linalg.cholesky(covariance) @ rng.standard_normal(n)


def correlated(n=80):
    """Noise of neighbouring rows is alike, and grows along the rows."""
    level = np.linspace(0.3, 2.0, n)
    return np.outer(level, level) * 0.8 ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))


def density(model, X, y, V, intercept=True):
    """Log evidence of a fitted single model: that of error contrasts, with the volume of the flat intercept."""
    Phi, n = X[:, model.active_], len(y)
    C = model.noise_variance_ * V + (Phi / model.precision_) @ Phi.T
    if not intercept:
        return multivariate_normal(np.zeros(n), C).logpdf(y)
    K = null_space(np.ones((1, n))).T  # orthonormal contrasts: ∫ p(y | level) d level = p(Ky)/√n
    return multivariate_normal(np.zeros(n - 1), K @ C @ K.T).logpdf(K @ y) - 0.5 * np.log(n)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("known", ["learn", 0.25, 1.0])
@pytest.mark.parametrize("kind", ["plain", "variances", "covariance"])
def test_evidence_is_that_of_the_density(kind, known, intercept):
    V = {"plain": np.eye(80), "variances": np.diag(np.linspace(0.1, 3, 80)), "covariance": correlated()}[kind]
    row_noise = {"plain": None, "variances": np.diag(V), "covariance": V}[kind]
    X, y = draw(covariance=0.25 * V)
    model = ARDRegressor(noise_variance=known, average=False, fit_intercept=intercept)
    model.fit(X, y if intercept else y - 3, row_noise=row_noise)
    assert set(model.active_) >= {0, 1, 2}
    assert model.log_evidence_ == pytest.approx(density(model, X, y if intercept else y - 3, V, intercept), rel=1e-9)
    if known == "learn":
        assert model.noise_variance_ == pytest.approx(0.25, rel=0.5)  # 80 rows: ± 0.16 relative
    else:
        assert model.noise_variance_ == pytest.approx(known, rel=1e-12)
        assert model.degrees_of_freedom_ == np.inf
    # No change of the scales does better.
    here = model.log_evidence_
    for name in ("precision_", *(["noise_variance_"] if known == "learn" else [])):
        for factor in (0.97, 1.03):
            value = getattr(model, name)
            setattr(model, name, value * factor)
            assert density(model, X, y if intercept else y - 3, V, intercept) < here + 1e-6
            setattr(model, name, value)


def test_known_noise_decides_what_pays():
    """A weight with a z-score of 2 under noise one has one of 20 under noise a hundredth."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 20))
    y = 0.2 * X[:, 0] + 0.2 * X[:, 1] * X[:, 2]
    for average in (False, True):
        precise, coarse = (ARDRegressor(noise_variance=v, average=average).fit(X, y) for v in (1e-4, 1.0))
        assert 0 in precise.active_
        assert not len(coarse.active_)
        assert coarse.predict(X, return_std=True)[1].min() >= 1.0


def test_rows_of_less_noise_count_more():
    V = np.where(np.arange(80) < 40, 1e-4, 100.0)
    X, y = draw(covariance=np.diag(V))
    weighted, plain = ARDRegressor().fit(X, y, row_noise=V), ARDRegressor().fit(X, y)
    assert_array_equal(weighted.active_, [0, 1, 2])
    # Forty rows with noise of standard deviation 0.01: a weight is known to 0.002.
    assert_allclose(weighted.coef_[:3], WEIGHTS, atol=0.01)
    assert weighted.noise_variance_ == pytest.approx(1.0, rel=0.6)
    assert np.abs(plain.coef_[:3] - WEIGHTS).max() > 0.1


@pytest.mark.parametrize("average", [False, True])
def test_only_ratios_of_variances_matter_where_the_noise_is_learned(average):
    X, y = draw(covariance=correlated())
    for V in (correlated(), np.diag(correlated())):
        here = ARDRegressor(average=average).fit(X, y, row_noise=V)
        there = ARDRegressor(average=average).fit(X, y, row_noise=1e6 * V)
        assert_allclose(there.coef_, here.coef_, rtol=1e-6, atol=1e-9)
        assert there.noise_variance_ == pytest.approx(here.noise_variance_ / 1e6, rel=1e-6)
        assert there.log_evidence_ == pytest.approx(here.log_evidence_, abs=1e-5)


def test_a_diagonal_covariance_is_a_variance_for_each_row():
    V = np.linspace(0.1, 3, 80)
    X, y = draw(covariance=np.diag(V))
    rows, matrix = (ARDRegressor(average=False).fit(X, y, row_noise=each) for each in (V, np.diag(V)))
    for name in ("coef_", "intercept_", "noise_variance_", "log_evidence_", "covariance_"):
        assert_allclose(getattr(rows, name), getattr(matrix, name), rtol=1e-5, err_msg=name)


def test_equal_variances_change_nothing():
    X, y = draw()
    plain, equal = ARDRegressor().fit(X, y), ARDRegressor().fit(X, y, row_noise=np.ones(80))
    assert_array_equal(equal.coef_, plain.coef_)
    assert equal.noise_variance_ == plain.noise_variance_


def test_weights_and_variances_together():
    X, y = draw()
    V, weight = np.linspace(0.1, 3, 80), np.random.default_rng(1).integers(0, 3, 80)
    repeated = ARDRegressor(average=False).fit(
        *(np.repeat(a, weight, axis=0) for a in (X, y)), row_noise=np.repeat(V, weight)
    )
    weighted = ARDRegressor(average=False).fit(X, y, sample_weight=weight, row_noise=V)
    assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-9)
    assert weighted.log_evidence_ == pytest.approx(repeated.log_evidence_, rel=1e-9)


def test_averages_with_known_noise_are_the_exact_posterior(monkeypatch):
    """One feature: in or out, over the grid of prior variances, by the density of the data."""
    monkeypatch.setattr(averaging, "AGREEMENT", 0.0)  # so that chains use all flips
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 1))
    y = 0.3 * X[:, 0] + rng.standard_normal(40)
    model = ARDRegressor(noise_variance=1.3, average=True).fit(X, y)
    prior, x = InclusionPrior.of(1), (X[:, 0] - X[:, 0].mean()) / X[:, 0].std()
    contrasts = null_space(np.ones((1, 40))).T

    def log_density(c):
        return multivariate_normal(
            np.zeros(39), 1.3 * contrasts @ (np.eye(40) + c * np.outer(x, x)) @ contrasts.T
        ).logpdf(contrasts @ y)

    inside = np.logaddexp.reduce(prior.log_size(1) + np.array([log_density(c) for c in prior.slabs]))
    outside = np.logaddexp.reduce(prior.log_size(0) + log_density(0.0))
    assert model.inclusion_probability_[0] == pytest.approx(1 / (1 + np.exp(outside - inside)), abs=0.02)  # chains


@pytest.mark.parametrize("shared", [False, True])
def test_joint_outputs_take_a_covariance_of_the_rows(shared):
    V = correlated()
    X, y = draw(covariance=V)
    other = np.linalg.cholesky(V) @ np.random.default_rng(7).standard_normal(80)
    Y = np.column_stack([y, 5 - X[:, :3].sum(axis=1) + other])
    model = ARDRegressor(multi_output="joint", shared_noise=shared).fit(X, Y, row_noise=V)
    assert_array_equal(model.active_[0], [0, 1, 2])
    given = ARDRegressor(multi_output="joint", noise_variance=2.0).fit(X, Y, row_noise=V)
    assert_allclose(given.noise_variance_, 2.0, rtol=1e-12)


def test_it_is_saved(tmp_path):
    X, y = draw()
    model = ARDRegressor(noise_variance=0.25).fit(X, y, row_noise=np.linspace(1, 2, 80))
    save(model, tmp_path / "model.skops")
    assert_array_equal(load(tmp_path / "model.skops").predict(X, return_std=True), model.predict(X, return_std=True))


@pytest.mark.parametrize(
    ("row_noise", "named"),
    [
        (np.zeros(80), "positive in every row"),
        (np.full(80, np.nan), "NaN"),
        (np.ones(79), r"shape \(79,\)"),
        (np.ones((80, 2)), r"shape \(80, 2\)"),
        (-np.eye(80), "positive definite"),
        (np.triu(np.ones((80, 80))), "symmetric"),
    ],
)
def test_row_noise_that_makes_no_sense_is_refused(row_noise, named):
    X, y = draw()
    with pytest.raises(ValueError, match=named):
        ARDRegressor().fit(X, y, row_noise=row_noise)


@pytest.mark.parametrize(
    ("parameters", "arguments", "named"),
    [
        ({"noise_variance": 1.0, "solver": "em"}, {}, "solver"),
        ({"noise_variance": 1.0, "c": 1.0}, {}, "c=d=0"),
        ({"noise_variance": 1.0, "noise": "student"}, {}, "noise='gaussian'"),
        ({"noise": "student"}, {"row_noise": np.ones(80)}, "noise='gaussian'"),
        ({}, {"row_noise": np.eye(80), "sample_weight": np.arange(80)}, "sample_weight"),
    ],
)
def test_what_does_not_go_together_is_named(parameters, arguments, named):
    X, y = draw()
    with pytest.raises(ValueError, match=named):
        ARDRegressor(**parameters).fit(X, y, **arguments)


def test_moments_know_of_known_noise_and_refuse_joint_outputs():
    X, y = draw()
    moments = Moments.of(X, y)
    model = ARDRegressor(noise_variance=0.25, average=False)
    assert_allclose(model.fit_moments(moments).coef_, model.fit(X, y).coef_, rtol=1e-6, atol=1e-9)
    assert model.fit_moments(moments).noise_variance_ == pytest.approx(0.25, rel=1e-12)
    with pytest.raises(ValueError, match="multi_output='independent'"):
        ARDRegressor(multi_output="joint").fit_moments(Moments.of(X, np.column_stack([y, y])))


@pytest.mark.parametrize("average", [False, True])
def test_several_outputs_with_known_noise_are_as_each_alone(average):
    X, y = draw()
    Y = np.column_stack([y, 3 * y[::-1] + X[:, 5]])
    model = ARDRegressor(noise_variance=0.25, average=average, n_chains=2, max_flips=300)
    together = model.fit(X, Y).coef_
    for k, alone in enumerate(Y.T):
        assert_allclose(together[k], model.fit(X, alone).coef_, rtol=1e-9, atol=1e-12)
