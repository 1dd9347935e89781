"""Relevance vector machines for regression: data, and what is asked of the fits."""

from functools import partial

import numpy as np
import pytest
from oracles import marginal_evidence
from sklearn.metrics.pairwise import rbf_kernel

from sparsebayes import RVMRegressor

machine = partial(RVMRegressor, gamma="scale", standardize=False, vectors="sparse")
"""The relevance vector machine of the textbook: the kernel sees the inputs as they are, and few vectors are kept."""
FLOOR_TOLD = pytest.mark.filterwarnings("ignore:the noise variance reached its floor")


def sinc(n, seed, noise=0.1):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-10, 10, size=(n, 1))
    return X, np.sinc(X[:, 0] / np.pi) + noise * rng.standard_normal(n)


def friedman(n, d, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, d))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, y + rng.standard_normal(n)


def nlpd(y, mean, variance):
    """Negative log predictive density, the mean over rows."""
    return 0.5 * np.mean(np.log(2 * np.pi * variance) + (y - mean) ** 2 / variance)


def evidence_from_scratch(model, X, y):
    return marginal_evidence(model, rbf_kernel(X, model.relevance_vectors_, gamma=model.gamma_), y)
