"""One posterior, two shapes: both against a dense inverse, and against exact fractions over twelve decades of α."""

import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

from sparsebayes.core.posterior import _by_rows, gaussian_posterior, posterior_from_gram

SHAPES = [(9, 4), (4, 9), (5, 5)]


def by_columns(rows, precision, shift, alpha, own_shift=0.0):
    return posterior_from_gram(rows.gram(precision), rows.project(shift) + own_shift, alpha)


def by_rows(rows, precision, shift, alpha, own_shift=0.0):
    return _by_rows(rows, precision, shift, alpha, own_shift)


@pytest.fixture(params=[by_columns, by_rows, gaussian_posterior])
def posterior_of(request):
    return request.param


@pytest.fixture(params=["shared", "per row", "saturated"])
def precision(request, rng):
    def make(n):
        if request.param == "shared":
            return 2.5
        b = rng.uniform(0.1, 3, n)
        if request.param == "saturated":
            b[[0, n // 2]] = 0.0
        return b

    return make


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_is_the_dense_inverse(shape, posterior_of, precision, explicit_rows, rng):
    n, m = shape
    rows = explicit_rows(rng.standard_normal(shape))
    alpha, shift, b = rng.uniform(0.2, 5, m), rng.standard_normal(n), precision(n)
    Sigma = np.linalg.inv(np.diag(alpha) + rows.Phi.T @ np.diag(np.broadcast_to(b, n)) @ rows.Phi)
    posterior = posterior_of(rows, b, shift, alpha)
    expected = {
        "mean": Sigma @ rows.Phi.T @ shift,
        "var": np.diag(Sigma),
        "gamma": 1 - alpha * np.diag(Sigma),
        "logdet": np.linalg.slogdet(Sigma)[1],
    }
    for name, value in expected.items():
        np.testing.assert_allclose(getattr(posterior, name), value, rtol=1e-10, atol=1e-12, err_msg=name)
    np.testing.assert_allclose(posterior.covariance(), Sigma, rtol=1e-10, atol=1e-12)
    new = explicit_rows(rng.standard_normal((6, m)))
    np.testing.assert_allclose(posterior.predictor_variance(new), np.diag(new.Phi @ Sigma @ new.Phi.T), rtol=1e-10)
    assert posterior.jitter == 0


@pytest.mark.parametrize("shape", SHAPES)
def test_a_linear_term_of_the_prior_moves_the_mean(shape, posterior_of, precision, explicit_rows, rng):
    n, m = shape
    rows = explicit_rows(rng.standard_normal(shape))
    alpha, shift, b, own = rng.uniform(0.2, 5, m), rng.standard_normal(n), precision(n), rng.standard_normal(m)
    Sigma = np.linalg.inv(np.diag(alpha) + rows.Phi.T @ np.diag(np.broadcast_to(b, n)) @ rows.Phi)
    posterior = posterior_of(rows, b, shift, alpha, own)
    np.testing.assert_allclose(posterior.mean, Sigma @ (rows.Phi.T @ shift + own), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(posterior.covariance(), Sigma, rtol=1e-10, atol=1e-12)
    quadratic = posterior.quadratic(rows.Phi)
    np.testing.assert_allclose(quadratic, np.diag(rows.Phi @ Sigma @ rows.Phi.T), rtol=1e-10)


@pytest.mark.parametrize("shape", [(6, 4), (4, 6)])
def test_twelve_decades_of_precisions_keep_their_digits(shape, posterior_of, explicit_rows, exact_inverse, rng):
    n, m = shape
    rows = explicit_rows(rng.standard_normal(shape))
    alpha, b, shift = np.logspace(-6, 6, m), rng.uniform(0.1, 3, n), rng.standard_normal(n)
    Phi = [[Fraction(x) for x in row] for row in rows.Phi]
    weights = [Fraction(x) for x in b]
    inner = [
        [
            sum(weights[k] * Phi[k][i] * Phi[k][j] for k in range(n)) + (Fraction(alpha[i]) if i == j else 0)
            for j in range(m)
        ]
        for i in range(m)
    ]
    Sigma = exact_inverse(inner)
    projection = [sum(Phi[k][i] * Fraction(shift[k]) for k in range(n)) for i in range(m)]
    mean = np.array([float(sum(Sigma[i][j] * projection[j] for j in range(m))) for i in range(m)])
    var = np.array([float(Sigma[i][i]) for i in range(m)])
    posterior = posterior_of(rows, b, shift, alpha)
    # Rounding relative to the prior's own scale 1/√α, times the condition of the factor: here at most 1e7 eps = 2e-9.
    prior = 1 / np.sqrt(alpha)
    assert np.abs((posterior.mean - mean) / prior).max() < 2e-9
    assert np.abs((posterior.var - var) / prior**2).max() < 2e-9
    assert np.abs(posterior.gamma - (1 - alpha * var)).max() < 2e-9


def test_the_shape_is_chosen_by_the_number_of_columns_that_are_left(explicit_rows, rng):
    for n, m, called in ((5, 4, "gram"), (5, 5, "gram"), (5, 6, "outer")):
        rows = explicit_rows(rng.standard_normal((n, m)))
        gaussian_posterior(rows, 1.0, np.ones(n), np.ones(m))
        assert rows.calls == [called]


def test_no_square_matrix_of_the_columns_when_they_are_many(explicit_rows, rng):
    n, m = 30, 20_000
    rows = explicit_rows(rng.standard_normal((n, m)))
    tracemalloc.start()
    posterior = gaussian_posterior(rows, 1.0, np.ones(n), np.ones(m))
    posterior.predictor_variance(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * rows.Phi.nbytes  # the covariance would be 667 times the design


def test_a_model_without_columns_has_an_empty_posterior(explicit_rows):
    rows = explicit_rows(np.empty((4, 0)))
    posterior = gaussian_posterior(rows, 1.0, np.ones(4), np.empty(0))
    assert posterior.logdet == 0
    assert posterior.mean.shape == posterior.var.shape == (0,)
    np.testing.assert_array_equal(posterior.predictor_variance(rows), np.zeros(4))
