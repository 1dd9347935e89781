"""Class probabilities against adaptive integration, and intervals against Student's distribution."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, ndtr
from scipy.stats import t as student

from sparsebayes.core.predictive import (
    PROBABILITIES,
    _log_bound,
    central_interval,
    pooled_freedom,
    quadrature,
    variational_bound,
)

MEANS = np.array([-50.0, -20.0, -5.0, -1.0, 0.0, 0.3, 2.0, 10.0, 35.0, 50.0])
VARIANCES = np.array([0.0, 1e-8, 0.1, 0.99, 1.0, 1.5, 10.0, 300.0, 1e4])
M, V = (grid.ravel() for grid in np.meshgrid(MEANS, VARIANCES))


@pytest.fixture(params=PROBABILITIES)
def probability(request):
    return PROBABILITIES[request.param]


@pytest.fixture(scope="module")
def integral():
    """∫ σ(η) N(η; m, v) dη on the grid, by SciPy's adaptive rule."""

    def one(m, v):
        if v == 0:
            return expit(m)
        std = np.sqrt(v)
        low, high = m - 12 * std, m + 12 * std
        cuts = sorted({m, float(np.clip(0, low, high))})

        def integrand(x):
            return math.exp(-((x - m) ** 2) / (2 * v)) / math.sqrt(2 * math.pi * v) * expit(x)

        return quad(integrand, low, high, points=cuts, epsabs=1e-13, epsrel=1e-12, limit=500)[0]

    return np.array([one(m, v) for m, v in zip(M, V, strict=True)])


def test_quadrature_is_the_integral(integral):
    assert np.abs(quadrature(M, V) - integral).max() < 1e-11


@pytest.mark.parametrize("sign", [1, -1])
def test_the_variational_bound_of_each_class_is_one(sign, integral):
    exact = integral if sign > 0 else quadrature(-M, V)
    assert (np.exp(_log_bound(sign * M, V)) <= exact + 1e-12).all()


def test_the_bound_is_at_its_best_xi_and_is_normalised():
    """Directly: log ∫ exp(jaakkola site) N(η; m, v) dη maximised over a grid of ξ, for both classes."""
    xi = np.logspace(-4, 4, 8001)[:, None]
    lam = np.tanh(xi / 2) / (4 * xi)

    def best(m, v):
        precision, shift = 1 / v + 2 * lam, m / v + 0.5
        log_bound = (
            -0.5 * np.log(v * precision)
            + shift**2 / (2 * precision)
            - m**2 / (2 * v)
            - np.logaddexp(0, -xi)
            - xi / 2
            + lam * xi**2
        )
        return log_bound.max(axis=0)

    m, v = M[V > 1e-3], V[V > 1e-3]
    one, zero = best(m, v), best(-m, v)
    # the form above cancels terms of m²/v, up to 2.5e4: 1e-11 of them is left
    np.testing.assert_allclose(_log_bound(m, v), one, atol=1e-5)
    assert (_log_bound(m, v) >= one - 1e-9).all()
    np.testing.assert_allclose(variational_bound(m, v), np.exp(one - np.logaddexp(one, zero)), atol=1e-5)


def test_without_variance_every_way_is_the_plain_probability(probability):
    m = np.linspace(-30, 30, 13)
    np.testing.assert_allclose(probability(m, np.zeros(13)), expit(m), rtol=1e-10, atol=1e-15)


def test_probabilities_of_both_classes_add_up_to_one(probability):
    np.testing.assert_allclose(probability(M, V) + probability(-M, V), 1.0, rtol=1e-12)


def test_probability_is_within_its_range_and_grows_with_the_mean(probability):
    p = probability(M, V).reshape(len(VARIANCES), -1)
    assert ((p >= 0) & (p <= 1)).all()
    assert (np.diff(p, axis=1) >= -1e-15).all()


def test_each_row_is_independent_of_the_others(probability):
    alone = np.array([probability(M[i : i + 1], V[i : i + 1])[0] for i in range(len(M))])
    np.testing.assert_allclose(probability(M, V), alone, rtol=1e-11, atol=1e-15)


def test_probit_has_its_two_limits():
    probit, plug_in = PROBABILITIES["probit"], PROBABILITIES["plug-in"]
    np.testing.assert_array_equal(plug_in(M, V), expit(M))
    # a latent far broader than the logistic itself: Φ(m/√v), which the moderated output imitates to 1 %
    z = np.linspace(-3, 3, 25)
    assert np.abs(probit(100 * z, np.full(25, 1e4)) - ndtr(z)).max() < 0.02
    assert np.abs(quadrature(100 * z, np.full(25, 1e4)) - ndtr(z)).max() < 1e-4


@pytest.mark.parametrize("freedom", [3.0, 17.5, 1e9])
@pytest.mark.parametrize("coverage", [0.5, 0.95])
def test_central_interval_is_students(coverage, freedom, rng):
    mean, std = rng.standard_normal((4, 2)), rng.uniform(0.1, 2, (4, 2))
    interval = central_interval(mean, std, coverage, freedom)
    low, high = student(freedom, mean, std).interval(coverage)
    np.testing.assert_allclose(interval, np.stack([low, high], axis=-1), rtol=1e-9, atol=1e-12)


def test_central_interval_covers_when_the_noise_is_estimated(rng):
    """New observation, mean and variance both from the same 6 rows: 5 degrees of freedom."""
    rows, new = rng.standard_normal((40_000, 6)), rng.standard_normal(40_000)
    spread = rows.std(axis=1, ddof=1) * np.sqrt(1 + 1 / 6)
    interval = central_interval(rows.mean(axis=1), spread, 0.9, 5.0)
    inside = (interval[:, 0] <= new) & (new <= interval[:, 1])
    assert inside.mean() == pytest.approx(0.9, abs=4 * np.sqrt(0.09 / 40_000))  # four standard errors


def test_pooled_freedom_matches_the_variance_of_the_sum(rng):
    """A sum of two scaled χ² variables has the mean and the variance of one with the pooled degrees of freedom."""
    total = 2.0 * rng.chisquare(8, 400_000) / 8 + 3.0 * rng.chisquare(20, 400_000) / 20
    freedom = pooled_freedom(2.0, 8, 3.0, 20)
    np.testing.assert_allclose(2 * total.mean() ** 2 / total.var(), freedom, rtol=0.02)
    assert pooled_freedom(1.0, 7.0, 0.0, 3.0) == 7.0
    assert pooled_freedom(0.0, 1.0, 0.0, 3.0) == 1.0
