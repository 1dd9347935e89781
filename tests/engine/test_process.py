"""Gaussian processes through their values at centres, against dense formulas, quadrature and differences."""

from dataclasses import replace
from functools import cache, partial
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import null_space
from scipy.optimize import brentq, minimize
from scipy.special import expit, log_expit, roots_hermitenorm
from scipy.stats import multivariate_normal

from sparsebayes.core.kernels import laplacian, rbf
from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.predictive import quadrature
from sparsebayes.core.priors import ARD
from sparsebayes.core.special import jj_lambda
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import process
from sparsebayes.engine.kernel_regression import kernel_problem, own_scale
from sparsebayes.engine.leave_one_out import label_density
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.process import (
    LEFT_OUT,
    MAX_CENTRES,
    VARIANCE_FACTORS,
    Features,
    Spectrum,
    label_centres,
    label_signal,
    regression_signal,
    solve,
    solve_labels,
)

INTERCEPTS = pytest.mark.parametrize("intercept", [True, False], ids=["flat intercept", "no intercept"])
KERNEL = partial(laplacian, gamma=0.4)
"""Its matrix is well conditioned, so that dense formulas keep their digits."""


def rows(n, seed=0):
    """Inputs, a noisy target with a mean, and row weights."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 2))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.standard_normal(n) + 0.5, rng.uniform(0.3, 2, n)


# --- the evidence as a function of the spectrum ---


def best_density(K, y, weight, intercept):
    """Largest log density of √weight y (of its contrasts, where the mean is free) over s and σ²; and these."""
    root = np.sqrt(weight)
    U = null_space(root[None]) if intercept else np.eye(len(y))
    t, M = U.T @ (root * y), U.T @ (root[:, None] * K * root) @ U

    def loss(at):
        s, noise = np.exp(at)
        return -multivariate_normal.logpdf(t, cov=s * M + noise * np.eye(len(t)))

    starts = product([-1.0, 1.0], [-3.0, -1.0])
    best = min(
        (minimize(loss, at, method="Nelder-Mead", options={"fatol": 1e-9}) for at in starts), key=lambda b: b.fun
    )
    return -best.fun, *np.exp(best.x)


@INTERCEPTS
def test_regression_signal_is_the_best_dense_density(intercept):
    X, y, weight = rows(25)
    K, n = KERNEL(X, X), 25 - intercept
    signal = regression_signal(Spectrum.of(K, weight, np.column_stack([y, y**2]), intercept))
    dense = [best_density(K, target, weight, intercept) for target in (y, y**2)]
    constant = 0.5 * n * (np.log(2 * np.pi) + 1)
    assert signal.log_evidence == pytest.approx(sum(value for value, _, _ in dense) + 2 * constant, abs=1e-4)
    assert_allclose(signal.variance, [s for _, s, _ in dense], rtol=0.01)
    assert_allclose(signal.ratio, [s / noise for _, s, noise in dense], rtol=0.01)


def test_targets_without_noise_end_at_the_floor():
    X, _, weight = rows(25)
    y = np.sin(X[:, 0])
    signal = regression_signal(Spectrum.of(rbf(X, X, gamma=0.01), weight, y[:, None], True))
    assert np.isfinite(signal.log_evidence)
    assert signal.ratio[0] <= np.exp(process.LOG_RATIOS[-1])


def sites_integral(K, t, weight, s, xi, intercept):
    """Log ∫ exp(Σ weight [log σ(ξ) - ξ/2 + tη - λ(η² - ξ²)]) N(f; 0, sK) df, η = f (+ level, integrated as well)."""
    lam = float(jj_lambda(xi))
    A = np.column_stack([np.eye(len(t)), np.ones((len(t), int(intercept)))])
    H = A.T @ (2 * lam * weight[:, None] * A)
    H[: len(t), : len(t)] += np.linalg.inv(s * K)
    h = A.T @ (weight * t)
    value = 0.5 * h @ np.linalg.solve(H, h) - 0.5 * np.linalg.slogdet(H)[1] - 0.5 * np.linalg.slogdet(s * K)[1]
    return value + weight.sum() * (log_expit(xi) - xi / 2 + lam * xi**2)  # less ½ log 2π for a level


def contact(signal):
    """ξ, from the precision 2λ(ξ) of the sites."""
    b = float(signal.ratio[0] / VARIANCE_FACTORS[-1] / signal.variance[0])
    return brentq(lambda xi: 2 * float(jj_lambda(xi)) - b, 1e-3, 1e3)


@INTERCEPTS
def test_label_signal_is_its_direct_formula_at_the_best_scales(intercept):
    X, y, weight = rows(25, 1)
    t, K = (y > np.median(y)) - 0.5, KERNEL(X, X)
    signal = label_signal(Spectrum.of(K, weight, t[:, None], intercept))
    s, xi = float(signal.variance[0]), contact(signal)
    assert signal.log_evidence == pytest.approx(sites_integral(K, t, weight, s, xi, intercept), abs=1e-8)
    for a, c in product(np.linspace(-1, 1, 9), repeat=2):
        assert sites_integral(K, t, weight, s * np.exp(a), xi * np.exp(c), intercept) < signal.log_evidence + 0.005


def test_several_classes_are_summed():
    X, y, weight = rows(25, 1)
    T, K = np.column_stack([y > 0.5, y > 0, y < -0.2]) - 0.5, KERNEL(X, X)
    together = label_signal(Spectrum.of(K, weight, T, True))
    alone = [label_signal(Spectrum.of(K, weight, T[:, [k]], True)) for k in range(3)]
    assert together.log_evidence == pytest.approx(sum(each.log_evidence for each in alone))
    assert_allclose(together.variance, np.concatenate([each.variance for each in alone]))


@cache
def hermite_grid(d):
    """Points and weights for means under d independent standard normal numbers."""
    nodes, weights = roots_hermitenorm(40)
    points = np.array(list(product(nodes, repeat=d)))
    return points, np.prod(list(product(weights, repeat=d)), axis=1) / (2 * np.pi) ** (d / 2)


def labels_evidence(K, sign, s, level):
    """∫ Π σ(sign (f + level)) N(f; 0, sK) df by Gauss-Hermite quadrature."""
    z, mass = hermite_grid(len(K))
    f = z @ np.linalg.cholesky(s * K).T
    return mass @ expit(sign * (f + level)).prod(axis=1)


@INTERCEPTS
def test_label_signal_is_a_lower_bound_of_the_evidence(intercept):
    X, _, _ = rows(3)
    sign, K = np.array([1.0, 1.0, -1.0 if intercept else 1.0]), KERNEL(X, X)  # such that a signal is better than none
    signal = label_signal(Spectrum.of(K, np.ones(3), sign[:, None] / 2, intercept))
    s = float(signal.variance[0])
    if intercept:  # beyond ±40 the evidence is below e⁻⁴⁰: some label is wrong
        levels = np.linspace(-40, 40, 81)  # σ has its poles at ±iπ: the rule with steps of one is exact to e^-2π²
        evidence = sum(labels_evidence(K, sign, s, level) for level in levels) * (levels[1] - levels[0])
        bound = signal.log_evidence + 0.5 * np.log(2 * np.pi)
    else:
        evidence, bound = labels_evidence(K, sign, s, 0.0), signal.log_evidence
    assert bound < np.log(evidence)
    assert bound > np.log(evidence) - 1


# --- columns ---


def test_with_all_centres_the_columns_are_a_root_of_the_kernel_matrix():
    X, _, _ = rows(30)
    features = Features.of(KERNEL, X, X, 1e9, MAX_CENTRES)
    assert_array_equal(np.sort(features.centres), np.arange(30))
    assert_allclose(features.G @ features.G.T, KERNEL(X, X), atol=1e-10)
    assert_allclose(features.L @ features.L.T, KERNEL(X[features.centres], X[features.centres]), atol=1e-10)
    assert_array_equal(features.L, np.tril(features.L))


@pytest.mark.parametrize("ratio", [1e-2, 1.0, 1e2, 1e4])
def test_centres_leave_out_no_more_than_they_may(ratio):
    X, _, _ = rows(200)
    kernel = partial(rbf, gamma=0.3)
    features = Features.of(kernel, X, X, ratio, MAX_CENTRES)
    left = 1 - (features.G**2).sum(axis=1)
    assert left.min() > -1e-9
    assert left.mean() <= 2 * LEFT_OUT / ratio
    assert len(features.centres) < 150
    Z = X[features.centres]
    K = kernel(X, Z)
    assert_allclose(features.G @ features.G.T, K @ np.linalg.solve(kernel(Z, Z), K.T), atol=1e-6)


def test_more_signal_asks_for_more_centres_and_there_is_a_limit():
    X, _, _ = rows(200)
    kernel = partial(rbf, gamma=0.3)
    sizes = [len(Features.of(kernel, X, X, ratio, MAX_CENTRES).centres) for ratio in (1e-2, 1.0, 1e2, 1e4)]
    assert sizes == sorted(set(sizes))
    assert len(Features.of(kernel, X, X, 1e4, most=7).centres) == 7


def test_a_classifier_has_fewer_centres_the_more_rows_and_classes_there_are():
    assert label_centres(100, 1) == MAX_CENTRES
    assert label_centres(1000, 10) == pytest.approx(316, abs=1)
    assert label_centres(10**12, 1) == 1


def test_centres_may_be_other_points_than_the_rows():
    X, _, _ = rows(40)
    points = np.random.default_rng(5).uniform(-3, 3, (12, 2))
    features = Features.of(KERNEL, X, points, 1e6, MAX_CENTRES)
    assert features.G.shape == (40, len(features.centres))
    assert_allclose(features.G @ features.L.T, KERNEL(X, points[features.centres]), atol=1e-10)


# --- regression ---


def dense_process(K, y, s, noise, intercept):
    """Mean and variance of f (and the intercept) at the rows, and the log evidence; an intercept has density one."""
    n, ones = len(y), np.ones(len(y))
    C = s * K + noise * np.eye(n)
    across = np.linalg.solve(C, np.column_stack([y, ones, s * K]))
    total = ones @ across[:, 1]
    level = ones @ across[:, 0] / total if intercept else 0.0
    mean = level + s * K @ (across[:, 0] - level * across[:, 1])
    variance = s * np.diag(K) - np.einsum("ij,ij->j", s * K, across[:, 2:])
    evidence = multivariate_normal.logpdf(y - level, cov=C)
    if intercept:
        variance += (1 - ones @ across[:, 2:]) ** 2 / total
        evidence += 0.5 * np.log(2 * np.pi / total)
    return mean, variance, evidence


def problem_on(G, y, weight, intercept):
    """The regression on these columns as they are, for a target that need not have variance one."""
    columns = own_scale(DenseRows.of(G), weight, intercept)
    t = np.sqrt(weight) * (y - weight @ y / weight.sum() if intercept else y)
    return kernel_problem(columns, t, float(weight.sum()), intercept)


@INTERCEPTS
def test_on_all_rows_it_is_the_gaussian_process(intercept):
    X, y, _ = rows(30)
    K, ones = KERNEL(X, X), np.ones(30)
    problem = problem_on(Features.of(KERNEL, X, X, 1e9, MAX_CENTRES).G, y, ones, intercept)
    result = solve(problem)
    s, noise, centre = 1 / result.alpha[0], result.noise, y.mean() if intercept else 0.0
    mean, variance, evidence = dense_process(K, y, s, noise, intercept)
    assert result.log_evidence == pytest.approx(evidence, rel=1e-9)
    assert_allclose(centre + problem.design.predict(result.posterior.mean), mean, atol=1e-8)
    ours = result.posterior.predictor_variance(problem.design) + result.level_variance
    assert_allclose(ours, variance, rtol=1e-7)
    # the maximum over both scales: differences to all sides, and no slope to speak of
    for a, b in product((-0.05, 0.0, 0.05), repeat=2):
        assert dense_process(K, y, s * np.exp(a), noise * np.exp(b), intercept)[2] <= evidence + 1e-6
    by_s, by_noise = (
        (
            dense_process(K, y, s * up, noise * along, intercept)[2]
            - dense_process(K, y, s / up, noise / along, intercept)[2]
        )
        / 2e-3
        for up, along in ((np.exp(1e-3), 1.0), (1.0, np.exp(1e-3)))
    )
    assert_allclose([by_s, by_noise], 0, atol=1e-2)


@INTERCEPTS
def test_integer_weights_are_repeated_rows(intercept):
    X, y, _ = rows(20)
    times = np.random.default_rng(3).integers(1, 4, 20)
    again = np.repeat(np.arange(20), times)
    G = Features.of(KERNEL, X, X, 1e9, MAX_CENTRES).G
    weighted = solve(problem_on(G, y, times.astype(float), intercept))
    repeated = solve(problem_on(G[again], y[again], np.ones(len(again)), intercept))
    # log s/σ² is found to some 1e-5
    assert weighted.log_evidence == pytest.approx(repeated.log_evidence, abs=1e-6)
    assert weighted.noise == pytest.approx(repeated.noise, rel=1e-4)
    assert_allclose(weighted.posterior.mean, repeated.posterior.mean, rtol=1e-4, atol=1e-6)


def test_few_centres_do_not_promise_more_evidence_than_they_may():
    """At equal scales the evidence exceeds that of all centres by no more than ½ s/σ² Σ (k(x, x) - ‖g(x)‖²)."""
    X, y, _ = rows(60)
    kernel = partial(rbf, gamma=0.3)
    for ratio in (1.0, 30.0, 1e3):
        G = Features.of(kernel, X, X, ratio, MAX_CENTRES).G
        few = multivariate_normal.logpdf(y, cov=ratio * G @ G.T + np.eye(60))
        whole = multivariate_normal.logpdf(y, cov=ratio * kernel(X, X) + np.eye(60))
        assert few - whole <= 0.5 * ratio * (1 - (G**2).sum(axis=1)).sum() + 1e-9


def test_a_target_without_noise_has_hardly_any():
    X, _, _ = rows(60)
    y = np.sin(X[:, 0])
    y = (y - y.mean()) / y.std()
    result = solve(problem_on(Features.of(partial(rbf, gamma=0.05), X, X, 1e8, MAX_CENTRES).G, y, np.ones(60), True))
    assert 1e-8 <= result.noise < 1e-6
    assert np.isfinite(result.log_evidence)


# --- labels ---


def label_problem(X, t, weight, intercept):
    columns = own_scale(DenseRows.of(Features.of(KERNEL, X, X, 1e9, MAX_CENTRES).G), weight, intercept).unweighted()
    return Problem(
        design=columns, t=t, weight=weight, likelihood=Bernoulli(), prior=ARD(min_alpha=1e-6), flat_intercept=intercept
    )


def dense_mode(K, t, weight, s, intercept):
    """Mode of η = f + level by Newton's method, and Laplace's log evidence; the level has density one."""
    n = len(t)
    A = np.column_stack([np.eye(n), np.ones((n, int(intercept)))])
    P = np.zeros((n + intercept, n + intercept))
    P[:n, :n] = np.linalg.inv(s * K)
    x = np.zeros(n + intercept)
    for _ in range(50):
        p = expit(A @ x)
        H = P + A.T @ ((weight * p * (1 - p))[:, None] * A)
        x = x + np.linalg.solve(H, A.T @ (weight * (t - p)) - P @ x)
    eta = A @ x
    fit = weight @ log_expit((2 * t - 1) * eta)
    value = fit - 0.5 * x @ P @ x - 0.5 * np.linalg.slogdet(s * K)[1] - 0.5 * np.linalg.slogdet(H)[1]
    return eta, value + 0.5 * intercept * np.log(2 * np.pi), A @ np.linalg.inv(H) @ A.T


@INTERCEPTS
@pytest.mark.parametrize("weighted", [False, True])
def test_labels_have_the_evidence_and_the_corrected_mode_of_a_dense_computation(intercept, weighted):
    X, y, weight = rows(30, 2)
    weight = weight if weighted else np.ones(30)
    t = (y > np.median(y)).astype(float)
    problem = label_problem(X, t, weight, intercept)
    result = solve_labels(problem, 3.0 * VARIANCE_FACTORS)
    s = 1 / result.alpha[0]
    assert s / 3.0 in VARIANCE_FACTORS
    mode, evidence, covariance = dense_mode(KERNEL(X, X), t, weight, s, intercept)
    assert result.log_evidence == pytest.approx(evidence, abs=1e-5)
    Phi = problem.design.columns(slice(None)) - result.origin
    variance = result.level_variance + np.einsum("ij,jk,ik->i", Phi, result.posterior.covariance(), Phi)
    assert_allclose(variance, np.diag(covariance), rtol=1e-4)
    p = expit(mode)
    third = -weight * p * (1 - p) * (1 - 2 * p)  # ∂³ log p/∂η³
    mean = mode + 0.5 * covariance @ (third * np.diag(covariance))
    assert_allclose(result.level + Phi @ result.posterior.mean, mean, atol=1e-5)


def test_the_corrected_mode_is_nearer_to_the_mean_of_the_posterior():
    """Three rows with one label each, no intercept: the mean by quadrature."""
    X, _, _ = rows(3)
    K, t, s = KERNEL(X, X), np.array([1.0, 1.0, 0.0]), 1.0
    problem = label_problem(X, t, np.ones(3), False)
    result = solve_labels(problem, np.array([s]))
    found = problem.design.columns(slice(None)) @ result.posterior.mean
    nodes, mass = hermite_grid(3)
    f = nodes @ np.linalg.cholesky(s * K).T
    probability = mass * expit((2 * t - 1) * f).prod(axis=1)
    mean = probability @ f / probability.sum()
    mode, _, _ = dense_mode(K, t, np.ones(3), s, False)
    assert (np.abs(found - mean) < 0.5 * np.abs(mode - mean)).all()


@pytest.fixture
def overlapping():
    """Inputs and labels of classes that overlap."""
    X, y, _ = rows(40, 4)
    return X, (y + np.random.default_rng(0).standard_normal(40) > np.median(y)).astype(float)


@pytest.fixture
def densities(monkeypatch):
    """Log probabilities of held-out labels, summed, for each variance that is tried."""
    seen = []

    def recorded(*given):
        density = label_density(*given)
        seen.append(float(given[0].weight @ density))
        return density

    monkeypatch.setattr(process, "label_density", recorded)
    return seen


def refitted(K, t, s):
    """Log probabilities of labels, summed, each by a posterior of the other rows about its corrected mode."""
    total, n = 0.0, len(t)
    for i in range(n):
        others = np.arange(n) != i
        known = np.append(np.flatnonzero(others), i)
        count = np.append(np.ones(n - 1), 1e-12)  # the row itself hardly counts
        mode, _, covariance = dense_mode(K[np.ix_(known, known)], t[known], count, s, True)
        p = expit(mode)
        pull = -0.5 * count * p * (1 - p) * (1 - 2 * p) * np.diag(covariance)
        mean, variance = (mode + covariance @ pull)[-1], covariance[-1, -1]
        total += np.log(quadrature(np.array([(2 * t[i] - 1) * mean]), np.array([variance]))[0])
    return total


def test_the_variance_is_that_under_which_labels_of_other_rows_are_most_probable(overlapping, densities):
    X, t = overlapping
    tried = 4.0 ** np.arange(-3, 5)
    found = 1 / solve_labels(label_problem(X, t, np.ones(40), True), tried).alpha[0]
    at = int(np.argmax(densities))
    assert found == pytest.approx(tried[at])
    assert len(densities) == at + 2 < len(tried)  # one more was tried, and then none
    assert (np.diff(densities[:-1]) > 0).all()
    fitted = [refitted(KERNEL(X, X), t, s) for s in tried[: at + 2]]
    assert np.argmax(fitted) == at
    assert_allclose(densities[:at], fitted[:at], atol=0.5)


def test_a_single_variance_is_not_judged(overlapping, densities):
    X, t = overlapping
    result = solve_labels(label_problem(X, t, np.ones(40), True), np.array([7.0]))
    assert result.alpha[0] == pytest.approx(1 / 7)
    assert not densities


def test_labels_of_integer_weights_are_repeated_rows(overlapping):
    X, t = overlapping
    times = np.random.default_rng(3).integers(1, 4, 40)
    again = np.repeat(np.arange(40), times)
    weighted = label_problem(X, t, times.astype(float), True)
    columns = own_scale(DenseRows.of(Features.of(KERNEL, X[again], X, 1e9, MAX_CENTRES).G), np.ones(len(again)), True)
    repeated = replace(weighted, design=columns.unweighted(), t=t[again], weight=np.ones(len(again)))
    one, other = (solve_labels(each, 0.5 * VARIANCE_FACTORS) for each in (weighted, repeated))
    assert_array_equal(one.alpha, other.alpha)
    assert one.log_evidence == pytest.approx(other.log_evidence, rel=1e-7)
    assert_allclose(one.posterior.mean, other.posterior.mean, atol=1e-5)
