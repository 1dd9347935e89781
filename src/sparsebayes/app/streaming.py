"""`sparsebayes fit` for Parquet files that are larger than a share of the memory, or on a Dask cluster.

A linear model is fitted by passes over blocks of rows. Every tenth block is held out, and one more pass tests the model
on them.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sparsebayes.app.columns import chosen
from sparsebayes.app.console import out, print_json, tell
from sparsebayes.app.errors import DataError, UsageError
from sparsebayes.app.targets import FEW
from sparsebayes.core.statistics import Block, Targets, Total
from sparsebayes.core.types import IntArray
from sparsebayes.data.blocks import LocalBlocks
from sparsebayes.data.parquet import arrow, files_of

SHARE = 0.25
"""Share of the machine's memory that a table may take before it is read block by block."""
HELD_OUT = 10
"""Every tenth block tests the model."""

SPARE = 4
"""Row groups for a sample have at least four times its rows, so that it is not one stretch of the file."""


@dataclass(frozen=True)
class Table:
    """A Parquet file or folder, by what its files say of themselves."""

    path: Path
    n_rows: int
    types: dict[str, Any]

    @classmethod
    def of(cls, data: str) -> "Table | None":
        """Of an argument of the command line; None where it is no Parquet file and no folder of them."""
        path = Path(data)
        if not (path.suffix == ".parquet" or (path.is_dir() and any(path.rglob("*.parquet")))) or not path.exists():
            return None
        parquet, files = arrow(), files_of(path)
        schema = parquet.read_schema(files[0])
        n_rows = sum(parquet.read_metadata(file).num_rows for file in files)
        return cls(path, n_rows, dict(zip(schema.names, schema.types, strict=True)))

    @property
    def size(self) -> int:
        """Bytes that it takes in memory, in double precision."""
        return 8 * self.n_rows * len(self.types)

    def numeric(self, name: str) -> bool:
        """Whether a column has numbers."""
        import pyarrow

        kind, types = self.types[name], pyarrow.types
        return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def memory() -> int:
    """Bytes of memory of this machine; where that is not known, 8 GiB."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 8 * 2**30


def is_large(table: Table) -> bool:
    """Whether it is read block by block, or sampled before it is read."""
    return table.size > SHARE * memory()


def drawn(data: str, sample: int, seed: int, folder: str) -> str:
    """The path of random row groups of a large table, a few times as many rows as are wanted; or the path given."""
    try:
        table = Table.of(data) if sample else None
    except ImportError:  # polars reads it all, which may be enough
        return data
    if table is None or not is_large(table):
        return data
    import pyarrow

    parquet = arrow()
    files = [parquet.ParquetFile(file, pre_buffer=False) for file in files_of(table.path)]
    groups = [(file, group) for file in files for group in range(file.num_row_groups)]
    parts: list[Any] = []
    for k in np.random.default_rng(seed).permutation(len(groups)):
        if sum(part.num_rows for part in parts) >= SPARE * sample:
            break
        file, group = groups[k]
        parts.append(file.read_row_group(group))
    found = Path(folder) / f"{table.path.stem}.parquet"
    parquet.write_table(pyarrow.concat_tables(parts), found)
    tell(f"{len(parts)} of {len(groups)} row groups of {table.path.name} were drawn at random (--sample)")
    return str(found)


def table_to_stream(data: str, dask: str, sample: int) -> Table | None:
    """The table, if it has to be read block by block; a sample of it need not be."""
    try:
        table = Table.of(data)
    except ImportError:
        return None
    if dask and table is None:
        raise UsageError("--dask needs a Parquet file or a folder of them")
    if table is None or sample or not (dask or is_large(table)):
        return None
    return table


@dataclass(frozen=True)
class Wish:
    """What the command line asks of a fit by passes."""

    target: str
    model: str
    task: str
    features: Sequence[str]
    exclude: Sequence[str]
    dask: str
    output: str | None
    as_json: bool
    parameters: dict[str, Any]


def refuse(**given: Any) -> None:
    """Options that need the rows in memory."""
    for option, value in given.items():
        if value:
            raise UsageError(f"--{option} needs the rows in memory: add --sample 100000 to fit a sample")


def fit_by_passes(table: Table, wish: Wish) -> bool:
    """Fit, test and show a linear model; says whether it converged."""
    if not wish.target:
        raise UsageError("name the column to predict: --target COLUMN")
    if wish.target not in table.types:
        raise DataError(f"--target '{wish.target}' is no column; the columns are {', '.join([*table.types][:10])}")
    names = chosen([*table.types], wish.features, wish.exclude, [wish.target])
    texts = [name for name in names if not table.numeric(name)]
    if texts:
        tell(f"left out, because they are not numbers: {', '.join(texts[:10])}{', …' * (len(texts) > 10)}")
    names = [name for name in names if name not in texts]
    if not names:
        raise DataError("no feature is left: none of the columns has numbers")
    tell(
        f"{table.path.name}: {table.n_rows:,} rows × {len(names)} features would take {table.size / 2**30:.1f} GiB; "
        f"read block by block{f' on {wish.dask}' if wish.dask else ''}, one tenth held out (--sample is faster)"
    )
    with ExitStack() as stack:
        train, test = _blocks(table, names, wish, stack)
        kind = _kind(table, wish, train)
        made = _model(kind, wish).fit_blocks(train)
        score = test.reduce(Score(_nameless(made), kind))
        spread = test.reduce(Score(None, kind)) if kind == "numbers" else None
    show(made, kind, score, spread, names, wish)
    return bool(made.converged_)


def _nameless(model: Any) -> Any:
    """The same model for arrays without names."""
    bare = copy(model)
    vars(bare).pop("feature_names_in_", None)
    return bare


def _blocks(table: Table, names: list[str], wish: Wish, stack: ExitStack) -> tuple[Any, Any]:
    """Rows to learn from and rows to test on."""
    from sparsebayes.data.read import read_blocks

    if wish.dask:
        try:
            import dask.dataframe as dd
            from distributed import Client
        except ImportError:
            raise UsageError("--dask needs Dask: pip install 'sparsebayes[dask]'") from None
        stack.enter_context(Client(wish.dask))
        frame = dd.read_parquet(str(table.path), columns=[*names, wish.target])
        blocks: Any = read_blocks(frame, target=wish.target, features=names)
        held = blocks.parts[HELD_OUT - 1 :: HELD_OUT] or blocks.parts[-1:]
        rest = [part for k, part in enumerate(blocks.parts) if k % HELD_OUT != HELD_OUT - 1]
        return replace(blocks, parts=rest or blocks.parts), replace(blocks, parts=held)
    blocks = read_blocks(table.path, target=wish.target, features=names)
    return replace(blocks, rows=Part(blocks, False)), replace(blocks, rows=Part(blocks, True))


@dataclass(frozen=True)
class Part:
    """Every tenth block, or all others."""

    blocks: LocalBlocks
    held_out: bool

    def __call__(self, columns: IntArray | None) -> Iterator[Block]:
        """A pass over them."""
        for k, block in enumerate(self.blocks.rows(columns)):
            if (k % HELD_OUT == HELD_OUT - 1) == self.held_out:
                yield block


def _kind(table: Table, wish: Wish, blocks: Any) -> str:
    """Numbers or classes, by the rule of tables in memory."""
    import pyarrow

    kind = table.types[wish.target]
    if wish.task != "auto":
        return "numbers" if wish.task == "regression" else "classes"
    if pyarrow.types.is_floating(kind):
        return "numbers"
    if not pyarrow.types.is_integer(kind):
        return "classes"
    try:
        found = blocks.reduce(Targets(FEW), np.empty(0, dtype=np.intp))
    except ValueError:
        return "numbers"
    return "classes" if len(found.values) <= FEW else "numbers"


def _model(kind: str, wish: Wish) -> Any:
    from sparsebayes import ARDRegressor, SparseLogisticRegression, VBLogisticRegression

    known: dict[str, Any] = {"slr": SparseLogisticRegression, "vb": VBLogisticRegression}
    if kind == "numbers":
        known = {"ard": ARDRegressor}
    if wish.model != "auto" and wish.model not in known:
        raise UsageError(f"--model {wish.model} needs the rows in memory; choose {' or '.join(known)}, or add --sample")
    cls: Any = known.get(wish.model) or next(iter(known.values()))
    return cls(**{"verbose": 0, **wish.parameters})


@dataclass(frozen=True)
class Score:
    """Rows, and their squared errors or how many classes are right; without a model the spread of the target."""

    model: Any
    kind: str

    def of(self, block: Block) -> Any:
        """Of one block."""
        from sparsebayes.core.moments import Moments

        if self.model is None:
            return Moments.of(np.zeros((len(block.t), 1)), block.t)
        found = self.model.predict(np.asarray(block.X, dtype=np.float64))
        right = (found == block.t) if self.kind == "classes" else (found - np.asarray(block.t, dtype=np.float64)) ** 2
        return Total(float(len(block.t)), float(np.sum(right)))


def show(model: Any, kind: str, score: Total, spread: Any, names: list[str], wish: Wish) -> None:
    """Print the model, and write its file."""
    share = score.value / score.n
    if kind == "numbers":
        variance = float(spread.scatter[1, 1]) / spread.n
        told = {"r2": 1 - share / variance if variance else float("nan"), "rmse": share**0.5}
    else:
        told = {"accuracy": share}
    weights = np.atleast_2d(model.coef_)
    kept = model.get_support(indices=True)
    order = kept[np.argsort(-np.abs(np.atleast_2d(model.gain_)[:, kept]).max(axis=0), kind="stable")]
    facts = {
        "model": type(model).__name__, "streamed": True, "n_test_rows": int(score.n), **told,
        "features": [{"name": names[j], "weights": weights[:, j].tolist()} for j in order],
        "intercept": np.atleast_1d(model.intercept_).tolist(), "converged": bool(model.converged_),
    }  # fmt: skip
    if wish.output is not None:
        from sparsebayes import save

        save(model, wish.output)
        tell(f"model written to {wish.output}; read it with sparsebayes.load")
    if wish.as_json:
        print_json(facts)
        return
    print_to = out()
    print_to.print(f"{facts['model']}: {len(order)} of {len(names)} features matter")
    scores = ", ".join(f"{key} {value:.4g}" for key, value in told.items())
    print_to.print(f"{int(score.n):,} held-out rows: {scores}")
    for j in order[:50]:
        print_to.print(f"  {names[j]:<30} " + " ".join(f"{weight: .6g}" for weight in weights[:, j]), markup=False)
