"""Class probabilities of a classifier with two inputs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from sparsebayes.core.types import AnyArray, FloatArray
from sparsebayes.inspection.display import Display, column, like, unwrapped, vectors_of
from sparsebayes.inspection.style import INK, MARKERS, SERIES, percent, short


class DecisionRegionsDisplay(Display):
    """Class probabilities over two inputs, with the observations and the relevance vectors.

    Parameters
    ----------
    x0, x1 : ndarray of shape (n_grid,)
        The grid along the two inputs.
    probability : ndarray of shape (n_grid, n_grid, n_classes)
        Class probabilities; the first axis is x1, the second x0.
    classes : ndarray of shape (n_classes,)
        Labels.
    vectors : ndarray of shape (n_vectors, 2)
        Relevance vectors.
    X : ndarray of shape (n_samples, 2), optional
        Observations.
    y : ndarray of shape (n_samples,), optional
        Labels of the observations.
    names : sequence of two str
        Names of the inputs.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last `plot`.
    """

    def __init__(
        self,
        *,
        x0: FloatArray,
        x1: FloatArray,
        probability: FloatArray,
        classes: AnyArray,
        vectors: FloatArray,
        X: FloatArray | None = None,
        y: AnyArray | None = None,
        names: Sequence[str] = ("x0", "x1"),
    ) -> None:
        self.x0, self.x1, self.probability, self.classes = x0, x1, probability, classes
        self.vectors, self.names = vectors, list(names)
        self.X = np.empty((0, 2)) if X is None else X
        self.y = np.empty(0, dtype=object) if y is None else y

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, grid_resolution: int = 150, margin: float = 0.08
    ) -> "DecisionRegionsDisplay":
        """From a fitted classifier with two inputs, or a pipeline that ends in one.

        Parameters
        ----------
        estimator : fitted classifier
        X : array-like of shape (n_samples, 2)
            Defines the range of the figure; with y, also the observations.
        y : array-like of shape (n_samples,), optional
        grid_resolution : int, default=150
        margin : float, default=0.08
            Margin beyond the range of X, as a share of it.
        """
        model, _, _ = unwrapped(estimator)
        if not is_classifier(model):
            raise TypeError(f"{type(model).__name__} is not a classifier")
        inputs = np.asarray(X, dtype=np.float64)
        if inputs.ndim != 2 or inputs.shape[1] != 2:
            raise ValueError(f"X has shape {inputs.shape}: this display needs two inputs")
        low, high = inputs.min(axis=0), inputs.max(axis=0)
        reach = margin * (high - low)
        x0, x1 = np.linspace(low - reach, high + reach, grid_resolution).T
        grid = np.stack(np.meshgrid(x0, x1), axis=-1)
        probability = estimator.predict_proba(like(X, grid.reshape(-1, 2)))
        return cls(
            x0=x0,
            x1=x1,
            probability=probability.reshape(*grid.shape[:2], -1),
            classes=model.classes_,
            vectors=vectors_of(estimator, -1),
            X=None if y is None else inputs,
            y=None if y is None else np.asarray(y),
            names=[str(name) for name in X.columns] if hasattr(X, "columns") else ("x0", "x1"),
        )

    @property
    def predicted(self) -> AnyArray:
        """Index of the most probable class on the grid."""
        return self.probability.argmax(axis=-1)

    def plot(self, ax: Any = None) -> "DecisionRegionsDisplay":
        """Draw the regions. Pale colours mean uncertainty; on lines two classes are equally probable.

        With two classes, dashed lines show where the odds are 1 to 3 and 3 to 1.
        """
        with self._canvas(ax, (5.8, 4.6)) as ax:
            extent = self.x0[0], self.x0[-1], self.x1[0], self.x1[-1]
            ax.imshow(self._colours(), origin="lower", extent=extent, aspect="auto", interpolation="bilinear", zorder=0)
            self._draw_borders(ax)
            for k, label in enumerate(self.classes):
                here = self.y == label
                if here.any():
                    style = {"marker": MARKERS[k % len(MARKERS)], "color": SERIES[k % len(SERIES)]}
                    name = short(str(label), 24)
                    ax.scatter(*self.X[here].T, s=22, edgecolor="white", linewidth=0.5, label=name, zorder=3, **style)
            if len(self.vectors):
                name = f"{len(self.vectors)} relevance vectors"
                ring = {"s": 110, "facecolor": "none", "edgecolor": INK, "linewidth": 1.6}
                ax.scatter(*self.vectors.T, label=name, zorder=4, **ring)
            ax.set(xlim=extent[:2], ylim=extent[2:])
            ax.set_xlabel(self.names[0], parse_math=False)
            ax.set_ylabel(self.names[1], parse_math=False)
            if ax.get_legend_handles_labels()[1]:
                legend = ax.legend(loc="upper left", bbox_to_anchor=(1, 1))
                for text in legend.get_texts():
                    text.set_parse_math(False)
            self._drawn(ax)
        return self

    def _colours(self) -> FloatArray:
        """Colours of the classes mixed by their probabilities; white where all classes are equally probable."""
        from matplotlib.colors import to_rgb

        n = len(self.classes)
        colours = np.array([to_rgb(SERIES[k % len(SERIES)]) for k in range(n)])
        sure = (self.probability.max(axis=-1, keepdims=True) - 1 / n) / (1 - 1 / n)
        return np.clip(1 - 0.55 * sure * (1 - self.probability @ colours), 0, 1)

    def _draw_borders(self, ax: Any) -> None:
        n = len(self.classes)
        for k in range(1 if n == 2 else 0, n):
            rest = np.delete(self.probability, k, axis=-1).max(axis=-1)
            lead = self.probability[..., k] - rest
            if lead.min() < 0 < lead.max():
                ax.contour(self.x0, self.x1, lead, levels=[0], colors=INK, linewidths=1.6)
        if n == 2:
            second = self.probability[..., 1]
            levels = [level for level in (0.25, 0.75) if second.min() < level < second.max()]
            if levels:
                ax.contour(self.x0, self.x1, second, levels=levels, colors=INK, linewidths=0.9, linestyles="--")

    def _rows(self) -> list[tuple[Any, float, int]]:
        """Label, share of the area, and observations of each class."""
        area = np.bincount(self.predicted.ravel(), minlength=len(self.classes)) / self.predicted.size
        return [
            (label, float(share), int((self.y == label).sum()))
            for label, share in zip(column(self.classes), area, strict=True)
        ]

    def to_table(self) -> dict[str, list[Any]]:
        """One row per class: label, share of the area where it is most probable, and number of observations."""
        labels, area, count = zip(*self._rows(), strict=True)
        return {"class": list(labels), "area": list(area), "observations": list(count)}

    def text(self) -> str:
        """Shares of the area of all classes in one sentence."""
        shares = ", ".join(f"{label} in {percent(share)}" for label, share, _ in self._rows())
        told = f"Over {self.names[0]} and {self.names[1]} the most probable class is {shares} of the area"
        if len(self.vectors):
            told += f"; the model has {len(self.vectors)} relevance vectors"
        return told + "."
