"""Rows held out in closed form, against models that are really fitted without them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import norm

from sparsebayes.core.kernels import rbf
from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.prices import HalfTheRows
from sparsebayes.core.priors import ARD
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import compiled
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.leave_one_out import (
    HeldOut,
    best_replacements,
    held_out,
    label_density,
    solve_kernel,
    squared_error,
)
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.regression import maximum
from sparsebayes.engine.result import Result

SETTINGS = Settings(1e-6, 10_000)


def problem_of(K, y, weight=None, flat=True):
    weight = np.ones(len(y)) if weight is None else weight
    rows = DenseRows.of(K).standardised(weight, centre=flat)
    t = np.sqrt(weight) * (y - weight @ y / weight.sum() if flat else y)
    total = float(weight.sum())
    return LeastSquares(design=rows, t=t, n_weighted=total, flat_intercept=flat, price=HalfTheRows(total - flat))


@pytest.fixture
def sinc(rng):
    x = rng.uniform(-10, 10, size=(40, 1))
    return rbf(x, x, gamma=0.5), np.sinc(x[:, 0] / np.pi) + 0.1 * rng.standard_normal(40)


def posterior(Phi, t, alpha, noise, flat):
    """Mean and covariance of the weights by the textbook, with a column of ones of precision zero (last) if flat."""
    if flat:
        Phi, alpha = np.column_stack([Phi, np.ones(len(Phi))]), np.append(alpha, 0.0)
    Sigma = np.linalg.inv(np.diag(alpha) + Phi.T @ Phi / noise)
    return Sigma @ Phi.T @ t / noise, Sigma


def predicted(Phi, t, alpha, noise, flat, phi):
    mean, Sigma = posterior(Phi, t, alpha, noise, flat)
    phi = np.append(phi, 1.0) if flat else phi
    return phi @ mean, phi @ Sigma @ phi + noise


def best_rival(Phi, t, alpha, noise, flat, rivals):
    """The candidate of largest evidence beside the model and its precision, each by a dense matrix C."""
    C = noise * np.eye(len(t)) + (Phi / alpha) @ Phi.T
    if flat:
        C += 1e8 * np.ones_like(C)  # a prior so broad that it is flat
    gains, alphas = [], []
    for column in rivals.T:
        s, q = column @ np.linalg.solve(C, column), column @ np.linalg.solve(C, t)
        better = q**2 > s > 1e-8
        gains.append(0.5 * (q**2 / s - 1 - np.log(q**2 / s)) if better else 0.0)
        alphas.append(s**2 / (q**2 - s) if better else np.inf)
    best = int(np.argmax(gains))
    return best, alphas[best]


@pytest.mark.parametrize("centred", [True, False])
def test_a_row_held_out_is_predicted_as_by_a_model_without_it(sinc, centred):
    K, y = sinc
    problem = problem_of(K, y, flat=centred)
    result = maximum(problem, "sequential", SETTINGS)
    model = result.solution
    own = np.arange(40)
    found = held_out(problem, result, own)
    Phi = problem.design.columns(slice(None))
    kept = list(model.active)
    assert 3 < len(kept) < 20
    for i in range(40):
        rest = np.arange(40) != i
        columns, alpha = np.array(kept), model.alpha
        if i in kept:
            columns, alpha = np.delete(columns, kept.index(i)), np.delete(alpha, kept.index(i))
            outside = np.setdiff1d(np.arange(40), kept)
            rivals = Phi[np.ix_(rest, outside)]
            new, precision = best_rival(
                Phi[np.ix_(rest, columns)], problem.t[rest], alpha, model.noise, centred, rivals
            )
            if np.isfinite(precision):
                columns, alpha = np.append(columns, outside[new]), np.append(alpha, precision)
        mean, variance = predicted(
            Phi[np.ix_(rest, columns)], problem.t[rest], alpha, model.noise, centred, Phi[i, columns]
        )
        # The broad prior of the check is flat to 1e-8 of its own size.
        assert_allclose(found.error[i], problem.t[i] - mean, rtol=1e-4, atol=1e-6)
        assert_allclose(found.variance[i], variance, rtol=1e-5)
    assert squared_error(problem, result, own) == pytest.approx((found.error**2).mean())


def test_integer_weights_are_repeated_rows(rng):
    x = rng.uniform(-10, 10, size=(40, 1))
    K, y = rbf(x, x, gamma=5.0), np.sinc(x[:, 0] / np.pi) + 0.1 * rng.standard_normal(40)
    weight = rng.integers(1, 4, size=40).astype(float)
    again = np.repeat(np.arange(40), weight.astype(int))
    own = np.where(weight > 1, -1, np.arange(40))
    weighted = solve_kernel(problem_of(K, y, weight), "sequential", SETTINGS, own)
    repeated = solve_kernel(problem_of(K[again], y[again]), "sequential", SETTINGS, own[again])
    assert_allclose(weighted.result.log_evidence, repeated.result.log_evidence, rtol=1e-9)
    assert_allclose(weighted.held_out.excess, repeated.held_out.excess, rtol=1e-5)
    assert weighted.held_out.excess > 0


def test_the_model_of_a_collapse_is_told_by_its_excess(rng):
    """Narrow kernels on pure noise: the evidence believes in vectors, the held-out rows do not."""
    y = rng.standard_normal(60)
    K = np.eye(60) + 1e-3 * rng.standard_normal((60, 60))
    problem = problem_of(K, y)
    found = solve_kernel(problem, "sequential", SETTINGS, np.arange(60))
    noise = found.result.noise
    assert noise < 0.5 * y.var()
    assert_allclose(noise + found.held_out.excess, y.var(), rtol=0.1)


def test_densities_and_excess_are_those_of_the_errors():
    error, variance, weight = np.array([1.0, -2.0, 0.5]), np.array([0.5, 1.0, 0.1]), np.array([1.0, 2.0, 1.0])
    rows = HeldOut(error, variance, weight)
    assert rows.squared_error == pytest.approx((1 + 2 * 4 + 0.25) / 4)
    assert rows.excess == pytest.approx(rows.squared_error - (0.5 + 2 + 0.1) / 4)
    assert_allclose(rows.log_density, norm.logpdf(error, scale=np.sqrt(variance + rows.excess)))
    assert HeldOut(error, 10 * np.ones(3), weight).excess == 0


def at_mode(problem, alpha):
    """The posterior at the mode for given precisions."""
    design = problem.design.keep(np.arange(len(alpha)))
    point = problem.base_mode(len(alpha)).settled(problem, design, alpha)
    view = point.view(problem, design, alpha)
    return Result(
        active=np.arange(len(alpha)),
        alpha=alpha,
        posterior=view.posterior,
        level=view.level,
        level_variance=view.level_variance,
        origin=view.design.offset,
        log_evidence=0.0,
        worth=np.zeros(len(alpha)),
        gap=0.0,
        converged=True,
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_label_held_out_is_predicted_from_the_sites_of_the_others(intercept, weighted, rng):
    """Newton's last step without one row (or once less, where it counts several times), at the sites of all.

    The mean is moved by a given shift.
    """
    X = rng.uniform(-3, 3, (25, 2))
    t = (np.sin(X[:, 0]) + 0.5 * rng.standard_normal(25) > 0).astype(float)
    weight = rng.integers(1, 4, 25).astype(float) if weighted else np.ones(25)
    K = rbf(X, X[:6], gamma=0.5)
    problem = Problem(
        design=DenseRows.of(K), t=t, weight=weight, likelihood=Bernoulli(), prior=ARD(), flat_intercept=intercept
    )
    result = at_mode(problem, np.full(6, 0.5))
    found = label_density(problem, result, np.full(25, -1), 0.3)
    Phi = np.column_stack([K, np.ones((25, int(intercept)))])
    A = np.diag(np.append(result.alpha, np.zeros(int(intercept))))
    eta = result.level + (K - result.origin) @ result.posterior.mean
    p = expit(eta)
    b, h = p * (1 - p), t - p + p * (1 - p) * eta  # the site of a row that counts once
    z = np.linspace(-9, 9, 2001)
    for i in range(25):
        count = weight - (np.arange(25) == i)
        H = A + Phi.T @ ((count * b)[:, None] * Phi)
        mean = Phi[i] @ np.linalg.solve(H, Phi.T @ (count * h)) + 0.3
        spread = np.sqrt(Phi[i] @ np.linalg.solve(H, Phi[i]))
        probability = norm.pdf(z) @ expit((2 * t[i] - 1) * (mean + spread * z)) * (z[1] - z[0])
        assert found[i] == pytest.approx(np.log(probability), abs=1e-5)


def test_the_compiled_replacement_is_that_of_the_definition(rng):
    """Of candidates of equal worth the first; where none has enough of its length left, nothing is brought."""
    if not compiled.COMPILED:
        pytest.skip("there is no compiled form")
    S, Q = rng.uniform(0.5, 2, 30), 2 * rng.standard_normal(30)
    S[7], Q[7] = S[3], Q[3]
    least = np.where(rng.random(30) < 0.3, np.inf, 1e-10)
    common, beyond = rng.standard_normal((2, 12, 30))
    common[:, 7], beyond[:, 7], least[[3, 7]] = common[:, 3], beyond[:, 3], 1e-10
    of_rows = rng.uniform(0.5, 2, 12), rng.standard_normal(12), rng.uniform(0, 0.1, 12), rng.standard_normal(12)
    Q[[3, 7]] = 50.0  # the best of some rows at least
    ours = compiled.native.best_replacements(S, Q, least, common, beyond, *of_rows)
    for found, defined in zip(ours, best_replacements(S, Q, least, common, beyond, *of_rows), strict=True):
        assert_allclose(found, defined, rtol=1e-12)
    nothing = np.full(30, np.inf)
    for form in (compiled.native.best_replacements, best_replacements):
        s, q, _ = form(S, Q, nothing, common, beyond, *of_rows)
        assert np.isinf(s).all()
        assert_allclose(q**2 / s, 0.0, atol=0)
