"""`read_blocks`: rows that do not fit into memory, from any source."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sparsebayes.core.arrays import library_of
from sparsebayes.data.blocks import Blocks, array_blocks, frame_blocks, iterator_blocks
from sparsebayes.data.parquet import parquet_blocks


def read_blocks(
    source: Any,
    y: Any = None,
    *,
    target: str | None = None,
    weight: Any = None,
    features: Sequence[str] | None = None,
    precision: str = "double",
) -> Blocks:
    """Rows to be read in passes, for `fit_blocks`.

    Parameters
    ----------
    source : path, array, LazyFrame, Dask collection or callable
        A Parquet file, or a folder of such files; a `.npy` file or memory map, with `y` beside it; a polars LazyFrame;
        a Dask array (with `y`) or dataframe; or a function that returns an iterator of blocks (X, y) or
        (X, y, weight), and that is called again for each pass.
    y : array or path, optional
        Targets of arrays.
    target : str, optional
        Name of the target's column in files and frames.
    weight : str or array, optional
        Column, or array, of row weights.
    features : sequence of str, optional
        Columns that are features; by default all but `target` and `weight`.
    precision : {"double", "single"}, default="double"
        Precision of the products within a block of some thousand rows. "single" is faster and keeps about six digits;
        between blocks sums are in double precision.
    """
    if precision not in ("double", "single"):
        raise ValueError(f"precision={precision!r} must be 'double' or 'single'")
    single = precision == "single"
    if library_of(source).startswith("dask"):
        from sparsebayes.data.dask_blocks import dask_blocks

        return dask_blocks(source, y, target, weight, features, single=single)
    if isinstance(source, str | Path) and Path(source).suffix != ".npy":
        return parquet_blocks(source, _named(target), weight, features, single=single)
    if library_of(source) == "polars":
        return frame_blocks(source.lazy(), _named(target), weight, features, single=single)
    if callable(source):
        return iterator_blocks(source, single=single)
    if y is None:
        raise ValueError("y is missing: arrays have their targets beside them")
    return array_blocks(_mapped(source), _mapped(y), None if weight is None else _mapped(weight), single=single)


def _named(target: str | None) -> str:
    if target is None:
        raise ValueError("target is missing: name the column to be predicted")
    return target


def _mapped(source: Any) -> Any:
    return np.load(source, mmap_mode="r") if isinstance(source, str | Path) else source
