"""Moments of kernel columns where the rows are: kernel values never leave the graphics card."""

from typing import Any

import numpy as np

from sparsebayes.core.arrays import like, namespace_of, to_numpy
from sparsebayes.core.moments import Moments
from sparsebayes.core.statistics import Block, rounded_moments
from sparsebayes.core.types import FloatArray

ROWS_AT_ONCE = 2**14
"""Rows whose kernel values are made at a time: with 5,000 centres 650 MB."""


def rbf(X: Any, Z: Any, gamma: float) -> Any:
    """exp(-γ ‖x - z‖²) for all pairs of rows, on their device."""
    xp = namespace_of(X)
    square = (X * X).sum(1)[:, None] + (Z * Z).sum(1)[None, :] - 2 * (X @ Z.T)
    return xp.exp(-gamma * xp.where(square > 0, square, 0 * square))


def kernel_moments(X: Any, y: Any, Z: Any, gamma: float, rows_at_once: int = ROWS_AT_ONCE) -> Moments:
    """Moments of [k(X, Z), y], a few thousand rows at a time; (M + 1)² numbers come back for each."""
    first = rbf(X[:rows_at_once], Z, gamma)
    origin: FloatArray = np.append(to_numpy(first.mean(0)), np.mean(to_numpy(y[:rows_at_once])))
    total = None
    for start in range(0, X.shape[0], rows_at_once):
        rows = slice(start, start + rows_at_once)
        block = Block(rbf(X[rows], Z, gamma), y[rows], None, f"rows from {start}", fresh=True)
        part = DeviceSums.of(block, origin)
        total = part if total is None else total + part
    assert total is not None
    return total.moments(origin)


class DeviceSums:
    """Sums of products that stay on the device until the last block."""

    def __init__(self, n: float, sums: Any, products: Any) -> None:
        self.n, self.sums, self.products = n, sums, products

    @classmethod
    def of(cls, block: Block, origin: FloatArray) -> "DeviceSums":
        """Of one block of kernel values, which is changed in place."""
        K, xp = block.X, namespace_of(block.X)
        K -= like(origin[:-1], K)
        t = (block.t - origin[-1])[:, None]
        cross = K.T @ t
        products = xp.concatenate([xp.concatenate([K.T @ K, cross], 1), xp.concatenate([cross.T, t.T @ t], 1)], 0)
        return cls(float(K.shape[0]), xp.concatenate([K.sum(0), t.sum(0)], 0), products)

    def __add__(self, other: "DeviceSums") -> "DeviceSums":
        return DeviceSums(self.n + other.n, self.sums + other.sums, self.products + other.products)

    def moments(self, origin: FloatArray) -> Moments:
        """As moments, in the computer's memory; all but the last step on the device, which is faster."""
        shift = self.sums / self.n
        scatter = self.products - self.n * (shift[:, None] * shift[None, :])
        parts = origin + to_numpy(shift), to_numpy(0.5 * (scatter + scatter.T)), to_numpy(self.products.diagonal())
        return rounded_moments(self.n, *parts, 1)
