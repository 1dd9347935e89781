"""Single models of `ARDRegressor`, and what must be equal in two of them."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsebayes import ARDRegressor
from sparsebayes.engine.regression import SOLVERS

single_model = partial(ARDRegressor, average=False)
every_solver = pytest.mark.parametrize("solver", sorted(SOLVERS))
every_min_gain = pytest.mark.parametrize("min_gain", ["auto", 0.0])


def assert_same_model(model, other, rtol=1e-6):
    assert_array_equal(model.active_, other.active_)
    for name in ("coef_", "intercept_", "precision_", "noise_variance_", "relevance_", "log_evidence_"):
        assert_allclose(getattr(model, name), getattr(other, name), rtol, err_msg=name)
    largest = np.diag(other.covariance_).max(initial=0)
    assert_allclose(model.covariance_, other.covariance_, rtol, rtol * largest, err_msg="covariance_")
