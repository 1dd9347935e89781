"""Labels by least squares (engine/label_regression.py): held-out labels, noise, link and posterior, by brute force."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit

from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.kernel_regression import own_scale
from sparsebayes.engine.label_regression import (
    MATERIAL,
    MAX_CENTRES,
    HeldOutLabels,
    LabelRegression,
    best_link,
    regression_centres,
)
from sparsebayes.engine.process import LOG_RATIOS, Spectrum, regression_signal

INTERCEPTS = pytest.mark.parametrize("intercept", [True, False])
RATIO = 11
"""Number of the ratio that is compared; e³."""


def labelled(n=25, m=6, seed=0, classes=3):
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((n, m)) + 0.5
    scores = G @ rng.standard_normal((m, classes)) + rng.standard_normal((n, classes))
    return G, (scores.argmax(axis=1)[:, None] == np.arange(classes)) - 0.5


def regression(G, T, weight, intercept):
    return LabelRegression(own_scale(DenseRows.of(G), weight, intercept).unweighted(), T, weight, intercept)


def ridge(G, T, weight, ratio, intercept):
    """Weights and (last) intercepts, and the inverse of the matrix of the normal equations."""
    A = np.column_stack([G, np.ones((len(G), int(intercept)))])
    P = np.zeros(A.shape[1])
    P[: G.shape[1]] = 1 / ratio
    inverse = np.linalg.inv(A.T @ (weight[:, None] * A) + np.diag(P))
    return inverse @ A.T @ (weight[:, None] * T), inverse, A


@INTERCEPTS
@pytest.mark.parametrize("counted", [False, True])
def test_held_out_labels_are_those_of_fits_without_the_row(intercept, counted):
    G, T = labelled()
    weight = np.random.default_rng(1).integers(1, 4, len(G)).astype(float) if counted else np.ones(len(G))
    found = regression(G, T, weight, intercept).held_out(RATIO)
    for i in range(len(G)):
        others = weight.copy()
        others[i] -= 1  # a row that counts several times leaves once
        w, inverse, A = ridge(G, T, others, np.exp(LOG_RATIOS[RATIO]), intercept)
        assert_allclose(found.mean[i], A[i] @ w, atol=1e-9)
        assert found.variance[i] == pytest.approx(found.noise * A[i] @ inverse @ A[i], rel=1e-9)


@INTERCEPTS
def test_the_noise_is_that_of_largest_evidence(intercept):
    G, T = labelled(classes=1)
    T = T + np.where(np.arange(len(T)) % 3, 0.0, -1.0)[:, None] * (T > 0)  # both labels
    weight = np.ones(len(G))
    signal = regression_signal(Spectrum.of(G @ G.T, weight, T, intercept))
    model = regression(G, T, weight, intercept)
    e = model.axes[0]
    assert model._noise(1 / (e + 1 / signal.ratio[0])) == pytest.approx(signal.variance[0] / signal.ratio[0], rel=1e-6)


def test_the_link_makes_held_out_labels_most_probable():
    rng = np.random.default_rng(0)
    T = np.sign(rng.standard_normal((60, 2))) / 2
    labels = HeldOutLabels(0.6 * T + 0.4 * rng.standard_normal(T.shape), rng.uniform(0.01, 0.2, 60), 0.1)
    weight = rng.uniform(0.5, 2.0, 60)
    link, density = best_link(labels, T, weight)
    ups = float((weight[:, None] * (T > 0)).sum())
    downs = float((weight[:, None] * (T < 0)).sum())
    target = np.where(T > 0, (ups + 1) / (ups + 2), 1 / (downs + 2))

    def loss(x):
        p = expit((x[0] * labels.mean + x[1]) / np.sqrt(1 + np.pi / 8 * x[0] ** 2 * labels.variance[:, None]))
        return -(weight[:, None] * (target * np.log(p) + (1 - target) * np.log(1 - p))).sum()

    other = minimize(loss, [1.0, 0.5], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10})
    assert_allclose(link, other.x, rtol=1e-3, atol=1e-3)
    p = expit((link.a * labels.mean + link.b) / np.sqrt(1 + np.pi / 8 * link.a**2 * labels.variance[:, None]))
    assert density == pytest.approx(float((weight[:, None] * np.log(np.where(T > 0, p, 1 - p))).sum()), rel=1e-9)


def test_labels_that_are_all_on_their_side_have_a_finite_link():
    T = np.repeat([[-0.5], [0.5]], 20, axis=0)
    link, density = best_link(HeldOutLabels(T, np.zeros(40), 0.0), T, np.ones(40))
    assert np.isfinite(link).all()
    # Each label then has the probability of Laplace's rule of succession, 21/22.
    assert np.exp(density / 40) == pytest.approx(21 / 22, abs=1e-3)


@INTERCEPTS
def test_the_model_is_the_posterior_of_the_regression_under_the_link(intercept):
    G, T = labelled()
    model = regression(G, T, np.ones(len(G)), intercept)
    chosen = model.choose()
    (a, b), noise = chosen.link, model.held_out(int(np.flatnonzero(np.exp(LOG_RATIOS) == chosen.ratio)[0])).noise
    w, inverse, A = ridge(G, T, np.ones(len(G)), chosen.ratio, intercept)
    centred = model.columns.columns(slice(None))
    for k, result in enumerate(model.results(chosen)):
        assert_allclose(result.level + centred @ result.posterior.mean, a * (A @ w[:, k]) + b, atol=1e-8)
        variance = result.level_variance + result.posterior.quadratic(centred)
        assert_allclose(variance, a**2 * noise * np.einsum("ij,jk,ik->i", A, inverse, A), rtol=1e-8)
        assert 1 / result.alpha[0] == pytest.approx(a**2 * noise * chosen.ratio)
        assert result.log_evidence == chosen.density


def test_the_ratio_is_the_best_of_its_neighbours():
    G, T = labelled(60)
    model = regression(G, T, np.ones(60), True)
    chosen = model.choose()
    densities = [best_link(model.held_out(i), T, np.ones(60))[1] for i in range(len(LOG_RATIOS))]
    at = int(np.flatnonzero(np.exp(LOG_RATIOS) == chosen.ratio)[0])
    assert densities[at] > max(densities[at - 1 : at + 2]) - MATERIAL


def test_a_plateau_does_not_lead_to_an_endless_prior():
    """Two features and many rows: no shrinkage is as good as a little."""
    G, T = labelled(400, 2)
    assert regression(G, T, np.ones(400), True).choose().ratio < 1e3


def test_integer_weights_are_repeated_rows():
    G, T = labelled()
    times = np.random.default_rng(2).integers(1, 4, len(G))
    again = np.repeat(np.arange(len(G)), times)
    one, other = regression(G, T, times.astype(float), True), regression(G[again], T[again], np.ones(len(again)), True)
    first, second = one.choose(), other.choose()
    assert_allclose(first.link, second.link, rtol=1e-6)
    assert first.density == pytest.approx(second.density, rel=1e-9)
    for left, right in zip(one.results(first), other.results(second), strict=True):
        assert_allclose(left.posterior.mean, right.posterior.mean, atol=1e-6)
        assert_allclose(left.posterior.var, right.posterior.var, rtol=1e-6)


def test_centres_grow_with_the_root_of_the_rows():
    assert regression_centres(100) == 350
    assert regression_centres(400) == 700
    assert regression_centres(10**9) == MAX_CENTRES
