"""The section of a report that compares models."""

from collections.abc import Sequence

import numpy as np

from sparsebayes.app.facts import Comparison
from sparsebayes.app.report import figures
from sparsebayes.app.report.section import Section
from sparsebayes.app.report.table import Table
from sparsebayes.app.report.what_matters import MOST
from sparsebayes.app.selection import CREDIBLE
from sparsebayes.app.study import Score
from sparsebayes.app.words import NO_BREAK, NONE, count, error_text, interval, name, number, percent, plus_minus


def compared(first: Score, others: Sequence[Comparison], folds: str, classes: bool, called: str = "") -> Section:
    """A figure and a table of all models; differences are those from the first."""
    title = "Comparison with other models"
    unit = "share of misclassified rows" if classes else "root mean square error"
    text = (
        f"All models on the same {folds}. The error is the {unit}, ± its standard error. Differences are paired over "
        "the folds; an interval that contains zero shows no clear difference."
    )
    rows = [_cells(first, None, classes, called), *(_cells(o.score, o, classes, "") for o in others[: MOST - 1])]
    columns = ["model", "error", f"difference ({percent(CREDIBLE)} interval)", "log score (nats)"]
    table = Table("Comparison", [*columns, "features", "vectors", "time"], rows)
    verdicts = [other.verdict for other in others if np.isfinite(other.score.difference)]
    if not verdicts:
        return Section("comparison", title, [text], table=table)
    told = (
        f"{name(first.title)} against {count(len(verdicts), 'other model')}: {verdicts.count('worse')} clearly "
        f"worse, {verdicts.count('better')} clearly better, {verdicts.count('unclear')} without clear difference."
    )
    return Section("comparison", title, [text], figures.comparison(others, classes), told, table)


def _cells(score: Score, other: Comparison | None, classes: bool, called: str) -> list[str]:
    """The row of a model in the table; the first model has no difference."""
    title = name(score.title) + called
    if score.failed:
        return [title, f"failed: {name(score.failed, 160)}", *[NONE] * 5]
    return [
        title,
        error_text(score.error, score.error_se, percent=classes),
        NONE if other is None else _difference(other, classes),
        plus_minus(score.log_score, score.log_score_se),
        number(score.kept_features),
        number(score.kept_vectors),
        f"{number(score.seconds, 2)}{NO_BREAK}s",
    ]


def _difference(other: Comparison, classes: bool) -> str:
    unit = 100 if classes else 1
    mean = number(unit * other.score.difference, sign=True)
    if not np.isfinite(other.lower):
        return mean
    return f"{mean} ({interval(unit * other.lower, unit * other.upper, sign=True)})"
