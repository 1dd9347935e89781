"""The form of a section of the report."""

from collections.abc import Sequence
from dataclasses import dataclass

from sparsebayes.app.report.table import Table


@dataclass(frozen=True)
class Section:
    """A heading with text, a figure and tables."""

    id: str
    title: str
    text: Sequence[str]
    picture: str = ""
    told: str = ""
    """A description of the figure."""
    table: Table | None = None
    """The numbers of the figure, folded away; shown openly if there is no figure."""
    extra: Table | None = None
    """A second table, folded away."""
    shown: Table | None = None
    """A table that is always shown."""
