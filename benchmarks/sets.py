"""Data of the published tables as draws: a seed → (X, y, X_test, y_test).

Sets that are not generated are read from the folder SPARSEBAYES_DATA, and their splits from `splits` beside it. A draw
raises FileNotFoundError where the set is not there.
"""

import csv
import os
from errno import ENOENT
from pathlib import Path

import numpy as np
from sklearn.datasets import make_friedman1

SETS = Path(os.environ.get("SPARSEBAYES_DATA", Path(__file__).parents[2] / "shared" / "data" / "sets"))


def table(name):
    """Inputs and target of a set; .csv or .csv.gz."""
    path = next((SETS / file for file in (f"{name}.csv", f"{name}.csv.gz") if (SETS / file).exists()), None)
    if path is None:
        raise FileNotFoundError(ENOENT, "no such data set", f"{name}.csv")
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    return rows[:, :-1], rows[:, -1]


def column_names(name):
    """Names of the inputs of a set."""
    return (SETS / f"{name}.csv").read_text().splitlines()[0].split(",")[:-1]


def official(name):
    """The numbered splits of a set."""

    def draw(seed):
        X, y = table(name)
        with (SETS.parent / "splits" / f"{name}.csv").open() as file:
            splits = [np.array(row["train_rows"].split(), dtype=int) for row in csv.DictReader(file)]
        train = np.zeros(len(y), dtype=bool)
        train[splits[seed % len(splits)]] = True
        return X[train], y[train], X[~train], y[~train]

    return draw


def random_split(name, n_train):
    """So many random rows to train (a share of all if below one), the others to test."""

    def draw(seed):
        X, y = table(name)
        order = np.random.default_rng(seed).permutation(len(y))
        n = n_train if n_train >= 1 else int(n_train * len(y))
        return X[order[:n]], y[order[:n]], X[order[n:]], y[order[n:]]

    return draw


def ripley(seed, n_train=100):
    """100 of the 250 training rows, all 1,000 test rows."""
    X, y = table("ripley_synth")
    train = np.random.default_rng(seed).choice(250, n_train, replace=False)
    return X[train], y[train], X[250:], y[250:]


def usps(seed):
    """The official 7,291 training and 2,007 test images; there is one split."""
    X, y = table("usps")
    return X[:7291], y[:7291], X[7291:], y[7291:]


def gaussian_noise(rng, n):
    """Standard deviation 0.1."""
    return 0.1 * rng.standard_normal(n)


def uniform_noise(rng, n):
    """Between -0.1 and 0.1."""
    return rng.uniform(-0.1, 0.1, n)


def sinc(noise, n=100):
    """n equally spaced points in [-10, 10], 1,000 noise-free ones to test."""

    def draw(seed):
        X, X_test = np.linspace(-10, 10, n)[:, None], np.linspace(-10, 10, 1000)[:, None]
        y = np.sinc(X[:, 0] / np.pi) + noise(np.random.default_rng(seed), n)
        return X, y, X_test, np.sinc(X_test[:, 0] / np.pi)

    return draw


def friedman(make=make_friedman1, share=None, n=240, **parameters):
    """n rows to train, 1,000 noise-free ones to test; noise sd 1, or a share of the signal's."""

    def draw(seed):
        X, f = make(n_samples=n + 1000, noise=0.0, random_state=seed, **parameters)
        sd = 1.0 if share is None else share * f.std()
        return X[:n], f[:n] + sd * np.random.default_rng(seed).standard_normal(n), X[n:], f[n:]

    return draw


def mixtures(n, seed, n_test=2000):
    """Two classes, each a mixture of two round Gaussians in the plane, as Ripley's synthetic set but a little wider."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n + n_test)
    centres = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
    X = centres[y, rng.integers(0, 2, n + n_test)] + 0.2 * rng.standard_normal((n + n_test, 2))
    return X[:n], y[:n], X[n:], y[n:]


def with_useless(draw, n_useless=20):
    """Another set's draws with useless features of the same spread behind the true ones."""

    def drawn(seed):
        X, y, X_test, y_test = draw(seed)
        rng = np.random.default_rng([seed, n_useless])
        more, more_test = (X.std() * rng.standard_normal((n, n_useless)) for n in (len(X), len(X_test)))
        return np.column_stack([X, more]), y, np.column_stack([X_test, more_test]), y_test

    return drawn


def percent_wrong(predicted, y):
    """Error of a classifier."""
    return 100 * float((predicted != y).mean())
