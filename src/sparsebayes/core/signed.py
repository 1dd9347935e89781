"""A prior for Gaussian noise in which some weights may not be negative."""

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from sparsebayes.core.priors import ARD, Rules
from sparsebayes.core.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Signed(ARD):
    """ARD for Gaussian noise in which some weights may not be negative: a column whose weight would be leaves.

    At a maximum every such weight has a positive posterior mean, which is then the mode under the truncated prior too.
    """

    positive: BoolArray = field(default_factory=lambda: np.empty(0, dtype=bool))
    """Which weights may not be negative."""

    @property
    def rules(self) -> Rules | None:
        """Those of ARD where one rule serves all columns."""
        if self.positive.any() and not self.positive.all():
            return None
        return Rules(self.a, self.b, min_alpha=self.min_alpha, positive=bool(self.positive.any()))

    def of(self, columns: IntArray | BoolArray) -> Self:
        """Of some of the weights."""
        return replace(super().of(columns), positive=self.positive[columns])

    def directed(self, q: FloatArray) -> FloatArray:
        """A weight that the data would make negative is of no use where it may not be."""
        bars = self.positive if q.ndim == 1 else self.positive[:, None]
        return np.where(bars, np.maximum(q, 0.0), q)

    def candidate(self, s: FloatArray, q: FloatArray) -> FloatArray:
        """As ARD."""
        return super().candidate(s, self.directed(q))

    def gain(self, alpha: FloatArray, s: FloatArray, q: FloatArray) -> FloatArray:
        """As ARD; a weight that is in and would be negative brings what it costs."""
        return super().gain(alpha, s, self.directed(q))
