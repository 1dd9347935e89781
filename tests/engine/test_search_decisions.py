"""The view proposes, the real evidence decides; starts, and ends that are hard to reach."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from search_problems import EXACTLY, TOL, both_inferences, by, design, fitted, informative, kernel, problem_of

from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.prices import PerUnit, classification_price
from sparsebayes.core.priors import ARD
from sparsebayes.data.dense import DenseRows
from sparsebayes.data.sparse import SparseRows
from sparsebayes.engine import glm, search
from sparsebayes.engine.candidates import Candidates
from sparsebayes.engine.loop import Settings, Trace
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.scale_fit import fit_scales
from sparsebayes.engine.search import Search, climb, cold_start
from sparsebayes.engine.view import Mode

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


@pytest.mark.parametrize("design_of", [DenseRows.of, SparseRows.of], ids=["dense", "sparse"])
def test_many_rare_strong_features_are_kept_however_rows_are_stored(design_of):
    """A feature has a hundred ones; sparse rows are never formed."""
    rng = np.random.default_rng(0)
    X = (rng.random((20_000, 500)) < 0.005).astype(float)
    t = (X[:, :20] @ np.linspace(3, 4, 20) - 3 + rng.logistic(size=len(X)) > 0).astype(float)
    weight = np.ones(len(t))
    problem = Problem(
        design=design_of(X).standardised(weight, centre=True).unweighted(),
        t=t,
        weight=weight,
        likelihood=Bernoulli(),
        prior=ARD(min_alpha=1e-6),
        price=PerUnit(classification_price(*X.shape)),
        flat_intercept=True,
    )
    result = glm.find(problem, Settings(1e-4, 1000))
    assert result.converged
    assert_array_equal(np.sort(result.active), np.arange(20))


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
    back = here._settled(search.SearchState(poor, exact=exact))
    assert back.fit is back.exact is exact
    assert back.refused == set(poor.active.tolist()) - set(exact.active.tolist())
    forward = here._settled(search.SearchState(exact, exact=fitted(problem, poor.active)))
    assert forward.fit is forward.exact
    assert_array_equal(forward.fit.active, exact.active)
    assert not forward.refused
