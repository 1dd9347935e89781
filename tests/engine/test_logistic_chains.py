"""Logistic chains with prices, row weights and no intercept: all sets of two columns, integrated by quadrature."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparsebayes.core.inclusion import InclusionPrior
from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.priors import ARD
from sparsebayes.core.special import log_sigmoid, sigmoid
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import augmented as augmented_chains
from sparsebayes.engine import rotation
from sparsebayes.engine.augmented import Augmented
from sparsebayes.engine.chain import Place
from sparsebayes.engine.problem import Problem

SETS = [[], [0], [1], [0, 1]]
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(15)


def make_augmented(log_prior, weight, flat):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((16, 2))
    X[:, 1] += 0.7 * X[:, 0]
    t = (X[:, 0] + 0.4 + 0.8 * rng.logistic(size=16) > 0).astype(float)
    design = DenseRows.of(X).standardised(weight, centre=flat).unweighted()
    problem = Problem(design=design, t=t, weight=weight, likelihood=Bernoulli(), prior=ARD(), flat_intercept=flat)
    return Augmented(problem, np.asarray(log_prior), InclusionPrior.of(2, noise=3.3, typical=3.3))


def integrals(Z, t, weight, precision):
    """log ∫ p(t | Zw) exp(-½ Σ precision w²) dw, and the mean of w: quadrature around the mode."""

    def log_density(w):
        eta = w @ Z.T
        return (weight * (t * eta + log_sigmoid(-eta))).sum(axis=-1) - 0.5 * w**2 @ precision

    mode = np.zeros(Z.shape[1])
    for _ in range(50):  # Newton; the steps of these small problems never overshoot
        p = sigmoid(Z @ mode)
        H = (Z.T * (weight * p * (1 - p))) @ Z + np.diag(precision)
        mode = mode + np.linalg.solve(H, Z.T @ (weight * (t - p)) - precision * mode)
    spread = 1.3 * np.linalg.cholesky(np.linalg.inv(H))  # wider than the curvature says: the tails are heavier
    z = np.array(list(product(NODES, repeat=len(mode)))).reshape(-1, len(mode))
    log_weight = np.log([np.prod(each) for each in product(WEIGHTS, repeat=len(mode))]) + 0.5 * (z**2).sum(axis=1)
    w = mode + z @ spread.T
    log_terms = log_weight + log_density(w)
    terms = np.exp(log_terms - log_terms.max())
    log_integral = log_terms.max() + np.log(terms.sum()) + np.log(np.diag(spread)).sum()
    return log_integral, terms @ w / terms.sum()


def exact(augmented):
    """Inclusion probabilities and mean weights."""
    problem, prior, Phi = augmented.problem, augmented.prior, augmented.Phi
    log_p, inside, means = [], [], []
    for S, (slab, c) in product(SETS, enumerate(prior.slabs)):
        k, flat = len(S), problem.flat_intercept
        Z = np.column_stack([Phi[:, S], *[np.ones(len(Phi))] * flat])
        precision = np.append(np.full(k, 1 / c), [0.0] * flat)
        value, mean = integrals(Z, problem.t, problem.weight, precision) if Z.size else (empty(problem), [])
        value += prior.log_size(k)[slab] + augmented.log_prior[S].sum() - 0.5 * k * np.log(2 * np.pi * c)
        log_p.append(value)
        inside.append(np.isin([0, 1], S))
        row = np.zeros(2)
        row[S] = mean[:k]
        means.append(row)
    p = np.exp(np.array(log_p) - np.max(log_p))
    return np.concatenate([p @ np.array(inside), p @ np.array(means)]) / p.sum()


def empty(problem):
    """Log likelihood of no weights and no intercept."""
    return float(problem.weight.sum() * np.log(0.5))


CASES = {
    "prices and weights": ([1.0, -1.5], np.tile([1.0, 2.0], 8), True),
    "no intercept": ([0.0, 0.0], np.ones(16), False),
}


@pytest.mark.parametrize(("log_prior", "weight", "has_intercept"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("whole", [rotation.WHOLE, 0], ids=["all columns at once", "one by one"])
@pytest.mark.frequencies
def test_chains_agree_with_quadrature(monkeypatch, log_prior, weight, has_intercept, whole):
    """Also if two sweeps of three may change only one of the columns, and the other stays as it is."""
    monkeypatch.setattr(rotation, "WHOLE", whole)
    monkeypatch.setattr(rotation, "TURNS", 2)
    augmented = make_augmented(log_prior, weight, has_intercept)
    found = []
    for seed in range(12):
        place, _ = augmented.run(Place(np.array([], dtype=np.intp), -1, np.random.default_rng(seed)), 240)
        _, stretch = augmented.run(place, 6000)
        total = stretch.sums.total
        drawn = np.zeros(2)
        for draw in (draw for sweep in stretch.visits for draw in sweep):
            drawn[draw.active] += draw.weights / (augmented_chains.N_DRAWS * len(stretch.visits))
        found.append(np.concatenate([stretch.sums.included / total, stretch.sums.first / total, drawn]))
    found, expected = np.array(found), exact(augmented)
    expected = np.concatenate([expected, expected[2:]])
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert error.max() < 0.05
    assert_allclose((found.mean(axis=0) - expected) / error, 0.0, atol=5.0)


def test_a_chain_goes_on_where_it_was():
    augmented = make_augmented([0.0, 0.0], np.ones(16), True)
    start = Place(np.array([0]), -1, np.random.default_rng(0))
    place, first = augmented.run(start, 60)
    end, second = augmented.run(place, 60)
    long_end, both = augmented.run(replace(start, rng=np.random.default_rng(0)), 120)
    assert_allclose(end.eta, long_end.eta, rtol=1e-9)
    assert_allclose(first.sums.included + second.sums.included, both.sums.included, rtol=1e-9)
