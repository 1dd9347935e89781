"""Prices: marginal prices are differences of totals, and each number is what its derivation says."""

import numpy as np
import pytest
from scipy.stats import chi2

from sparsebayes.core.prices import (
    FREE,
    LARGEST_GAIN,
    HalfTheRows,
    Marginal,
    PerUnit,
    charge,
    choice_price,
    classification_price,
    false_discovery_price,
    is_free,
    total,
    worth_at,
)
from sparsebayes.core.scales import ard_candidate, gain
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.least_squares import NOISE_FLOOR, LeastSquares

NATS = np.array([1.0, 0.3, 2.0, 0.0, 5.0, 1.5, 0.7, 0.2])
PRICES = {
    "free": FREE,
    "one price": PerUnit(2.0),
    "one price, learned noise": PerUnit(2.0, rows=10),
    "own prices": PerUnit(NATS),
    "own prices, learned noise": PerUnit(NATS, rows=10),
    "half of the rows": HalfTheRows(6),
    "half of the rows and a little": HalfTheRows(6, 0.1),
}


@pytest.mark.parametrize("price", PRICES.values(), ids=PRICES)
@pytest.mark.parametrize("active", [[], [4], [6, 0, 3], [1, 2, 3, 5, 6]])
def test_marginal_prices_are_differences_of_totals(price, active):
    inside = np.isin(np.arange(8), active)
    found = Marginal.at(price, active).of(inside, price.nats)
    for j in range(8):
        one_less = [k for k in active if k != j]
        if inside[j]:
            expected = total(price, active) - total(price, one_less)
        else:
            expected = total(price, [*active, j]) - total(price, active)
        assert found[j] == pytest.approx(expected, abs=1e-12)


def test_the_total_is_written_out():
    assert total(PerUnit(NATS), [0, 4]) == 6.0
    assert total(PerUnit(NATS, rows=10), np.array([0, 4])) == pytest.approx(6.0 * 10 / 8)
    assert total(PerUnit(2.0, rows=10), [0, 4, 5]) == pytest.approx(6.0 * 10 / 7)
    assert charge(PerUnit(2.0, rows=10), [0, 4, 5]) == 6.0
    assert total(HalfTheRows(6, 0.1), [0, 1, 2, 3, 4]) == pytest.approx(0.5 + 2 * 6 * LARGEST_GAIN)
    assert [is_free(price) for price in PRICES.values()] == [True, False, False, False, False, True, False]


def test_a_model_of_as_many_units_as_rows_is_never_free():
    assert np.isfinite(total(PerUnit(2.0, rows=5), list(range(7))))
    assert total(HalfTheRows(5), list(range(5))) > total(HalfTheRows(5), list(range(4)))


def test_vectors_are_free_up_to_half_of_the_rows():
    n, price = 40, HalfTheRows(40)
    prices = np.array([price.base(k) for k in range(n)])
    assert (prices[: n // 2 + 1] == 0).all()
    # From then on a vector costs what the whole model can bring: a residual at the floor of the noise.
    np.testing.assert_allclose(np.diff(prices[n // 2 :]), -0.5 * n * np.log(NOISE_FLOOR))


@pytest.mark.parametrize(("rows", "most"), [(39, 19), (40, 20), (40.7, 20)])
def test_most_vectors(rows, most):
    assert HalfTheRows(rows).base(most) == 0
    assert HalfTheRows(rows).base(most + 1) >= rows * LARGEST_GAIN


def test_worth_is_the_gain_at_the_best_precision():
    s = np.array([0.2, 3.0, 50.0])
    for r in (1.2, 4.0, 30.0):
        q = np.sqrt(r * s)
        np.testing.assert_allclose(gain(ard_candidate(s, q), s, q), worth_at(r), rtol=1e-12)
    assert worth_at(1.0) == worth_at(0.3) == 0


def test_prices_are_the_worth_of_a_threshold():
    assert classification_price(50, 1000) == worth_at(2 * np.log(1000))
    assert classification_price(10**6, 1000) == worth_at(np.log(1000) + np.log(10**6))
    # Of 30 useless weights, half of them negative and so out, 0.05 pass on average.
    price = false_discovery_price(30)
    threshold = chi2.isf(2 * 0.05 / 30, 1)
    assert price == pytest.approx(worth_at(threshold), rel=1e-9)
    assert false_discovery_price(1) == 0


def test_the_choice_price_counts_columns_that_differ(rng):
    K = rng.standard_normal((30, 8))
    K = K @ K.T
    H = np.eye(30) - 1 / 30
    values = np.linalg.eigvalsh(H @ K @ H)
    assert choice_price(K) == pytest.approx(worth_at(2 * np.log(values.sum() ** 2 / (values**2).sum())), rel=1e-9)
    assert choice_price(np.ones((5, 5))) == 0


@pytest.mark.parametrize("price", [PerUnit(2.0), PerUnit(2.0, 20.0), HalfTheRows(12.0)], ids=repr)
def test_a_problem_looks_marginal_prices_up(price, rng):
    """In any order, the marginal price of a model of k units is that by its definition."""
    problem = LeastSquares(
        design=DenseRows.of(rng.standard_normal((20, 9))),
        t=np.ones(20),
        n_weighted=20.0,
        flat_intercept=False,
        price=price,
    )
    for k in (4, 0, 3, 8, 1, 4):
        assert problem.marginal_price(k) == Marginal.at(price, range(k))
