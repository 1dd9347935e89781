"""Figures are drawn without a screen and closed after each test; the models behind them are fitted once."""

import warnings

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.exceptions import ConvergenceWarning

from sparsebayes.estimators import ESTIMATORS

mpl.use("Agg")


@pytest.fixture(autouse=True)
def closed_figures():
    import matplotlib.pyplot as plt

    before = dict(mpl.rcParams)
    yield
    plt.close("all")
    assert dict(mpl.rcParams) == before, "a display left its settings behind"


@pytest.fixture(scope="session")
def fitted(make_data):
    """Every estimator of the register with its data; with two inputs, and with three classes for classifiers."""
    X, y = make_data(80, 2, n_true=2)
    labels = np.array(["low", "mid", "top"])[np.digitize(y, [-1.5, 1.5])]
    counts = np.rint(np.exp(0.5 * y + 2))

    def target_of(model):
        if is_classifier(model):
            return labels
        return counts if model.__sklearn_tags__().target_tags.positive_only else y

    targets = [target_of(cls()) for cls in ESTIMATORS]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # short chains
        return [(quick(cls).fit(X, target), X, target) for cls, target in zip(ESTIMATORS, targets, strict=True)]


def quick(cls):
    """An estimator with default parameters; its chains are short, because these tests do not depend on them."""
    short = {"max_flips": 300, "n_chains": 2}
    return cls(**(short if "max_flips" in cls._parameter_constraints else {}))


def segments(collection):
    """Ends of the horizontal lines of a collection: one row (left, right, height) per line."""
    return np.array([(path[0, 0], path[1, 0], path[0, 1]) for path in collection.get_segments()])


@pytest.fixture(name="segments")
def give_segments():
    return segments


@pytest.fixture
def labels_of():
    """The words at the ticks of the vertical axis, from the top."""
    return lambda ax: [text.get_text() for text in ax.get_yticklabels()]
