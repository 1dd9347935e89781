"""Exchanges: their gains are real differences of priced evidence, and after a fit none is left."""

import numpy as np
import pytest

from sparsebayes.core.prices import PerUnit
from sparsebayes.core.priors import ARD, Laplace
from sparsebayes.engine.ascent import Ascent, Limits
from sparsebayes.engine.exchange import exchanges
from sparsebayes.engine.gaussian_search import certificate, climb, search
from sparsebayes.engine.least_squares import Solution, empty
from sparsebayes.engine.loop import Settings, Trace

SETTINGS = Settings(1e-5, 2000)
PRIORS = {"flat": ARD(), "Gamma": ARD(0.3, np.linspace(0.1, 0.4, 24)), "Laplace": Laplace(rate=5.0)}


def exchanged(alpha, out, into, to):
    """The precisions after an exchange."""
    changed = alpha.copy()
    changed[out], changed[into] = np.inf, to
    return changed


def best_precision(Phi, t, alpha, noise, out, into):
    """s²/(q² - s) by a dense covariance without both columns; ∞ where q² ≤ s."""
    C = noise * np.eye(len(t)) + (Phi / exchanged(alpha, out, into, np.inf)) @ Phi.T
    s, q = Phi[:, into] @ np.linalg.solve(C, np.column_stack([Phi[:, into], t]))
    return s**2 / (q**2 - s) if q**2 > s else np.inf


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("nats", [0.0, np.log(24), np.linspace(0.1, 4, 24)], ids=["free", "one price", "own prices"])
def test_gains_are_differences_of_the_priced_evidence(prior, nats, near_duplicates, priced_objective):
    problem = near_duplicates(rho=0.9, price=nats, prior=PRIORS[prior])
    start = Solution(np.array([12, 1, 20]), np.array([0.7, 2.0, 9.0]), 0.3)
    snapshot = Ascent(problem, start).snapshot()
    found = snapshot.best_exchanges
    assert sorted(found.out) == [1, 12, 20]
    assert (np.diff(found.gain) <= 0).all()
    here = priced_objective(problem, snapshot.alpha, 0.3)
    outside = np.setdiff1d(np.arange(24), snapshot.active)
    for out, into, alpha, gain in zip(*found, strict=True):
        there = priced_objective(problem, exchanged(snapshot.alpha, out, into, alpha), 0.3)
        assert gain == pytest.approx(there - here, rel=1e-8, abs=1e-9)
        for other in outside[::2]:
            for to in np.logspace(-2, 3, 5):
                there = priced_objective(problem, exchanged(snapshot.alpha, out, other, to), 0.3)
                assert there - here <= gain + 1e-9
    assert found.best_gain == pytest.approx(found.gain[0])
    assert found.best_gain > 1


def test_what_is_barred_does_not_enter(near_duplicates):
    problem = near_duplicates()
    snapshot = Ascent(problem, Solution(np.array([12, 1]), np.ones(2), 0.3)).snapshot()
    best = int(snapshot.best_exchanges.into[0])
    barred = np.arange(24) == best
    terms = snapshot.posterior.mean, snapshot.Sigma, snapshot.gram / 0.3, snapshot.S, snapshot.Q
    some = exchanges(problem.prior, problem.price, snapshot.active, np.ones(2), *terms, barred)
    assert best not in some.into
    none = exchanges(problem.prior, problem.price, snapshot.active, np.ones(2), *terms, np.ones(24, dtype=bool))
    assert len(none.out) == 0
    assert none.best_gain == 0


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("rho", [0.999, 0.95])
def test_after_a_fit_no_exchange_raises_the_priced_evidence(rho, near_duplicates, priced_objective, design):
    for seed in range(3):
        problem = near_duplicates(rho, seed=seed)
        found, converged = search(problem, empty(0.1), Trace(), SETTINGS)
        assert converged
        assert certificate(found) <= SETTINGS.tol
        assert len(found.active) >= 3
        Phi, alpha, noise = design(problem), found.alpha, found.noise
        here = priced_objective(problem, alpha, noise)
        for out in found.active:
            for into in np.setdiff1d(np.arange(problem.n_columns), found.active):
                to = best_precision(Phi, problem.t, alpha, noise, out, into)
                there = priced_objective(problem, exchanged(alpha, out, into, to), noise)
                assert there - here <= SETTINGS.tol


def test_an_ascent_without_exchanges_is_left_behind(near_duplicates, priced_objective):
    """From the wrong twins single moves lead nowhere: neither a deletion nor an addition pays alone."""
    improved = 0
    for seed in range(4):
        problem = near_duplicates(0.95, seed=seed)
        wrong = Solution(np.arange(12, 16), np.ones(4), 0.1)
        stuck = Ascent(problem, wrong)
        assert stuck.run(Limits(1e-5), Trace(), 2000)
        there = stuck.snapshot()
        found, converged = climb(problem, wrong, Limits(1e-5), Trace(), SETTINGS)
        assert converged
        gained = found.priced_evidence - there.priced_evidence
        assert gained >= -1e-9
        improved += gained > 0.1
        assert certificate(there) == pytest.approx(max(there.best_exchanges.best_gain, 0.0), abs=1e-5)
        assert found.priced_evidence == pytest.approx(priced_objective(problem, found.alpha, found.noise), rel=1e-9)
    assert improved >= 2


@pytest.mark.usefixtures("form", "small_working_set")
def test_exchanges_reach_columns_outside_the_working_set(near_duplicates):
    problem = near_duplicates(0.95, n_pairs=30)
    found, converged = climb(problem, Solution(np.arange(30, 34), np.ones(4), 0.1), Limits(1e-5), Trace(), SETTINGS)
    assert converged
    assert certificate(Ascent(problem, found.solution).snapshot()) <= 1.01e-5


def test_a_cheaper_twin_takes_the_place_of_a_dear_one(near_duplicates):
    nats = np.where(np.arange(24) < 12, 6.0, 0.5)
    problem = near_duplicates(0.999, price=nats)
    found, converged = search(problem, Solution(np.arange(4), np.ones(4), 0.1), Trace(), SETTINGS)
    assert converged
    assert (found.active >= 12).all()
    assert len(found.active) >= 4
    assert isinstance(problem.price, PerUnit)
