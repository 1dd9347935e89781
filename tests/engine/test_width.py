"""The width of largest evidence against a fine grid; the rows that it is found from; and the price of a choice."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsebayes.core.kernels import KERNELS, rbf
from sparsebayes.engine.process import Signal, label_signal, regression_signal
from sparsebayes.engine.width import PRECISION, Sample, best_width, choice_price, distance_bounds


def two_inputs(n, seed):
    """Rows, a smooth target, and labels ±½."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(n)
    return X, (y - y.mean())[:, None], (y > 0)[:, None] - 0.5


def signal_at(sample, signal, kernel="rbf"):
    """The signal of a kernel on these rows as a function of γ."""
    return lambda gamma: signal(sample.spectrum(KERNELS[kernel](sample.X, sample.X, gamma=gamma), True))


def sample_of(X, T, weight=None, **size):
    return Sample.of(X, T, np.ones(len(X)) if weight is None else weight, **size)


# --- the search ---


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("kind", ["numbers", "labels"])
def test_the_width_is_that_of_a_fine_grid(kind, kernel):
    X, y, labels = two_inputs(60, 1)
    sample = sample_of(X, y if kind == "numbers" else labels)
    at = signal_at(sample, regression_signal if kind == "numbers" else label_signal, kernel)
    bounds = distance_bounds(sample.X, KERNELS[kernel].metric)
    grid = np.geomspace(*bounds, 200)
    values = [at(gamma).log_evidence for gamma in grid]
    family, gamma = best_width([at], [bounds])
    assert family == 0
    assert at(gamma).log_evidence > max(values) - 1e-2
    assert abs(np.log(gamma / grid[np.argmax(values)])) < 2 * PRECISION


def hill(gamma):
    """A signal whose evidence is largest at γ = 1."""
    return Signal(-(np.log(gamma) ** 2), np.ones(1), np.ones(1))


@pytest.mark.parametrize(("bounds", "best"), [((1e-5, 1e5), 1.0), ((1e-5, 0.01), 0.01), ((30.0, 1e5), 30.0)])
def test_the_width_is_the_top_or_a_bound(bounds, best):
    asked = []
    gamma = best_width([lambda gamma: asked.append(gamma) or hill(gamma)], [bounds]).gamma
    assert gamma == pytest.approx(best, rel=PRECISION)
    assert bounds[0] * (1 - 1e-9) <= min(asked)
    assert max(asked) <= bounds[1] * (1 + 1e-9)
    assert hill(gamma).log_evidence == max(hill(value).log_evidence for value in asked)


def test_few_widths_are_asked_for():
    asked = []
    best_width([lambda gamma: asked.append(gamma) or hill(gamma)], [(1e-3, 1e3)])
    assert len(asked) < 20


@pytest.mark.parametrize("best", [0, 1])
def test_the_family_of_kernels_is_that_of_largest_evidence(best):
    higher = [
        lambda gamma, k=k: hill(gamma)._replace(log_evidence=hill(gamma / 5).log_evidence + 9 * (k == best))
        for k in range(2)
    ]
    family, gamma = best_width(higher, [(1e-3, 1e3), (1e-2, 1e2)])
    assert family == best
    assert gamma == pytest.approx(5, rel=PRECISION)


def test_the_width_follows_the_units_of_the_data():
    X, y, _ = two_inputs(50, 2)
    widths = []
    for scale in (1.0, 1e3):
        sample = sample_of(scale * X, y / scale)
        widths.append(best_width([signal_at(sample, regression_signal)], [distance_bounds(sample.X)]).gamma)
    assert widths[1] == pytest.approx(1e-6 * widths[0], rel=1e-6)


# --- the rows ---


def test_equal_rows_are_merged():
    X = np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0], [3.0, 0.0]])
    T, weight = np.array([[1.0, 0.0], [2.0, 0.0], [4.0, 0.5], [5.0, 1.0]]), np.array([1.0, 1.0, 2.0, 0.5])
    sample = Sample.of(X, T, weight)
    assert_array_equal(sample.X, [[0.0, 0.0], [1.0, 2.0], [3.0, 0.0]])  # by their distance from the origin
    assert_array_equal(sample.weight, [1.0, 3.0, 0.5])
    assert_allclose(sample.T, [[2.0, 0.0], [3.0, 1 / 3], [5.0, 1.0]])


def test_copies_in_a_table_do_not_change_the_width():
    X, y, labels = two_inputs(60, 3)
    again = np.repeat(np.arange(60), 3)
    for T, signal in ((y, regression_signal), (labels, label_signal)):
        once = sample_of(X, T)
        copied = sample_of(X[again], T[again], np.full(180, 1 / 3))
        assert_allclose(copied.weight, 1.0)
        widths = [best_width([signal_at(each, signal)], [distance_bounds(each.X)]).gamma for each in (once, copied)]
        assert widths[1] == pytest.approx(widths[0], rel=1e-6)


def test_copies_are_no_evidence_for_a_narrow_kernel():
    """Pure noise in a table of which every row is there twice: a kernel that sees single rows would seem perfect."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(50, 1)), rng.standard_normal((50, 1))
    sample = sample_of(np.repeat(X, 2, axis=0), np.repeat(y, 2, axis=0))
    at = signal_at(sample, regression_signal)
    narrow, wide = at(1e9), at(1.0)
    assert abs(narrow.log_evidence - wide.log_evidence) < 3


@pytest.mark.parametrize("size", [400, 15])
def test_the_order_of_rows_and_the_size(size):
    X, y, _ = two_inputs(60, 4)
    order = np.random.default_rng(1).permutation(60)
    one, other = sample_of(X, y, size=size), sample_of(X[order], y[order], size=size)
    assert len(one.X) == min(size, 60)
    for ours, theirs in zip(one, other, strict=True):
        assert_array_equal(ours, theirs)


# --- bounds and prices ---


@pytest.mark.parametrize("n", [50, 400])
def test_the_price_of_a_choice_counts_different_columns(n):
    X = np.random.default_rng(0).uniform(size=(n, 2))
    centring = np.eye(n) - 1 / n
    for gamma in (0.1, 10.0, 1e3):
        values = np.linalg.eigvalsh(centring @ rbf(X, X, gamma=gamma) @ centring)
        r = 2 * np.log(values.sum() ** 2 / (values**2).sum())
        expected = max(0.5 * (r - 1 - np.log(r)), 0.0) if r > 1 else 0.0
        assert choice_price(X, partial(rbf, gamma=gamma)) == pytest.approx(expected, rel=1e-9)
    # As many different columns as there are degrees of freedom, when each sees itself alone.
    r = 2 * np.log(n - 1)
    assert choice_price(X, partial(rbf, gamma=1e9)) == pytest.approx(0.5 * (r - 1 - np.log(r)))
    assert choice_price(X, lambda X, Z: np.ones((len(X), len(Z)))) == 0


def test_bounds_come_from_the_distances():
    X = np.arange(11.0)[:, None]
    np.testing.assert_allclose(distance_bounds(X), (0.1 / 100, 1.0))
    np.testing.assert_allclose(distance_bounds(X, "cityblock"), (0.1 / 10, 1.0))
    np.testing.assert_allclose(distance_bounds(7 * X), (0.1 / 4900, 1 / 49))
    # most of a hundred points in a row have their tenth neighbour five steps away
    np.testing.assert_allclose(distance_bounds(np.arange(100.0)[:, None]), (0.1 / 99**2, 1 / 25))
    with pytest.raises(ValueError, match="set gamma"):
        distance_bounds(np.ones((1, 2)))
