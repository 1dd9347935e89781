"""Every reduction against the whole kernel matrix, the search on either, and what must be refused."""

import tracemalloc
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from sparsebayes.core.kernels import KERNELS, laplacian, polynomial, rbf, sigmoid
from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.priors import ARD
from sparsebayes.data import lowrank
from sparsebayes.data.dense import DenseRows
from sparsebayes.data.lowrank import LowRankRows, NotLowRank, pivoted_cholesky
from sparsebayes.engine import glm
from sparsebayes.engine.least_squares import LeastSquares, Solution
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.regression import solve

SMOOTH = {
    "rbf": partial(rbf, gamma=0.3),
    "nearly flat rbf": partial(rbf, gamma=1e-4),
    "laplacian": partial(laplacian, gamma=0.3),
    "poly": partial(polynomial, gamma=0.3),
    "large": lambda X, Z: 1e9 * rbf(X, Z, gamma=0.3),
}


@pytest.fixture(params=SMOOTH)
def kernel(request):
    return SMOOTH[request.param]


@pytest.fixture(params=[True, False], ids=["centred", "as they are"])
def pair(request, kernel, rng):
    """The same standardised design twice: from the factor, and from the whole matrix."""
    X, weight = rng.standard_normal((120, 2)) + 3, rng.uniform(0.2, 3, 120)
    return tuple(
        rows.standardised(weight, request.param) for rows in (LowRankRows.of(kernel, X), DenseRows.of(kernel(X, X)))
    )


def none_ahead() -> np.ndarray:
    return np.empty(0, dtype=np.intp)


def assert_near(found, expected, name=""):
    """Equal but for the tolerance: 30 × 1e-6 of the largest, because columns may vary less than the kernel."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=3e-5 * np.abs(expected).max(), err_msg=name)


def test_every_reduction_is_that_of_the_whole_matrix(pair, rng):
    low, dense = pair
    n, m = dense.n_rows, dense.n_columns
    assert (low.n_rows, low.n_columns) == (n, m)
    per_row, several, weights, root = (rng.standard_normal(size) for size in (n, (n, 3), m, (4, m)))
    assert_near(low.scale, dense.scale, "scale")
    assert_near(low.mean, dense.mean, "mean")
    assert_near(low.project(per_row), dense.project(per_row), "project, vector")
    assert_near(low.project(several), dense.project(several), "project")
    assert_near(low.predict(weights), dense.predict(weights), "predict")
    assert_near(low.row_variance(root), dense.row_variance(root), "row_variance")
    assert_near(low.column_square(), dense.column_square(), "column_square")
    for ahead in (none_ahead, lambda: np.array([2, 0, 4])):
        for j in (4, 1, 4):
            assert_near(low.gram_column(j, ahead), dense.gram()[:, j], "gram_column")


@pytest.mark.parametrize("change", ["centred", "weighted", "unweighted"])
def test_other_weights_and_centres_are_those_of_the_whole_matrix(pair, change, rng):
    argument = [] if change == "unweighted" else [rng.uniform(0.1, 2, pair[0].n_rows)]
    t = rng.standard_normal(pair[0].n_rows)
    pair[0].column_square()  # what was computed with the old weights must not be used again
    pair[0].gram_column(3, none_ahead)
    low, dense = (getattr(rows, change)(*argument) for rows in pair)
    assert_near(low.project(t), dense.project(t), "project")
    assert_near(low.column_square(), dense.column_square(), "column_square")
    assert_near(low.gram_column(3, none_ahead), dense.gram()[:, 3], "gram_column")
    which = np.array([5, 2])
    assert_near(low.columns(which), dense.columns(which), "columns")


def test_kept_columns_are_true_kernel_columns(kernel, rng):
    X, weight = rng.standard_normal((60, 2)), rng.uniform(0.2, 3, 60)
    rows = LowRankRows.of(kernel, X, tol=1e-2).standardised(weight, centre=True)
    which = np.array([7, 3, 40])
    K = kernel(X, X[which])
    Phi = np.sqrt(weight)[:, None] * (K - np.average(K, axis=0, weights=weight)) / rows.scale[which]
    for found in (rows.columns(which), rows.keep(which).columns(slice(None))):
        # what is left after the mean is taken out may be 1e-4 of the column, and has that much fewer digits
        np.testing.assert_allclose(found, Phi, rtol=0, atol=1e-11 * np.abs(Phi).max())
    assert_near(rows.exact(which).mean, np.average(K, axis=0, weights=weight))


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
def test_the_factor_is_as_exact_as_asked_and_no_longer_than_needed(kernel, tol, rng):
    X = rng.standard_normal((200, 2))
    K = kernel(X, X)
    L, _, residual, _ = pivoted_cholesky(kernel, X, tol)
    first = np.argmax(np.diag(K))
    spread = (np.diag(K) - K[first] ** 2 / K[first, first]).max()
    rounding = 100 * np.finfo(float).eps * np.diag(K).max()
    assert np.abs(K - L @ L.T).max() <= tol * spread + rounding
    np.testing.assert_allclose(residual, np.maximum(np.diag(K - L @ L.T), 0), rtol=0, atol=rounding)
    # no factor can have fewer columns than there are eigenvalues above N × the residual
    enough = (np.linalg.eigvalsh(K) > tol * spread / 200).sum()
    assert L.shape[1] <= enough


def friedman(n, d, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    truth = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    y = truth + rng.standard_normal(n)
    return X, (y - y.mean()) / y.std()


def searched_and_exact(rows, t):
    """A model by search, then the same anew on true kernel columns."""
    settings = Settings(1e-4, 5000)
    problem = LeastSquares(design=rows, t=t, n_weighted=float(len(t)), flat_intercept=True)
    found = solve(problem, "sequential", settings).solution
    exact = replace(problem, design=DenseRows.of(rows.columns(found.active)))
    start = Solution(np.arange(len(found.active)), found.alpha, found.noise)
    result = solve(exact, "sequential", settings, start=start)
    return set(found.active[result.active]), result


@pytest.mark.parametrize(("n", "d", "rank"), [(400, 5, 200), (500, 7, 460), (700, 7, 560)])
def test_the_search_ends_at_the_same_model(n, d, rank):
    """Not on all data: where two neighbours are nearly tied, the error of the factor may decide between them.

    With more than 512 rows columns that have little outside the model may enter too, and ties are more frequent.
    """
    X, t = friedman(n, d)
    kernel, weight = partial(rbf, gamma=0.2), np.ones(n)
    low_rows = LowRankRows.of(kernel, X)
    assert low_rows.rank < rank
    low, low_result = searched_and_exact(low_rows.standardised(weight, centre=True), t)
    dense, dense_result = searched_and_exact(DenseRows.of(kernel(X, X)).standardised(weight, centre=True), t)
    assert len(dense) > 10
    assert len(low ^ dense) <= max(0.1 * len(dense), 2)  # one pair of neighbours, or a tenth
    # A neighbour in the place of another changes the evidence by this much at most.
    assert low_result.log_evidence == pytest.approx(dense_result.log_evidence, abs=0.1)


def test_two_classes_are_searched_as_on_the_whole_matrix(rng):
    X = rng.standard_normal((150, 2))
    t = (np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.standard_normal(150) > 0).astype(float)
    kernel, ones = partial(rbf, gamma=0.3), np.ones(150)
    found = []
    for rows in (LowRankRows.of(kernel, X), DenseRows.of(kernel(X, X))):
        standard = rows.standardised(ones, centre=True).unweighted()
        problem = Problem(design=standard, t=t, weight=ones, likelihood=Bernoulli(), prior=ARD())
        found.append(glm.find(problem, Settings(1e-4, 200)))
    assert set(found[0].active) == set(found[1].active)
    assert found[0].log_evidence == pytest.approx(found[1].log_evidence, abs=0.01)


def test_a_column_without_spread_becomes_zeros(rng):
    X = rng.standard_normal((30, 2))
    X[4] = 1e3  # far from all others; this kernel is one for it everywhere
    low = LowRankRows.of(
        lambda X, Z: 1 + X @ Z.T * (np.abs(X).max(axis=1) < 9)[:, None] * (np.abs(Z).max(axis=1) < 9), X
    )
    rows = low.standardised(np.ones(30), centre=True)
    assert np.isinf(rows.scale[4])
    assert np.isfinite(np.delete(rows.scale, 4)).all()
    assert rows.project(rng.standard_normal(30))[4] == 0
    assert rows.column_square()[4] == 0
    assert not rows.columns(np.array([4])).any()


def test_a_kernel_that_is_constant_has_rank_one():
    rows = LowRankRows.of(lambda X, Z: np.ones((len(X), len(Z))), np.ones((20, 1)))
    assert rows.rank == 1
    assert np.isinf(rows.standardised(np.ones(20), centre=True).scale).all()


@pytest.mark.parametrize(
    "kernel",
    [
        partial(sigmoid, gamma=0.5, coef0=0.0),
        partial(sigmoid, gamma=0.5, coef0=-1.0),
        lambda X, Z: -rbf(X, Z),
        lambda X, Z: 1.0 - rbf(X, Z),  # zeros on the diagonal
        lambda X, Z: np.abs(X[:, :1] - Z[:, 0]) + (X[:, :1] == Z[:, 0]),
    ],
)
def test_a_kernel_that_is_not_positive_definite_is_refused(kernel, rng):
    with pytest.raises(NotLowRank, match=r"not positive definite.*DenseRows"):
        LowRankRows.of(kernel, rng.standard_normal((80, 3)))


def test_candidates_other_than_the_rows_are_refused(rng):
    X = rng.standard_normal((20, 2))
    assert LowRankRows.of(rbf, X, X.copy()).n_columns == 20
    with pytest.raises(NotLowRank, match="candidates"):
        LowRankRows.of(rbf, X, X[:5])


def test_a_kernel_that_is_too_narrow_is_refused(rng, monkeypatch):
    monkeypatch.setattr(lowrank, "MAX_BYTES", 8 * 300 * 100)
    X = rng.standard_normal((300, 5))
    assert LowRankRows.of(partial(rbf, gamma=1e-3), X).rank <= 100
    with pytest.raises(NotLowRank, match="smaller gamma"):
        LowRankRows.of(partial(rbf, gamma=5.0), X)


@pytest.mark.parametrize("name", sorted(set(KERNELS) - {"sigmoid"}))
def test_every_definite_kernel_of_the_register_is_taken(name, rng):
    X = rng.standard_normal((50, 2))
    L = LowRankRows.of(KERNELS[name], X).L
    np.testing.assert_allclose(L @ L.T, KERNELS[name](X, X), atol=1e-5 * KERNELS[name](X, X).max())


def test_the_matrix_is_never_there(rng, monkeypatch):
    monkeypatch.setattr(lowrank, "MAX_BYTES", 8 * 3000 * 300)
    X = rng.uniform(size=(3000, 2))
    tracemalloc.start()
    rows = LowRankRows.of(partial(rbf, gamma=1.0), X).standardised(np.ones(3000), centre=True)
    rows.gram_column(5, none_ahead)
    rows.project(np.ones(3000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # the factor with its 300 columns at most, a few blocks and kernel columns: a half of the 72 MB of the matrix
    assert peak < 8 * 3000**2 / 2
