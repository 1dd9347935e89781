"""The problems of the peer table: each has a name, a kind of data that decides which methods take part, and a draw."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from designs import ClassDesign, Draw
from problems import Linear
from scipy import sparse
from sets import friedman, gaussian_noise, mixtures, sinc, with_useless
from sklearn.datasets import load_digits


@dataclass(frozen=True)
class Workload:
    """One row of the table."""

    name: str
    kind: str
    """One of the kinds of rivals.py."""
    draw: Callable[[int], Draw]


def from_rows(draw, true=None):
    """A draw of (X, y, X_test, y_test) as a `Draw`."""
    return lambda seed: Draw(*draw(seed), None if true is None else np.asarray(true), None, np.nan)


def from_linear(linear):
    """A problem of problems.py, whose noise has standard deviation one, as a `Draw`."""
    return lambda seed: Draw(*linear.draw(seed), None, linear.unit)


def softmax(n=400, d=100, n_classes=4, n_true=8, n_test=2000):
    """Classes drawn from a softmax of eight of a hundred features."""

    def draw(seed):
        rng = np.random.default_rng([seed, n, d])
        true = np.sort(rng.choice(d, n_true, replace=False))
        X = rng.standard_normal((n + n_test, d))
        utility = X[:, true] @ (1.5 * rng.standard_normal((n_true, n_classes)))
        y = (utility + rng.gumbel(size=utility.shape)).argmax(axis=1)
        return Draw(X[:n], y[:n], X[n:], y[n:], true, None, np.nan)

    return draw


def digits(n=600):
    """Handwritten digits of 8×8 pixels."""

    def draw(seed):
        X, y = load_digits(return_X_y=True)
        order = np.random.default_rng(seed).permutation(len(y))
        return Draw(X[order[:n]], y[order[:n]], X[order[n:]], y[order[n:]], None, None, np.nan)

    return draw


def outputs(n=100, d=500, n_outputs=5, n_true=10, n_test=1000):
    """Ten features that all outputs share; the signal has the variance of the noise."""

    def draw(seed):
        rng = np.random.default_rng([seed, n, d])
        true, W = np.sort(rng.choice(d, n_true, replace=False)), np.zeros((d, n_outputs))
        W[true] = rng.choice([-1.0, 1.0], (n_true, n_outputs)) / np.sqrt(n_true)
        X = rng.standard_normal((n + n_test, d))
        Y = X @ W + rng.standard_normal((n + n_test, n_outputs))
        return Draw(X[:n], Y[:n], X[n:], Y[n:], true, W, 1.0)

    return draw


def binary_columns(n=20_000, d=5_000, n_stored=5, n_true=20, n_test=2_000):
    """Rare 0/1 columns in CSR form, about five in a row; twenty have weights of size 3."""

    def draw(seed):
        rng, n_all = np.random.default_rng([seed, n, d]), n + n_test
        # Indices of 32 bits: other packages take no others.
        rows, columns = (rng.integers(0, most, n_stored * n_all, dtype=np.int32) for most in (n_all, d))
        X = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_all, d))
        X.data[:] = 1.0
        true = np.sort(rng.choice(d, n_true, replace=False))
        y = X[:, true] @ (3.0 * rng.choice([-1, 1], n_true)) + rng.standard_normal(n_all)
        return Draw(X[:n], y[:n], X[n:], y[n:], true, None, 1.0)

    return draw


WORKLOADS = [
    Workload("sinc, 100×1", "curve", from_rows(sinc(gaussian_noise))),
    Workload("Friedman #1, 240×10", "curve", from_rows(friedman(), true=range(5))),
    Workload("Friedman #1, 1,000×10", "curve", from_rows(friedman(n=1000), true=range(5))),
    Workload("Friedman #1, 240×30", "curve", from_rows(friedman(n_features=30), true=range(5))),
    Workload("Ripley, 250×2", "boundary", from_rows(lambda seed: mixtures(250, seed))),
    Workload("Ripley, 1,000×2", "boundary", from_rows(lambda seed: mixtures(1000, seed))),
    Workload("Ripley, 250×22", "boundary", from_rows(with_useless(lambda seed: mixtures(250, seed)), true=range(2))),
    Workload("linear small, 100×50", "linear", from_linear(Linear(100, 50))),
    Workload("linear wide, 200×2,000", "linear", from_linear(Linear(200, 2_000))),
    Workload("linear tall, 20,000×200", "linear", from_linear(Linear(20_000, 200))),
    Workload("linear tall, y×30", "linear", from_linear(Linear(20_000, 200, unit=30.0))),
    Workload("linear correlated, 1,000×200", "linear", from_linear(Linear(1_000, 200, rho=0.95))),
    Workload("logistic, 200×200", "logistic", ClassDesign("sparse").draw),
    Workload("logistic wide, 200×5,000", "logistic", ClassDesign("wide", n_features=5_000).draw),
    Workload("logistic tall, 20,000×100", "logistic", ClassDesign("tall", n_samples=20_000, n_features=100).draw),
    Workload("4 classes, 400×100", "multi-class", softmax()),
    Workload("digits, 600×64", "multi-class", digits()),
    Workload("joint, 100×500, 5 outputs", "outputs", outputs()),
    Workload("sparse, 20,000×5,000", "sparse", binary_columns()),
    Workload("big, 500,000×50", "linear", from_linear(Linear(500_000, 50))),
    Workload("big wide, 500×50,000", "linear", from_linear(Linear(500, 50_000, n_true=20))),
]
