"""The scalar functions against fifty decimal digits, grids and numerical integrals."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma as gamma_distribution

from sparsebayes.core.special import gamma_bound_terms, jj_lambda, log_ratio, log_sigmoid


def lambda_with_fifty_digits(xi: float) -> float:
    with localcontext() as context:
        context.prec = 50
        x = Decimal(xi)
        e = (-x).exp()
        return float((1 - e) / (1 + e) / (4 * x))


@pytest.mark.parametrize("xi", [1e-12, 1e-5, 1e-3, 4.9e-3, 5.1e-3, 9.9e-3, 1.01e-2, 0.1, 1.0, 7.0, 40.0, 800.0])
def test_jj_lambda_has_all_digits_on_both_sides_of_the_seam(xi):
    # Two roundings of tanh and the quotient: 5e-16 is two units in the last place.
    assert jj_lambda(xi) == pytest.approx(lambda_with_fifty_digits(xi), rel=5e-16)


def test_jj_lambda_at_zero_is_one_eighth_and_it_is_even():
    xi = np.linspace(-3, 3, 25)
    assert jj_lambda(0.0) == 0.125
    np.testing.assert_array_equal(jj_lambda(-xi), jj_lambda(xi))


@pytest.mark.parametrize("x", [-800.0, -40.0, -3.0, -1e-3, -1e-12, 0.0, 1e-12, 1e-3, 3.0, 40.0, 800.0])
def test_log_sigmoid_has_all_digits(x):
    with localcontext() as context:
        context.prec = 400  # of 1 + e^-800
        exact = float((1 / (1 + Decimal(-x).exp())).ln())
    # Roundings of exp, log1p and the difference, 1.1e-16 each.
    assert log_sigmoid(np.array([x]))[0] == pytest.approx(exact, rel=1e-15)


@pytest.mark.parametrize("n_weights", [1, 7])
@pytest.mark.parametrize(("a0", "b0"), [(0.5, 0.1), (1e-2, 1e-4), (3.0, 2.0)])
def test_gamma_bound_terms_are_the_expectation_they_stand_for(a0, b0, n_weights):
    """E_q[log p(α) - log q(α) + ½ n log α], which is what the bound has where fixed scales have ½ log|A|."""
    a_n, b_n = a0 + n_weights / 2, b0 + 0.8
    p, q = gamma_distribution(a0, scale=1 / b0), gamma_distribution(a_n, scale=1 / b_n)

    def integrand(log_alpha):
        alpha = np.exp(log_alpha)
        inside = p.logpdf(alpha) - q.logpdf(alpha) + 0.5 * n_weights * log_alpha
        return inside * q.pdf(alpha) * alpha

    ends = np.log(q.ppf([1e-18, 1 - 1e-15]))
    assert gamma_bound_terms(a0, b0, a_n, b_n) == pytest.approx(quad(integrand, *ends, epsabs=1e-12)[0], rel=1e-9)


def test_log_ratio_has_digits_at_both_ends():
    p, rest = np.array([0.25, 1.0, 1e-300, 0.0]), np.array([0.75, 1e-300, 1.0, 1.0])
    found = log_ratio(p, rest)
    np.testing.assert_allclose(found[:3], [-np.log(3), 300 * np.log(10), -300 * np.log(10)], rtol=1e-14)
    assert np.isfinite(found[3])
