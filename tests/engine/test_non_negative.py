"""Weights that may not be negative, against bounded optimisers, quadrature, dense matrices and the real evidence."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import dblquad, quad
from scipy.optimize import approx_fprime, minimize
from scipy.special import expit, log_expit
from scipy.stats import multivariate_normal, norm

from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.priors import NonNegative
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import glm
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.scale_fit import fit_scales
from sparsebayes.engine.view import Mode

STEEPNESS = 5.0
PRIORS = {"exact": NonNegative(min_alpha=1e-6), "smooth": NonNegative.smooth(STEEPNESS, 1e-6)}


@pytest.fixture(params=PRIORS.values(), ids=PRIORS)
def prior(request):
    return request.param


def signed_columns(n=60, k=5, seed=0):
    """Label-signed kernel columns of overlapping classes, standardised, and the classes."""
    rng = np.random.default_rng(seed)
    t = rng.integers(0, 2, n).astype(float)
    X = rng.standard_normal((n, 2)) + 1.2 * (2 * t - 1)[:, None] * np.array([1.0, 0.3])
    centres = rng.choice(n, k, replace=False)
    K = np.exp(-0.3 * ((X[:, None] - X[centres]) ** 2).sum(axis=2))
    Phi = (K - K.mean(axis=0)) / K.std(axis=0) * (2 * t[centres] - 1)
    return Phi, t


def problem_of(Phi, t, prior, *, level=True, weight=None):
    """`level` says whether there is a flat intercept."""
    return Problem(
        design=DenseRows.of(Phi),
        t=t,
        weight=np.ones(len(t)) if weight is None else weight,
        likelihood=Bernoulli(),
        prior=prior,
        flat_intercept=level,
    )


def everything(problem):
    return problem.design.keep(np.arange(problem.design.n_columns))


def log_joint(problem, alpha):
    """log p(t | w) - ½ wᵀAw and the smooth factor's logarithm, of weights with the intercept last."""
    Phi, k = problem.design.X, problem.design.n_columns

    def of(w):
        eta = Phi @ w[:k] + w[k:].sum()
        value = problem.weight @ (problem.t * eta + log_expit(-eta)) - 0.5 * alpha @ w[:k] ** 2
        return value if problem.prior.exact else value + (np.log(2) + log_expit(STEEPNESS * w[:k])).sum()

    return of


def slope_of(problem, alpha, w):
    """Gradient of `log_joint`."""
    Phi, k = problem.design.X, problem.design.n_columns
    pull = problem.weight * (problem.t - expit(Phi @ w[:k] + w[k:].sum()))
    slope = Phi.T @ pull - alpha * w[:k]
    if not problem.prior.exact:
        slope = slope + STEEPNESS * expit(-STEEPNESS * w[:k])
    return np.append(slope, [pull.sum()] * problem.flat_intercept)


def mode_of(problem, alpha, start=None, level=0.0):
    """Ours, with the intercept last where there is one."""
    w = np.zeros(len(alpha)) if start is None else start
    mode = Mode(problem.likelihood, w, level).settled(problem, everything(problem), alpha)
    return np.append(mode.w, [mode.level] * problem.flat_intercept)


def evidence_at(problem, alpha):
    step = Mode(problem.likelihood, np.zeros(len(alpha))).step(problem, everything(problem), alpha)
    return step.value + problem.prior.scale_term(alpha)


# --- the prior and the mode under it ---


@pytest.mark.parametrize("steepness", [0.3, 5.0, 200.0])
def test_sites_of_the_weights_touch_the_log_factor(steepness):
    w = np.linspace(-1, 1, 9)
    sites = NonNegative.smooth(steepness).weight_sites(w)
    value = np.log(2 * expit(steepness * w))
    slope, curvature = steepness * expit(-steepness * w), steepness**2 * expit(steepness * w) * expit(-steepness * w)
    assert_allclose(sites.shift - sites.precision * w, slope, rtol=1e-9, atol=1e-12 * steepness)
    assert_allclose(sites.precision, curvature, rtol=1e-12)
    assert_allclose(sites.const + sites.shift * w - 0.5 * sites.precision * w**2, value, atol=1e-11 * steepness)


@pytest.mark.parametrize("alpha", [1e-4, 1.0, 1e4])
def test_the_smoothly_truncated_prior_is_normalised(alpha):
    smooth = NonNegative.smooth(STEEPNESS)

    def density(w):
        return norm.pdf(w, scale=alpha**-0.5) * np.exp(smooth.log_factor(np.array([w])))

    ends = 12 * alpha**-0.5
    assert quad(density, -ends, ends, points=[0.0], limit=200)[0] == pytest.approx(1, rel=1e-8)


@pytest.mark.parametrize("level", [True, False])
def test_mode_is_that_of_a_bounded_optimiser(prior, level, rng):
    Phi, t = signed_columns(k=12)
    problem, alpha = problem_of(Phi, t, prior, level=level, weight=rng.uniform(0.5, 2, len(t))), np.full(12, 0.3)
    ours, f = mode_of(problem, alpha, np.full(12, 0.5)), log_joint(problem, alpha)
    assert_allclose(slope_of(problem, alpha, ours), approx_fprime(ours, f, 1e-6), atol=1e-3)
    bounds = [(max(prior.floor, -50), None)] * 12 + [(None, None)] * level
    other = minimize(
        lambda w: -f(w),
        np.full(len(ours), 0.1),
        jac=lambda w: -slope_of(problem, alpha, w),
        bounds=bounds,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10_000},
    )
    assert f(ours) >= -other.fun - 1e-10
    assert_allclose(ours, other.x, atol=1e-4)  # the optimiser ends at a slope of 1e-5 or so, the curvature is above 0.3
    slope, held = slope_of(problem, alpha, ours), ours[:12] == 0.0
    assert held.any() == prior.exact  # some weight does want to be negative
    assert (slope[:12][held] <= 0).all()
    assert_allclose(slope[np.append(~held, np.full(int(level), True))], 0, atol=1e-5)


def test_mode_does_not_depend_on_the_start(prior, rng):
    Phi, t = signed_columns(k=8)
    problem, alpha = problem_of(Phi, t, prior), np.full(8, 0.1)
    modes = [mode_of(problem, alpha, 10 * rng.uniform(size=8), level) for level in (-30.0, 0.0, 3.0)]
    for mode in modes[1:]:
        assert_allclose(mode, modes[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("nats", [1e-2, 1e-5])
def test_near_the_mode_little_is_left_and_the_view_is_that_of_the_point(nats, prior):
    Phi, t = signed_columns(k=12)
    problem, alpha = problem_of(Phi, t, prior), np.full(12, 0.3)
    design, start = everything(problem), Mode(problem.likelihood, np.full(12, 0.5))
    found, view = start.nearly_settled(problem, design, alpha, nats)
    joint = log_joint(problem, alpha)
    left = joint(mode_of(problem, alpha)) - joint(np.append(found.w, found.level))
    assert -1e-10 <= left <= 1.5 * nats
    assert_allclose(view.posterior.mean, found.view(problem, design, alpha).posterior.mean, rtol=1e-10)


def test_a_coarse_fit_is_as_good_as_its_tolerance():
    Phi, t = signed_columns(k=12)
    problem = problem_of(Phi, t, PRIORS["exact"])
    start = np.arange(12), np.full(12, 0.3), Mode(problem.likelihood, np.zeros(12))
    coarse, exact = (fit_scales(problem, *start, tol, drop_worthless=True) for tol in (0.03, 1e-8))
    assert coarse.converged
    assert_array_equal(coarse.active, exact.active)
    assert abs(coarse.evidence - exact.evidence) <= 0.03


# --- the evidence ---


def log_integral(problem, alpha):
    """log ∫ p(t | w) p(w) dw over one or two weights (no intercept) by quadrature, and the mode."""
    mode, f = mode_of(problem, alpha), log_joint(problem, alpha)
    p = expit(problem.design.X @ mode)
    H = np.diag(alpha) + (problem.design.X.T * (p * (1 - p))) @ problem.design.X
    spread = np.sqrt(np.diag(np.linalg.inv(H)))
    normaliser = 0.5 * np.log(alpha / (2 * np.pi)).sum() + len(alpha) * np.log(2) * problem.prior.exact

    def density(*w):
        return np.exp(f(np.array(w[::-1])) - f(mode))

    low, high = np.maximum(mode - 9 * spread, problem.prior.floor), mode + 9 * spread
    if len(alpha) == 1:
        value = quad(density, low[0], high[0], limit=400, points=[mode[0]])[0]
    else:
        value = dblquad(density, low[0], high[0], low[1], high[1], epsabs=1e-9, epsrel=1e-7)[0]
    return f(mode) + normaliser + np.log(value), mode


@pytest.mark.parametrize("alpha", [0.1, 3.0, 300.0])
def test_evidence_of_one_weight_is_the_integral(prior, alpha):
    errors, alpha = [], np.array([alpha])
    for n in (50, 800):
        problem = problem_of(*signed_columns(n, 1), prior, level=False)
        truth, mode = log_integral(problem, alpha)
        errors.append(abs(evidence_at(problem, alpha) - truth))
    assert mode[0] > 0
    # Laplace's error falls as 1/n; it is 8e-3 with 50 rows here and 1.4e-3 with 800.
    assert errors[0] < 1e-2
    assert errors[1] < 2e-3


def test_evidence_of_a_weight_at_the_bound_is_that_of_half_a_gaussian():
    """At the bound Laplace's view has mean zero: half of its mass, the prior's factor 2, and no slope."""
    Phi, t = signed_columns(200, 1)
    problem, alpha = problem_of(-Phi, t, PRIORS["exact"], level=False), np.array([1.0])
    truth, mode = log_integral(problem, alpha)
    nothing = len(t) * np.log(0.5)
    assert mode[0] == 0.0
    # The slope, which is left out, would say still more clearly that the weight must go.
    assert truth < evidence_at(problem, alpha) < nothing
    fit = fit_scales(problem, np.array([0]), alpha, Mode(problem.likelihood, np.zeros(1)), 1e-6, drop_worthless=False)
    assert fit.active.size == 0


def test_evidence_of_two_correlated_weights_is_nearly_the_integral(prior):
    Phi, t = signed_columns(100, 2, seed=2)
    Phi[:, 1] = 0.8 * Phi[:, 0] + 0.6 * np.random.default_rng(3).permutation(Phi[:, 1])
    problem, alpha = problem_of(Phi, t, prior, level=False), np.array([2.0, 2.0])
    truth, mode = log_integral(problem, alpha)
    assert (mode > 0).all()
    # Laplace's error, and for the exact bound that the weights' shares are multiplied as if they were independent.
    assert evidence_at(problem, alpha) == pytest.approx(truth, abs=0.03)


@pytest.mark.parametrize("correlation", [-0.9, -0.5, 0.0, 0.5, 0.9])
def test_mass_of_independent_weights_is_the_orthants_and_of_correlated_ones_not_far(correlation):
    mean, cov = np.array([1.5, 1.0]), np.array([[1.0, correlation], [correlation, 1.0]])
    orthant = np.log(4 * multivariate_normal(np.zeros(2), cov).cdf(mean))
    mass = NonNegative().log_mass(mean, np.diag(cov))
    assert mass == pytest.approx(orthant, abs=1e-8 if correlation == 0 else 0.07)
    assert (mass <= orthant + 1e-8) == (correlation >= 0)  # Slepian's inequality


def test_a_model_without_weights_has_the_evidence_of_its_intercept(prior):
    problem = problem_of(np.zeros((3, 0)), np.array([1.0, 0.0, 1.0]), prior)
    fit = fit_scales(problem, np.empty(0, np.intp), np.empty(0), problem.start(0), 1e-8, drop_worthless=True)
    assert fit.point.level == pytest.approx(np.log(2))
    # ∫ σ(b)²σ(-b) db = Beta(2, 1) by the Gaussian at its top, 3 · (2/9)
    assert fit.evidence == pytest.approx(np.log(4 / 27) + 0.5 * np.log(2 * np.pi / (2 / 3)), abs=1e-9)


# --- weights and precisions together ---


def fit_of(problem, alpha, tol=1e-8):
    n = len(alpha)
    start = Mode(problem.likelihood, np.zeros(n))
    return fit_scales(problem, np.arange(n), alpha, start, tol, drop_worthless=True)


def test_fit_ends_at_a_stationary_point_with_positive_weights(prior):
    fit = fit_of(problem_of(*signed_columns(150, 30), prior), np.full(30, 30.0))
    w = fit.point.w
    assert fit.converged
    assert 0 < len(fit.active) < 30
    assert (w > 0).all()
    assert_allclose(fit.alpha * (w**2 + fit.view.posterior.var), 1, atol=1e-6)


def test_fit_goes_on_from_a_warm_start_on_a_changed_design(prior, rng):
    Phi, t = signed_columns(150, 20)
    problem = problem_of(Phi, t, prior)
    cold = fit_of(problem, np.full(20, 20.0))
    again = fit_scales(problem, cold.active, cold.alpha, cold.point, 1e-8, drop_worthless=True)
    assert_array_equal(again.active, cold.active)
    assert_allclose(again.point.w, cold.point.w, rtol=1e-4)
    moved = problem_of(Phi + 1e-3 * rng.standard_normal(Phi.shape), t, prior)
    point = Mode(problem.likelihood, cold.point.w, cold.point.level)
    near = fit_scales(moved, cold.active, cold.alpha, point, 1e-8, drop_worthless=True)
    assert near.evidence == pytest.approx(cold.evidence, abs=0.2)


# --- the search ---


def signed_problem(prior, n=100, seed=0):
    return problem_of(*signed_columns(n, n, seed), prior)


def test_search_ends_with_its_certificate(prior):
    problem = signed_problem(prior)
    result = glm.find(problem, Settings(1e-4, 10_000))
    assert result.converged
    assert result.gap <= 1e-4
    assert (result.posterior.mean > 0).all()
    assert result.log_evidence == result.trace.infos[-1].objective
    assert result.log_evidence > 0.5 * len(problem.t) * np.log(0.5)


@pytest.mark.parametrize("min_alpha", [0.25, 1.0])
def test_precisions_at_their_bound_are_no_gap(min_alpha):
    """The certificate counts no change beyond the bound; of those within it none helps, as the evidence itself says."""
    problem = signed_problem(NonNegative(min_alpha=min_alpha), 60)
    result = glm.find(problem, Settings(1e-5, 10_000))
    assert result.converged
    at_bound = np.isclose(result.alpha, min_alpha)
    assert at_bound.any()
    assert (result.alpha >= min_alpha * (1 - 1e-12)).all()
    kept = replace(problem, design=DenseRows.of(problem.design.X[:, result.active]))

    def evidence(alpha):
        """Without the mass above zero, which the fixed point does not know of."""
        step = Mode(kept.likelihood, np.zeros(len(alpha))).step(kept, everything(kept), alpha)
        value = step.value + kept.prior.scale_term(alpha)
        return value - kept.prior.log_mass(step.point.w, step.posterior.var)

    here = evidence(result.alpha)
    # The fixed point holds the view still, which moves with α: it misses the maximum by a few hundredths of a nat.
    for e in np.eye(len(result.alpha), dtype=bool):
        assert evidence(np.where(e, 1.3, 1) * result.alpha) < here + 0.05
        below = evidence(np.where(e, 1 / 1.3, 1) * result.alpha)
        assert below < here + 0.05 or at_bound[e][0]


@pytest.mark.parametrize("seed", [0, 2])
def test_what_is_left_out_would_be_negative_or_worthless(seed):
    """Against the marginal covariance C itself, a flat intercept being one of variance 1e6."""
    problem = signed_problem(PRIORS["exact"], 60, seed)
    result = glm.find(problem, Settings(1e-6, 10_000))
    Phi, active = problem.design.X, result.active
    eta = result.level + (Phi[:, active] - result.origin) @ result.posterior.mean
    b = expit(eta) * expit(-eta)
    C = np.diag(1 / b) + Phi[:, active] @ np.diag(1 / result.alpha) @ Phi[:, active].T + 1e6
    pull = np.linalg.solve(C, eta + (problem.t - expit(eta)) / b)
    q, s = Phi.T @ pull, np.einsum("nj,nj->j", Phi, np.linalg.solve(C, Phi))
    outside = np.setdiff1d(np.arange(60), active)
    wanted = outside[(q[outside] > 0) & (q[outside] ** 2 > s[outside] * (1 + 1e-3))]
    level = result.level - float(result.origin @ result.posterior.mean)
    for j in wanted:  # was tried, and did not bring what the view promised
        alpha = np.append(result.alpha, s[j] ** 2 / (q[j] ** 2 - s[j]))
        point = Mode(problem.likelihood, np.append(result.posterior.mean, 0.0), level)
        fit = fit_scales(problem, np.append(active, j), alpha, point, 1e-6, drop_worthless=True)
        assert fit.evidence <= result.log_evidence + 1e-5
    assert len(wanted) < 10


def test_candidates_are_judged_by_the_sign_and_by_the_truncation():
    S, Q = np.array([4.0, 4.0, 4.0]), np.array([-5.0, 1.0, 5.0])
    assert_array_equal(NonNegative().outside(S, Q)[1], [0.0, 1.0, 5.0])
    s, q = NonNegative.smooth(10.0).outside(S, Q)
    assert_allclose(s, S + 25)
    assert_allclose(q, Q + 5)
    assert_array_equal(q**2 > s, Q**2 + 10 * Q > S)
