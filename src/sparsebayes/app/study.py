"""A study: a model fitted to a table, and its cross-validated predictions.

`sparsebayes.app.run_study` makes one, `sparsebayes.app.facts` computes what the outputs say about it.
"""

from dataclasses import dataclass
from typing import Any

from sparsebayes.app.importance import Importance
from sparsebayes.app.origin import Origin
from sparsebayes.core.types import AnyArray, BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class HeldOut:
    """Cross-validated predictions of the chosen model: each row is predicted by a fit without it."""

    rows: IntArray
    """Indices of the rows of the study's X, ascending; not all rows if a fold failed."""
    truth: AnyArray
    """The target of these rows."""
    fold: IntArray
    """The fold in which each row was held out, from 0."""
    mean: FloatArray
    """Regression: the predicted mean; empty for classes."""
    std: FloatArray
    """Regression: standard deviation of the predicted observation; empty for classes."""
    freedom: FloatArray
    """Regression: degrees of freedom of each fold's noise estimate, by fold number; empty for classes."""
    probabilities: FloatArray
    """Classes: one column for each of the study's classes; (n, 0) for regression."""


@dataclass(frozen=True)
class Score:
    """One model in a comparison. Standard errors are over the folds; nan means that a number does not apply."""

    model: str
    """Name on the command line: "ard", "ridge", "mean", …"""
    title: str
    """Title in tables: "ARD regression (sparsebayes)"."""
    ours: bool
    error: float
    """Root mean square error or share of misclassified rows, averaged over the folds."""
    error_se: float
    log_score: float
    """Mean negative log predictive density or probability of the truth, in nats: smaller is better."""
    log_score_se: float
    difference: float
    """Error minus that of the first model, averaged over the folds: positive is worse than it."""
    difference_se: float
    """Its standard error, enlarged for the rows that the folds' training parts share (Nadeau and Bengio 2003)."""
    kept_features: float
    kept_vectors: float
    seconds: float
    """Time to fit and predict all folds."""
    failed: str
    """The reason if the model failed; empty otherwise."""


@dataclass(frozen=True)
class Study:
    """The result of `sparsebayes fit`."""

    source: str
    target: str
    task: str
    """"regression", "binary" or "multiclass"."""
    why: str
    """Why this model was chosen, in one sentence."""
    model_name: str
    pipeline: Any
    """Fitted to all rows of X. The model is the last step, after imputation and scaling."""
    features: list[str]
    """Names of the columns of X."""
    X: FloatArray
    """The encoded table: categories are columns of zeros and ones, missing values are nan."""
    y: AnyArray
    classes: list[Any]
    """In the order of the probabilities; empty for regression."""
    held_out: HeldOut
    kept_by_fold: BoolArray
    """Folds × features: which features each fold keeps; (folds, 0) for a kernel model without feature weights."""
    scores: list[Score]
    """The chosen model first, then the others: at least the model without features."""
    seconds: float
    version: str
    warnings: list[str]
    seed: int
    n_folds: int
    positive: Any = None
    """Classes: the class of interest, if one was named."""
    importance: Importance | None = None
    """Models that keep rows: how much the error rises when a column is shuffled; None for other models."""
    origin: Origin | None = None
    """What was typed, when, on which data, with which versions."""
