"""The relevance vector machine's published tables (Tipping 2001), and ours beside them, width chosen by evidence.

    python benchmarks/paper_tables.py [--repeats 100] [--only banana]

The paper chose one kernel width per problem by 5-fold cross-validation on training data; ours is `gamma="evidence"`,
without cross-validation. The paper does not say how inputs were scaled; ours are standardised by the estimators. Sets
with official splits need the data folder; each is left out where it is not there. Three models: the default, the sparse
one, and for regressions the sparse one with all weights re-estimated at once, as in the paper.
"""

import argparse
import csv
import time
from pathlib import Path

import numpy as np
from peers import quietly
from sklearn.datasets import make_friedman1, make_friedman2, make_friedman3

from sparsebayes import RVMClassifier, RVMRegressor

DATA = Path(__file__).parents[2] / "shared" / "data"


def table(name):
    rows = np.loadtxt(DATA / "sets" / f"{name}.csv", delimiter=",", skiprows=1)
    return rows[:, :-1], rows[:, -1]


def official(name):
    """Draws of the numbered splits."""

    def draw(seed):
        X, y = table(name)
        with (DATA / "splits" / f"{name}.csv").open() as file:
            splits = [np.array(row["train_rows"].split(), dtype=int) for row in csv.DictReader(file)]
        train = np.zeros(len(y), dtype=bool)
        train[splits[seed % len(splits)]] = True
        return X[train], y[train], X[~train], y[~train]

    return draw


def ripley(seed):
    """100 of the 250 training rows, all 1,000 test rows."""
    X, y = table("ripley_synth")
    train = np.random.default_rng(seed).choice(250, 100, replace=False)
    return X[train], y[train], X[250:], y[250:]


def boston(seed):
    """481 rows to train, 25 to test."""
    X, y = table("boston")
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order[:481]], y[order[:481]], X[order[481:]], y[order[481:]]


def sinc(noise):
    """100 equally spaced points, 1,000 noise-free ones to test."""

    def draw(seed):
        rng = np.random.default_rng(seed)
        X, X_test = np.linspace(-10, 10, 100)[:, None], np.linspace(-10, 10, 1000)[:, None]
        return X, np.sinc(X[:, 0] / np.pi) + noise(rng), X_test, np.sinc(X_test[:, 0] / np.pi)

    return draw


def friedman(make, share=None):
    """240 rows to train, 1,000 noise-free ones to test; noise sd 1, or a share of the signal's."""

    def draw(seed):
        X, f = make(n_samples=1240, noise=0.0, random_state=seed)
        sd = 1.0 if share is None else share * f.std()
        return X[:240], f[:240] + sd * np.random.default_rng(seed).standard_normal(240), X[240:], f[240:]

    return draw


def mse(predicted, y):
    return float(np.mean((predicted - y) ** 2))


def rmse(predicted, y):
    return float(np.sqrt(mse(predicted, y)))


def percent_wrong(predicted, y):
    return 100 * float((predicted != y).mean())


# Name, draw, model, error, how often at most, published error and vectors.
TABLE = [
    ("sinc, Gaussian", sinc(lambda rng: 0.1 * rng.standard_normal(100)), RVMRegressor, rmse, 100, 0.0326, 6.7),
    ("sinc, uniform", sinc(lambda rng: rng.uniform(-0.1, 0.1, 100)), RVMRegressor, rmse, 100, 0.0187, 7.0),
    ("friedman1", friedman(make_friedman1), RVMRegressor, mse, 100, 2.80, 59.4),
    ("friedman2", friedman(make_friedman2, 1 / 3), RVMRegressor, mse, 100, 3505, 6.9),
    ("friedman3", friedman(make_friedman3, 1 / 3), RVMRegressor, mse, 100, 0.0164, 11.5),
    ("boston", boston, RVMRegressor, mse, 100, 7.46, 39.0),
    ("ripley", ripley, RVMClassifier, percent_wrong, 100, 9.3, 4),
    ("pima", official("pima"), RVMClassifier, percent_wrong, 1, 19.6, 4),
    ("banana", official("banana"), RVMClassifier, percent_wrong, 10, 10.8, 11.4),
    ("breast_cancer", official("breast_cancer"), RVMClassifier, percent_wrong, 10, 29.9, 6.3),
    ("titanic", official("titanic"), RVMClassifier, percent_wrong, 10, 23.0, 65.3),
    ("waveform", official("waveform"), RVMClassifier, percent_wrong, 10, 10.9, 14.6),
    ("image", official("image"), RVMClassifier, percent_wrong, 10, 3.9, 34.6),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--only")
    given = parser.parse_args()
    print("problem          published error, vectors       ours: error ± its standard error, vectors, seconds a fit")
    for name, draw, model_class, error, most, *published in TABLE:
        if given.only not in (None, name):
            continue
        ways = [{}, {"vectors": "sparse"}]
        ways += [{"vectors": "sparse", "solver": "fixed-point"}] if model_class is RVMRegressor else []
        for way in ways:
            model, scores = model_class(**way), []
            for seed in range(min(given.repeats, most)):
                try:
                    X, y, X_test, y_test = draw(seed)
                except FileNotFoundError as missing:
                    print(f"{name}: no {Path(missing.filename).name} in the data folder, left out")
                    break
                start = time.perf_counter()
                quietly(model.fit, X, y)
                seconds = time.perf_counter() - start
                predicted = model.predict(X_test)
                scores.append((error(predicted, y_test), len(model.relevance_indices_), seconds))
            if scores:
                way_name = ", ".join(way.values()) or "default"
                report(f"{name:16s} {published[0]:10.4g} {published[1]:6.1f}  {way_name:19s}", np.array(scores))


def report(what, scores):
    """A line of means, with the standard error of the first."""
    mean, spread = scores.mean(axis=0), scores.std(axis=0) / np.sqrt(len(scores))
    print(
        f"{what} {mean[0]:10.4g} ± {spread[0]:<9.2g} {mean[1]:6.1f} {mean[2]:8.2f} s  ({len(scores)} draws)", flush=True
    )


if __name__ == "__main__":
    main()
