"""Linear regression of several outputs that share their features: units, the fit, and what is refused."""

from dataclasses import replace
from typing import Any

import numpy as np

from sparsebayes.core.prices import PerUnit
from sparsebayes.core.types import FloatArray
from sparsebayes.data.design import FeatureDesign
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.model_average import Chains, Odds
from sparsebayes.engine.output_sets import average_outputs
from sparsebayes.engine.outputs import OutputsProblem, solve_outputs
from sparsebayes.estimators._averaged import AveragedFit, constant_average, regression_average
from sparsebayes.estimators._linear import LinearFit, Units, constant_fit


def check_joint(model: Any) -> None:
    """Refuse parameters that outputs with shared features do not go with."""
    needs = {
        "noise='gaussian'": model.noise == "gaussian",
        "solver='auto' or 'sequential'": model.solver in ("auto", "sequential"),
        "a=b=c=d=0": not (model.a or model.b or model.c or model.d),
        "intercept_prior='flat'": model.intercept_prior == "flat" or not model.fit_intercept,
        "warm_start=False": not model.warm_start,
    }
    missing = [need for need, holds in needs.items() if not holds]
    if missing:
        raise ValueError(f"multi_output='joint' needs {' and '.join(missing)}; set them, or multi_output='independent'")


def spreads(Y: FloatArray, weight: FloatArray, centres: bool) -> tuple[FloatArray, FloatArray]:
    """Centre and standard deviation of each output; the latter is 0 where only rounding is left of it."""
    total = float(weight.sum())
    centre = weight @ Y / total if centres else np.zeros(Y.shape[1])
    unit = np.sqrt(weight @ (Y - centre) ** 2 / total)
    return centre, np.where(unit <= 8 * np.finfo(np.float64).eps * np.abs(Y).max(axis=0), 0.0, unit)


def fit_outputs(
    rows: FeatureDesign,
    Y: FloatArray,
    weight: FloatArray,
    flat: bool,
    price: FloatArray | float,
    settings: Settings,
    *,
    shared_noise: bool,
    known: float | None,
    odds: Odds,
    chains: Chains | None,
) -> list[tuple[LinearFit, AveragedFit | None]]:
    """The best single model of every output (columns of Y), and its average over models where there are `chains`.

    All outputs have the same features and relative precisions. With `shared_noise`, or with a `known` noise variance,
    they have one unit, so that one noise variance and one prior serve all. Outputs without any spread say nothing of
    the features.
    """
    n_features, (centre, unit) = rows.n_columns, spreads(Y, weight, flat)
    varies = np.flatnonzero(unit > 0)
    singles = [constant_fit(float(level), flat, n_features, float(np.max(price))) for level in centre]
    averages = [None if chains is None else constant_average(single, n_features) for single in singles]
    if not len(varies):
        return list(zip(singles, averages, strict=True))
    shared_noise = shared_noise or known is not None
    if shared_noise:
        unit = np.full_like(unit, np.sqrt((unit[varies] ** 2).mean()))
    total, T = float(weight.sum()), len(varies)
    problem = OutputsProblem(
        design=rows,
        t=rows.root_weight[:, None] * (Y - centre)[:, varies] / unit[varies],
        n_weighted=total,
        flat_intercept=flat,
        price=PerUnit(price / T, total - flat if known is None else np.inf),
        known_noise=None if known is None else known / unit[varies[0]] ** 2,
    )
    found = solve_outputs(problem, settings, shared_noise)
    for k, result, own in zip(varies, found.outputs, unit[varies] * found.unit, strict=True):
        fit = Units(float(centre[k]), float(own), rows.unit / own).fit(problem, result, n_features)
        path = found.path - problem.n * float(np.log(unit[varies]).sum())
        singles[k] = replace(fit, path=path, min_gain=T * fit.min_gain)
    if chains is not None:
        if known is not None:  # in units of the noise
            problem, unit = problem.rescaled(np.sqrt(known) / unit[varies]), np.full_like(unit, np.sqrt(known))
            problem = replace(problem, known_noise=1.0)
        means = average_outputs(problem, odds, found.outputs[0].active, chains, shares_noise=shared_noise)
        n = problem.n * (T if shared_noise else 1)
        for k, average in zip(varies, means, strict=True):
            own = Units(float(centre[k]), float(unit[k]), rows.unit / unit[k])
            averages[k] = regression_average(singles[k], average, own, problem, rows.origin, n)
    return list(zip(singles, averages, strict=True))
