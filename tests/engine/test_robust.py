"""Chains with gross errors and with Student noise, against the sum over all sets and all rows that may be wrong."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparsebayes.core.contaminated import Contaminated
from sparsebayes.core.inclusion import InclusionPrior
from sparsebayes.core.likelihoods import StudentT
from sparsebayes.core.priors import FLAT
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.model_average import Chains, Odds, average_regression
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.robust import average_robust

NOISE = Contaminated(noise=0.3, share=0.2, scale=50.0)


def small(likelihood, flat, n=9, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3))
    y = X[:, 0] + 0.5 * rng.standard_normal(n)
    y[0] += 6
    rows = DenseRows.of(X).standardised(np.ones(n), centre=flat).unweighted()
    return Problem(
        design=rows, t=y, weight=np.ones(n), likelihood=likelihood, prior=FLAT, flat_intercept=flat, bounded=True
    )


def enumerated(problem):
    """Probability of each column and of each row's shift: sums over sets, rows and c, by dense matrices."""
    Phi, t, n = problem.design.columns(slice(None)), problem.t, len(problem.t)
    prior, K, flat = InclusionPrior.of(3), problem.likelihood.scale, problem.flat_intercept
    total, column, row, best = 0.0, np.zeros(3), np.zeros(n), None
    for wrong in product([False, True], repeat=n):
        u = np.where(wrong, 1 / K, 1.0)
        of_rows = np.where(wrong, np.log(problem.likelihood.share), np.log1p(-problem.likelihood.share)).sum()
        root = np.sqrt(u)
        level = (u @ t / u.sum(), u @ Phi / u.sum()) if flat else (0.0, 0.0)
        y, X = root * (t - level[0]), root[:, None] * (Phi - level[1])
        common = of_rows + 0.5 * np.log(u).sum() - (0.5 * np.log(u.sum()) if flat else 0.0)
        for chosen in product([False, True], repeat=3):
            e, V = np.linalg.eigh(X[:, list(chosen)] @ X[:, list(chosen)].T)
            e, p = np.maximum(e, 0), (V.T @ y) ** 2
            c = prior.slabs[:, None]
            rest = (p / (1 + c * e)).sum(axis=1)
            value = (
                common
                + prior.log_size(sum(chosen))
                - 0.5 * (n - flat) * np.log(rest)
                - 0.5 * np.log1p(c * e).sum(axis=1)
            )
            best = value.max() if best is None else best
            weight = np.exp(value - best).sum()
            total, column, row = total + weight, column + weight * np.array(chosen), row + weight * np.array(wrong)
    return column / total, row / total


@pytest.mark.parametrize("intercept", [True, False])
def test_averages_are_those_of_all_sets_and_all_rows(intercept):
    problem = small(NOISE, intercept)
    columns, rows = enumerated(problem)
    odds = Odds.of(None, 1.0, np.ones(3, dtype=bool))
    found = average_robust(problem, odds, np.array([0]), Chains(3, 24_000, 0), problem.t * 0)
    assert_allclose(found.probability, columns, atol=0.03)  # sweeps are correlated: 2,000 of them in each chain
    p = np.zeros(len(problem.t))
    for draw in found.draws:
        eta = draw.level + problem.design.columns(draw.active) @ draw.weights
        at = Contaminated(noise=draw.noise, share=0.2, scale=50.0)
        p += draw.share * at.outlier_probability((problem.t - eta) ** 2)
    assert_allclose(p / sum(draw.share for draw in found.draws), rows, atol=0.03)
    assert rows[0] > 0.5


def test_student_factors_have_their_own_distribution():
    likelihood, rng = StudentT(noise=0.5, freedom=3.0), np.random.default_rng(0)
    square = np.array([0.0, 1.0, 20.0])
    drawn = np.array([likelihood.draw_precisions(square, rng) for _ in range(20_000)])
    assert_allclose(drawn.mean(axis=0), likelihood.mixing(square), rtol=0.03)
    assert_allclose(drawn.var(axis=0), likelihood.mixing(square) ** 2 * 2 / 4, rtol=0.08)  # Gamma of shape 2


def test_with_much_freedom_student_noise_is_gaussian():
    problem = small(StudentT(noise=0.3, freedom=1e6), True, n=25)
    odds, chains = Odds.of(None, 1.0, np.ones(3, dtype=bool)), Chains(3, 12_000, 0)
    plain = LeastSquares(
        design=problem.design.centred(np.ones(25)), t=problem.t - problem.t.mean(), n_weighted=25.0, flat_intercept=True
    )
    usual = average_regression(plain, odds, np.array([0]), chains)
    found = average_robust(problem, odds, np.array([0]), chains, problem.t * 0)
    assert_allclose(found.probability, usual.probability, atol=0.04)
    assert_allclose(found.mean, usual.mean, atol=0.03)
