"""Distribution functions of new counts and of Student noise against integration, SciPy and draws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats

from sparsebayes.core.mixtures import (
    BLOCK,
    log_gamma_nodes,
    log_normal_moments,
    poisson_cdf,
    poisson_interval,
    poisson_quantile,
    student_half_width,
)

LOG_RATES = [(-2.0, 1e-9), (0.0, 0.01), (1.0, 0.5), (3.0, 0.001), (5.0, 0.1), (7.0, 1.0), (-3.0, 2.0), (10.0, 0.3)]


@pytest.mark.parametrize("shape", [0.5, 1.0, 2.0, 7.3, 1e3, 1e7])
def test_expectations_over_a_gamma_variable(shape):
    u, weight = log_gamma_nodes(np.asarray(shape))
    assert_allclose(weight @ np.exp(u), shape, rtol=1e-10)
    # The higher the moment, the less smooth is the integrand on the scale of the nodes.
    assert_allclose(weight @ np.exp(2 * u), shape * (shape + 1), rtol=1e-8)


@pytest.mark.parametrize(("m", "v"), LOG_RATES)
@pytest.mark.parametrize("k", [0, 1, 5, 50, 1000])
def test_counts_against_adaptive_integration(m, v, k):
    def integrand(z):
        return stats.poisson.cdf(k, np.exp(m + np.sqrt(v) * z)) * stats.norm.pdf(z)

    edge = (np.log(k + 1) - m) / np.sqrt(v)
    points = [edge] if abs(edge) < 9 else None
    expected, _ = integrate.quad(integrand, -9, 9, points=points, limit=2000, epsabs=1e-13)
    assert_allclose(poisson_cdf(k, np.array([m]), np.array([v])), expected, atol=1e-9)


def test_without_uncertainty_quantiles_are_those_of_poisson():
    m = np.log(np.array([0.01, 0.7, 3.0, 40.0, 1234.5, 1e6]))
    for p in (0.05, 0.5, 0.95):
        assert_array_equal(poisson_quantile(p, m, np.zeros(6)), stats.poisson.ppf(p, np.exp(m)))


def test_quantiles_are_the_smallest_that_suffice(rng):
    m, v = rng.normal(2, 2, BLOCK + 10), rng.uniform(0, 1, BLOCK + 10)
    low, high = poisson_interval(m, v, 0.9).T
    assert (poisson_cdf(high, m, v) >= 0.95).all()
    assert (poisson_cdf(np.maximum(high - 1, 0), m, v) < 0.95)[high > 0].all()
    assert (poisson_cdf(low, m, v) >= 0.05).all()
    assert (poisson_cdf(np.maximum(low - 1, 0), m, v) < 0.05)[low > 0].all()


def test_counts_too_large_for_doubles_are_infinite():
    assert_array_equal(poisson_interval(np.array([800.0]), np.array([0.1]), 0.9), np.inf)
    assert_array_equal(log_normal_moments(np.array([800.0]), np.array([0.1])), np.inf)


def test_moments_of_the_rate(rng):
    mean, variance = log_normal_moments(np.array([0.7]), np.array([0.3]))
    known = stats.lognorm(s=np.sqrt(0.3), scale=np.exp(0.7))
    assert_allclose([mean[0], variance[0]], [known.mean(), known.var()], rtol=1e-12)


def test_the_variance_of_a_rate_is_a_number_where_a_factor_of_it_is_not():
    m, v = np.array([-1e4, 800.0, 0.3, -800.0]), np.array([1e3, 0.0, 0.0, 800.0])
    variance = log_normal_moments(m, v)[1]
    assert_allclose(variance, [0.0, 0.0, 0.0, 1.0])


@pytest.mark.parametrize("nu", [1.0, 2.5, 4.0, 30.0])
@pytest.mark.parametrize("v", [0.0, 0.1, 5.0])
def test_student_noise_and_gaussian_predictor_against_draws(rng, nu, v):
    n = 400_000
    y = np.sqrt(v) * rng.standard_normal(n) + np.sqrt(0.7) * rng.standard_t(nu, n)
    half = student_half_width(np.array([v]), 0.7, nu, 0.9)
    # Four standard errors of the share.
    assert abs((np.abs(y) < half).mean() - 0.9) < 4 * np.sqrt(0.9 * 0.1 / n)


@pytest.mark.parametrize("nu", [1.0, 3.0, 50.0])
def test_student_noise_alone(nu):
    half = student_half_width(np.zeros(BLOCK + 1), 4.0, nu, 0.8)
    assert_allclose(half, 2 * stats.t.ppf(0.9, nu), rtol=1e-9)


def test_much_freedom_is_the_interval_of_gaussian_noise():
    v = np.array([0.0, 0.3, 2.0])
    half = student_half_width(v, 0.5, 1e6, 0.9, freedom=17.0)
    assert_allclose(half, np.sqrt(v + 0.5) * stats.t.ppf(0.95, 17.0), rtol=1e-5)
