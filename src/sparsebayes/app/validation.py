"""Cross-validation: predictions for held-out rows, fold by fold."""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils._param_validation import InvalidParameterError

from sparsebayes.app.errors import DataError, UsageError
from sparsebayes.app.importance import shuffled
from sparsebayes.core.types import AnyArray, BoolArray, FloatArray, IntArray

Folds = list[tuple[IntArray, IntArray]]
SLOW = 3.0
"""Seconds of a fold from which other folds run in processes of their own, which take a second or two to start."""


def make_folds(y: AnyArray, classes: bool, groups: AnyArray | None, n: int, seed: int) -> tuple[Folds, str]:
    """Training and test rows of each fold, and a note if there are fewer folds than asked for. Groups stay together."""
    most = len(y) if groups is None else len(np.unique(groups))
    what = "rows" if groups is None else "groups"
    if classes and groups is None:
        most, what = int(np.unique(y, return_counts=True)[1].min()), "rows in the smallest class"
    if most < 2:
        raise DataError(f"cross-validation needs at least 2 {what}; the table has {most}")
    note = f"--cv {n} was reduced to {most}, the number of {what}" if most < n else ""
    n = min(n, most)
    splitter: Any
    if groups is None:
        splitter = (
            StratifiedKFold(n, shuffle=True, random_state=seed)
            if classes
            else KFold(n, shuffle=True, random_state=seed)
        )
    else:
        splitter = StratifiedGroupKFold(n, shuffle=True, random_state=seed) if classes else GroupKFold(n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a class with fewer rows than folds, which is checked below
        folds = list(splitter.split(np.empty((len(y), 0)), y, groups))
    folds = [(train, test) for train, test in folds if len(test)]
    if classes and any(len(np.unique(y[train])) < len(np.unique(y)) for train, _ in folds):
        raise DataError("a class occurs in only one group, so that it is missing from the training rows of a fold")
    return folds, note


@dataclass(frozen=True)
class FoldResult:
    """Predictions of a fold's test rows by a fit to its training rows, and what that fit keeps."""

    error: float
    log_score: float
    mean: FloatArray
    std: FloatArray
    freedom: float
    """Regression: degrees of freedom of the noise estimate, for the quantile of intervals."""
    probabilities: FloatArray
    support: BoolArray
    """Which features are kept; empty for models that do not select features."""
    n_vectors: float
    importance: FloatArray
    """Models that keep rows: increase of the error by shuffling each column; empty otherwise."""


@dataclass
class Outcome:
    """The folds of one model."""

    folds: list[FoldResult] = field(default_factory=list)
    seconds: float = 0.0
    """Sum over the folds."""
    failed: str = ""
    warnings: list[str] = field(default_factory=list)

    def numbers(self, name: str) -> FloatArray:
        """One number of each fold."""
        return np.array([getattr(fold, name) for fold in self.folds], dtype=np.float64)

    @property
    def n_features(self) -> FloatArray:
        """Number of features that each fold keeps; nan for models that do not select features."""
        return np.array([fold.support.sum() if len(fold.support) else np.nan for fold in self.folds], dtype=np.float64)


@dataclass(frozen=True)
class Work:
    """A model and the rows to test it on."""

    pipeline: Any
    X: FloatArray
    y: AnyArray
    classes: list[Any]
    parts: Sequence[slice] = ()
    """Columns that are shuffled together to find out what matters; empty: this is not asked."""


def cross_validated(work: Work, folds: Folds, tick: Callable[[], None], jobs: int = 1) -> Outcome:
    """Fit and test on every fold. If one fit fails, the outcome holds the reason instead of numbers.

    If the first fold takes long, the others share `jobs` processes.
    """
    outcome = Outcome()
    for result, seconds, messages in _results(work, folds, jobs):
        outcome.seconds += seconds
        if isinstance(result, str):
            outcome.failed = result
            outcome.folds.clear()
            break
        outcome.folds.append(result)
        outcome.warnings += messages
        tick()
    return outcome


Tested = tuple["FoldResult | str", float, list[str]]
"""The result of a fold or the reason why there is none, seconds, and warnings."""


def _results(work: Work, folds: Folds, jobs: int) -> Iterator[Tested]:
    """The folds one after the other, or in several processes if they take long enough for these to start."""
    first = _tested(work, *folds[0])
    yield first
    rest = folds[1:]
    if jobs > 1 and len(rest) > 1 and first[1] > SLOW:
        yield from Parallel(min(jobs, len(rest)), return_as="generator")(delayed(_tested)(work, *fold) for fold in rest)
    else:
        yield from (_tested(work, *fold) for fold in rest)


def _tested(work: Work, train: IntArray, test: IntArray) -> Tested:
    start = time.perf_counter()
    result: FoldResult | str
    messages: list[str] = []
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = clone(work.pipeline).fit(work.X[train], work.y[train])
            result = _result(fitted, work, test)
        messages = [str(item.message) for item in caught]
    except InvalidParameterError as error:
        raise UsageError(f"--set: {error}") from error
    except (ValueError, ArithmeticError, MemoryError, np.linalg.LinAlgError) as error:
        result = f"{type(error).__name__}: {error}".strip().partition("\n")[0]
    return result, time.perf_counter() - start, messages


def _result(fitted: Any, work: Work, test: IntArray) -> FoldResult:
    X, y, model = work.X[test], work.y[test], fitted[-1]
    none = np.empty(0)
    kept = support(model), n_vectors(model)
    asked = bool(work.parts) and not len(kept[0]) and np.isfinite(kept[1])  # of models that keep rows
    loss = partial(_log_loss, classes=work.classes) if work.classes else _rmse
    importance = shuffled(fitted, X, y, work.parts, loss) if asked else none
    if work.classes:
        has_probabilities = hasattr(model, "predict_proba")
        p = fitted.predict_proba(X) if has_probabilities else np.empty((len(X), 0))
        score = _mean_log_loss(p, y, work.classes) if has_probabilities else np.nan
        error = float((fitted.predict(X) != y).mean())
        return FoldResult(error, score, none, none, np.nan, p, *kept, importance)
    mean, std = predicted(fitted, X)
    error = float(np.sqrt(np.mean((y - mean) ** 2)))
    with np.errstate(divide="ignore", invalid="ignore"):
        score = float(np.mean(0.5 * np.log(2 * np.pi * std**2) + 0.5 * ((y - mean) / std) ** 2))
    freedom = float(getattr(model, "degrees_of_freedom_", np.inf))
    return FoldResult(error, score, mean, std, freedom, np.empty((len(X), 0)), *kept, importance)


def _mean_log_loss(p: FloatArray, y: AnyArray, classes: list[Any]) -> float:
    place = np.searchsorted(np.asarray(classes), y)
    return float(-np.log(np.maximum(p[np.arange(len(y)), place], 1e-300)).mean())


def _log_loss(fitted: Any, X: FloatArray, y: AnyArray, classes: list[Any]) -> float:
    return _mean_log_loss(fitted.predict_proba(X), y, classes)


def _rmse(fitted: Any, X: FloatArray, y: AnyArray) -> float:
    return float(np.sqrt(np.mean((y - fitted.predict(X)) ** 2)))


def predicted(fitted: Any, X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of new observations; the latter is nan if the model has none."""
    if "return_std" in signature(fitted[-1].predict).parameters:
        mean, std = fitted.predict(X, return_std=True)
        return mean, std
    mean = fitted.predict(X)
    return mean, np.full(len(mean), np.nan)


def support(model: Any) -> BoolArray:
    """Which features a fitted model keeps; empty for models that do not select features."""
    model = getattr(model, "best_estimator_", model)
    if hasattr(model, "get_support"):
        return np.asarray(model.get_support())
    weights = getattr(model, "feature_weights_", None)
    weights = getattr(model, "coef_", None) if weights is None and not hasattr(model, "support_vectors_") else weights
    return np.empty(0, dtype=bool) if weights is None else np.asarray((np.atleast_2d(weights) != 0).any(axis=0))


def n_vectors(model: Any) -> float:
    """Number of training rows that a fitted model keeps; nan for a linear model."""
    model = getattr(model, "regressor_", model)
    model = getattr(model, "best_estimator_", model)
    for name in ("relevance_indices_", "support_", "X_train_"):
        if hasattr(model, name):
            rows = getattr(model, name)
            return float(len(np.unique(np.concatenate(rows)))) if isinstance(rows, list) else float(len(rows))
    if hasattr(model, "base_estimator_"):  # a Gaussian process classifier
        return float(len(getattr(model.base_estimator_, "X_train_", ()))) or np.nan
    return np.nan
