"""Chains over groups of columns: updates against everything from scratch, and averages against enumeration."""

from functools import partial
from itertools import chain as joined
from itertools import combinations

import numpy as np
import pytest
from enumeration import ALWAYS, NEVER, make_sets, moments
from flip_states import after_flips
from numpy.testing import assert_allclose, assert_array_equal

from sparsebayes.core.inclusion import InclusionPrior
from sparsebayes.engine import averaging
from sparsebayes.engine.averaging import Schedule, average, first_sets
from sparsebayes.engine.chain import Chain, run
from sparsebayes.engine.group_sets import GroupSets, by_columns, members_of
from sparsebayes.engine.model_average import Odds


@pytest.fixture(autouse=True)
def all_flips(monkeypatch):
    """Chains do not stop when they agree."""
    monkeypatch.setattr(averaging, "AGREEMENT", 0.0)


LABELS = np.array([0, 2, 1, 0, 2, 2, 3, 1, 4])
"""Five groups of one to three columns, in no order."""
CASES = {
    "tall": {"n": 30},
    "wide": {"n": 7},
    "known noise": {"n": 30, "learns_noise": False},
    "no intercept": {"n": 30, "flat": False},
}
close = partial(assert_allclose, rtol=1e-6, atol=1e-6)
"""With more columns inside than rows the posterior's condition is c times the largest eigenvalue, up to 1e6."""


def grouped(labels=LABELS, log_prior=None, **others):
    plain = make_sets(m=len(labels), **others)
    log_prior = np.zeros(labels.max() + 1) if log_prior is None else np.asarray(log_prior, dtype=float)
    prior = InclusionPrior.of(int(np.isfinite(log_prior).sum()), noise=(labels.max() + 1) / len(labels))
    return GroupSets(plain.problem, log_prior, prior, plain.learns_noise, labels=labels)


@pytest.fixture(params=CASES.values(), ids=CASES)
def sets(request):
    return grouped(**request.param)


def columns(groups):
    return np.flatnonzero(np.isin(LABELS, list(groups)))


def log_joint(sets, groups, slabs=slice(None)):
    """log p(set of groups, c, t), by dense matrices."""
    at = moments(sets, columns(groups), sets.prior.slabs[slabs])
    fit = -0.5 * sets.n * np.log(at.rest) if sets.learns_noise else -0.5 * at.rest
    own = sets.log_prior[list(groups)]
    k = int(np.isfinite(own).sum())
    return sets.prior.log_size(k)[slabs] + own[np.isfinite(own)].sum() + fit - 0.5 * at.log_volume, at


def enumerated(sets):
    """Probability of each group, mean and mean square of the weights, and sizes, over all sets of groups."""
    free, m = np.flatnonzero(sets.movable), len(LABELS)
    log_p, rows = [], []
    for chosen in joined.from_iterable(combinations(free, k) for k in range(len(free) + 1)):
        groups = sorted([*chosen, *sets.forced])
        value, at = log_joint(sets, groups)
        noise = at.rest / max(sets.n - 2, 1.0) if sets.learns_noise else np.ones_like(at.rest)
        inside, size = np.zeros((len(value), len(sets.log_prior))), np.zeros((len(value), len(sets.log_prior) + 1))
        mean, second = np.zeros((2, len(value), m))
        inside[:, groups], size[:, len(groups)] = 1.0, 1.0
        mean[:, columns(groups)] = at.mean
        second[:, columns(groups)] = at.mean**2 + noise[:, None] * np.diagonal(at.covariance, axis1=1, axis2=2)
        log_p.append(value)
        rows.append(np.column_stack([inside, mean, second, size]))
    p = np.exp(np.concatenate(log_p) - np.max(log_p))
    G = len(sets.log_prior)
    return np.split(p @ np.concatenate(rows) / p.sum(), [G, G + m, G + 2 * m])


def assert_right(chain):
    flips, sets, slab, c = chain.flips, chain.sets, chain.slab, chain.c
    Phi, t = sets.problem.design.columns(slice(None)), sets.problem.t
    inside = Phi[:, columns(flips.active)]
    M = np.linalg.inv(np.eye(len(t)) + c * inside @ inside.T)
    close(flips.q, Phi.T @ M @ t, err_msg="q")
    close(flips.rest, t @ M @ t + sets.floor, err_msg="rest")
    for g in np.flatnonzero(sets.movable):
        own = columns([g])
        close(flips.S[g, : len(own), : len(own)], Phi[:, own].T @ M @ Phi[:, own], err_msg="S")
        with_g, without = sorted({*flips.active, g}), sorted(set(flips.active) - {g})
        log_odds = log_joint(sets, with_g, slab)[0] - log_joint(sets, without, slab)[0]
        close(flips.log_in[g], log_odds, err_msg="log odds")
        at = moments(sets, columns(with_g), c)
        places = np.searchsorted(columns(with_g), own)
        close(flips.mean[g, : len(own)], at.mean[places], err_msg="mean")
        close(flips.K[g][: len(own), : len(own)], at.covariance[np.ix_(places, places)], err_msg="covariance")
        noise = at.rest / max(sets.n - 2, 1.0) if sets.learns_noise else 1.0
        close(flips.noise[g], noise, err_msg="noise")


@pytest.mark.parametrize("slab", [3, 12, 20])
def test_state_after_many_flips_is_that_from_scratch(sets, slab):
    chain = Chain(sets, np.random.default_rng(0))
    chain.start(np.array([1, 3]), slab)
    assert_right(chain)
    for j in np.random.default_rng(1).integers(0, 5, 25):
        chain.flips.toggle(int(j))
    assert_right(chain)
    for j in list(chain.flips.active):  # emptied
        chain.flips.toggle(j)
    assert_right(chain)
    if len(sets.problem.t) > len(LABELS):  # else the target is reproduced, and nothing but rounding is left of ρ
        for j in range(5):  # filled
            chain.flips.toggle(j)
        assert_right(chain)


def averaged(sets, n_flips=1200):
    score = np.ones(len(sets.log_prior))
    starts = first_sets(np.array([0]), score, sets.log_prior, 3, 3)
    return average(partial(run, sets), starts, Schedule(200, n_flips, n_flips), seed=0, draw=sets.draw)


@pytest.mark.parametrize("case", CASES)
def test_averages_are_those_of_all_sets_of_groups(case):
    sets = grouped(**CASES[case])
    probability, mean, second, sizes = enumerated(sets)
    found = averaged(sets)
    # Three chains of 1,200 flips; their own spread says 0.009.
    assert_allclose(found.probability, probability, atol=0.03)
    assert_allclose(found.mean, mean, atol=0.03)
    assert_allclose(found.std, np.sqrt(second - mean**2), atol=0.03)
    assert_allclose(found.sizes, sizes, atol=0.03)
    for draw in found.draws:
        assert len(np.unique(LABELS[draw.active])) == np.isin(np.arange(5), LABELS[draw.active]).sum()
        assert_array_equal(draw.active, columns(np.unique(LABELS[draw.active])))


def test_groups_that_are_always_or_never_in():
    sets = grouped(n=30, log_prior=[ALWAYS, 0.0, NEVER, -2.0, 1.0])
    probability, mean, *_ = enumerated(sets)
    found = averaged(sets)
    assert found.probability[0] == 1
    assert found.probability[2] < 1e-200
    assert_allclose(found.probability, probability, atol=0.03)
    assert_allclose(found.mean, mean, atol=0.03)


def test_groups_of_one_column_are_columns():
    plain = make_sets(n=30, m=6)
    one = GroupSets(plain.problem, np.zeros(6), plain.prior, True, labels=np.arange(6))
    found, expected = (after_flips(sets).flips for sets in (one, plain))
    close(found.log_in, expected.log_in)
    close(found.rest, expected.rest)


def test_odds_and_members_of_groups():
    assert_array_equal(members_of(LABELS)[2], [1, 4, 5])
    assert_array_equal(members_of(LABELS)[3], [6, -1, -1])
    odds = Odds.of(None, 1.0, np.array([True] * 6 + [False] + [True] * 2)).grouped(LABELS)
    assert_array_equal(odds.log_prior, [0, 0, 0, NEVER, 0])
    assert odds.per_unit == pytest.approx(9 / 5)
    # The share of the variance is that of all columns: at equal odds of one column the prior of c is the same.
    assert_allclose(odds.prior().slabs[0] * 9 / 5 * 4, InclusionPrior.of(1).slabs[0], rtol=1e-12)
    found = averaged(grouped(n=30), 300)
    assert_array_equal(by_columns(found, LABELS).probability, found.probability[LABELS])
