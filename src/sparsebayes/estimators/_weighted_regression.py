"""Kernel regression with feature weights: those of largest evidence, then the model with the kernel that they make."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from sparsebayes.core.standard_units import rounded
from sparsebayes.core.types import FloatArray
from sparsebayes.core.weighted_kernels import WEIGHTED
from sparsebayes.engine.kernel_regression import KernelSolver, start_on
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.process import MAX_CENTRES, regression_signal
from sparsebayes.engine.theta import VECTOR_PRICE
from sparsebayes.engine.theta_model import RegressionModel
from sparsebayes.estimators._base import counted
from sparsebayes.estimators._feature_weights import (
    FeatureWeightFit,
    FeatureWeights,
    StandardInputs,
    ThetaResult,
    is_wide,
    resize,
)
from sparsebayes.estimators._kernel_regressor import KernelRegression, Target
from sparsebayes.estimators._process import process_design

SolverFor = Callable[[Target, float], KernelSolver]
"""The solver for a target, given the noise (in standard units) that was found with the feature weights."""


def fit_weighted_outputs(
    regression: KernelRegression,
    weights: FeatureWeights,
    solver_for: SolverFor,
    *,
    batch: bool = False,
    vectors: str = "sparse",
) -> list[FeatureWeightFit]:
    """The fits of all outputs, each with its own feature weights; `vectors` as in `RVMRegressor`."""
    work = counted(regression.targets, len(regression.targets), "output")
    return [_fit_output(regression, target, weights, solver_for, batch, vectors) for target in work]


def _fit_output(
    regression: KernelRegression,
    target: Target,
    weights: FeatureWeights,
    solver_for: SolverFor,
    batch: bool,
    vectors: str,
) -> FeatureWeightFit:
    design, settings = regression.design, regression.settings
    assert design.centres is not None
    if target.constant:
        nothing = weights.nothing(design.X.shape[1])
        return nothing.annotate(regression.constant(design.at(nothing.kernel), target))
    inputs = StandardInputs.of(design.X, target.y, target.weight, design.centres)
    if inputs.n_varying == 0:
        vectors = "sparse"
    merged = Target.of(inputs.y, inputs.weight, fit_intercept=regression.fit_intercept, flat=target.flat)
    found = _find_theta(inputs, merged, weights, settings, batch, by_process=vectors != "sparse")
    solver, design = solver_for(target, found.fit.noise), design.at(found.kernel)
    if vectors != "sparse" and len(found.kernel.columns):
        resized, signal = resize(found, inputs, _values(merged), regression_signal, flat_intercept=merged.flat)
        process = process_design(vectors, design.at(resized.kernel), lambda: signal, MAX_CENTRES)
        alone = replace(regression, design=design, targets=[target])
        if process is not None and (vectors == "all" or alone.process_predicts_better(process, lambda target: solver)):
            return resized.annotate(regression.process_fit(process, target))
    columns = solver.standardise(design.columns, target.weight, target.flat)
    start = start_on(columns.unit, found.fit) if len(found.fit.active) else None
    # At weights of a process no vector is charged for: the sparse models of the folds were not charged either.
    price = VECTOR_PRICE if vectors == "sparse" else 0.0
    result = solver.solve(target.problem(columns, price), design.own_column, start)
    result.result.trace.infos[:0] = found.trace.infos
    return found.annotate(regression.in_data_units(design, target, result))


def _find_theta(
    inputs: StandardInputs, target: Target, weights: FeatureWeights, settings: Settings, batch: bool, by_process: bool
) -> ThetaResult:
    """Feature weights by the evidence of a Gaussian process, or together with few vectors.

    With few rows for each feature a process starts from the features that a sparse model has chosen.
    """
    if by_process and not is_wide(inputs):
        return weights.find_by_process(inputs, _values(target), target.flat, weights.starts(inputs))
    model = RegressionModel(rounded(target.t), target.weight, target.flat, settings)
    found = weights.find(inputs, model, settings, batch=batch)
    if not by_process:
        return found
    return weights.find_by_process(inputs, _values(target), target.flat, [standard_theta(found, inputs)])


def _values(target: Target) -> FloatArray:
    """The target in standard units, rows not multiplied by the root of their weight."""
    return target.t / np.sqrt(target.weight)


def standard_theta(found: ThetaResult, inputs: StandardInputs) -> FloatArray:
    """Feature weights for inputs in standard units; equal ones where none was found."""
    theta = found.weights * np.where(inputs.varying, inputs.unit, 0.0) ** WEIGHTED[found.kernel.name].power
    return theta if theta.any() else np.where(inputs.varying, 1 / max(inputs.n_varying, 1), 0.0)
