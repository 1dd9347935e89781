"""The base class of the displays, and functions to unpack pipelines and choose outputs."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sparsebayes.core.types import AnyArray
from sparsebayes.estimators import feature_names
from sparsebayes.inspection.style import canvas

Part = TypeVar("Part")


class Display(ABC):
    """A figure. Its numbers are public attributes; `plot` draws, `to_table` lists and `text` describes them."""

    ax_: Any
    figure_: Any

    @abstractmethod
    def to_table(self) -> dict[str, list[Any]]:
        """The numbers of the figure, column by column."""

    @abstractmethod
    def text(self) -> str:
        """A description of the figure in one sentence, for use as alternative text."""

    def _canvas(self, ax: Any, size: tuple[float, float]) -> AbstractContextManager[Any]:
        return canvas(type(self).__name__, ax, size)

    def _drawn(self, ax: Any) -> None:
        self.ax_, self.figure_ = ax, ax.figure


def column(values: Any) -> list[Any]:
    """An array as a list of plain values."""
    return np.asarray(values).tolist()


def unwrapped(estimator: Any, X: Any = None, names: Sequence[str] | None = None) -> tuple[Any, Any, list[str]]:
    """The model, its inputs and their names. Of a pipeline: the last step, and its inputs after the steps before it."""
    check_is_fitted(estimator)
    if not isinstance(estimator, Pipeline):
        return estimator, X, _names(estimator, names)
    model, steps = estimator[-1], estimator[:-1]
    if len(steps) and X is not None:
        X = steps.transform(X)
    if names is None and len(steps):
        try:
            names = [str(name) for name in steps.get_feature_names_out()]
        except (AttributeError, ValueError):  # a step without names
            names = None
    return model, X, _names(model, names)


def _names(model: Any, given: Sequence[str] | None) -> list[str]:
    names = [str(name) for name in (feature_names(model) if given is None else given)]
    if len(names) != model.n_features_in_:
        raise ValueError(f"feature_names has {len(names)} names, but the model has {model.n_features_in_} features")
    return names


def matrix(X: Any, model: Any) -> AnyArray:
    """Inputs as an array of numbers, checked for the model's number of features."""
    array = np.asarray(X, dtype=np.float64)
    if array.ndim != 2 or array.shape[1] != model.n_features_in_:
        raise ValueError(f"X has shape {array.shape}, but the model has {model.n_features_in_} features")
    return array


def one_of(parts: Sequence[Part], labels: Sequence[str], output: Any) -> Part:
    """The part that `output` selects by label or index; None selects the only one."""
    if len(parts) == 1:
        if output is not None:
            raise ValueError(f"This model has one output; remove output={output!r}.")
        return parts[0]
    found = [part for part, label in zip(parts, labels, strict=True) if label in (str(output), f"output {output}")]
    if len(found) != 1:
        raise ValueError(f"This model has {len(parts)} outputs. Pass output= one of {list(labels)}, not {output!r}.")
    return found[0]


def like(X: Any, array: AnyArray) -> Any:
    """An array in a data frame with the columns of X, if X is a data frame."""
    return type(X)(dict(zip(X.columns, array.T, strict=True))) if hasattr(X, "columns") else array


def vectors_of(estimator: Any, output: int = 0) -> AnyArray:
    """The relevance vectors in the units of the pipeline's inputs; with `output` < 0 those of all outputs.

    Empty if the model has none, or if a step of the pipeline has no inverse.
    """
    model, _, _ = unwrapped(estimator)
    vectors = getattr(model, "relevance_vectors_", None)
    if isinstance(vectors, list):
        vectors = np.unique(np.concatenate(vectors), axis=0) if output < 0 else vectors[output]
    if vectors is not None and isinstance(estimator, Pipeline) and len(estimator) > 1:
        try:
            vectors = estimator[:-1].inverse_transform(vectors)
        except AttributeError:
            vectors = None
    return np.empty((0, model.n_features_in_)) if vectors is None else np.asarray(vectors)
