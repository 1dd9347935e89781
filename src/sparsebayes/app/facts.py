"""What a study says, worked out once for the words, figures and tables of its report."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import stdtrit
from sklearn.pipeline import Pipeline

from sparsebayes.app.report.words import name
from sparsebayes.app.study import Score, Study
from sparsebayes.core.predictive import central_interval
from sparsebayes.core.types import AnyArray, BoolArray, FloatArray
from sparsebayes.estimators._kept import Kept, kept
from sparsebayes.inspection import CoverageDisplay
from sparsebayes.inspection.coverage import CHANCE, LEVELS
from sparsebayes.inspection.relevance import _weight_label

COVERAGE = 0.9
"""Probability of the intervals of predictions that are spoken of."""
CREDIBLE = 0.95
"""Probability of the intervals of weights and of differences between models."""
NORMAL = float(stdtrit(np.inf, 0.5 + CHANCE / 2))


@dataclass(frozen=True)
class Effect:
    """A kept feature or relevance vector with its weight on one output or class."""

    name: str
    index: int
    output: str
    weight: float
    lower: float
    upper: float
    gain: float


@dataclass(frozen=True)
class Facts:
    """A study, and what follows from it."""

    study: Study

    @cached_property
    def model(self) -> Any:
        """The fitted model itself."""
        pipeline = self.study.pipeline
        return pipeline[-1] if isinstance(pipeline, Pipeline) else pipeline

    @cached_property
    def _steps(self) -> Any:
        """What stands before the model; None if nothing does."""
        pipeline = self.study.pipeline
        return pipeline[:-1] if isinstance(pipeline, Pipeline) and len(pipeline) > 1 else None

    # --- what matters ---

    @cached_property
    def names(self) -> list[str]:
        """What the inputs of the model are called."""
        given = self.study.features
        if len(given) == self.model.n_features_in_ or self._steps is None:
            return [name(feature) for feature in given]
        return [name(feature) for feature in self._steps.get_feature_names_out(given)]  # an imputer may drop columns

    @cached_property
    def _parts(self) -> list[Kept]:
        return kept(self.model)

    @property
    def what(self) -> str:
        """What the weights belong to: "feature" or "vector"."""
        return self._parts[0].what

    @cached_property
    def effects(self) -> list[Effect]:
        """The kept, the largest first. A feature's weight is the effect of one of its standard deviations."""
        found = [effect for part in self._parts for effect in self._effects(part)]
        return sorted(found, key=lambda effect: -abs(effect.weight))

    def _effects(self, part: Kept) -> list[Effect]:
        scale = np.ones(len(part.index))
        if part.what == "feature":
            scale = self._spread[part.index] ** part.power
        ends = part.interval(CREDIBLE) * scale[:, None]
        called = self.names if part.what == "feature" else None
        return [
            Effect(
                called[j] if called else f"row {j}",
                int(j),
                name(part.output, 40),
                float(part.weight[k] * scale[k]),
                float(ends[k, 0]),
                float(ends[k, 1]),
                float(part.gain[j]) if len(part.gain) else np.nan,
            )
            for k, j in enumerate(part.index)
        ]

    @cached_property
    def _spread(self) -> FloatArray:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X does not have valid feature names")  # it is the same table without
            X = self.study.X if self._steps is None else self._steps.transform(self.study.X)
        return np.asarray(X, dtype=np.float64).std(axis=0)

    @cached_property
    def distinct(self) -> list[Effect]:
        """The largest effect of each kept feature or vector, whichever class that is on."""
        first: dict[int, Effect] = {}
        for effect in self.effects:
            first.setdefault(effect.index, effect)
        return list(first.values())

    @cached_property
    def near(self) -> list[str]:
        """Features that bring nearly what is asked of them, for any class, and are kept for none."""
        taken = {effect.index for effect in self.effects}
        found = dict.fromkeys(int(j) for part in self._parts for j in part.near_misses())
        return [self.names[j] for j in found if j not in taken]

    @property
    def asked(self) -> float:
        """Nats asked of one feature more; the largest price, where each class has its own."""
        return max(part.asked for part in self._parts)

    @cached_property
    def n_vectors(self) -> int:
        """Rows that the model rests on; 0 for a linear one."""
        indices = getattr(self.model, "relevance_indices_", [])
        if isinstance(indices, list):
            indices = np.unique(np.concatenate(indices)) if len(indices) else []
        return len(indices)

    @property
    def weight_label(self) -> str:
        """In which units the weights are."""
        return _weight_label(self.model, self.what == "feature", CREDIBLE, self.certain)

    @property
    def signed(self) -> bool:
        """Whether the weights have a direction; those inside a kernel are sizes."""
        return getattr(self.model, "feature_weights_", None) is None

    @property
    def certain(self) -> bool:
        """Whether the weights have intervals."""
        return any(np.isfinite(effect.lower) for effect in self.effects)

    @cached_property
    def n_folds(self) -> int:
        """Folds that came to an end."""
        return len(np.unique(self.study.held_out.fold))

    @cached_property
    def frequency(self) -> FloatArray:
        """Share of the folds that keep each feature; empty where the model keeps none by itself."""
        folds = self.study.kept_by_fold
        if not folds.size or folds.shape[1] != len(self.names):
            return np.empty(0)
        return np.asarray(folds.mean(axis=0))

    # --- how good ---

    @property
    def classes(self) -> list[str]:
        """The classes as words."""
        return [name(label, 40) for label in self.study.classes]

    @cached_property
    def truth(self) -> AnyArray:
        """The target of the held-out rows: numbers, or places among the classes."""
        truth = self.study.held_out.truth
        if not self.study.classes:
            return np.asarray(truth, dtype=np.float64)
        place = {label: k for k, label in enumerate(self.study.classes)}
        return np.array([place[label] for label in np.asarray(truth).tolist()])

    @cached_property
    def predicted(self) -> AnyArray:
        """The predicted numbers, or places among the classes."""
        held = self.study.held_out
        return held.probabilities.argmax(axis=1) if self.study.classes else held.mean

    @cached_property
    def plain(self) -> float:
        """Error without any feature: spread of the target about its mean, or share of all classes but the largest."""
        if self.study.classes:
            return 1 - float(np.bincount(self.truth).max()) / len(self.truth)
        return float(self.truth.std())

    @property
    def explained(self) -> float:
        """Regression: share of the variance that the predictions of held-out rows explain."""
        error = float(np.mean((self.predicted - self.truth) ** 2))
        return 1 - error / self.plain**2 if self.plain > 0 else np.nan

    @property
    def score(self) -> Score:
        """Line of the chosen model in the comparison."""
        return self.study.scores[0]

    def difference_interval(self, score: Score) -> tuple[float, float]:
        """Where the difference in error lies: Student's quantile, for so few folds."""
        half = float(stdtrit(max(self.n_folds - 1, 1), 0.5 + CREDIBLE / 2)) * score.difference_se
        return score.difference - half, score.difference + half

    # --- how sure ---

    @cached_property
    def intervals(self) -> FloatArray:
        """Intervals of the held-out rows for all levels, as `predict_interval` of the folds' models gives them."""
        held = self.study.held_out
        # N - Σγ of the fits to the training parts: as that of the fit to all rows, for so many rows fewer.
        freedom = float(self.model._fits[0].freedom) * (1 - 1 / self.study.n_folds)
        return np.stack([central_interval(held.mean, held.std, level, freedom) for level in LEVELS])

    @property
    def ends(self) -> FloatArray:
        """The intervals that are spoken of."""
        return self.intervals[LEVELS.index(COVERAGE)]

    @cached_property
    def held(self) -> BoolArray:
        """Which of the held-out rows lie in theirs."""
        return np.asarray((self.ends[:, 0] <= self.truth) & (self.truth <= self.ends[:, 1]))

    @cached_property
    def promises(self) -> CoverageDisplay:
        """Coverage of the intervals, or calibration: of the second of two classes, or of the predicted one."""
        if not self.study.classes:
            return CoverageDisplay.from_intervals(self.truth, self.intervals, LEVELS)
        probabilities = self.study.held_out.probabilities
        if len(self.study.classes) == 2:
            return CoverageDisplay.from_probabilities(self.truth == 1, probabilities[:, 1])
        return CoverageDisplay.from_probabilities(self.truth == self.predicted, probabilities.max(axis=1))

    @cached_property
    def doubt(self) -> tuple[float, float, float, float]:
        """What is promised and what came: the share of the intervals, or of right predictions; and the range by chance.

        The number of right predictions is a sum of independent draws, one for each probability.
        """
        if not self.study.classes:
            shown, k = self.promises, LEVELS.index(COVERAGE)
            return COVERAGE, float(shown.observed[k]), float(shown.lower[k]), float(shown.upper[k])
        top = self.study.held_out.probabilities.max(axis=1)
        sure, right = float(top.mean()), float(np.mean(self.predicted == self.truth))
        half = NORMAL * float(np.sqrt((top * (1 - top)).sum())) / len(top)
        return sure, right, max(sure - half, 0.0), min(sure + half, 1.0)

    @property
    def verdict_on_doubt(self) -> str:
        """ "right", "too sure" or "too careful"."""
        _, came, low, high = self.doubt
        return "too sure" if came < low else "too careful" if came > high else "right"


def thinned(n: int, most: int) -> Sequence[int]:
    """At most so many of n places, evenly spaced, the first and the last among them."""
    return range(n) if n <= most else np.unique(np.linspace(0, n - 1, most).round().astype(int)).tolist()
