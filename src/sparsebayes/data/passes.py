"""Passes over blocks of rows, whose results are saved one by one, so that an interrupted fit can continue.

A fit asks for the same passes when it is run again, because nothing in it is random. So a journal of the results is
enough: a pass whose question is the same as that of the file is not made again.
"""

import hashlib
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from sparsebayes.core.kernel_statistics import Rows
from sparsebayes.core.moments import Moments
from sparsebayes.core.statistics import Counts, SiteSums, Statistic, Total
from sparsebayes.core.types import IntArray
from sparsebayes.data.blocks import Blocks

S = TypeVar("S")
RESULTS: dict[str, Any] = {kind.__name__: kind for kind in (Counts, Moments, Rows, SiteSums, Total)}
"""What a pass can find."""


class Passes:
    """Blocks, and a folder with the results of the passes made so far; None: they are not kept."""

    def __init__(self, blocks: Blocks, folder: str | Path | None = None) -> None:
        self.blocks, self.n_passes, self.n_known = blocks, 0, 0
        self.folder = None if folder is None else Path(folder)
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)

    def reduce(self, statistic: Statistic[S], columns: IntArray | None = None) -> S:
        """A statistic of all rows: from the journal, or by a pass."""
        self.n_passes += 1
        if self.folder is None:
            return self.blocks.reduce(statistic, columns)
        path, question = self.folder / f"pass{self.n_passes:04d}.npz", digest(self.blocks, statistic, columns)
        if path.exists():
            with np.load(path, allow_pickle=False) as held:
                if str(held["question"]) != question:
                    raise ValueError(
                        f"the checkpoint {path} belongs to another fit: the data or the parameters differ. Name "
                        "another folder, or remove this one"
                    )
                self.n_known += 1
                known: S = _restored(held)
                return known
        found = self.blocks.reduce(statistic, columns)
        unfinished = path.with_suffix(".part")
        with unfinished.open("wb") as file:
            np.savez(file, question=question, kind=type(found).__name__, **vars(found))
        unfinished.replace(path)
        return found


def _restored(held: Any) -> Any:
    kind = RESULTS[str(held["kind"])]
    values = {each.name: held[each.name] for each in fields(kind)}
    return kind(**{name: value if value.ndim else value.item() for name, value in values.items()})


def digest(blocks: Blocks, *question: Any) -> str:
    """A hash of what a pass computes: all its numbers, and the names of the columns."""
    found = hashlib.sha256(repr((blocks.n_features, blocks.feature_names)).encode())
    for part in question:
        _update(found, part)
    return found.hexdigest()


def _update(found: Any, part: Any) -> None:
    if isinstance(part, np.ndarray):
        found.update(str(part.dtype).encode() + np.ascontiguousarray(part).tobytes())
    elif hasattr(part, "__dataclass_fields__"):
        found.update(type(part).__name__.encode())
        for each in fields(part):
            _update(found, getattr(part, each.name))
    elif isinstance(part, partial):
        _update(found, part.func.__qualname__)
        _update(found, [part.args, sorted(part.keywords.items())])
    elif callable(part):  # by its name: its place in memory, which `repr` shows, is another in every process
        found.update(getattr(part, "__qualname__", type(part).__qualname__).encode())
    else:
        found.update(repr(part).encode())
