"""Noise with gross errors: its density, bound and parameters, against quadrature, differences and optimisers."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import norm

from sparsebayes.core.contaminated import LEAST_SCALE, SHARES, Contaminated
from sparsebayes.core.scales import noise_em

NOISE = Contaminated(noise=0.7, share=0.2, scale=40.0)
T = np.linspace(-9, 9, 13)


def test_density_is_that_of_a_shift_integrated_out():
    """y = ε with probability 0.8, else ε + δ, δ ~ N(0, 39 × 0.7)."""
    for t in (-6.0, 0.3, 2.5):
        shifted = quad(
            lambda d, t=t: norm.pdf(t - d, scale=0.7**0.5) * norm.pdf(d, scale=(39 * 0.7) ** 0.5), -60, 60, points=[t]
        )[0]
        right, wrong = 0.8 * norm.pdf(t, scale=0.7**0.5), 0.2 * shifted
        assert NOISE.log_density(np.array([t]), np.zeros(1))[0] == pytest.approx(np.log(right + wrong), rel=1e-8)
        assert NOISE.outlier_probability(np.array([t**2]))[0] == pytest.approx(wrong / (right + wrong), rel=1e-7)


def test_derivatives():
    eta, h = np.full_like(T, 0.4), 1e-5
    slope = (NOISE.log_density(T, eta + h) - NOISE.log_density(T, eta - h)) / (2 * h)
    assert_allclose(NOISE.derivatives(T, eta)[0], slope, rtol=1e-6)
    bend = (NOISE.derivatives(T, eta + h)[1] - NOISE.derivatives(T, eta - h)[1]) / (2 * h)
    assert_allclose(NOISE.skew(T, eta), bend, rtol=1e-5, atol=1e-9)


def test_the_bound_touches_and_lies_below():
    contact = np.linspace(0.1, 8, 13)
    sites = NOISE.bound(T, contact)
    for step in np.linspace(-10, 10, 41):
        assert (_value(sites, T + step) <= NOISE.log_density(T, T + step) + 1e-10).all()
    assert_allclose(_value(sites, T + contact), NOISE.log_density(T, T + contact), rtol=1e-10)


def _value(sites, eta):
    return -0.5 * sites.precision * eta**2 + sites.shift * eta + sites.const


def test_parameters_are_those_of_largest_likelihood():
    rng = np.random.default_rng(0)
    bad = rng.random(2000) < 0.15
    t = np.where(bad, 12.0, 0.8) * rng.standard_normal(2000)
    here, zeros = Contaminated(), np.zeros(2000)
    for _ in range(300):
        here = here.updated(t, np.ones(2000), zeros, zeros, noise_em)

    def loss(x):
        other = replace(here, noise=np.exp(x[0]), share=1 / (1 + np.exp(-x[1])), scale=np.exp(x[2]))
        return -other.log_density(t, zeros).sum()

    best = minimize(loss, [0.0, -1.0, 5.0], method="BFGS").x
    assert_allclose(
        [here.noise, here.share, here.scale], [np.exp(best[0]), 1 / (1 + np.exp(-best[1])), np.exp(best[2])], rtol=1e-3
    )
    assert here.share == pytest.approx(0.15, abs=0.03)


def test_clean_rows_have_no_outliers():
    t, zeros = np.random.default_rng(0).standard_normal(500), np.zeros(500)
    here = Contaminated()
    for _ in range(500):
        here = here.updated(t, np.ones(500), zeros, zeros, noise_em)
    assert SHARES[0] <= here.share < 0.02
    assert here.scale >= LEAST_SCALE
    assert (here.outlier_probability(t**2) > 0.5).sum() <= 2  # the farthest of 500, at three deviations


def test_draws_of_the_factors():
    rng = np.random.default_rng(0)
    square = np.array([0.1, 5.0, 12.0, 100.0])
    drawn = np.mean([NOISE.draw_precisions(square, rng) for _ in range(4000)], axis=0)
    assert_allclose(drawn, NOISE.mixing(square), atol=0.025)  # three standard errors
