"""The search for any likelihood: its parts by brute force, its ends against originals and the real evidence."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from search_problems import (
    EXACTLY,
    INFERENCES,
    TOL,
    both_inferences,
    by,
    design,
    fitted,
    informative,
    kernel,
    problem_of,
)

from sparsebayes.core.likelihoods import Bernoulli, Poisson
from sparsebayes.core.prices import PerUnit, classification_price
from sparsebayes.engine import glm, search
from sparsebayes.engine.candidates import Candidates, least_squares
from sparsebayes.engine.loop import Trace
from sparsebayes.engine.scale_fit import fit_scales
from sparsebayes.engine.search import Search, climb
from sparsebayes.engine.view import Contact, Mode

REFERENCES = [
    ("cls2d_ripley_n250", "sparsebayes_bernoulli_rbf0p5_bias__tight"),
    ("cls2d_ripley_n250", "sparsebayes_bernoulli_rbf0p5__tight"),
    ("cls2d_moons_n150", "sparsebayes_bernoulli_rbf0p5_bias__tight"),
]


@pytest.fixture(params=[(False, True), (True, False), (True, True)], ids=["flat", "weighted", "flat and weighted"])
def setting(request, mixtures):
    """A small problem with a flat intercept, row weights, or both (and a column of ones where it is not flat)."""
    weighted, level = request.param
    X, t = mixtures(60, 3)
    Phi = kernel(X, X)
    weight = np.random.default_rng(1).integers(1, 4, len(t)).astype(np.float64) if weighted else None
    return problem_of(Phi if level else np.column_stack([Phi, np.ones(len(t))]), t, level=level, weight=weight)


def laplace_by_hand(problem, active, alpha):
    """Log evidence: the mode by a general optimiser polished with plain Newton steps, a dense determinant."""
    flat, t, weight = problem.flat_intercept, problem.t, problem.weight
    Phi = design(problem)[:, active]
    if flat:
        Phi = np.column_stack([Phi, np.ones(len(t))])
    A = np.diag(np.append(alpha, 0.0) if flat else alpha)

    def loss(w):
        eta = Phi @ w
        return -weight @ (t * eta + log_expit(-eta)) + 0.5 * w @ A @ w

    def slope(w):
        return -Phi.T @ (weight * (t - expit(Phi @ w))) + A @ w

    def curvature(w):
        p = expit(Phi @ w)
        return Phi.T @ ((weight * p * (1 - p))[:, None] * Phi) + A

    w = minimize(loss, np.zeros(len(A)), jac=slope, method="BFGS", options={"maxiter": 2000}).x
    for _ in range(20):
        w = w - np.linalg.solve(curvature(w), slope(w))
    value = -loss(w) + 0.5 * np.log(alpha).sum() - 0.5 * np.linalg.slogdet(curvature(w))[1]
    return value + flat * 0.5 * np.log(2 * np.pi), w


def factors_by_hand(problem, b, h, active, alpha, j):
    """s and q of candidate j, itself left out of the model, by a dense inverse of the marginal covariance."""
    Phi, others = design(problem), active != j
    C = np.diag(1 / b) + (Phi[:, active[others]] / alpha[others]) @ Phi[:, active[others]].T
    inverse = np.linalg.inv(C)
    if problem.flat_intercept:  # the limit of a column of ones with a prior precision that vanishes
        ones = inverse @ np.ones(len(b))
        inverse = inverse - np.outer(ones, ones) / ones.sum()
    return Phi[:, j] @ inverse @ Phi[:, j], Phi[:, j] @ inverse @ (h / b)


@pytest.mark.parametrize(("name", "program"), REFERENCES)
def test_no_worse_than_the_original(name, program, log_data, recorded):
    """The evidence has many maxima; ours may be another, but not by a nat worse."""
    X, t = log_data(name)
    ones = "bias" in program
    expected = recorded(name, program)["results"]
    problem = problem_of(np.column_stack([kernel(X, X), np.ones(len(t))]) if ones else kernel(X, X), t)
    result = glm.find(problem, EXACTLY)
    assert result.converged
    assert result.gap <= TOL
    assert result.log_evidence >= expected["logML_final"] - 1
    by_hand, w = laplace_by_hand(problem, result.active, result.alpha)
    assert_allclose(result.log_evidence, by_hand, atol=TOL)  # to which the model was fitted
    assert_allclose(result.posterior.mean, w, atol=1e-6 * np.abs(w).max())


@pytest.mark.parametrize(("name", "program"), REFERENCES)
def test_settles_where_the_original_does(name, program, log_data, recorded):
    """From the neighbourhood the same fixed point; the original's weights are good to 1e-6 of the largest or so."""
    X, t = log_data(name)
    expected = recorded(name, program)["results"]
    problem = problem_of(np.column_stack([kernel(X, X), np.ones(len(t))]), t)
    active = np.array(expected["relevant_0based"])
    scale = problem.design.scale[active]
    alpha = np.array(expected["alpha_original_scale"]) / scale**2 * np.geomspace(0.8, 1.25, len(active))
    point = Mode(problem.likelihood, np.array(expected["w"]) * scale)
    fit = fit_scales(problem, active, alpha, point, 1e-9, drop_worthless=True)
    assert fit.converged
    assert_array_equal(fit.active, active)
    assert_allclose(fit.evidence, expected["logML_final"], atol=1e-6)
    assert_allclose(fit.view.posterior.mean / scale, expected["w"], atol=2e-5 * np.abs(expected["w"]).max())
    assert_allclose(fit.alpha * scale**2, expected["alpha_original_scale"], rtol=1e-4)


# --- one wide pass over all candidates ---


@pytest.fixture(params=INFERENCES)
def standing(request, setting):
    """A problem and a model of three columns that is not at any maximum."""
    problem = by(setting, request.param)
    active, alpha = np.array([4, 17, 30]), np.array([0.3, 2.0, 0.7])
    point = Mode(problem.likelihood, np.array([1.0, -0.5, 0.3]), 0.2 * problem.flat_intercept)
    if problem.bounded:
        point = Contact(problem.likelihood, np.linspace(0.1, 3.0, len(problem.t)))
    columns = problem.design.keep(active)
    view = point.view(problem, columns, alpha)
    return problem, replace(fitted(problem, active), alpha=alpha, point=point, design=columns, view=view)


def test_factors_by_dense_inverse(standing):
    problem, fit = standing
    found = Candidates.of(problem, fit)
    b, h = fit.view.sites.precision, fit.view.sites.shift
    every = np.arange(problem.design.n_columns)
    outside = np.setdiff1d(every, fit.active)
    expected = np.array([factors_by_hand(problem, b, h, fit.active, fit.alpha, j) for j in every])
    scale = np.abs(expected).max(axis=0)
    assert_allclose(found.S[outside], expected[outside, 0], atol=1e-10 * scale[0])
    assert_allclose(found.Q[outside], expected[outside, 1], atol=1e-10 * scale[1])
    s, q = found.factors(problem)  # kept columns are left out of the model that they are judged by
    assert_allclose(s, expected[:, 0], atol=1e-9 * scale[0])
    assert_allclose(q, expected[:, 1], atol=1e-9 * scale[1])
    assert_array_equal(np.flatnonzero(found.copy), fit.active)


def test_what_the_view_promises_is_what_a_column_brings_under_it(standing):
    """The evidence of the sites with a column more, at the precision proposed for it, by dense determinants."""
    problem, fit = standing
    moves = Candidates.of(problem, fit).moves(problem)
    b, h = fit.view.sites.precision, fit.view.sites.shift

    def evidence(active, alpha):
        Phi, A = design(problem)[:, active], alpha
        if problem.flat_intercept:
            Phi, A = np.column_stack([Phi, np.ones(len(b))]), np.append(alpha, 0.0)
        H, pull = np.diag(A) + (Phi.T * b) @ Phi, Phi.T @ h
        return 0.5 * (pull @ np.linalg.solve(H, pull) - np.linalg.slogdet(H)[1] + np.log(alpha).sum())

    here = evidence(fit.active, fit.alpha)
    outside = np.setdiff1d(np.flatnonzero(np.isfinite(moves.alpha)), fit.active)
    assert len(outside) > 5
    for j in outside:
        there = evidence(np.append(fit.active, j), np.append(fit.alpha, moves.alpha[j]))
        assert_allclose(moves.gain[j], there - here, atol=1e-8)


def test_least_squares_under_the_view_is_the_view(standing):
    """Known noise of one; the posterior of the model's own columns is that of the view."""
    problem, fit = standing
    columns = np.append(fit.active, [1, 2])
    small = least_squares(problem, fit, columns)
    Phi = small.design.X[:, :3]
    Sigma = np.linalg.inv(np.diag(fit.alpha) + Phi.T @ Phi)
    assert_allclose(Sigma, fit.view.posterior.covariance(), atol=1e-9)
    assert_allclose(Sigma @ Phi.T @ small.t, fit.view.posterior.mean, atol=1e-9)


def test_prices_of_a_working_set_are_those_of_its_columns(standing):
    problem, fit = standing
    priced = replace(problem, price=PerUnit(np.arange(problem.design.n_columns) * 1.0))
    small = least_squares(priced, fit, np.array([7, 3, 20]))
    assert_array_equal(small.price.nats, [7.0, 3.0, 20.0])


# --- the end of a search ---


@both_inferences
def test_certificate_by_dense_inverse(setting, inference):
    """At the end α(μ² + Σ_mm) = 1 inside, and q² ≤ s outside but for what did not raise the evidence when tried."""
    problem = by(setting, inference)
    result = glm.find(problem, EXACTLY)
    assert result.converged
    assert result.gap <= TOL
    active, alpha, posterior = result.active, result.alpha, result.posterior
    assert len(active)
    # Fitted to 1e-6 in γ log α.
    assert_allclose(alpha * (posterior.mean**2 + posterior.var), 1.0, atol=1e-5)
    fit = fitted(problem, active, alpha, 1e-9)
    b, h = fit.view.sites.precision, fit.view.sites.shift
    factors = [factors_by_hand(problem, b, h, active, alpha, j) for j in range(problem.design.n_columns)]
    r = np.array([max(q**2 / s, 1.0) for s, q in factors])
    worth = 0.5 * (r - 1 - np.log(r))
    # Contact points that are TOL nats from the best bound are √(2 TOL) of their spread away from them.
    off = np.sqrt(2 * TOL) if problem.bounded else 1e-5
    assert_allclose(result.worth, worth, atol=off * worth.max())
    for j in np.setdiff1d(np.flatnonzero(worth > 2 * TOL), active):
        s, q = factors[j]
        grown = np.append(active, j), np.append(alpha, s**2 / (q**2 - s))
        loose = fit_scales(problem, *grown, fit.point.grow(1), search.LOOSE, drop_worthless=True)
        there = fitted(problem, loose.active, loose.alpha)
        assert there.evidence <= result.log_evidence + 2 * TOL


@both_inferences
def test_evidence_and_posterior_are_those_of_the_problem(setting, inference):
    problem = by(setting, inference)
    result = glm.find(problem, EXACTLY)
    if inference == "laplace":
        # The view is taken where the last step moved the evidence by no more than TOL.
        assert_allclose(result.log_evidence, laplace_by_hand(problem, result.active, result.alpha)[0], atol=TOL)
    assert_allclose(result.trace.objective[-1], result.log_evidence, atol=2 * TOL)


@pytest.mark.parametrize("likelihood", ["bernoulli", "poisson"])
def test_priced_certificate_by_leaving_out_and_putting_in(likelihood):
    """Each column taken out, put in or exchanged, and the model fitted anew: nothing raises the priced evidence."""
    X, t = informative(120, 8, likelihood=likelihood)
    kind = Poisson() if likelihood == "poisson" else Bernoulli()
    problem = problem_of(X, t, level=True, price=PerUnit(classification_price(120, 8)), likelihood=kind)
    result = glm.find(problem, EXACTLY)
    assert result.converged
    assert result.gap <= search.MIN_RISE
    assert_array_equal(np.sort(result.active), [0, 1, 2])
    best = result.log_evidence - 3 * problem.price.nats
    outside = np.setdiff1d(np.arange(8), result.active)
    for i in result.active:
        others = result.active[result.active != i]
        alone = fitted(problem, others)
        assert alone.priced(problem) < best
        if result.worth[i] < search.DOUBT * problem.price.nats:  # then it is the evidence that is really lost
            assert_allclose(result.worth[i], result.log_evidence - alone.evidence, atol=1e-4)
        assert max(fitted(problem, [*others, j]).priced(problem) for j in outside) < best
    assert max(fitted(problem, [*result.active, j]).priced(problem) for j in outside) < best


@both_inferences
def test_free_columns_end_better_from_many_than_from_nothing(inference, mixtures):
    """Both climb to a maximum, not always the same one. In a wide kernel no column does much by itself."""
    better = []
    for seed in range(6):
        X, t = mixtures(60, seed)
        problem = by(problem_of(np.column_stack([kernel(X, X, 1.0), np.ones(len(t))]), t), inference)
        other, arrived = climb(Search(problem, TOL), fitted(problem, []), EXACTLY, Trace())
        result = glm.find(problem, EXACTLY)
        assert arrived
        assert result.converged
        better.append(result.log_evidence - other.fit.evidence)
    assert np.mean(better) > 0
    assert np.min(better) > -2


def test_evidence_never_falls(mixtures):
    """Of free columns the evidence, of others the priced evidence, step by step."""
    steps = 0
    for seed in range(6, 10):
        X, t = mixtures(150, seed)
        problem, trace = problem_of(kernel(X, X), t, level=True), Trace()
        climb(Search(problem, TOL), fitted(problem, []), EXACTLY, trace)
        # Models are fitted to LOOSE nats while columns are added.
        assert (np.diff(trace.objective) >= -search.LOOSE).all()
        steps += len(trace.infos)
    for seed in range(4):
        X, t = informative(seed=seed)
        problem, trace = problem_of(X, t, level=True, price=PerUnit(3.0)), Trace()
        climb(Search(problem, TOL), fitted(problem, []), EXACTLY, trace)
        priced = [info.objective - 3.0 * info.n_active for info in trace.infos]
        assert (np.diff(priced) >= -search.LOOSE).all()
        steps += len(priced)
    assert steps > 20
