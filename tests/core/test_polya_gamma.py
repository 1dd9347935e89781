"""Pólya-Gamma draws against the moments that are known in closed form."""

import numpy as np
import pytest

from sparsebayes.core.polya_gamma import polya_gamma

DRAWS = 200_000


def mean_and_variance(shape, tilt):
    """Of PG(shape, tilt): Polson, Scott and Windle 2013."""
    if tilt == 0:
        return shape / 4, shape / 24
    variance = shape * (np.sinh(tilt) - tilt) / (4 * tilt**3 * np.cosh(tilt / 2) ** 2)
    return shape * np.tanh(tilt / 2) / (2 * tilt), variance


@pytest.mark.parametrize("shape", [1.0, 0.3, 2.5])
@pytest.mark.parametrize("tilt", [0.0, 1.3, -4.0, 15.0])
def test_draws_have_the_right_mean_and_variance(shape, tilt):
    draws = polya_gamma(np.full(DRAWS, shape), np.full(DRAWS, tilt), np.random.default_rng(0))
    mean, variance = mean_and_variance(shape, abs(tilt))
    assert draws.min() > 0
    assert draws.mean() == pytest.approx(mean, abs=5 * np.sqrt(variance / DRAWS))
    assert draws.var() == pytest.approx(variance, rel=0.05)


def test_a_logistic_likelihood_is_the_mean_of_its_gaussian_sites():
    """E[exp(-½ω η²)] over ω ~ PG(1, 0) is 1/cosh(η/2)."""
    omega = polya_gamma(np.ones(DRAWS), np.zeros(DRAWS), np.random.default_rng(1))
    for eta in (0.5, 1.0, 3.0):
        values = np.exp(-0.5 * omega * eta**2)
        assert values.mean() == pytest.approx(1 / np.cosh(eta / 2), abs=5 * values.std() / np.sqrt(DRAWS))
