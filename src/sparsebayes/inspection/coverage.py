"""Calibration of intervals and probabilities."""

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
"""Probability that a point of a well calibrated model lies in the band."""


class CoverageDisplay(Display):
    """Calibration on held-out rows.

    Regressors: share of the rows inside their prediction intervals, against the nominal coverage. Classifiers:
    frequency of a class, against its predicted probability.

    Parameters
    ----------
    nominal : ndarray of shape (n_points,)
        Nominal coverage of the intervals, or mean probability in each bin.
    observed : ndarray of shape (n_points,)
        Observed share of the rows.
    count : ndarray of int, shape (n_points,)
        Number of rows of each point.
    kind : {"interval", "probability"}
        Whether points are interval levels or bins of probabilities.

    Attributes
    ----------
    lower, upper : ndarray of shape (n_points,)
        Range of the share with probability 0.95 if the model is well calibrated (binomial).
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
        """From a fitted estimator or pipeline and held-out rows.

        Parameters
        ----------
        estimator : fitted estimator
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        levels : sequence of float
            Regressors: nominal coverages of the intervals.
        n_bins : int, default=10
            Classifiers: number of bins with about equal numbers of rows.
        output : int or label, optional
            Regressors with several outputs: which output. Classifiers: the class; by default the second of two
            classes, or the predicted class if there are more.
        """
        model, mine, _ = unwrapped(estimator, X)
        if is_classifier(model):
            probability = model.predict_proba(mine)
            return cls.from_probabilities(*_outcome(model, probability, np.asarray(y), output), n_bins=n_bins)
        if not hasattr(model, "predict_interval"):
            raise TypeError(f"{type(model).__name__} has neither predict_interval nor predict_proba")
        n, n_outputs = len(mine), np.size(model.intercept_)
        k = one_of(range(n_outputs), [f"output {k}" for k in range(n_outputs)], output)
        ends = np.stack([model.predict_interval(mine, level).reshape(n, n_outputs, 2)[:, k] for level in levels])
        return cls.from_intervals(np.asarray(y, dtype=np.float64).reshape(n, -1)[:, k], ends, levels)

    @classmethod
    def from_intervals(cls, y: Any, intervals: Any, levels: Sequence[float]) -> "CoverageDisplay":
        """From intervals of shape (n_levels, n_samples, 2) and the true values."""
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
        """From probabilities of events and whether these happened, both of shape (n_samples,)."""
        came, probability = np.asarray(came, dtype=bool), np.asarray(probability, dtype=np.float64)
        if came.shape != probability.shape or came.ndim != 1 or not len(came):
            raise ValueError(
                f"came has shape {came.shape} and probability {probability.shape}: their lengths must agree"
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
        """Which points agree with a well calibrated model."""
        return (self.lower <= self.observed) & (self.observed <= self.upper)

    def plot(self, ax: Any = None) -> "CoverageDisplay":
        """Draw. The grey band contains 95 % of the points of a well calibrated model; red diamonds lie outside."""
        words = {
            "interval": ("nominal coverage of the interval", "share of rows inside"),
            "probability": ("predicted probability", "observed frequency"),
        }
        with self._canvas(ax, (4.6, 4.4)) as ax:
            ax.plot([0, 1], [0, 1], color=GREY, lw=1, ls="--")
            ax.fill_between(self.nominal, self.lower, self.upper, color=PALE, lw=0, label="expected (95 %)")
            ax.plot(self.nominal, self.observed, color=BLUE, lw=1.2)
            inside = self.inside
            ax.plot(self.nominal[inside], self.observed[inside], "o", color=BLUE, ms=6, label="as expected")
            if not inside.all():
                ax.plot(self.nominal[~inside], self.observed[~inside], "D", color=RED, ms=7, label="outside")
            xlabel, ylabel = words[self.kind]
            ax.set(xlabel=xlabel, ylabel=ylabel, xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
            ax.legend(loc="upper left")
            self._drawn(ax)
        return self

    def to_table(self) -> dict[str, list[Any]]:
        """One row per point: nominal, observed, count, and the expected range."""
        return {key: column(getattr(self, key)) for key in ("nominal", "observed", "count", "lower", "upper")}

    def text(self) -> str:
        """A description of the calibration in one sentence."""
        if self.kind == "interval":
            k = int(np.abs(self.nominal - 0.9).argmin())
            told = (
                f"The {percent(self.nominal[k])} intervals contain {percent(self.observed[k])} of {self.count[k]} rows"
            )
        else:
            error = np.average(np.abs(self.observed - self.nominal), weights=self.count)
            told = f"Over {self.count.sum()} rows, probabilities and frequencies differ by {error:.3f} on average"
        n = int(self.inside.sum())
        return f"{told}; {n} of {len(self.nominal)} points agree with a well calibrated model."


def _outcome(model: Any, probability: FloatArray, y: AnyArray, output: Any) -> tuple[AnyArray, FloatArray]:
    """Whether the chosen class is the true one, and its probability."""
    classes = model.classes_
    if output is None and len(classes) > 2:
        top = probability.argmax(axis=1)
        return classes[top] == y, probability[np.arange(len(y)), top]
    k = 1 if output is None else one_of(range(len(classes)), [str(label) for label in classes], output)
    return y == classes[k], probability[:, k]
