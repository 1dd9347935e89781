"""Tables of the report."""

from collections.abc import Sequence
from dataclasses import dataclass, field

PHONE = 38
"""Characters in a line of a table on a phone."""
NAMED = 10
"""Fewest of them for the names of rows, which can be broken into lines."""


@dataclass(frozen=True)
class Table:
    """Cells of text. The first cell of each row is its name."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    after: str = ""
    """A note below the table, about rows that are left out."""
    shares: Sequence[Sequence[float]] = field(default=())
    """Strength of the tint of each cell, from 0 to 1; empty for a table without tints."""

    @property
    def wide(self) -> bool:
        """Whether it scrolls sideways on a phone: a square whose columns must stay side by side."""
        return bool(self.shares) and not self._fits

    @property
    def stacked(self) -> bool:
        """Whether a phone shows the cells of a row below each other."""
        return not self.shares and not self._fits

    @property
    def _fits(self) -> bool:
        words = [max(map(len, column.split(" ")), default=0) for column in self.columns]
        cells = [max((len(row[k]) for row in self.rows), default=0) for k in range(len(words))]
        cells[0] = min(cells[0], NAMED)
        widths = [max(pair) for pair in zip(words, cells, strict=True)]
        return sum(widths) + 2 * (len(widths) - 1) <= PHONE
