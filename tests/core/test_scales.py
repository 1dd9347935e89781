"""Every rule stands still exactly where the evidence is flat, and every candidate is the best one on a grid."""

import numpy as np
import pytest

from sparsebayes.core.posterior import gaussian_posterior
from sparsebayes.core.scales import (
    ard_candidate,
    em,
    gain,
    laplace_candidate,
    mackay,
    noise_em,
    noise_mackay,
    shared_em,
    shared_mackay,
)

N, M = 12, 4
PRIORS = [(0.0, 0.0), (0.6, 0.2), (0.0, 0.5), (1.5, 0.0)]


@pytest.fixture
def data(rng):
    Phi = rng.standard_normal((N, M))
    return Phi, Phi @ rng.standard_normal(M) + 0.5 * rng.standard_normal(N)


@pytest.fixture
def posterior(data, explicit_rows):
    def of(alpha, noise):
        Phi, t = data
        return gaussian_posterior(explicit_rows(Phi), 1 / noise, t / noise, alpha)

    return of


def moments(posterior):
    return posterior.mean, posterior.var, posterior.gamma


@pytest.mark.parametrize(("a", "b"), PRIORS)
@pytest.mark.parametrize("rule", [em, mackay])
def test_a_rule_moves_a_precision_by_the_slope_of_the_evidence(rule, a, b, data, posterior, marginal, slope, rng):
    """α_new/α - 1 = slope × something positive: the rule climbs, and it rests where and only where the slope is 0."""
    alpha, noise = np.exp(rng.standard_normal(M)), 0.3
    found = posterior(alpha, noise)
    new = rule(*moments(found), a, b)
    weight = {em: 2 * b + found.mean**2 + found.var, mackay: 2 * b + found.mean**2}[rule]
    for j in range(M):

        def objective(step, j=j):
            moved = alpha * np.exp(step * (np.arange(M) == j))
            return marginal(*data, moved, noise) + a * np.log(moved[j]) - b * moved[j]

        assert (new[j] / alpha[j] - 1) * alpha[j] * weight[j] == pytest.approx(2 * slope(objective), rel=1e-7)


@pytest.mark.parametrize(("a", "b"), PRIORS)
@pytest.mark.parametrize("rule", [shared_em, shared_mackay])
def test_a_shared_rule_moves_the_one_precision_by_the_slope(rule, a, b, data, posterior, marginal, slope):
    alpha, noise = 0.7, 0.3
    found = posterior(np.full(M, alpha), noise)
    new = rule(*moments(found), a, b)
    assert np.ptp(new) == 0
    square = (found.mean**2).sum()
    weight = {shared_em: 2 * b + square + found.var.sum(), shared_mackay: 2 * b + square}[rule]

    def objective(step):
        moved = alpha * np.exp(step)
        return marginal(*data, np.full(M, moved), noise) + a * np.log(moved) - b * moved

    assert (new[0] / alpha - 1) * alpha * weight == pytest.approx(2 * slope(objective), rel=1e-7)


@pytest.mark.parametrize(("c", "d"), PRIORS)
@pytest.mark.parametrize("rule", [noise_em, noise_mackay])
def test_a_noise_rule_moves_the_noise_by_the_slope_of_the_evidence(rule, c, d, data, posterior, marginal, slope, rng):
    alpha, noise = np.exp(rng.standard_normal(M)), 0.4
    Phi, t = data
    found = posterior(alpha, noise)
    residual, gamma_sum = ((t - Phi @ found.mean) ** 2).sum(), found.gamma.sum()
    new = rule(residual, noise, gamma_sum, N, c, d)
    freedom = {noise_em: N, noise_mackay: N - gamma_sum}[rule]

    def objective(step):
        moved = noise * np.exp(step)
        return marginal(Phi, t, alpha, moved) - c * np.log(moved) - d / moved

    assert (new / noise - 1) * (2 * c + freedom) == pytest.approx(2 * slope(objective), rel=1e-7)


def test_noise_rules_agree_where_the_weights_use_up_the_rows():
    terms = (0.3, 0.5, N - 0.01 * N, N, 0.1, 0.2)
    assert noise_mackay(*terms) == noise_em(*terms)
    assert noise_mackay(0.0, 0.5, N, N, 0.0, 0.0) == 0.5  # and nothing is divided by nothing


def test_mackay_survives_a_weight_of_zero():
    zero = np.zeros(2)
    for rule in (mackay, shared_mackay):
        assert np.isfinite(rule(zero, np.ones(2), zero, 0.0, 0.0)).all()


def test_a_column_outside_gains_nothing_whatever_rounding_made_of_its_s():
    """Where the noise is next to nothing s is a difference of huge numbers, and may come out below zero."""
    s = np.array([-1e9, -2.0, 0.0, 3.0])
    assert (gain(np.full(4, np.inf), s, np.full(4, 1e5)) == 0).all()


def test_gain_is_the_evidence_with_the_column_against_without(data, marginal, rng):
    Phi, t = data
    alpha, noise, j = np.exp(rng.standard_normal(M)), 0.3, 2
    without = np.where(np.arange(M) == j, np.inf, alpha)
    C = noise * np.eye(N) + (Phi / without) @ Phi.T
    s, q = Phi[:, j] @ np.linalg.solve(C, Phi[:, j]), Phi[:, j] @ np.linalg.solve(C, t)
    expected = marginal(Phi, t, alpha, noise) - marginal(Phi, t, without, noise)
    found = gain(np.array([alpha[j], np.inf]), np.array([s, s]), np.array([q, q]))
    np.testing.assert_allclose(found, [expected, 0.0], rtol=1e-10)


def random_factors(rng, size):
    s = 10 ** rng.uniform(-3, 3, size)
    return s, np.sqrt(s) * 10 ** rng.uniform(-1, 1.5, size)


GRID = np.logspace(-12, 12, 24_001)
STEP = np.log(GRID[1] / GRID[0])


def on_grid(s, q, a, b):
    total = GRID + s[:, None]
    return 0.5 * (np.log(GRID / total) + q[:, None] ** 2 / total) + a * np.log(GRID) - b[:, None] * GRID


def test_flat_candidate_is_the_best_on_a_grid_or_out(rng):
    s, q = random_factors(rng, 200)
    values = on_grid(s, q, 0.0, np.zeros(200))
    alpha = ard_candidate(s, q)
    inside = q**2 > s
    assert 20 < inside.sum() < 180
    np.testing.assert_array_equal(np.isfinite(alpha), inside)
    # The gain at α is a parabola in log α with curvature below 10³ (r = q²/s ≤ 10³) within half a grid step.
    best = values.max(axis=1)
    found = gain(alpha, s, q)
    assert (found >= best - 1e-12).all()
    assert (found[inside] <= best[inside] + 1e3 * STEP**2).all()
    near = GRID[values.argmax(axis=1)[inside]]
    assert np.abs(np.log(alpha[inside] / near)).max() <= STEP


@pytest.mark.parametrize("a", [0.0, 0.01, 0.5, 3.0])
def test_candidate_with_a_hyper_prior_is_the_best_on_a_grid(a, rng):
    s, q = random_factors(rng, 200)
    b = 10 ** rng.uniform(-6, 1, 200) / s
    values = on_grid(s, q, a, b)
    alpha = ard_candidate(s, q, a, b)
    assert np.isfinite(alpha).all()
    at = gain(alpha, s, q) + a * np.log(alpha) - b * alpha
    best = values.max(axis=1)
    assert (at >= best - 1e-9 * (1 + np.abs(best))).all()
    assert (at <= best + 1e3 * STEP**2).all()


def test_candidate_takes_the_better_of_two_maxima():
    """The likelihood wants a weight (r = q²/s = 6 ... 16), the hyper-prior none: two modes, either may win."""
    ratio = np.linspace(6, 16, 60)
    s, a, rate = np.ones(60), 0.5, 1e-4
    values = on_grid(s, np.sqrt(ratio), a, np.full(60, rate))
    inner = values[:, 1:-1]
    n_modes = ((inner > values[:, :-2]) & (inner > values[:, 2:])).sum(axis=1)
    assert (n_modes == 2).sum() > 20
    near = GRID[values.argmax(axis=1)]
    assert near[n_modes == 2].min() < 1 < near[n_modes == 2].max()
    alpha = ard_candidate(s, np.sqrt(ratio), a, rate)
    # where the two are equally high to rounding of the grid either may be named
    value = gain(alpha, s, np.sqrt(ratio)) + a * np.log(alpha) - rate * alpha
    np.testing.assert_allclose(value, values.max(axis=1), atol=1e3 * STEP**2)
    assert np.mean(np.abs(np.log(alpha / near)) <= STEP) > 0.95


def test_without_a_rate_the_candidate_is_the_inner_maximum_or_out():
    """With b = 0 and a > 0 the objective grows without bound as α → ∞; the sensible mode is the local one, if any."""
    ratio = np.linspace(0.1, 20, 60)
    s, a = np.full(60, 2.0), 0.3
    q = np.sqrt(ratio * s)
    values = on_grid(s, q, a, np.zeros(60))
    inner = values[:, 1:-1]
    modes = (inner > values[:, :-2]) & (inner > values[:, 2:])
    alpha = ard_candidate(s, q, a, 0.0)
    np.testing.assert_array_equal(np.isfinite(alpha), modes.any(axis=1))
    has = modes.any(axis=1)
    assert 5 < has.sum() < 55
    near = GRID[1 + modes[has].argmax(axis=1)]
    assert np.abs(np.log(alpha[has] / near)).max() <= STEP


@pytest.mark.parametrize(("a", "b"), [(0.0, 0.0), (0.5, 0.1)])
def test_a_column_of_zeros_is_left_out(a, b):
    assert np.isinf(ard_candidate(np.zeros(2), np.zeros(2), a, b)).all()


@pytest.mark.parametrize("strength", [1e-6, 0.3, 4.0, 200.0])
def test_the_laplace_candidate_is_the_best_on_a_grid(strength, rng):
    """The objective is written out here with the prior variance v = 1/α: ½[q²v/(1 + sv) - log(1 + sv) - strength v]."""
    s, q = np.exp(rng.normal(size=300)) * 5, 8 * rng.normal(size=300)
    alpha = laplace_candidate(s, q, strength)
    v = np.append(0.0, np.logspace(-9, 5, 4001))[:, None]
    on_grid = 0.5 * (q**2 * v / (1 + s * v) - np.log1p(s * v) - strength * v)
    v = 1 / alpha
    found = 0.5 * (q**2 * v / (1 + s * v) - np.log1p(s * v) - strength * v)
    assert (found >= on_grid.max(axis=0) - 1e-12).all()
    np.testing.assert_allclose(gain(alpha, s, q, strength), found, atol=1e-9)
    np.testing.assert_array_equal(np.isfinite(alpha), q**2 - s > strength)
    assert 0 < np.isfinite(alpha).sum() < 300 or strength == 200.0


def test_the_laplace_candidate_as_it_is_printed(rng):
    """g = [-s - 2λ/σ² + √(s² + 4λq²/σ²)] / (2λs), and α = 1/(σ²g)."""
    s, q, rate, noise = np.exp(rng.normal(size=50)), 6 + rng.random(50), 0.7, 0.2
    g = (-s - 2 * rate / noise + np.sqrt(s**2 + 4 * rate * q**2 / noise)) / (2 * rate * s)
    np.testing.assert_allclose(laplace_candidate(s, q, rate / noise), 1 / (noise * g), rtol=1e-9)


def test_the_laplace_candidate_without_a_strength_is_that_of_ard(rng):
    s, q = np.exp(rng.normal(size=50)), 3 * rng.normal(size=50)
    np.testing.assert_allclose(laplace_candidate(s, q, 0.0), ard_candidate(s, q), rtol=1e-12)
