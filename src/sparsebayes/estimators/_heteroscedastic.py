"""Noise whose variance depends on the features: a second sparse model, of the logarithm of the variance.

By turns: the regression is fitted to rows weighted by their noise; then the squared residuals, with the variance of the
predictor added, are regressed by the same search (docs/noise.md).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sparsebayes.core.log_variance import LogVariance
from sparsebayes.core.prices import PerUnit, classification_price
from sparsebayes.core.priors import ARD
from sparsebayes.core.types import FloatArray
from sparsebayes.data.design import FeatureDesign
from sparsebayes.data.source import design_of
from sparsebayes.engine import glm
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.problem import Problem
from sparsebayes.estimators._averaged import AveragedFit
from sparsebayes.estimators._linear import LinearFit, constant_fit, glm_fit
from sparsebayes.estimators._row_noise import whitened

MAX_TURNS = 20
"""Turns between the two models; five are usual."""
SETTLED = 1e-3
"""Largest change of a row's log variance at which the turns end: a thousandth of the noise variance."""
MAX_SCALE = 10.0
"""Largest prior standard deviation of a weight of the log variance, for a feature of standard deviation one: a noise
variance that changes by e¹⁰ with one deviation of a feature is far more than residuals can determine."""


@dataclass(frozen=True)
class HeteroscedasticFit(LinearFit):
    """A linear fit whose noise has the variance `noise_variance` × exp(predictor of `log_noise`)."""

    log_noise: LinearFit | None = None

    def own_variance(self, X: FloatArray) -> FloatArray:
        """The noise variance of each row."""
        assert self.log_noise is not None
        return self.noise_variance * np.exp(self.log_noise.latent(X))


@dataclass(frozen=True, kw_only=True)
class AveragedHeteroscedasticFit(AveragedFit, HeteroscedasticFit):
    """The average over models of the predictor, with the same model of the noise."""


Found = tuple[LinearFit, AveragedFit | None]
Regress = Callable[[FeatureDesign, FloatArray, FloatArray, bool], Found]
"""(rows, y, weight, averages) → the ordinary regression on weighted rows."""


def fit_heteroscedastic(
    X: FloatArray, y: FloatArray, weight: FloatArray, flat: bool, averages: bool, settings: Settings, regress: Regress
) -> Found:
    """Regression and noise by turns; the average over models, if so wished, is taken at the end."""
    counts, n = np.ones(len(y), dtype=bool), len(y)
    log_noise, log_v = constant_fit(0.0, True, X.shape[1], 0.0), np.zeros(n)

    def regression(average: bool) -> Found:
        given = whitened(X, y, weight, np.exp(log_v), counts, flat)
        rows = design_of(X).standardised(given.weight, centre=flat)
        single, averaged = regress(rows, y, given.weight, average)
        return given.back(single), None if averaged is None else given.back(averaged)

    for _ in range(MAX_TURNS):
        single, _ = regression(False)
        if not single.noise_variance > 0 or single.noise_at_floor:
            break
        square = (y - single.latent(X)) ** 2 + single.latent_variance(X)
        log_noise = fit_log_variance(X, square / single.noise_variance, weight, settings)
        before, log_v = log_v, log_noise.latent(X)
        # The mean of the variances is one, so that `noise_variance` is the mean noise of the rows.
        mean = float(np.log(weight @ np.exp(log_v) / weight.sum()))
        log_v, log_noise = log_v - mean, _shifted(log_noise, -mean)
        if np.abs(log_v - before).max() <= SETTLED:
            break
    single, averaged = regression(averages)
    known = HeteroscedasticFit(**vars(single), log_noise=log_noise)
    if averaged is None:
        return known, None
    return known, AveragedHeteroscedasticFit(**vars(averaged), log_noise=log_noise)


def fit_log_variance(X: FloatArray, square: FloatArray, weight: FloatArray, settings: Settings) -> LinearFit:
    """A sparse model of the log variance, with the price of the classifiers: nothing but the mean is learned beside."""
    rows = design_of(X).standardised(weight, centre=True).unweighted()
    problem = Problem(
        design=rows,
        t=square,
        weight=weight,
        likelihood=LogVariance(),
        prior=ARD(min_alpha=1 / MAX_SCALE**2),
        price=PerUnit(classification_price(float(weight.sum()), X.shape[1])),
        flat_intercept=True,
    )
    return glm_fit(problem, glm.find(problem, replace(settings, callback=None)), X.shape[1])


def _shifted(fit: LinearFit, shift: float) -> LinearFit:
    """With another intercept."""
    mean = fit.mean.copy()
    mean[-1] += shift
    return replace(fit, mean=mean)
