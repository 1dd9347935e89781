"""Chains against the enumeration of all sets: as a whole, and with each of their moves alone."""

from dataclasses import replace
from itertools import chain as chain_of
from itertools import product
from math import comb, log

import numpy as np
import pytest
from enumeration import ALWAYS, NEVER, enumerated, make_sets
from numpy.testing import assert_allclose

from sparsebayes.core.inclusion import InclusionPrior
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import chain as chains
from sparsebayes.engine.augmented import ExactChain
from sparsebayes.engine.averaging import N_DRAWS, drawn
from sparsebayes.engine.chain import Chain, Place
from sparsebayes.engine.flips import Sums
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.sets import Sets

N_CHAINS = 16
LARGEST = 0.03
"""Largest standard error for which a comparison says anything; they are about 0.005."""

CASES = {
    "tall": {},
    "wide": {"n": 6},
    "known noise": {"learns_noise": False},
    "wide, known noise": {"n": 6, "learns_noise": False},
    "unequal odds": {"log_prior": [-1.5, 1.0, 0, 2.0, 0, -2.0, 1.5, 0]},
    "forced and never": {"log_prior": [0, ALWAYS, 0, NEVER, 1.0, 0, ALWAYS, -1.0]},
    "wide, forced": {"n": 6, "log_prior": [0, ALWAYS, 0, NEVER, 1.0, 0, ALWAYS, -1.0]},
}


UNEQUAL = [-3.0, 3.0, ALWAYS, 4.0, 0, -4.0, NEVER, 2.0]


def averages_of(sums):
    """Inclusion probabilities, mean weights, mean squares, sizes and ρ."""
    return np.concatenate([*(np.asarray(part) / sums.total for part in sums[:4]), [sums.noise / sums.total]])


def exact_averages(sets, slabs=slice(None)):
    exact = enumerated(sets, slabs)
    return np.concatenate([exact.probability, exact.mean, exact.second, exact.sizes, [exact.rest]])


def assert_agree(found, exact):
    """Means of independent chains lie within 5 standard errors; what is rarer than 1e-5 may not be seen at all."""
    found = np.array(found)
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert error.max() < LARGEST * max(1.0, np.abs(exact).max())
    assert_allclose((found.mean(axis=0) - exact) / (error + 1e-5), 0.0, atol=5.0)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.frequencies
def test_chains_agree_with_the_enumeration(case):
    sets = make_sets(**case)
    found = []
    for seed in range(N_CHAINS):
        place = Place(np.array(sets.forced), -1, np.random.default_rng(seed))
        place, _ = chains.run(sets, place, 200)
        found.append(averages_of(chains.run(sets, place, 2500)[1].sums))
    assert_agree(found, exact_averages(sets))


@pytest.mark.frequencies
def test_draws_agree_with_the_enumeration():
    sets = make_sets()
    exact = enumerated(sets)
    found = []
    for seed in range(N_CHAINS):
        _, stretch = chains.run(sets, Place(np.array([0]), -1, np.random.default_rng(seed)), 3000)
        visits = list(chain_of(*stretch.visits))
        assert_allclose(sum(visit.share for visit in visits), stretch.sums.total)
        draws = drawn(visits, sets.draw, np.random.default_rng(seed), N_DRAWS)
        assert len(draws) in (N_DRAWS - 1, N_DRAWS)
        weights = np.zeros((len(draws), 8))
        for row, draw in zip(weights, draws, strict=True):
            row[draw.active] = draw.weights
        noise = np.mean([draw.noise for draw in draws])
        parts = (weights != 0).mean(axis=0), weights.mean(axis=0), (weights**2).mean(axis=0), [noise]
        found.append(np.concatenate(parts))
    assert_agree(found, np.concatenate([exact.probability, exact.mean, exact.second, [exact.rest / (sets.n - 2)]]))


MOVES = {
    "flips alone": lambda chain: None,
    "exchange": Chain.exchange,
    "draw of c": lambda chain: chain.renew(chain.active, leaps=False),
    "leap": lambda chain: chain.renew(chain.active, leaps=True),
}
SLAB = 14
"""c = 4: where no move changes it, the enumeration is that at this c alone."""


@pytest.mark.parametrize("log_prior", [None, UNEQUAL], ids=["equal", "unequal"])
@pytest.mark.parametrize("n", [12, 6], ids=["tall", "wide"])
@pytest.mark.parametrize("move", MOVES)
@pytest.mark.frequencies
def test_every_move_by_itself_leaves_the_target_as_it_is(monkeypatch, move, n, log_prior):
    monkeypatch.setattr(chains, "FURTHEST", 2)  # leaps of up to four of eight columns
    sets = make_sets(n, 8, log_prior=log_prior)
    keeps_c = move in ("flips alone", "exchange")
    found = []
    for seed in range(N_CHAINS):
        chain = Chain(sets, np.random.default_rng(seed))
        chain.start(np.union1d(sets.forced, [0]).astype(np.intp), SLAB)
        for _ in range(300):
            MOVES[move](chain)
            chain.flips.run(chain.rng.random(5), chain.rng.random(5))
        found.append(averages_of(Sums(*chain.flips.sums)))
    assert_agree(found, exact_averages(sets, [SLAB] if keeps_c else slice(None)))


@pytest.mark.parametrize("log_prior", [None, UNEQUAL], ids=["equal", "unequal"])
@pytest.mark.parametrize("n", [12, 6], ids=["tall", "wide"])
@pytest.mark.frequencies
def test_sweeps_of_an_untempered_chain_leave_the_target_as_it_is(n, log_prior):
    sets = make_sets(n, 8, log_prior=log_prior, learns_noise=False)
    found = []
    for seed in range(N_CHAINS):
        chain = ExactChain(sets, np.random.default_rng(seed))
        chain.start(np.array(sets.forced), -1)
        for _ in range(300):
            chain.sweep(chain.active, 6)
        found.append(averages_of(Sums(*chain.flips.sums)))
    assert_agree(found, exact_averages(sets))


def test_chains_agree_with_the_enumeration_where_log_odds_are_in_the_thousands(form):
    """Indicators of three classes: two say what one says, and all have log odds that no exponential can hold."""
    rng = np.random.default_rng(0)
    n, d = 20_000, 4
    X = np.column_stack([np.eye(3)[rng.integers(0, 3, n)], rng.standard_normal(n)])
    y = X[:, 0] + rng.standard_normal(n)
    problem = LeastSquares(
        design=DenseRows.of(X).standardised(np.ones(n), centre=True),
        t=(y - y.mean()) / y.std(),
        n_weighted=float(n),
        flat_intercept=True,
    )
    sets = Sets(problem, np.zeros(d), InclusionPrior.of(d))
    subsets = [np.flatnonzero(each) for each in product([0, 1], repeat=d)]
    evidence = np.array([sets.log_evidence(sets.spectrum(each), len(each)) for each in subsets])
    p = np.exp(evidence - evidence.max()).sum(axis=1)
    exact = p @ np.array([np.isin(np.arange(d), each) for each in subsets]) / p.sum()
    _, seen = chains.run(sets, Place(np.array([1, 2]), -1, np.random.default_rng(1)), 3000)
    assert_allclose(seen.sums.included / seen.sums.total, exact, atol=0.01)


def test_a_chain_goes_on_where_it_was():
    """Two stretches are one long one: the same place, and sums that add up."""
    sets = make_sets()
    start = Place(np.array([0]), 5, np.random.default_rng(0))
    place, first = chains.run(sets, replace(start, rng=np.random.default_rng(0)), 100)
    end, second = chains.run(sets, place, 100)
    long_end, both = chains.run(sets, replace(start, rng=np.random.default_rng(0)), 200)
    assert sorted(end.active) == sorted(long_end.active)
    assert end.slab == long_end.slab
    for got, expected in zip(chains.added([first.sums, second.sums]), both.sums, strict=True):
        assert_allclose(got, expected, rtol=1e-9)


@pytest.mark.parametrize(("n", "m"), [(5, 2), (40, 7), (10**6, 1)])
def test_log_binomial(n, m):
    assert_allclose(chains.log_binomial(n, m), log(comb(n, m)), rtol=1e-9)
