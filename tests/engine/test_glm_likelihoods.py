"""Counts and Student noise through every loop of the engine: one class each, and no line of their own in a loop.

Evidence is checked against brute-force integration over one or two weights.
"""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp

from sparsebayes.core.kernels import KERNELS
from sparsebayes.core.likelihoods import Poisson, StudentT
from sparsebayes.core.prices import FREE, HalfTheRows, PerUnit
from sparsebayes.core.priors import ARD
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import glm
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.scale_fit import fit_scales

SETTINGS = Settings(1e-8, 20_000)
WEIGHTS = np.array([0.8, -0.6])


def predictor(X):
    return X[:, :2] @ WEIGHTS


def counts(rng, eta):
    return rng.poisson(np.exp(1 + eta)).astype(float)


def heavy(rng, eta):
    return 1 + eta + 0.3 * rng.standard_t(3, len(eta))


CASES = {
    "poisson": (Poisson(), counts, False),
    "poisson with exposure": (Poisson(np.log(np.linspace(0.5, 2, 120))), counts, False),
    "student": (StudentT(noise=0.1, learns_freedom=True), heavy, True),
    "student, freedom given": (StudentT(noise=0.1, freedom=3.0), heavy, True),
}


@pytest.fixture(params=CASES)
def make(request):
    """A problem of every kind on 120 rows, of which two columns matter."""
    likelihood, draw, bounded = CASES[request.param]

    def problem(n_columns=8, price=FREE, design=None, **changed):
        rng = np.random.default_rng(7)
        X = rng.standard_normal((120, max(n_columns, 2)))
        eta = predictor(X) if design is None else 2 * np.sin(X[:, 0])
        t = draw(rng, eta)
        rows = DenseRows.of(X[:, :n_columns] if design is None else design(X))
        rows = rows.standardised(np.ones(120), centre=True).unweighted()
        known = {"likelihood": likelihood, "bounded": bounded, "prior": ARD(min_alpha=1e-6)} | changed
        return Problem(design=rows, t=t, weight=np.ones(120), price=price, **known)

    return problem


# --- evidence ---


def log_integral(problem, alpha, likelihood, reach=8.0, n=161):
    """Log evidence by the rectangle rule over intercept and weights, centred at the posterior of a fit."""
    active = np.arange(len(alpha))
    fixed = replace(likelihood, learns=False) if isinstance(likelihood, StudentT) else likelihood
    problem = replace(problem, likelihood=fixed)
    fit = fit_scales(problem, active, alpha, problem.start(len(alpha)), 1e-10, drop_worthless=False)
    Phi = problem.design.keep(active).columns(slice(None))
    spread = np.sqrt(np.append(fit.view.posterior.var, fit.view.level_variance)) * 1.5
    middle = np.append(fit.view.posterior.mean, fit.view.intercept())
    n = n if len(alpha) == 1 else 61
    axes = [m + s * np.linspace(-reach, reach, n) for m, s in zip(middle, spread, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(middle))
    total = np.empty(len(points))
    for part in np.array_split(np.arange(len(points)), 200):
        eta = points[part, :-1] @ Phi.T + points[part, -1:]
        total[part] = fixed.log_density(problem.t, eta).sum(axis=1)
    total += 0.5 * np.log(alpha / (2 * np.pi)).sum() - 0.5 * points[:, :-1] ** 2 @ alpha
    return logsumexp(total) + sum(np.log(axis[1] - axis[0]) for axis in axes)


@pytest.mark.parametrize("n_weights", [1, 2])
def test_evidence_against_brute_force(make, n_weights):
    problem = make(n_weights)
    result = glm.sparse(problem, "fixed-point", SETTINGS)
    assert_array_equal(np.sort(result.active), np.arange(n_weights))
    alpha = result.alpha[np.argsort(result.active)]
    exact = log_integral(problem, alpha, result.likelihood)
    if problem.bounded:
        # A lower bound. Its curvature is that of EM, not Fisher's information, which is smaller by (ν + 1)/(ν + 3): it
        # loses ½ log((ν + 3)/(ν + 1)) for each weight and for the intercept, in the mean over data sets.
        nu = result.likelihood.freedom
        expected = 0.5 * (n_weights + 1) * np.log((nu + 3) / (nu + 1))
        assert 0 < exact - result.log_evidence == pytest.approx(expected, rel=0.25)
    else:
        # Laplace's method is wrong by a few tenths of 1/(number of events).
        assert abs(exact - result.log_evidence) < 0.5 / problem.t.sum()


def test_learned_noise_is_a_maximum_of_the_bound(make):
    problem = make(2)
    if not problem.bounded:
        pytest.skip("counts have no noise to learn")
    result = glm.sparse(problem, "fixed-point", Settings(1e-10, 50_000))
    best = result.likelihood

    def bound(likelihood):
        held = replace(problem, likelihood=replace(likelihood, learns=False))
        return fit_scales(held, result.active, result.alpha, held.start(2), 1e-11, drop_worthless=False).evidence

    top = bound(best)
    for factor in (0.99, 1.01):
        assert bound(replace(best, noise=best.noise * factor)) < top
        if best.learns_freedom:
            assert bound(replace(best, freedom=best.freedom * factor)) < top


# --- loops ---


@pytest.mark.parametrize("rule", ["fixed-point", "em"])
def test_batch_without_a_price(make, rule):
    result = glm.sparse(make(), rule, SETTINGS)
    assert result.converged
    assert {0, 1} <= set(result.active.tolist())
    assert result.gap < 1e-4


def test_both_rules_end_at_the_same_model(make):
    first, second = (glm.sparse(make(2), rule, SETTINGS) for rule in ("fixed-point", "em"))
    assert_allclose(first.log_evidence, second.log_evidence, atol=1e-4)
    # The evidence is flat in the precisions: an error of 1e-4 nats is one of 1e-2 in their logarithm.
    assert_allclose(first.posterior.mean, second.posterior.mean, rtol=1e-2)


@pytest.mark.parametrize("n_columns", [8, 300])
def test_search_with_a_price_keeps_the_true_columns(make, n_columns):
    result = glm.find(make(n_columns, PerUnit(float(np.log(n_columns)) + 3)), SETTINGS)
    assert result.converged
    assert_array_equal(np.sort(result.active), [0, 1])
    assert result.gap == pytest.approx(0, abs=1e-3)


def test_the_end_of_a_search_is_a_maximum(make):
    """No other model that differs by one column has more priced evidence, each fitted on its own."""
    price = PerUnit(3.0)
    problem = make(8, price)
    result = glm.find(problem, SETTINGS)

    def priced(active):
        alpha = np.ones(len(active))
        fit = fit_scales(problem, np.array(active), alpha, problem.start(len(active)), 1e-6, drop_worthless=False)
        return fit.priced(problem)

    kept = result.active.tolist()
    best = result.log_evidence - 3.0 * len(kept)
    others = [[*kept, j] for j in range(8) if j not in kept] + [[j for j in kept if j != i] for i in kept]
    assert max(priced(each) for each in others) < best + 1e-3


def test_search_in_a_kernel_design(make):
    """Free columns, one per row: the search ends with few, and they follow the curve."""
    problem = make(price=HalfTheRows(120.0), design=lambda X: KERNELS["rbf"](X[:, :1], X[:, :1], gamma=0.5))
    result = glm.find(problem, Settings(1e-4, 20_000))
    assert result.converged
    assert len(result.active) < 20
    x = np.random.default_rng(7).standard_normal((120, 8))[:, 0]
    eta = problem.design.keep(result.active).columns(slice(None)) @ result.posterior.mean
    assert np.corrcoef(eta, np.sin(x))[0, 1] > 0.97


def test_weights_of_rows_are_repeats(make):
    problem = make(8, PerUnit(3.0))
    if np.ndim(getattr(problem.likelihood, "offset", 0.0)):
        pytest.skip("the exposures would have to be repeated too")
    weight = np.random.default_rng(1).integers(1, 4, 120)
    X = problem.design.columns(np.arange(8))
    rows = DenseRows.of(np.repeat(X, weight, axis=0))
    repeated = replace(problem, design=rows, t=np.repeat(problem.t, weight), weight=np.ones(weight.sum()))
    weighted = replace(problem, design=DenseRows.of(X), weight=weight.astype(float))
    first, second = (glm.find(each, SETTINGS) for each in (weighted, repeated))
    assert_array_equal(first.active, second.active)
    # The same path up to rounding, which the flat directions of the evidence amplify.
    assert_allclose(first.posterior.mean, second.posterior.mean, rtol=1e-7)
    assert_allclose(first.log_evidence, second.log_evidence, rtol=1e-10)
