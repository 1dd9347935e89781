"""Scores of models from their cross-validation folds."""

import numpy as np

from sparsebayes.app.models import Model
from sparsebayes.app.study import Score
from sparsebayes.app.validation import Outcome
from sparsebayes.core.types import FloatArray


def mean_and_error(values: FloatArray) -> tuple[float, float]:
    """Mean over the folds and its standard error."""
    if not len(values):
        return np.nan, np.nan
    spread = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan
    return float(values.mean()), spread


def paired(values: FloatArray, reference: FloatArray) -> tuple[float, float]:
    """Mean difference over the folds, and its standard error.

    Training parts of k folds share rows, so that the folds' differences are not independent. Nadeau and Bengio (2003)
    enlarge the variance of the mean from s²/k to s²(1/k + n_test/n_train), which is s²(1/k + 1/(k - 1)) here.
    """
    k = len(values)
    if k != len(reference) or k < 2:
        return np.nan, np.nan
    difference = values - reference
    return float(difference.mean()), float(difference.std(ddof=1) * np.sqrt(1 / k + 1 / (k - 1)))


def score(model: Model, outcome: Outcome, reference: Outcome) -> Score:
    """The score of a model, and its difference from the reference model."""
    error, error_se = mean_and_error(outcome.numbers("error"))
    log_score, log_score_se = mean_and_error(outcome.numbers("log_score"))
    difference, difference_se = paired(outcome.numbers("error"), reference.numbers("error"))
    return Score(
        model=model.name,
        title=f"{model.title} (sparsebayes)" if model.ours else model.title,
        ours=model.ours,
        error=error,
        error_se=error_se,
        log_score=log_score,
        log_score_se=log_score_se,
        difference=difference,
        difference_se=difference_se,
        kept_features=mean_and_error(outcome.n_features)[0],
        kept_vectors=mean_and_error(outcome.numbers("n_vectors"))[0],
        seconds=outcome.seconds,
        failed=outcome.failed,
    )


def better(challenger: Outcome, champion: Outcome) -> tuple[bool, float, float]:
    """Whether the challenger's log score is lower by more than a standard error; also the difference and that error."""
    difference, error = paired(challenger.numbers("log_score"), champion.numbers("log_score"))
    return bool(difference < -error), difference, error
