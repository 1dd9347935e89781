"""What estimators with feature weights share: parameters, standard units for the inputs, and weights in user units."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from sparsebayes.core.prices import false_discovery_price
from sparsebayes.core.standard_units import StandardUnits
from sparsebayes.core.types import AnyArray, BoolArray, FloatArray, IntArray
from sparsebayes.core.weighted_kernels import WEIGHTED, FeatureKernel, weighted_kernel
from sparsebayes.engine.alternating import Alternation
from sparsebayes.engine.loop import Settings, Trace
from sparsebayes.engine.process import Signal, Spectrum
from sparsebayes.engine.theta import ThetaSearch, best_theta, random_starts, sized_starts, univariate_share
from sparsebayes.engine.theta_model import UNEXPLAINED_LABELS, RegressionModel, feature_relevance
from sparsebayes.engine.theta_process import (
    FIRST_RATIO,
    SAMPLE_ROWS,
    ProcessEvidence,
    ProcessTheta,
    process_relevance,
    process_theta,
)
from sparsebayes.engine.width import Sample, VectorFit, best_width
from sparsebayes.estimators._base import counted, wanted
from sparsebayes.estimators._kernel import KERNEL_CONSTRAINTS, KernelFit

WEIGHT_CONSTRAINTS: dict[str, list[Any]] = {
    "min_gain": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
    "init": [StrOptions({"auto"}), "array-like", Interval(Real, 0, None, closed="neither")],
    "n_restarts": [Interval(Integral, 1, None, closed="left")],
}
WEIGHTED_KERNEL_CONSTRAINTS: dict[str, list[Any]] = {
    **{name: KERNEL_CONSTRAINTS[name] for name in ("degree", "coef0", "candidates", "random_state")},
    "kernel": [StrOptions(set(WEIGHTED))],
    **WEIGHT_CONSTRAINTS,
}
START_TOL = 50
"""A start ends with a turn that improves by less than this many times `tol`; only the best start is refined to `tol`.
At the default `tol` that is 0.05 nats: starts differ by several."""
ROWS_PER_FEATURE = 5
"""With fewer rows for each feature a Gaussian process with a weight for each of them fits the noise. The features are
then first chosen with a sparse model."""
SIZES = (1 / 16, 16.0)
"""Factors by which the feature weights of a sparse model may be too small or too large for a Gaussian process: its
range may be four times shorter or longer."""
FEWER_FEATURES = "raise min_gain or choose fewer candidates"
"""Advice for a vanishing noise variance."""


@dataclass(frozen=True)
class FeatureWeightFit(KernelFit):
    """The posterior of the kept kernel weights, and the weights of the inputs."""

    feature_weights: FloatArray = field(default_factory=lambda: np.empty(0))
    feature_relevance: FloatArray = field(default_factory=lambda: np.empty(0))
    scores: FloatArray = field(default_factory=lambda: np.empty(0))
    """Scores of all starts."""


def store_feature_weights(model: Any) -> None:
    """Set the fitted attributes of feature weights: plain for one fit, else with one row per output or class."""
    take = 0 if model._single else slice(None)
    model.feature_weights_ = np.array([fit.feature_weights for fit in model._fits])[take]
    model.feature_relevance_ = np.array([fit.feature_relevance for fit in model._fits])[take]
    model.restart_scores_ = np.array([fit.scores for fit in model._fits])[take]


class FeatureWeightsMixin(SelectorMixin):
    """Selector methods of an estimator with feature weights: `transform` returns the features with a weight."""

    def _get_support_mask(self) -> AnyArray:
        return self.get_support()

    @property
    def feature_importances_(self) -> FloatArray:
        """`feature_relevance_` as shares that add up to one; with several outputs or classes, their means."""
        check_is_fitted(self)
        weights = np.atleast_2d(self.feature_relevance_)
        total = weights.sum(axis=1, keepdims=True)
        return np.asarray((weights / np.where(total > 0, total, 1.0)).mean(axis=0))

    def get_support(self, indices: bool = False) -> BoolArray | IntArray:
        """Which features have a weight, as a mask or as indices; with several outputs or classes, for any of them.

        Parameters
        ----------
        indices : bool, default=False
            Whether to return indices rather than a mask.
        """
        check_is_fitted(self)
        mask = np.asarray((np.atleast_2d(self.feature_weights_) > 0).any(axis=0))
        return np.flatnonzero(mask) if indices else mask


@dataclass(frozen=True)
class StandardInputs:
    """Rows and centres with inputs of mean zero and variance one; a constant input is all zero."""

    X: FloatArray
    y: FloatArray
    weight: FloatArray
    Z: FloatArray
    centre_indices: IntArray
    """Which of the given centres the rows of Z are."""
    origin: FloatArray
    unit: FloatArray
    """X is (inputs - origin) / unit; the unit of a constant input is infinite."""

    @classmethod
    def of(
        cls, X: FloatArray, y: FloatArray, weight: FloatArray, Z: FloatArray, labels: FloatArray | None = None
    ) -> "StandardInputs":
        """Equal rows are merged and all are sorted; `labels` tell equal centres apart.

        So the order of rows, and whether they are repeated or weighted, changes nothing, not even by rounding; and
        because numbers in standard units are rounded, neither do the units. The way to one of many maxima must not
        depend on that.
        """
        table, point = np.unique(np.column_stack([X, y]), axis=0, return_inverse=True)
        weight, X, y = np.asarray(np.bincount(point.ravel(), weight), np.float64), table[:, :-1], table[:, -1]
        labels = np.zeros(len(Z)) if labels is None else labels
        order = np.lexsort(np.column_stack([Z, labels]).T[::-1])
        Z = Z[order]
        units = StandardUnits.by_deviation(X, weight).unfenced()
        return cls(units(X), y, weight, units(Z), order, units.origin, units.unit)

    @property
    def varying(self) -> BoolArray:
        """Inputs that are not constant."""
        return np.isfinite(self.unit)

    @property
    def n_varying(self) -> int:
        """How many inputs are not constant."""
        return int(self.varying.sum())


@dataclass(frozen=True)
class ThetaResult:
    """Feature weights that were found, in the units of the data."""

    kernel: FeatureKernel
    fit: VectorFit
    """The model on the kernel columns; candidates are numbered as the given centres."""
    weights: FloatArray
    relevance: FloatArray
    scores: FloatArray
    trace: Trace

    def annotate(self, fit: KernelFit) -> FeatureWeightFit:
        """A fit with the feature weights; all are 0 where no vector is kept."""
        used = len(fit.active) > 0
        return FeatureWeightFit(
            **vars(fit),
            feature_weights=self.weights * used,
            feature_relevance=self.relevance * used,
            scores=self.scores,
        )


@dataclass(frozen=True)
class FeatureWeights:
    """The parameters of feature weights, and the search that they describe."""

    kernel: str
    degree: float
    coef0: float
    min_gain: str | float
    init: Any
    n_restarts: int
    random_state: Any
    tol: float

    @classmethod
    def of(cls, model: Any) -> "FeatureWeights":
        """Those of an estimator."""
        if model.kernel not in WEIGHTED:
            raise ValueError(f"feature weights need one of the kernels {sorted(WEIGHTED)}, not kernel={model.kernel!r}")
        names = ("kernel", "degree", "coef0", "min_gain", "init", "n_restarts", "random_state", "tol")
        return cls(**{name: getattr(model, name) for name in names})

    def find(
        self, inputs: StandardInputs, model: RegressionModel, settings: Settings, *, batch: bool = False
    ) -> ThetaResult:
        """Feature weights of largest evidence of a model; with `batch` each start begins with an alternation."""
        price = self._price(inputs)
        kernel, n = weighted_kernel(self.kernel, degree=self.degree, coef0=self.coef0), model.template.n
        tol, trace = START_TOL * self.tol, Trace()
        search = ThetaSearch(kernel, inputs.X, inputs.Z, model, price, n, tol, settings.callback)
        share = np.zeros(inputs.X.shape[1])
        if isinstance(self.init, str) and price > 0:  # not where the user gives a start, or features are free
            target = model.t / np.sqrt(model.weight)
            share = univariate_share(inputs.X, target, model.weight, n, price)
        starts = self.starts(inputs)
        work = wanted(counted(starts, len(starts), "start"))
        first = Alternation(model, search, trace) if batch else search
        best, scores = best_theta(search, share, work, trace, first, self.tol)
        scores = np.append(scores, np.full(len(starts) - len(scores), np.nan))  # nan: not made
        used = best.kept & (len(best.fit.active) > 0)  # without vectors no feature matters
        relevance = feature_relevance(model, search, best) if used.any() else np.empty(0)
        fit = replace(best.fit, active=inputs.centre_indices[best.fit.active])
        return self._result(inputs, np.where(used, best.theta, 0.0), relevance, fit, scores, trace)

    def find_by_process(
        self, inputs: StandardInputs, t: FloatArray, flat_intercept: bool, starts: list[FloatArray]
    ) -> ThetaResult:
        """Feature weights of largest evidence of a Gaussian process, of a target in standard units."""
        evidence = self._evidence(inputs, t, flat_intercept, 0.0)
        return self._best_end(inputs, evidence, self._ends(inputs, evidence, starts))

    def find_for_labels(self, inputs: StandardInputs, t: FloatArray, flat_intercept: bool) -> ThetaResult:
        """The same for labels as numbers, a part of which always counts as noise (`UNEXPLAINED_LABELS`)."""
        evidence = self._evidence(inputs, t, flat_intercept, UNEXPLAINED_LABELS)
        return self._best_end(inputs, evidence, self._ends(inputs, evidence, self.starts(inputs)))

    def find_common(self, inputs: StandardInputs, t: FloatArray, flat_intercept: bool) -> ThetaResult:
        """One weight that all features share, per unit of their deviation or range, for labels as numbers."""
        evidence = self._evidence(inputs, t, flat_intercept, UNEXPLAINED_LABELS)
        counts = inputs.weight > 0
        span = StandardUnits.by_range(inputs.X[counts], inputs.weight[counts]).unit  # infinite for a constant input
        equal = inputs.varying / max(inputs.n_varying, 1)
        ranged = equal / span ** WEIGHTED[self.kernel].power
        shares = [equal, ranged / ranged.sum()] if ranged.any() else [equal]
        starts = [start for share in shares for start in sized_starts(share)]
        best = max((evidence.maximise_size(start, FIRST_RATIO) for start in starts), key=lambda end: end.value)
        return self._of_process(inputs, evidence, best, np.full(self.n_restarts, np.nan))

    def _evidence(
        self, inputs: StandardInputs, t: FloatArray, flat_intercept: bool, least_noise: float
    ) -> ProcessEvidence:
        kernel = weighted_kernel(self.kernel, degree=self.degree, coef0=self.coef0)
        sample = Sample.of(inputs.X, t[:, None], inputs.weight, SAMPLE_ROWS)
        return ProcessEvidence(kernel, sample, flat_intercept, least_noise)

    def _process_price(self, inputs: StandardInputs, evidence: ProcessEvidence) -> float:
        """Nats that a feature must bring to a Gaussian process, in which all weights are chosen together."""
        price = self._price(inputs)
        if self.min_gain == "auto":
            price += 0.5 * float(np.log(evidence.n))  # Schwarz's price of a weight
        return price

    def _ends(self, inputs: StandardInputs, evidence: ProcessEvidence, starts: list[FloatArray]) -> list[ProcessTheta]:
        price, work = self._process_price(inputs, evidence), wanted(counted(starts, len(starts), "start"))
        return [process_theta(evidence, start, price) for start in work]

    def _best_end(self, inputs: StandardInputs, evidence: ProcessEvidence, ends: list[ProcessTheta]) -> ThetaResult:
        """The best of the ends of all starts, or no weights at all."""
        price = self._process_price(inputs, evidence)
        scores = np.array([end.value - price * end.n_kept for end in ends])
        best = max([*ends, evidence.nothing()], key=lambda end: end.value - price * end.n_kept)
        scores = np.append(scores, np.full(max(self.n_restarts - len(scores), 0), np.nan))
        return self._of_process(inputs, evidence, best, scores)

    def _of_process(
        self, inputs: StandardInputs, evidence: ProcessEvidence, best: ProcessTheta, scores: FloatArray
    ) -> ThetaResult:
        noise = evidence(best.theta, best.c).noise
        fit = VectorFit(best.value, np.empty(0, np.intp), np.log([noise]))
        return self._result(inputs, best.theta, process_relevance(evidence, best), fit, scores, Trace())

    def _price(self, inputs: StandardInputs) -> float:
        """Nats that a feature must bring."""
        return false_discovery_price(inputs.n_varying) if self.min_gain == "auto" else float(self.min_gain)

    def nothing(self, n_features: int) -> ThetaResult:
        """The result without any weight, of a target without any spread."""
        zero, none = np.zeros(n_features), np.full(self.n_restarts, np.nan)
        kernel = FeatureKernel(self.kernel, np.empty(0, np.intp), np.empty(0), np.empty(0), self.degree, self.coef0)
        no_fit = VectorFit(np.inf, np.empty(0, np.intp), np.empty(0))
        return ThetaResult(kernel, no_fit, zero, zero, none, Trace())

    def _result(
        self,
        inputs: StandardInputs,
        theta: FloatArray,
        relevance: FloatArray,
        fit: VectorFit,
        scores: FloatArray,
        trace: Trace,
    ) -> ThetaResult:
        columns = np.flatnonzero(theta)
        in_data_units = theta[columns] / inputs.unit[columns] ** WEIGHTED[self.kernel].power
        weights, known = np.zeros(len(theta)), np.zeros(len(theta))
        weights[columns], known[columns] = in_data_units, relevance
        origin = inputs.origin[columns]
        kernel = FeatureKernel(self.kernel, columns, in_data_units, origin, self.degree, self.coef0)
        return ThetaResult(kernel, fit, weights, known, scores, trace)

    def starts(self, inputs: StandardInputs) -> list[FloatArray]:
        """Initial feature weights in standard units: those of `init`, then equal ones of fixed sizes, then random."""
        starts = [] if isinstance(self.init, str) else [self._given(inputs)]
        n_more, n_varying = self.n_restarts - len(starts), inputs.n_varying
        more = sized_starts(np.full(n_varying, 1 / max(n_varying, 1)))[: max(n_more, 0)]
        more += random_starts(n_varying, n_more - len(more), check_random_state(self.random_state))
        for theta in more:
            starts.append(np.zeros(inputs.X.shape[1]))
            starts[-1][inputs.varying] = theta
        return starts

    def _given(self, inputs: StandardInputs) -> FloatArray:
        """The weights of `init` in standard units."""
        n_features = inputs.X.shape[1]
        given = np.asarray(self.init, dtype=np.float64)
        given = np.full(n_features, float(given)) if given.ndim == 0 else given
        if given.shape != (n_features,) or not (np.isfinite(given) & (given >= 0)).all() or not given.any():
            raise ValueError(
                f"The 'init' parameter must hold a finite weight >= 0 for each of the {n_features} features of X, and "
                f"not only zeros; got {self.init!r}"
            )
        unit = np.where(inputs.varying, inputs.unit, 0.0)
        return np.asarray(given * unit ** WEIGHTED[self.kernel].power)


def is_wide(inputs: StandardInputs) -> bool:
    """Whether there are too few rows for a Gaussian process with a weight for each feature."""
    return inputs.n_varying * ROWS_PER_FEATURE > len(inputs.X)


def resize(
    found: ThetaResult,
    inputs: StandardInputs,
    t: FloatArray,
    signal: Callable[[Spectrum], Signal],
    *,
    flat_intercept: bool,
) -> tuple[ThetaResult, Signal]:
    """The same shares of the features at the common size of largest evidence of a Gaussian process; and its signal.

    A sparse model with few vectors asks for a wider kernel than a process that keeps all. `signal` is the evidence of
    targets like t (engine/process.py).
    """
    kernel, columns = found.kernel, found.kernel.columns
    theta = kernel.theta * inputs.unit[columns] ** WEIGHTED[kernel.name].power
    standard = replace(kernel, columns=np.arange(len(columns)), theta=theta, centre=np.zeros(len(columns)))
    sample = Sample.of(inputs.X[:, columns], t[:, None], inputs.weight)

    def signal_at(size: float) -> Signal:
        K = replace(standard, theta=size * theta)(sample.X, sample.X)
        return signal(sample.spectrum(K, flat_intercept))

    _, size = best_width([signal_at], [SIZES])
    resized = replace(found, kernel=replace(kernel, theta=size * kernel.theta), weights=size * found.weights)
    return resized, signal_at(size)
