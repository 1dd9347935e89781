"""The facts of a study, computed once. The terminal, the JSON output and the HTML report only format them."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit
from sklearn.pipeline import Pipeline

from sparsebayes.app.models import CONSTANT
from sparsebayes.app.study import HeldOut, Score, Study
from sparsebayes.app.validation import n_vectors
from sparsebayes.core.predictive import central_interval
from sparsebayes.core.types import AnyArray, BoolArray, FloatArray
from sparsebayes.estimators import kept
from sparsebayes.inspection import CoverageDisplay
from sparsebayes.inspection.coverage import CHANCE, LEVELS
from sparsebayes.inspection.effects import effects_of, weight_label

COVERAGE = 0.9
"""Probability of the prediction intervals that are reported."""
CREDIBLE = 0.95
"""Probability of the intervals of weights, and of differences between models."""
ENDING = ("log_evidence_", "optimality_gap_", "converged_", "n_iter_", "noise_variance_", "gamma_", "min_gain_")
"""Attributes of a fitted model that say how its search ended."""


@dataclass(frozen=True)
class Effect:
    """The weight of a kept feature or relevance vector for one output or class."""

    name: str
    index: int
    """Column of the feature, or row of the relevance vector."""
    output: str
    """The class; empty if the model has a single set of weights."""
    weight: float
    """With known spreads of the features: the effect of one standard deviation."""
    lower: float
    upper: float
    gain: float
    """Nats of evidence that the feature adds; nan if unknown."""
    frequency: float
    """Share of the folds that keep the feature; nan if unknown."""


@dataclass(frozen=True)
class Selection:
    """What a model keeps."""

    what: str
    """"feature" or "vector" (a row of the training table)."""
    names: list[str]
    """Names of the model's inputs."""
    outputs: list[str]
    effects: list[Effect]
    """Output by output, most important first."""
    ranked: list[Effect]
    """All outputs together, largest weight first."""
    distinct: list[Effect]
    """The largest effect of each feature or vector."""
    frequency: FloatArray
    """Share of the folds that keep each input; empty if unknown."""
    near: list[str]
    """Dropped features whose evidence is close to the threshold for at least one class."""
    asked: float
    """Nats of evidence that one more feature must add; the largest threshold of all classes."""
    n_vectors: float
    """Number of relevance vectors; nan for a linear model."""
    label: str
    """Unit of the weights."""
    per_sd: bool
    """Whether weights are effects of one standard deviation of the feature."""
    signed: bool
    """Whether weights have a direction. Feature weights inside a kernel do not."""
    certain: bool
    """Whether weights have intervals."""


@dataclass(frozen=True)
class Comparison:
    """A model in the comparison, and the interval of its difference in error from the chosen model."""

    score: Score
    lower: float
    upper: float

    @property
    def verdict(self) -> str:
        """ "worse", "better" or "unclear", by a paired t test at 5 %."""
        return "worse" if self.lower > 0 else "better" if self.upper < 0 else "unclear"


@dataclass(frozen=True)
class Calibration:
    """Stated against observed certainty on held-out rows.

    Regression: share of the rows inside their intervals. Classification: share of correct predictions, against the
    mean probability of the predicted class.
    """

    promised: float
    observed: float
    lower: float
    """The observed share of a well calibrated model lies between `lower` and `upper` with probability 0.95."""
    upper: float

    @property
    def verdict(self) -> str:
        """ "calibrated", "overconfident" or "underconfident"."""
        if self.observed < self.lower:
            return "overconfident"
        return "underconfident" if self.observed > self.upper else "calibrated"


@dataclass(frozen=True)
class Facts:
    """All that the outputs say about a study."""

    study: Study
    model: Any
    """The fitted model itself, without the steps before it."""
    selection: Selection
    ending: dict[str, Any]
    """How the search ended."""
    n_folds: int
    """Number of folds with predictions."""
    score: Score
    """The chosen model in the comparison."""
    others: list[Comparison]
    """The other models, in the order of the study."""
    constant: Comparison | None
    """The model without features: the mean, or the class shares."""
    truth: AnyArray
    """The target of the held-out rows: numbers, or indices of classes."""
    predicted: AnyArray
    """The predictions of the held-out rows: numbers, or indices of classes."""
    explained: float
    """Regression: share of the variance of held-out rows that the predictions explain; nan for classes."""
    intervals: FloatArray
    """Regression: prediction intervals of the held-out rows; empty for classes."""
    inside: BoolArray
    """Regression: which of the held-out rows lie in their intervals; empty for classes."""
    coverage: CoverageDisplay
    """Coverage of intervals at several levels, or calibration of probabilities.

    With two classes the probabilities are those of the second, with more those of the predicted class.
    """
    calibration: Calibration


def facts_of(study: Study) -> Facts:
    """Compute all facts of a study."""
    model = _model(study.pipeline)
    truth, predicted = _truth(study), _predicted(study)
    folds = len(np.unique(study.held_out.fold))
    others = [_comparison(score, folds) for score in study.scores[1:]]
    constant = [other for other in others if other.score.model in CONSTANT.values() and np.isfinite(other.score.error)]
    intervals, inside = np.empty((0, 2)), np.empty(0, dtype=bool)
    if not study.classes:
        intervals = held_out_intervals(study.held_out, COVERAGE)
        inside = _inside(truth, intervals)
    coverage = _coverage(study, truth, predicted)
    return Facts(
        study=study,
        model=model,
        selection=selection_of(model, _names(study), spread(study.pipeline, study.X), _frequency(study)),
        ending=ending_of(model),
        n_folds=folds,
        score=study.scores[0],
        others=others,
        constant=constant[0] if constant else None,
        truth=truth,
        predicted=predicted,
        explained=np.nan if study.classes else _explained(truth, predicted),
        intervals=intervals,
        inside=inside,
        coverage=coverage,
        calibration=_calibration(study, truth, predicted, coverage),
    )


def _model(pipeline: Any) -> Any:
    return pipeline[-1] if isinstance(pipeline, Pipeline) else pipeline


def ending_of(model: Any) -> dict[str, Any]:
    """How the search of a fitted model ended, by the names of its attributes."""
    return {key.rstrip("_"): getattr(model, key) for key in ENDING if hasattr(model, key)}


# --- what matters ---


def selection_of(
    model: Any,
    names: Sequence[str],
    spread: Sequence[float] | FloatArray | None = None,
    frequency: Sequence[float] | FloatArray | None = None,
) -> Selection:
    """What a fitted model keeps.

    Without standard deviations of the inputs (`spread`) weights are per unit of the feature.
    """
    share = np.empty(0) if frequency is None else np.asarray(frequency, dtype=np.float64)
    scale = None if spread is None else np.asarray(spread, dtype=np.float64)
    parts = kept(model)
    what, per_sd = parts[0].what, False
    found = []
    for part in parts:
        effects = effects_of(part, scale, CREDIBLE)
        per_sd = effects.per_sd
        for k, j in enumerate(effects.index.tolist()):
            found.append(
                Effect(
                    names[j] if what == "feature" else f"row {j}",
                    j,
                    part.output,
                    float(effects.weight[k]),
                    float(effects.lower[k]),
                    float(effects.upper[k]),
                    float(effects.gain[k]) if len(effects.gain) else np.nan,
                    float(share[j]) if what == "feature" and len(share) else np.nan,
                )
            )
    ranked = sorted(found, key=lambda effect: -abs(effect.weight))
    distinct: dict[int, Effect] = {}
    for effect in ranked:
        distinct.setdefault(effect.index, effect)
    near = dict.fromkeys(int(j) for part in parts for j in part.near_misses())
    return Selection(
        what=what,
        names=list(names),
        outputs=[part.output for part in parts],
        effects=found,
        ranked=ranked,
        distinct=list(distinct.values()),
        frequency=share,
        near=[names[j] for j in near if j not in distinct],
        asked=max(part.asked for part in parts),
        n_vectors=n_vectors(model),
        label=weight_label(model, per_sd),
        per_sd=per_sd,
        signed=getattr(model, "feature_weights_", None) is None,
        certain=any(np.isfinite(effect.lower) for effect in found),
    )


def spread(pipeline: Any, X: FloatArray) -> FloatArray:
    """Standard deviations of the model's inputs, after the steps before it."""
    if isinstance(pipeline, Pipeline) and len(pipeline) > 1:
        with warnings.catch_warnings():
            # The pipeline was fitted to a table with names; X holds the same columns without them.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            X = pipeline[:-1].transform(X)
    return np.asarray(X, dtype=np.float64).std(axis=0)


def _names(study: Study) -> list[str]:
    """Names of the model's inputs; an imputer may have dropped columns."""
    if len(study.features) == _model(study.pipeline).n_features_in_:
        return study.features
    return [str(name) for name in study.pipeline[:-1].get_feature_names_out(study.features)]


def _frequency(study: Study) -> FloatArray:
    """Share of the folds that keep each feature; empty for models that do not select features."""
    folds = study.kept_by_fold
    if not folds.size or folds.shape[1] != _model(study.pipeline).n_features_in_:
        return np.empty(0)
    return np.asarray(folds.mean(axis=0))


# --- how good ---


def _truth(study: Study) -> AnyArray:
    truth = study.held_out.truth
    if not study.classes:
        return np.asarray(truth, dtype=np.float64)
    place = {label: k for k, label in enumerate(study.classes)}
    return np.array([place[label] for label in np.asarray(truth).tolist()])


def _predicted(study: Study) -> AnyArray:
    return study.held_out.probabilities.argmax(axis=1) if study.classes else study.held_out.mean


def _explained(truth: FloatArray, predicted: FloatArray) -> float:
    variance = float(truth.var())
    return 1 - float(np.mean((predicted - truth) ** 2)) / variance if variance > 0 else np.nan


def _comparison(score: Score, folds: int) -> Comparison:
    """The interval of a difference: Student's quantile, because there are few folds."""
    half = float(stdtrit(max(folds - 1, 1), 0.5 + CREDIBLE / 2)) * score.difference_se
    return Comparison(score, score.difference - half, score.difference + half)


# --- how sure ---


def held_out_intervals(held: HeldOut, level: float) -> FloatArray:
    """Prediction intervals of the held-out rows, as `predict_interval` of each fold's model gives them."""
    ends = np.empty((len(held.mean), 2))
    for fold, freedom in enumerate(held.freedom.tolist()):
        here = held.fold == fold
        ends[here] = central_interval(held.mean[here], held.std[here], level, freedom)
    return ends


def _inside(truth: FloatArray, intervals: FloatArray) -> BoolArray:
    return np.asarray((intervals[:, 0] <= truth) & (truth <= intervals[:, 1]))


def _coverage(study: Study, truth: AnyArray, predicted: AnyArray) -> CoverageDisplay:
    if study.classes:
        probabilities = study.held_out.probabilities
        if len(study.classes) == 2:
            return CoverageDisplay.from_probabilities(truth == 1, probabilities[:, 1])
        return CoverageDisplay.from_probabilities(truth == predicted, probabilities.max(axis=1))
    # One level at a time: the intervals of a million rows at all levels would take 180 MB.
    observed = [_inside(truth, held_out_intervals(study.held_out, level)).mean() for level in LEVELS]
    count = np.full(len(LEVELS), len(truth))
    return CoverageDisplay(nominal=np.array(LEVELS), observed=np.array(observed), count=count, kind="interval")


def _calibration(study: Study, truth: AnyArray, predicted: AnyArray, coverage: CoverageDisplay) -> Calibration:
    if not study.classes:
        k = LEVELS.index(COVERAGE)
        return Calibration(
            COVERAGE, *(float(values[k]) for values in (coverage.observed, coverage.lower, coverage.upper))
        )
    top = study.held_out.probabilities.max(axis=1)
    promised = float(top.mean())
    # The number of correct predictions is a sum of independent draws, one for each probability.
    normal = float(stdtrit(np.inf, 0.5 + CHANCE / 2))
    half = normal * float(np.sqrt((top * (1 - top)).sum())) / len(top)
    return Calibration(
        promised, float(np.mean(predicted == truth)), max(promised - half, 0.0), min(promised + half, 1.0)
    )
