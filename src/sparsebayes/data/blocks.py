"""Rows that are read block by block, again for each pass: from files, memory maps, iterators and graphics cards."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from sparsebayes.core.arrays import on_device, to_numpy
from sparsebayes.core.statistics import Block, Statistic
from sparsebayes.core.threads import blas
from sparsebayes.core.types import FloatArray, IntArray

ROWS = 8192
"""Rows of a block: with float32 and some tens of columns it stays in the cache."""
DEVICE_NUMBERS = 2**27
"""Numbers of a block on a graphics card: 1 GB in double precision."""
MERGE = 64
"""Results of 64 blocks are added first, and then these sums, so that rounding errors do not pile up."""

S = TypeVar("S")
Rows = Callable[[IntArray | None], Iterator[Block]]
"""Starts a pass over the rows; of some of the columns, or of all."""


class Blocks(Protocol):
    """Rows in blocks, as every pass sees them."""

    @property
    def feature_names(self) -> Sequence[str] | None:
        """Names of the columns of X, where they have any."""

    @property
    def n_features(self) -> int:
        """Columns of X."""

    def reduce(self, statistic: Statistic[S], columns: IntArray | None = None) -> S:
        """A statistic of all rows, of some of the columns."""

    def first(self) -> Block:
        """The first block."""


@dataclass(frozen=True)
class LocalBlocks:
    """Blocks that this process reads one after the other."""

    rows: Rows
    n_features: int
    feature_names: Sequence[str] | None = None
    dtype: Any = None
    """Precision of the products within a block; None: double."""

    def reduce(self, statistic: Statistic[S], columns: IntArray | None = None) -> S:
        """A statistic of all rows. The products are small: several BLAS threads would be slower than one."""
        with blas().limit(limits=1):
            return added(statistic.of(block) for block in self.read(columns))

    def read(self, columns: IntArray | None = None) -> Iterator[Block]:
        """One pass over the rows, in the precision of the products."""
        for block in self.rows(columns):
            yield block if on_device(block.X) else _precise(block, self.dtype or np.float64)

    def first(self) -> Block:
        """The first block."""
        for block in self.read():
            return block
        raise ValueError("there are no rows")


def added(parts: Iterable[S]) -> S:
    """The sum of all results, in groups."""
    groups: list[Any] = []
    group: Any = None
    for count, part in enumerate(parts):
        group = part if group is None else group + part
        if count % MERGE == MERGE - 1:
            groups.append(group)
            group = None
    groups += [] if group is None else [group]
    if not groups:
        raise ValueError("there are no rows")
    total: S = sum(groups[1:], start=groups[0])
    return total


def _precise(block: Block, dtype: Any) -> Block:
    """Rows as numbers of the given precision."""
    try:
        X = np.asarray(block.X, dtype=dtype)
        weight = None if block.weight is None else np.asarray(block.weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"X holds values that are no numbers in {block.where}: {error}") from None
    if weight is not None and (weight < 0).any():
        raise ValueError(f"sample_weight is negative in {block.where}, row {int(np.argmax(weight < 0))} of the block")
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions in {block.where}; 2 are needed")
    return block._replace(X=X, t=np.asarray(block.t), weight=weight)


def array_blocks(X: Any, y: Any, weight: Any = None, *, rows: int | None = None, single: bool = False) -> LocalBlocks:
    """Rows of arrays or memory maps. Arrays on a graphics card stay there."""
    n = X.shape[0]
    if y.shape[0] != n or (weight is not None and len(weight) != n):
        lengths = (n, y.shape[0]) if weight is None else (n, y.shape[0], len(weight))
        raise ValueError(f"X, y and sample_weight have different numbers of rows: {lengths}")
    weight = None if weight is None else to_numpy(weight)
    if rows is None:
        rows = max(1, DEVICE_NUMBERS // max(1, X.shape[1])) if on_device(X) else ROWS

    def read(columns: IntArray | None) -> Iterator[Block]:
        for k, start in enumerate(range(0, n, rows)):
            part = slice(start, start + rows)
            block = X[part] if columns is None else X[part][:, _index(columns, X)]
            yield Block(block, y[part], None if weight is None else weight[part], f"block {k} (from row {start})")

    return LocalBlocks(read, int(X.shape[1]), dtype=np.float32 if single else None)


def _index(columns: IntArray, X: Any) -> Any:
    return columns.tolist() if on_device(X) else columns


def iterator_blocks(start: Callable[[], Iterable[tuple[Any, ...]]], *, single: bool = False) -> LocalBlocks:
    """Blocks (X, y) or (X, y, weight) of iterators: `start` is called at the beginning of each pass."""
    if not callable(start):
        raise TypeError(
            "give a function that starts a pass over the blocks, such as `lambda: read(...)`: an iterator that was "
            "used up cannot be read again"
        )
    first = next(iter(start()), None)
    if first is None:
        raise ValueError("the iterator has no blocks")
    width = np.shape(first[0])[1]

    def read(columns: IntArray | None) -> Iterator[Block]:
        for k, parts in enumerate(start()):
            X, where = np.asarray(parts[0]), f"block {k}"
            if X.ndim != 2 or X.shape[1] != width or len(X) != len(parts[1]):
                raise ValueError(
                    f"{where} has X of shape {X.shape} and {len(parts[1])} targets; expected {width} columns and a "
                    "target for each row"
                )
            weight = np.asarray(parts[2]) if len(parts) > 2 and parts[2] is not None else None
            yield Block(X if columns is None else X[:, columns], np.asarray(parts[1]), weight, where)

    return LocalBlocks(read, int(width), dtype=np.float32 if single else None)


def frame_blocks(
    frame: Any, target: str, weight: str | None = None, features: Sequence[str] | None = None, *, single: bool = False
) -> LocalBlocks:
    """Rows of a polars LazyFrame, which is collected block by block."""
    schema = frame.collect_schema()
    features = list(features or [name for name in schema.names() if name not in (target, weight)])
    missing = [name for name in [*features, target, *([weight] if weight else [])] if name not in schema.names()]
    if missing:
        raise ValueError(f"the frame has no column {missing[0]!r}; it has {schema.names()[:10]}")
    texts = [name for name in features if not (schema[name].is_numeric() or str(schema[name]) == "Boolean")]
    if texts:
        raise TypeError(f"column {texts[0]!r} has type {schema[texts[0]]}: features must be numbers")
    return LocalBlocks(
        partial(_frame_rows, frame, list(features), target, weight), len(features), features,
        np.float32 if single else None,
    )  # fmt: skip


def _frame_rows(
    frame: Any, features: list[str], target: str, weight: str | None, columns: IntArray | None
) -> Iterator[Block]:
    chosen = features if columns is None else [features[j] for j in columns]
    wanted = frame.select([*dict.fromkeys([*chosen, target, *([weight] if weight else [])])])
    start = 0
    for k, part in enumerate(wanted.collect_batches(chunk_size=ROWS, maintain_order=True)):
        where = f"block {k} (from row {start})"
        nulls = [name for name in part.columns if part[name].null_count()]
        if nulls:
            row = int(part[nulls[0]].is_null().arg_true()[0])
            raise ValueError(f"column {nulls[0]!r} has a missing value in {where}, row {row} of the block")
        X = part.select(chosen).to_numpy(order="fortran")
        yield Block(X, part[target].to_numpy(), None if weight is None else part[weight].to_numpy(), where)
        start += len(part)


def origin_of(X: Any) -> FloatArray:
    """A point near the means: those of the first block, which keep the digits of columns far from zero."""
    if on_device(X) and X.shape[0]:
        return np.asarray(to_numpy(X.mean(0)), dtype=np.float64)
    values = np.asarray(to_numpy(X))
    return np.asarray(values.mean(axis=0, dtype=np.float64)) if len(values) else np.zeros(values.shape[1])
