"""What the classifiers share: labels, weights of classes, one binary fit per class, and probabilities."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import ClassifierMixin
from sklearn.preprocessing import LabelEncoder
from sklearn.utils import check_random_state, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from sparsebayes.core.multinomial import averaged_probabilities, log_odds, softmax_probabilities
from sparsebayes.core.predictive import PROBABILITIES, check_coverage
from sparsebayes.core.special import log_ratio, sigmoid
from sparsebayes.core.types import AnyArray, BoolArray, FloatArray
from sparsebayes.estimators._averaged import LogisticAverage
from sparsebayes.estimators._base import NamedParameters, SupportMixin, counted
from sparsebayes.estimators._callbacks import CallbackSupportMixin, unwatched
from sparsebayes.estimators._elsewhere import lazily
from sparsebayes.estimators._inputs import over_blocks, validated, validated_rows
from sparsebayes.estimators._joint import JointFit
from sparsebayes.estimators._linear import LinearFit, moments_of, of_all_features
from sparsebayes.estimators._notebook import NotebookMixin
from sparsebayes.estimators._validation import check_class_weights, checked_weight


class GaussianClassifier(CallbackSupportMixin, NotebookMixin, ClassifierMixin, NamedParameters):
    """A classifier with a Gaussian posterior per class; two classes need one.

    Subclasses give `_fit_binary`, which takes whatever stands for the inputs, and the parameters `proba`,
    `class_weight` and `n_jobs`; they store `_fits`, or a `_joint` fit of all classes.
    """

    _fit_binary: Callable[[Any, FloatArray, FloatArray], LinearFit]
    _fits: Sequence[LinearFit]
    _joint: JointFit | None
    _coupled: bool = False  # also of fitted models of version 0.2.0, which do not say so
    """Whether the fits are the classes of a softmax, independent of each other given the data."""

    def _validated(self, X: Any, y: Any, sample_weight: Any) -> tuple[FloatArray, AnyArray, FloatArray]:
        """Inputs, class codes and row weights; sets `classes_`. Rows of weight zero are dropped."""
        return self._validated_rows(X, y, sample_weight)[:3]

    def _validated_rows(self, X: Any, y: Any, sample_weight: Any) -> tuple[FloatArray, AnyArray, FloatArray, BoolArray]:
        """The same, and which of the rows given are left."""
        X, y = validated(self, X, y, ensure_min_samples=2)
        check_classification_targets(y)
        encoder = LabelEncoder()
        codes = encoder.fit_transform(y)
        self.classes_ = encoder.classes_
        weight = checked_weight(sample_weight, X)
        if self.class_weight == "balanced":
            # By weight, not by rows: an integer weight must stay the same as repeated rows.
            share = np.bincount(codes, weights=weight) / weight.sum()
            weight = weight / (len(share) * np.where(share > 0, share, 1.0)[codes])
        elif self.class_weight is not None:
            weight = weight * compute_sample_weight(self.class_weight, y)
        counts = weight > 0
        if not counts.any():
            raise ValueError(f"class_weight={self.class_weight!r} leaves no row with a weight: give one to two classes")
        if not counts.all():
            X, codes, weight = X[counts], codes[counts], weight[counts]
        if np.count_nonzero(np.bincount(codes)) < 2:
            only = self.classes_.tolist()[codes[0]]
            raise ValueError(
                f"y holds one class only ({only!r} in the rows with positive sample_weight); "
                "a classifier needs at least 2 classes"
            )
        check_class_weights(codes, weight, self.classes_)
        return X, codes, weight, counts

    def _fit_all(self, X: Any, codes: AnyArray, weight: FloatArray) -> list[Any]:
        """One fit for two classes, one against the rest for each of more."""
        if len(self.classes_) == 2:
            return [self._fit_binary(X, codes.astype(np.float64), weight)]
        n_classes, fit = len(self.classes_), delayed(unwatched(self)._fit_binary)
        jobs = (fit(X, (codes == k).astype(np.float64), weight) for k in range(n_classes))
        fits = Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs)
        return list(counted(fits, n_classes, "class"))

    def _store_common(self, fits: Sequence[LinearFit]) -> None:
        """Fitted attributes of every classifier: one entry per fit; lists (for one fit the array) of arrays."""
        single = len(fits) == 1
        precision, path = [fit.precision[: len(fit.active)] for fit in fits], [fit.path for fit in fits]
        self.intercept_ = np.array([fit.intercept for fit in fits])
        self.precision_ = precision[0] if single else precision
        self.evidence_path_ = path[0] if single else path
        self.log_evidence_ = fits[0].log_evidence if single else np.array([fit.log_evidence for fit in fits])
        self.optimality_gap_ = max(fit.gap for fit in fits)
        self.converged_ = all(fit.converged for fit in fits)
        self.n_iter_ = max(1, *(len(fit.path) for fit in fits))
        self.n_jittered_ = sum(fit.n_jittered for fit in fits)
        self._fits, self._joint, self._coupled = list(fits), None, False

    def _store_joint_common(self, joint: JointFit) -> None:
        """Fitted attributes of every softmax model."""
        self.intercept_, self.log_evidence_ = joint.intercept, joint.fit.log_evidence
        self.evidence_path_ = np.array(joint.trace.objective)
        self.optimality_gap_ = joint.trace.infos[-1].change
        self.converged_ = joint.fit.converged
        self.n_iter_, self.n_jittered_ = len(joint.trace.infos), joint.trace.n_jittered
        self._fits, self._joint, self._coupled = [], joint, False

    @property
    def covariance_(self) -> Any:
        """Posterior covariance of the kept weights; computed when asked for. A list with more than two classes."""
        check_is_fitted(self)
        if self._joint is not None:
            return self._joint.covariance
        covariances = [fit.covariance for fit in self._fits]
        return covariances[0] if len(covariances) == 1 else covariances

    @lazily
    def decision_function(self, X: Any) -> FloatArray:
        """Log-odds of each class (for two: of the second), averaged over the posterior as `proba` says.

        With `proba="plug-in"` this is the posterior mean of the linear predictor itself.
        """
        return over_blocks(self._scores, self._checked(X), width=self._width)

    def _scores(self, X: Any) -> FloatArray:
        if self._joint is not None or self._coupled:
            return log_odds(self._probabilities(X))
        scores = self._log_odds(X)
        return scores[:, 0] if len(self._fits) == 1 else scores

    def _log_odds(self, X: Any) -> FloatArray:
        """Log-odds by each fit, a column for each."""
        if averages := self._by_draws():
            return np.column_stack([fit.log_odds(X) for fit in averages])
        mean, variance = moments_of(self._fits, X)
        if self.proba == "plug-in":
            return mean
        probability = PROBABILITIES[self.proba]
        return log_ratio(probability(mean, variance), probability(-mean, variance))

    @lazily
    def predict_proba(self, X: Any) -> FloatArray:
        """Class probabilities, averaged over the posterior as `proba` says; each row adds up to 1."""
        return over_blocks(self._probabilities, self._checked(X), width=self._width)

    def _probabilities(self, X: Any) -> FloatArray:
        if self._joint is not None:
            return self._joint.probabilities(X, average=self.proba != "plug-in")
        if self._coupled:
            mean, variance = moments_of(self._fits, X)
            if self.proba == "plug-in":
                return softmax_probabilities(mean)
            return averaged_probabilities(mean, variance[:, :, None] * np.eye(mean.shape[1]))
        positive = self._positive(X)
        if len(self._fits) == 1:
            return np.column_stack([1 - positive, positive])
        total = positive.sum(axis=1, keepdims=True)
        even = np.full_like(positive, 1 / positive.shape[1])
        return np.where(total > 0, positive / np.where(total > 0, total, 1.0), even)

    def _positive(self, X: Any) -> FloatArray:
        """Probability of label 1 by each fit, a column for each."""
        if self._by_draws():
            return np.asarray(sigmoid(self._log_odds(X)))
        return PROBABILITIES[self.proba](*moments_of(self._fits, X))

    def _by_draws(self) -> list[LogisticAverage]:
        """The fits, all or none, whose log-odds are averages over draws, if `proba` asks for exact averages."""
        return [fit for fit in self._fits if isinstance(fit, LogisticAverage)] if self.proba == "quadrature" else []

    @lazily
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Logarithm of the class probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @lazily
    def predict(self, X: Any) -> AnyArray:
        """The class with the largest score."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def _checked(self, X: Any) -> Any:
        return validated_rows(self, X)

    @property
    def _width(self) -> int:
        """Columns of the widest model: what a prediction forms for each row."""
        return max([fit.width for fit in self._fits], default=1)


class LinearClassifier(SupportMixin, GaussianClassifier):
    """A classifier whose columns are the features."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # The lasso takes dense columns.
        tags.input_tags.sparse = getattr(self, "inference", None) not in ("coordinate", "reweighted-l1")
        return tags

    def _store(self, fits: list[LinearFit]) -> None:
        """Fitted attributes: one row per fit; lists (for two classes the one array) where shapes differ."""
        self.coef_, self.relevance_ = of_all_features(fits, self.n_features_in_)
        self.gain_ = np.array([fit.worth for fit in fits])
        self.min_gain_ = fits[0].min_gain
        active = [fit.active for fit in fits]
        self.active_ = active[0] if len(fits) == 1 else active
        self._store_common(fits)

    def _store_single(self, fits: Sequence[LinearFit]) -> None:
        """Fitted attributes again, of other fits to the same data."""
        self._store(list(fits))

    def coef_interval(self, coverage: float = 0.9) -> FloatArray:
        """Central posterior intervals of the weights (n_fits, n_features, 2); see `ARDRegressor.coef_interval`."""
        check_is_fitted(self)
        check_coverage(coverage)
        if self._joint is not None:
            raise ValueError("coef_interval needs one fit per class: use multi_class='one-vs-rest'")
        return np.array([fit.weight_interval(coverage, self.n_features_in_) for fit in self._fits])

    def _store_joint(self, joint: JointFit) -> None:
        """Fitted attributes of a softmax model: one row per class."""
        self.coef_, self.relevance_, self.min_gain_ = joint.coef, joint.relevance, joint.price
        self.active_ = [np.flatnonzero(row) for row in joint.relevance]
        self.precision_ = [row[row < np.inf] for row in joint.precision]
        self._store_joint_common(joint)

    def sample_posterior(self, n_samples: int = 1, random_state: Any = None) -> tuple[FloatArray, FloatArray]:
        """Draws of the weights (n_samples, n_fits, n_features) and intercepts (n_samples, n_fits)."""
        check_is_fitted(self)
        rng = check_random_state(random_state)
        if self._joint is not None:
            return self._joint.weight_samples(n_samples, rng)
        draws = [fit.weight_samples(n_samples, self.n_features_in_, rng) for fit in self._fits]
        return np.stack([coef for coef, _ in draws], axis=1), np.stack([level for _, level in draws], axis=1)
