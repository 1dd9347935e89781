"""Squared residuals as a likelihood of the log variance, against SciPy and differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from sparsebayes.core.log_variance import LogVariance

T, ETA, H = np.array([0.0, 0.3, 2.0, 40.0]), np.array([-1.0, 0.5, 2.0, 1.0]), 1e-5


def test_density_is_that_of_the_residual():
    assert_allclose(LogVariance().log_density(T, ETA), norm.logpdf(np.sqrt(T), scale=np.exp(ETA / 2)), rtol=1e-12)


def test_derivatives():
    like = LogVariance()
    slope = (like.log_density(T, ETA + H) - like.log_density(T, ETA - H)) / (2 * H)
    bend = -(like.derivatives(T, ETA + H)[0] - like.derivatives(T, ETA - H)[0]) / (2 * H)
    skew = (like.derivatives(T, ETA + H)[1] - like.derivatives(T, ETA - H)[1]) / (2 * H)
    assert_allclose(like.derivatives(T, ETA)[0], slope, rtol=1e-6)
    assert_allclose(like.derivatives(T, ETA)[1], bend, rtol=1e-6)
    assert_allclose(like.skew(T, ETA), skew, rtol=1e-6)


def test_base_level_is_the_best_constant():
    like, weight = LogVariance(), np.array([1.0, 2.0, 0.5, 1.0])
    level = like.base_level(T, weight)
    assert weight @ like.derivatives(T, np.full(4, level))[0] == pytest.approx(0, abs=1e-12)
