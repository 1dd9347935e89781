"""The interface of a design Φ: the engine knows nothing else about how rows are stored.

`Columns` is enough for a model on columns that it keeps; `Design` is what a search asks of all candidate columns. Both
are in standard units: centred and scaled as `standardised` asked for. A new data source is one class with the
methods of `Design`; CONTRIBUTING.md shows one.
"""

from collections.abc import Callable
from typing import Protocol, Self

from sparsebayes.core.posterior import Reductions
from sparsebayes.core.types import BoolArray, FloatArray, IntArray


class Columns(Reductions, Protocol):
    """Columns that a model keeps."""

    @property
    def is_plain(self) -> bool:
        """Whether the columns are an array in memory, row by row, as they are: `Phi`."""

    @property
    def usable(self) -> BoolArray:
        """Columns that are not constant."""

    @property
    def offset(self) -> FloatArray:
        """Where the columns are measured from since `centred`, in standard units; zero before."""

    def centred(self, weight: FloatArray) -> "Columns":
        """The columns less their weighted means, which eliminates a flat intercept."""

    def columns(self, which: IntArray | BoolArray | slice) -> FloatArray:
        """Φ[:, which], formed."""

    def keep(self, which: IntArray | BoolArray) -> "Columns":
        """Some of the columns, formed."""


class Design(Columns, Protocol):
    """All candidate columns, with row weights folded in where a least-squares problem asks for that."""

    @property
    def origin(self) -> FloatArray:
        """The input values that count as zero, per column."""

    @property
    def unit(self) -> FloatArray:
        """What one standard unit is in input values, per column; ∞ for a constant column."""

    @property
    def root_weight(self) -> FloatArray:
        """The factor of every row."""

    @property
    def can_form(self) -> bool:
        """Whether there is memory for all columns, formed."""

    @property
    def known_gram(self) -> FloatArray | None:
        """ΦᵀΦ, if it was computed or is small enough to be."""

    def column_square(self, weight: FloatArray | None = None) -> FloatArray:
        """diag(Φᵀ diag(weight) Φ)."""

    def centred(self, weight: FloatArray) -> "Design":
        """The columns measured from their weighted mean."""

    def gram_column(self, j: int, ahead: Callable[[], IntArray]) -> FloatArray:
        """Φᵀφ_j. The same pass may compute the columns that `ahead` expects to be needed next."""

    def gram_columns(self, which: IntArray) -> FloatArray:
        """ΦᵀΦ[:, which]."""

    def prepare_gram(self) -> None:
        """Compute all of ΦᵀΦ now, unless that is too large: a search will ask for many of its columns."""

    def under(self, which: IntArray, weight: FloatArray, centre: bool) -> "Design":
        """Some columns, less their weighted means if `centre`, and rows multiplied by √weight.

        The rows have no weights of their own.
        """

    def compressed(self, R: FloatArray) -> "Design":
        """Rows R that replace these, with RᵀR = ΦᵀΦ."""

    def exact(self, which: IntArray) -> "Design | None":
        """Exact columns where these are approximate; None where they are exact already."""

    def rows(self, which: IntArray) -> FloatArray:
        """Some rows of Φ, without their weights."""

    def weighted(self, root_weight: FloatArray) -> Self:
        """Each row multiplied by a factor."""

    def unweighted(self) -> Self:
        """All rows alike, for likelihoods that take the weights into their sites."""


class FeatureDesign(Design, Protocol):
    """Candidate columns that are the features themselves."""

    def correlation(self, which: IntArray) -> FloatArray:
        """Correlations between some of the columns; the rows count by their weights."""
