"""The block of non-negative weights against finite differences, bounded optimisers, quadrature and brute force."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import dblquad, quad
from scipy.optimize import approx_fprime, minimize
from scipy.special import expit
from scipy.stats import multivariate_normal, norm

from sparsebayes.core.sites import truncation
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import pcvm
from sparsebayes.engine.bernoulli import BernoulliProblem, Mode
from sparsebayes.engine.loop import Settings

TRUNCATIONS = {"exact": pcvm.Exact(), "smooth": pcvm.Smooth(5.0)}


@pytest.fixture(params=TRUNCATIONS.values(), ids=TRUNCATIONS)
def factor(request):
    return request.param


def design(n=60, k=5, seed=0):
    """Label-signed kernel columns of overlapping classes, standardised, and the classes."""
    rng = np.random.default_rng(seed)
    t = rng.integers(0, 2, n).astype(float)
    X = rng.standard_normal((n, 2)) + 1.2 * (2 * t - 1)[:, None] * np.array([1.0, 0.3])
    centres = rng.choice(n, k, replace=False)
    K = np.exp(-0.3 * ((X[:, None] - X[centres]) ** 2).sum(axis=2))
    Phi = (K - K.mean(axis=0)) / K.std(axis=0) * (2 * t[centres] - 1)
    return Phi, t


def block(t, factor, flat=True, weight=None):
    return pcvm.Block(t, np.ones(len(t)) if weight is None else weight, flat, factor)


# --- the penalised likelihood and its mode ---


@pytest.mark.parametrize("intercept", [True, False])
def test_slope_and_curvature_are_those_of_finite_differences(factor, intercept, rng):
    Phi, t = design()
    problem = block(t, factor, intercept, rng.uniform(0.5, 2, len(t)))
    whole = np.column_stack([Phi, np.ones(len(Phi))]) if intercept else Phi
    alpha, w = rng.uniform(0.1, 2, Phi.shape[1]), rng.uniform(0.02, 0.6, whole.shape[1])
    slope, curvature = problem.derivatives(whole, alpha, w)
    # Forward differences with a step of 1e-6: errors of 1e-6 times the next derivative.
    assert_allclose(slope, approx_fprime(w, lambda w: problem.penalised(whole, alpha, w), 1e-6), rtol=1e-4, atol=1e-3)
    hessian = approx_fprime(w, lambda w: problem.derivatives(whole, alpha, w)[0], 1e-6)
    assert_allclose(curvature, -hessian, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("steepness", [0.3, 5.0, 200.0])
def test_truncation_sites_touch_the_log_factor(steepness):
    w = np.linspace(-1, 1, 9)
    sites = truncation(w, steepness)
    value = np.log(2 * expit(steepness * w))
    slope, curvature = steepness * expit(-steepness * w), steepness**2 * expit(steepness * w) * expit(-steepness * w)
    assert_allclose(sites.shift - sites.precision * w, slope, rtol=1e-9, atol=1e-12 * steepness)
    assert_allclose(sites.precision, curvature, rtol=1e-12)
    assert_allclose(sites.const + sites.shift * w - 0.5 * sites.precision * w**2, value, atol=1e-11 * steepness)


@pytest.mark.parametrize("alpha", [1e-4, 1.0, 1e4])
def test_the_smoothly_truncated_prior_is_normalised(alpha):
    smooth = pcvm.Smooth(5.0)

    def density(w):
        return norm.pdf(w, scale=alpha**-0.5) * np.exp(smooth.log_factor(np.array([w])))

    ends = 12 * alpha**-0.5
    assert quad(density, -ends, ends, points=[0.0], limit=200)[0] == pytest.approx(1, rel=1e-8)


def test_mode_is_that_of_a_bounded_optimiser(factor):
    Phi, t = design(k=12)
    problem, alpha = block(t, factor), np.full(12, 0.3)
    found = problem.find_mode(Phi, alpha, Mode(np.full(12, 0.5), 0.0))
    whole = np.column_stack([Phi, np.ones(len(Phi))])
    bounds = [(max(factor.floor, -50), None)] * 12 + [(None, None)]
    other = minimize(
        lambda w: -problem.penalised(whole, alpha, w),
        np.full(13, 0.1),
        jac=lambda w: -problem.derivatives(whole, alpha, w)[0],
        bounds=bounds,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10_000},
    )
    ours = np.append(found.w, found.intercept)
    assert problem.penalised(whole, alpha, ours) >= -other.fun - 1e-10
    assert_allclose(ours, other.x, atol=1e-4)  # the optimiser ends at a slope of 1e-5 or so, the curvature is above 0.3
    slope = problem.derivatives(whole, alpha, ours)[0]
    held = ours[:12] == 0.0
    assert held.any() == isinstance(factor, pcvm.Exact)  # some weight does want to be negative
    assert (slope[:12][held] <= 0).all()
    assert_allclose(slope[np.append(~held, True)], 0, atol=1e-5)


def test_mode_does_not_depend_on_the_start(factor, rng):
    Phi, t = design(k=8)
    problem, alpha = block(t, factor), np.full(8, 0.1)
    modes = [problem.find_mode(Phi, alpha, Mode(10 * rng.uniform(size=8), level)) for level in (-30.0, 0.0, 3.0)]
    for mode in modes[1:]:
        assert_allclose(mode.w, modes[0].w, rtol=1e-5, atol=1e-6)


# --- the evidence ---


def log_integral(problem, Phi, alpha):
    """log ∫ p(t | w) p(w) dw over one or two weights (no intercept), by quadrature."""
    mode = problem.find_mode(Phi, alpha, Mode(np.zeros(len(alpha))))
    view = problem.view(Phi, alpha, mode)
    top, spread = problem.penalised(Phi, alpha, mode.w), np.sqrt((view.root**2).sum(axis=0))
    normaliser = 0.5 * np.log(alpha / (2 * np.pi)).sum()
    if isinstance(problem.truncation, pcvm.Exact):
        normaliser += len(alpha) * np.log(2)

    def density(*w):
        return np.exp(problem.penalised(Phi, alpha, np.array(w[::-1])) - top)

    low = np.maximum(mode.w - 9 * spread, problem.truncation.floor)
    high = mode.w + 9 * spread
    if len(alpha) == 1:
        value = quad(density, low[0], high[0], limit=400, points=[mode.w[0]])[0]
    else:
        value = dblquad(density, low[0], high[0], low[1], high[1], epsabs=1e-9, epsrel=1e-7)[0]
    return top + normaliser + np.log(value), problem.log_evidence(alpha, view), mode


@pytest.mark.parametrize("alpha", [0.1, 3.0, 300.0])
def test_evidence_of_one_weight_is_the_integral(factor, alpha):
    errors = []
    for n in (50, 800):
        Phi, t = design(n, 1)
        truth, ours, mode = log_integral(block(t, factor, flat=False), Phi, np.array([alpha]))
        errors.append(abs(ours - truth))
    assert mode.w[0] > 0
    # Laplace's error falls as 1/n; it is 8e-3 with 50 rows here and 1.4e-3 with 800.
    assert errors[0] < 1e-2
    assert errors[1] < 2e-3


def test_evidence_of_a_weight_at_the_bound_is_told_as_that_of_half_a_gaussian():
    """At the bound Laplace's view has mean zero: ½ of its mass, the prior's 2, and no slope. That is why it leaves."""
    Phi, t = design(200, 1)
    problem, alpha = block(t, pcvm.Exact(), flat=False), np.array([1.0])
    truth, ours, mode = log_integral(problem, -Phi, alpha)
    nothing = len(t) * np.log(0.5)
    assert mode.w[0] == 0.0
    assert truth < ours < nothing  # the slope, which is left out, would say still more clearly that it must go
    assert problem.settle(-Phi, alpha, mode, 1e-6).kept.size == 0


def test_evidence_of_two_correlated_weights_is_nearly_the_integral(factor):
    rng = np.random.default_rng(3)
    Phi, t = design(100, 2, seed=2)
    Phi[:, 1] = 0.8 * Phi[:, 0] + 0.6 * rng.permutation(Phi[:, 1])
    problem, alpha = block(t, factor, flat=False), np.array([2.0, 2.0])
    truth, ours, mode = log_integral(problem, Phi, alpha)
    assert (mode.w > 0).all()
    # Laplace's error, and for the exact bound that the weights' shares are multiplied as if they were independent.
    assert ours == pytest.approx(truth, abs=0.03)


@pytest.mark.parametrize("correlation", [-0.9, -0.5, 0.0, 0.5, 0.9])
def test_mass_of_independent_weights_is_the_orthants_and_of_correlated_ones_not_far(correlation):
    mean, cov = np.array([1.5, 1.0]), np.array([[1.0, correlation], [correlation, 1.0]])
    orthant = np.log(4 * multivariate_normal(np.zeros(2), cov).cdf(mean))
    mass = pcvm.Exact().log_mass(mean, np.diag(cov))
    assert mass == pytest.approx(orthant, abs=1e-8 if correlation == 0 else 0.07)
    assert (mass <= orthant + 1e-8) == (correlation >= 0)  # Slepian's inequality


# --- weights and precisions together ---


def test_block_ends_at_a_stationary_point_with_positive_weights(factor):
    Phi, t = design(150, 30)
    fit = block(t, factor).settle(Phi, np.full(30, 30.0), Mode(np.zeros(30)), 1e-8)
    var = (fit.view.root**2).sum(axis=0)[:-1]
    assert fit.arrived
    assert 0 < len(fit.kept) < 30
    assert (fit.mode.w > 0).all()
    assert_allclose(fit.alpha * (fit.mode.w**2 + var), 1, atol=1e-6)


def test_block_goes_on_from_a_warm_start_on_a_changed_design(factor, rng):
    Phi, t = design(150, 20)
    problem = block(t, factor)
    cold = problem.settle(Phi, np.full(20, 20.0), Mode(np.zeros(20)), 1e-8)
    again = problem.settle(Phi[:, cold.kept], cold.alpha, cold.mode, 1e-8)
    assert_array_equal(again.kept, np.arange(len(cold.kept)))
    assert_allclose(again.mode.w, cold.mode.w, rtol=1e-4)
    moved = Phi[:, cold.kept] + 1e-3 * rng.standard_normal((150, len(cold.kept)))
    near = problem.settle(moved, cold.alpha, cold.mode, 1e-8)
    assert near.log_evidence == pytest.approx(cold.log_evidence, abs=0.2)


def test_weights_at_or_below_the_bound_leave_at_once(factor):
    leaves = block(np.ones(2), factor).leaving(np.ones(3), np.array([-3.0, 0.0, 3.0]), np.full(3, 0.1), near=False)
    assert_array_equal(leaves, [True, True, False])  # though the data know of the first as well as of the last


def test_empty_design(factor):
    t = np.array([1.0, 0.0, 1.0])
    fit = block(t, factor).settle(np.empty((3, 0)), np.empty(0), Mode(np.empty(0)), 1e-8)
    assert fit.mode.intercept == pytest.approx(np.log(2))
    # ∫ σ(b)²σ(-b) db = Beta(2, 1) by the Gaussian at its top, 3 · (2/9)
    assert fit.log_evidence == pytest.approx(np.log(4 / 27) + 0.5 * np.log(2 * np.pi / (2 / 3)), abs=1e-9)


# --- the search ---


def signed_problem(n=100, seed=0):
    Phi, t = design(n, n, seed)
    return BernoulliProblem(DenseRows.of(Phi), t, np.ones(n), True, 0.0, 0.0, np.zeros(n), 1e-6)


def test_search_ends_with_its_certificate(factor):
    problem = signed_problem()
    result = pcvm.solve(problem, factor, Settings(1e-4, 10_000))
    assert result.converged
    assert result.gap <= 1e-4
    assert (result.posterior.mean > 0).all()
    assert result.log_evidence == result.trace.infos[-1].objective
    assert result.log_evidence > 0.5 * len(problem.t) * np.log(0.5)


@pytest.mark.parametrize("least_alpha", [0.25, 1.0])
def test_precisions_at_their_bound_are_no_gap(least_alpha):
    """The certificate counts no change beyond the bound; of those within it none helps, as the evidence itself says."""
    problem = replace(signed_problem(60), least_alpha=least_alpha)
    result = pcvm.solve(problem, pcvm.Exact(), Settings(1e-5, 10_000))
    assert result.converged
    at_bound = np.isclose(result.alpha, least_alpha)
    assert at_bound.any()
    assert (result.alpha >= least_alpha * (1 - 1e-12)).all()
    Phi = problem.rows.X[:, result.active]
    problem = pcvm.Block(problem.t, problem.weight, True, pcvm.Exact(), least_alpha)

    def evidence(alpha):
        mode = problem.find_mode(Phi, alpha, Mode(np.zeros(len(alpha))))
        return problem.log_evidence(alpha, problem.view(Phi, alpha, mode)) - problem.truncation.log_mass(
            mode.w, (problem.view(Phi, alpha, mode).root ** 2).sum(axis=0)[:-1]
        )

    here = evidence(result.alpha)
    for e in np.eye(len(result.alpha), dtype=bool):
        assert evidence(np.where(e, 1.3, 1) * result.alpha) < here + 0.02
        below = evidence(np.where(e, 1 / 1.3, 1) * result.alpha)
        assert below < here + 0.02 or at_bound[e][0]


@pytest.mark.parametrize("seed", [0, 2])
def test_what_is_left_out_would_be_negative_or_worthless(seed):
    """Against the marginal covariance C itself, a flat intercept being one of variance 1e6."""
    problem = signed_problem(60, seed)
    result = pcvm.solve(problem, pcvm.Exact(), Settings(1e-6, 10_000))
    Phi, active, found = problem.rows.X, result.active, result.predictor
    eta = found.eta
    b = expit(eta) * expit(-eta)
    C = np.diag(1 / b) + Phi[:, active] @ np.diag(1 / result.alpha) @ Phi[:, active].T + 1e6
    pull = np.linalg.solve(C, eta + (problem.t - expit(eta)) / b)
    q, s = Phi.T @ pull, np.einsum("nj,nj->j", Phi, np.linalg.solve(C, Phi))
    outside = np.setdiff1d(np.arange(60), active)
    wanted = outside[(q[outside] > 0) & (q[outside] ** 2 > s[outside] * (1 + 1e-3))]
    block = pcvm.Block(problem.t, problem.weight, True, pcvm.Exact(), problem.least_alpha)
    start = Mode(result.posterior.mean, found.level - float(found.rows.mean @ result.posterior.mean))
    for j in wanted:  # was tried, and did not bring what the view promised
        alpha = np.append(result.alpha, s[j] ** 2 / (q[j] ** 2 - s[j]))
        grown = Mode(np.append(start.w, 0.0), start.intercept)
        fit = block.settle(Phi[:, np.append(active, j)], alpha, grown, 1e-6)
        assert fit.log_evidence <= result.log_evidence + 1e-5
    assert len(wanted) < 10


def test_candidates_are_judged_by_the_sign_and_by_the_truncation():
    S, Q = np.array([4.0, 4.0, 4.0]), np.array([-5.0, 1.0, 5.0])
    assert_array_equal(pcvm.Exact().seen(S, Q)[1], [0.0, 1.0, 5.0])
    s, q = pcvm.Smooth(10.0).seen(S, Q)
    assert_allclose(s, S + 25)
    assert_allclose(q, Q + 5)
    assert_array_equal(q**2 > s, Q**2 + 10 * Q > S)
