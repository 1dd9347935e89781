"""Linear regression with Student noise: standard units that outliers do not move, and the fit."""

import numpy as np

from sparsebayes.core.likelihoods import StudentT
from sparsebayes.core.prices import Price
from sparsebayes.core.priors import ARD
from sparsebayes.core.types import FloatArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import glm
from sparsebayes.engine.least_squares import NOISE_FLOOR
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.problem import Problem
from sparsebayes.estimators._linear import StudentFit, Units, glm_fit

FIRST_FREEDOM = 4.0
"""ν to start with where it is learned: between the ends of its range on a logarithmic scale."""
NORMAL_MAD = 1.4826
"""Standard deviation over median absolute deviation, for a normal distribution."""


def robust_units(rows: DenseRows, y: FloatArray, weight: FloatArray, has_intercept: bool) -> Units:
    """Median and median absolute deviation of y as its centre and unit.

    Where half of the rows have one value the mean absolute deviation takes the place of the median.
    """
    median = StudentT().base_level
    centre = median(y, weight) if has_intercept else 0.0
    distance = np.abs(y - centre)
    unit = NORMAL_MAD * median(distance, weight)
    if unit <= 8 * np.finfo(np.float64).eps * np.abs(y).max():
        unit = float(weight @ distance / weight.sum())
    return Units(centre, unit, rows.unit / unit)


def fit_student(
    rows: DenseRows,
    y: FloatArray,
    weight: FloatArray,
    flat: bool,
    units: Units,
    prior: ARD,
    price: Price,
    noise_freedom: str | float,
    settings: Settings,
    n_features: int,
) -> StudentFit:
    """Fit one output by the search, under the Gaussian lower bound of Student's density.

    The price is that of Gaussian noise: σ² is learned from the same rows, and large ν must give the same answer.
    """
    total = float(weight.sum())
    learns = noise_freedom == "learn"
    freedom = FIRST_FREEDOM if learns else float(noise_freedom)
    problem = Problem(
        design=rows.unweighted(),
        t=(y - units.centre if flat else y) / units.unit,
        weight=weight,
        likelihood=StudentT(freedom=freedom, learns_freedom=learns, min_noise=NOISE_FLOOR),
        prior=prior,
        price=price,
        flat_intercept=flat,
        bounded=True,
    )
    result = glm.find(problem, settings)
    found = result.likelihood
    assert isinstance(found, StudentT)
    fit = glm_fit(
        problem,
        result,
        n_features,
        units.centre if flat else 0.0,
        units.unit,
        noise_variance=found.noise * units.unit**2,
        freedom=max(total - flat - float(result.posterior.gamma.sum()), 1.0),
        noise_at_floor=found.noise <= NOISE_FLOOR,
    )
    return StudentFit(**vars(fit), noise_freedom=found.freedom)
