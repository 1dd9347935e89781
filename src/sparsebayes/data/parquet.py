"""Rows of Parquet files, block by block (pyarrow)."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sparsebayes.core.statistics import Block
from sparsebayes.core.types import IntArray
from sparsebayes.data.blocks import ROWS, LocalBlocks

BUFFER = 2**16
"""Bytes of a column that are read from a file at a time."""


def arrow() -> Any:
    """The module pyarrow.parquet; raises ImportError with the command that installs it."""
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise ImportError("Parquet files need pyarrow: pip install 'sparsebayes[blocks]'") from None
    return parquet


def files_of(path: str | Path) -> list[Path]:
    """The file itself, or the Parquet files of a folder in the order of their names."""
    path = Path(path)
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    if not files:
        raise FileNotFoundError(f"{path} holds no file that ends in .parquet")
    return files


def parquet_blocks(
    path: str | Path,
    target: str,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    *,
    rows: int = ROWS,
    single: bool = False,
) -> LocalBlocks:
    """Rows of a Parquet file, or of all files of a folder; all columns but target and weight are features."""
    parquet, files = arrow(), files_of(path)
    schema = parquet.read_schema(files[0])
    known = list(schema.names)
    chosen = list(features or [name for name in known if name not in (target, weight)])
    for name in [*chosen, target, *([weight] if weight else [])]:
        if name not in known:
            raise ValueError(f"{files[0].name} has no column {name!r}; it has {known[:10]}")
    for file in files:
        _check_types(parquet.read_schema(file), chosen, file)
    read = partial(_parquet_rows, files, chosen, target, weight, rows, np.float32 if single else np.float64)
    return LocalBlocks(read, len(chosen), chosen, np.float32 if single else None)


def _check_types(schema: Any, features: list[str], file: Path) -> None:
    import pyarrow

    for name in features:
        if name not in schema.names:
            raise ValueError(f"{file.name} has no column {name!r}, which the first file has")
        kind, types = schema.field(name).type, pyarrow.types
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)):
            raise TypeError(f"column {name!r} of {file.name} has type {kind}: features must be numbers")


def _parquet_rows(
    files: list[Path],
    features: list[str],
    target: str,
    weight: str | None,
    rows: int,
    dtype: Any,
    columns: IntArray | None,
) -> Iterator[Block]:
    chosen = features if columns is None else [features[j] for j in columns]
    wanted = [*dict.fromkeys([*chosen, target, *([weight] if weight else [])])]
    for file in files:
        for k, (start, batch) in enumerate(_batches(file, rows, wanted)):
            where = f"file {file.name}, block {k} (from row {start})"
            yield _block(batch, chosen, target, weight, dtype, where)


def _batches(file: Path, rows: int, wanted: list[str]) -> Iterator[tuple[int, Any]]:
    """First row and rows of each batch. Row groups are read one by one: read ahead, a file would fill the memory."""
    start = 0
    with arrow().ParquetFile(file, pre_buffer=False, buffer_size=BUFFER) as source:
        for group in range(source.num_row_groups):
            for batch in source.iter_batches(rows, row_groups=[group], columns=wanted, use_threads=False):
                yield start, batch
                start += batch.num_rows


def _block(batch: Any, chosen: list[str], target: str, weight: str | None, dtype: Any, where: str) -> Block:
    """Columns of a batch as the rows of an array, so that each is copied as a whole."""
    held = np.empty((len(chosen), batch.num_rows), dtype=dtype)
    for row, name in zip(held, chosen, strict=True):
        row[:] = _numbers(batch, name, where)
    y = _numbers(batch, target, where)
    return Block(held.T, y, None if weight is None else _numbers(batch, weight, where), where, fresh=True)


def _numbers(batch: Any, name: str, where: str) -> Any:
    column = batch.column(name)
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise ValueError(f"column {name!r} has a missing value in {where}, row {row} of the block")
    return column.to_numpy(zero_copy_only=False)
