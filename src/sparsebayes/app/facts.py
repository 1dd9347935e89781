"""The facts of a study, computed once. The terminal, the JSON output and the HTML report only format them."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit
from sklearn.pipeline import Pipeline

from sparsebayes.app.class_skill import ClassSkill, class_skill
from sparsebayes.app.equation import Equation, equations_of
from sparsebayes.app.evenness import Evenness, of_intervals, of_probabilities
from sparsebayes.app.models import CONSTANT
from sparsebayes.app.noise_facts import NoiseFacts, noise_facts
from sparsebayes.app.selection import CREDIBLE, Selection, selection_of
from sparsebayes.app.study import HeldOut, Score, Study
from sparsebayes.core.predictive import central_interval
from sparsebayes.core.types import AnyArray, BoolArray, FloatArray
from sparsebayes.inspection import CoverageDisplay
from sparsebayes.inspection.coverage import CHANCE, LEVELS

COVERAGE = 0.9
"""Probability of the prediction intervals that are reported."""
FEW_ROWS = 30
"""With fewer rows a fold of five tests six at most, and one row moves every number."""
FEW_OF_CLASS = 10
"""With fewer rows of a class a fold of five tests two at most."""
ENDING = ("log_evidence_", "optimality_gap_", "converged_", "n_iter_", "noise_variance_", "gamma_", "min_gain_")
"""Attributes that say how the search ended. For an averaged model this is the search for the best single model."""
CHAINS = ("chain_error_", "effective_sample_size_", "n_flips_")
"""Attributes of an averaged model that say how its chains ended."""


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
    evenness: list[Evenness]
    """Coverage by predicted value and spread, or calibration by probability; empty with few rows."""
    skill: ClassSkill | None
    """Classes: what accuracy does not say; None for regression."""
    equations: list[Equation]
    """Linear models: the predictions in the units of the table, one for each set of weights."""
    noise: NoiseFacts
    """What the model says of its noise."""
    few: str
    """A warning if there are too few rows for a verdict; empty otherwise."""

    @property
    def trust(self) -> str:
        """The verdict on intervals or probabilities: that of `calibration`, unless that is "calibrated".

        It is then "uneven" if it does not hold for all quarters of the rows, "unknown" if there are too few rows.
        """
        verdict = self.calibration.verdict
        if verdict != "calibrated":
            return verdict
        return "unknown" if self.few else "uneven" if any(each.uneven for each in self.evenness) else verdict

    @property
    def unstable(self) -> bool:
        """Whether most of the features that the model keeps or claims are missing in more than half of the folds."""
        share = [effect.frequency for effect in self.selection.distinct if np.isfinite(effect.frequency)]
        return bool(share) and sum(each < 0.5 for each in share) > len(share) / 2


def facts_of(study: Study) -> Facts:
    """Compute all facts of a study."""
    model = _model(study.pipeline)
    truth, predicted = _truth(study), _predicted(study)
    folds = len(np.unique(study.held_out.fold))
    others = [comparison_of(score, folds) for score in study.scores[1:]]
    constant = [other for other in others if other.score.model in CONSTANT.values() and np.isfinite(other.score.error)]
    intervals, inside = np.empty((0, 2)), np.empty(0, dtype=bool)
    if not study.classes:
        intervals = held_out_intervals(study.held_out, COVERAGE)
        inside = _inside(truth, intervals)
    coverage = _coverage(study, truth, predicted)
    spreads = spread(study.pipeline, study.X)
    return Facts(
        study=study,
        model=model,
        selection=selection_of(model, _names(study), spreads, _frequency(study)),
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
        evenness=_evenness(study, truth, predicted, inside),
        skill=class_skill(study, truth, predicted) if study.classes else None,
        equations=equations_of(study, spreads),
        noise=noise_facts(study, model, _names(study), spreads),
        few=_few(study, truth),
    )


def _model(pipeline: Any) -> Any:
    return pipeline[-1] if isinstance(pipeline, Pipeline) else pipeline


def ending_of(model: Any) -> dict[str, Any]:
    """How the search and the chains of a fitted model ended, by the names of its attributes."""
    found = {key.rstrip("_"): getattr(model, key) for key in (*ENDING, *CHAINS) if hasattr(model, key)}
    averaged = hasattr(model, "inclusion_probability_")
    return found | ({"search_converged": model.model_.converged_} if averaged else {})


# --- what matters ---


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


def comparison_of(score: Score, folds: int) -> Comparison:
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


def _evenness(study: Study, truth: AnyArray, predicted: AnyArray, inside: BoolArray) -> list[Evenness]:
    held = study.held_out
    if not study.classes:
        return of_intervals(held.mean, held.std, inside, COVERAGE)
    if len(study.classes) == 2:
        return of_probabilities(truth == 1, held.probabilities[:, 1])
    return of_probabilities(truth == predicted, held.probabilities.max(axis=1))


def _few(study: Study, truth: AnyArray) -> str:
    if len(study.y) < FEW_ROWS:
        return f"The table has only {len(study.y)} rows: all numbers are rough"
    if not study.classes:
        return ""
    count = np.bincount(truth, minlength=len(study.classes))
    k = int(count.argmin())
    return f"Only {count[k]} rows are “{study.classes[k]}”: all numbers are rough" if count[k] < FEW_OF_CLASS else ""


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
