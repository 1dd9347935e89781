"""A study: a model fitted to a table, how well it predicts rows that it has not seen, and what it kept.

The command line makes one (`sparsebayes.app.run_study`), prints its verdict and hands it to the report.
"""

from dataclasses import dataclass
from typing import Any

from sparsebayes.core.types import AnyArray, BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class HeldOut:
    """Predictions of the chosen model by cross-validation: each row is predicted by a fit that has not seen it."""

    rows: IntArray
    """Which rows of the study's X these are, in ascending order; fewer than all where a fold failed."""
    truth: AnyArray
    """The target there."""
    fold: IntArray
    """In which fold each was held out, from 0."""
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
    """One line of a comparison. Standard errors are over the folds; nan where a number does not apply."""

    model: str
    """As it is called on the command line: "ard", "ridge", "mean", …"""
    title: str
    """For people: "ARD regression (sparsebayes)"."""
    ours: bool
    error: float
    """Root mean square error or share of wrong classes, averaged over the folds."""
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
    """To fit and predict all folds."""
    failed: str
    """Why there are no numbers; empty if there are."""


@dataclass(frozen=True)
class Study:
    """All that is known after `sparsebayes fit`."""

    source: str
    target: str
    task: str
    """"regression", "binary" or "multiclass"."""
    why: str
    """One sentence: why this model."""
    model_name: str
    pipeline: Any
    """Fitted on all rows; takes X as it is here. The model is its last step, scaling or imputation stand before it."""
    features: list[str]
    """Names of the columns of X."""
    X: FloatArray
    """The table after categories have become columns of zeros and ones; nan where a value is missing and imputed."""
    y: AnyArray
    classes: list[Any]
    """In the order of the probabilities; empty for regression."""
    held_out: HeldOut
    kept_by_fold: BoolArray
    """Folds × features: what the model of each fold kept; (folds, 0) for a kernel model without feature weights."""
    scores: list[Score]
    """The chosen model first, then what it is compared with: at least the mean or the most frequent class."""
    seconds: float
    version: str
    warnings: list[str]
    seed: int
    n_folds: int
