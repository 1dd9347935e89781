"""The loop stops when it should, counts what it did, and ends loudly when something is wrong."""

import numpy as np
import pytest

from sparsebayes.engine.loop import Info, Settings, Trace, iterate, warn_not_converged


def halving(state):
    """A step whose change halves each time: 1, ½, ¼ …"""
    return state + 1, Info(objective=float(state), change=0.5**state, n_active=3, jitter=1e-12 * (state == 1))


@pytest.mark.parametrize(("tol", "n_steps"), [(1.0, 1), (0.25, 3), (0.2, 4)])
def test_stops_at_the_first_change_within_the_tolerance(tol, n_steps):
    trace = Trace()
    assert iterate(0, halving, trace=trace, settings=Settings(tol, 99)) == (n_steps, True)
    assert trace.objective == list(range(n_steps))


def test_gives_up_after_max_iter_and_says_so():
    trace = Trace()
    assert iterate(0, halving, trace=trace, settings=Settings(0.0, 5)) == (5, False)
    assert len(trace.infos) == 5


def test_callback_sees_every_step_of_all_stages_with_a_running_number():
    trace, seen = Trace(), []
    settings = Settings(0.25, 9, lambda n, info: seen.append((n, info)))
    for _ in range(2):
        iterate(0, halving, trace=trace, settings=settings)
    assert [n for n, _ in seen] == [1, 2, 3, 4, 5, 6]
    assert [info for _, info in seen] == trace.infos
    assert all(isinstance(info, Info) for _, info in seen)


@pytest.mark.parametrize(("tol", "converged"), [(0.25, True), (0.2, False)])
def test_a_callback_stops_the_loop_but_does_not_hide_that_it_has_converged(tol, converged):
    trace = Trace()
    assert iterate(0, halving, trace=trace, settings=Settings(tol, 9, lambda n, info: n == 3)) == (3, converged)
    assert len(trace.infos) == 3


def test_trace_counts_the_steps_that_needed_jitter():
    trace = Trace()
    iterate(0, halving, trace=trace, settings=Settings(0.25, 9))
    assert trace.n_jittered == 1


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_an_objective_that_is_no_number_ends_the_loop_with_a_remedy(value):
    def step(state):
        return state, Info(objective=value, change=0.0, n_active=7)

    trace = Trace()
    with pytest.raises(FloatingPointError, match=r"step 1 with 7 active.*extreme values.*\(c, d\)"):
        iterate(None, step, trace=trace, settings=Settings(1.0, 3))
    assert trace.infos == []


def test_the_warning_names_what_to_raise():
    class Category(UserWarning):
        pass

    with pytest.warns(Category, match=r"0\.25 nats \(tol=1e-06\)\. Raise max_iter \(now 17\)"):
        warn_not_converged(0.25, 1e-6, 17, Category)
