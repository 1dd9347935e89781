"""The batch solvers: EM never falls, both rules end on the top, and what is dropped was worth nothing."""

from types import SimpleNamespace

import numpy as np
import pytest

from sparsebayes.core.priors import ARD
from sparsebayes.core.scales import em, mackay, noise_em, noise_mackay
from sparsebayes.engine import batch
from sparsebayes.engine.least_squares import INITIAL_NOISE, NOISE_FLOOR, Noise, Solution
from sparsebayes.engine.loop import Settings, Trace

RULES = {"em": (em, noise_em), "fixed-point": (mackay, noise_mackay)}
HYPER = [{}, {"prior": ARD(0.3, 0.1), "c": 0.5, "d": 0.2}, {"prior": ARD(1e-2, 1e-4), "c": 1e-2, "d": 1e-4}]


@pytest.fixture
def run():
    def run(problem, rule="em", tol=1e-9, max_iter=400):
        trace, settings = Trace(), Settings(tol, max_iter)
        scale_rule, noise_rule = RULES[rule]

        def w_step(design, alpha, carry):
            return problem.noise_step(design, alpha, carry.variance, noise_rule)

        start = batch.start(problem, Noise(INITIAL_NOISE))
        state, converged = batch.run(problem, start, w_step=w_step, rule=scale_rule, trace=trace, settings=settings)
        solution = Solution(state.active, state.alpha, state.carry.variance)
        return SimpleNamespace(active=state.active, noise=solution.noise, solution=solution), converged, trace

    return run


def n_dropped(problem, trace):
    """How many weights each step but the last dropped: what that costs is in the next objective."""
    counts = np.array([problem.n_columns, *(info.n_active for info in trace.infos)])
    return -np.diff(counts)[:-1]


@pytest.mark.parametrize("hyper", HYPER, ids=["none", "strong", "weak"])
@pytest.mark.parametrize("intercept", [True, False])
def test_em_never_lowers_the_objective(shape, hyper, intercept, make_problem, run):
    for seed in range(2):
        problem = make_problem(*shape, seed=seed, flat=intercept, **hyper)
        # A wide model without hyper-prior drives the noise to its floor, where ‖t - Φμ‖²/σ² is rounding: stop before.
        _, _, trace = run(problem, max_iter=1200 if shape[0] > shape[1] else 400)
        path, dropped = np.array(trace.objective), n_dropped(problem, trace)
        assert len(path) > 5
        rounding = 1e-9 * np.abs(path[1:])
        assert (np.diff(path) >= -rounding - 1e-3 * dropped).all()  # 1e-3 nats is what PRUNE_BELOW lets a weight cost
        assert path[-1] > path[0] + 1


def test_the_objective_is_that_of_brute_force(shape, make_problem, run, objective, everywhere):
    problem = make_problem(*shape, **HYPER[1])
    before, _, _ = run(problem, max_iter=6)
    _, _, trace = run(problem, max_iter=7)
    expected = objective(problem, everywhere(problem, before.solution), before.noise)
    assert trace.objective[-1] == pytest.approx(expected, rel=1e-10)


def test_dropping_a_weight_hardly_costs_evidence(make_problem, run, evidence, everywhere):
    n_seen, rule = 0, "fixed-point"
    for seed in range(3):
        problem = make_problem(40, 8, seed=seed)
        _, _, trace = run(problem, rule)
        for step in np.flatnonzero(n_dropped(problem, trace)):
            (before, *_), (after, *_) = (run(problem, rule, max_iter=int(step) + k) for k in (0, 1))
            alpha = everywhere(problem, before.solution)
            kept = np.where(np.isin(np.arange(8), after.active), alpha, np.inf)
            cost = evidence(problem, alpha, before.noise) - evidence(problem, kept, before.noise)
            assert cost < 1e-3 * (len(before.active) - len(after.active))
            n_seen += 1
    assert n_seen > 3


@pytest.mark.parametrize("hyper", HYPER[:2], ids=["none", "strong"])
@pytest.mark.parametrize("rule", RULES)
def test_each_rule_ends_where_the_objective_is_flat(rule, hyper, make_problem, run, slopes, everywhere):
    problem = make_problem(40, 6, n_relevant=6, **hyper)  # all relevant: none on its slow way to infinity
    state, converged, _ = run(problem, rule, tol=1e-13, max_iter=20_000)
    assert converged
    assert len(state.active) == 6
    # A stop at 1e-13 nats leaves slopes of about its root.
    assert np.abs(slopes(problem, everywhere(problem, state.solution), state.noise)).max() < 3e-6


def test_start_leaves_out_constant_columns(make_problem, run, rng):
    X = rng.standard_normal((20, 4))
    X[:, 2] = 3.0
    problem = make_problem(20, 4, X=X)
    state = batch.start(problem, Noise(INITIAL_NOISE))
    np.testing.assert_array_equal(state.active, [0, 1, 3])
    np.testing.assert_allclose(state.design.columns(slice(None)), problem.design.columns(np.array([0, 1, 3])))
    assert 2 not in run(problem)[0].active


@pytest.mark.parametrize("rule", RULES)
def test_a_price_above_all_worth_leaves_an_empty_model(rule, shape, make_problem, run, evidence):
    problem = make_problem(*shape, price=1e3)
    state, converged, trace = run(problem, rule, max_iter=2000)
    assert converged
    assert len(state.active) == 0
    best_noise = problem.energy / problem.n
    assert state.noise == pytest.approx(best_noise, rel=1e-6)
    nothing = np.full(problem.n_columns, np.inf)
    assert trace.objective[-1] == pytest.approx(evidence(problem, nothing, best_noise), rel=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_a_price_keeps_what_pays_and_drops_what_does_not(rule, make_problem, run):
    problem = make_problem(60, 20, n_relevant=3, noise=0.5, price=np.log(20))
    state, converged, _ = run(problem, rule, tol=1e-6, max_iter=3000)
    assert converged
    np.testing.assert_array_equal(np.sort(state.active), [0, 1, 2])


@pytest.mark.parametrize("rule", RULES)
def test_noise_free_data_stop_at_the_floor(rule, make_problem, run):
    problem = make_problem(20, 4, n_relevant=4, noise=0.0)
    state, _, trace = run(problem, rule, max_iter=2000)
    assert state.noise == NOISE_FLOOR
    assert np.isfinite(trace.objective).all()
