"""The kernel width γ of largest evidence, without cross-validation.

The evidence is that of a Gaussian process with the kernel as its covariance (engine/process.py), in which all kernel
columns have one common prior. As a function of γ it is smooth, and each γ costs one eigenvalue decomposition. The
evidence of a *sparse* model on the same columns is a poor judge of widths: it depends on the way of the search, and it
does not account for the choice among columns, which favours narrow kernels (docs/rvm.md).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist

from sparsebayes.core import prices
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.engine.process import Signal, Spectrum

GRID_FACTOR = 4.0
"""Ratio of neighbouring γ on the grid: the range of the kernel changes by two."""
PRECISION = 0.1
"""Precision of log γ. A kernel whose γ is 10 % off predicts the same."""
MIN_EXPONENT = 0.1
"""At the smallest γ the exponent γd of the two farthest rows: the kernel is then a straight line to 5 %."""
NEIGHBOURS = 10
"""At the largest γ the exponent γd is one for a row and its neighbour of this rank (or of a tenth of the rows). With
fewer neighbours in reach a kernel column fits single rows."""
SAMPLE_ROWS = 400
"""Rows from which the width is found. Their eigenvalue decomposition takes 30 ms."""


@dataclass(frozen=True)
class VectorFit:
    """A model on kernel columns, as it is compared with others and continued on other columns of the same centres."""

    objective: float
    """The log evidence, less the prices that the search charged."""
    active: IntArray
    """The kept candidates, in the order of `scales`."""
    scales: FloatArray
    """log α of their weights for columns as they are (not standardised); for regression then log σ², for target t."""

    @property
    def noise(self) -> float:
        """σ² of a regression."""
        return float(np.exp(self.scales[-1]))


class Sample(NamedTuple):
    """Distinct rows, each with its weight and the means of its targets."""

    X: FloatArray
    weight: FloatArray
    T: FloatArray

    @classmethod
    def of(cls, X: FloatArray, T: FloatArray, weight: FloatArray, size: int = SAMPLE_ROWS) -> "Sample":
        """All distinct rows, or `size` of them.

        Equal rows are merged, and what varies among them does not count. Otherwise copies in a table would be evidence
        for a kernel that sees single rows (in the red wines of the Vinho Verde set every sixth row is a copy). Rows are
        taken evenly in the order of their distance from the centre, which does not depend on the order of the rows.
        """
        distinct, point = np.unique(X, axis=0, return_inverse=True)
        point = point.ravel()
        total = np.asarray(np.bincount(point, weight), np.float64)
        means = np.zeros((len(distinct), T.shape[1]))
        np.add.at(means, point, (weight / total[point])[:, None] * T)
        order = np.argsort((distinct**2).sum(axis=1), kind="stable")
        which = order[np.linspace(0, len(order) - 1, min(len(order), size)).astype(np.intp)]
        return cls(distinct[which], total[which], means[which])

    def spectrum(self, K: FloatArray, flat_intercept: bool) -> Spectrum:
        """The kernel matrix of these rows with their targets."""
        return Spectrum.of(K, self.weight, self.T, flat_intercept)


class Choice(NamedTuple):
    """A family of kernels, and the γ within it."""

    family: int
    gamma: float


def best_width(signals: Sequence[Callable[[float], Signal]], bounds: Sequence[tuple[float, float]]) -> Choice:
    """The kernel of largest evidence: the best on the grids of all families, then between its neighbours.

    `signals` are functions of γ, one for each family, and `bounds` the ranges of γ.
    """
    grids = [_grid(*each) for each in bounds]
    losses = [[-signal(gamma).log_evidence for gamma in grid] for signal, grid in zip(signals, grids, strict=True)]
    family = int(np.argmin([min(each) for each in losses]))
    grid, signal, first = grids[family], signals[family], int(np.argmin(losses[family]))
    around = np.log([grid[max(first - 1, 0)], grid[min(first + 1, len(grid) - 1)]])
    found = minimize_scalar(
        lambda x: -signal(float(np.exp(x))).log_evidence, bounds=around, method="bounded", options={"xatol": PRECISION}
    )
    return Choice(family, float(np.exp(found.x)) if found.fun < losses[family][first] else grid[first])


def _grid(low: float, high: float) -> list[float]:
    """From end to end, with ratios of at most `GRID_FACTOR`."""
    steps = max(1, int(np.ceil(np.log(high / low) / np.log(GRID_FACTOR))))
    return [float(each) for each in np.geomspace(low, high, steps + 1)]


def choice_price(X: FloatArray, kernel: Callable[[FloatArray, FloatArray], FloatArray]) -> float:
    """What the best of many useless kernel columns would seem to be worth (core/prices.py), from some of the rows."""
    rows = _sample_rows(X)
    return prices.choice_price(kernel(rows, rows))


def _sample_rows(X: FloatArray, size: int = 2000) -> FloatArray:
    """At most `size` rows. The kernel matrix of 2,000 takes 32 MB."""
    return X[np.linspace(0, len(X) - 1, min(len(X), size)).astype(np.intp)]


def distance_bounds(X: FloatArray, metric: str = "sqeuclidean", *, centred: bool = True) -> tuple[float, float]:
    """The range of γ in which a kernel exp(-γd) can tell distinct rows apart and still sees more than single rows.

    From nearly a straight line between the farthest rows to e⁻¹ between a typical row and its tenth neighbour. Without
    a flat intercept columns are not `centred`: those of a kernel wider than the data would all be constant.
    `metric` is "sqeuclidean" for the rbf kernel and "cityblock" for the Laplacian.
    """
    if len(X) < 2:
        raise ValueError("gamma cannot be chosen by evidence: all rows of X are the same; set gamma to a number")
    distance = cdist(X, X, metric)
    rank = max(1, min(NEIGHBOURS, len(X) // 10))
    neighbour = np.partition(distance, rank, axis=1)[:, rank]  # rank 0 is the row itself
    least = MIN_EXPONENT if centred else 1.0
    low, high = least / float(distance.max()), 1 / float(np.median(neighbour))
    return min(low, high), high
