"""Data of the tests of estimators."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def make_classes():
    """The first columns matter, with weights of size 2 to 1 and alternating sign."""

    def make(n=120, d=8, n_true=2, seed=0, offset=0.5, size=1.0):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, d))
        weight = size * np.linspace(2, 1, n_true) * (-1) ** np.arange(n_true)
        return X, (X[:, :n_true] @ weight + offset + rng.logistic(size=n) > 0).astype(int)

    return make
