"""Chains over weights that may not be negative, against all sets with their orthant probabilities."""

from dataclasses import replace
from functools import partial
from itertools import chain as joined
from itertools import combinations

import numpy as np
import pytest
from enumeration import ALWAYS, NEVER, make_sets
from numpy.testing import assert_allclose
from scipy.stats import multivariate_normal, truncnorm

from sparsebayes.engine import averaging
from sparsebayes.engine.averaging import Schedule, average
from sparsebayes.engine.bounded_chain import BoundedChain, BoundedSets, run
from sparsebayes.engine.chain import Place


@pytest.fixture(autouse=True)
def all_flips(monkeypatch):
    """Chains do not stop when they agree."""
    monkeypatch.setattr(averaging, "AGREEMENT", 0.0)


ALL = np.ones(4, dtype=bool)
SOME = np.array([False, True, True, False])
NOISES = np.exp(np.linspace(-2.5, 1.5, 15))
"""σ² at which its integral is taken; it is about 0.5 here, with a relative standard deviation of a quarter."""


def bounded(positive, **others):
    plain = make_sets(25, 4, **others)
    prior = replace(plain.prior, slabs=plain.prior.slabs[2::6], share=plain.prior.share[2::6])  # for time's sake
    return BoundedSets(plain.problem, plain.log_prior, prior, plain.learns_noise, positive=positive)


def log_joint(sets, active, slab, noise):
    """log p(set, c, σ², t) with respect to dσ²/σ², by the Gaussian evidence and the share of the orthant."""
    Phi, t, c = sets.problem.design.columns(slice(None))[:, list(active)], sets.problem.t, sets.prior.slabs[slab]
    K = noise * (np.eye(len(t)) + c * Phi @ Phi.T)
    n = sets.problem.n
    fit = -0.5 * t @ np.linalg.solve(K, t) - 0.5 * sets.floor / noise
    volume = np.linalg.slogdet(K)[1] + (n - len(t)) * np.log(noise)
    own = sets.log_prior[list(active)]
    value = fit - 0.5 * volume + sets.prior.log_size(int(np.isfinite(own).sum()))[slab] + own[np.isfinite(own)].sum()
    bounds = [k for k, j in enumerate(active) if sets.positive[j]]
    if bounds:
        covariance = np.linalg.inv(Phi.T @ Phi + np.eye(len(active)) / c)
        mean, covariance = (covariance @ Phi.T @ t)[bounds], noise * covariance[np.ix_(bounds, bounds)]
        share = multivariate_normal(np.zeros(len(bounds)), covariance, allow_singular=True, seed=0).cdf(mean)
        value += len(bounds) * np.log(2) + np.log(max(float(share), 1e-300))
    return value


def probabilities(sets):
    """Inclusion probabilities by enumeration."""
    noises = NOISES if sets.learns_noise else [1.0]
    log_p, rows = [], []
    free = np.flatnonzero(sets.movable)
    for chosen in joined.from_iterable(combinations(free, k) for k in range(len(free) + 1)):
        active = sorted([*chosen, *sets.forced])
        for slab in range(len(sets.prior.slabs)):
            for noise in noises:
                log_p.append(log_joint(sets, active, slab, noise))
                rows.append(np.isin(np.arange(4), active))
    p = np.exp(np.array(log_p) - np.max(log_p))
    return p @ np.array(rows) / p.sum()


def averaged(sets, n_steps=1500):
    starts = [np.union1d(each, sets.forced).astype(np.intp) for each in ([0], [1, 2], [])]
    return average(partial(run, sets), starts, Schedule(200, 2 * n_steps, 2 * n_steps), seed=0)


CASES = {
    "all": (ALL, {}),
    "some": (SOME, {}),
    "known noise": (ALL, {"learns_noise": False}),
    "no intercept": (ALL, {"flat": False}),
    "prices": (SOME, {"log_prior": [0.5, ALWAYS, -1.0, NEVER]}),
}


@pytest.mark.parametrize("case", CASES)
def test_averages_are_those_of_all_sets(case):
    positive, others = CASES[case]
    sets = bounded(positive, **others)
    found = averaged(sets)
    # Three chains of 1,500 steps; their own spread says 0.01 or less.
    assert_allclose(found.probability, probabilities(sets), atol=0.03)
    assert (found.mean[positive] >= 0).all()
    for draw in found.draws:
        assert (draw.weights[positive[draw.active]] >= 0).all()


def test_without_bounds_it_is_the_usual_average():
    sets = bounded(np.zeros(4, dtype=bool))
    from enumeration import enumerated

    exact, found = enumerated(sets), averaged(sets)
    assert_allclose(found.probability, exact.probability, atol=0.03)
    assert_allclose(found.mean, exact.mean, atol=0.03)
    assert_allclose(found.std, np.sqrt(exact.second - exact.mean**2), atol=0.03)
    assert_allclose(found.sizes, exact.sizes, atol=0.03)
    noise = exact.rest / (sets.n - 2)
    assert found.rest == pytest.approx(noise, rel=0.05)


@pytest.mark.parametrize("z", [-40.0, -5.0, 0.0, 3.0])
def test_draws_of_one_weight_are_from_the_truncated_normal(z):
    chain = BoundedChain(bounded(ALL), Place(np.array([], dtype=np.intp), -1, np.random.default_rng(0)))
    drawn = np.array([chain._weight(0, 2.0 * z, 2.0) for _ in range(4000)])
    exact = truncnorm(-z, np.inf, loc=2.0 * z, scale=2.0)
    assert (drawn > 0).all()
    assert drawn.mean() == pytest.approx(exact.mean(), abs=5 * exact.std() / np.sqrt(4000))
    assert drawn.std() == pytest.approx(exact.std(), rel=0.1)


def test_what_is_kept_is_that_from_scratch():
    sets = bounded(SOME)
    chain = BoundedChain(sets, Place(np.array([0, 3]), -1, np.random.default_rng(0)))
    for _ in range(50):
        chain.step()
    Phi, t = sets.problem.design.columns(slice(None)), sets.problem.t
    assert_allclose(chain.left, Phi.T @ (t - Phi @ chain.w), atol=1e-10)
    assert chain._rest() == pytest.approx(((t - Phi @ chain.w) ** 2).sum() + sets.floor)
    assert_allclose(chain.w[~chain.inside], 0.0)
