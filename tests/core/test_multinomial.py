"""The softmax's curvature in both shapes against matrices formed in full, and its averages against integrals."""

import numpy as np
import pytest
from scipy.linalg import helmert
from scipy.stats import norm

from sparsebayes.core.multinomial import (
    ByRows,
    ByWeights,
    ClassDesigns,
    averaged_probabilities,
    even_normal,
    lower_roots,
    softmax_probabilities,
)
from sparsebayes.core.predictive import quadrature
from sparsebayes.data.dense import DenseRows

N, D, C = 9, 5, 3


@pytest.fixture
def case(rng):
    """A design with other columns in each class, and P in full: row by row, from the definition of W."""
    X = rng.standard_normal((N, D))
    columns = (np.array([0, 1, 3, 4]), np.array([2]), np.array([0, 1, 2, 4]))
    design = ClassDesigns(tuple(DenseRows.of(X[:, which]) for which in columns), columns)
    alpha = np.exp(rng.normal(0, 2, 9))
    p = softmax_probabilities(2 * rng.standard_normal((N, C)))
    weight = rng.uniform(0.5, 3, N)
    precision = np.diag(alpha)
    for n in range(N):
        blocks = np.zeros((C, 9))
        for m, (c, j) in enumerate(zip(design.classes, design.features, strict=True)):
            blocks[c, m] = X[n, j]
        precision += weight[n] * blocks.T @ (np.diag(p[n]) - np.outer(p[n], p[n])) @ blocks
    shapes = ByWeights(design, p, weight, alpha), ByRows(design, p, weight, alpha, design.outers(1 / alpha))
    return design, precision, shapes


@pytest.mark.parametrize("shape", [0, 1], ids=["by weights", "by rows"])
def test_both_shapes_are_the_inverse_of_the_precision(shape, case, rng):
    design, precision, shapes = case
    inverse = shapes[shape]
    full = np.linalg.inv(precision)
    g = rng.standard_normal(9)
    np.testing.assert_allclose(inverse.solve(g), full @ g, rtol=1e-10, atol=1e-12)
    assert inverse.logdet == pytest.approx(-np.linalg.slogdet(precision)[1], rel=1e-12)
    diagonal, own, joint = inverse.roots()
    same = design.classes[:, None] == design.classes
    np.testing.assert_allclose(np.diag(diagonal) + joint.T @ joint - same * (own.T @ own), full, rtol=1e-9, atol=1e-12)
    assert inverse.jitter == 0


def test_a_design_predicts_projects_and_forgets_class_by_class(case, rng):
    design, _, _ = case
    w, residual = rng.standard_normal(9), rng.standard_normal((N, C))
    eta = design.predict(w)
    for c, (rows, part) in enumerate(zip(design.rows, design.split(w), strict=True)):
        np.testing.assert_allclose(eta[:, c], rows.X @ part)
    assert w @ design.project(residual) == pytest.approx(float((eta * residual).sum()))  # adjoint
    which = rng.random(9) < 0.5
    np.testing.assert_allclose(design.keep(which).predict(w[which]), design.predict(w * which))
    np.testing.assert_array_equal(design.keep(which).features, design.features[which])
    np.testing.assert_array_equal(design.keep(which).classes, design.classes[which])


def test_classes_with_the_same_columns_and_weights_share_an_outer_product(rng):
    rows = DenseRows.of(rng.standard_normal((4, 6)))
    design = ClassDesigns((rows, rows, rows), (np.arange(6),) * 3)
    weight = np.concatenate([np.ones(12), np.full(6, 2.0)])
    first, second, third = design.outers(weight)
    assert first is second
    np.testing.assert_allclose(third, 2 * rows.X @ rows.X.T)


def test_probabilities_survive_any_size_of_eta():
    p = softmax_probabilities(np.array([[1e4, 0.0, -1e4], [1e300, 1e300, 0.0], [-800.0, -801.0, -802.0]]))
    np.testing.assert_allclose(p[0], [1, 0, 0])
    np.testing.assert_allclose(p[1], [0.5, 0.5, 0])
    np.testing.assert_allclose(p[2], np.exp([0, -1, -2]) / np.exp([0, -1, -2]).sum())


@pytest.fixture
def latents(rng):
    def make(n, n_classes, size):
        L = size * rng.standard_normal((n, n_classes, n_classes))
        return size * rng.standard_normal((n, n_classes)), L @ L.transpose(0, 2, 1)

    return make


@pytest.mark.parametrize("size", [0.1, 1.0, 5.0])
def test_two_classes_are_the_logistic_integral_of_the_difference(size, latents):
    mean, covariance = latents(20, 2, size)
    v = covariance[:, 0, 0] + covariance[:, 1, 1] - 2 * covariance[:, 0, 1]
    p = averaged_probabilities(mean, covariance)
    np.testing.assert_allclose(p[:, 1], quadrature(mean[:, 1] - mean[:, 0], v), atol=1e-12)
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_the_general_average_would_do_for_two_classes_too(latents):
    """A third class that is never seen leaves two; this road does not use the logistic integral."""
    mean, covariance = latents(20, 2, 1.5)
    wider = np.zeros((20, 3, 3))
    wider[:, :2, :2] = covariance
    p = averaged_probabilities(np.column_stack([mean, np.full(20, -200.0)]), wider)
    np.testing.assert_allclose(p[:, :2], averaged_probabilities(mean, covariance), atol=1e-3)


@pytest.mark.parametrize(("size", "error"), [(0.3, 3e-4), (1.0, 5e-4), (3.0, 1e-3)])
def test_three_classes_against_a_grid(size, error, latents):
    mean, covariance = latents(15, 3, size)
    z = np.arange(-8, 8.01, 0.1)
    grid = np.stack(np.meshgrid(z, z), axis=-1).reshape(-1, 2)
    mass = norm.pdf(grid).prod(axis=1) * 0.01
    U = helmert(3)
    expected = [
        mass @ softmax_probabilities(m + grid @ np.linalg.cholesky(U @ cov @ U.T).T @ U)
        for m, cov in zip(mean, covariance, strict=True)
    ]
    np.testing.assert_allclose(averaged_probabilities(mean, covariance), expected, atol=error)


def test_the_average_is_deterministic_and_row_by_row(latents):
    mean, covariance = latents(300, 4, 1.0)
    p = averaged_probabilities(mean, covariance)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-14)
    assert (p >= 0).all()
    some = np.array([7, 299, 140])
    np.testing.assert_allclose(averaged_probabilities(mean[some], covariance[some]), p[some], rtol=1e-13)
    order = np.array([2, 0, 3, 1])
    again = averaged_probabilities(mean[:, order], covariance[:, order][:, :, order])
    np.testing.assert_allclose(again, p[:, order], atol=2e-3)


def test_without_variance_or_with_a_common_shift_the_average_is_plug_in(latents):
    mean, _ = latents(10, 4, 2.0)
    common = np.ones((10, 4, 4)) * 9.0  # η moves by the same in all classes: the softmax does not see it
    for covariance in (np.zeros((10, 4, 4)), common):
        np.testing.assert_allclose(averaged_probabilities(mean, covariance), softmax_probabilities(mean), atol=1e-7)


@pytest.mark.parametrize("rank", [0, 1, 2, 4])
@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_lower_roots_of_semi_definite_matrices(rank, size, rng):
    factor = size * rng.standard_normal((200, 4, rank)) * [[1], [1e3], [1], [0]]
    A = factor @ factor.transpose(0, 2, 1)
    L = lower_roots(A)
    assert (np.triu(L, 1) == 0).all()
    # Rounding, times how much the first columns magnify it where they are nearly parallel.
    np.testing.assert_allclose(L @ L.transpose(0, 2, 1), A, rtol=0, atol=1e-12 * (1e3 * size) ** 2 * 10)


def test_a_variance_that_is_rounding_is_left_out():
    """Its covariances are rounding too, and would be magnified by division with its root."""
    A = np.array([[[1e-28, 1e-11, 0], [1e-11, 1e6, 1e6], [0, 1e6, 1e6]]])
    np.testing.assert_allclose(lower_roots(A), [[[0, 0, 0], [0, 1e3, 0], [0, 1e3, 0]]], atol=1e-12)


@pytest.mark.parametrize("d", [2, 3, 9])
def test_nodes_look_normal(d):
    z = even_normal(2048, d)
    assert np.isfinite(z).all()
    assert np.abs(z.mean(axis=0)).max() < 0.01
    np.testing.assert_allclose(z.T @ z / 2048, np.eye(d), atol=0.05)
