"""One output of `ARDRegressor`: the problem that its parameters pose, the best model, and the average over models."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from sparsebayes.core.prices import PerUnit, is_free
from sparsebayes.core.priors import ARD
from sparsebayes.core.types import BoolArray, FloatArray
from sparsebayes.data.design import FeatureDesign
from sparsebayes.engine.bounded_chain import average_bounded
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.model_average import Chains, Odds, average_regression
from sparsebayes.engine.regression import solve
from sparsebayes.estimators._averaged import AveragedFit, constant_average, regression_average
from sparsebayes.estimators._base import progress
from sparsebayes.estimators._feature_prices import feature_prices
from sparsebayes.estimators._heteroscedastic import fit_heteroscedastic
from sparsebayes.estimators._lasso import weighted_lasso
from sparsebayes.estimators._linear import LinearFit, Units, constant_fit
from sparsebayes.estimators._moments import Target
from sparsebayes.estimators._outputs import fit_outputs
from sparsebayes.estimators._positive import check_positive, positive_fit, positive_of, signed_price, signed_prior
from sparsebayes.estimators._robust import RobustRegression, first_likelihood, robust_units

WIDEST_BOUNDED = 2000
"""Features up to which average="auto" averages over bounded weights: the chains keep the whole Gram matrix."""


class OutputFitsMixin:
    """From parameters to fits, output by output."""

    solver: str
    noise: str
    noise_freedom: str | float
    shared_noise: bool
    positive: Any
    average: bool | str
    a: float
    b: float
    c: float
    d: float
    fit_intercept: bool
    intercept_prior: str
    max_iter: int
    tol: float
    verbose: int
    n_features_in_: int
    _n_units: int
    _find_groups: Callable[[list[str]], None]
    _grouped_prior: Callable[[ARD, int], ARD]
    _unit_price: Callable[..., PerUnit]
    _group_odds: Callable[[Odds], Odds]
    _odds: Callable[..., Odds]
    _chains: Callable[[], Chains]
    _chooses_average: Callable[..., bool]

    def _fit_output(
        self,
        columns: Any,
        rows: FeatureDesign,
        y: FloatArray,
        weight: FloatArray,
        target: Target,
        flat: bool,
        previous: LinearFit | None,
        averages: bool,
        known: float | None,
    ) -> tuple[LinearFit, AveragedFit | None]:
        """The best single model of one output and, if so wished, the average over models.

        Args:
            columns: The input columns, as they are, that `rows` standardises.
        """
        if self.noise == "heteroscedastic":
            regress = partial(self._regress, flat)
            return fit_heteroscedastic(columns, y, weight, flat, averages, self._settings(), regress)
        if self.noise == "gaussian" or target.constant:
            return self._fit_target(rows, target, flat, previous, averages, known)
        units = robust_units(rows, y, weight, self.fit_intercept)
        price = self._unit_price(self._prices(rows.n_columns)[0], target.total - flat)
        given = rows, y, weight, flat, units, self._prior(units, rows.n_columns), price
        likelihood = first_likelihood(self.noise, self.noise_freedom)
        regression = RobustRegression.of(*given, likelihood, self._settings(), self.n_features_in_)
        single, result = regression.fit()
        if not averages:
            return single, None
        odds = self._group_odds(self._odds(price.nats, float(np.log(self._n_units)), np.isfinite(rows.unit)))
        return single, regression.average(single, result, columns, odds, self._chains())

    def _fit_jointly(
        self, rows: FeatureDesign, Y: FloatArray, weight: FloatArray, flat: bool, averages: bool, known: float | None
    ) -> list[tuple[LinearFit, AveragedFit | None]]:
        """The same for outputs that share their features."""
        price, usual = self._prices(rows.n_columns)
        odds = self._odds(price, usual, np.isfinite(rows.unit))
        shared, chains = self.shared_noise, self._chains() if averages else None
        given = rows, Y, weight, flat, price, self._settings()
        return fit_outputs(*given, shared_noise=shared, known=known, odds=odds, chains=chains)

    def _regress(
        self, flat: bool, rows: FeatureDesign, y: FloatArray, weight: FloatArray, averages: bool
    ) -> tuple[LinearFit, AveragedFit | None]:
        """The ordinary regression on weighted rows."""
        target = Target.of(y, weight, rows.root_weight, self.fit_intercept, flat)
        return self._fit_target(rows, target, flat, None, averages, None)

    def _prior(self, units: Units, n_columns: int) -> ARD:
        prior = ARD(self.a, units.rate(self.b) if self.b else 0.0)
        bounds = self._positive()
        return self._grouped_prior(prior, n_columns) if bounds is None else signed_prior(prior, bounds, n_columns)

    def _positive(self) -> BoolArray | None:
        return positive_of(self.positive, self.n_features_in_)

    def _read_groups(self, joint: bool = False) -> None:
        needs = {
            "solver='auto' or 'sequential'": self.solver in ("auto", "sequential"),
            "a=b=0": not (self.a or self.b),
            "multi_output='independent'": not joint,
        }
        if self._positive() is not None:
            check_positive(self, joint)
        self._find_groups([need for need, holds in needs.items() if not holds])

    def _prices(self, n_columns: int) -> tuple[FloatArray | float, float]:
        """Nats asked of each column, and the usual price."""
        price = feature_prices(self, usual := float(np.log(self._n_units)))
        if np.ndim(price) and n_columns > self.n_features_in_:  # an intercept with a precision of its own pays, too
            price = np.append(price, usual)
        return price, usual

    def _fit_target(
        self,
        rows: FeatureDesign,
        target: Target,
        flat: bool,
        previous: LinearFit | None,
        averages: bool,
        known: float | None,
    ) -> tuple[LinearFit, AveragedFit | None]:
        """With Gaussian noise, in standard units: target of variance one, columns of mean square one."""
        n_features, (price, usual) = self.n_features_in_, self._prices(rows.n_columns)
        t, centre, unit, total, constant, projection = target
        if constant:
            single = constant_fit(centre, self.fit_intercept, n_features, float(np.max(price)))
            return single, constant_average(single, n_features) if averages else None
        units, bounds = Units(centre, unit, rows.unit / unit), self._positive()
        asked = price if bounds is None else signed_price(price, bounds)
        problem = LeastSquares(
            design=rows,
            t=t,
            n_weighted=total,
            flat_intercept=flat,
            prior=self._prior(units, rows.n_columns),
            price=self._unit_price(asked, total - flat if known is None else np.inf),
            c=self.c,
            d=self.d / unit**2,
            known_projection=projection,
            known_noise=None if known is None else known / unit**2,
        )
        result = solve(
            problem,
            self._choose_solver(problem),
            self._settings(),
            lasso=weighted_lasso,
            start=None if previous is None else units.start(previous),
        )
        single = units.fit(problem, result, n_features)
        if bounds is not None:
            single = positive_fit(single, bounds, float(np.max(price)))
        if not averages:
            return single, None
        odds = self._group_odds(self._odds(price, usual, problem.column_energy > 0))
        if known is not None:  # in units of the noise
            units = Units(centre, np.sqrt(known), rows.unit / np.sqrt(known))
            ratio = unit / units.unit
            projection = None if projection is None else projection * ratio
            problem = replace(problem, t=problem.t * ratio, known_projection=projection, known_noise=1.0)
        if bounds is None:
            found = average_regression(problem, odds, result.active, self._chains())
        else:
            found = average_bounded(problem, bounds, odds, result.active, self._chains())
        return single, regression_average(single, found, units, problem, rows.origin, problem.n)

    def _settings(self) -> Settings:
        return Settings(self.tol, self.max_iter, progress(self.verbose))

    def _averages(self, shape: tuple[float, int], n_outputs: int = 1) -> bool:
        """Whether to average over models, which `n_outputs` have in common."""
        why = {
            "intercept_prior='flat'": self.intercept_prior == "flat" or not self.fit_intercept,
            "a=b=0": not (self.a or self.b),
        }
        if self.average == "auto" and shape[1] > WIDEST_BOUNDED and self._positive() is not None:
            return False
        return self._chooses_average(shape, [need for need, holds in why.items() if not holds], n_outputs)

    def _choose_solver(self, problem: LeastSquares) -> str:
        if self.solver != "auto":
            return self.solver
        learned = problem.known_noise is None and self._positive() is None
        textbook = is_free(problem.price) and learned and problem.n_columns <= problem.design.n_rows
        return "fixed-point" if textbook else "sequential"
