"""ARDRegressor(positive=...): weights that may not be negative."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import dblquad
from scipy.optimize import lsq_linear, nnls
from scipy.stats import multivariate_normal, norm
from sklearn.linear_model import LassoCV

from sparsebayes import ARDRegressor, Moments, load, save
from sparsebayes.core.priors import ARD, NonNegative
from sparsebayes.core.signed import Signed


def draw(n=100, d=20, seed=0):
    """Weights 2, 1 and -1.5 of the first three features, the others are useless; correlated neighbours."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, 1:] += 0.5 * X[:, :-1]
    return X, 1 + X[:, :3] @ np.array([2.0, 1.0, -1.5]) + 0.5 * rng.standard_normal(n)


def spectra(seed, n=200, d=60, k=6, noise=0.05):
    """A library of overlapping spectra, and a noisy mixture of a few of them."""
    rng = np.random.default_rng(seed)
    x, library = np.linspace(0, 1, n), np.zeros((n, d))
    for j in range(d):
        for _ in range(rng.integers(3, 8)):
            library[:, j] += rng.uniform(0.3, 1) * np.exp(-0.5 * ((x - rng.uniform()) / rng.uniform(0.01, 0.06)) ** 2)
    w = np.zeros(d)
    w[rng.choice(d, k, replace=False)] = rng.dirichlet(np.ones(k))
    return library, library @ w + noise * (library @ w).max() * rng.standard_normal(n), w


def test_unmixing_spectra():
    ours, least, lasso = [], [], []
    for seed in range(5):
        library, y, w = spectra(seed)
        model = ARDRegressor(positive=True, fit_intercept=False, average=seed == 0).fit(library, y)
        assert (model.coef_ >= 0).all()
        l1 = LassoCV(positive=True, fit_intercept=False, cv=5).fit(library, y).coef_
        for errors, coef in ((ours, model.coef_), (least, nnls(library, y)[0]), (lasso, l1)):
            errors.append(np.sqrt(np.mean((coef - w) ** 2)))
    assert np.mean(ours) < 0.75 * min(np.mean(least), np.mean(lasso))


def test_no_weight_is_negative_and_the_mode_is_that_of_a_bounded_optimiser():
    X, y = draw()
    model = ARDRegressor(positive=True, tol=1e-10, average=False).fit(X, y)
    assert (model.coef_ >= 0).all()
    assert 2 not in model.active_
    assert {0} <= set(model.active_)
    # The mode of all kept weights at these precisions and this noise, under the bounds.
    kept, centred = model.active_, X - X.mean(axis=0)
    ridge = np.diag(np.sqrt(model.precision_ * model.noise_variance_))
    best = lsq_linear(
        np.vstack([centred[:, kept], ridge]),
        np.append(y - y.mean(), np.zeros(len(kept))),
        bounds=(0, np.inf),
        tol=1e-14,
    )
    assert_allclose(model.coef_[kept], best.x, rtol=1e-5)


def test_flags_for_single_features():
    X, y = draw()
    flags = np.zeros(20, dtype=bool)
    flags[2] = True
    some = ARDRegressor(positive=flags, average=False).fit(X, y)
    assert some.coef_[2] == 0
    flags[:] = [True, True, False] + [True] * 17
    others = ARDRegressor(positive=flags, average=False).fit(X, y)
    assert_array_equal(others.active_, [0, 1, 2])
    free = ARDRegressor(average=False).fit(X, y)
    assert_allclose(others.coef_, free.coef_, atol=1e-3)  # no bound is active
    assert_array_equal(ARDRegressor(positive=np.zeros(20, bool), average=False).fit(X, y).coef_, free.coef_)


def test_evidence_is_that_of_the_truncated_prior():
    """Two weights that are nearly independent in the posterior: an integral over the positive quadrant."""
    rng = np.random.default_rng(1)
    X = np.linalg.qr(rng.standard_normal((30, 2)))[0] * np.sqrt(30)
    y = X @ np.array([0.6, 0.9]) + rng.standard_normal(30)
    model = ARDRegressor(positive=True, fit_intercept=False, min_gain=0.8).fit(X, y)
    assert_array_equal(model.active_, [0, 1])
    scale = 1 / np.sqrt(model.precision_)

    def joint(v, w):
        fit = norm.logpdf(y, X @ np.array([w, v]), np.sqrt(model.noise_variance_)).sum()
        return np.exp(fit - at_mode + (np.log(2) + norm.logpdf([w, v], scale=scale)).sum())

    at_mode = norm.logpdf(y, X @ model.coef_, np.sqrt(model.noise_variance_)).sum()
    value = dblquad(joint, 0, 4, 0, 4, epsabs=1e-10)[0]
    assert model.log_evidence_ == pytest.approx(np.log(value) + at_mode, abs=1e-4)
    C = model.noise_variance_ * np.eye(30) + (X / model.precision_) @ X.T
    assert model.log_evidence_ > multivariate_normal(np.zeros(30), C).logpdf(y) + 1  # log 2 for each, nearly


def test_intervals_and_draws_end_at_zero():
    library, y, _ = spectra(0, noise=0.3)
    model = ARDRegressor(positive=True, fit_intercept=False, min_gain=0.1).fit(library, y)
    assert len(model.active_)
    assert (model.coef_interval(0.999) >= 0).all()
    assert (model.sample_posterior(500, random_state=0)[0] >= 0).all()


def test_units_and_order_do_not_matter():
    X, y = draw()
    order = np.random.default_rng(0).permutation(20)
    here, there = (
        ARDRegressor(positive=True, average=False).fit(X, y),
        ARDRegressor(positive=True, average=False).fit(1e4 * X[:, order], 1e-3 * y + 5),
    )
    assert_allclose(there.coef_, 1e-7 * here.coef_[order], rtol=1e-5, atol=1e-14)
    averaged = ARDRegressor(positive=True, n_chains=2, max_flips=200)
    first, second = averaged.fit(X, y).coef_, averaged.fit(1e4 * X + 3, 1e-3 * y + 5).coef_
    assert_allclose(second, 1e-7 * first, rtol=1e-5, atol=1e-14)  # the chains draw the same numbers


def test_averages_over_models():
    library, y, w = spectra(1, noise=0.05)
    model = ARDRegressor(positive=True, fit_intercept=False).fit(library, y)
    assert model.converged_
    assert model.inclusion_probability_.shape == (60,)
    assert (model.coef_ >= 0).all()
    assert (model.coef_interval(0.999) >= 0).all()
    assert (model.sample_posterior(200, random_state=0)[0] >= 0).all()
    assert (w[model.active_] > 0).all()
    single = ARDRegressor(positive=True, fit_intercept=False, average=False).fit(library, y)
    assert_array_equal(model.model_.coef_, single.coef_)
    assert np.linalg.norm(model.coef_ - w) < 1.1 * np.linalg.norm(single.coef_ - w)
    known = ARDRegressor(positive=True, fit_intercept=False, noise_variance=model.noise_variance_).fit(library, y)
    assert_allclose(known.coef_, model.coef_, atol=0.02)  # the two chains' errors, and the noise's


def test_a_feature_of_the_wrong_sign_is_improbable():
    X, y = draw()
    flags = np.arange(20) == 2
    model = ARDRegressor(positive=flags, n_chains=2).fit(X, y)
    free = ARDRegressor(n_chains=2).fit(X, y)
    assert free.inclusion_probability_[2] > 0.9
    assert model.inclusion_probability_[2] < 0.2
    assert model.coef_[2] >= 0


def test_many_features_are_not_averaged_by_default():
    X = np.random.default_rng(0).standard_normal((15, 2001))
    y = np.random.default_rng(1).standard_normal(15)
    assert not hasattr(ARDRegressor(positive=True).fit(X, y), "inclusion_probability_")


def test_a_sign_is_that_of_the_feature():
    X, y = draw()
    up, down = (ARDRegressor(positive=True, average=False).fit(sign * X, y) for sign in (1, -1))
    assert 2 in down.active_
    assert not np.intersect1d(up.active_, down.active_).size


def test_known_noise_moments_and_files(tmp_path):
    X, y = draw()
    model = ARDRegressor(positive=True, noise_variance=0.25, n_chains=2, max_flips=200).fit(X, y)
    assert (model.coef_ >= 0).all()
    assert_allclose(
        ARDRegressor(positive=True, average=False).fit_moments(Moments.of(X, y)).coef_,
        ARDRegressor(positive=True, average=False).fit(X, y).coef_,
        rtol=1e-5,
        atol=1e-9,
    )
    assert (ARDRegressor(positive=True, n_chains=2, max_flips=200).fit_moments(Moments.of(X, y)).coef_ >= 0).all()
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    assert_array_equal(again.coef_interval(), model.coef_interval())


def test_the_prior_with_flags_is_the_two_priors_it_is_made_of():
    s, q = np.array([2.0, 2.0, 1.0, 1.0]), np.array([3.0, -3.0, 2.0, -2.0])
    mixed = Signed(positive=np.array([True, True, False, False]))
    bound, free = NonNegative(), ARD()
    assert_array_equal(mixed.candidate(s, q), np.append(bound.candidate(s, q)[:2], free.candidate(s, q)[2:]))
    alpha = np.full(4, 0.7)
    assert_array_equal(mixed.gain(alpha, s, q), np.append(bound.gain(alpha, s, q)[:2], free.gain(alpha, s, q)[2:]))
    assert mixed.rules is None
    assert Signed(positive=np.ones(3, bool)).rules.positive
    assert_array_equal(mixed.of(np.array([1, 2])).positive, [True, False])


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"noise": "student"}, "noise='gaussian'"),
        ({"solver": "em"}, "solver"),
        ({"groups": np.arange(20)}, "groups=None"),
        ({"positive": np.ones(19, bool)}, "one of them for each of the 20"),
        ({"positive": np.ones(20)}, "True, False"),
    ],
)
def test_what_does_not_go_together_is_named(parameters, named):
    X, y = draw()
    with pytest.raises(ValueError, match=named):
        ARDRegressor(**{"positive": True, **parameters}).fit(X, y)
