"""What a chain keeps by rank-one updates, against everything computed from scratch; compiled and NumPy alike."""

from functools import partial

import numpy as np
import pytest
from enumeration import ALWAYS, NEVER, enumerated, log_joint, make_sets, moments, sets_of
from flip_states import assert_sums_right
from numpy.testing import assert_allclose, assert_array_equal

from sparsebayes.engine import compiled
from sparsebayes.engine.chain import Chain

close = partial(assert_allclose, rtol=1e-9, atol=1e-10)

CASES = {
    "tall": {"n": 30, "m": 9},
    "wide": {"n": 7, "m": 12},
    "known noise": {"n": 30, "m": 9, "learns_noise": False},
    "wide, known noise": {"n": 7, "m": 12, "learns_noise": False},
    "prices": {"n": 30, "m": 9, "log_prior": [0.5, -1, ALWAYS, NEVER, 0, 2, -3, ALWAYS, 0]},
    "no intercept": {"n": 30, "m": 9, "flat": False},
    "prior of the noise": {"n": 30, "m": 9, "c": 2.0, "d": 0.5},
}
MANY = 10
"""Columns inside at the start, of 12 on 7 rows: M itself is updated."""


@pytest.fixture(params=CASES.values(), ids=CASES)
def sets(request):
    return make_sets(**request.param)


def started(sets, active, slab=12, seed=0):
    chain = Chain(sets, np.random.default_rng(seed))
    chain.start(np.union1d(active, sets.forced).astype(np.intp), slab)
    return chain


def toggled(chain, n, seed=1):
    """A random walk over sets."""
    movable = np.flatnonzero(chain.sets.movable)
    for j in np.random.default_rng(seed).choice(movable, n):
        chain.flips.toggle(int(j))
    return chain


def assert_right(chain):
    """s, q, ρ, log odds, probabilities, conditional weights and eagerness of the present set, from scratch."""
    assert_sums_right(chain, **close.keywords)
    flips, sets, slab, c, active = chain.flips, chain.sets, chain.slab, chain.c, sorted(chain.flips.active)
    kappa = 5.0 / sets.movable.sum()
    total = 0.0
    for j in np.flatnonzero(sets.movable):
        with_j, without = sorted({*active, j}), sorted(set(active) - {j})
        log_odds = log_joint(sets, with_j, slab)[0] - log_joint(sets, without, slab)[0]
        p = 1 / (1 + np.exp(-log_odds))
        close(flips.log_in[j], log_odds, err_msg="log odds")
        close(flips.p[j], p, err_msg="p")
        at, place = moments(sets, with_j, c), with_j.index(j)
        noise = at.rest / (sets.n - 2) if sets.learns_noise else 1.0
        close(flips.weight[j], at.mean[place], err_msg="weight")
        close(flips.variance[j], noise * at.covariance[place, place], err_msg="variance")
        eagerness = (p + kappa) / (p if j in active else 1 - p)
        close(flips.eagerness[j], eagerness, err_msg="eagerness")
        total += eagerness
    close(flips.total, total)
    stuck = ~sets.movable
    assert_array_equal(flips.eagerness[stuck], 0.0)
    assert_allclose(flips.p[stuck], np.isin(np.flatnonzero(stuck), sets.forced), atol=1e-200)


@pytest.mark.parametrize("slab", [3, 12, 24])
def test_state_after_many_flips_is_that_from_scratch(form, sets, slab):
    assert_right(toggled(started(sets, [0, 1], slab), 40))


@pytest.mark.parametrize("learns_noise", [True, False])
def test_updates_of_the_rows_matrix_are_those_from_scratch(form, learns_noise):
    chain = started(make_sets(7, 12, learns_noise=learns_noise), range(MANY))
    assert chain.sets.by_rows(MANY)
    assert_right(toggled(chain, 40))


def test_emptied_and_filled_sets(form, sets):
    chain = started(sets, np.flatnonzero(sets.movable)[:3])
    for j in np.flatnonzero(sets.movable)[:3]:
        chain.flips.toggle(int(j))
    assert sorted(chain.flips.active) == sets.forced.tolist()
    assert_right(chain)
    for j in np.flatnonzero(sets.movable):
        chain.flips.toggle(int(j))
    assert_right(chain)


@pytest.mark.parametrize(("n", "m", "start", "slab"), [(150, 40, 2, 24), (150, 40, 2, 41), (30, 60, 30, 35)])
def test_columns_that_are_combinations_of_others(form, n, m, start, slab):
    """Half of the columns are: the inverse is as large as c, and rounding must not grow from flip to flip.

    Without refinement the log odds of the tall data are 1e-3 off after 160 flips at the smaller c (160), and 1 at the
    larger (8e5). On the wide data, where there are as many columns as rows, updates of M itself lose all digits. The
    bounds are eps × c × n × k, and a hundred for what 160 flips add.
    """
    rng = np.random.default_rng(0)
    free = rng.standard_normal((n, m // 2))
    X = np.hstack([free, free @ rng.standard_normal((m // 2, m // 2))])
    sets = sets_of(X, X[:, 0] - 0.6 * X[:, 1] + rng.standard_normal(n))
    chain = toggled(started(sets, range(start), slab), 160)
    active = set(chain.flips.active)
    exact = [
        log_joint(sets, sorted(active | {j}), slab)[0] - log_joint(sets, sorted(active - {j}), slab)[0]
        for j in range(m)
    ]
    bound = 100 * np.finfo(float).eps * chain.c * n * len(active)
    assert bound < 1e-3
    assert_allclose(chain.flips.log_in, exact, atol=bound)


@pytest.mark.parametrize("j", [2, 3])
def test_columns_that_may_not_move_do_not(form, j):
    chain = started(make_sets(30, 9, log_prior=[0, 0, ALWAYS, NEVER, 0, 0, 0, 0, 0]), [0])
    before = chain.flips.active
    chain.flips.toggle(j)
    assert chain.flips.active == before


@pytest.mark.parametrize("log_prior", [[ALWAYS] * 4, [NEVER] * 4, [ALWAYS, NEVER, NEVER, ALWAYS]])
def test_where_nothing_may_move_all_states_are_the_same(form, log_prior):
    sets = make_sets(10, 4, log_prior=log_prior)
    chain = started(sets, [])
    chain.flips.run(np.full(5, 0.5), np.full(5, 0.5))
    included, first, second, sizes, rest, total = chain.flips.sums
    exact = enumerated(sets, [chain.slab])
    assert total == 5
    close(included / total, exact.probability)
    close(first / total, exact.mean)
    close(second / total, exact.second)
    close(sizes / total, exact.sizes)
    close(rest / total, exact.rest)


def test_sums_are_those_of_the_states(form, sets):
    """Against the same steps, one by one."""
    rng = np.random.default_rng(3)
    choices, picks = rng.random(15), rng.random(15)
    at_once, by_hand = started(sets, [0]), started(sets, [0])
    share = at_once.flips.run(choices, picks)
    d = sets.problem.n_columns
    included, first, second, sizes = np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d + 1)
    total, rest, picked = 0.0, 0.0, []
    for choice, pick in zip(choices, picks, strict=True):
        flips = by_hand.flips
        j = int(np.searchsorted(np.cumsum(flips.eagerness) / flips.total, choice, side="right"))
        flips.toggle(j)
        weight, active = 1 / flips.total, flips.active
        included += weight * flips.p
        first[active] += weight * flips.weight[active]
        second[active] += weight * (flips.weight[active] ** 2 + flips.variance[active])
        sizes[len(active)] += weight
        rest, total = rest + weight * flips.rest, total + weight
        picked = list(active) if pick * total < weight else picked
    for got, expected in zip(at_once.flips.sums, (included, first, second, sizes, rest, total), strict=True):
        close(got, expected)
    close(share, total)
    assert at_once.flips.picked == picked


def test_untempered_flips_count_every_state_alike(form, sets):
    chain = started(sets, [0])
    rng = np.random.default_rng(4)
    chain.flips.walk(rng.random(60), rng.random(60))
    assert chain.flips.sums[5] == 60.0
    assert_right(chain)


@pytest.mark.skipif(not compiled.COMPILED, reason="the compiled module is not there, or switched off")
@pytest.mark.parametrize("how", ["run", "walk"])
@pytest.mark.parametrize("start", [2, MANY], ids=["columns", "rows"])
def test_both_forms_make_the_same_choices(monkeypatch, how, start):
    sets, rng = make_sets(7, 12, seed=2), np.random.default_rng(5)
    numbers = rng.random((2, 200))
    chains = []
    for is_compiled in (True, False):
        monkeypatch.setattr(compiled, "COMPILED", is_compiled)
        chains.append(started(sets, range(start)))
        getattr(chains[-1].flips, how)(*numbers)
    ours, theirs = (chain.flips for chain in chains)
    assert type(ours) is not type(theirs)
    assert ours.active == theirs.active
    assert ours.picked == theirs.picked
    for got, expected in zip(ours.sums, theirs.sums, strict=True):
        close(got, expected)


@pytest.mark.parametrize("active", [[], [0], [5]])
def test_odds_that_no_exponential_can_hold(form, active):
    """Z from the log odds alone, by sums of logarithms."""
    chain = started(make_sets(20_000, 9), active)
    flips, kappa = chain.flips, 5 / 9
    log_in = np.asarray(flips.log_in)
    assert np.abs(log_in).max() > 800
    inside = np.isin(np.arange(9), active)
    flip, stay = np.where(inside, 0.0, log_in), np.where(inside, -log_in, 0.0)
    log_eagerness = np.logaddexp(np.log1p(kappa) + flip, np.log(kappa) + stay)
    close(flips.log_total, np.logaddexp.reduce(log_eagerness))
    close(flips.eagerness / flips.total, np.exp(log_eagerness - np.logaddexp.reduce(log_eagerness)))
