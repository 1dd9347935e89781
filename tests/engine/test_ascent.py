"""The ascent: it never goes down, says truly where it is, and stops where no single move gains more than `tol`."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from sparsebayes.core.prices import Marginal
from sparsebayes.core.priors import ARD, Laplace
from sparsebayes.engine import ascent as ascent_module
from sparsebayes.engine import compiled
from sparsebayes.engine import scales as scales_module
from sparsebayes.engine import state as state_module
from sparsebayes.engine.ascent import Ascent, Limits
from sparsebayes.engine.least_squares import NOISE_FLOOR, Solution, empty
from sparsebayes.engine.loop import Trace
from sparsebayes.engine.scales import newton_step
from sparsebayes.engine.state import State, state_of

HYPER = {
    "none": {},
    "noise": {"c": 2.0, "d": 0.2},
    "all": {"prior": ARD(0.4, 0.2), "c": 0.5, "d": 0.1},
    "Laplace": {"prior": Laplace(rate=5.0), "d": 0.1},
}
"""Hyper-priors: on nothing, on the noise, on everything; and a Laplace prior."""
SETTLED = [
    (shape, charged, hyper)
    for shape in ((40, 8), (14, 25))
    for charged in (False, True)
    for hyper in HYPER
    if shape == (40, 8) or charged or hyper != "none"
]
"""Without price or hyper-prior a wide model takes up all rows, and the noise falls to its floor in very small steps."""


def ascend(problem, start, tol, trace=None, max_iter=3000, callback=None, **limits):
    """Where an ascent ends, and whether it converged."""
    ascent = Ascent(problem, start)
    converged = ascent.run(Limits(tol, **limits), Trace() if trace is None else trace, max_iter, callback)
    return ascent.snapshot(), converged


def gap(snapshot, hold_noise=False):
    """Nats that a single move, or the noise, would still bring."""
    return max(snapshot.best_moves.gain.max(), 0.0 if hold_noise else snapshot.problem.noise_left(snapshot))


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("hold_noise", [True, False])
@pytest.mark.parametrize("hyper", HYPER)
def test_the_trace_tells_the_objective_before_each_step(shape, hold_noise, hyper, make_problem, objective):
    problem = make_problem(*shape, price=1.5 * (hyper == "noise"), **HYPER[hyper])
    trace = Trace()
    ascend(problem, empty(0.2), 1e-8, trace, max_iter=40, hold_noise=hold_noise)
    for n_steps in range(0, len(trace.infos), 5):
        found, _ = ascend(problem, empty(0.2), 1e-8, max_iter=n_steps, hold_noise=hold_noise)
        assert trace.objective[n_steps] == pytest.approx(objective(problem, found.alpha, found.noise), rel=1e-8)


@pytest.mark.parametrize("price", [0.0, 1.5])
def test_priced_evidence_never_falls_while_the_noise_is_held(shape, price, make_problem):
    for seed in range(4):
        problem = make_problem(*shape, seed=seed, price=price)
        trace = Trace()
        found, converged = ascend(problem, empty(0.1), 1e-6, trace, hold_noise=True)
        assert converged
        assert found.noise == 0.1
        n_before = [0, *(info.n_active for info in trace.infos[:-1])]
        path = np.array(trace.objective) - [problem.total_price(list(range(k))) for k in n_before]
        assert len(path) > 3
        assert (np.diff(path) >= -1e-9 * np.abs(path[1:])).all()


@pytest.mark.parametrize("hyper", ["none", "Laplace"])
def test_the_objective_never_falls_once_the_noise_follows_every_action(hyper, kernel_problem):
    """Before, σ² is re-estimated by MacKay's rule, which is no ascent."""
    trace = Trace()
    found, converged = ascend(kernel_problem(**HYPER[hyper]), empty(0.1), 1e-6, trace)
    assert converged
    assert gap(found) <= 1.01e-6
    path = np.array(trace.objective[ascent_module.EARLY_ACTIONS + 1 :])
    assert len(path) > ascent_module.JOINT_EVERY
    assert (np.diff(path) > -1e-9 * np.abs(path[1:])).all()


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize(("shape", "charged", "hyper"), SETTLED)
def test_what_is_called_converged_gains_nothing_by_a_single_move(shape, charged, hyper, make_problem):
    for seed in range(5):
        problem = make_problem(*shape, seed=seed, price=charged * np.log(shape[1]), **HYPER[hyper])
        found, converged = ascend(problem, empty(0.1), 1e-6)
        assert converged
        assert gap(found) <= 1.01e-6  # the last of the rank-one updates against the refreshed state


@pytest.mark.usefixtures("form", "small_working_set")
@pytest.mark.parametrize("price", [0.0, 1.0])
def test_no_candidate_outside_the_working_set_is_forgotten(price, kernel_problem):
    """Sixty neighbouring columns, of which four are kept current."""
    problem = kernel_problem(price=price)
    found, converged = ascend(problem, empty(0.1), 1e-6)
    assert converged
    assert len(found.active) > 2
    state = State(problem, found.solution)
    again = Ascent(problem, found.solution).snapshot()
    assert gap(again) <= 1.01e-6
    assert found.objective == pytest.approx(state.objective, rel=1e-10)


@pytest.mark.usefixtures("form")
def test_additions_can_be_limited(make_problem):
    problem = make_problem(40, 8, n_relevant=6, noise=0.1)
    trace = Trace()
    ascend(problem, empty(0.1), 1e-6, trace, max_additions=2)
    assert sum(info.action == "add" for info in trace.infos) == 2


@pytest.mark.usefixtures("form")
def test_what_enters_has_its_share_outside_the_model(make_problem):
    """In a wide kernel the share of a column that the model does not reach soon falls below any bound."""
    x = np.linspace(-1, 1, 50)
    y = np.sin(4 * x) + 0.1 * np.random.default_rng(0).standard_normal(50)
    problem = make_problem(50, 50, X=np.exp(-((x[:, None] - x) ** 2)), y=y)
    limits = {"tol": 1e-2, "hold_noise": True}
    for novelty in (0.1, 0.01):
        found, converged = ascend(problem, empty(1e-3), min_novelty=novelty, **limits)
        assert converged
        outside = np.isinf(found.alpha)
        assert (found.S * found.noise / problem.column_energy)[outside].max() < novelty
        assert found.best_moves.gain[outside].max() > 1e-2  # all that would gain still are those that may not
    freely, _ = ascend(problem, empty(1e-3), **limits)
    assert freely.evidence > found.evidence


@pytest.mark.usefixtures("form")
def test_of_copies_one_is_taken_and_constants_are_left_out(make_problem, rng):
    X = rng.standard_normal((30, 6))
    X[:, 3], X[:, 4], X[:, 5] = -2 * X[:, 0], 7.0, X[:, 0] + 1
    problem = make_problem(30, 6, X=X, y=X[:, 0] + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(30))
    found, converged = ascend(problem, empty(0.1), 1e-8)
    assert converged
    assert len({0, 3, 5} & set(found.active)) == 1
    assert 4 not in found.active


@pytest.mark.usefixtures("form")
def test_no_precision_falls_below_the_smallest_that_is_allowed(make_problem):
    problem = make_problem(40, 8, prior=ARD(min_alpha=50.0), price=0.1)
    found, converged = ascend(problem, empty(0.1), 1e-8)
    assert converged
    assert len(found.active) >= 3
    assert found.alpha.min() == 50.0


@pytest.mark.parametrize("price", [0.0, np.log(5)])
def test_noise_free_data_end_at_the_floor(price, make_problem):
    found, converged = ascend(make_problem(30, 5, n_relevant=2, noise=0.0, price=price), empty(0.1), 1e-7)
    assert converged
    assert found.noise == NOISE_FLOOR


def test_every_step_is_told_while_it_runs(make_problem):
    seen = []

    def stop_at_three(n, info):
        seen.append((n, info))
        if n == 3:
            raise KeyboardInterrupt

    trace = Trace()
    with pytest.raises(KeyboardInterrupt):
        ascend(make_problem(40, 8), empty(0.1), 1e-7, trace, callback=stop_at_three)
    assert seen == list(enumerate(trace.infos, 1))
    assert len(seen) == 3


# --- the noise ---


@pytest.mark.parametrize("hyper", ["noise", "Laplace"])
def test_the_noise_rule_ends_where_the_objective_is_largest(shape, hyper, make_problem, objective):
    problem = make_problem(*shape, **HYPER[hyper])
    state = State(problem, Solution(np.array([0, 4, 2]), np.array([0.5, 30.0, 4.0]), 0.3))
    assert problem.noise_left(state) > 1e-3
    for _ in range(200):
        state.set_scales(state.alpha_inside, problem.next_noise(state))
    best = minimize_scalar(lambda u: -objective(problem, state.alpha, np.exp(u)), bounds=(-6, 2), method="bounded")
    assert state.noise == pytest.approx(np.exp(best.x), rel=1e-4)
    assert problem.noise_left(state) < 1e-12


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("hyper", ["none", "noise", "Laplace"])
def test_the_common_scale_is_the_best(shape, intercept, hyper, make_problem, objective):
    problem = make_problem(*shape, flat=intercept, **HYPER[hyper])
    state = State(problem, Solution(np.array([6, 0, 3, 1, 5]), np.array([0.4, 2.0, 1.0, 0.2, 5.0]), 0.3))
    noise, alpha = state.noise, state.alpha.copy()

    def loss(log_factor):
        return -objective(problem, alpha / np.exp(log_factor), noise * np.exp(log_factor))

    best = minimize_scalar(loss, bounds=(-5, 5), method="bounded", options={"xatol": 1e-9})
    state.rescale(NOISE_FLOOR)
    assert np.log(state.noise / noise) == pytest.approx(best.x, abs=1e-6)
    assert state.objective == pytest.approx(-best.fun, rel=1e-12)


@pytest.mark.usefixtures("form")
def test_the_common_scale_stops_at_the_floor_of_the_noise(make_problem):
    problem = make_problem(30, 3, n_relevant=3, noise=0.0)
    state = Ascent(problem, Solution(np.arange(3), np.full(3, 1e-8), 1e-4)).state
    state.rescale(NOISE_FLOOR)
    assert state.noise == NOISE_FLOOR
    fresh = State(problem, Solution(np.array(state.active), state.alpha_inside, NOISE_FLOOR))
    assert state.objective == pytest.approx(fresh.objective, rel=1e-9)


@pytest.mark.parametrize(
    ("free", "keywords"),
    [
        (True, {}),
        (True, HYPER["noise"]),
        (True, HYPER["Laplace"]),
        (False, {"price": 1.0}),
        (False, {"prior": ARD(0.1, 0.0)}),
        (False, {"prior": ARD(0.0, np.full(8, 0.1))}),
    ],
)
def test_only_the_evidence_and_the_noise_prior_know_the_common_scale(free, keywords, make_problem):
    assert make_problem(40, 8, **keywords).is_scale_free == free


# --- all precisions together ---


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize("hold_noise", [True, False])
def test_joint_steps_end_where_all_slopes_vanish(hold_noise, make_problem, slopes):
    """With nothing else to do: all columns matter and are in the model from the start."""
    problem = make_problem(40, 6, n_relevant=6)
    ascent = Ascent(problem, Solution(np.arange(6), np.exp(np.linspace(-2, 2, 6)), 0.3))
    ascent.run(Limits(1e-12, hold_noise=hold_noise), Trace(), max_iter=0)
    path = [ascent.state.objective]
    for _ in range(40):
        ascent.state.joint_step(1e-12, 0.0 if hold_noise else NOISE_FLOOR)
        path.append(ascent.state.objective)
    assert (np.diff(path) >= -1e-9).all()
    assert path[-1] > path[0] + 0.1
    found = slopes(problem, np.asarray(ascent.state.alpha), ascent.state.noise)
    assert np.abs(found[1 if hold_noise else 0 :]).max() < 1e-5


@pytest.mark.parametrize(("length", "taken"), [(-0.3, 1.0), (-1.2, 0.25), (-4.8, 0.0625), (1.2, 0.0)])
def test_a_joint_step_that_goes_too_far_is_taken_in_part_or_undone(length, taken, make_problem, monkeypatch):
    """From 0.3 above the best log α of the first column."""
    problem = make_problem(40, 8)
    best, _ = ascend(problem, empty(0.1), 1e-10)
    state = State(problem, best.solution)
    raised = np.where(np.arange(len(best.active)) == 0, np.exp(0.3), 1.0)
    state.set_scales(state.alpha_inside * raised, state.noise)
    before = state.objective, state.alpha_inside, state.Sigma
    monkeypatch.setattr(state_module, "newton_step", lambda alpha, *_: (length * (raised > 1), 1.0))
    state.joint_step(1e-9, 0.0)
    np.testing.assert_allclose(np.log(state.alpha_inside / before[1]), taken * length * (raised > 1), atol=1e-12)
    if taken:
        assert state.objective > before[0]
    else:
        np.testing.assert_allclose(state.Sigma, before[2], rtol=1e-12)
        assert state.objective == pytest.approx(before[0], rel=1e-12)


@pytest.mark.skipif(not compiled.COMPILED, reason="the compiled module is not there, or switched off")
@pytest.mark.parametrize("noise_floor", [0.0, NOISE_FLOOR])
@pytest.mark.parametrize("hyper", HYPER)
def test_compiled_joint_steps_are_those_of_numpy(hyper, noise_floor, make_problem, monkeypatch):
    """Without their limit some steps go too far; both forms must take the same part of them, or none."""
    for module in (scales_module, state_module):
        monkeypatch.setattr(module, "LONGEST", 30.0)
    monkeypatch.setattr(state_module, "_constants", state_module._constants.__wrapped__)  # read anew for each state
    n_parts = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 1)) + 0.3 * rng.standard_normal((40, 12))
        problem = make_problem(40, 12, X=X, seed=seed, **HYPER[hyper])
        start = Solution(np.arange(8), np.exp(3 * rng.standard_normal(8)), 0.3)
        ours, theirs = State(problem, start), state_of(problem, start)
        n = problem.n + 2 * problem.c if noise_floor > 0 else np.inf
        step, _ = newton_step(start.alpha, ours.mean, ours.Sigma, problem.prior.of(start.active).at_noise(0.3), n)
        for state in (ours, theirs):
            state.survey(Marginal(0.0, 0.0, 0.0, 0.0))
            state.joint_step(1e-6, noise_floor)
        # Rounding times the condition number of the columns' products, about 1e4.
        np.testing.assert_allclose(theirs.alpha_inside, ours.alpha_inside, rtol=1e-9)
        np.testing.assert_allclose(theirs.S[8:], ours.S[8:], rtol=1e-9)
        assert theirs.noise == pytest.approx(ours.noise, rel=1e-9)
        assert theirs.objective == pytest.approx(ours.objective, rel=1e-9)
        moved = np.log(ours.alpha_inside * ours.noise / (start.alpha * start.noise))  # but for the common scale
        n_parts += not np.allclose(moved, step, atol=1e-6)
    assert n_parts > 0 or hyper in ("all", "Laplace")  # those priors hold the precisions back


def test_a_model_without_weights_can_be_rescaled_and_stepped(make_problem):
    problem = make_problem(40, 8)
    ascent = Ascent(problem, empty(0.3))
    ascent.state.joint_step(1e-6, NOISE_FLOOR)
    assert ascent.state.noise == 0.3  # a step that promises nothing is not made
    ascent.state.rescale(NOISE_FLOOR)
    assert ascent.state.noise == pytest.approx(problem.energy / problem.n)
    assert problem.noise_left(ascent.state) == pytest.approx(0, abs=1e-12)


# --- many columns ---


@pytest.fixture
def many_at_once(monkeypatch):
    """Ten actions in one call, joint steps and all numbers from scratch after as many actions as columns are inside."""
    monkeypatch.setattr(ascent_module, "AT_ONCE", 10)
    monkeypatch.setattr(ascent_module, "JOINT_EVERY", 2)
    monkeypatch.setattr(ascent_module, "REFRESH_EVERY", 2)
    monkeypatch.setattr(ascent_module, "COLUMNS_PER_ACTION", 1)


@pytest.mark.usefixtures("form", "many_at_once")
@pytest.mark.parametrize("hold_noise", [True, False])
def test_a_callback_changes_nothing(hold_noise, kernel_problem):
    """With a callback each call makes one action only."""
    traces = Trace(), Trace()
    unseen, _ = ascend(kernel_problem(), empty(1e-3), 1e-4, traces[0], hold_noise=hold_noise)
    seen, _ = ascend(
        kernel_problem(), empty(1e-3), 1e-4, traces[1], callback=lambda n, info: None, hold_noise=hold_noise
    )
    assert len(traces[0].infos) > 30
    assert traces[0].infos == traces[1].infos
    np.testing.assert_array_equal(unseen.active, seen.active)


@pytest.mark.usefixtures("form", "many_at_once")
def test_columns_that_bring_nothing_leave_during_the_climb(kernel_problem, objective, monkeypatch):
    """Whenever digits are checked; each that leaves raises the objective, by brute force, and none is left."""
    problem, ends, drop = kernel_problem(), [], Ascent._drop_worthless

    def told(ascent):
        state = ascent.state
        before = objective(problem, state.alpha, state.noise)
        made = drop(ascent)
        ends.append((ascent.n_actions, len(made), before, objective(problem, state.alpha, state.noise)))
        state.survey(ascent._price(state.n_units))
        inside = ascent.snapshot()
        assert np.isfinite(inside.best_moves.alpha[inside.active]).all()
        return made

    monkeypatch.setattr(Ascent, "_drop_worthless", told)
    ascend(problem, empty(1e-3), 1e-4)
    during = [end for end in ends if end[0] % 10 == 0 and end[1]]
    assert len(during) > 0
    for _, _, before, after in during:
        assert after > before - 1e-9 * abs(before)


def test_joint_steps_are_rare_where_many_columns_are_inside(kernel_problem, monkeypatch):
    """They cost more than the actions between them; the end is a maximum all the same."""
    monkeypatch.setattr(compiled, "COMPILED", False)
    monkeypatch.setattr(ascent_module, "AT_ONCE", 10)
    monkeypatch.setattr(ascent_module, "JOINT_EVERY", 2)
    step, ages, shares = State.joint_step, [], []

    def told(state, *given):
        ages.append(state.age)
        step(state, *given)

    monkeypatch.setattr(State, "joint_step", told)
    for columns in (1000, 1):
        monkeypatch.setattr(ascent_module, "COLUMNS_PER_ACTION", columns)
        ages.clear()
        found, converged = ascend(kernel_problem(), empty(1e-3), 1e-6)
        assert converged
        assert gap(found) <= 1.01e-6
        shares.append(np.mean(ages))
    assert shares[1] > 1.5 * shares[0]
