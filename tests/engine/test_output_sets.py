"""Chains over columns that several outputs share: updates against dense matrices, and averages against enumeration."""

from functools import partial
from itertools import chain as joined
from itertools import combinations

import numpy as np
import pytest
from flip_states import after_flips, assert_sums_right
from numpy.testing import assert_allclose, assert_array_equal

from sparsebayes.core.inclusion import InclusionPrior
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import averaging, compiled
from sparsebayes.engine.averaging import Schedule, average, first_sets
from sparsebayes.engine.chain import Chain, run
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.model_average import Chains, Odds
from sparsebayes.engine.output_sets import OutputSets, average_outputs
from sparsebayes.engine.outputs import OutputsProblem
from sparsebayes.engine.sets import Sets


@pytest.fixture(autouse=True)
def all_flips(monkeypatch):
    """Chains do not stop when they agree."""
    monkeypatch.setattr(averaging, "AGREEMENT", 0.0)


T = 3
CASES = {
    "own noise": {},
    "wide": {"n": 6},
    "shared noise": {"shares_noise": True},
    "known noise": {"learns_noise": False},
    "known noise, the same for all": {"learns_noise": False, "shares_noise": True},
    "no intercept": {"flat": False},
}
close = partial(assert_allclose, rtol=1e-8, atol=1e-9)


def make_sets(n=20, m=7, *, learns_noise=True, shares_noise=False, flat=True, seed=0, n_outputs=T):
    """Outputs of different noise, and two correlated columns of which the first is in all of them, weakly."""
    rng = np.random.default_rng(seed)
    X, W = rng.standard_normal((n, m)), np.zeros((m, n_outputs))
    X[:, 1] = X[:, 0] + 0.3 * X[:, 1]
    W[[0, 3]] = 0.5 * rng.choice([-1, 1], (2, n_outputs))
    Y = X @ W + np.linspace(0.7, 1.3, n_outputs) * rng.standard_normal((n, n_outputs))
    Y = Y - Y.mean(axis=0) if flat else Y
    rows = DenseRows.of(X).standardised(np.ones(n), centre=flat)
    problem = OutputsProblem(
        design=rows,
        t=Y / np.sqrt((Y**2).mean(axis=None if shares_noise else 0)),
        n_weighted=float(n),
        flat_intercept=flat,
        known_noise=None if learns_noise else 1.0,
    )
    return OutputSets(problem, np.zeros(m), InclusionPrior.of(m), learns_noise, shares_noise=shares_noise)


@pytest.fixture(params=CASES.values(), ids=CASES)
def sets(request):
    return make_sets(**request.param)


def moments(sets, active, c):
    """ρ, log |I + cΦΦᵀ|, and mean and covariance (over the noise) of the weights, by dense matrices."""
    Phi, t = sets.problem.design.columns(slice(None))[:, list(active)], sets.problem.t
    K = np.eye(len(t)) + c * Phi @ Phi.T
    rest = np.einsum("it,it->t", t, np.linalg.solve(K, t)) + sets.floor
    covariance = np.linalg.inv(Phi.T @ Phi + np.eye(len(active)) / c)
    return rest, np.linalg.slogdet(K)[1], covariance @ Phi.T @ t, covariance


def log_joint(sets, active, slab):
    """log p(set, c, t): each output's density, with its own noise, a common one, or noise one."""
    rest, volume, *_ = moments(sets, active, sets.prior.slabs[slab])
    n = len(sets.problem.t) - sets.problem.flat_intercept
    if not sets.learns_noise:
        fit = -0.5 * rest.sum()
    elif sets.shares_noise:
        fit = -0.5 * n * T * np.log(rest.sum())
    else:
        fit = -0.5 * n * np.log(rest).sum()
    return sets.prior.log_size(len(active))[slab] + fit - 0.5 * T * volume


def noise_of(sets, rest):
    """Posterior mean of the noise variance of each output."""
    n = len(sets.problem.t) - sets.problem.flat_intercept
    if not sets.learns_noise:
        return np.ones(T)
    return np.full(T, rest.sum() / (n * T - 2)) if sets.shares_noise else rest / (n - 2)


def assert_right(chain):
    assert_sums_right(chain, **close.keywords)
    flips, sets, slab, c, active = chain.flips, chain.sets, chain.slab, chain.c, sorted(chain.flips.active)
    for j in range(sets.problem.n_columns):
        with_j, without = sorted({*active, j}), sorted(set(active) - {j})
        close(flips.log_in[j], log_joint(sets, with_j, slab) - log_joint(sets, without, slab), err_msg="log odds")
        rest, _, mean, covariance = moments(sets, with_j, c)
        place = with_j.index(j)
        close(flips.weight[j], mean[place], err_msg="weight")
        variance = noise_of(sets, rest) * covariance[place, place]
        close(np.broadcast_to(flips.variance[j], T), variance, err_msg="variance")


@pytest.mark.parametrize("slab", [3, 12, 20])
def test_state_after_many_flips_is_that_from_scratch(form, sets, slab):
    chain = Chain(sets, np.random.default_rng(0))
    chain.start(np.array([1, 3]), slab)
    for j in np.random.default_rng(1).integers(0, 7, 30):
        chain.flips.toggle(int(j))
    assert_right(chain)
    for j in list(chain.flips.active):
        chain.flips.toggle(j)
    assert_right(chain)


def test_updates_of_the_rows_matrix_are_those_from_scratch(form):
    chain = Chain(make_sets(n=6, m=9), np.random.default_rng(0))
    chain.start(np.arange(6), 12)
    assert chain.sets.by_rows(6)
    for j in np.random.default_rng(1).integers(0, 9, 20):
        chain.flips.toggle(int(j))
    assert_right(chain)


def test_evidence_of_a_set_is_that_of_dense_matrices(sets):
    for active in ([], [0, 3], [1, 2, 4, 5]):
        found = sets.log_evidence(sets.spectrum(np.array(active, dtype=np.intp)), len(active))
        close(found, [log_joint(sets, active, slab) for slab in range(len(sets.prior.slabs))])


def enumerated(sets):
    """Inclusion probabilities, mean and mean square of the weights over all sets and all c."""
    m = sets.problem.n_columns
    log_p, inside, first, second = [], [], [], []
    for active in joined.from_iterable(combinations(range(m), k) for k in range(m + 1)):
        for slab, c in enumerate(sets.prior.slabs):
            rest, _, mean, covariance = moments(sets, active, c)
            log_p.append(log_joint(sets, active, slab))
            inside.append(np.isin(np.arange(m), active))
            weights, squares = np.zeros((2, m, T))
            weights[list(active)] = mean
            squares[list(active)] = mean**2 + np.diag(covariance)[:, None] * noise_of(sets, rest)
            first.append(weights)
            second.append(squares)
    p = np.exp(np.array(log_p) - np.max(log_p))
    return (np.tensordot(p / p.sum(), np.array(each), axes=1) for each in (inside, first, second))


@pytest.mark.parametrize("case", CASES)
def test_averages_are_those_of_all_sets(monkeypatch, case):
    monkeypatch.setattr(averaging, "AGREEMENT", 0.0)  # so that they use all flips
    sets = make_sets(m=6, **CASES[case])
    probability, mean, second = enumerated(sets)
    starts = first_sets(np.array([0]), np.ones(6), sets.log_prior, 6, 3)
    found = average(partial(run, sets), starts, Schedule(200, 8000, 8000), seed=0, draw=sets.draw)
    # Three chains of 8,000 flips: the standard error is about 0.01.
    assert_allclose(found.probability, probability, atol=0.03)
    assert_allclose(found.mean, mean, atol=0.03)
    assert_allclose(found.std, np.sqrt(second - mean**2), atol=0.03)
    share = np.array([draw.share for draw in found.draws]) / sum(draw.share for draw in found.draws)
    drawn = np.zeros((len(share), 6, T))
    for weights, draw in zip(drawn, found.draws, strict=True):
        weights[draw.active] = draw.weights
        assert draw.noise.shape == draw.level.shape == (T,)
        assert (np.ptp(draw.noise) == 0) == (sets.shares_noise or not sets.learns_noise)
    # 1,000 draws, of weights with standard deviations of about 0.3.
    assert_allclose(np.tensordot(share, drawn, axes=1), mean, atol=0.05)


def test_one_output_is_the_usual_average():
    sets = make_sets(n_outputs=1)
    problem, prior = sets.problem, sets.prior
    usual = Sets(problem_of_one(problem), np.zeros(7), prior)
    found, expected = (after_flips(each).flips for each in (sets, usual))
    close(found.log_in, expected.log_in)
    close(found.rest, [expected.rest])


def problem_of_one(problem):
    """An output alone, as a problem of one target."""
    return LeastSquares(
        design=problem.design, t=problem.t[:, 0], n_weighted=problem.n_weighted, flat_intercept=problem.flat_intercept
    )


@pytest.mark.skipif(not compiled.COMPILED, reason="the compiled module is not there, or switched off")
@pytest.mark.parametrize("shares_noise", [False, True])
def test_both_forms_make_the_same_choices(monkeypatch, shares_noise):
    sets, numbers = make_sets(shares_noise=shares_noise), np.random.default_rng(5).random((2, 100))
    sums = []
    for is_compiled in (True, False):
        monkeypatch.setattr(compiled, "COMPILED", is_compiled)
        chain = Chain(sets, np.random.default_rng(0))
        chain.start(np.array([0, 1]), 12)
        chain.flips.run(*numbers)
        sums.append(chain.flips.sums)
    for ours, theirs in zip(*sums, strict=True):
        close(ours, theirs)


def test_each_output_gets_its_part():
    sets = make_sets()
    odds = Odds.of(None, 1.0, np.ones(7, dtype=bool))
    outputs = average_outputs(sets.problem, odds, np.array([0]), Chains(2, 400, 0), shares_noise=False)
    assert len(outputs) == T
    for each in outputs[1:]:
        assert_array_equal(each.probability, outputs[0].probability)
        assert [draw.active.tolist() for draw in each.draws] == [draw.active.tolist() for draw in outputs[0].draws]
    assert outputs[0].mean.shape == (7,)
    assert len({each.rest for each in outputs}) == T
    shared = average_outputs(sets.problem, odds, np.array([0]), Chains(2, 400, 0), shares_noise=True)
    assert len({each.rest for each in shared}) == 1
