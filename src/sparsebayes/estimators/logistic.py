"""Sparse logistic regression: all linear classifiers of the SLR family in one estimator."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.predictive import PROBABILITIES
from sparsebayes.core.prices import PerUnit, classification_price
from sparsebayes.core.priors import ARD
from sparsebayes.core.types import AnyArray, FloatArray
from sparsebayes.data.source import design_of
from sparsebayes.engine import glm, recipes
from sparsebayes.engine.averaging import Averaged
from sparsebayes.engine.held_out_link import link_of
from sparsebayes.engine.loop import Settings, Trace
from sparsebayes.engine.model_average import LOGISTIC_VARIANCE, Odds, average_classes
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.result import Result
from sparsebayes.engine.shared_sites import Moments
from sparsebayes.engine.site_average import average_by_sites
from sparsebayes.engine.softmax import SoftmaxProblem, solve
from sparsebayes.estimators._averaged import AveragedFit, LogisticAverage, averaged_fit, logistic_average
from sparsebayes.estimators._averaging import PARAMETERS, AveragingMixin
from sparsebayes.estimators._base import fit_context, progress, warn_unless_converged, watched, whole_fit
from sparsebayes.estimators._classifier import LinearClassifier
from sparsebayes.estimators._elsewhere import streamed
from sparsebayes.estimators._feature_prices import MIN_GAIN, feature_prices
from sparsebayes.estimators._groups import GROUPS, GroupsMixin
from sparsebayes.estimators._inputs import Prepared, over_blocks
from sparsebayes.estimators._joint import JointFit
from sparsebayes.estimators._lasso import weighted_lasso
from sparsebayes.estimators._linear import LinearFit, glm_fit
from sparsebayes.estimators._streaming import BlockLogisticMixin

LARGEST = 1_000_000
"""Numbers in X up to which Pólya-Gamma variables are drawn: rows have to be weighted anew thousands of times."""
TALL = 20
"""Rows per feature from which on larger data are averaged too, under sites that all models share."""
LARGEST_CLASSES = 100_000
"""The same number for more than two classes, all fits together: about ten seconds' work."""
FURTHEST, WIDEST_START = 12.0, 5.0
"""Log-odds and their standard deviation from which sites are looked for, at most. A single model of separable classes
may be surer; sites that far out say nothing of the weights, and would take many turns to come back."""
TALL_CLASSES = 10
"""Rows per feature from which on each of more than two classes is averaged under sites that all models share, if X is
larger: drawn variables take ten times as long (digits: 25 s), with the same error."""


class SparseLogisticRegression(BlockLogisticMixin, AveragingMixin, GroupsMixin, LinearClassifier):
    """Logistic regression that finds which features matter.

    Parameters
    ----------
    prior : {"ard", "ridge", "laplace"}, default="ard"
        "ard": a precision per weight, learned by evidence, most of which run to infinity. "ridge": one learned
        precision for all weights. "laplace": the L1 norm of the weights times `penalty`.
    inference : {"laplace", "variational", "coordinate", "reweighted-l1"}, default="laplace"
        "laplace" expands the posterior at its mode (SLR-LAP, RLR-LAP, L1-SLR-LAP), "variational" bounds it from below
        (SLR-VAR, RLR-VAR), "coordinate" finds the L1 mode component by component (L1-SLR-c), "reweighted-l1" solves ARD
        as a chain of L1 problems. "ard" has the first two and the last, "ridge" the first two, "laplace" the first and
        "coordinate".
    groups : array-like of shape (n_features,), list of lists of int, or None, default=None
        Features that enter and leave the model together: one label for each feature, or lists of column numbers, where
        features that no list has are groups of their own. The features of a group share one precision, `min_gain` is
        asked once of each group ("auto" counts groups), and there is one inclusion probability for all of them
        (docs/groups.md). They need `prior="ard"`, an inference other than "reweighted-l1", no softmax, and a
        positive `min_gain`.
    min_gain : "auto" or float, default="auto"
        With the ARD prior: evidence, in nats, that a feature must bring to be kept. "auto" controls false discoveries:
        it asks for a squared z-score of log D + log max(N, D) or more (N rows, D features; docs/min_gain.md). 0 is the
        textbook's answer, which keeps many features that carry nothing.
    rule : {"fixed-point", "em"}, default="fixed-point"
        How precisions are re-estimated: MacKay's fast rule, or EM. (With a positive `min_gain`, ARD always uses the
        first.)
    max_scale : float, default=1000.0
        With the ARD and ridge priors: largest prior standard deviation of a weight, for a feature of standard deviation
        one. The default is no bound but keeps weights finite on separable classes. With many redundant features and few
        rows, where a handful of features already separates the classes, `min_gain=0, max_scale=0.5` makes more of them
        share the work, and predicts better than the few would.
    penalty : float, default=1.0
        Factor in front of the L1 norm, with the Laplace prior.
    multi_class : {"auto", "softmax", "one-vs-rest"}, default="auto"
        With more than two classes: a joint softmax (SMLR, RMLR; for the ARD and ridge priors with Laplace inference),
        or one fit per class. "auto" takes the first where there is one, except for single ARD models with a positive
        `min_gain`, which are faster class by class. Averages over models are those of a softmax if rows are not fewer
        than features, otherwise one for each class (docs/which_features.md).
    proba : {"quadrature", "probit", "plug-in", "bound"}, default="quadrature"
        How class probabilities are averaged over the posterior: exactly, by MacKay's approximation, not at all, or by
        the normalised variational bounds. Averages over models have `link_` with the first only.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, multiplied with `sample_weight`.
    fit_intercept : bool, default=True
        Whether the model has an intercept.
    intercept_prior : {"flat", "ard"}, default="flat"
        Never shrunk nor pruned; or one more weight with the prior of the others, as in the original toolbox.
    max_iter : int, default=10000
        Largest number of steps.
    tol : float, default=1e-6
        Iterations end when neither the objective (in nats) nor the log precisions move by more than this.
    average, n_chains, max_flips, random_state
        As in `ARDRegressor`: by default predictions and weights are averaged over models.
    n_jobs : int, default=None
        Parallel one-vs-rest fits, with more than two classes; and parallel chains, with averaging.
    verbose : int, default=0
        1: a live line in terminals and notebooks says how the fit goes. 2: a line on standard error for each step.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (n_fits, n_features)
        Posterior mean of the weights in the units of the input; one row for two classes, else one per class.
    intercept_ : ndarray of shape (n_fits,)
    active_, precision_, covariance_
        Features kept, their prior precisions and posterior covariance; lists with more than two classes.
    relevance_ : ndarray like `coef_`
        γ in [0, 1]: how well the data determine each weight; 0 for features that are gone.
    gain_ : ndarray like `coef_`
        With the ARD prior: evidence, in nats, that each feature brings, or would bring if it were added.
    groups_ : ndarray of int
        With `groups` only: the number of each feature's group.
    group_relevance_, group_inclusion_probability_ : ndarray
        With `groups` only, the second with averaging: `relevance_` (the mean over its features) and
        `inclusion_probability_` of each group.
    min_gain_ : float
        The price in nats that was charged for each feature.
    log_evidence_ : float or ndarray
        Log evidence by the chosen inference: Laplace's approximation or the variational bound. With the Laplace prior,
        the log joint density of classes and weights at the mode.
    optimality_gap_ : float
        Nats that the best single change would bring by the local Gaussian view, which may promise more than a move
        really brings (the search tries it, and counts only what is real); largest on nearly separable classes.
    inclusion_probability_, coef_std_, n_features_posterior_, chain_error_, effective_sample_size_, n_flips_
        With averaging only, as in `ARDRegressor`; so are `credible_sets_` and the best single model, `model_`.
    link_ : ndarray of shape (n_fits, 2)
        With averaging by drawn variables only (up to a million numbers in X, one class against the rest): slope and
        shift that the log-odds have been given, so that each label is most probable given the other rows. Near 1 and 0
        if the model holds; a larger slope means that the average itself was too cautious (docs/which_features.md).
    evidence_path_, converged_, n_iter_, n_jittered_
        As in `ARDRegressor`.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsebayes import SparseLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 50))
    >>> y = np.where(3 * X[:, 3] - 2 * X[:, 7] + rng.logistic(size=200) > 0, "yes", "no")
    >>> model = SparseLogisticRegression().fit(X, y)
    >>> model.active_
    array([3, 7])
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "prior": [StrOptions({prior for prior, _ in recipes.CLASSIFICATION})],
        "inference": [StrOptions({inference for _, inference in recipes.CLASSIFICATION})],
        "groups": GROUPS,
        "min_gain": MIN_GAIN,
        "rule": [StrOptions({"fixed-point", "em"})],
        "max_scale": [Interval(Real, 0, None, closed="neither")],
        "penalty": [Interval(Real, 0, None, closed="neither")],
        "multi_class": [StrOptions({"auto", "softmax", "one-vs-rest"})],
        "proba": [StrOptions(set(PROBABILITIES))],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "fit_intercept": ["boolean"],
        "intercept_prior": [StrOptions({"flat", "ard"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "verbose": ["verbose"],
        **PARAMETERS,
    }

    def __init__(
        self,
        *,
        prior: str = "ard",
        inference: str = "laplace",
        groups: Any = None,
        min_gain: Any = "auto",
        rule: str = "fixed-point",
        max_scale: float = 1000.0,
        penalty: float = 1.0,
        multi_class: str = "auto",
        proba: str = "quadrature",
        class_weight: Any = None,
        fit_intercept: bool = True,
        intercept_prior: str = "flat",
        max_iter: int = 10_000,
        tol: float = 1e-6,
        average: bool | str = "auto",
        n_chains: int = 4,
        max_flips: int = 6000,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.prior = prior
        self.inference = inference
        self.groups = groups
        self.min_gain = min_gain
        self.rule = rule
        self.max_scale = max_scale
        self.penalty = penalty
        self.multi_class = multi_class
        self.proba = proba
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.intercept_prior = intercept_prior
        self.max_iter = max_iter
        self.tol = tol
        self.average = average
        self.n_chains = n_chains
        self.max_flips = max_flips
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @streamed
    @whole_fit
    @fit_context(prefer_skip_nested_validation=True)
    @watched
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Class labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            How often each row counts: an integer weight is the same as repeated rows.
        """
        if (self.prior, self.inference) not in recipes.CLASSIFICATION:
            choices = recipes.inferences(self.prior)
            raise ValueError(f"prior={self.prior!r} has no inference={self.inference!r}; choose one of {choices}")
        has_softmax = self.inference == "laplace" and self.prior in ("ard", "ridge")
        if self.multi_class == "softmax" and not has_softmax:
            raise ValueError(
                f"multi_class='softmax' needs inference='laplace' and prior 'ard' or 'ridge', not "
                f"inference={self.inference!r} and prior={self.prior!r}"
            )
        X, codes, weight = self._validated(X, y, sample_weight)
        self._forget_averages()
        self._read_groups()
        priced = self.prior == "ard" and np.max(self._price(weight, self._n_units)) > 0
        joint = self.multi_class == "softmax" or (self.multi_class == "auto" and has_softmax and not priced)
        if len(self.classes_) > 2 and joint:
            self._store_joint(self._fit_joint(X, codes, weight))
            warn_unless_converged(self)
            return self
        inputs = Prepared(X, *self._rows(X, weight))
        found = self._fit_all(inputs, codes, weight)
        self._store([fit for fit, _ in found])
        warn_unless_converged(self)
        averaged = [fit for _, fit in found if fit is not None]
        if self._averages_jointly(X):
            averaged = self._joint_averages(inputs, codes, weight)
        if averaged:
            self._store_averages(averaged, [inputs.rows] * len(averaged), single=len(averaged) == 1)
            self.intercept_ = np.array([fit.intercept for fit in averaged])
            self._coupled = self._averages_jointly(X)
        if links := [fit.link for fit in self._fits if isinstance(fit, LogisticAverage)]:
            self.link_ = np.array(links)
        self._store_groups()
        return self

    def _read_groups(self) -> None:
        needs = {
            "prior='ard'": self.prior == "ard",
            "inference='laplace' or 'variational'": self.inference != "reweighted-l1",
            "multi_class 'auto' or 'one-vs-rest'": self.multi_class != "softmax" or len(self.classes_) < 3,
        }
        self._find_groups([need for need, holds in needs.items() if not holds])

    def _rows(self, X: Any, weight: FloatArray) -> tuple[Any, bool]:
        """The design, and whether the intercept is flat; otherwise it is a column of ones, the last."""
        flat = self.fit_intercept and self.intercept_prior == "flat"
        rows = design_of(X, ones=self.fit_intercept and not flat)
        if self.prior == "ard":
            # ARD is indifferent to the scale of a column; ridge and L1 mean the user's units.
            return rows.standardised(weight, centre=flat).unweighted(), flat
        return rows.centred(weight) if flat else rows, flat

    def _averages(self, X: Any) -> bool:
        """Whether to average over models."""
        needs = {
            "prior='ard'": self.prior == "ard",
            "inference='laplace'": self.inference == "laplace",
            "intercept_prior='flat'": self.intercept_prior == "flat" or not self.fit_intercept,
            "multi_class 'auto' or 'one-vs-rest'": self.multi_class != "softmax",
        }
        missing = [need for need, holds in needs.items() if not holds]
        few = np.prod(X.shape) <= LARGEST or X.shape[0] >= TALL * X.shape[1]
        return self._chooses_average(X.shape, missing) and (self.average is True or few)

    def _averages_jointly(self, X: Any) -> bool:
        """Whether all classes are averaged together, as those of a softmax."""
        several = self.multi_class == "auto" and len(self.classes_) > 2
        return several and X.shape[0] >= X.shape[1] and self._averages(X)

    def _shares_sites(self, X: Any) -> bool:
        """Whether models of one class are averaged under common sites; otherwise Pólya-Gamma variables are drawn."""
        numbers, n_classes = int(np.prod(X.shape)), len(self.classes_)
        if n_classes > 2 and X.shape[0] >= TALL_CLASSES * X.shape[1]:
            return numbers * n_classes > LARGEST_CLASSES
        return numbers > LARGEST

    def _price(self, weight: FloatArray, n_claims: int) -> FloatArray | float:
        """Nats asked for a feature when `n_claims` claims could be made from rows of this weight."""
        if self.prior != "ard":
            return 0.0
        return feature_prices(self, classification_price(float(weight.sum()), n_claims))

    def _least_alpha(self, rows: Any, weight: FloatArray) -> float:
        """The prior precision that belongs to `max_scale`, for columns of the rows' mean square."""
        if self.prior == "laplace":
            return 0.0
        spread = float(rows.weighted(np.sqrt(weight)).column_square().mean() / weight.sum())
        return spread / self.max_scale**2

    def _fit_joint(self, X: Any, codes: AnyArray, weight: FloatArray) -> JointFit:
        """Softmax over all classes; a feature can speak for any class but one, so there are D (C - 1) claims."""
        rows, flat = self._rows(X, weight)
        n_classes, n_features = len(self.classes_), X.shape[1]
        price = self._price(weight, n_features * (n_classes - 1))
        if np.ndim(price):
            raise ValueError("multi_class='softmax' needs one min_gain for all features; use 'one-vs-rest'")
        least = self._least_alpha(rows, weight)
        problem = SoftmaxProblem(
            rows, codes, n_classes, weight, flat, float(price), 0.0, np.zeros(rows.n_columns), least
        )
        trace = Trace()
        fit = solve(
            problem,
            rule=glm.RULES[self.prior][self.rule],
            shared=self.prior == "ridge",
            trace=trace,
            settings=Settings(self.tol, self.max_iter, progress(self.verbose)),
        )
        return JointFit(fit.bare(), rows.origin, rows.unit, n_features, float(price), trace)

    def _fit_binary(  # type: ignore[override]
        self, inputs: Prepared, t: FloatArray, weight: FloatArray
    ) -> tuple[LinearFit, AveragedFit | None]:
        """The best single model and, if so wished, the average over models of this class."""
        X, rows, flat = inputs
        problem = self._problem(inputs, t, weight)
        result = self._solve(problem)
        single = glm_fit(problem, result, X.shape[1])
        if not self._averages(X) or self._averages_jointly(X):
            return single, None
        given, level = (rows.unit, rows.origin), 0.0 if flat else None
        if self._shares_sites(X):
            (found,) = self._by_sites([problem], [single], X)
            return single, averaged_fit(single, found, *given, level=level)
        found = average_classes(problem, self._inclusion_odds(rows, weight), result.active, self._chains())
        a, b = link_of(problem, found.draws)
        return single, logistic_average(averaged_fit(single, found, *given, level=level), (a, b))

    def _joint_averages(self, inputs: Prepared, codes: AnyArray, weight: FloatArray) -> list[AveragedFit]:
        """The averages over models of all classes together; the chains begin at the best single models."""
        X, rows, flat = inputs
        labels = [(codes == k).astype(np.float64) for k in range(len(self.classes_))]
        singles = self._fits
        found = self._by_sites([self._problem(inputs, t, weight) for t in labels], singles, X)
        level = 0.0 if flat else None
        return [
            averaged_fit(single, each, rows.unit, rows.origin, level=level)
            for single, each in zip(singles, found, strict=True)
        ]

    def _by_sites(self, problems: list[Problem], singles: Sequence[LinearFit], X: Any) -> list[Averaged]:
        """Averages under common sites; the moments of the best single models come first."""
        found = (over_blocks(fit.latent_moments, X, width=len(fit.mean)) for fit in singles)
        mean, variance = Moments.of(*found)
        moments = np.clip(mean, -FURTHEST, FURTHEST), np.minimum(variance, WIDEST_START**2)
        odds = self._inclusion_odds(problems[0].design, problems[0].weight)
        starts, given = [fit.active for fit in singles], (LOGISTIC_VARIANCE, LOGISTIC_VARIANCE)
        return average_by_sites(problems, odds, starts, self._chains(), moments, *given)

    def _problem(self, inputs: Prepared, t: FloatArray, weight: FloatArray) -> Problem:
        """One class (labels 1) against the rest."""
        _, rows, flat = inputs
        return Problem(
            design=rows,
            t=t,
            weight=weight,
            likelihood=Bernoulli(),
            prior=self._grouped_prior(ARD(min_alpha=self._least_alpha(rows, weight)), rows.n_columns),
            price=PerUnit(self._price(weight, self._n_units)),
            flat_intercept=flat,
            bounded=self.inference == "variational",
        )

    def _inclusion_odds(self, rows: Any, weight: FloatArray) -> Odds:
        """What prices say about features beforehand."""
        usual = classification_price(float(weight.sum()), self._n_units)
        return self._group_odds(self._odds(self._price(weight, self._n_units), usual, np.isfinite(rows.unit)))

    def _solve(self, problem: Problem) -> Result:
        options = recipes.Options(self.rule, self.penalty, weighted_lasso)
        settings = Settings(self.tol, self.max_iter, progress(self.verbose))
        return recipes.CLASSIFICATION[self.prior, self.inference].solve(problem, options, settings)
