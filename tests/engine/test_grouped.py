"""A prior of groups as one class: columns that share one precision enter and leave as a whole."""

from dataclasses import replace

import numpy as np
import pytest

from sparsebayes.core.groups import Grouped
from sparsebayes.core.priors import ARD
from sparsebayes.engine.ascent import Ascent, Limits, Snapshot
from sparsebayes.engine.least_squares import Solution, empty
from sparsebayes.engine.loop import Trace
from sparsebayes.engine.state import State

GROUPS = np.repeat(np.arange(6), [3, 2, 4, 1, 3, 2])[np.random.default_rng(0).permutation(15)]
"""Six groups, of which the columns stand in no order."""


@pytest.fixture
def grouped(make_problem):
    """Two groups matter: one as a whole, one by half of its columns."""

    def make(price=3.0, n=60, groups=GROUPS, noise=0.7):
        rng = np.random.default_rng(11)
        X = rng.standard_normal((n, len(groups)))
        first, second = np.flatnonzero(groups == 0), np.flatnonzero(groups == 2)[:2]
        y = X[:, first] @ np.linspace(0.6, 1.0, len(first)) - 0.8 * X[:, second].sum(axis=1)
        return make_problem(
            n, len(groups), X=X, y=y + noise * rng.standard_normal(n), price=price, prior=Grouped(labels=groups)
        )

    return make


@pytest.fixture
def group_objective(evidence):
    """Evidence less a price per group, times n/(n - k) with k groups."""

    def of(problem, alpha, noise):
        k = len(set(problem.prior.labels[np.isfinite(alpha)]))
        return evidence(problem, alpha, noise) - problem.price.nats * k * problem.n / (problem.n - k)

    return of


def whole(problem, chosen, alpha, noise):
    """A model that keeps some groups."""
    active = np.flatnonzero(np.isin(problem.prior.labels, chosen))
    by_group = dict(zip(chosen, alpha, strict=True))
    return Solution(active, np.array([by_group[g] for g in problem.prior.labels[active]]), noise)


def test_gains_of_groups_are_differences_of_the_priced_evidence(grouped, group_objective):
    problem = grouped()
    snapshot = Ascent(problem, whole(problem, [0, 3, 4], [0.7, 5.0, 30.0], 0.4)).snapshot()
    moves, here = snapshot.best_moves, group_objective(problem, snapshot.alpha, 0.4)
    kinds = set()
    for group in range(6):
        unit = np.flatnonzero(group == GROUPS)
        assert np.ptp(moves.gain[unit]) == 0
        changed = snapshot.alpha.copy()
        changed[unit] = moves.alpha[unit]
        kinds.add((bool(np.isfinite(snapshot.alpha[unit[0]])), bool(np.isfinite(changed[unit[0]]))))
        assert moves.gain[unit[0]] == pytest.approx(group_objective(problem, changed, 0.4) - here, rel=1e-7, abs=1e-9)
        for other in np.logspace(-3, 4, 15):
            changed[unit] = other
            assert group_objective(problem, changed, 0.4) - here <= moves.gain[unit[0]] + 1e-8
    assert kinds == {(True, True), (True, False), (False, True), (False, False)}


def test_a_group_moves_as_a_whole(grouped, evidence):
    problem = grouped()
    state = State(problem, empty(0.4))
    sizes = np.bincount(GROUPS)
    for j, alpha, action in ((0, 2.0, "add"), (5, 0.5, "add"), (0, 7.0, "re-estimate"), (5, np.inf, "delete")):
        before, size = len(state.active), sizes[GROUPS[j]]
        assert state.move(j, alpha) == action
        assert len(state.active) - before == {"add": size, "re-estimate": 0, "delete": -size}[action]
        assert (state.alpha[GROUPS[j] == GROUPS] == alpha).all()
        assert state.objective == pytest.approx(evidence(problem, state.alpha, 0.4), rel=1e-10)
    assert GROUPS[0] != GROUPS[5]
    assert state.n_units == 1


@pytest.mark.parametrize("start", ["nothing", "the wrong groups"])
def test_the_ascent_keeps_the_groups_that_pay(start, grouped, group_objective):
    problem, trace = grouped(), Trace()
    begin = empty(0.3) if start == "nothing" else whole(problem, [1, 2, 5], [1.0, 1.0, 1.0], 0.3)
    ascent = Ascent(problem, begin)
    assert ascent.run(Limits(1e-7), trace, 500)
    found = ascent.snapshot()
    inside = np.isfinite(found.alpha)
    assert set(GROUPS[inside]) == {0, 2}
    assert inside.sum() == np.isin(GROUPS, [0, 2]).sum()
    assert {info.action for info in trace.infos} >= ({"add"} if start == "nothing" else {"add", "delete"})
    assert max(found.best_moves.gain.max(), problem.noise_left(found)) <= 1.01e-7
    assert found.priced_evidence == pytest.approx(group_objective(problem, found.alpha, found.noise), rel=1e-10)
    for group in range(6):
        unit = group == GROUPS
        assert len(set(found.alpha[unit])) == 1
        for other in (*np.logspace(-3, 4, 29), np.inf):
            changed = np.where(unit, other, found.alpha)
            assert group_objective(problem, changed, found.noise) <= found.priced_evidence + 1e-6


@pytest.mark.usefixtures("small_working_set")
def test_a_group_that_the_working_set_holds_in_part_enters_as_a_whole(grouped, evidence):
    problem = grouped()
    ascent = Ascent(problem, empty(0.3))
    assert ascent.run(Limits(1e-7), Trace(), 500)
    found = ascent.snapshot()
    assert set(GROUPS[found.active]) == {0, 2}
    assert found.evidence == pytest.approx(evidence(problem, found.alpha, found.noise), rel=1e-10)


def test_prices_count_groups(grouped):
    problem = grouped(price=2.0)
    assert problem.total_price(np.flatnonzero(np.isin(GROUPS, [0, 2]))) == pytest.approx(4.0 * 59 / 57)
    ascent = Ascent(problem, whole(problem, [0, 1, 2, 4, 5], np.ones(5), 0.4))
    ascent.run(Limits(1e-7), Trace(), 0)
    assert ascent.state.best(True, 0.0, ascent._price(ascent.state.n_units))[1] == pytest.approx(
        ascent.snapshot().best_moves.gain.max(), rel=1e-9
    )
    dear = Ascent(grouped(price=200.0), empty(0.3))
    assert dear.run(Limits(1e-7), Trace(), 500)
    assert dear.state.n_active == 0


def test_groups_of_one_column_are_ard(grouped):
    one = grouped(groups=np.arange(15))
    plain = replace(one, prior=ARD())
    ends = []
    for problem in (one, plain):
        ascent = Ascent(problem, empty(0.3))
        assert ascent.run(Limits(1e-9), Trace(), 500)
        ends.append(Snapshot.of(ascent.state, ascent._price(ascent.state.n_units)))
    assert sorted(ends[0].active) == sorted(ends[1].active)
    assert ends[0].evidence == pytest.approx(ends[1].evidence, abs=1e-8)
