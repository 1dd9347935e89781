"""Labels as the target of a regression."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparsebayes.engine.loop import Settings
from sparsebayes.engine.pfcvm import CERTAIN, label_block

SETTINGS = Settings(1e-5, 5000)


@pytest.mark.parametrize("intercept", [True, False])
def test_labels_are_a_target_in_standard_units(intercept, rng):
    t, weight = (rng.uniform(size=50) < 0.3).astype(float), rng.uniform(0.5, 2, 50)
    block = label_block(t, weight, intercept, SETTINGS)
    y = block.t / np.sqrt(weight)
    assert_allclose(np.average(y**2, weights=weight), 1)
    assert (np.average(y, weights=weight) == pytest.approx(0, abs=1e-12)) == intercept
    assert_allclose(np.ptp(y[t == 1]), 0, atol=1e-12)
    assert y[t == 1][0] > y[t == 0][0]
    swapped = label_block(1 - t, weight, intercept, SETTINGS)
    assert_allclose(swapped.t, -block.t)


@pytest.mark.parametrize("n_rows", [20, 80])
def test_labels_that_are_reproduced_leave_a_noise(n_rows, rng):
    """A column for each row explains everything, but for the part that none may."""
    t = (rng.uniform(size=n_rows) < 0.5).astype(float)
    block = label_block(t, np.ones(n_rows), True, SETTINGS)
    K = np.exp(-100 * np.subtract.outer(np.arange(n_rows), np.arange(n_rows)) ** 2.0)
    slopes = [block.evidence(K, np.append(np.zeros(n_rows), at)).scales[-1] for at in (-20.0, 0.0)]
    assert slopes[0] > 0 > slopes[1]  # a noise next to nothing wants to be more, and one that is all less
    values = [block.evidence(K, np.append(np.zeros(n_rows), at)).value for at in np.linspace(-12, 0, 60)]
    assert np.exp(np.linspace(-12, 0, 60)[int(np.argmax(values))]) > CERTAIN / 2
    fit = block.search(K, None)
    assert np.exp(fit.scales[-1]) >= CERTAIN * (1 - 1e-9)
