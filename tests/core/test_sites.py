"""Every view of the Bernoulli likelihood touches it where it says, and the bounds stay below it."""

import numpy as np
import pytest
from scipy.stats import bernoulli, norm
from sparsebayes.core.sites import bernoulli_log_likelihood, bohning, gaussian, jaakkola, laplace

from sparsebayes.core.special import sigmoid

VIEWS = {"laplace": laplace, "jaakkola": jaakkola, "bohning": bohning}
TOUCH = np.array([-30.0, -4.0, -0.7, 0.0, 1e-3, 2.0, 9.0])
ETA = np.linspace(-40, 40, 801)


@pytest.fixture(params=VIEWS)
def view(request):
    return VIEWS[request.param]


@pytest.fixture(params=[0.0, 1.0])
def t(request):
    return np.full_like(TOUCH, request.param)


def parabola(sites, eta):
    return -0.5 * sites.precision * eta**2 + sites.shift * eta + sites.const


def test_bernoulli_log_likelihood_is_scipys():
    eta = np.linspace(-30, 30, 13)
    for t in (0, 1):
        expected = bernoulli.logpmf(1, sigmoid(eta if t else -eta))
        # η - log(1 + e^η) rounds like η: 30 eps = 7e-15
        np.testing.assert_allclose(
            bernoulli_log_likelihood(np.full_like(eta, t), eta), expected, rtol=1e-12, atol=7e-15
        )


def test_bernoulli_log_likelihood_does_not_overflow():
    np.testing.assert_array_equal(bernoulli_log_likelihood(np.array([1.0, 0.0]), np.array([-1e4, 1e4])), -1e4)


def test_view_touches_the_likelihood(view, t):
    sites = view(t, TOUCH)
    # the parabola is put together from terms of the size of b η², up to 0.25 · 30²
    np.testing.assert_allclose(parabola(sites, TOUCH), bernoulli_log_likelihood(t, TOUCH), rtol=1e-12, atol=1e-13)


def test_view_has_the_slope_of_the_likelihood(view, t):
    sites = view(t, TOUCH)
    h = 1e-4
    expected = (bernoulli_log_likelihood(t, TOUCH + h) - bernoulli_log_likelihood(t, TOUCH - h)) / (2 * h)
    # central difference: h²/6 times a third derivative below 0.1, and 1e-15·30/h of rounding
    np.testing.assert_allclose(sites.shift - sites.precision * TOUCH, expected, atol=1e-9)


def test_jaakkola_touches_on_the_other_side_too(t):
    np.testing.assert_allclose(parabola(jaakkola(t, TOUCH), -TOUCH), bernoulli_log_likelihood(t, -TOUCH), atol=1e-13)


@pytest.mark.parametrize("name", ["jaakkola", "bohning"])
def test_bound_lies_below_the_likelihood(name, t):
    sites = VIEWS[name](t, TOUCH)
    below = parabola(sites, ETA[:, None]) - bernoulli_log_likelihood(t, ETA[:, None])
    assert below.max() <= 1e-12
    # and it is a bound that bends: away from where it touches it is strictly below
    assert below.min() < -1


def test_laplace_has_the_curvature_of_the_likelihood(t):
    h = 1e-3
    second = (
        bernoulli_log_likelihood(t, TOUCH + h)
        - 2 * bernoulli_log_likelihood(t, TOUCH)
        + bernoulli_log_likelihood(t, TOUCH - h)
    ) / h**2
    # second difference: h²/12 times a fourth derivative of at most 1/8, and 1e-15·30/h² of rounding
    np.testing.assert_allclose(laplace(t, TOUCH).precision, -second, atol=4e-8)


def test_gaussian_view_is_exact_everywhere(rng):
    t, eta = rng.standard_normal(5), rng.standard_normal(5)
    sites = gaussian(t, 0.3)
    np.testing.assert_allclose(parabola(sites, eta), norm.logpdf(t, eta, np.sqrt(0.3)), rtol=1e-12)
    assert sites.value(eta) == pytest.approx(norm.logpdf(t, eta, np.sqrt(0.3)).sum(), rel=1e-12)


@pytest.mark.parametrize("make", [gaussian, *VIEWS.values()])
def test_integer_weights_are_repeated_rows(make, rng):
    t, at, eta = rng.integers(0, 2, 6).astype(float), rng.uniform(0.1, 2, 6), rng.standard_normal(6)
    times = np.array([1, 3, 0, 2, 1, 5])
    once, repeated = make(t, at, times), make(t.repeat(times), at.repeat(times))
    rows = np.arange(6).repeat(times)
    assert once.value(eta) == pytest.approx(repeated.value(eta.repeat(times)), rel=1e-12)
    for weighted, plain in zip(once, repeated, strict=True):
        summed = np.bincount(rows, np.broadcast_to(plain, len(rows)), minlength=6)
        np.testing.assert_allclose(weighted, summed, rtol=1e-12)
