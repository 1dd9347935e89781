"""Feature weights of a Gaussian process: the evidence against its definition, its slopes, and what is dropped."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal

from sparsebayes.core.weighted_kernels import WEIGHTED, weighted_kernel
from sparsebayes.engine.process import regression_signal
from sparsebayes.engine.theta_process import ProcessEvidence, process_relevance, process_theta
from sparsebayes.engine.width import Sample


def evidence_of(name, n=25, n_features=3, flat_intercept=True, seed=0, noise=0.1):
    """The target depends on the first two features."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, n_features))
    t = np.sin(2 * X[:, 0]) + X[:, 1] + noise * rng.standard_normal(n)
    weight = rng.uniform(0.5, 2.0, n)
    t = (t - np.average(t, weights=weight)) / t.std()
    return ProcessEvidence(weighted_kernel(name), Sample.of(X, t[:, None], weight), flat_intercept)


def brute_force(evidence, theta, c):
    """log ∫ N(t; level, σ²/w + cσ²K) d level at the best σ², up to what does not depend on θ and c."""
    sample, n = evidence.sample, len(evidence.sample.X)
    K = evidence.kernel(sample.X, sample.X, theta).value
    C = np.diag(1 / sample.weight) + c * K
    t, ones = sample.T[:, 0], np.ones(n)
    inverse = np.linalg.inv(C)
    spent = 0
    if evidence.flat_intercept:
        t = t - (ones @ inverse @ t) / (ones @ inverse @ ones)
        spent = np.log(ones @ inverse @ ones)
    noise = t @ inverse @ t / evidence.n
    return -0.5 * (evidence.n * np.log(noise) + np.linalg.slogdet(C)[1] + spent)


@pytest.mark.parametrize("flat_intercept", [True, False])
@pytest.mark.parametrize("name", sorted(WEIGHTED))
def test_the_evidence_is_that_of_its_definition(name, flat_intercept):
    evidence = evidence_of(name, flat_intercept=flat_intercept)
    points = [(np.array([0.3, 0.2, 0.1]), 5.0), (np.array([1.0, 0.0, 0.4]), 0.7), (np.array([0.1, 0.6, 0.3]), 80.0)]
    ours = [evidence(theta, c).value for theta, c in points]
    theirs = [brute_force(evidence, theta, c) for theta, c in points]
    assert_allclose(np.diff(ours), np.diff(theirs), rtol=1e-8)


def test_without_an_intercept_it_is_a_normal_density():
    evidence, theta, c = evidence_of("rbf", flat_intercept=False), np.array([0.5, 0.3, 0.1]), 4.0
    sample, found = evidence.sample, evidence(theta, c)
    K = evidence.kernel(sample.X, sample.X, theta).value
    C = found.noise * (np.diag(1 / sample.weight) + c * K)
    n = len(C)
    constant = 0.5 * n * (np.log(2 * np.pi) + 1) - 0.5 * np.log(sample.weight).sum()
    density = multivariate_normal(np.zeros(n), C).logpdf(sample.T[:, 0])
    assert found.value == pytest.approx(density + constant, abs=1e-8)


@pytest.mark.parametrize("flat_intercept", [True, False])
@pytest.mark.parametrize("name", sorted(WEIGHTED))
def test_slopes_are_those_of_differences(name, flat_intercept):
    evidence, theta, c, h = evidence_of(name, flat_intercept=flat_intercept), np.array([0.3, 0.2, 0.1]), 5.0, 1e-5
    found = evidence(theta, c)
    for k in range(3):
        step = h * np.eye(3)[k]
        by_difference = (evidence(theta + step, c).value - evidence(theta - step, c).value) / (2 * h)
        assert found.by_theta[k] == pytest.approx(by_difference, rel=1e-5, abs=1e-6)
    by_difference = (evidence(theta, c * np.exp(h)).value - evidence(theta, c * np.exp(-h)).value) / (2 * h)
    assert found.by_log_c == pytest.approx(by_difference, rel=1e-5)


def test_at_equal_weights_it_is_the_evidence_of_a_width():
    """Up to what the row weights add, which is the same at every width."""
    evidence, differences = evidence_of("rbf"), []
    for gamma in (0.05, 0.4, 2.0):
        theta = np.full(3, gamma)
        K = evidence.kernel(evidence.sample.X, evidence.sample.X, theta).value
        signal = regression_signal(evidence.sample.spectrum(K, True))
        differences.append(evidence(theta, signal.ratio[0]).value - signal.log_evidence)
    assert_allclose(differences, 0, atol=1e-6)  # c is up to 1e8, and eigenvalues are clipped at zero


def test_useless_features_are_dropped_and_the_others_are_at_a_maximum():
    evidence = evidence_of("rbf", n=120, n_features=6)
    end = process_theta(evidence, np.full(6, 0.1), price=3.0)
    assert np.flatnonzero(end.theta).tolist() == [0, 1]
    found = evidence(end.theta, end.c)
    assert_allclose(found.by_theta[:2] * end.theta[:2], 0, atol=0.05)
    assert found.value == pytest.approx(end.value)


def test_of_two_copies_one_stays():
    evidence = evidence_of("rbf", n=80, n_features=3)
    X = np.column_stack([evidence.sample.X, evidence.sample.X[:, 0]])
    evidence = ProcessEvidence(evidence.kernel, evidence.sample._replace(X=X), True)
    end = process_theta(evidence, np.full(4, 0.2), price=3.0)
    assert end.n_kept == 2
    assert end.theta[1] > 0


def test_relevance_is_large_for_what_the_data_determine():
    evidence = evidence_of("rbf", n=120, n_features=6)
    end = process_theta(evidence, np.full(6, 0.1), price=0.0)
    relevance = process_relevance(evidence, end)
    assert ((relevance >= 0) & (relevance <= 1)).all()
    by_feature = dict(zip(np.flatnonzero(end.theta).tolist(), relevance, strict=True))
    assert by_feature[0] > 0.9
    assert by_feature[1] > 0.7  # nearly linear in it, so that its range could be any that is long


@pytest.mark.parametrize("least", [0.0, 0.3])
def test_slopes_where_the_noise_is_held_and_where_not(least):
    evidence = replace(evidence_of("rbf"), least_noise=least)
    theta, c, step = np.array([0.5, 0.4, 0.1]), 50.0, 1e-6
    found = evidence(theta, c)
    assert (found.noise == least) == (least > 0)
    for k in range(3):
        up, down = (evidence(theta + sign * step * np.eye(3)[k], c).value for sign in (1, -1))
        assert found.by_theta[k] == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-6)
    up, down = (evidence(theta, c * np.exp(sign * step)).value for sign in (1, -1))
    assert found.by_log_c == pytest.approx((up - down) / (2 * step), rel=1e-5)


def test_with_the_noise_held_it_is_a_normal_density():
    evidence = replace(evidence_of("rbf", flat_intercept=False), least_noise=0.5)
    theta, c = np.array([0.5, 0.3, 0.1]), 4.0
    sample, found = evidence.sample, evidence(theta, c)
    assert found.noise == 0.5
    C = 0.5 * (np.diag(1 / sample.weight) + c * evidence.kernel(sample.X, sample.X, theta).value)
    n = len(C)
    constant = 0.5 * n * (np.log(2 * np.pi) + 1) - 0.5 * np.log(sample.weight).sum()
    density = multivariate_normal(np.zeros(n), C).logpdf(sample.T[:, 0])
    assert found.value == pytest.approx(density + constant, abs=1e-8)


def test_the_common_size_is_the_best_on_a_grid():
    evidence, theta = evidence_of("rbf"), np.array([0.5, 0.5, 0.0])
    found = evidence.maximise_size(theta, 10.0)
    assert found.theta[0] == pytest.approx(found.theta[1])
    assert found.theta[2] == 0
    grid = [evidence(size * theta, c).value for size in np.geomspace(0.05, 20, 25) for c in np.geomspace(0.1, 1e4, 25)]
    assert found.value >= max(grid) - 1e-6
    assert found.value <= evidence.maximise(theta, 10.0).value + 1e-6


def test_a_feature_that_the_start_lacks_returns_if_it_pays():
    evidence = evidence_of("rbf", n=60)
    found = process_theta(evidence, np.array([0.5, 0.0, 0.0]), 3.0)
    assert (found.theta[:2] > 0).all()
    assert found.theta[2] == 0
    whole = process_theta(evidence, np.array([0.5, 0.5, 0.5]), 3.0)
    assert found.value == pytest.approx(whole.value, abs=0.05)
    assert process_theta(evidence, np.array([0.5, 0.0, 0.0]), 1e6).theta[1] == 0
