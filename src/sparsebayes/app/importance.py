"""What matters to a model that keeps rows: how much worse it predicts held-out rows when a column is shuffled."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from sparsebayes.app.fold_means import mean_and_shared_error
from sparsebayes.core.types import AnyArray, FloatArray

REPEATS = 5
"""Shuffles of each column in each fold."""
PREDICTIONS = 1000
"""Most predictions of a fold's test rows. With many columns each is shuffled less often, with more than this not."""
ONE_SIDED = 0.95
"""Probability that a column without influence is not called important."""


@dataclass(frozen=True)
class Importance:
    """Increase of the error by shuffling each column, most important column first."""

    names: list[str]
    mean: FloatArray
    """Average over the folds."""
    error: FloatArray
    """Its standard error, enlarged for the rows that training parts share."""
    unit: str
    """ "RMSE" or "log score"."""
    n_folds: int

    @property
    def clear(self) -> list[str]:
        """Columns whose shuffling raises the error clearly (one-sided t test at 5 %)."""
        quantile = float(stdtrit(max(self.n_folds - 1, 1), ONE_SIDED))
        return [
            name for name, mean, error in zip(self.names, self.mean, self.error, strict=True) if mean > quantile * error
        ]


def shuffled(fitted: Any, X: FloatArray, y: AnyArray, parts: Sequence[slice], loss: Any) -> FloatArray:
    """Increase of the loss on these rows when each part of the columns is shuffled; empty if there are too many."""
    repeats = min(REPEATS, PREDICTIONS // max(len(parts), 1))
    if not repeats or len(X) < 2:
        return np.empty(0)
    rng = np.random.default_rng(0)  # the same shuffles for every model
    before = loss(fitted, X, y)
    found = np.empty(len(parts))
    for k, part in enumerate(parts):
        worse = []
        for _ in range(repeats):
            mixed = X.copy()
            mixed[:, part] = X[rng.permutation(len(X)), part]
            worse.append(loss(fitted, mixed, y))
        found[k] = np.mean(worse) - before
    return found


def importance_of(names: Sequence[str], by_fold: Sequence[FloatArray], classes: bool) -> Importance | None:
    """The importances of all folds together; None if they were not computed."""
    if not by_fold or any(len(fold) != len(names) for fold in by_fold):
        return None
    mean, error = mean_and_shared_error(np.array(by_fold))
    order = np.argsort(-mean, kind="stable")
    unit = "log score" if classes else "RMSE"
    return Importance([names[k] for k in order], mean[order], error[order], unit, len(by_fold))
