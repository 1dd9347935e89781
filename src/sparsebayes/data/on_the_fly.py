"""Shared by designs whose columns are standardised on the fly: origin and unit of the columns."""

from typing import Any

import numpy as np

from sparsebayes.core.types import BoolArray, FloatArray


class OnTheFly:
    """A design with a mean and a scale for every column, which is never formed as a whole."""

    mean: Any
    scale: Any

    @property
    def is_plain(self) -> bool:
        """No: columns are standardised on the fly."""
        return False

    @property
    def origin(self) -> FloatArray:
        """The input values that count as zero, per column."""
        return np.asarray(self.mean)

    @property
    def unit(self) -> FloatArray:
        """What one standard unit is in input values, per column; ∞ for a constant column."""
        return np.asarray(self.scale)

    @property
    def can_form(self) -> bool:
        """Whether all columns may be formed: yes, where they are in memory anyway."""
        return True

    @property
    def usable(self) -> BoolArray:
        """Columns that are not constant."""
        return np.isfinite(self.unit)
