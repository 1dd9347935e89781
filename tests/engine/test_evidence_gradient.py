"""Maximisation of evidences whose maximum is known: end, limits and units; and the slope in feature weights.

The evidences and their slopes are tested in test_width.py.
"""

import numpy as np
import pytest
from numpy.linalg import LinAlgError
from numpy.testing import assert_allclose

from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.priors import ARD
from sparsebayes.core.weighted_kernels import WEIGHTED, weighted_kernel
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.evidence_gradient import (
    MAX_LOG_CHANGE,
    Slopes,
    gaussian_evidence,
    laplace_evidence,
    maximise_evidence,
)
from sparsebayes.engine.least_squares import NOISE_FLOOR, LeastSquares
from sparsebayes.engine.problem import Problem

GOAL = np.array([[1.0, -2.0, 0.5]])
FREE = [(-np.inf, None)] * 3


def bowl(goal=GOAL, best=(0.0, 0.0)):
    """An evidence that is largest where the design is `goal` and the scales are `best`."""
    best = np.array(best)

    def at(K, scales):
        value = -0.5 * ((K - goal) ** 2).sum() - 0.5 * ((scales - best) ** 2).sum()
        return Slopes(float(value), goal - K, best - scales)

    return at


def identity(parameters):
    """The design is the parameters themselves."""
    return parameters[None], lambda slope: slope[0]


def test_the_end_is_the_maximum():
    top = maximise_evidence(bowl(best=(1.0, -0.3)), identity, np.zeros(3), FREE, np.zeros(2), 1)
    assert_allclose(top.parameters, GOAL[0], atol=1e-4)
    assert_allclose(top.scales, [1.0, -0.3], atol=1e-4)
    assert top.value == pytest.approx(0.0, abs=1e-6)


def test_parameters_stay_within_their_limits():
    limits = [(0.0, None), (0.0, None), (0.0, 0.2)]
    top = maximise_evidence(bowl(), identity, np.array([0.1, 0.1, 0.1]), limits, np.zeros(2), 2)
    assert_allclose(top.parameters, [1.0, 0.0, 0.2], atol=1e-4)
    assert top.parameters[1] == 0
    assert top.parameters[2] <= 0.2


def test_a_weight_that_is_zero_comes_back_where_that_pays():
    top = maximise_evidence(bowl(), identity, np.zeros(3), [(0.0, None)] * 3, np.zeros(2), 2)
    assert_allclose(top.parameters, [1.0, 0.0, 0.5], atol=1e-4)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_unit_of_the_parameters_changes_nothing(unit):
    """Parameters a million times larger, of which the design takes a millionth, and a unit that says so."""

    def design(parameters):
        return parameters[None] / unit, lambda slope: slope[0] / unit

    limits = [(0.0, None), (-3 * unit, None), (0.0, 0.2 * unit)]
    top = maximise_evidence(bowl(), design, np.full(3, 0.1 * unit), limits, np.zeros(2), 2, unit=unit)
    base = maximise_evidence(bowl(), identity, np.full(3, 0.1), [(0.0, None), (-3, None), (0.0, 0.2)], np.zeros(2), 2)
    assert_allclose(top.parameters / unit, base.parameters, rtol=1e-9)
    assert top.value == pytest.approx(base.value, rel=1e-9)


def test_it_ends_early_once_the_evidence_is_enough():
    stretch = np.array([1.0, 3.0, 10.0])  # a round bowl takes one step

    def design(parameters):
        return (stretch * parameters)[None], lambda slope: stretch * slope[0]

    start = np.array([40.0, 30.0, -20.0])
    whole = maximise_evidence(bowl(), design, start, FREE, np.ones(2), 2)
    part = maximise_evidence(bowl(), design, start, FREE, np.ones(2), 2, stop_at=-1000.0)
    assert whole.value == pytest.approx(0, abs=1e-3)
    assert -1000 <= part.value < -1


def test_scales_go_far_but_not_out_of_range():
    top = maximise_evidence(bowl(best=(100.0, -100.0, -100.0)), identity, np.zeros(3), FREE, np.zeros(3), 2)
    assert_allclose(top.scales[:2], [MAX_LOG_CHANGE, -MAX_LOG_CHANGE])
    assert top.scales[2] == pytest.approx(np.log(NOISE_FLOOR))
    top = maximise_evidence(bowl(best=(0.0, 0.0, 100.0)), identity, np.zeros(3), FREE, np.zeros(3), 2)
    assert top.scales[2] == pytest.approx(1.0)  # the noise is no larger than the target, or not by much


def test_the_line_search_turns_back_from_where_there_is_no_evidence():
    def at(K, scales):
        if K[0, 0] > 0.9:
            raise LinAlgError
        return bowl()(K, scales)

    top = maximise_evidence(at, identity, np.zeros(3), FREE, np.zeros(2), 2)
    assert np.isfinite(top.value)
    assert 0 <= top.parameters[0] <= 0.9
    assert top.value > -0.5 * (GOAL**2).sum()


def regression(rng, weight):
    t = np.sqrt(weight) * rng.standard_normal(25)
    rows = DenseRows.of(rng.standard_normal((25, 1))).standardised(weight, centre=True)
    problem = LeastSquares(design=rows, t=t, n_weighted=float(weight.sum()), flat_intercept=True)
    return gaussian_evidence(problem), np.log([0.5, 2.0, 1.0, 0.2])


def two_class_problem(design, t, weight, intercept):
    return Problem(design=design, t=t, weight=weight, likelihood=Bernoulli(), prior=ARD(), flat_intercept=intercept)


def two_classes(rng, weight):
    t = (rng.uniform(size=25) < 0.4).astype(float)
    problem = two_class_problem(DenseRows.of(np.empty((25, 0))), t, weight, True)
    return laplace_evidence(problem), np.log([0.5, 2.0, 1.0])


@pytest.mark.parametrize("make", [regression, two_classes])
@pytest.mark.parametrize("name", WEIGHTED)
def test_the_slope_in_feature_weights_is_a_difference(name, make, rng):
    X = rng.uniform(-1, 1, (25, 4))
    theta, kernel = np.array([0.8, 0.3, 0.1, 1.2]), weighted_kernel(name)
    evidence, scales = make(rng, rng.uniform(0.3, 2, 25))

    def value(log_theta):
        return evidence(kernel(X, X[:3], np.exp(log_theta)).value, scales).value

    def central(e, h):
        return (value(np.log(theta) + h * e) - value(np.log(theta) - h * e)) / (2 * h)

    shape = kernel(X, X[:3], theta)
    found = theta * kernel.gradient(X, X[:3], shape, evidence(shape.value, scales).design)
    # The mode of two classes is known to some 1e-7 nats (see test_width.py): hence the wide steps.
    expected = [(4 * central(e, 1e-2) - central(e, 2e-2)) / 3 for e in np.eye(4)]
    assert_allclose(found, expected, rtol=1e-6, atol=5e-6)
