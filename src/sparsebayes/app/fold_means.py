"""Means over cross-validation folds, and their standard errors."""

import numpy as np

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
    if len(values) != len(reference) or len(values) < 2:
        return np.nan, np.nan
    mean, error = mean_and_shared_error(values - reference)
    return float(mean), float(error)


def mean_and_shared_error(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean over the folds (the first axis), and its standard error by Nadeau and Bengio; nan for a single fold."""
    k = len(values)
    if k < 2:
        return values.mean(axis=0), np.full(values.shape[1:], np.nan)
    return values.mean(axis=0), values.std(axis=0, ddof=1) * np.sqrt(1 / k + 1 / (k - 1))
