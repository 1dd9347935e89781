"""Predictions of a model with one input, with intervals."""

from typing import Any

import numpy as np

from sparsebayes.core.types import FloatArray
from sparsebayes.inspection.display import Display, column, like, one_of, unwrapped, vectors_of
from sparsebayes.inspection.style import BLUE, INK, RED, percent


class PredictiveBandDisplay(Display):
    """Predicted mean and interval along one input, with the observations and the relevance vectors.

    Parameters
    ----------
    x, mean, lower, upper : ndarray of shape (n_grid,)
        Values of the input, predicted means, and ends of the intervals of new observations.
    x_observed, y_observed : ndarray, optional
        Observations.
    x_vectors, y_vectors : ndarray, optional
        Relevance vectors, and the predictions there.
    coverage : float, default=0.9
        Probability that a new observation lies in the interval.
    name : str, default="x"
        Name of the input.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last `plot`.
    """

    def __init__(
        self,
        *,
        x: FloatArray,
        mean: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        x_observed: FloatArray | None = None,
        y_observed: FloatArray | None = None,
        x_vectors: FloatArray | None = None,
        y_vectors: FloatArray | None = None,
        coverage: float = 0.9,
        name: str = "x",
    ) -> None:
        none = np.empty(0)
        self.x, self.mean, self.lower, self.upper = x, mean, lower, upper
        self.x_observed = none if x_observed is None else x_observed
        self.y_observed = none if y_observed is None else y_observed
        self.x_vectors = none if x_vectors is None else x_vectors
        self.y_vectors = none if y_vectors is None else y_vectors
        self.coverage, self.name = coverage, name

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        coverage: float = 0.9,
        output: Any = None,
        grid_resolution: int = 400,
        margin: float = 0.1,
    ) -> "PredictiveBandDisplay":
        """From a fitted regressor with one input, or a pipeline that ends in one.

        Parameters
        ----------
        estimator : fitted regressor
        X : array-like of shape (n_samples, 1)
            Defines the range of the figure; with y, also the observations.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), optional
        coverage : float, default=0.9
        output : int, optional
            Which output, if there are several.
        grid_resolution : int, default=400
        margin : float, default=0.1
            Margin beyond the range of X, as a share of it.
        """
        model, _, _ = unwrapped(estimator)
        if not hasattr(model, "predict_interval"):
            raise TypeError(f"{type(model).__name__} has no predict_interval: pass a regressor")
        if np.ndim(X) != 2 or np.shape(X)[1] != 1:
            raise ValueError(f"X has shape {np.shape(X)}: this display needs one input")
        inputs = np.asarray(X, dtype=np.float64)
        low, high = inputs.min(), inputs.max()
        reach = margin * (high - low)
        grid = np.linspace(low - reach, high + reach, grid_resolution)[:, None]
        n_outputs = np.size(model.intercept_)
        k = one_of(range(n_outputs), [f"output {k}" for k in range(n_outputs)], output)

        def predicted(points: FloatArray) -> tuple[FloatArray, FloatArray]:
            mine = unwrapped(estimator, like(X, points))[1]
            shape = len(points), n_outputs
            mean, ends = model.predict(mine), model.predict_interval(mine, coverage)
            return mean.reshape(shape)[:, k], ends.reshape(*shape, 2)[:, k]

        mean, ends = predicted(grid)
        vectors = vectors_of(estimator, k)
        return cls(
            x=grid[:, 0],
            mean=mean,
            lower=ends[:, 0],
            upper=ends[:, 1],
            x_observed=None if y is None else inputs[:, 0],
            y_observed=None if y is None else np.asarray(y, dtype=np.float64).reshape(len(inputs), -1)[:, k],
            x_vectors=vectors[:, 0],
            y_vectors=predicted(vectors)[0] if len(vectors) else None,
            coverage=coverage,
            name=str(X.columns[0]) if hasattr(X, "columns") else "x",
        )

    def plot(self, ax: Any = None) -> "PredictiveBandDisplay":
        """Draw the mean, the band, the observations and the relevance vectors."""
        with self._canvas(ax, (6.4, 3.8)) as ax:
            band = f"{percent(self.coverage)} interval of new observations"
            ax.fill_between(self.x, self.lower, self.upper, color=BLUE, alpha=0.18, lw=0, label=band)
            ax.plot(self.x, np.column_stack([self.lower, self.upper]), color=BLUE, lw=0.7, ls=":")
            ax.plot(self.x, self.mean, color=BLUE, lw=1.9, label="predicted mean")
            if len(self.x_observed):
                label = f"{len(self.x_observed)} observations"
                ax.plot(self.x_observed, self.y_observed, ".", color=INK, ms=4, alpha=0.7, label=label)
            if len(self.x_vectors):
                label = f"{len(self.x_vectors)} relevance vectors"
                ax.plot(self.x_vectors, self.y_vectors, "o", mfc="none", mec=RED, mew=1.5, ms=10, label=label)
            ax.set_xlabel(self.name, parse_math=False)
            ax.set_ylabel("prediction")
            ax.margins(x=0)
            ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
            self._drawn(ax)
        return self

    def to_table(self) -> dict[str, list[Any]]:
        """One row per grid point: x, mean, lower, upper."""
        return {key: column(getattr(self, key)) for key in ("x", "mean", "lower", "upper")}

    def text(self) -> str:
        """Range of the predictions and widths of the intervals in one sentence."""
        width = self.upper - self.lower
        told = (
            f"Along {self.name} from {self.x[0]:.3g} to {self.x[-1]:.3g} the predicted mean lies between "
            f"{self.mean.min():.3g} and {self.mean.max():.3g}, and the {percent(self.coverage)} interval of new "
            f"observations is {width.min():.3g} to {width.max():.3g} wide"
        )
        if len(self.x_vectors):
            told += f"; the model has {len(self.x_vectors)} relevance vectors"
        return told + "."
