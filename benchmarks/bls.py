"""A Laplace prior scaled by the noise against ARD on noisy data: kept vectors and test error at the same widths.

    OPENBLAS_NUM_THREADS=1 python benchmarks/bls.py [--repeats 20]

sinc (100 rows) and Friedman #1 (240 rows), with the usual noise and three times as much. The width is "scale", or the
one that the relevance vector machine finds by evidence, for all alike. "ARD, held" and "BLS" assume a hundredth of the
variance of y for the noise (`noise_variance="fixed"`). Beside each BLS stands how it differs from others: vectors, and
error with the standard error of the paired difference. Then eight real sets, which need the data folder and are left
out where it is not there, with the default width.
"""

import argparse
from functools import partial

import numpy as np
from peers import quietly
from sets import SETS, table
from sklearn.datasets import make_friedman1
from sklearn.preprocessing import StandardScaler

from sparsebayes import BLSRegressor, RVMRegressor

CONTENDERS = {
    "RVM": partial(RVMRegressor, vectors="sparse"),
    "ARD, held": partial(BLSRegressor, rate=1e-9, noise_variance="fixed"),
    "BLS": partial(BLSRegressor, noise_variance="fixed"),
    "BLS, noise learned": partial(BLSRegressor, noise_variance="learn"),
}
PEERS = {"BLS": ("ARD, held", "RVM"), "BLS, noise learned": ("RVM",)}
REAL = ("energy", "kin8nm", "wine_quality_red", "mcycle", "abalone", "diabetes_lars", "boston", "power_plant")


def sinc(seed, noise):
    rng = np.random.default_rng(seed)
    X, X_test = rng.uniform(-10, 10, (100, 1)), np.linspace(-10, 10, 1000)[:, None]
    y = np.sinc(X[:, 0] / np.pi) + 0.1 * noise * rng.standard_normal(100)
    return X, y, X_test, np.sinc(X_test[:, 0] / np.pi)


def friedman(seed, noise):
    X, f = make_friedman1(1240, random_state=seed)
    y = f[:240] + noise * np.random.default_rng(seed).standard_normal(240)
    return X[:240], y, X[240:], f[240:]


def measured(name):
    """Draws of 300 rows of a real set (two thirds of a small one) and 1,000 others, inputs and target standardised."""

    def draw(seed):
        X, y = table(name)
        order, n = np.random.default_rng(seed).permutation(len(y)), min(300, 2 * len(y) // 3)
        X = StandardScaler().fit(X[order[:n]]).transform(X[order])
        y = (y[order] - y[order[:n]].mean()) / y[order[:n]].std()
        return X[:n], y[:n], X[n : n + 1000], y[n : n + 1000]

    return draw


def compare(label, draw, gamma, repeats):
    """Print vectors and error of all contenders."""
    found = {name: [] for name in CONTENDERS}
    for seed in range(repeats):
        X, y, X_test, y_test = draw(seed)
        width = quietly(RVMRegressor(gamma=gamma, vectors="sparse").fit, X, y).gamma_
        for name, make in CONTENDERS.items():
            model = make(gamma=width)
            quietly(model.fit, X, y)
            error = np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))
            found[name].append((len(model.dual_coef_), error))
    for name, rows in found.items():
        (kept, error), (_, spread) = np.mean(rows, axis=0), standard_error(rows)
        beside = ""
        for peer in PEERS.get(name, ()):
            other = np.subtract(rows, found[peer])
            (fewer, worse), (_, doubt) = np.mean(other, axis=0), standard_error(other)
            beside += f"  {peer} {fewer:+6.1f}, {worse:+.4f} ± {doubt:.4f}"
        print(
            f"{label:19s} γ {gamma:9s} {name:19s} vectors {kept:5.1f}  error {error:.4f} ± {spread:.4f}{beside}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    for draw in (sinc, friedman):
        for noise in (1, 3):
            for gamma in ("scale", "evidence"):
                compare(f"{draw.__name__}, noise × {noise}", partial(draw, noise=noise), gamma, repeats)
    for name in REAL if SETS.exists() else ():
        compare(name, measured(name), "scale", repeats)


def standard_error(rows):
    return np.std(rows, axis=0, ddof=1) / np.sqrt(len(rows))


if __name__ == "__main__":
    main()
