"""Fitted models as ONNX graphs, which other programs and languages run without Python."""

import json
import os
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sparsebayes import __version__
from sparsebayes.core.basis import KernelBasis, LinearBasis
from sparsebayes.core.types import AnyArray
from sparsebayes.estimators._averaged import LogisticAverage
from sparsebayes.estimators._classifier import GaussianClassifier
from sparsebayes.estimators._heteroscedastic import HeteroscedasticFit
from sparsebayes.estimators._joint import JointFit
from sparsebayes.estimators._kernel import FarVariance, KernelFit, LeftOut
from sparsebayes.estimators._linear import LinearFit, StudentFit
from sparsebayes.estimators._regressor import GaussianRegressor
from sparsebayes.estimators.poisson import SparsePoissonRegressor
from sparsebayes.estimators.rvc import KernelJoint
from sparsebayes.io.atomic_file import whole_file
from sparsebayes.io.onnx.formulas import (
    PROBABILITIES,
    KernelGraph,
    averaged_probabilities,
    log_odds,
)
from sparsebayes.io.onnx.graph import IR_VERSION, OPSET, Graph, Tensor, apply, concat, stack, where
from sparsebayes.io.onnx.steps import transformed


def to_onnx(model: Any, path: str | os.PathLike[str] | None = None) -> Any:
    """A fitted model, or a pipeline of scikit-learn that ends in one, as an ONNX model.

    The graph takes "X", a matrix of doubles with one row for each sample. A regressor's graph gives "mean" and "std",
    as `predict(X, return_std=True)` does (of counts: for an exposure of one). A classifier's gives "label" and
    "probabilities", as `predict` and `predict_proba` do. It does not check its inputs: a missing value gives missing
    values.

    Parameters
    ----------
    model : estimator or Pipeline
        With a kernel by name or precomputed. The steps before the model can be the scalers of scikit-learn,
        `SimpleImputer`, `OneHotEncoder`, `PCA`, selectors of columns and a `ColumnTransformer` of these, on numbers.
    path : str or path, optional
        Where to write the model to; the file is written whole or not at all.

    Returns
    -------
    onnx.ModelProto
    """
    check_is_fitted(model)
    graph = Graph()
    *steps, last = _unrolled(model)
    X = graph.input("X")
    for step in steps:
        X = transformed(step, X)
    first = next(step for step in [*steps, last] if hasattr(step, "n_features_in_"))  # not "passthrough"
    proto = _model(graph, first, type(last).__name__, _outputs(last, X))
    if path is not None:
        data = proto.SerializeToString()
        with whole_file(path) as file:
            file.write(data)
    return proto


def _unrolled(model: Any) -> list[Any]:
    """A model as the last of its steps."""
    if not isinstance(model, Pipeline):
        return [model]
    *steps, (_, last) = model.steps
    return [step for _, step in steps] + _unrolled(last)


def _outputs(model: Any, X: Tensor) -> dict[str, tuple[Tensor, Any, int]]:
    """The outputs by name, each with its type and number of axes."""
    double = X.graph.onnx.TensorProto.DOUBLE
    if isinstance(model, GaussianRegressor):
        mean, std = _regression(model, X)
        axes = 1 if model._single else 2
        return {"mean": (mean, double, axes), "std": (std, double, axes)}
    if isinstance(model, SparsePoissonRegressor):
        mean, std = _counts(model, X)
        return {"mean": (mean, double, 1), "std": (std, double, 1)}
    if isinstance(model, GaussianClassifier):
        scores, probabilities = _classification(model, X)
        label, kind = _label(model.classes_, scores)
        return {"label": (label, kind, 1), "probabilities": (probabilities, double, 2)}
    raise ValueError(f"to_onnx cannot export a {type(model).__name__}; the model must be one of sparsebayes")


def _model(graph: Graph, first: Any, name: str, outputs: dict[str, tuple[Tensor, Any, int]]) -> Any:
    """The graph with names, types and what a reader of the file may want to know; `first` is the step that takes X."""
    helper, info = graph.onnx.helper, graph.onnx.helper.make_tensor_value_info
    for output, (tensor, _, _) in outputs.items():
        graph.nodes.append(helper.make_node("Identity", [tensor.name], [output]))
    inputs = [info("X", graph.onnx.TensorProto.DOUBLE, ["n_samples", first.n_features_in_])]
    typed = [info(output, kind, ["n_samples", None][:axes]) for output, (_, kind, axes) in outputs.items()]
    proto = helper.make_model(
        graph.proto(name, inputs, typed),
        producer_name="sparsebayes",
        producer_version=__version__,
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
    )
    names = getattr(first, "feature_names_in_", None)
    if names is not None:
        helper.set_model_props(proto, {"feature_names": json.dumps(list(names))})
    graph.onnx.checker.check_model(proto)
    return proto


# --- regression ---


def _regression(model: GaussianRegressor, X: Tensor) -> tuple[Tensor, Tensor]:
    means, stds = [], []
    for fit in model._fits:
        mean, variance = _latent(fit, X)
        means.append(mean)
        stds.append(apply("Sqrt", variance + _own_variance(fit, X)))
    return (means[0], stds[0]) if model._single else (stack(means, axis=1), stack(stds, axis=1))


def _counts(model: SparsePoissonRegressor, X: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of new counts, for an exposure of one: the rate is log-normal."""
    (fit,) = model._fits
    m, v = _latent(fit, X)
    mean = apply("Exp", m + 0.5 * v)
    square = mean * mean
    variance = (apply("Exp", v) - 1.0) * square
    if hasattr(model, "shape_"):  # negative binomial
        variance = variance + (variance + square) * (1 / model.shape_)
    return mean, apply("Sqrt", mean + variance)


def _latent(fit: LinearFit, X: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of a linear predictor, row by row."""
    known = (LinearFit, KernelFit, StudentFit, HeteroscedasticFit)
    for method in ("latent", "latent_variance", "variance_at", "own_variance"):
        if getattr(type(fit), method) not in [getattr(cls, method) for cls in known]:
            raise ValueError(f"to_onnx cannot export a {type(fit).__name__}, which has its own {method}")
    Phi = _design(fit.basis, X)
    projected = Phi @ np.ascontiguousarray(fit.root.T)
    variance = (Phi * Phi) @ fit.diagonal + fit.sign * (projected * projected).sum(1)
    if isinstance(fit, KernelFit) and fit.left_out is not None:
        variance = variance.at_least(0.0) + _left_out_variance(fit.left_out, fit, X)
    return Phi @ fit.mean, variance.at_least(0.0)


def _left_out_variance(left_out: LeftOut, fit: KernelFit, X: Tensor) -> Tensor:
    """Prior variance that the kept vectors do not span; see `LeftOut`."""
    assert isinstance(fit.basis, KernelBasis)
    kernel, L = KernelGraph.of(fit.basis.kernel), left_out.L
    inside = kernel(X, fit.basis.centres) @ solve_triangular(L, np.eye(len(L)), lower=True).T
    return left_out.signal * (kernel.of_itself(X) - (inside * inside).sum(1)).at_least(0.0)


def _design(basis: LinearBasis | KernelBasis, X: Tensor) -> Tensor:
    if isinstance(basis, KernelBasis):
        Phi = KernelGraph.of(basis.kernel)(X, basis.centres) - basis.reference
    else:
        Phi = X.columns(basis.columns) - basis.reference
    return Phi.with_column(1.0) if basis.ones else Phi


def _own_variance(fit: LinearFit, X: Tensor) -> Tensor | float:
    """Variance of each new observation that it shares with no other."""
    if isinstance(fit, StudentFit):
        return fit.variance_of_noise
    if isinstance(fit, HeteroscedasticFit):
        assert fit.log_noise is not None
        return fit.noise_variance * apply("Exp", _latent(fit.log_noise, X)[0])
    if not isinstance(fit, KernelFit):
        return fit.noise_variance
    own = fit.noise_variance + fit.excess
    return own if fit.far is None else own + _far_variance(fit.far, fit, X)


def _far_variance(far: FarVariance, fit: KernelFit, X: Tensor) -> Tensor:
    """What a basis function at the new point would vary; see `FarVariance`."""
    assert isinstance(fit.basis, KernelBasis)
    kernel = KernelGraph.of(fit.basis.kernel)
    half = np.sqrt(far.weight / fit.noise_variance)
    K = kernel(X, far.X) * half
    projected = K @ ((fit.basis(far.X) * half[:, None]) @ fit.root.T)
    s = ((K * K).sum(1) - (projected * projected).sum(1)).at_least(0.0)
    itself = kernel.of_itself(X)
    beyond = itself - ((_design(fit.basis, X) @ np.ascontiguousarray(fit.root.T)) * projected).sum(1)
    total = itself * itself + far.signal * s
    return far.signal * beyond * beyond / where(total > 0.0, total, np.inf)


# --- classification ---


def _classification(model: GaussianClassifier, X: Tensor) -> tuple[Tensor, Tensor]:
    """Scores of the classes (for two: of the second alone, as a column), and their probabilities."""
    average = model.proba != "plug-in"
    if model._joint is not None:
        return _softmax(*_joint_latent(model._joint, X), len(model.classes_), average)
    if averages := model._by_draws():
        scores = concat([_averaged_log_odds(fit, X) for fit in averages], 1)
        return scores, _normalised(apply("Sigmoid", scores), len(averages))
    latents = [_latent(fit, X) for fit in model._fits]
    mean, variance = (stack(list(part), axis=1) for part in zip(*latents, strict=True))
    n = len(latents)
    if model._coupled:
        return _softmax(mean, variance.new_axis(2) * np.eye(n), n, average)
    # Both classes from their own side, as in `_log_odds` of the classifier.
    sides = PROBABILITIES[model.proba](concat([mean, -mean], 1), concat([variance, variance], 1))
    positive, negative = sides.columns(np.arange(n)), sides.columns(np.arange(n, 2 * n))
    scores = mean if model.proba == "plug-in" else log_odds(positive, negative)
    return scores, _normalised(positive, n)


def _averaged_log_odds(fit: LogisticAverage, X: Tensor) -> Tensor:
    """`LogisticAverage.log_odds`, as a column."""
    eta, share = _design(fit.basis, X) @ np.ascontiguousarray(fit.draws.T), fit.share[:, None]
    a, b = fit.link
    return a * log_odds(apply("Sigmoid", eta) @ share, apply("Sigmoid", -eta) @ share) + b


def _normalised(positive: Tensor, n: int) -> Tensor:
    """Probabilities of all classes from those of label 1 by n fits."""
    if n == 1:
        return concat([1 - positive, positive], 1)
    total = positive.sum(1, keepdims=True)
    return where(total > 0.0, positive / where(total > 0.0, total, 1.0), np.array(1 / n))


def _softmax(mean: Tensor, covariance: Tensor, n_classes: int, average: bool) -> tuple[Tensor, Tensor]:
    p = averaged_probabilities(mean, covariance, n_classes) if average else apply("Softmax", mean, axis=1)
    return log_odds(p, p.sum(1, keepdims=True) - p), p


def _joint_latent(joint: JointFit, X: Tensor) -> tuple[Tensor, Tensor]:
    """Mean (n×C) and covariance (n×C×C) of the predictors of all classes."""
    posterior, origin = joint.fit.posterior, joint.fit.origin
    split, means, all_projected, owns = posterior.design.split, [], [], []
    parts = (split(posterior.w), split(posterior.joint.T), posterior.joint_level.T)
    for columns, w, root, level, diagonal, own in zip(
        posterior.design.column, *parts, split(posterior.diagonal), split(posterior.own.T), strict=True
    ):
        source, places = _columns(joint, X, columns)
        Phi = (source.columns(places) - joint.mean[columns]) / joint.scale[columns] - origin[columns]
        means.append(Phi @ w)
        all_projected.append(Phi @ root + level)
        alone = Phi @ own
        owns.append((Phi * Phi) @ diagonal - (alone * alone).sum(1))
    projected = stack(all_projected, axis=1)
    within = stack(owns, axis=1).new_axis(2) * np.eye(len(all_projected))
    return stack(means, axis=1) + posterior.level, projected @ apply("Transpose", projected, perm=[0, 2, 1]) + within


def _columns(joint: JointFit, X: Tensor, columns: AnyArray) -> tuple[Tensor, AnyArray]:
    """A matrix that holds these columns of the design, a column of ones after its last, and where in it they are."""
    if type(joint) is JointFit:
        return X.with_column(1.0), columns
    if type(joint) is not KernelJoint:
        raise ValueError(f"to_onnx cannot export a {type(joint).__name__}")
    K = KernelGraph.of(joint.kernel)(X, joint.centres)
    return K.with_column(1.0), np.where(
        columns < joint.n_features, np.searchsorted(joint.kept, columns), len(joint.kept)
    )


def _label(classes: AnyArray, scores: Tensor) -> tuple[Tensor, Any]:
    """The class with the largest score, and the type of the labels."""
    graph, kinds = scores.graph, scores.graph.onnx.TensorProto
    text = classes.dtype.kind in "OU" and all(isinstance(label, str) for label in classes)
    known = {"i": (np.int64, kinds.INT64), "u": (np.int64, kinds.INT64), "b": (np.bool_, kinds.BOOL)}
    known |= {"f": (np.float64, kinds.DOUBLE)}
    if not text and classes.dtype.kind not in known:
        raise ValueError(f"ONNX has no labels like {classes[0]!r}: use text, numbers or bools")
    dtype, kind = (object, kinds.STRING) if text else known[classes.dtype.kind]
    if len(classes) == 2:
        which = graph.add("Cast", scores.sum(1) > 0.0, to=kinds.INT64)
    else:
        which = graph.add("ArgMax", scores, axis=1, keepdims=0)
    label: Tensor = graph.add("Gather", graph.constant(classes.astype(dtype)), which, axis=0)
    return label, kind
