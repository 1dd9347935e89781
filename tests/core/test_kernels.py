"""Kernels against scikit-learn and against their definitions."""

from inspect import signature

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import pairwise_kernels

from sparsebayes.core.kernels import FEW_INPUTS, KERNELS

PARAMETERS = {
    "linear": [{}],
    "poly": [{"gamma": 0.7, "coef0": 0.4, "degree": 2}, {"gamma": 1.0, "coef0": 1.0, "degree": 3}],
    "rbf": [{"gamma": 1.0}, {"gamma": 0.3}],
    "laplacian": [{"gamma": 1.0}, {"gamma": 0.3}],
    "sigmoid": [{"gamma": 1.0, "coef0": 1.0}, {"gamma": 0.3, "coef0": -0.4}],
}
CASES = [(name, parameters) for name in KERNELS for parameters in PARAMETERS[name]]
few_and_more = pytest.mark.parametrize("n_inputs", [FEW_INPUTS, FEW_INPUTS + 1])


@few_and_more
@pytest.mark.parametrize(("name", "parameters"), CASES)
def test_kernel_is_scikit_learns(name, parameters, n_inputs, rng):
    X, Z = rng.standard_normal((9, n_inputs)), rng.standard_normal((5, n_inputs))
    expected = pairwise_kernels(X, Z, metric=name, **parameters)
    np.testing.assert_allclose(KERNELS[name](X, Z, **parameters), expected, rtol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_kernel_parameters_have_the_stated_defaults(name, rng):
    X, Z = rng.standard_normal((4, 2)), rng.standard_normal((3, 2))
    np.testing.assert_array_equal(KERNELS[name](X, Z), KERNELS[name](X, Z, **PARAMETERS[name][name == "poly"]))


@few_and_more
@pytest.mark.parametrize(("name", "power"), [("rbf", 2), ("laplacian", 1)])
def test_distance_kernels_keep_their_digits_far_from_the_origin(name, power, n_inputs, rng):
    X, Z = rng.standard_normal((9, n_inputs)) + 1e4, rng.standard_normal((5, n_inputs)) + 1e4
    distance = (np.abs(X[:, None] - Z) ** power).sum(axis=2)
    # Moving to the centre rounds each coordinate by at most eps · 1e4 = 2e-12.
    np.testing.assert_allclose(KERNELS[name](X, Z), np.exp(-distance), rtol=1e-10)


@few_and_more
@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_a_distance_kernel_is_one_on_its_own_centre(name, n_inputs, rng):
    X = 3 * rng.standard_normal((6, n_inputs)) + 1e4
    np.testing.assert_allclose(np.diag(KERNELS[name](X, X)), 1.0, rtol=1e-13)


@pytest.mark.parametrize("name", KERNELS)
def test_a_record_names_the_parameters_of_its_function(name):
    given = signature(KERNELS[name].value).parameters.values()
    assert {each.name for each in given if each.kind is each.KEYWORD_ONLY} == set(KERNELS[name].parameters)


@pytest.mark.parametrize("name", [name for name, kernel in KERNELS.items() if kernel.metric])
def test_the_metric_is_the_distance_that_gamma_multiplies(name, rng):
    X, Z = rng.standard_normal((9, 3)), rng.standard_normal((5, 3))
    expected = np.exp(-0.7 * cdist(X, Z, KERNELS[name].metric))
    np.testing.assert_allclose(KERNELS[name](X, Z, gamma=0.7), expected, rtol=1e-12)
