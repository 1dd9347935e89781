"""Probabilistic classification vector machine beside the relevance vector machine on the same splits.

    python benchmarks/pcvm.py [--repeats 10] [--gamma evidence] [--only banana] [--smooth]

Test error in per cent, log loss, vectors and seconds a fit, with the kernel width of each chosen in the same way
("evidence", "scale" or a number). The sets with official splits need the data folder and are left out where it is not
there; the two mixtures like Ripley's and the circle in noise are made here.
"""

import argparse
import time
from functools import partial
from pathlib import Path

import numpy as np
from peers import quietly
from sets import mixtures, official, percent_wrong, ripley
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler

from sparsebayes import PCVMClassifier, RVMClassifier


def circle(seed, n=300, n_test=2000):
    """A disc in the plane, with two useless inputs and a tenth of the labels wrong."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n + n_test, 4))
    y = ((X[:, :2] ** 2).sum(axis=1) > 1.4) ^ (rng.uniform(size=n + n_test) < 0.1)
    return X[:n], y[:n], X[n:], y[n:]


# Name, draw, how often at most.
PROBLEMS = [
    ("mixtures", partial(mixtures, 250), 100),
    ("circle", circle, 100),
    ("ripley", ripley, 100),
    ("pima", official("pima"), 1),
    ("banana", official("banana"), 10),
    ("breast_cancer", official("breast_cancer"), 10),
    ("titanic", official("titanic"), 10),
    ("waveform", official("waveform"), 10),
    ("image", official("image"), 10),
]


def score(model, X, y, X_test, y_test):
    """Error, log loss, vectors and seconds."""
    start = time.perf_counter()
    quietly(model.fit, X, y)
    seconds = time.perf_counter() - start
    loss = log_loss(y_test, model.predict_proba(X_test), labels=model.classes_)
    return percent_wrong(model.predict(X_test), y_test), loss, len(model.relevance_indices_), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--gamma", default="evidence")
    parser.add_argument("--only")
    parser.add_argument("--smooth", action="store_true", help="the smooth truncation too")
    given = parser.parse_args()
    gamma = given.gamma if given.gamma in ("evidence", "scale") else float(given.gamma)
    contenders = {"RVM": partial(RVMClassifier, vectors="sparse"), "PCVM": PCVMClassifier}
    if given.smooth:
        contenders["PCVM, smooth"] = partial(PCVMClassifier, truncation="smooth")
    means = {name: [] for name in contenders}
    print(f"gamma={gamma!r}            error % ± its standard error, log loss, vectors, seconds a fit")
    for problem, draw, most in PROBLEMS:
        if given.only not in (None, problem):
            continue
        scores = {name: [] for name in contenders}
        for seed in range(min(given.repeats, most)):
            try:
                X, y, X_test, y_test = draw(seed)
            except FileNotFoundError as missing:
                print(f"{problem}: no {Path(missing.filename).name} in the data folder, left out")
                break
            scaler = StandardScaler().fit(X)
            for name, make in contenders.items():
                model = make(gamma=gamma)
                scores[name].append(score(model, scaler.transform(X), y, scaler.transform(X_test), y_test))
        for name, rows in scores.items():
            if rows:
                mean, spread = np.mean(rows, axis=0), np.std(rows, axis=0) / np.sqrt(len(rows))
                means[name].append(mean)
                print(
                    f"{problem:14s} {name:13s} {mean[0]:6.2f} ± {spread[0]:<5.2f} {mean[1]:7.3f} {mean[2]:7.1f} "
                    f"{mean[3]:8.2f} s  ({len(rows)} draws)",
                    flush=True,
                )
    for name, rows in means.items():
        if rows:
            error, loss, vectors, seconds = np.mean(rows, axis=0)
            print(f"{'mean':14s} {name:13s} {error:6.2f}         {loss:7.3f} {vectors:7.1f} {seconds:8.2f} s")


if __name__ == "__main__":
    main()
