"""Evidence of a set against dense formulas, and draws against the exact posterior of its weights."""

from dataclasses import replace

import numpy as np
import pytest
from enumeration import ALWAYS, NEVER, make_sets, moments
from numpy.testing import assert_allclose, assert_array_equal

N_DRAWS = 4000
SHAPES = {"by columns": (20, 8, [0, 1, 4]), "by rows": (7, 12, [0, 1, 2, 5, 6, 9])}
every_shape = pytest.mark.parametrize(("n", "m", "active"), SHAPES.values(), ids=SHAPES)


@every_shape
@pytest.mark.parametrize("learns_noise", [True, False])
def test_evidence_for_all_c(n, m, active, learns_noise):
    sets = make_sets(n, m, learns_noise=learns_noise)
    assert sets.by_rows(len(active)) == (n < m)
    found = sets.log_evidence(sets.spectrum(np.array(active)), len(active))
    for slab in (0, 5, 15, 25):
        at = moments(sets, active, sets.prior.slabs[slab])
        fit = -0.5 * sets.n * np.log(at.rest) if learns_noise else -0.5 * at.rest
        assert_allclose(found[slab], sets.prior.log_size(len(active))[slab] + fit - 0.5 * at.log_volume, rtol=1e-9)


def test_forced_columns_have_no_prior_of_their_number():
    log_prior = np.array([ALWAYS, 0, NEVER, 0, 0, 0, ALWAYS, 0])
    sets = make_sets(20, 8, log_prior=log_prior)
    assert_array_equal(sets.forced, [0, 6])
    assert sets.prior.n_features == 5
    active = np.array([0, 1, 6])
    at = moments(sets, active, sets.prior.slabs[7])
    expected = sets.prior.log_size(1)[7] - 0.5 * sets.n * np.log(at.rest) - 0.5 * at.log_volume
    assert_allclose(sets.log_evidence(sets.spectrum(active), 3)[7], expected, rtol=1e-10)


@every_shape
def test_prior_of_the_noise_joins_the_rest(n, m, active):
    sets = make_sets(n, m)
    told = replace(sets, problem=replace(sets.problem, c=1.5, d=0.25))
    assert told.n == sets.n + 3.0
    assert_allclose(told.floor, sets.floor + 0.5)
    c = np.array([0.5])
    assert_allclose(told.spectrum(np.array(active)).rest(c), sets.spectrum(np.array(active)).rest(c) + 0.5, rtol=1e-9)


def standard_error(values):
    return values.std(axis=0, ddof=1) / np.sqrt(len(values))


@every_shape
@pytest.mark.parametrize("learns_noise", [True, False])
def test_draws_have_the_exact_moments(n, m, active, learns_noise):
    """Five standard errors of each mean, for some thirty means."""
    sets, c, rng = make_sets(n, m, learns_noise=learns_noise), 0.7, np.random.default_rng(0)
    sets = replace(sets, problem=replace(sets.problem, c=5.0))  # so that σ⁴ has a mean on seven rows
    draws = [*sets.draw(np.array(active), c, rng, N_DRAWS - 1), *sets.draw(np.array(active), c, rng, 1)]
    weights, noise = np.array([each.weights for each in draws]), np.array([each.noise for each in draws])
    at = moments(sets, active, c)
    mean_noise = at.rest / (sets.n - 2) if learns_noise else 1.0
    assert (np.abs(weights.mean(axis=0) - at.mean) < 5 * standard_error(weights)).all()
    assert abs(noise.mean() - mean_noise) <= 5 * standard_error(noise)
    centred = weights - at.mean
    products = centred[:, :, None] * centred[:, None, :]
    assert (np.abs(products.mean(axis=0) - mean_noise * at.covariance) < 5 * standard_error(products)).all()
    level = np.array([each.level for each in draws])
    assert abs(level.mean()) < 5 * standard_error(level)
    squared = n * level**2
    assert abs(squared.mean() - mean_noise) < 5 * standard_error(squared)


def test_without_an_intercept_there_is_no_level():
    sets = make_sets(20, 8, flat=False)
    assert sets.draw(np.array([0]), 1.0, np.random.default_rng(0), 1)[0].level == 0.0


def test_draw_of_the_empty_set():
    sets = make_sets(20, 8)
    draws = sets.draw(np.empty(0, dtype=np.intp), 1.0, np.random.default_rng(0), 3)
    assert len(draws) == 3
    for draw in draws:
        assert draw.weights.shape == (0,)
        assert draw.noise > 0
