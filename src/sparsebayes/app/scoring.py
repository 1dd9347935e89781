"""Scores of models from their cross-validation folds."""

from sparsebayes.app.fold_means import mean_and_error, paired
from sparsebayes.app.models import Model
from sparsebayes.app.study import Score
from sparsebayes.app.validation import Outcome


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
