"""Several chains: their averages against enumeration, their agreement, and what they do not depend on."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from enumeration import ALWAYS, NEVER, enumerated, make_sets
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from sparsebayes.engine import averaging, chain
from sparsebayes.engine.averaging import N_DRAWS, Schedule, average, drawn, first_sets, prepared, summary, visits_of
from sparsebayes.engine.chain import Stretch
from sparsebayes.engine.flips import Sums
from sparsebayes.engine.sets import Draw, Visit


def averaged(sets, *, n_chains=4, most=1500, seed=0, round=500, **others):
    sets = prepared(sets)
    starts = first_sets(np.array([0]), sets.problem.projection, sets.log_prior, sets.problem.design.n_rows, n_chains)
    schedule = Schedule(200, round, most)
    return average(partial(chain.run, sets), starts, schedule, seed=seed, draw=sets.draw, **others)


def numbers(found):
    """All that was found, as one vector."""
    parts = [found.probability, found.mean, found.std, found.sizes, [found.rest, found.error, found.effective_size]]
    draws = [np.concatenate([each.active, each.weights, [each.noise, each.level, each.share]]) for each in found.draws]
    return np.concatenate([*parts, *draws])


@pytest.mark.parametrize("n", [12, 6], ids=["tall", "wide"])
@pytest.mark.frequencies
def test_averages_are_those_of_the_enumeration(monkeypatch, n):
    """0.03: six times the standard error that the chains report."""
    monkeypatch.setattr(averaging, "AGREEMENT", 0.0)  # so that they use all flips
    sets = make_sets(n)
    found, exact = averaged(sets, n_chains=8, most=6000, round=3000), enumerated(sets)
    assert found.n_flips == 6000
    assert found.error < 0.01
    assert_allclose(found.probability, exact.probability, atol=0.03)
    assert_allclose(found.mean, exact.mean, atol=0.03)
    assert_allclose(found.std, np.sqrt(exact.second - exact.mean**2), atol=0.03)
    assert_allclose(found.sizes, exact.sizes, atol=0.03)
    assert_allclose(found.rest, exact.rest, rtol=0.03)


def test_same_seed_same_bits_whatever_the_workers():
    sets = make_sets(20, 30)
    base = numbers(averaged(sets))
    assert_array_equal(base, numbers(averaged(make_sets(20, 30))))
    assert_array_equal(base, numbers(averaged(sets, n_jobs=2)))
    with threadpool_limits(4):
        assert_array_equal(base, numbers(averaged(sets)))
    assert (averaged(sets, seed=1).probability != averaged(sets).probability).all()


@pytest.mark.parametrize("n", [12, 6], ids=["tall", "wide"])
@pytest.mark.frequencies
def test_columns_that_are_tried_more_often_are_not_more_probable(monkeypatch, n):
    monkeypatch.setattr(averaging, "AGREEMENT", 0.0)
    sets = replace(make_sets(n), likely=np.array([0, 3]))
    assert sets.tried.max() > 30 * sets.tried.min()
    found, exact = averaged(sets, n_chains=8, most=6000, round=3000), enumerated(sets)
    assert found.error < 0.01
    assert_allclose(found.probability, exact.probability, atol=0.03)
    assert_allclose(found.mean, exact.mean, atol=0.03)


def test_columns_of_the_gram_matrix_may_be_computed_one_by_one(monkeypatch):
    monkeypatch.setattr("sparsebayes.engine.sets.FAR", 1.0)  # all columns are tried alike
    whole = averaged(make_sets(20, 30))
    monkeypatch.setattr(averaging, "GRAM_FLOPS", 0.0)
    monkeypatch.setattr(averaging, "GRAM_AHEAD", 4)
    sets = make_sets(20, 30)
    parts = averaged(sets)
    assert sets.problem.design.known_gram is None
    assert_allclose(parts.probability, whole.probability, rtol=1e-6)
    assert_array_equal(numbers(parts), numbers(averaged(sets)))  # though all columns are known by now


def test_chains_stop_when_they_agree_and_go_on_until_then(monkeypatch):
    sets = make_sets(40, 6)
    found = averaged(sets, most=5000)
    assert found.n_flips == 120  # the settled part of 200
    assert found.error <= averaging.AGREEMENT * np.sqrt(120 / 500)
    assert averaged(sets, most=5000, n_chains=1).n_flips == 500  # one chain has nothing to agree with
    monkeypatch.setattr(averaging, "AGREEMENT", 0.0)
    found = averaged(sets, most=1200)
    assert found.n_flips == 1200
    assert not found.agrees


@pytest.mark.parametrize("most", [1, 20, 130])
def test_few_flips_are_enough_for_an_answer(most):
    found = averaged(make_sets(), most=most)
    assert found.n_flips == most
    assert np.isfinite(numbers(found)).all()


def test_callback_is_told_of_every_round_and_may_stop(monkeypatch):
    monkeypatch.setattr(averaging, "AGREEMENT", 0.0)
    told = []

    def listen(n_steps, info):
        told.append((n_steps, info.change, info.n_active, info.action))
        return n_steps == 2

    found = averaged(make_sets(), most=5000, callback=listen)
    assert found.n_flips == 167  # a third of the first round, after the look at the settled part
    assert [each[0] for each in told] == [1, 2]
    assert told[-1][1] == found.error
    assert {each[3] for each in told} == {"average"}


def test_starts_are_far_apart():
    log_prior = np.array([0, 0, NEVER, ALWAYS, 0, 0, 0, 0.0])
    score = np.array([1, -9, 50, 0, 3, 8, 2, -7.0])
    starts = first_sets(np.array([0, 2]), score, log_prior, 100, 4)
    assert [each.tolist() for each in starts] == [[0, 3], [3], [0, 3], [1, 3, 5, 7]]
    assert [each.tolist() for each in first_sets(np.array([0]), score, log_prior, 4, 4)][-1] == [1, 3, 5]
    assert [each.tolist() for each in first_sets(np.array([0]), score, log_prior, 2, 4)][-1] == [1, 3]


def made_up(total, included, share):
    """A stretch with a block of two visits to one column."""
    one = np.array([1.0])
    sums = Sums(total * included * one, total * 2 * one, total * 5 * one, np.array([0.0, total]), 3.0 * total, total)
    return Stretch(sums, [[Visit(np.array([0]), 1.0, 0.75 * share), Visit(np.array([0]), 2.0, 0.25 * share)]])


def test_chains_have_the_same_say_and_states_count_by_weight():
    """Two stretches of weight 1 and 3, against a chain of weight 1000."""
    heavy, first, second = made_up(1000.0, 0.9, 500.0), made_up(1.0, 0.1, 1.0), made_up(3.0, 0.5, 3.0)
    chains = [[heavy], [first, second]]
    found = summary(chains, 10)
    assert_allclose(found.probability, [(0.9 + (0.1 + 3 * 0.5) / 4) / 2])
    assert_allclose(found.mean, [2.0])
    assert_allclose(found.std, [1.0])
    assert_allclose(found.rest, 3.0)
    assert_allclose(found.sizes, [0.0, 1.0])
    shares = [visit.share for visit in visits_of(chains)]
    assert_allclose(shares, np.outer([1.0, 0.25, 0.75], [0.75, 0.25]).ravel())
    assert_allclose(found.error, 0.5 * (0.9 - 0.4))  # two values: their standard error is half of their distance
    assert_allclose(found.effective_size, 4 / (1 + 0.25**2 + 0.75**2))


def test_a_problem_without_columns_that_may_move():
    sets = make_sets(20, 5, log_prior=[NEVER] * 5)
    found = averaged(sets)
    assert_allclose(found.probability, 0.0, atol=1e-200)
    assert_allclose(found.sizes, [1, 0, 0, 0, 0, 0])
    assert_allclose(found.rest, sets.energy)
    told = averaged(replace(sets, log_prior=np.full(5, ALWAYS)))
    assert_allclose(told.probability, 1.0)


# --- Draws ---


def counted(active, c, rng, n):
    """Draws that tell which set and c they are of."""
    return [Draw(active, np.full(len(active), c), 1.0, 0.0, 1.0)] * n


@pytest.mark.parametrize("seed", range(5))
def test_a_set_gets_as_many_draws_as_its_share_asks_for(seed):
    one, two = np.array([3]), np.array([1, 4])
    visits = [
        Visit(one, 0.5, 0.5),
        Visit(two, 0.5, 1.0),
        Visit(one, 2.0, 2.0),
        Visit(two, 0.5, 0.25),
        Visit(one, 0.5, 0.25),
    ]
    draws = drawn(visits, counted, np.random.default_rng(seed), N_DRAWS)
    assert len(draws) in (N_DRAWS - 1, N_DRAWS)
    assert {each.share for each in draws} == {1.0}
    for active, c, share in ((one, 0.5, 0.75), (two, 0.5, 1.25), (one, 2.0, 2.0)):
        n = sum(each.active.tolist() == active.tolist() and each.weights[0] == c for each in draws)
        assert abs(n - N_DRAWS * share / 4) <= 2  # one for each visit


def test_a_rare_set_gets_a_draw_as_often_as_it_should():
    visits = [Visit(np.array([0]), 1.0, 1.0), Visit(np.array([1]), 1.0, 0.3 / N_DRAWS)]
    seen = [
        any(each.active == [1] for each in drawn(visits, counted, np.random.default_rng(k), N_DRAWS))
        for k in range(400)
    ]
    assert 0.2 < np.mean(seen) < 0.4  # 0.3, with a standard error of 0.023


def test_what_chains_have_drawn_is_kept_and_thinned_where_it_is_much():
    made = [Draw(np.array([0]), np.array([float(k)]), 1.0, 0.0, 1 / 3) for k in range(2 * N_DRAWS)]
    few = drawn(made[:7], None, np.random.default_rng(0), N_DRAWS)
    assert few == made[:7]
    kept = [each.weights[0] for each in drawn(made, None, np.random.default_rng(0), N_DRAWS)]
    assert_array_equal(np.diff(kept), 2.0)
    assert len(kept) in (N_DRAWS - 1, N_DRAWS)
