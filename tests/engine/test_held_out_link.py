"""Labels given the other rows, and the link of log-odds that suits them: enumeration, refits and a fine grid."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import logsumexp

from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.priors import ARD
from sparsebayes.core.special import log_sigmoid
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import held_out_link
from sparsebayes.engine.held_out_link import left_out_odds, link_of, probable_link, without_own_label
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.sets import Draw


@pytest.mark.parametrize("weight", [np.ones(4), np.array([3.0, 0.5, 1.0, 2.0])])
def test_labels_given_the_others_by_enumeration(weight):
    """A predictor of 81 possible values with equal prior: Bayes' rule for the rows but one, at each of them."""
    eta = np.array(list(product([-1.0, 0.3, 1.2], repeat=4))).T
    t = np.array([1.0, 0.0, 1.0, 1.0])
    log_p = log_sigmoid((2 * t - 1)[:, None] * eta)
    share = np.exp(weight @ log_p)
    found = without_own_label(eta, share, t, weight)
    for i in range(4):
        others = weight @ log_p - min(weight[i], 1.0) * log_p[i]  # a row that counts three times leaves once
        up, down = (logsumexp(others + log_sigmoid(sign * eta[i])) for sign in (1, -1))
        assert_allclose(found[i], up - down, atol=1e-12)


def test_no_single_draw_decides():
    """One draw of a hundred that calls the label impossible: its weight is √100 of 100 draws, not all of it."""
    eta = np.append(np.full(99, 2.0), -60.0)[None, :]
    (odds,) = without_own_label(eta, np.ones(100), np.ones(1), np.ones(1))
    # The mean of 1/p is exp(60)/100; the others' ratio, 1/σ(2), is nothing beside the bound of 10 × that.
    assert odds < -40
    eta[0, -1] = -3.0
    ratio = np.append(np.full(99, 1 / 0.8808), 1 + np.exp(3.0))
    most = 10 * ratio.mean()
    assert most < ratio[-1]
    share = np.minimum(ratio, most)
    p = share @ np.append(np.full(99, 0.8808), 1 / (1 + np.exp(3.0))) / share.sum()
    (odds,) = without_own_label(eta, np.ones(100), np.ones(1), np.ones(1))
    assert_allclose(odds, np.log(p / (1 - p)), rtol=1e-3)


def make_problem(weight=None, flat=True, n=24):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, 3))
    t = (1.5 * X[:, 0] - X[:, 1] + rng.logistic(size=n) > 0).astype(float)
    weight = np.ones(n) if weight is None else weight
    design = DenseRows.of(X).standardised(weight, centre=flat).unweighted()
    return Problem(design=design, t=t, weight=weight, likelihood=Bernoulli(), prior=ARD(), flat_intercept=flat)


def some_draws(problem):
    rng, nothing = np.random.default_rng(1), np.empty(0, dtype=np.intp)
    sets = [nothing, np.array([0]), np.array([0, 1]), np.array([0, 1, 2])]
    weights = [rng.normal([1.0, -0.7, 0.0][: len(active)], 0.4) for active in sets]
    return [
        Draw(active, w, 1.0, 0.3 * problem.flat_intercept, share)
        for active, w, share in zip(sets, weights, (0.1, 0.2, 0.5, 0.2), strict=True)
    ]


def test_labels_given_the_others_by_quadrature():
    """Draws on a grid of weight and intercept with their posterior as shares, against the posterior of the others.

    On so small a grid no ratio is so large that it is cut.
    """
    problem, prior_variance = make_problem(n=12), 2.0
    Phi, sign = problem.design.columns(slice(None)), 2 * problem.t - 1
    grid = [(w, level) for w in np.linspace(-1.2, 1.2, 61) for level in np.linspace(-0.8, 0.8, 41)]
    eta = np.array([level + Phi[:, 1] * w for w, level in grid]).T
    log_prior = np.array([-0.5 * w**2 / prior_variance for w, _ in grid])
    log_p = log_sigmoid(sign[:, None] * eta)
    share = np.exp(log_prior + log_p.sum(axis=0))
    draws = [Draw(np.array([1]), np.array([w]), 1.0, level, p) for (w, level), p in zip(grid, share, strict=True)]
    expected = []
    for i in range(len(sign)):
        others = log_prior + np.delete(log_p, i, axis=0).sum(axis=0)
        expected.append(logsumexp(others + log_sigmoid(eta[i])) - logsumexp(others + log_sigmoid(-eta[i])))
    assert_allclose(left_out_odds(problem, draws), expected, rtol=1e-9)


@pytest.mark.parametrize("shifts", [True, False])
def test_link_on_a_fine_grid(shifts):
    rng = np.random.default_rng(0)
    odds, weight = 2 * rng.standard_normal(40), rng.uniform(0.2, 3, 40)
    t = (0.5 * odds + 0.7 + rng.logistic(size=40) > 0).astype(float)
    a, b = probable_link(odds, t, weight, shifts)
    log_a, grid_b = np.linspace(-2, 2, 2001), np.linspace(-2, 2, 401) if shifts else np.zeros(1)
    z = (2 * t - 1) * (np.exp(log_a)[:, None, None] * odds + grid_b[:, None])
    value = log_sigmoid(z) @ weight - 0.5 * log_a[:, None] ** 2 - 0.5 * grid_b**2
    i, j = np.unravel_index(value.argmax(), value.shape)
    assert_allclose([np.log(a), b], [log_a[i], grid_b[j]], atol=0.01)
    assert shifts or b == 0


def test_separable_labels_have_a_finite_link():
    odds = np.append(np.full(30, 5.0), np.full(30, -5.0))
    a, b = probable_link(odds, (odds > 0).astype(float), np.ones(60), True)
    assert 1 < a < 3
    assert_allclose(b, 0, atol=1e-3)


def test_classes_change_places():
    """The other class's log-odds are the negative ones: so is their link's shift."""
    problem = make_problem()
    draws = some_draws(problem)
    mirrored = [replace(draw, weights=-draw.weights, level=-draw.level) for draw in draws]
    one, other = link_of(problem, draws), link_of(replace(problem, t=1 - problem.t), mirrored)
    assert one.b != 0
    assert_allclose(other, [one.a, -one.b], rtol=1e-6)


def test_rows_may_come_in_blocks(monkeypatch):
    problem = make_problem()
    link = link_of(problem, some_draws(problem))
    monkeypatch.setattr(held_out_link, "NUMBERS", 1)  # one row at a time
    assert_allclose(link_of(problem, some_draws(problem)), link, rtol=1e-9)


def test_without_an_intercept_nothing_shifts():
    problem = make_problem(flat=False)
    assert link_of(problem, some_draws(problem)).b == 0
