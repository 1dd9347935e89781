"""Linear regression with Student noise or with gross errors: units that outliers do not move, and the fits."""

from dataclasses import dataclass, replace

import numpy as np

from sparsebayes.core.contaminated import Contaminated
from sparsebayes.core.likelihoods import StudentT
from sparsebayes.core.prices import Price
from sparsebayes.core.priors import ARD
from sparsebayes.core.types import FloatArray
from sparsebayes.data.design import FeatureDesign
from sparsebayes.engine import glm
from sparsebayes.engine.least_squares import NOISE_FLOOR
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.model_average import Chains, Odds
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.result import Result
from sparsebayes.engine.robust import average_robust
from sparsebayes.estimators._averaged import AveragedFit, averaged_fit
from sparsebayes.estimators._linear import LinearFit, StudentFit, Units, glm_fit

FIRST_FREEDOM = 4.0
"""ν to start with where it is learned: between the ends of its range on a logarithmic scale."""
NORMAL_MAD = 1.4826
"""Standard deviation over median absolute deviation, for a normal distribution."""


def robust_units(rows: FeatureDesign, y: FloatArray, weight: FloatArray, has_intercept: bool) -> Units:
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


@dataclass(frozen=True)
class OutlierFit(LinearFit):
    """A linear fit with gross errors; `noise_variance` is that of the other rows, which intervals are about."""

    outlier_share: float = 0.0
    """π."""
    outlier_scale: float = 1.0
    """K."""

    def _likelihood(self) -> Contaminated:
        return Contaminated(noise=self.noise_variance, share=self.outlier_share, scale=self.outlier_scale)

    def outlier_probability(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """That training rows have a shift of their own."""
        return self._likelihood().outlier_probability((y - self.latent(X)) ** 2 + self.latent_variance(X))


@dataclass(frozen=True, kw_only=True)
class AveragedStudentFit(AveragedFit, StudentFit):
    """The average over models with Student noise."""


@dataclass(frozen=True, kw_only=True)
class AveragedOutlierFit(AveragedFit, OutlierFit):
    """The average over models with gross errors."""

    def outlier_probability(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Mean over the draws."""
        square = (y[:, None] - self.basis(X) @ self.draws.T) ** 2
        return np.minimum(self._likelihood().outlier_probability(square) @ self.share, 1.0)  # beyond by rounding


@dataclass(frozen=True)
class RobustRegression:
    """One output with noise of heavy tails or with gross errors, in units that outliers do not move."""

    rows: FeatureDesign
    units: Units
    problem: Problem
    settings: Settings
    n_features: int

    @classmethod
    def of(
        cls,
        rows: FeatureDesign,
        y: FloatArray,
        weight: FloatArray,
        flat: bool,
        units: Units,
        prior: ARD,
        price: Price,
        likelihood: StudentT,
        settings: Settings,
        n_features: int,
    ) -> "RobustRegression":
        """Pose the problem under the Gaussian lower bound of the density.

        The price is that of Gaussian noise: σ² is learned from the same rows, and large ν must give the same answer.
        """
        problem = Problem(
            design=rows.unweighted(),
            t=(y - units.centre if flat else y) / units.unit,
            weight=weight,
            likelihood=likelihood,
            prior=prior,
            price=price,
            flat_intercept=flat,
            bounded=True,
        )
        return cls(rows, units, problem, settings, n_features)

    @property
    def centre(self) -> float:
        """The value of y that counts as zero."""
        return self.units.centre if self.problem.flat_intercept else 0.0

    def fit(self) -> tuple[StudentFit | OutlierFit, Result]:
        """The best single model, by the search."""
        problem, unit = self.problem, self.units.unit
        result = glm.find(problem, self.settings)
        found = result.likelihood
        assert isinstance(found, StudentT)
        n = float(problem.weight.sum()) - problem.flat_intercept
        if isinstance(found, Contaminated):  # rows that inform about the noise
            n *= 1 - found.share
        fit = glm_fit(
            problem,
            result,
            self.n_features,
            self.centre,
            unit,
            noise_variance=found.noise * unit**2,
            freedom=max(n - float(result.posterior.gamma.sum()), 1.0),
            noise_at_floor=found.noise <= NOISE_FLOOR,
        )
        return _with_noise(fit, found), result

    def average(self, single: LinearFit, result: Result, X: FloatArray, odds: Odds, chains: Chains) -> AveragedFit:
        """The average over models, with the mixture that the single model has learned."""
        assert isinstance(result.likelihood, StudentT)
        problem = replace(self.problem, likelihood=result.likelihood)
        eta = (single.latent(X) - self.centre) / self.units.unit
        found = average_robust(problem, odds, result.active, chains, eta)
        counted = np.array([draw.share for draw in found.draws])
        averaged = averaged_fit(
            single,
            found,
            self.units.scale,
            self.rows.origin,
            level=self.centre if problem.flat_intercept else None,
            unit=self.units.unit,
            noise=float(counted @ [draw.noise for draw in found.draws] / counted.sum()),
            freedom=single.freedom,
        )
        if isinstance(single, OutlierFit):
            share, scale = single.outlier_share, single.outlier_scale
            return AveragedOutlierFit(**vars(averaged), outlier_share=share, outlier_scale=scale)
        return AveragedStudentFit(**vars(averaged), noise_freedom=result.likelihood.freedom)


def _with_noise(fit: LinearFit, found: StudentT) -> StudentFit | OutlierFit:
    if isinstance(found, Contaminated):
        return OutlierFit(**vars(fit), outlier_share=found.share, outlier_scale=found.scale)
    return StudentFit(**vars(fit), noise_freedom=found.freedom)


def first_likelihood(noise: str, noise_freedom: str | float) -> StudentT:
    """Noise to begin with."""
    if noise == "outliers":
        return Contaminated(min_noise=NOISE_FLOOR)
    learns = noise_freedom == "learn"
    freedom = FIRST_FREEDOM if learns else float(noise_freedom)
    return StudentT(freedom=freedom, learns_freedom=learns, min_noise=NOISE_FLOOR)
