"""Selection frequencies of features."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsebayes.core.types import FloatArray
from sparsebayes.estimators import listed, short
from sparsebayes.inspection.display import Display, column, unwrapped
from sparsebayes.inspection.rows import MOST, cut, draw_bars, draw_mark
from sparsebayes.inspection.style import height, percent


class StabilityDisplay(Display):
    """Selection frequency of the features against the threshold.

    Parameters
    ----------
    names : sequence of str
        Features that were kept at least once, most frequent first. The arrays below have the same order.
    frequency : ndarray
        Share of the repetitions that keep each feature.
    weight : ndarray
        Mean weight over the repetitions.
    threshold : float
        Smallest share of a selected feature.
    n_repetitions, n_candidates : int
        Number of fits, and number of features.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last `plot`.
    """

    def __init__(
        self,
        *,
        names: Sequence[str],
        frequency: FloatArray,
        weight: FloatArray,
        threshold: float,
        n_repetitions: int,
        n_candidates: int,
    ) -> None:
        self.names, self.frequency, self.weight = list(names), frequency, weight
        self.threshold, self.n_repetitions, self.n_candidates = threshold, n_repetitions, n_candidates

    @classmethod
    def from_estimator(cls, selector: Any, *, feature_names: Sequence[str] | None = None) -> "StabilityDisplay":
        """From a fitted `StabilitySelector`, or a pipeline that ends in one.

        With several outputs or classes, the largest of the mean weights is shown.
        """
        selector, _, names = unwrapped(selector, None, feature_names)
        frequency, weights = selector.selection_frequency_, np.atleast_2d(selector.weight_mean_)
        weight = weights[np.abs(weights).argmax(axis=0), np.arange(weights.shape[1])]
        ever = np.flatnonzero(frequency)
        order = ever[np.lexsort((-np.abs(weight[ever]), -frequency[ever]))]
        return cls(
            names=[names[j] for j in order],
            frequency=frequency[order],
            weight=weight[order],
            threshold=selector.threshold,
            n_repetitions=len(selector.selections_),
            n_candidates=len(frequency),
        )

    @property
    def selected(self) -> Any:
        """Which features reach the threshold."""
        return self.frequency >= self.threshold

    def plot(self, ax: Any = None, *, max_features: int = MOST) -> "StabilityDisplay":
        """Draw the most frequent features with the signs of their mean weights; hatched below the threshold."""
        n, more = cut(len(self.names), max_features)
        with self._canvas(ax, (6.4, height(n + len(more)))) as ax:
            notes = [
                f"{percent(f)}  {'+' if w >= 0 else '−'}" for f, w in zip(self.frequency, self.weight, strict=True)
            ]
            values = np.append(self.frequency[:n], [np.nan] * len(more))
            draw_bars(ax, self.names[:n] + more, values, values >= self.threshold, notes[:n] + more)
            draw_mark(ax, self.threshold, f"threshold {self.threshold:g}")
            ax.set(xlim=(0, 1.15), xticks=np.linspace(0, 1, 6))
            ax.set_xlabel(
                f"share of {self.n_repetitions} repetitions that keep the feature, sign of its weight", loc="right"
            )
            ax.set_title(self._title(), pad=18)
            self._drawn(ax)
        return self

    def _title(self) -> str:
        return f"selected {int(self.selected.sum())} of {self.n_candidates} features"

    def to_table(self) -> dict[str, list[Any]]:
        """One row per feature that was kept at least once: name, frequency, mean weight, and whether it is selected."""
        return {
            "name": list(self.names),
            "frequency": column(self.frequency),
            "weight": column(self.weight),
            "selected": column(self.selected),
        }

    def text(self) -> str:
        """The selected features in one sentence."""
        tops = [f"{short(name)} ({percent(share)})" for name, share in zip(self.names, self.frequency, strict=True)]
        n = int(self.selected.sum())
        told = f"S{self._title()[1:]}, kept in at least {percent(self.threshold)} of {self.n_repetitions} repetitions"
        told += f": {listed(tops[:n])}." if n else "."
        return told + (f" Below the threshold: {listed(tops[n:])}." if len(tops) > n else "")
