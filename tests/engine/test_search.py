"""The search for any likelihood: its parts by brute force, its ends against originals and the real evidence."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from sparsebayes.core.likelihoods import Bernoulli, Poisson
from sparsebayes.core.prices import FREE, PerUnit, classification_price
from sparsebayes.core.priors import ARD
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import glm, search
from sparsebayes.engine.candidates import Candidates, least_squares
from sparsebayes.engine.loop import Settings, Trace
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.scale_fit import fit_scales
from sparsebayes.engine.search import Search, climb, cold_start
from sparsebayes.engine.view import Contact, Mode

TOL = 1e-6
EXACTLY = Settings(TOL, 1000)
INFERENCES = ("laplace", "variational")
REFERENCES = [
    ("cls2d_ripley_n250", "sparsebayes_bernoulli_rbf0p5_bias__tight"),
    ("cls2d_ripley_n250", "sparsebayes_bernoulli_rbf0p5__tight"),
    ("cls2d_moons_n150", "sparsebayes_bernoulli_rbf0p5_bias__tight"),
]

both_inferences = pytest.mark.parametrize("inference", INFERENCES)


def kernel(X, Z, gamma=4.0):
    return np.exp(-gamma * ((X[:, None] - Z[None]) ** 2).sum(axis=-1))


def problem_of(Phi, t, *, level=False, weight=None, min_alpha=1e-6, a=0.0, b=0.0, price=FREE, likelihood=None):
    """A problem for Laplace's method; `level` says whether there is a flat intercept."""
    weight = np.ones(len(t)) if weight is None else weight
    return Problem(
        design=DenseRows.of(Phi).standardised(weight, centre=level).unweighted(),
        t=t,
        weight=weight,
        likelihood=likelihood or Bernoulli(),
        prior=ARD(a, b, min_alpha),
        price=price,
        flat_intercept=level,
    )


def by(problem, inference):
    return replace(problem, bounded=inference == "variational")


def fitted(problem, active, alpha=None, tol=TOL):
    """The model that keeps these columns, with its best precisions under the real likelihood."""
    active = np.asarray(active, dtype=np.intp)
    alpha = np.ones(len(active)) if alpha is None else alpha
    return fit_scales(problem, active, alpha, problem.start(len(active)), tol, drop_worthless=False)


@pytest.fixture(scope="module")
def mixtures():
    """Two classes in the plane, each a mixture of two Gaussians that overlap with the other's."""

    def make(n, seed=0, spread=0.17):
        rng = np.random.default_rng(seed)
        t = (np.arange(n) % 2).astype(np.float64)
        centres = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
        return centres[t.astype(int), rng.integers(0, 2, n)] + spread * rng.standard_normal((n, 2)), t

    return make


@pytest.fixture(params=[(False, True), (True, False), (True, True)], ids=["flat", "weighted", "flat and weighted"])
def setting(request, mixtures):
    """A small problem with a flat intercept, row weights, or both (and a column of ones where it is not flat)."""
    weighted, level = request.param
    X, t = mixtures(60, 3)
    Phi = kernel(X, X)
    weight = np.random.default_rng(1).integers(1, 4, len(t)).astype(np.float64) if weighted else None
    return problem_of(Phi if level else np.column_stack([Phi, np.ones(len(t))]), t, level=level, weight=weight)


def design(problem):
    """Φ of all candidates, from the given numbers."""
    return (problem.design.X - problem.design.mean) / problem.design.scale


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


def informative(n=200, d=15, seed=0, strength=1.5, likelihood="bernoulli"):
    """Of d features the first three matter; classes, or counts."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    eta = strength * (X[:, 0] - X[:, 1] + 0.8 * X[:, 2])
    if likelihood == "poisson":
        return X, rng.poisson(np.exp(0.4 * eta)).astype(float)
    return X, (eta + rng.logistic(size=n) > 0).astype(float)


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


# --- the view proposes, the real evidence decides ---


def rare_features(seed, n=4000, d=300):
    """Binary features with half a per cent of ones, ten of which raise low odds by a factor of 20 to 50."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, d)) < 0.005).astype(float)
    t = (X[:, :10] @ np.linspace(3, 4, 10) - 3 + rng.logistic(size=n) > 0).astype(float)
    return X, t


@both_inferences
@pytest.mark.parametrize("seed", range(4))
def test_rare_strong_features_are_kept(inference, seed):
    """At w = 0 the view has hardly any curvature where a feature is one, and misjudges what the feature will bring."""
    X, t = rare_features(seed)
    price = PerUnit(classification_price(*X.shape))
    problem = by(problem_of(X, t, level=True, price=price), inference)
    result = glm.find(problem, Settings(1e-4, 1000))
    assert result.converged
    assert_array_equal(np.sort(result.active), np.arange(10))


@pytest.mark.parametrize("seed", [4, 5])
def test_what_is_missing_of_rare_features_does_not_pay(seed):
    """In these draws one true feature has too few ones with the event: the true model has less priced evidence."""
    X, t = rare_features(seed)
    problem = problem_of(X, t, level=True, price=PerUnit(classification_price(*X.shape)))
    result = glm.find(problem, Settings(1e-4, 1000))
    assert set(result.active) < set(range(10))
    priced = result.log_evidence - problem.price.nats * len(result.active)
    assert priced > fitted(problem, np.arange(10)).priced(problem)


def test_what_the_view_promises_and_reality_refuses_does_not_enter(mixtures):
    """Columns that were refused at the end have a promise, and do not raise the evidence when they are fitted.

    A bound keeps its promises: with new contact points it can only rise further. Laplace's method does not.
    """
    promised = 0
    for seed in range(6, 12):
        X, t = mixtures(100, seed)
        problem = problem_of(kernel(X, X), t, level=True)
        there, arrived = climb(Search(problem, TOL), cold_start(problem), EXACTLY, Trace())
        assert arrived
        moves = Candidates.of(problem, there.fit).moves(problem)
        for j in there.refused:
            if moves.gain[j] > 10 * TOL:
                grown = np.append(there.fit.active, j), np.append(there.fit.alpha, moves.alpha[j])
                fit = fit_scales(problem, *grown, there.fit.point.grow(1), TOL, drop_worthless=True)
                assert fit.evidence <= there.fit.evidence + 2 * TOL
                promised += 1
    assert promised


def test_a_useless_column_in_the_start_leaves():
    X, t = informative(150, 12)
    problem = problem_of(X, t, level=True, price=PerUnit(4.0))
    start = fitted(problem, [0, 1, 2, 8])
    assert fitted(problem, [0, 1, 2]).priced(problem) > start.priced(problem)
    there, arrived = climb(Search(problem, TOL), start, EXACTLY, Trace())
    assert arrived
    assert_array_equal(np.sort(there.fit.active), [0, 1, 2])


@both_inferences
@pytest.mark.parametrize("likeness", [0.9, 0.98])
def test_a_near_duplicate_is_exchanged_for_the_right_column(inference, likeness):
    """Its deletion alone does not pay; together with the addition of the right column it does."""
    X, t = informative(400, 6, seed=1)
    noise = np.random.default_rng(2).standard_normal(400)
    X[:, 5] = likeness * X[:, 0] + np.sqrt(1 - likeness**2) * noise
    problem = by(problem_of(X, t, level=True, price=PerUnit(classification_price(400, 6))), inference)
    wrong, right = fitted(problem, [5, 1, 2]), fitted(problem, [0, 1, 2])
    both, less = fitted(problem, [5, 1, 2, 0]), fitted(problem, [1, 2])
    assert right.priced(problem) > wrong.priced(problem) > less.priced(problem)
    there, arrived = climb(Search(problem, TOL), wrong, EXACTLY, Trace())
    assert arrived
    assert_array_equal(np.sort(there.fit.active), [0, 1, 2])
    assert there.fit.priced(problem) >= max(right.priced(problem), both.priced(problem)) - search.MIN_RISE


def test_columns_that_only_pay_together_are_found():
    """Their difference is the signal: each alone is worth less than its price."""
    rng = np.random.default_rng(1)
    n = 300
    shared, signal = 5 * rng.standard_normal(n), rng.standard_normal(n)
    X = np.column_stack([shared + signal, shared, rng.standard_normal((n, 6))])
    t = (1.5 * signal + rng.logistic(size=n) > 0).astype(float)
    problem = problem_of(X, t, level=True, price=PerUnit(classification_price(n, 8)))
    for j in (0, 1):
        assert fitted(problem, [j]).priced(problem) < fitted(problem, []).priced(problem)
    result = glm.find(problem, EXACTLY)
    assert_array_equal(np.sort(result.active), [0, 1])


# --- starts ---


def test_priced_columns_start_from_nothing(mixtures):
    X, t = mixtures(60, 1)
    assert not len(cold_start(problem_of(kernel(X, X), t, level=True, price=PerUnit(1.0))).active)


def test_free_columns_start_from_many_unless_the_design_is_wide(mixtures, monkeypatch):
    X, t = mixtures(60, 1)
    problem = problem_of(kernel(X, X), t, level=True)
    start = cold_start(problem)
    result = glm.find(problem, EXACTLY)
    assert 0 < len(start.active) <= 15  # at most one for every four rows
    assert start.evidence <= result.log_evidence + search.LOOSE
    monkeypatch.setattr(search, "ALL_COLUMNS", 59)
    assert not len(cold_start(problem).active)


@both_inferences
def test_weights_are_repetitions(inference, mixtures):
    X, t = mixtures(50, 2)
    weight = np.random.default_rng(0).integers(1, 4, len(t)).astype(np.float64)
    Phi, times = kernel(X, X), weight.astype(int)
    once = glm.find(by(problem_of(Phi, t, level=True, weight=weight), inference), EXACTLY)
    often = glm.find(by(problem_of(np.repeat(Phi, times, axis=0), np.repeat(t, times), level=True), inference), EXACTLY)
    assert_array_equal(np.sort(once.active), np.sort(often.active))
    assert_allclose(once.log_evidence, often.log_evidence, rtol=1e-7)


@both_inferences
def test_scale_of_columns_does_not_matter(inference, mixtures):
    X, t = mixtures(60, 1)
    factor = 10.0 ** np.linspace(-6, 6, len(t))
    results = []
    for scale in (1.0, factor):
        problem = replace(problem_of(kernel(X, X), t, min_alpha=0.0), design=DenseRows.of(kernel(X, X) * scale))
        results.append(glm.find(by(problem, inference), EXACTLY))
    assert_array_equal(results[0].active, results[1].active)
    # Both fits stop at this tolerance, and rounding makes their last steps differ.
    assert_allclose(results[0].log_evidence, results[1].log_evidence, rtol=0, atol=TOL)
    # At a maximum with curvature one, TOL nats are √(2 TOL) in log α.
    ratio = results[1].alpha / results[0].alpha / factor[results[1].active] ** 2
    assert_allclose(np.log(ratio), 0.0, atol=np.sqrt(2 * TOL))


@both_inferences
@pytest.mark.parametrize("free", [True, False], ids=["flat intercept", "no intercept"])
def test_separable_classes(inference, free, mixtures):
    X, t = mixtures(80, 1, spread=0.02)
    problem = problem_of(kernel(X, X), t, level=free)
    result = glm.find(by(problem, inference), EXACTLY)
    assert np.isfinite(result.posterior.mean).all()
    assert (result.alpha >= problem.prior.min_alpha).all()
    eta = result.level + (design(problem)[:, result.active] - result.origin) @ result.posterior.mean
    assert_array_equal(eta > 0, t == 1)
    assert -len(t) * np.log(2) / 2 < result.log_evidence < 0


def test_copies_do_not_enter_together(mixtures):
    X, t = mixtures(60, 4)
    Phi = kernel(X, X)
    problem = problem_of(np.column_stack([Phi, 3 * Phi]), t)
    result = glm.find(problem, EXACTLY)
    once = glm.find(problem_of(Phi, t), EXACTLY)
    assert result.converged
    assert len(set(result.active % len(t))) == len(result.active)
    assert_allclose(result.log_evidence, once.log_evidence, rtol=1e-9)
    # A column whose precision is still far too large would gain by its copy as much as by itself.
    j = int(once.active[0])
    fit, alpha = fitted(problem, [j]), np.array([1e3])
    point = Mode(problem.likelihood, np.zeros(1))
    found = Candidates.of(problem, replace(fit, alpha=alpha, point=point, view=point.view(problem, fit.design, alpha)))
    assert found.Q[j + 60] ** 2 > 2 * found.S[j + 60]
    assert found.moves(problem).gain[j + 60] == 0


@pytest.mark.parametrize("free", [True, False], ids=["flat intercept", "no intercept"])
def test_nothing_to_find(free):
    """Every input has both classes, once each."""
    X = np.random.default_rng(0).standard_normal((20, 2))
    X, t = np.repeat(X, 2, axis=0), np.tile([0.0, 1.0], 20)
    result = glm.find(problem_of(kernel(X, X), t, level=free), EXACTLY)
    assert result.converged
    assert not len(result.active)
    assert result.gap == 0
    # A flat intercept is integrated out: N/4 is the curvature at the mode.
    assert_allclose(result.log_evidence, -40 * np.log(2) + free * 0.5 * np.log(2 * np.pi / 10), rtol=1e-12)


def test_hyper_prior_counts(mixtures):
    """With Gamma(a, b) the precisions settle at (2a + 1) / (2b + μ² + Σ_mm)."""
    X, t = mixtures(60, 3)
    result = glm.find(problem_of(kernel(X, X), t, level=True, a=0.5, b=0.2), EXACTLY)
    assert result.converged
    mean, var = result.posterior.mean, result.posterior.var
    assert_allclose(result.alpha, 2.0 / (0.4 + mean**2 + var), rtol=1e-5)


def test_out_of_steps(mixtures):
    X, t = mixtures(60, 3)
    result = glm.find(problem_of(kernel(X, X), t), Settings(TOL, 2))
    assert not result.converged
    assert result.gap > TOL
    assert len(result.trace.infos) == 2


def test_an_exact_model_is_never_replaced_by_a_worse_one(mixtures):
    """What loose fits promised and exact ones do not keep is taken back, and not proposed again."""
    X, t = mixtures(80)
    problem = problem_of(kernel(X, X), t)
    best = glm.find(problem, EXACTLY)
    exact = fitted(problem, best.active, best.alpha)
    poor = fitted(problem, [*best.active[1:], int(np.setdiff1d(np.arange(80), best.active)[0])], tol=search.LOOSE)
    here = Search(problem, TOL)
    back = here._settled(search.Standing(poor, exact=exact))
    assert back.fit is back.exact is exact
    assert back.refused == set(poor.active.tolist()) - set(exact.active.tolist())
    forward = here._settled(search.Standing(exact, exact=fitted(problem, poor.active)))
    assert forward.fit is forward.exact
    assert_array_equal(forward.fit.active, exact.active)
    assert not forward.refused
