"""Sparse Poisson regression: counts with a log link."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from numbers import Integral, Real
from typing import Any, Self, TypeVar, cast

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from sparsebayes.core.likelihoods import Poisson, poisson_deviance
from sparsebayes.core.mixtures import log_normal_moments, poisson_interval
from sparsebayes.core.negative_binomial import NegativeBinomial, negative_binomial_interval
from sparsebayes.core.predictive import check_coverage
from sparsebayes.core.prices import PerUnit, classification_price
from sparsebayes.core.priors import ARD
from sparsebayes.core.types import FloatArray
from sparsebayes.data.design import FeatureDesign
from sparsebayes.data.source import design_of
from sparsebayes.engine import glm
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.site_average import average_by_sites
from sparsebayes.estimators._averaged import AveragedFit, averaged_fit
from sparsebayes.estimators._averaging import PARAMETERS, AveragingMixin
from sparsebayes.estimators._base import fit_context, progress, threads_for, warn_unless_converged, watched, whole_fit
from sparsebayes.estimators._elsewhere import lazily, streamed
from sparsebayes.estimators._feature_prices import MIN_GAIN, feature_prices
from sparsebayes.estimators._groups import GROUPS, GroupsMixin
from sparsebayes.estimators._inputs import over_blocks
from sparsebayes.estimators._linear import LinearFit, glm_fit
from sparsebayes.estimators._regressor import LinearRegressor
from sparsebayes.estimators._streaming import BlockCountsMixin
from sparsebayes.estimators._validation import checked_weight

TYPICAL = 1.0
"""Typical prior variance of a log rate's weight: a feature that is one standard deviation higher may double the rate or
more, but seldom makes it ten times larger."""


F = TypeVar("F", bound=Callable[..., Any])


def refuse_offset(method: F) -> F:
    """Say how an offset is given: R and statsmodels call the logarithm of the exposure so."""

    @wraps(method)
    def checked(self: Any, *args: Any, **named: Any) -> Any:
        if "offset" in named:
            raise TypeError(
                f"{method.__name__}() takes no offset: the offset is the logarithm of the exposure, so give "
                "exposure=np.exp(offset)"
            )
        return method(self, *args, **named)

    return cast("F", checked)


class SparsePoissonRegressor(BlockCountsMixin, AveragingMixin, GroupsMixin, LinearRegressor):
    """Poisson regression that finds which features matter.

    Counts y are Poisson with rate exposure × exp(intercept + Xw). Every weight has a zero-mean Gaussian prior with its
    own precision (automatic relevance determination). The precisions are those of largest evidence, by Laplace's
    method, less a price for each feature kept. See docs/counts.md.

    Parameters
    ----------
    groups : array-like of shape (n_features,), list of lists of int, or None, default=None
        Features that enter and leave the model together: one label for each feature, or lists of column numbers, where
        features that no list has are groups of their own. The features of a group share one precision, `min_gain` is
        asked once of each group ("auto" counts groups), and there is one inclusion probability for all of them
        (docs/groups.md). They need a positive `min_gain`.
    min_gain : "auto" or float, default="auto"
        Evidence, in nats, that a feature must bring to be kept. "auto" controls false discoveries: it asks for a
        squared z-score of log D + log max(N, D) or more (N rows, D features; docs/min_gain.md). 0 is the textbook rule,
        which keeps many features that carry nothing.
    distribution : {"poisson", "negative-binomial"}, default="poisson"
        Distribution of the counts. "negative-binomial": they vary more than Poisson's, with the variance
        mean + mean²/k, and k is learned (`shape_`; docs/counts.md). It needs a positive `min_gain`.
    rule : {"fixed-point", "em"}, default="fixed-point"
        With `min_gain=0`: how all precisions are re-estimated at once, by MacKay's fast rule or by EM. With a positive
        `min_gain` features are searched one by one, and this has no effect.
    max_scale : float, default=1000.0
        Largest prior standard deviation of a weight, for a feature of standard deviation one. It keeps weights finite
        where a feature alone marks rows without any event.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    max_iter : int, default=10000
        Largest number of steps.
    tol : float, default=1e-6
        Iterations end when neither the objective (in nats) nor the log precisions move by more than this.
    average, n_chains, max_flips, random_state, n_jobs
        As in `ARDRegressor`: by default predictions and weights are averaged over models, under Gaussian
        approximations of the likelihood that all models share.
    verbose : int, default=0
        1: a live line in terminals and notebooks says how the fit goes. 2: a line on standard error for each step.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Posterior mean of the weights, zero for features that are gone. One unit more of a feature multiplies the rate
        by exp of its weight.
    intercept_ : float
        Log rate per unit of exposure at x = 0.
    active_ : ndarray of int
        Indices of the features kept.
    precision_, covariance_ : ndarray
        Prior precisions and posterior covariance of the kept weights.
    shape_ : float
        With the negative binomial distribution only: k.
    dispersion_ : float
        Pearson's χ² over its degrees of freedom. It is near 1 for Poisson counts. Much larger values mean that the
        counts vary more than the model says: intervals are then too narrow and too many features may be kept.
    relevance_ : ndarray of shape (n_features,)
        γ in [0, 1]: how well the data determine each weight; 0 for features that are gone.
    gain_ : ndarray of shape (n_features,)
        Evidence, in nats, that each feature brings, or would bring if it were added.
    groups_ : ndarray of int
        With `groups` only: the number of each feature's group.
    group_relevance_, group_inclusion_probability_ : ndarray
        With `groups` only, the second with averaging: `relevance_` (the mean over its features) and
        `inclusion_probability_` of each group.
    min_gain_ : float
        The price in nats that was charged for each feature.
    log_evidence_ : float
        Log probability of y with the weights integrated out, by Laplace's method.
    optimality_gap_ : float
        Nats that the best single change would bring by the local Gaussian approximation.
    inclusion_probability_, coef_std_, n_features_posterior_, chain_error_, effective_sample_size_, n_flips_
        With averaging only, as in `ARDRegressor`; so are `credible_sets_` and the best single model, `model_`.
    evidence_path_, converged_, n_iter_, n_jittered_
        As in `ARDRegressor`.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsebayes import SparsePoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 50))
    >>> hours = rng.uniform(1, 10, 200)
    >>> y = rng.poisson(hours * np.exp(0.6 * X[:, 3] - 0.5 * X[:, 7]))
    >>> model = SparsePoissonRegressor().fit(X, y, exposure=hours)
    >>> model.active_
    array([3, 7])
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "groups": GROUPS,
        "min_gain": MIN_GAIN,
        "distribution": [StrOptions({"poisson", "negative-binomial"})],
        "rule": [StrOptions({"fixed-point", "em"})],
        "max_scale": [Interval(Real, 0, None, closed="neither")],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "verbose": ["verbose"],
        **PARAMETERS,
    }

    def __init__(
        self,
        *,
        groups: Any = None,
        min_gain: Any = "auto",
        distribution: str = "poisson",
        rule: str = "fixed-point",
        max_scale: float = 1000.0,
        fit_intercept: bool = True,
        max_iter: int = 10_000,
        tol: float = 1e-6,
        average: bool | str = "auto",
        n_chains: int = 4,
        max_flips: int = 6000,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.groups = groups
        self.min_gain = min_gain
        self.distribution = distribution
        self.rule = rule
        self.max_scale = max_scale
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.average = average
        self.n_chains = n_chains
        self.max_flips = max_flips
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    @refuse_offset
    @streamed
    @whole_fit
    @fit_context(prefer_skip_nested_validation=True)
    @watched
    def fit(self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Counts: zero or positive. Values that are not whole numbers are allowed, as for scikit-learn's
            `PoissonRegressor`; the log evidence is then that of a quasi-likelihood.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts: an integer weight is the same as repeated rows.
        exposure : array-like of shape (n_samples,), optional
            Time, area or population at risk of each row, positive. The rate is proportional to it. (Other packages
            take its logarithm as `offset`: give `exposure=np.exp(offset)`.)
        """
        X, y, weight, counts = self._validated(X, y, sample_weight)
        offset = _log_exposure(exposure, len(counts))[counts]
        _check_counts(y)
        if self.fit_intercept and not y.any():
            raise ValueError("y is zero in every row: the log rate has no finite estimate")
        self._find_groups([])
        if hasattr(self, "shape_"):
            del self.shape_
        if self.distribution != "poisson" and isinstance(self.min_gain, Real) and self.min_gain == 0:
            raise ValueError("distribution='negative-binomial' needs a positive min_gain, or 'auto'")
        with threads_for(X.size):
            single, averaged, rows = self._fit_counts(X, y, weight, offset)
        self._forget_averages()
        self._store([single], single=True)
        self.dispersion_ = self._dispersion(single, y, weight, self._rate(X, offset))
        warn_unless_converged(self)
        if averaged is not None:
            self._store_averages([averaged], [rows], single=True)
            self.intercept_, self.covariance_ = averaged.intercept, averaged.covariance
            self.dispersion_ = self._dispersion(single, y, weight, self._rate(X, offset))
        self._store_groups()
        return self

    def _fit_counts(
        self, X: FloatArray, y: FloatArray, weight: FloatArray, offset: FloatArray
    ) -> tuple[LinearFit, AveragedFit | None, FeatureDesign]:
        """The single model and the average in the data's units; the search works on columns of mean square one."""
        n_features = X.shape[1]
        usual = classification_price(float(weight.sum()), self._n_units)
        price = feature_prices(self, usual)
        rows = design_of(X).standardised(weight, centre=self.fit_intercept).unweighted()
        problem = Problem(
            design=rows,
            t=y,
            weight=weight,
            likelihood=Poisson(offset) if self.distribution == "poisson" else NegativeBinomial(offset),
            prior=self._grouped_prior(ARD(min_alpha=1 / self.max_scale**2), n_features),
            price=PerUnit(price),
            flat_intercept=self.fit_intercept,
        )
        result = glm.sparse(problem, self.rule, Settings(self.tol, self.max_iter, progress(self.verbose)))
        single = glm_fit(problem, result, n_features)
        if isinstance(result.likelihood, NegativeBinomial):
            self.shape_ = result.likelihood.shape
            problem = replace(problem, likelihood=result.likelihood)
        if not self._chooses_average((len(weight), n_features), []):
            return single, None, rows
        mean, variance = over_blocks(single.latent_moments, X, width=len(single.mean))
        rate = float(weight @ y / weight.sum())
        odds = self._group_odds(self._odds(price, usual, np.isfinite(rows.unit)))
        moments, given = (mean[:, None], variance[:, None]), (1 / rate, TYPICAL)
        (found,) = average_by_sites([problem], odds, [result.active], self._chains(), moments, *given)
        level = 0.0 if self.fit_intercept else None
        return single, averaged_fit(single, found, rows.unit, rows.origin, level=level), rows

    @property
    def _excess(self) -> float:
        """1/k, the relative variance of the rates around the model; 0 for Poisson counts."""
        return 1 / self.shape_ if hasattr(self, "shape_") else 0.0

    def _dispersion(self, fit: LinearFit, y: FloatArray, weight: FloatArray, mean: FloatArray) -> float:
        """Pearson's χ² over the degrees of freedom that intercept and weights leave."""
        left = float(weight.sum()) - fit.basis.ones - float(fit.gamma.sum())
        return float(weight @ ((y - mean) ** 2 / (mean + self._excess * mean**2))) / max(left, 1.0)

    def _log_rate(self, X: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and variance of the log rate."""
        (fit,) = self._fits
        return fit.latent(X) + offset, fit.latent_variance(X)

    def _moments(self, X: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and variance of the rate."""
        return log_normal_moments(*self._log_rate(X, offset))

    def _rate(self, X: Any, offset: FloatArray) -> FloatArray:
        """Posterior mean of the rate, block by block."""
        return over_blocks(self._moments, X, offset, width=self._width)[0]

    @refuse_offset
    @lazily
    def predict(
        self, X: Any, return_std: bool = False, *, exposure: Any = None
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Expected counts: the posterior mean of the rate, exp(m + v/2) for a log rate of mean m and variance v.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std : bool, default=False
            Also return the standard deviation of new counts: their variance is the expected count plus the variance
            of the rate.
        exposure : array-like of shape (n_samples,), optional
            Exposure of each row; 1 by default.
        """
        X = self._validate(X)
        mean, variance = over_blocks(self._moments, X, _log_exposure(exposure, X.shape[0]), width=self._width)
        if self._excess:
            with np.errstate(over="ignore"):
                variance = variance + self._excess * (variance + mean**2)
        return (mean, np.sqrt(mean + variance)) if return_std else mean

    @refuse_offset
    @lazily
    def predict_interval(self, X: Any, coverage: float = 0.9, *, exposure: Any = None) -> FloatArray:
        """Central interval of new counts: lower and upper end, both included, on the last axis.

        The ends are whole numbers. Counts are discrete, so the interval holds with probability `coverage` or more.
        Ends beyond 2⁵³ are given as infinite.
        """
        check_coverage(coverage)
        X = self._validate(X)

        def interval(rows: Any, offset: FloatArray) -> FloatArray:
            m, v = self._log_rate(rows, offset)
            if self._excess:
                return negative_binomial_interval(m, v, self.shape_, coverage)
            return poisson_interval(m, v, coverage)

        return over_blocks(interval, X, _log_exposure(exposure, X.shape[0]), width=self._width)

    @refuse_offset
    def score(self, X: Any, y: Any, sample_weight: Any = None, *, exposure: Any = None) -> float:
        """D², the share of the Poisson deviance that is explained.

        1 is the best value. The model without features, which predicts the same rate per unit of exposure for all
        rows, has 0.
        """
        X = self._validate(X)
        offset = _log_exposure(exposure, X.shape[0])
        y = column_or_1d(check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"))
        _check_counts(y)
        check_consistent_length(X, y)
        weight = checked_weight(sample_weight, X)
        exposed = np.exp(offset)
        constant = exposed * (weight @ y / (weight @ exposed))
        deviance = [float(weight @ poisson_deviance(y, mean)) for mean in (self._rate(X, offset), constant)]
        return 1 - deviance[0] / deviance[1] if deviance[1] else float(deviance[0] == 0)


def _check_counts(y: FloatArray) -> None:
    if (y < 0).any():
        raise ValueError(f"y has negative values (the smallest is {y.min():g}): counts must be zero or positive")


def _log_exposure(exposure: Any, n_rows: int) -> FloatArray:
    """Logarithm of the exposure of each row; 0 where none is given."""
    if exposure is None:
        return np.zeros(n_rows)
    exposure = check_array(exposure, ensure_2d=False, dtype=np.float64, input_name="exposure")
    if exposure.shape != (n_rows,):
        raise ValueError(f"exposure has shape {exposure.shape}, but X has {n_rows} rows: give one number for each row")
    if not (exposure > 0).all():
        raise ValueError(f"exposure must be positive in every row; the smallest is {exposure.min():g}")
    return np.asarray(np.log(exposure))
