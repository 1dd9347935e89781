"""The prior of sets against numerical integration over the inclusion rate π and the explained share h."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import gammaln

from sparsebayes.core import inclusion
from sparsebayes.core.inclusion import DENSE, HIGHEST_RATE, STEP, InclusionPrior

N_FEATURES = [1, 8, 200]


def density(log_c, k, n_features, rate):
    """p(log c, one set of k features | π): h = cπD/(1 + cπD) is uniform, so log c has the density h(1 - h)."""
    ratio = np.exp(log_c) * rate * n_features
    return ratio / (1 + ratio) ** 2 * rate**k * (1 - rate) ** (n_features - k)


def integrated(log_c, k, n_features, dense):
    """With π log-uniform, and with probability `dense` the highest."""
    low, high = np.log(1 / (n_features + 1)), np.log(HIGHEST_RATE)
    at_top = density(log_c, k, n_features, HIGHEST_RATE)
    if high - low < 1e-9:
        return at_top
    spread, _ = quad(lambda x: density(log_c, k, n_features, np.exp(x)), low, high, epsabs=0, epsrel=1e-10)
    return (1 - dense) * spread / (high - low) + dense * at_top


@pytest.mark.parametrize("dense", [0.0, DENSE])
@pytest.mark.parametrize("n_features", N_FEATURES)
def test_odds_of_one_feature_more_are_the_integral(n_features, dense):
    prior = InclusionPrior.of(n_features, dense=dense)
    for slab in range(0, len(prior.slabs), 8):
        log_c = np.log(prior.slabs[slab])
        sizes = [k for k in (0, 1, 3, 6, 20, 99) if k < n_features]
        values = [[integrated(log_c, size, n_features, dense) for size in (k, k + 1)] for k in sizes]
        assert_allclose(prior.log_odds(slab)[sizes], [np.log(more / less) for less, more in values], atol=0.08)


@pytest.mark.parametrize("n_features", N_FEATURES)
def test_more_rates_change_little(n_features, monkeypatch):
    coarse = InclusionPrior.of(n_features)
    monkeypatch.setattr(inclusion, "RATES", 400)
    fine = InclusionPrior.of(n_features)
    for slab in range(0, len(coarse.slabs), 8):
        assert_allclose(coarse.log_odds(slab), fine.log_odds(slab), atol=0.08)


@pytest.mark.parametrize("n_features", N_FEATURES)
@pytest.mark.parametrize("rate", [None, 0.1])
def test_table_and_odds_are_the_same_numbers(n_features, rate):
    prior = InclusionPrior.of(n_features, rate)
    table = np.array([prior.log_size(k) for k in range(n_features + 1)])
    assert table.shape == (n_features + 1, len(prior.slabs))
    for slab in (0, 10, len(prior.slabs) - 1):
        assert_allclose(prior.log_odds(slab), np.diff(table[:, slab]), atol=1e-9)


def test_a_known_rate_is_a_constant_price():
    prior = InclusionPrior.of(30, rate=0.2)
    for slab in (0, 12, 25):
        assert_allclose(prior.log_odds(slab), np.log(0.2 / 0.8))
        expected = np.log(density(np.log(prior.slabs[slab]), 4, 30, 0.2))
        assert_allclose(prior.log_size(4)[slab], expected, rtol=1e-12)


@pytest.mark.parametrize("n_features", [8, 200])
def test_prior_is_proper(n_features):
    """Summed over the grid of c and over all sets it is one, but for the ends of the grid."""
    prior, k = InclusionPrior.of(n_features), np.arange(n_features + 1)
    ways = gammaln(n_features + 1) - gammaln(k + 1) - gammaln(n_features - k + 1)
    total = sum(np.exp(prior.log_size(size) + ways[size]).sum() for size in k) * STEP
    assert_allclose(total, 1.0, atol=0.05)


def test_noise_is_the_unit_of_c():
    plain, scaled = InclusionPrior.of(20), InclusionPrior.of(20, noise=3.0)
    assert_allclose(scaled.slabs, 3 * plain.slabs)
    assert_allclose(scaled.share, plain.share)


def test_typical_size_bounds_c():
    plain, bounded = InclusionPrior.of(20), InclusionPrior.of(20, typical=2.0)
    n = len(bounded.slabs)
    assert n < len(plain.slabs)
    assert bounded.slabs.max() < 100.0
    assert_allclose(bounded.slabs, plain.slabs[:n])
    assert_allclose(bounded.log_size(3), plain.log_size(3)[:n] - bounded.slabs / 2.0)


def test_no_feature_at_all_has_a_prior():
    assert np.isfinite(InclusionPrior.of(0).log_size(0)).all()
