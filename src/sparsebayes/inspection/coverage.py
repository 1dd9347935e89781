"""Whether a model is as sure as it should be: intervals and probabilities against what happened."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import binom
from sklearn.base import is_classifier

from sparsebayes.core.types import AnyArray, FloatArray, IntArray
from sparsebayes.inspection.display import Display, column, one_of, unwrapped
from sparsebayes.inspection.style import BLUE, GREY, PALE, RED, percent

LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
CHANCE = 0.95
"""Probability that a point of a model that tells the truth lies in the band."""


class CoverageDisplay(Display):
    """What a model promises against what happens on rows that it has not seen.

    For regressors: how many of the rows lie in their intervals, against the coverage of these; for classifiers: how
    often a class came, against its probability.

    Parameters
    ----------
    nominal : ndarray of shape (n_points,)
        Coverage of the intervals, or mean probability in each bin.
    observed : ndarray of shape (n_points,)
        Share of the rows for which it came true.
    count : ndarray of int, shape (n_points,)
        Rows behind each point.
    kind : {"interval", "probability"}
        What the points are.

    Attributes
    ----------
    lower, upper : ndarray of shape (n_points,)
        Where the share lies with probability 0.95 if the model tells the truth (binomial).
    ax_, figure_
        Axes and figure of the last `plot`.
    """

    def __init__(self, *, nominal: FloatArray, observed: FloatArray, count: IntArray, kind: str) -> None:
        self.nominal, self.observed, self.count, self.kind = nominal, observed, count, kind
        ends = binom.interval(CHANCE, count, np.clip(nominal, 0.0, 1.0))
        self.lower, self.upper = (np.clip(end, 0, count) / count for end in ends)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        levels: Sequence[float] = LEVELS,
        n_bins: int = 10,
        output: Any = None,
    ) -> "CoverageDisplay":
        """From a fitted estimator or pipeline, and rows that it has not seen.

        Parameters
        ----------
        estimator : fitted estimator
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        levels : sequence of float
            Regressors: coverage of the intervals that are tried.
        n_bins : int, default=10
            Classifiers: number of bins, with equally many rows in each.
        output : int or label, optional
            Regressors with several outputs: which. Classifiers: the class whose probability is looked at; by default
            the second of two, and of more the one that is predicted.
        """
        model, mine, _ = unwrapped(estimator, X)
        if is_classifier(model):
            probability = model.predict_proba(mine)
            return cls.from_probabilities(*_outcome(model, probability, np.asarray(y), output), n_bins=n_bins)
        if not hasattr(model, "predict_interval"):
            raise TypeError(f"{type(model).__name__} has neither predict_interval nor predict_proba")
        n, n_outputs = len(mine), np.size(model.noise_variance_)
        k = one_of(range(n_outputs), [f"output {k}" for k in range(n_outputs)], output)
        ends = np.stack([model.predict_interval(mine, level).reshape(n, n_outputs, 2)[:, k] for level in levels])
        return cls.from_intervals(np.asarray(y, dtype=np.float64).reshape(n, -1)[:, k], ends, levels)

    @classmethod
    def from_intervals(cls, y: Any, intervals: Any, levels: Sequence[float]) -> "CoverageDisplay":
        """From intervals of shape (n_levels, n_samples, 2) and what they should hold."""
        y, intervals = np.asarray(y, dtype=np.float64), np.asarray(intervals, dtype=np.float64)
        if intervals.shape != (len(levels), len(y), 2) or not len(y):
            raise ValueError(
                f"intervals has shape {intervals.shape}, not (levels, rows, 2) = {(len(levels), len(y), 2)}"
            )
        held = (intervals[..., 0] <= y) & (y <= intervals[..., 1])
        count = np.full(len(levels), len(y))
        return cls(
            nominal=np.asarray(levels, dtype=np.float64), observed=held.mean(axis=1), count=count, kind="interval"
        )

    @classmethod
    def from_probabilities(cls, came: Any, probability: Any, *, n_bins: int = 10) -> "CoverageDisplay":
        """From probabilities and whether what they belong to came true, both of shape (n_samples,)."""
        came, probability = np.asarray(came, dtype=bool), np.asarray(probability, dtype=np.float64)
        if came.shape != probability.shape or came.ndim != 1 or not len(came):
            raise ValueError(
                f"came has shape {came.shape} and probability {probability.shape}: give equally many, at least 1"
            )
        if n_bins < 1:
            raise ValueError(f"n_bins={n_bins} must be at least 1")
        edges = np.unique(np.quantile(probability, np.linspace(0, 1, n_bins + 1)))
        bins = np.searchsorted(edges[1:-1], probability)
        count = np.bincount(bins)
        filled = count > 0
        total = np.bincount(bins, weights=probability)[filled], np.bincount(bins, weights=came)[filled]
        count = count[filled]
        return cls(nominal=total[0] / count, observed=total[1] / count, count=count, kind="probability")

    @property
    def inside(self) -> Any:
        """Which of the points a model that tells the truth would show as well."""
        return (self.lower <= self.observed) & (self.observed <= self.upper)

    def plot(self, ax: Any = None) -> "CoverageDisplay":
        """Draw. The grey band is where the points of a model that tells the truth lie; red diamonds are outside."""
        words = {
            "interval": ("coverage of the interval", "share of the rows that it holds"),
            "probability": ("predicted probability", "how often it came true"),
        }
        with self._canvas(ax, (4.6, 4.4)) as ax:
            ax.plot([0, 1], [0, 1], color=GREY, lw=1, ls="--")
            ax.fill_between(self.nominal, self.lower, self.upper, color=PALE, lw=0, label="by chance (95 %)")
            ax.plot(self.nominal, self.observed, color=BLUE, lw=1.2)
            inside = self.inside
            ax.plot(self.nominal[inside], self.observed[inside], "o", color=BLUE, ms=6, label="as promised")
            if not inside.all():
                ax.plot(self.nominal[~inside], self.observed[~inside], "D", color=RED, ms=7, label="not as promised")
            xlabel, ylabel = words[self.kind]
            ax.set(xlabel=xlabel, ylabel=ylabel, xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
            ax.legend(loc="upper left")
            self._drawn(ax)
        return self

    def to_table(self) -> dict[str, list[Any]]:
        """The points: nominal, observed, count, and the range by chance."""
        return {key: column(getattr(self, key)) for key in ("nominal", "observed", "count", "lower", "upper")}

    def text(self) -> str:
        """How well the promises were kept, in a sentence."""
        if self.kind == "interval":
            k = int(np.abs(self.nominal - 0.9).argmin())
            told = f"Of {self.count[k]} rows the {percent(self.nominal[k])} intervals hold {percent(self.observed[k])}"
        else:
            error = np.average(np.abs(self.observed - self.nominal), weights=self.count)
            told = f"Over {self.count.sum()} rows, probabilities and frequencies differ by {error:.3f} on average"
        n = int(self.inside.sum())
        return f"{told}; {n} of {len(self.nominal)} points are within what chance allows a model that tells the truth."


def _outcome(model: Any, probability: FloatArray, y: AnyArray, output: Any) -> tuple[AnyArray, FloatArray]:
    """Whether the class looked at came, and its probability."""
    classes = model.classes_
    if output is None and len(classes) > 2:
        top = probability.argmax(axis=1)
        return classes[top] == y, probability[np.arange(len(y)), top]
    k = 1 if output is None else one_of(range(len(classes)), [str(label) for label in classes], output)
    return y == classes[k], probability[:, k]
