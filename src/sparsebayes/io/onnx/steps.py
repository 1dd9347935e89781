"""The steps of scikit-learn that stand before a model in a pipeline, as graphs."""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from sparsebayes.io.onnx.graph import Tensor, apply, concat, where


def transformed(step: Any, X: Tensor) -> Tensor:
    """What a fitted step makes of X."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return X
    for kind, graph_of in STEPS.items():
        if isinstance(step, kind):
            return graph_of(step, X)
    raise ValueError(
        f"to_onnx cannot export the step {step!r}; it knows {', '.join(sorted(kind.__name__ for kind in STEPS))}"
    )


def _standard(step: StandardScaler, X: Tensor) -> Tensor:
    X = X - step.mean_ if step.with_mean else X
    return X / step.scale_ if step.with_std else X


def _robust(step: RobustScaler, X: Tensor) -> Tensor:
    X = X - step.center_ if step.with_centering else X
    return X / step.scale_ if step.with_scaling else X


def _min_max(step: MinMaxScaler, X: Tensor) -> Tensor:
    X = X * step.scale_ + step.min_
    low, high = step.feature_range
    return X.at_least(low).at_most(high) if step.clip else X


def _max_abs(step: MaxAbsScaler, X: Tensor) -> Tensor:
    X = X / step.scale_
    return X.at_least(-1.0).at_most(1.0) if getattr(step, "clip", False) else X


def _imputer(step: SimpleImputer, X: Tensor) -> Tensor:
    if step.add_indicator or not np.isscalar(step.missing_values) or not np.isnan(step.missing_values):
        raise ValueError(f"to_onnx cannot export {step!r}: only missing_values=nan without add_indicator")
    value = np.asarray(step.statistics_, dtype=np.float64)
    kept = np.flatnonzero(~np.isnan(value))  # a column of nothing but nan has no mean and is left out
    X = X.columns(kept)
    return where(apply("IsNaN", X), value[kept], X)


def _one_hot(step: OneHotEncoder, X: Tensor) -> Tensor:
    if any(np.asarray(values).dtype.kind not in "iufb" for values in step.categories_):
        raise ValueError(
            "to_onnx needs numbers, but the OneHotEncoder has categories of text; export the steps after it"
        )
    if step.drop is not None or step.min_frequency is not None or step.max_categories is not None:
        raise ValueError(f"to_onnx cannot export {step!r}: leave out drop, min_frequency and max_categories")
    graph, double = X.graph, X.graph.onnx.TensorProto.DOUBLE
    hot = [
        graph.add("Equal", X.columns(np.array([j])), graph.tensor(values)) for j, values in enumerate(step.categories_)
    ]
    return concat([apply("Cast", column, to=double) for column in hot], 1)


def _pca(step: PCA, X: Tensor) -> Tensor:
    X = (X - step.mean_) @ np.ascontiguousarray(step.components_.T)
    return X / np.sqrt(step.explained_variance_) if step.whiten else X


def _selector(step: SelectorMixin, X: Tensor) -> Tensor:
    return X.columns(step.get_support(indices=True))


def _function(step: FunctionTransformer, X: Tensor) -> Tensor:
    if step.func is not None:
        raise ValueError(f"to_onnx cannot export {step!r}: a function cannot be exported")
    return X


def _pipeline(step: Pipeline, X: Tensor) -> Tensor:
    for _, inner in step.steps:
        X = transformed(inner, X)
    return X


def _columns(step: ColumnTransformer, X: Tensor) -> Tensor:
    parts = []
    for name, inner, _ in step.transformers_:
        which = np.asarray(step._transformer_to_input_indices[name], dtype=np.int64)
        if len(which) and not (isinstance(inner, str) and inner == "drop"):
            parts.append(transformed(inner, X.columns(which)))
    return concat(parts, 1)


STEPS: dict[type, Callable[[Any, Tensor], Tensor]] = {
    StandardScaler: _standard,
    RobustScaler: _robust,
    MinMaxScaler: _min_max,
    MaxAbsScaler: _max_abs,
    SimpleImputer: _imputer,
    OneHotEncoder: _one_hot,
    PCA: _pca,
    SelectorMixin: _selector,
    FunctionTransformer: _function,
    Pipeline: _pipeline,
    ColumnTransformer: _columns,
}
"""The graph of each step that is known."""
