"""BLSRegressor: units, noise and rate, and its evidence by another way."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn.datasets import make_friedman1
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import LeaveOneOut, cross_val_score

from sparsebayes import BLSRegressor, RVMRegressor

bls_model = partial(BLSRegressor, gamma="scale", standardize=False, noise_variance="fixed")
"""The kernel sees the inputs as they are."""


@pytest.fixture(scope="module")
def sinc():
    rng = np.random.default_rng(8)
    X = rng.uniform(-10, 10, (80, 1))
    return X, np.sinc(X[:, 0] / np.pi) + 0.2 * rng.standard_normal(80)


@pytest.mark.parametrize("options", [{}, {"rate": 0.5}, {"noise_variance": "learn"}, {"noise_variance": 0.03}], ids=str)
def test_evidence_is_that_of_the_kept_model(options, sinc):
    X, y = sinc
    model = bls_model(gamma=0.1, fit_intercept=False, **options).fit(X, y)
    Phi = rbf_kernel(X, model.relevance_vectors_, gamma=0.1)
    C = model.noise_variance_ * np.eye(80) + (Phi / model.precision_) @ Phi.T
    assert_allclose(model.log_evidence_, multivariate_normal(np.zeros(80), C).logpdf(y), rtol=1e-8)
    assert model.converged_
    assert model.optimality_gap_ <= model.tol


def test_every_kept_weight_has_the_best_prior_variance(sinc):
    """log p(t | g, σ²) - ½ λ Σg by brute force, one g at a time."""
    X, y = sinc
    model = bls_model(gamma=0.1, rate=0.7, noise_variance="learn", fit_intercept=False).fit(X, y)
    Phi, noise = rbf_kernel(X, model.relevance_vectors_, gamma=0.1), model.noise_variance_
    g = 1 / (model.precision_ * noise)

    def objective(g, noise):
        C = noise * (np.eye(80) + (Phi * g) @ Phi.T)
        return multivariate_normal(np.zeros(80), C).logpdf(y) - 0.35 * g.sum()

    top = objective(g, noise)
    for j in range(len(g)):
        for factor in (0.9, 1.1):
            assert objective(g * np.where(np.arange(len(g)) == j, factor, 1.0), noise) <= top + model.tol
    # The noise is re-estimated at fixed precisions, which is another direction of the same maximum.
    assert objective(g / 0.97, 0.97 * noise) < top
    assert objective(g / 1.03, 1.03 * noise) < top


def test_noise_may_be_learned_fixed_or_known(sinc):
    X, y = sinc
    assert_allclose(bls_model(gamma=0.1, fit_intercept=True).fit(X, y).noise_variance_, 0.01 * y.var())
    assert_allclose(bls_model(gamma=0.1, noise_variance=0.03).fit(X, y).noise_variance_, 0.03)
    assert 0.02 < bls_model(gamma=0.1, noise_variance="learn").fit(X, y).noise_variance_ < 0.08


def test_units_of_the_target_change_nothing_else(sinc):
    X, y = sinc
    model, scaled = bls_model(gamma=0.1).fit(X, y), bls_model(gamma=0.1).fit(X, 1e4 * y + 7e5)
    assert_array_equal(scaled.relevance_indices_, model.relevance_indices_)
    assert_allclose(scaled.rate_, model.rate_, rtol=1e-6)
    assert_allclose(scaled.predict(X), 1e4 * model.predict(X) + 7e5, rtol=1e-8)
    assert_allclose(scaled.noise_variance_, 1e8 * model.noise_variance_, rtol=1e-6)


def test_a_larger_rate_shrinks_more(sinc):
    X, y = sinc
    sizes = [np.abs(bls_model(gamma=0.1, rate=rate).fit(X, y).dual_coef_).sum() for rate in (1e-3, 1.0, 100.0)]
    assert sizes[0] > sizes[1] > sizes[2]


@pytest.mark.parametrize("noise", ["fixed", "learn"])
@pytest.mark.frequencies
def test_the_learned_rate_predicts_rows_best_that_were_held_out(noise):
    """Rows really left out, with rates a decade to both sides, over several data sets.

    The closed form has the scales of all rows, so that on a single set a neighbour may be better by a few percent.
    """
    errors = np.zeros(3)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-10, 10, (50, 1))
        y = np.sinc(X[:, 0] / np.pi) + 0.2 * rng.standard_normal(50)
        rate = bls_model(gamma=0.1, noise_variance=noise).fit(X, y).rate_
        for k, factor in enumerate((0.1, 1, 10)):
            model = bls_model(gamma=0.1, rate=factor * rate, noise_variance=noise)
            errors[k] -= cross_val_score(model, X, y, cv=LeaveOneOut(), scoring="neg_mean_squared_error").mean()
    assert errors[1] < 1.02 * errors.min()


def test_too_little_noise_misleads_ard_and_not_the_laplace_prior():
    """Friedman #1 with three times the usual noise: fewer vectors than ARD at the same noise, and less error."""
    X, f = make_friedman1(700, random_state=0)
    y = f[:200] + 3 * np.random.default_rng(0).standard_normal(200)
    ard, bls = bls_model(rate=1e-9).fit(X[:200], y), bls_model().fit(X[:200], y)
    assert ard.noise_variance_ == bls.noise_variance_ < 0.5
    assert len(bls.dual_coef_) < 0.8 * len(ard.dual_coef_)
    errors = [np.sqrt(np.mean((model.predict(X[200:]) - f[200:]) ** 2)) for model in (ard, bls)]
    assert errors[1] < 0.9 * errors[0]


def test_at_rate_zero_it_is_the_relevance_vector_machine(sinc):
    X, y = sinc
    ard = RVMRegressor(gamma=0.1, tol=1e-6, standardize=False, vectors="sparse").fit(X, y)
    limit = bls_model(gamma=0.1, rate=1e-9, noise_variance="learn").fit(X, y)
    assert_allclose(limit.log_evidence_, ard.log_evidence_, atol=0.5)
    assert_allclose(limit.predict(X), ard.predict(X), atol=0.02)


def test_two_outputs_have_two_rates(sinc):
    X, y = sinc
    both = bls_model(gamma=0.1).fit(X, np.column_stack([y, y[::-1]]))
    assert both.rate_.shape == (2,)
    assert_allclose(both.rate_[0], bls_model(gamma=0.1).fit(X, y).rate_)
