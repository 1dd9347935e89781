"""Squared extrapolation against fixed points that are known, and against the plain steps."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.priors import VariationalGamma
from sparsebayes.core.scales import em, shared_em
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import batch, glm
from sparsebayes.engine.extrapolation import Extrapolated, Extrapolation, extrapolate
from sparsebayes.engine.loop import Info, Settings, Trace, iterate
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.view import Contact


def test_leap_finds_the_fixed_point_of_a_linear_map_with_one_slow_direction():
    fixed, x0 = np.array([2.0, -1.0, 5.0]), np.array([1.0, 1.0, 1.0])
    x1 = fixed + 0.9 * (x0 - fixed)
    x2 = fixed + 0.9 * (x1 - fixed)
    assert_allclose(extrapolate(x0, x1, x2, np.ones(3)), fixed, rtol=1e-12)


def test_no_leap_where_steps_do_not_shrink_slowly():
    x0, x1, x2 = np.zeros(2), np.ones(2), np.array([0.9, 0.9])
    assert extrapolate(x0, x1, x2, np.ones(2)) is x2


def test_a_weight_of_two_is_the_coordinate_twice():
    rng = np.random.default_rng(0)
    x0, r = rng.standard_normal(4), rng.standard_normal(4)
    x1, x2 = x0 + r, x0 + r + np.array([0.9, 0.8, 0.7, 0.95]) * r
    twice = [0, 0, 1, 2, 3]
    assert_allclose(
        extrapolate(x0, x1, x2, np.array([2.0, 1.0, 1.0, 1.0]))[twice],
        extrapolate(x0[twice], x1[twice], x2[twice], np.ones(5)),
        rtol=1e-12,
    )


@dataclass(frozen=True)
class Point:
    x: np.ndarray


def creeping(rates, fixed):
    """Steps of a linear map, with the objective that they never lower."""

    def step(state):
        value = -float(((state.x - fixed) ** 2).sum())
        new = Point(fixed + rates * (state.x - fixed))
        return new, Info(value, float(np.abs(new.x - state.x).max()), len(fixed))

    return step


def test_objective_never_falls_and_far_fewer_steps_are_needed():
    rng = np.random.default_rng(1)
    fixed, rates = rng.standard_normal(6), np.array([0.999, 0.99, 0.95, 0.9, 0.5, 0.1])
    step, settings = creeping(rates, fixed), Settings(1e-6, 100_000)
    plain, trace = Trace(), Trace()
    iterate(Point(np.zeros(6)), step, trace=plain, settings=settings)
    extrapolated_steps = Extrapolation(step, lambda state: state.x, lambda _, x: Point(x), np.ones(6))
    end, converged = iterate(Extrapolated(Point(np.zeros(6))), extrapolated_steps, trace=trace, settings=settings)
    assert converged
    assert (np.diff(trace.objective) >= 0).all()
    assert len(trace.infos) < len(plain.infos) / 5  # an eighth
    assert_allclose(end.here.x, fixed, atol=2e-3)  # a step of 1e-6 at the slowest rate is 1e-3 from the end


def test_a_leap_that_loses_is_taken_back():
    """A cliff just beyond the fixed point: every extrapolation ends below it."""
    fixed = np.zeros(1)
    plain = creeping(np.array([0.95]), fixed)

    def step(state):
        new, info = plain(state)
        return new, Info(-np.inf if state.x[0] < 0.5 else info.objective, info.change, 1)

    extrapolated_steps = Extrapolation(step, lambda state: state.x, lambda _, x: Point(x), np.ones(1))
    state, objectives = Extrapolated(Point(np.array([4.0]))), []
    for _ in range(12):
        state, info = extrapolated_steps(state)
        objectives.append(info.objective)
    assert np.isfinite(objectives).all()
    assert (np.diff(objectives) >= 0).all()


@pytest.mark.parametrize("shared", [False, True], ids=["ard", "shared"])
def test_variational_bayes_ends_at_the_bound_of_the_plain_iteration(shared):
    """Nearly separable classes, where the plain iteration creeps."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((120, 6))
    t = (X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(120) > 0).astype(float)
    weight = rng.integers(1, 3, 120).astype(float)
    problem = Problem(
        design=DenseRows.of(X),
        t=t,
        weight=weight,
        likelihood=Bernoulli(),
        prior=VariationalGamma(1e-2, 1e-4, shared=shared),
        bounded=True,
    )
    found = glm.variational_bayes(problem, Settings(1e-9, 20_000))
    trace = Trace()
    first = Contact(problem.likelihood, np.zeros(120))
    state = batch.State(problem.design.keep(np.arange(6)), np.arange(6), np.full(6, 100.0), first)
    batch.run(
        problem,
        state,
        w_step=lambda design, alpha, point: point.step(problem, design, alpha),
        rule=shared_em if shared else em,
        trace=trace,
        settings=Settings(1e-9, 20_000),
        prune_below=0.0,
    )
    assert found.converged
    assert (np.diff(found.trace.objective) >= -1e-12 * abs(found.log_evidence)).all()
    assert_allclose(found.log_evidence, trace.objective[-1], atol=1e-6)
    assert len(found.trace.infos) < len(trace.infos) / 2
