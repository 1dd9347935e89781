"""Row-by-row variational logistic regression against brute force."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import log_expit

from sparsebayes.engine.incremental import Belief, update


@pytest.fixture
def make_rows(rng):
    def make(n, d):
        X = np.column_stack([rng.standard_normal((n, d - 1)) + 0.5, np.ones(n)])
        return X, (X[:, 0] + rng.logistic(size=n) > 0).astype(float)

    return make


@pytest.fixture
def brute():
    """A block taken in with matrix inverses: precision, Pμ, and the bound's last value."""

    def take(P, vector, X, t, weight, tol):
        xi, last = np.full(len(t), 1e-8), -np.inf
        while True:
            lam = np.tanh(xi / 2) / (4 * xi)
            new_P = P + sum(2 * w * x_lam * np.outer(x, x) for w, x_lam, x in zip(weight, lam, X, strict=True))
            new_vector = vector + X.T @ (weight * (t - 0.5))
            Sigma = np.linalg.inv(new_P)
            mean = Sigma @ new_vector
            const = weight @ (log_expit(xi) - xi / 2 + lam * xi**2)
            bound = 0.5 * mean @ new_P @ mean - 0.5 * np.linalg.slogdet(new_P)[1] + const
            if abs(bound - last) < tol * abs(bound):
                return new_P, new_vector
            last, xi = bound, np.sqrt((X @ mean) ** 2 + np.diag(X @ Sigma @ X.T))

    return take


@pytest.fixture
def same():
    def check(one, other, rtol=1e-9):
        for name in ("precision", "vector", "covariance", "mean"):
            mine, theirs = getattr(one, name), getattr(other, name)
            assert_allclose(mine, theirs, atol=rtol * np.abs(theirs).max())
        assert_allclose(one.logdet, other.logdet, rtol=rtol)

    return check


def test_prior():
    belief = Belief.prior(np.array([2.0, 0.5, 8.0]))
    assert_allclose(belief.covariance @ belief.precision, np.eye(3))
    assert_allclose(belief.logdet, np.linalg.slogdet(belief.covariance)[1], rtol=1e-12)
    assert belief.n_seen == 0
    assert_allclose(belief.mean, 0)


@pytest.mark.parametrize("block", [1, 3, 12])
def test_blocks_by_brute_force(block, make_rows, brute):
    """Of one row, of fewer rows than weights, of more."""
    X, t = make_rows(36, 5)
    weight = np.linspace(0.5, 2, 36)
    alpha = np.linspace(0.5, 4, 5)
    belief, P, vector = Belief.prior(alpha), np.diag(alpha), np.zeros(5)
    for start in range(0, 36, block):
        rows = slice(start, start + block)
        belief = update(belief, X[rows], t[rows], weight[rows], 1e-6)
        P, vector = brute(P, vector, X[rows], t[rows], weight[rows], 1e-6)
    assert_allclose(belief.precision, P, rtol=1e-9)
    assert_allclose(belief.covariance, np.linalg.inv(P), atol=1e-11)
    assert_allclose(belief.vector, vector, atol=1e-12)
    assert_allclose(belief.mean, np.linalg.solve(P, vector), atol=1e-9)
    assert_allclose(belief.logdet, -np.linalg.slogdet(P)[1], rtol=1e-10)
    assert_allclose(belief.n_seen, weight.sum(), rtol=1e-12)


@pytest.mark.parametrize("n", [1, 4, 7])
def test_among_rows_is_among_weights(n, make_rows, same):
    """Rows that count nothing make the block longer than there are weights, and change nothing else."""
    X, t = make_rows(40, 8)
    belief = update(Belief.prior(np.full(8, 2.0)), X[:20], t[:20], np.ones(20), 1e-6)
    X, t = X[20:], t[20:]
    weight = np.linspace(0.5, 2, 20) * (np.arange(20) < n)
    few = update(belief, X[:n], t[:n], weight[:n], 1e-8)
    many = update(belief, X, t, weight, 1e-8)
    assert (few.stale, many.stale) == (n, 0)
    same(few, many)
    assert_allclose(few.n_seen, many.n_seen)


def test_weight_of_a_block_is_repetition(make_rows, same):
    X, t = make_rows(15, 4)
    weight = np.arange(15) % 3 + 1
    one = update(Belief.prior(np.ones(4)), X, t, weight.astype(float), 1e-9)
    again = np.repeat(np.arange(15), weight)
    many = update(Belief.prior(np.ones(4)), X[again], t[again], np.ones(len(again)), 1e-9)
    same(one, many)
    assert one.n_seen == many.n_seen == weight.sum()


def test_a_row_of_weight_zero_teaches_nothing(make_rows, same):
    X, t = make_rows(10, 4)
    belief = update(Belief.prior(np.ones(4)), X, t, np.ones(10), 1e-6)
    same(update(belief, X[:1], t[:1], np.zeros(1), 1e-6), belief, rtol=1e-14)


@pytest.mark.parametrize("n", [4_500])
def test_rounding_does_not_pile_up(n, make_rows):
    """In the middle between two refreshments, from a nearly flat start and with columns of different size."""
    X, t = make_rows(n, 4)
    X *= [1.0, 30.0, 0.05, 1.0]
    belief = Belief.prior(np.array([1.0, 1.0, 1.0, 1e-6]))
    for i in range(n):
        belief = update(belief, X[i : i + 1], t[i : i + 1], np.ones(1), 1e-2)
    assert belief.stale == 500
    assert belief.n_seen == n
    exact = np.linalg.inv(belief.precision)
    size = np.sqrt(np.diag(exact))
    assert_allclose(belief.covariance / size / size[:, None], exact / size / size[:, None], atol=1e-8)
    assert_allclose(belief.logdet, np.linalg.slogdet(exact)[1], rtol=1e-8)
    assert_allclose(belief.mean, exact @ belief.vector, atol=1e-8 * np.abs(belief.mean).max())
