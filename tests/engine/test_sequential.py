"""The search: rank-one updates against brute force, promises against what came of them."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sparsebayes.engine.sequential import (
    Candidates,
    Limits,
    ascend,
    certificate,
    empty,
    from_nothing,
    go,
    priced_evidence,
    search,
    way_from,
)

from sparsebayes.engine import compiled, sequential
from sparsebayes.engine.loop import Trace
from sparsebayes.engine.problem import BEGIN_NOISE, Solution

HYPER = {"none": {}, "noise": {"c": 2.0, "rate": 0.2}, "all": {"a": 0.4, "b": 0.2, "c": 0.5, "rate": 0.1}}
"""Hyper-priors: on nothing, on the noise, on everything."""
SETTLED = [
    (shape, charged, hyper)
    for shape in ((40, 8), (14, 25))
    for charged in (False, True)
    for hyper in HYPER
    if shape == (40, 8) or charged or hyper != "none"
]
"""Without price or hyper-prior a wide model takes up all rows, and the noise falls to its floor in very small steps."""


@pytest.fixture(params=HYPER)
def hyper(request):
    return HYPER[request.param]


def choose(form, monkeypatch):
    """The form that the search shall have."""
    if form == "NumPy":
        monkeypatch.setattr(compiled, "Search", None)
    elif compiled.Search is None:
        pytest.skip("the compiled module is not there, or switched off")


@pytest.fixture
def wander(rng):
    """A model after a random walk of additions, re-estimations, deletions and changes of the noise."""

    def walk(problem, n_moves=60):
        state = Candidates(problem, empty(0.3))
        actions = set()
        for k in range(n_moves):
            j = int(rng.choice(state.active) if state.active and k % 2 else rng.integers(problem.n_columns))
            inside = np.isfinite(state.alpha[j])
            # no more columns than half the rows: beyond that S of the rest is a difference of nearly equal numbers
            leave = inside and (rng.random() < 0.4 or len(state.active) > len(problem.t) // 2)
            if inside or len(state.active) <= len(problem.t) // 2:
                actions.add(state.move(j, np.inf if leave else float(np.exp(2 * rng.standard_normal()))))
            if k % 25 == 24:
                state.noise = float(rng.uniform(0.1, 0.6))
                state.refresh()
        assert actions == {"add", "re-estimate", "delete"}
        assert len(state.active) > 2
        return state

    return walk


def close(found, expected, rel):
    """Relative to the largest entry: single entries may be differences."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=rel * np.abs(expected).max())


@pytest.mark.parametrize("intercept", [True, False])
def test_updates_equal_a_computation_from_scratch(shape, intercept, make_problem, wander):
    problem = make_problem(*shape, flat=intercept)
    state = wander(problem)
    fresh = Candidates(problem, state.solution())
    assert state.active == fresh.active
    for name in ("mean", "Sigma", "S", "Q"):
        close(getattr(state, name), getattr(fresh, name), 1e-9)
    for found, expected in zip(state.factors(), fresh.factors(), strict=True):
        close(found, expected, 1e-8)
    assert state.noise_gain == pytest.approx(fresh.noise_gain, rel=1e-7)


def test_state_is_that_of_the_definitions(shape, make_problem, wander, design, objective, evidence):
    problem = make_problem(*shape, **HYPER["all"])
    state = wander(problem)
    state.refresh()
    Phi, t, noise, alpha = design(problem), problem.t, state.noise, state.alpha
    chosen = Phi[:, state.active]
    Sigma = np.linalg.inv(np.diag(alpha[state.active]) + chosen.T @ chosen / noise)
    C = noise * np.eye(len(t)) + (Phi / alpha) @ Phi.T
    close(state.Sigma, Sigma, 1e-10)
    close(state.mean, Sigma @ chosen.T @ t / noise, 1e-10)
    close(state.S, np.einsum("nm,nm->m", Phi, np.linalg.solve(C, Phi)), 1e-10)
    close(state.Q, Phi.T @ np.linalg.solve(C, t), 1e-10)
    assert state.evidence == pytest.approx(evidence(problem, alpha, noise), rel=1e-10)
    assert state.objective == pytest.approx(objective(problem, alpha, noise), rel=1e-10)
    without = [
        noise * np.eye(len(t)) + (Phi / np.where(np.arange(len(alpha)) == j, np.inf, alpha)) @ Phi.T
        for j in range(len(alpha))
    ]
    s = [Phi[:, j] @ np.linalg.solve(cov, Phi[:, j]) for j, cov in enumerate(without)]
    q = [Phi[:, j] @ np.linalg.solve(cov, t) for j, cov in enumerate(without)]
    close(state.factors()[0], np.array(s), 1e-9)
    close(state.factors()[1], np.array(q), 1e-9)


@pytest.mark.parametrize("price", [0.0, 2.0])
def test_moves_bring_what_they_promise(shape, price, make_problem, wander, priced_objective):
    problem = make_problem(*shape, price=price)
    state = wander(problem)
    moves, before = state.moves(), priced_objective(problem, state.alpha, state.noise)
    for j in range(problem.n_columns):
        alpha = state.alpha.copy()
        alpha[j] = moves.alpha[j]
        assert moves.gain[j] == pytest.approx(
            priced_objective(problem, alpha, state.noise) - before, rel=1e-6, abs=1e-8
        )


@pytest.mark.parametrize("factor", [1.0, -3.0])
def test_a_copy_of_what_is_in_the_model_is_barred(factor, make_problem, rng):
    X = rng.standard_normal((30, 4))
    X[:, 3] = factor * X[:, 0] + 5.0  # a copy once both are centred and scaled
    problem = make_problem(30, 4, X=X, y=X[:, 0] + 0.1 * rng.standard_normal(30))
    state = Candidates(problem, Solution(np.array([0]), np.array([1e3]), 0.5))  # α far too large: a copy would help
    assert state.moves().gain[3] == 0
    state.move(0, np.inf)
    assert state.moves().gain[3] > 1
    state.move(3, 1e3)
    assert state.moves().gain[0] == 0
    found, converged = ascend(problem, empty(0.1), trace=Trace(), tol=1e-8, max_iter=500)
    assert converged
    assert len({0, 3} & set(found.active)) == 1


def test_a_constant_column_never_enters(make_problem, rng):
    X = rng.standard_normal((15, 4))
    X[:, 2] = 7.0
    found, converged = ascend(make_problem(15, 4, X=X), empty(0.1), trace=Trace(), tol=1e-8, max_iter=500)
    assert converged
    assert 2 not in found.active


@pytest.mark.parametrize("hold_noise", [True, False])
@pytest.mark.parametrize("price", [0.0, 1.5])
def test_the_trace_tells_the_objective_before_each_step(
    shape, price, hold_noise, hyper, make_problem, objective, everywhere
):
    problem = make_problem(*shape, price=price, **hyper)
    keywords = {"tol": 1e-8, "hold_noise": hold_noise}
    trace = Trace()
    ascend(problem, empty(0.2), trace=trace, max_iter=40, **keywords)
    for n_steps in range(0, len(trace.infos), 3):
        state, _ = ascend(problem, empty(0.2), trace=Trace(), max_iter=n_steps, **keywords)
        expected = objective(problem, everywhere(problem, state.solution()), state.noise)
        assert trace.objective[n_steps] == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("price", [0.0, 1.5])
def test_ascend_never_lowers_the_priced_evidence_while_the_noise_is_held(shape, price, make_problem):
    for seed in range(4):
        problem = make_problem(*shape, seed=seed, price=price)
        trace = Trace()
        _, converged = ascend(problem, empty(0.1), trace=trace, tol=1e-6, max_iter=500, hold_noise=True)
        assert converged
        n_before = np.array([0, *(info.n_active for info in trace.infos[:-1])])
        path = np.array(trace.objective) - [problem.total_price(int(k)) for k in n_before]
        assert len(path) > 3
        assert (np.diff(path) >= -1e-9 * np.abs(path[1:])).all()


def test_additions_can_be_limited(make_problem):
    problem = make_problem(40, 8, n_relevant=6, noise=0.1)
    trace = Trace()
    ascend(problem, empty(0.1), trace=trace, tol=1e-6, max_iter=500, max_additions=2)
    assert sum(info.action == "add" for info in trace.infos) == 2


@pytest.mark.parametrize(("shape", "charged", "hyper"), SETTLED)
def test_what_ascend_calls_converged_has_the_certificate(shape, charged, hyper, make_problem):
    for seed in range(12):
        problem = make_problem(*shape, seed=seed, price=charged * np.log(shape[1]), **HYPER[hyper])
        state, converged = ascend(problem, empty(0.1), trace=Trace(), tol=1e-6, max_iter=3000)
        assert converged
        # rank-one updates against the refreshed state
        assert certificate(state.moves(), state.noise_gain) <= 1e-6 * 1.01


@pytest.mark.parametrize(("shape", "charged", "hyper"), [case for case in SETTLED if case[2] != "all"])
def test_no_single_change_beats_the_certificate(shape, charged, hyper, make_problem, priced_objective):
    problem = make_problem(*shape, price=charged * np.log(shape[1]), **HYPER[hyper])
    state, converged = search(problem, empty(0.1), trace=Trace(), tol=1e-9, max_iter=5000)
    gap = certificate(state.moves(), state.noise_gain)
    assert converged
    assert gap <= 1e-9
    alpha, noise = state.alpha, state.noise
    top = priced_objective(problem, alpha, noise) + gap + 1e-9
    for factor in (*np.exp(np.linspace(-2, 2, 16)), 1.001, 0.999):
        assert priced_objective(problem, alpha, noise * factor) <= top
    for j in range(problem.n_columns):
        inside = np.isfinite(alpha[j])
        others = alpha[j] * np.logspace(-4, 4, 16) if inside else np.logspace(-3, 5, 16)
        for other in (*others, np.inf, *((alpha[j] * 1.001, alpha[j] * 0.999) if inside else ())):
            changed = alpha.copy()
            changed[j] = other
            assert priced_objective(problem, changed, noise) <= top


def test_the_certificate_of_a_poor_model_is_the_best_single_change(make_problem, priced_objective):
    problem = make_problem(40, 8)
    state = Candidates(problem, Solution(np.array([0, 5]), np.array([2.0, 30.0]), 0.3))
    here = priced_objective(problem, state.alpha, state.noise)

    def loss(log_alpha, j):
        changed = state.alpha.copy()
        changed[j] = np.exp(log_alpha)
        return here - priced_objective(problem, changed, state.noise)

    best = max(-minimize_scalar(loss, bounds=(-5, 9), args=(j,), method="bounded").fun for j in range(8))
    assert best > state.noise_gain
    assert certificate(state.moves(), state.noise_gain) == pytest.approx(best, rel=1e-6)


def test_the_certificate_sees_a_noise_that_would_fall_far(make_problem, evidence):
    problem = make_problem(14, 25, seed=2)
    state, _ = ascend(problem, empty(0.1), trace=Trace(), tol=1e-4, max_iter=5000)
    gain = evidence(problem, state.alpha, state.noise / 3) - evidence(problem, state.alpha, state.noise)
    assert gain <= certificate(state.moves(), state.noise_gain) + 1e-9


@pytest.fixture
def team(make_problem, rng):
    """Two features that only pay together: they nearly cancel, and what is left of their difference is the target."""
    n, d = 60, 30
    X = rng.standard_normal((n, d))
    X[:, 1] = X[:, 0] + 0.15 * X[:, 1]
    y = X[:, 0] - X[:, 1] + 0.02 * rng.standard_normal(n)
    return make_problem(n, d, X=X, y=y, price=np.log(d))


def test_search_finds_what_single_actions_cannot(team, priced_objective):
    keywords = {"tol": 1e-6, "max_iter": 3000}
    stuck, converged = ascend(team, empty(0.9), trace=Trace(), **keywords)
    assert converged
    assert not {0, 1} <= set(stuck.active)
    found, converged = search(team, empty(0.9), trace=Trace(), **keywords)
    assert converged
    assert {0, 1} <= set(found.active)
    gained = priced_objective(team, found.alpha, found.noise) - priced_objective(team, stuck.alpha, stuck.noise)
    assert gained > 10


def test_search_is_never_worse_than_ascend(shape, make_problem, priced_objective):
    for seed in range(6):
        problem = make_problem(*shape, seed=seed, price=np.log(shape[1]), noise=2.0)
        single, _ = ascend(problem, empty(0.1), trace=Trace(), tol=1e-6, max_iter=3000)
        found, converged = search(problem, empty(0.1), trace=Trace(), tol=1e-6, max_iter=3000)
        assert converged
        assert (
            priced_objective(problem, found.alpha, found.noise)
            >= priced_objective(problem, single.alpha, single.noise) - 1e-9
        )


def test_without_a_price_there_is_no_excursion(make_problem):
    problem = make_problem(40, 8)
    alone, both = Trace(), Trace()
    from_nothing(problem, trace=alone, tol=1e-6, max_iter=3000, callback=None)
    search(problem, empty(0.1), trace=both, tol=1e-6, max_iter=3000)
    assert alone.infos == both.infos


@pytest.mark.parametrize("keywords", [{"price": 1.0}, {"a": 0.1, "b": 0.1}])
def test_with_a_price_or_a_prior_the_noise_is_free_from_the_first_step(keywords, make_problem):
    problem = make_problem(40, 8, **keywords)
    alone, both = Trace(), Trace()
    ascend(problem, empty(0.1), trace=alone, tol=1e-6, max_iter=3000)
    search(problem, empty(0.1), trace=both, tol=1e-6, max_iter=3000)
    assert alone.infos == both.infos[: len(alone.infos)]


def test_the_noise_is_held_low_in_the_beginning_and_few_columns_enter(make_problem, monkeypatch):
    problem = make_problem(40, 30)
    limits, go = [], sequential.go

    def told(ascent, limit, **keywords):
        limits.append((limit, ascent.end().solution()))
        return go(ascent, limit, **keywords)

    monkeypatch.setattr(sequential, "go", told)
    trace = Trace()
    _, arrived = from_nothing(problem, trace=trace, tol=1e-6, max_iter=3000, callback=None)
    assert arrived
    (low, nothing), (free, begun) = limits
    assert not len(nothing.active)
    assert begun.noise == nothing.noise == BEGIN_NOISE
    assert len(begun.active) == low.max_additions == problem.n // 4
    assert free == Limits(1e-6)


def test_a_search_that_is_cut_short_in_the_beginning_lets_the_noise_go(make_problem):
    problem = make_problem(40, 30)
    found, converged = search(problem, empty(0.1), trace=(trace := Trace()), tol=1e-6, max_iter=3)
    assert not converged
    assert len(trace.infos) == 3
    assert found.noise > 2 * BEGIN_NOISE
    again = Candidates(problem, found.solution())
    assert found.evidence == pytest.approx(again.evidence)


@pytest.mark.parametrize("form", ["NumPy", "compiled"])
def test_what_enters_has_its_share_outside_the_model(form, make_problem, monkeypatch):
    """In a wide kernel the share of a column that the model does not reach soon falls below any bound."""
    choose(form, monkeypatch)
    x = np.linspace(-1, 1, 50)
    y = np.sin(4 * x) + 0.1 * np.random.default_rng(0).standard_normal(50)
    problem = make_problem(50, 50, X=np.exp(-((x[:, None] - x) ** 2)), y=y)

    def up(fresh):
        ascent = way_from(problem, empty(1e-3))
        assert go(ascent, Limits(1e-2, hold_noise=True, fresh=fresh), trace=Trace(), max_iter=100, callback=None)
        return ascent.end()

    for fresh in (0.1, 0.01):
        found = up(fresh)
        share = found.S * found.noise / problem.column_energy
        outside = np.isinf(found.alpha)
        assert (share[outside] < fresh).all()  # all that would gain still are those that may not
        assert found.moves().gain[outside].max() > 1e-2
    freely, _ = ascend(problem, empty(1e-3), trace=Trace(), tol=1e-2, max_iter=100, hold_noise=True)
    assert freely.evidence > found.evidence


def test_copies_in_the_start_become_one_without_a_change_of_the_model(make_problem, rng, evidence):
    X = rng.standard_normal((30, 5))
    X[:, 3], X[:, 4] = -2 * X[:, 0], X[:, 0] + 1
    problem = make_problem(30, 5, X=X, y=X[:, 0] + 0.1 * rng.standard_normal(30))
    alpha = np.array([2.0, 3.0, np.inf, 5.0, 7.0])
    start = Solution(np.array([0, 1, 3, 4]), alpha[[0, 1, 3, 4]], 0.5)
    state = Candidates(problem, start)
    assert state.active == [0, 1]
    assert 1 / state.alpha[0] == pytest.approx(1 / 2 + 1 / 5 + 1 / 7)
    assert state.evidence == pytest.approx(evidence(problem, alpha, 0.5), rel=1e-10)


def test_a_feature_that_pays_only_at_the_noise_it_brought_leaves_again(make_problem):
    """Pure noise: from the luckiest feature single actions lead nowhere, the search goes on to the empty model."""
    for seed in (15, 23, 38):
        rng = np.random.default_rng([seed, 20, 400])
        X, y = rng.standard_normal((20, 400)), rng.standard_normal(20)
        problem = make_problem(20, 400, X=X, y=y - y.mean(), price=np.log(400))
        lucky = int(np.argmax(np.abs(problem.projection)))
        start = Solution(np.array([lucky]), np.array([1.0]), 0.4)
        stuck, _ = ascend(problem, start, trace=Trace(), tol=1e-6, max_iter=500)
        found, converged = search(problem, start, trace=Trace(), tol=1e-6, max_iter=500)
        assert converged
        assert stuck.active == [lucky]
        assert found.active == []
        assert priced_evidence(found) > priced_evidence(stuck) + 0.01


def test_a_price_keeps_the_model_from_reproducing_the_target(make_problem):
    """With as many features as rows the total price passes any evidence that the noise floor allows."""
    problem = make_problem(12, 40, price=np.log(40))
    floor = problem.fit(1e-8 * problem.energy, 1e-8) - problem.fit(problem.energy, 1.0)
    assert problem.total_price(1) == pytest.approx(np.log(40) * 11 / 10)
    assert problem.total_price(10) > floor
    assert (np.diff([problem.total_price(k) for k in range(11)], 2) > 0).all()


@pytest.mark.parametrize("form", ["NumPy", "compiled"])
def test_columns_that_only_pay_together_enter_from_nothing(form, make_problem, monkeypatch):
    """In a wide kernel no single column explains a sinc. Were the rest called noise at once, the others would stay out.

    Then the noise ended at a third of the target's variance on five of these eight draws; in truth it is a tenth.
    """
    choose(form, monkeypatch)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-10, 10, 100)
        y = np.sinc(x / np.pi) + 0.1 * rng.standard_normal(100)
        problem = make_problem(100, 100, X=np.exp(-0.03 * (x[:, None] - x) ** 2), y=y)
        found, converged = search(problem, empty(0.1), trace=Trace(), tol=1e-3, max_iter=3000)
        assert converged
        assert 0.05 < found.noise < 0.15
