"""How well relevance vector regression knows itself: coverage of 90 % intervals and log density of fresh rows.

    OPENBLAS_NUM_THREADS=1 python benchmarks/intervals.py [--repeats 20]

Each line is a mean over data sets, with 1,000 fresh rows: vectors kept, the share of fresh observations in the
interval, and the log density per row above that of predicting all by mean and variance of y. "Without" leaves out
`excess_variance_`, what the rows that were held out one by one vary beyond noise and posterior.
"""

import argparse
import copy
from dataclasses import replace

import numpy as np
from peers import quietly
from scipy.stats import norm
from sklearn.datasets import make_friedman1

from sparsebayes import RVMRegressor

FRESH = 1000


def sinc(seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-10, 10, (100 + FRESH, 1))
    return X, np.sinc(X[:, 0] / np.pi) + 0.1 * rng.standard_normal(len(X)), 100


def friedman(seed, n_features=10):
    X, f = make_friedman1(240 + FRESH, n_features=n_features, random_state=seed)
    return X, f + np.random.default_rng(seed).standard_normal(len(X)), 240


def friedman_and_useless(seed):
    return friedman(seed, n_features=50)


CASES = [
    (sinc, ("scale", "evidence", 10.0)),
    (friedman, ("scale", "evidence", 4.0)),
    (friedman_and_useless, ("scale", "evidence")),
]


def without_excess(model):
    """The same model as if it believed itself."""
    bare, (fit,) = copy.copy(model), model._fits
    bare._fits = [replace(fit, excess=0.0)]
    return bare


def judged(model, X, y, mean, std):
    """Share of y in the interval, and log density per row above that of one normal distribution for all."""
    low, high = model.predict_interval(X).T
    location, scale = model.predict(X, return_std=True)
    density = norm.logpdf(y, location, scale).mean()
    return ((low <= y) & (y <= high)).mean(), density - norm.logpdf(y, mean, std).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    for draw, widths in CASES:
        for gamma in widths:
            rows = []
            for seed in range(repeats):
                X, y, n = draw(seed)
                model = quietly(RVMRegressor(gamma=gamma, standardize=False, vectors="sparse").fit, X[:n], y[:n])
                fresh = X[n:], y[n:], y[:n].mean(), y[:n].std()
                rows.append((len(model.dual_coef_), *judged(model, *fresh), *judged(without_excess(model), *fresh)))
            kept, covered, gained, covered_without, gained_without = np.mean(rows, axis=0)
            print(
                f"{draw.__name__:21s} γ {gamma!s:9s} vectors {kept:6.1f}  coverage {covered:.2f} "
                f"(without {covered_without:.2f})  log density {gained:+.2f} (without {gained_without:+.2f})",
                flush=True,
            )


if __name__ == "__main__":
    main()
