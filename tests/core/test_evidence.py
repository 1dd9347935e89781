"""The evidence against SciPy's densities and integrals, and the gain of the noise against real differences."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma, multivariate_normal, norm

from sparsebayes.core.evidence import gaussian_fit, log_evidence, log_hyper_prior, noise_gain
from sparsebayes.core.likelihoods import Bernoulli, Gaussian, StudentT, expansion
from sparsebayes.core.posterior import gaussian_posterior

N = 14


@pytest.fixture
def design(rng):
    return rng.standard_normal((N, 5))


@pytest.fixture
def t(design, rng):
    return design @ np.array([2.0, -1.0, 0.4, 0.0, 0.0]) + 0.6 * rng.standard_normal(N)


@pytest.fixture
def evidence(explicit_rows):
    def of(Phi, t, alpha, noise, flat_intercept=False):
        posterior = gaussian_posterior(explicit_rows(Phi), 1 / noise, t / noise, alpha)
        residual = ((t - Phi @ posterior.mean) ** 2).sum()
        fit = gaussian_fit(residual, noise, len(t), flat_intercept)
        return log_evidence(fit, posterior.mean, alpha, posterior.logdet)

    return of


@pytest.mark.parametrize("n_rows", [3, 14])
def test_gaussian_evidence_is_the_marginal_density(n_rows, design, t, evidence, marginal, rng):
    alpha = np.exp(rng.standard_normal(5))
    Phi, t = design[:n_rows], t[:n_rows]
    assert evidence(Phi, t, alpha, 0.3) == pytest.approx(marginal(Phi, t, alpha, 0.3), rel=1e-12)


def test_gaussian_fit_is_the_sum_of_the_sites(design, t):
    eta = design[:, 0]
    fit = gaussian_fit(((t - eta) ** 2).sum(), 0.3, N, flat_intercept=False)
    assert fit == pytest.approx(expansion(Gaussian(0.3), t, eta).value(eta), rel=1e-12)


def test_a_flat_intercept_is_integrated_out(design, t, evidence, marginal, rng):
    alpha, noise = np.exp(rng.standard_normal(5)), 0.3
    t = t + 3.0
    found = evidence(design - design.mean(axis=0), t - t.mean(), alpha, noise, flat_intercept=True)
    peak = marginal(design, t - t.mean(), alpha, noise)

    def density(intercept):
        return np.exp(marginal(design, t - intercept, alpha, noise) - peak)

    integral = quad(density, t.mean() - 10, t.mean() + 10, points=[t.mean()], epsabs=0, epsrel=1e-11, limit=200)[0]
    assert found == pytest.approx(peak + np.log(integral), rel=1e-10)
    # the same as the limit of a broad prior on it, whose density at its centre is 1/√(2πv)
    v = 1e6
    C = noise * np.eye(N) + (design / alpha) @ design.T + v
    limit = multivariate_normal(np.zeros(N), C).logpdf(t) + 0.5 * np.log(2 * np.pi * v)
    assert found == pytest.approx(limit, abs=2e-5)  # what is left is t̄²/2v = 5e-6 and of that order


@pytest.mark.parametrize("likelihood", [Bernoulli(), StudentT(0.5, 3.0)], ids=str)
def test_evidence_of_any_sites_is_their_integral_and_a_bound_stays_below(likelihood, explicit_rows, rng):
    phi, t, alpha = rng.standard_normal(N), rng.integers(0, 2, N).astype(float), np.array([0.7])
    sites = likelihood.bound(t, rng.uniform(0.2, 2, N))
    posterior = gaussian_posterior(explicit_rows(phi[:, None]), sites.precision, sites.shift, alpha)
    found = log_evidence(sites.value(phi * posterior.mean), posterior.mean, alpha, posterior.logdet)
    prior = norm(0, 1 / np.sqrt(alpha[0]))

    def integral(log_likelihood):
        return np.log(quad(lambda w: np.exp(log_likelihood(w)) * prior.pdf(w), -15, 15, points=[0], epsabs=0)[0])

    assert found == pytest.approx(integral(lambda w: sites.value(phi * w)), rel=1e-9)
    assert found < integral(lambda w: likelihood.log_density(t, phi * w).sum())


def test_log_hyper_prior_is_the_gamma_density_of_a_logarithm():
    x = np.array([0.1, 1.0, 7.0])
    density = gamma(1.3, scale=1 / 0.4).logpdf(x) + np.log(x)  # the Jacobian of log x
    np.testing.assert_allclose(np.diff(log_hyper_prior(x, 1.3, 0.4)), np.diff(density), rtol=1e-12)
    np.testing.assert_array_equal(log_hyper_prior(x, 0.0, 0.0), np.zeros(3))


@pytest.mark.parametrize(("c", "d"), [(0.0, 0.0), (2.0, 1.0)])
def test_noise_gain_is_what_a_small_move_of_the_noise_brings(c, d, t, marginal):
    """Without weights the curvature is exact, so near the top the Newton gain is the real one to first order."""
    best = (t @ t + 2 * d) / (N + 2 * c)
    assert noise_gain(t @ t, best, 0.0, N, c, d) == pytest.approx(0.0, abs=1e-20)

    def objective(noise):
        return marginal(np.zeros((N, 1)), t, np.ones(1), noise) - c * np.log(noise) - d / noise

    noise = best * np.exp(1e-3)
    real = objective(best) - objective(noise)
    assert noise_gain(t @ t, noise, 0.0, N, c, d) == pytest.approx(real, rel=2e-3)  # next order: the step itself


def test_noise_gain_vanishes_exactly_where_the_evidence_is_flat(design, t, explicit_rows, marginal, slope, rng):
    alpha, noise = np.exp(rng.standard_normal(5)), 0.2
    posterior = gaussian_posterior(explicit_rows(design), 1 / noise, t / noise, alpha)
    residual, gamma_sum = ((t - design @ posterior.mean) ** 2).sum(), posterior.gamma.sum()
    gradient = slope(lambda step: marginal(design, t, alpha, noise * np.exp(step)))
    expected = gradient**2 / (N - gamma_sum)
    assert noise_gain(residual, noise, gamma_sum, N, 0.0, 0.0) == pytest.approx(expected, rel=1e-7)
