"""How well classes are predicted: skill, ranking, and how many rows of the class of interest are found."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit
from scipy.stats import rankdata

from sparsebayes.app.fold_means import paired
from sparsebayes.app.selection import CREDIBLE
from sparsebayes.app.study import Study
from sparsebayes.core.types import AnyArray, FloatArray

RARE = 0.4
"""A class is rare below this multiple of equal shares; of two classes, below 20 % of the rows.

Naming always the other class is then right for more than 80 % of the rows, so that accuracy says little.
"""


@dataclass(frozen=True)
class ClassSkill:
    """What accuracy does not say. All numbers are those of held-out rows."""

    skill: float
    """1 minus the log loss divided by that of the class shares: 0 is no better than these, 1 is perfect."""
    clear: bool
    """Whether the log loss is smaller than that of the class shares, by a paired t test at 5 %."""
    auc: float
    """Probability that a row of the class of interest has a higher probability of it than another row."""
    interest: int
    """Index of the class of interest."""
    n: int
    """Rows of this class."""
    found: int
    """Rows of this class that are predicted to be of it."""
    called: int
    """Rows that are predicted to be of it."""
    first: int
    """Rows of this class among the `n` rows with the highest probability of it."""
    rare: bool
    """Whether the class is rare."""

    @property
    def recall(self) -> float:
        """Share of the class that is found."""
        return self.found / self.n if self.n else np.nan

    @property
    def precision(self) -> float:
        """Share of the predictions of the class that are right; nan if there are none."""
        return self.found / self.called if self.called else np.nan


def class_skill(study: Study, truth: AnyArray, predicted: AnyArray) -> ClassSkill:
    """The skill of the held-out probabilities; `truth` and `predicted` are indices of classes."""
    probability = study.held_out.probabilities
    count = np.bincount(truth, minlength=len(study.classes))
    interest = _interest(study, count)
    loss = -np.log(np.maximum(probability[np.arange(len(truth)), truth], 1e-300))
    base = -np.log(_shares(study)[np.arange(len(truth)), truth])
    fold = study.held_out.fold
    each = np.unique(fold)
    by_fold = [np.array([values[fold == k].mean() for k in each]) for values in (loss, base)]
    difference, error = paired(*by_fold)
    half = float(stdtrit(max(len(each) - 1, 1), 0.5 + CREDIBLE / 2)) * error
    top = np.argsort(-probability[:, interest], kind="stable")[: count[interest]]
    mine, called = truth == interest, predicted == interest
    return ClassSkill(
        skill=1 - float(loss.mean() / base.mean()),
        clear=bool(difference + half < 0),
        auc=area(probability[:, interest], mine),
        interest=interest,
        n=int(mine.sum()),
        found=int((mine & called).sum()),
        called=int(called.sum()),
        first=int(mine[top].sum()),
        rare=bool(count[interest] < RARE * len(truth) / len(study.classes)),
    )


def _interest(study: Study, count: AnyArray) -> int:
    """The class that was asked for, else the rarest; of equally rare ones the last."""
    if study.positive is not None:
        return study.classes.index(study.positive)
    return len(count) - 1 - int(np.argmin(count[::-1]))


def _shares(study: Study) -> FloatArray:
    """Class shares of the training rows, for each held-out row."""
    labels = np.asarray(study.y)
    held = study.held_out
    found = np.empty((len(held.rows), len(study.classes)))
    for k in np.unique(held.fold):
        mine = held.fold == k
        train = np.delete(labels, held.rows[mine])
        count = np.array([np.sum(train == label) for label in study.classes])
        found[mine] = np.maximum(count, 0.5) / len(train)  # half a row for a class that the fold lacks
    return found


def area(score: FloatArray, positive: AnyArray) -> float:
    """Area under the ROC curve: the Mann-Whitney statistic, ties count half. Nan if there is one class only."""
    n = int(np.sum(positive))
    m = len(score) - n
    if not n or not m:
        return np.nan
    return float((rankdata(score)[positive].sum() - n * (n + 1) / 2) / (n * m))


def class_of_interest(asked: str, classes: list[Any]) -> Any:
    """The class whose text is `asked`; None if there is none."""
    return next((label for label in classes if str(label) == asked), None)
