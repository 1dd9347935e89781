"""The facts of a study in a few sentences, for the terminal and the JSON output."""

import math

from sparsebayes.app.facts import COVERAGE, Calibration, Facts, Selection
from sparsebayes.app.words import count, error_text, for_terminal, percent

INTERVALS = {
    "calibrated": "well calibrated",
    "overconfident": "too narrow",
    "underconfident": "wider than necessary",
}
"""What calibration says about intervals."""
PROBABILITIES = {
    "calibrated": "well calibrated",
    "overconfident": "too confident",
    "underconfident": "not confident enough",
}
"""What calibration says about probabilities."""


def sentences(facts: Facts) -> list[str]:
    """How good the model is, how sure, and what it uses."""
    sure = _probabilities if facts.study.classes else _intervals
    found = [_error(facts), _against_constant(facts), sure(facts.calibration)]
    found.append(selection_text(facts.selection, len(facts.study.y)))
    return [for_terminal(sentence) for sentence in found if sentence]


def _error(facts: Facts) -> str:
    classes = bool(facts.study.classes)
    error = error_text(facts.score.error, facts.score.error_se, percent=classes)
    how = f"{facts.study.n_folds}-fold cross-validation"
    if classes:
        return f"{error} of held-out rows are misclassified ({how})."
    return f"The error (RMSE) on held-out rows is {error} ({how})."


def _against_constant(facts: Facts) -> str:
    if facts.constant is None:
        return ""
    score, classes = facts.constant.score, bool(facts.study.classes)
    by = error_text(score.difference, score.difference_se, percent=classes)
    other = error_text(score.error, score.error_se, percent=classes)
    clearly = "clearly" if facts.constant.verdict == "worse" else "not clearly"
    return f"{score.title}: {other}. The model is {clearly} better (difference {by})."


def _expected(calibration: Calibration) -> str:
    return f"{100 * calibration.lower:.0f} to {percent(calibration.upper)} expected"


def _intervals(calibration: Calibration) -> str:
    return (
        f"{percent(calibration.observed)} of held-out rows lie in their {percent(COVERAGE)} intervals "
        f"({_expected(calibration)}): the intervals are {INTERVALS[calibration.verdict]}."
    )


def _probabilities(calibration: Calibration) -> str:
    return (
        f"{percent(calibration.observed)} of held-out rows are classified correctly; the probabilities predict "
        f"{percent(calibration.promised)} ({_expected(calibration)}): they are {PROBABILITIES[calibration.verdict]}."
    )


def selection_text(selection: Selection, n_rows: int | None) -> str:
    """What a model keeps, in a sentence."""
    n = len(selection.distinct)
    vectors = f"{selection.n_vectors:.0f}{f' of {n_rows:,}' if n_rows else ''} rows (relevance vectors)"
    if selection.what == "vector":
        return f"It keeps {vectors}."
    features = f"It keeps {n:,} of {count(len(selection.names), 'feature')}"
    return f"{features}." if math.isnan(selection.n_vectors) else f"{features} and {vectors}."
