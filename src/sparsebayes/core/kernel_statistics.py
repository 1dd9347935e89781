"""Statistics of blocks of rows for kernel models: a random sample, and sums over kernel columns."""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from sparsebayes.core.arrays import like, namespace_of, on_device, to_numpy
from sparsebayes.core.statistics import Block, Statistic, Total, check_finite
from sparsebayes.core.types import AnyArray, FloatArray

NUMBERS = 2**22
"""Kernel values that are held at a time: 32 MB."""
DEVICE_NUMBERS = 2**28
"""The same on a graphics card: 2 GB. The sums of each piece come back, so that few pieces are better."""

S = TypeVar("S")


@dataclass(frozen=True)
class Rows:
    """Some of the rows of all blocks, in the order of their random keys."""

    key: FloatArray
    X: FloatArray
    t: AnyArray
    weight: FloatArray
    size: int
    """Most rows that are kept."""

    def __add__(self, other: "Rows") -> "Rows":
        key, X, t, weight = (
            np.concatenate([getattr(rows, name) for rows in (self, other)]) for name in ("key", "X", "t", "weight")
        )
        return Rows(key, X, t, weight, self.size).first()

    def first(self) -> "Rows":
        """The rows with the smallest keys."""
        chosen = np.argsort(self.key, kind="stable")[: self.size]
        return Rows(self.key[chosen], self.X[chosen], self.t[chosen], self.weight[chosen], self.size)


@dataclass(frozen=True)
class RowSample:
    """A random sample of the rows, without replacement, by weight (Efraimidis and Spirakis 2006).

    Every row draws an exponential variable whose rate is its weight; the smallest win. So samples of blocks add up to a
    sample of all rows.
    """

    size: int
    seed: int
    labels: Any = None
    """Classes, sorted, whose rows are drawn at rates of their own."""
    rates: FloatArray | None = None
    """Rate of each class."""

    def of(self, block: Block) -> Rows:
        """Of one block. Its place is part of the seed, so that a pass can be repeated.

        All rows are checked here, because kernel values do not show where a missing value comes from.
        """
        t, n = to_numpy(block.t), block.X.shape[0]
        check_finite(float(block.X.sum()) + (float(t.sum()) if t.dtype.kind == "f" else 0.0), block)
        rng = np.random.default_rng([self.seed, zlib.crc32(block.where.encode())])
        weight = np.ones(n) if block.weight is None else np.asarray(block.weight, dtype=np.float64)
        rate = weight if self.rates is None else weight * self.rates[np.searchsorted(self.labels, t)]
        key = np.divide(rng.standard_exponential(n), rate, out=np.full(n, np.inf), where=rate > 0)
        chosen = np.argsort(key, kind="stable")[: self.size]
        chosen = chosen[np.isfinite(key[chosen])]
        X = to_numpy(block.X[chosen.tolist()] if on_device(block.X) else block.X[chosen])
        return Rows(key[chosen], np.asarray(X, dtype=np.float64), t[chosen], weight[chosen], self.size)


@dataclass(frozen=True)
class KernelColumns:
    """k(x, z) for every centre z; with a `factor` these columns times its transpose."""

    kernel: Callable[[FloatArray, FloatArray], FloatArray]
    centres: FloatArray
    factor: FloatArray | None = None

    def __call__(self, X: Any) -> Any:
        """The columns for rows in double precision, where they are."""
        K: Any = self.kernel(X, like(self.centres, X))
        return K if self.factor is None else K @ like(self.factor.T, X)


@dataclass(frozen=True)
class OnKernel(Generic[S]):
    """A statistic of kernel columns instead of features, some rows at a time, in double precision."""

    statistic: Statistic[S]
    columns: KernelColumns

    def of(self, block: Block) -> S:
        """Of one block."""
        X, t, weight = block.X, block.t, block.weight
        step = max(1, (DEVICE_NUMBERS if on_device(X) else NUMBERS) // max(1, len(self.columns.centres)))
        total: Any = None
        for start in range(0, max(1, X.shape[0]), step):
            rows = slice(start, start + step)
            columns = self.columns(namespace_of(X).asarray(X[rows], dtype=namespace_of(X).float64))
            part = Block(columns, t[rows], None if weight is None else weight[rows], block.where, fresh=True)
            found = self.statistic.of(part)
            total = found if total is None else total + found
        return total  # type: ignore[no-any-return]


@dataclass(frozen=True)
class HeldOutError:
    """By how much the squared error of a row, predicted from the others, exceeds the variance expected of it.

    In closed form, as in engine/leave_one_out.py: a row that leaves has the error r/(1 - h) and the variance
    σ² + v/(1 - h), with v the posterior variance of its mean and h = v/σ². One centre more or less is nothing here.
    """

    fit: Any
    """Linear in kernel columns (estimators/_linear.py)."""
    output: int = 0
    """Which of several targets."""

    def of(self, block: Block) -> Total:
        """Of one block of kernel columns."""
        fit, X = self.fit, block.X
        Phi = X - like(fit.basis.reference, X)
        if fit.basis.ones:
            Phi = namespace_of(X).concatenate([Phi, like(np.ones((X.shape[0], 1)), X)], 1)
        projected = Phi @ like(fit.root.T, X)
        spread = Phi**2 @ like(fit.diagonal, X) + fit.sign * (projected * projected).sum(1)
        mean, variance = (np.asarray(to_numpy(each)) for each in (Phi @ like(fit.mean, X), spread))
        t = np.asarray(to_numpy(block.t), dtype=np.float64).reshape(len(mean), -1)[:, self.output]
        weight = np.ones(len(t)) if block.weight is None else np.asarray(block.weight, dtype=np.float64)
        stays = np.maximum(1 - np.minimum(weight, 1.0) * variance / fit.noise_variance, np.finfo(np.float64).eps)
        excess = ((t - mean) / stays) ** 2 - fit.noise_variance - variance / stays
        return Total(float(weight.sum()), float(weight @ excess))
