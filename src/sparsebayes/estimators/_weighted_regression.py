"""Kernel regression with feature weights: those of largest evidence, then the model with the kernel that they make."""

from collections.abc import Callable

from sparsebayes.core.standard_units import rounded
from sparsebayes.engine.kernel_regression import KernelSolver, start_on
from sparsebayes.engine.theta import VECTOR_PRICE
from sparsebayes.engine.theta_model import RegressionModel
from sparsebayes.estimators._base import counted
from sparsebayes.estimators._feature_weights import FeatureWeightFit, FeatureWeights, StandardInputs
from sparsebayes.estimators._kernel_regressor import KernelRegression, Target

SolverFor = Callable[[Target, float], KernelSolver]
"""The solver for a target, given the noise (in standard units) that was found with the feature weights."""


def fit_weighted_outputs(
    regression: KernelRegression, weights: FeatureWeights, solver_for: SolverFor, *, batch: bool = False
) -> list[FeatureWeightFit]:
    """The fits of all outputs, each with its own feature weights."""
    work = counted(regression.targets, len(regression.targets), "output")
    return [_fit_output(regression, target, weights, solver_for, batch) for target in work]


def _fit_output(
    regression: KernelRegression, target: Target, weights: FeatureWeights, solver_for: SolverFor, batch: bool
) -> FeatureWeightFit:
    design, settings = regression.design, regression.settings
    assert design.centres is not None
    if target.constant:
        nothing = weights.nothing(design.X.shape[1])
        return nothing.annotate(regression.constant(design.at(nothing.kernel), target))
    inputs = StandardInputs.of(design.X, target.y, target.weight, design.centres)
    merged = Target.of(inputs.y, inputs.weight, fit_intercept=regression.fit_intercept, flat=target.flat)
    found = weights.find(
        inputs, RegressionModel(rounded(merged.t), merged.weight, merged.flat, settings), settings, batch=batch
    )
    solver, design = solver_for(target, found.fit.noise), design.at(found.kernel)
    columns = solver.standardise(design.columns, target.weight, target.flat)
    start = start_on(columns.unit, found.fit)
    result = solver.solve(target.problem(columns, VECTOR_PRICE), design.own_column, start)
    result.result.trace.infos[:0] = found.trace.infos
    return found.annotate(regression.in_data_units(design, target, result))
