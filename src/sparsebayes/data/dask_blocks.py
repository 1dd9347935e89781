"""Rows of Dask collections: statistics go to the blocks, and only sums come back."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import dask
import numpy as np

from sparsebayes.core.arrays import library_of
from sparsebayes.core.statistics import Block, Statistic
from sparsebayes.core.threads import blas
from sparsebayes.core.types import IntArray
from sparsebayes.data.blocks import ROWS, _precise, added

FAN_IN = 16
"""Results that one task adds."""

S = TypeVar("S")


@dataclass(frozen=True)
class DaskBlocks:
    """Delayed blocks: each is a task of the cluster, or of the local scheduler."""

    parts: list[tuple[Any, ...]]
    """What each block is made of, delayed."""
    n_features: int
    unpacked: Callable[..., tuple[Any, Any, Any]]
    """X, y and weight (or None) of a part, on the worker. A task of its own would double the number of tasks."""
    feature_names: Sequence[str] | None = None
    dtype: Any = np.float64

    def reduce(self, statistic: Statistic[S], columns: IntArray | None = None) -> S:
        """A statistic of all rows, summed on the workers."""
        # One object for all tasks: it goes to each worker once, and Dask does not look for collections in it.
        one, asked = dask.delayed(of_block, pure=False), dask.delayed((statistic, columns), traverse=False, pure=False)
        layer = [one(asked, self.unpacked, k, self.dtype, *part) for k, part in enumerate(self.parts)]
        add = dask.delayed(added, pure=False)
        while len(layer) > 1:
            layer = [add(layer[i : i + FAN_IN]) for i in range(0, len(layer), FAN_IN)]
        found: S = layer[0].compute()
        return found

    def first(self) -> Block:
        """The first rows."""
        return Block(*dask.delayed(_head)(self.unpacked, self.dtype, *self.parts[0]).compute())


def _head(unpacked: Callable[..., tuple[Any, Any, Any]], dtype: Any, *part: Any) -> tuple[Any, Any, Any]:
    X, y, weight = unpacked(*part)
    return np.asarray(X[:ROWS], dtype=dtype), np.asarray(y[:ROWS]), None if weight is None else weight[:ROWS]


def of_block(
    asked: tuple[Statistic[S], IntArray | None],
    unpacked: Callable[..., tuple[Any, Any, Any]],
    k: int,
    dtype: Any,
    *part: Any,
) -> S:
    """A statistic of some columns of one chunk, a few thousand rows at a time; runs on a worker."""
    (statistic, columns), (X, y, weight) = asked, unpacked(*part)
    X = X if columns is None else np.asarray(X)[:, columns]

    def pieces() -> Any:
        for start in range(0, max(len(X), 1), ROWS):
            rows = slice(start, start + ROWS)
            where = f"block {k} (of Dask, from its row {start})"
            block = Block(X[rows], y[rows], None if weight is None else weight[rows], where)
            yield statistic.of(_precise(block, dtype))

    with blas().limit(limits=1):
        found: S = added(pieces())
        return found


def dask_blocks(
    source: Any, y: Any, target: str | None, weight: Any, features: Sequence[str] | None, *, single: bool
) -> DaskBlocks:
    """Blocks of a Dask array with its targets, or of a Dask dataframe."""
    dtype = np.float32 if single else np.float64
    if hasattr(source, "to_delayed") and hasattr(source, "columns"):
        if target is None and y is not None:
            source, target = source.assign(**{"": y}), ""
        if target is None:
            raise ValueError("target is missing: name the column to be predicted")
        names = list(features or [name for name in source.columns if name not in (target, weight)])
        numbers = source.dtypes
        texts = [name for name in names if getattr(numbers[name], "kind", "O") not in "biuf"]
        if texts:
            raise TypeError(f"column {texts[0]!r} has type {numbers[texts[0]]}: features must be numbers")
        split = partial(_of_frame, names=names, target=target, weight=weight)
        return DaskBlocks([(part,) for part in source.to_delayed()], len(names), split, names, dtype)
    return _of_arrays(source, y, weight, dtype)


def _of_frame(frame: Any, names: list[str], target: str, weight: str | None) -> tuple[Any, Any, Any]:
    return frame[names].to_numpy(), frame[target].to_numpy(), None if weight is None else frame[weight].to_numpy()


def _of_chunks(X: Any, y: Any, weight: Any) -> tuple[Any, Any, Any]:
    return X, y, weight


def _of_arrays(X: Any, y: Any, weight: Any, dtype: Any) -> DaskBlocks:
    """Chunks of rows; those of y are made the same."""
    if y is None:
        raise ValueError("y is missing: arrays have their targets beside them")
    import dask.array as da

    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions; 2 are needed")
    if np.isnan(X.shape[0]):
        raise ValueError("the chunks of X have unknown lengths: call X.compute_chunk_sizes() first")
    X = X.rechunk({1: -1})
    chunks = X.chunks[0]

    def aligned(values: Any) -> Any:
        values = values if library_of(values) == "dask" else da.from_array(np.asarray(values), chunks=(chunks,))
        return values.rechunk({0: chunks, **({1: -1} if values.ndim > 1 else {})}).to_delayed().ravel()

    if y.shape[0] != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows and y has {y.shape[0]}")
    weights = [None] * len(chunks) if weight is None else aligned(weight)
    parts = list(zip(X.to_delayed().ravel(), aligned(y), weights, strict=True))
    return DaskBlocks(parts, int(X.shape[1]), _of_chunks, None, dtype)
