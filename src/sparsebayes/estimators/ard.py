"""Linear regression with automatic relevance determination."""

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from sparsebayes.data.design import FeatureDesign
from sparsebayes.data.source import design_of, with_ones
from sparsebayes.engine.regression import SOLVERS
from sparsebayes.estimators._averaged import AveragedFit
from sparsebayes.estimators._averaging import PARAMETERS, AveragingMixin
from sparsebayes.estimators._base import counted, fit_context, threads_for, watched, whole_fit
from sparsebayes.estimators._elsewhere import streamed
from sparsebayes.estimators._feature_prices import MIN_GAIN
from sparsebayes.estimators._groups import GROUPS, GroupsMixin
from sparsebayes.estimators._linear import LinearFit
from sparsebayes.estimators._moments import MomentsMixin, Target, projected
from sparsebayes.estimators._noise import REMEDIES, NoiseMixin
from sparsebayes.estimators._output_fits import OutputFitsMixin
from sparsebayes.estimators._outputs import check_joint
from sparsebayes.estimators._positive import (
    POSITIVE,
)
from sparsebayes.estimators._regressor import GaussianRegressor, LinearRegressor
from sparsebayes.estimators._row_noise import whitened
from sparsebayes.estimators._streaming import BlockMomentsMixin


class ARDRegressor(
    BlockMomentsMixin,
    MomentsMixin,
    OutputFitsMixin,
    NoiseMixin,
    AveragingMixin,
    GroupsMixin,
    LinearRegressor,
    GaussianRegressor,
):
    """Linear regression that finds which features matter.

    Every weight has a zero-mean Gaussian prior with its own precision. The precisions and the noise variance are those
    of largest evidence (the probability of the data with the weights integrated out), less a price for each feature
    kept; the precisions of features that do not pay run to infinity, and these features are gone.

    Parameters
    ----------
    solver : {"auto", "sequential", "fixed-point", "em", "reweighted-l1"}, default="auto"
        How the maximum is searched for. All solvers climb the same objective and end with the same certificate (see
        `optimality_gap_`). "sequential" adds, re-estimates or deletes one feature at a time (Tipping & Faul);
        "fixed-point" (MacKay) and "em" re-estimate all at once; "reweighted-l1" solves a chain of lassos (Wipf &
        Nagarajan). "auto" is sequential, except for the textbook answer (`min_gain=0`) on data with more rows than
        features, where many stay and the fixed point is faster.
    noise : {"gaussian", "student", "outliers", "heteroscedastic"}, default="gaussian"
        Distribution of the noise (docs/outliers.md). "student" has heavy tails, so that outliers in y hardly count.
        With "outliers" each row may have a large shift of its own: `outliers_` names these rows. "heteroscedastic": the
        logarithm of the noise variance is a sparse linear model of the features (docs/noise.md). All need `solver`
        "auto" or "sequential", `c=d=0` and `warm_start=False`.
    noise_freedom : "learn" or float, default="learn"
        With Student noise: its degrees of freedom ν, 1 or more. Small values mean heavy tails. "learn" chooses ν
        between 1 and 100 by evidence.
    noise_variance : "learn" or float, default="learn"
        With Gaussian noise: its variance where that is known, in squared units of y (docs/noise.md). It needs `solver`
        "auto" or "sequential" and `c=d=0`.
    multi_output : {"independent", "joint"}, default="independent"
        For 2-D y. "independent": one model for each output. "joint": a feature is relevant for all outputs or for none,
        with one relative precision for all (docs/outputs.md); `min_gain` is then asked of all outputs together. It
        needs Gaussian noise, `solver` "auto" or "sequential", `a=b=c=d=0`, a flat intercept and `warm_start=False`.
    shared_noise : bool, default=False
        With `multi_output="joint"`: whether all outputs have the same noise variance. Otherwise each has its own,
        unless `noise_variance` is given.
    groups : array-like of shape (n_features,), list of lists of int, or None, default=None
        Features that enter and leave the model together: one label for each feature, or lists of column numbers, where
        features that no list has are groups of their own. The features of a group share one precision, `min_gain` is
        asked once of each group ("auto" counts groups), and there is one inclusion probability for all of them
        (docs/groups.md). They need `solver` "auto" or "sequential", a positive
        `min_gain`, `a=b=0` and `multi_output="independent"`.
    positive : bool or array-like of bool of shape (n_features,), default=False
        Whether weights may not be negative: all of them, or those of some features (docs/positive.md). It needs
        Gaussian noise, `solver` "auto" or "sequential", `groups=None` and `multi_output="independent"`.
    min_gain : "auto" or float, default="auto"
        Evidence, in nats, that a feature must bring to be kept. 0 is the textbook's type-II maximum likelihood, which
        keeps many features that carry nothing. "auto" is log(n_features): prior odds of 1 to n_features that a feature
        is in, which on pure noise keeps anything in about one data set of twenty or fewer. Because the noise is learned
        from the same rows, k features together must bring k × min_gain × n/(n - k) nats.
    a, b : float, default=0
        Gamma(a, b) hyper-prior (shape, rate) on the weight precisions, in the units of the data; flat by default.
    c, d : float, default=0
        Gamma(c, d) hyper-prior on the noise precision; flat by default.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    intercept_prior : {"flat", "ard"}, default="flat"
        A flat prior, integrated out exactly and never pruned; or one more weight with its own precision, as in the
        original toolboxes.
    max_iter : int, default=10000
        Largest number of steps of a stage (iterations of a batch solver, actions of the search).
    tol : float, default=1e-6
        The fit has converged when no single change of a precision or of the noise gains more than this many nats.
    warm_start : bool, default=False
        Start from the features, precisions and noise of the previous fit.
    average : bool or "auto", default="auto"
        Whether to average over models. With averaging, predictions, weights and intervals are means over many sets of
        features, each counted with its posterior probability, and `inclusion_probability_` says how sure each feature
        is. False: one model, the one of largest evidence. "auto" averages up to 20,000 features (features times
        outputs with `multi_output="joint"`; 2,000 with `positive`), if there are no more than 2,000 rows or 2,000
        features, with Gaussian noise (up to 1,000,000 numbers in X with `noise="outliers"`, never with Student noise),
        unless `min_gain` is a number, which sets the price of a single model.
    n_chains : int, default=4
        Number of Markov chains that explore the models.
    max_flips : int, default=6000
        Largest number of steps of each chain. They stop earlier if they agree: a standard error of 0.07 for the least
        certain inclusion probability.
    n_jobs : int or None, default=None
        Number of chains that run at the same time (joblib). The answer does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Seed of the chains. With the same seed a fit gives the same answer, bit by bit.
    verbose : int, default=0
        1: a live line in terminals and notebooks says how the fit goes. 2: a line on standard error for each step.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Posterior mean of the weights. For a single model it is zero for features that are gone.
    intercept_ : float or ndarray of shape (n_outputs,)
        Predicted value at x = 0.
    active_ : ndarray of int
        Indices of the features kept; with averaging, of those with an inclusion probability of 0.9 or more. For 2-D y,
        this and the next two are lists with one array per output.
    precision_ : ndarray
        Prior precisions of the weights that the single model keeps.
    covariance_ : ndarray
        Posterior covariance of the weights that the single model keeps.
    inclusion_probability_ : ndarray like `coef_`
        With averaging only, like the next seven: probability that each feature is in the model.
    coef_std_ : ndarray like `coef_`
        Posterior standard deviation of the weights, over all models.
    credible_sets_ : list of CredibleSet, or a list of such lists for 2-D y
        Small sets of correlated features of which at least one is in the model with probability 0.9 or more. Each has
        the `features`, the most probable first, their `probability`, and the smallest absolute correlation between two
        of them, `purity`.
    n_features_posterior_ : ndarray, or a list of them for 2-D y
        Probabilities of 0, 1, … features.
    model_ : ARDRegressor
        The best single model, as with `average=False`. The attributes `relevance_`, `gain_`, `precision_`,
        `covariance_`, `log_evidence_`, `evidence_path_` and `optimality_gap_` are its.
    chain_error_ : float
        Standard error of the least certain inclusion probability, from the spread between the chains.
    effective_sample_size_ : float
        Equally weighted blocks of steps that those of the chains are worth.
    n_flips_ : int
        Number of steps of each chain that were counted.
    noise_variance_ : float or ndarray of shape (n_outputs,)
        Variance of the noise, of rows with `row_noise` one. With Student noise the squared scale σ²; the variance is
        σ²ν/(ν - 2) for ν > 2, and infinite otherwise.
    noise_freedom_ : float or ndarray of shape (n_outputs,)
        With Student noise only: its degrees of freedom ν, as given or as learned.
    outlier_weight_ : ndarray like y
        With Student noise only: how much each training row counts, relative to a row with a typical residual. It is
        near (ν + 1)/ν for small residuals and near zero for outliers; nan for rows of weight zero.
    noise_coef_, noise_intercept_ : ndarray like `coef_`, and float or ndarray of shape (n_outputs,)
        With `noise="heteroscedastic"` only: weights and intercept of the logarithm of the noise variance;
        `noise_variance_` is its mean over the training rows.
    outlier_probability_ : ndarray like y
        With `noise="outliers"` only, like the next two: probability that each training row has a shift of its own; nan
        for rows of weight zero.
    outliers_ : ndarray of int, or a list of them for 2-D y
        Rows with a probability above ½.
    outlier_share_ : float or ndarray of shape (n_outputs,)
        Share of such rows, as learned.
    relevance_ : ndarray like `coef_`
        γ in [0, 1]: how well the data determine each weight; 0 for features that are gone.
    gain_ : ndarray like `coef_`
        Evidence, in nats, that each feature brings given the others: kept ones by staying, the others if they were
        added. A dropped feature with a gain just below `min_gain_` is a weak signal, not an absent one.
    groups_ : ndarray of int
        With `groups` only: the number of each feature's group.
    group_relevance_, group_inclusion_probability_ : ndarray
        With `groups` only, the second with averaging: `relevance_` (the mean over its features) and
        `inclusion_probability_` of each group.
    min_gain_ : float
        The price in nats that was charged for each feature.
    log_evidence_ : float or ndarray of shape (n_outputs,)
        Log probability (density) of y with the weights integrated out; a flat intercept is integrated against density
        one.
    evidence_path_ : ndarray or list of ndarray
        The objective (log evidence, and log hyper-prior where one is given) before each step.
    optimality_gap_ : float or ndarray of shape (n_outputs,)
        The certificate: nats that the best single change of the model would still bring.
    converged_ : bool
        Whether the search reached `tol` (for all outputs).
    n_iter_ : int
        Number of steps (the largest over outputs).
    n_jittered_ : int
        Number of steps in which a matrix needed jitter to be factorised; 0 unless the data are nearly degenerate.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsebayes import ARDRegressor
    >>> rng = np.random.default_rng(1)
    >>> X = rng.standard_normal((100, 500))
    >>> y = 2 * X[:, 3] - X[:, 7] + 0.5 * rng.standard_normal(100)
    >>> model = ARDRegressor().fit(X, y)
    >>> model.active_
    array([3, 7])
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "solver": [StrOptions({"auto", *SOLVERS})],
        "noise": [StrOptions(set(REMEDIES))],
        "noise_freedom": [StrOptions({"learn"}), Interval(Real, 1, 1e6, closed="both")],
        "noise_variance": [StrOptions({"learn"}), Interval(Real, 0, None, closed="neither")],
        "multi_output": [StrOptions({"independent", "joint"})],
        "shared_noise": ["boolean"],
        "groups": GROUPS,
        "positive": POSITIVE,
        "min_gain": MIN_GAIN,
        "a": [Interval(Real, 0, None, closed="left")],
        "b": [Interval(Real, 0, None, closed="left")],
        "c": [Interval(Real, 0, None, closed="left")],
        "d": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "intercept_prior": [StrOptions({"flat", "ard"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "warm_start": ["boolean"],
        "verbose": ["verbose"],
        **PARAMETERS,
    }

    def __init__(
        self,
        *,
        solver: str = "auto",
        noise: str = "gaussian",
        noise_freedom: str | float = "learn",
        noise_variance: str | float = "learn",
        multi_output: str = "independent",
        shared_noise: bool = False,
        groups: Any = None,
        positive: Any = False,
        min_gain: Any = "auto",
        a: float = 0.0,
        b: float = 0.0,
        c: float = 0.0,
        d: float = 0.0,
        fit_intercept: bool = True,
        intercept_prior: str = "flat",
        max_iter: int = 10_000,
        tol: float = 1e-6,
        warm_start: bool = False,
        average: bool | str = "auto",
        n_chains: int = 4,
        max_flips: int = 6000,
        n_jobs: int | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> None:
        self.solver = solver
        self.noise = noise
        self.noise_freedom = noise_freedom
        self.noise_variance = noise_variance
        self.multi_output = multi_output
        self.shared_noise = shared_noise
        self.groups = groups
        self.positive = positive
        self.min_gain = min_gain
        self.a = a
        self.b = b
        self.c = c
        self.d = d
        self.fit_intercept = fit_intercept
        self.intercept_prior = intercept_prior
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.average = average
        self.n_chains = n_chains
        self.max_flips = max_flips
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @streamed
    @whole_fit
    @fit_context(prefer_skip_nested_validation=True)
    @watched
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, row_noise: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Several outputs are fitted independently, unless `multi_output="joint"`.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts: an integer weight is the same as repeated rows.
        row_noise : array-like of shape (n_samples,) or (n_samples, n_samples), optional
            With Gaussian noise: what is known of it beforehand, as a variance for each row or as a covariance V. The
            noise has the covariance `noise_variance_` × V, where the first factor is learned unless `noise_variance`
            is given. New rows are taken to have `row_noise` one.
        """
        self._check_noise(row_noise is not None)
        X, y, weight, counts = self._validated(X, y, sample_weight)
        given = whitened(X, y, weight, row_noise, counts, self.fit_intercept)
        X, y, weight = given.X, given.y, given.weight
        known = self._known_noise(given.scale)
        joint = self.multi_output == "joint" and y.ndim > 1
        self._read_groups(joint)
        averages = self._averages(X.shape, y.shape[1] if joint else 1)
        if self.noise != "gaussian" and averages:
            averages = self._averages_robustly(int(np.prod(X.shape)), weight)
        previous = self._single_fits() if self.warm_start else []
        self._forget_averages()
        self._forget_noise()
        flat = self.fit_intercept and self.intercept_prior == "flat"
        columns = with_ones(X) if self.fit_intercept and not flat else X
        rows = design_of(columns).standardised(weight, centre=flat)
        outputs = y.reshape(len(y), -1).T
        targets = [Target.of(output, weight, rows.root_weight, self.fit_intercept, flat) for output in outputs]
        starts = [*previous, *[None] * len(outputs)]
        if joint:
            check_joint(self)
        with threads_for(X.size):
            if joint:
                found = self._fit_jointly(rows, y, weight, flat, averages, known)
            else:
                parts = zip(outputs, projected(targets, rows), starts, strict=False)
                found = [
                    self._fit_output(columns, rows, output, weight, target, flat, start, averages, known)
                    for output, target, start in counted(parts, len(outputs), "output")
                ]
        found = [(given.back(one), None if average is None else given.back(average)) for one, average in found]
        self._store_found(found, rows, averages, single=y.ndim == 1)
        if self.noise != "gaussian":
            self._store_noise(X, outputs, counts)
        return self

    def _store_found(
        self, found: list[tuple[LinearFit, AveragedFit | None]], rows: FeatureDesign, averages: bool, *, single: bool
    ) -> None:
        """Fitted attributes, of the single models and then of the averages."""
        self._store([fit for fit, _ in found], single=single)
        self._warn(REMEDIES[self.noise])
        if averages:
            averaged = [fit for _, fit in found if fit is not None]
            self._store_averages(averaged, [rows] * len(found), single=single)
            self.intercept_, self.noise_variance_ = self._numbers("intercept"), self._numbers("noise_variance")
            self.covariance_ = self._arrays([fit.covariance for fit in averaged])
        self._store_groups()
