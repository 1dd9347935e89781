"""Sparse relevance vector machines of this package and of fastrvm (C++) on the same kernel.

    pip install fastrvm
    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/machines.py [--only regression|classes] [--repeats 50]

Regression: 100 rows of six functions, three draws each. Classes: 1,000 rows of seven problems, two draws each. Both
packages get inputs of variance one, γ = 1 / (number of inputs) and an intercept; ours keeps its other defaults, but for
vectors="sparse". The two fits take turns. Of each the lower quintile of processor times is compared, because other
work on the machine can only add time. Errors are those of 2,000 test rows: root mean squared error over the target's
standard deviation, or per cent of wrong classes. Sets that are read from the folder of data sets (SPARSEBAYES_DATA)
are skipped where they are not there.
"""

import argparse
import time
import warnings

import numpy as np
from fastrvm import RVC, RVR
from sets import mixtures, percent_wrong, random_split, with_useless
from sklearn.datasets import load_diabetes, make_friedman1, make_friedman2, make_friedman3, make_moons

from sparsebayes import RVMClassifier, RVMRegressor

N_TEST = 2000
LONGEST = 10.0
"""Seconds after which fits are not repeated any more."""


def split(X, y, n):
    """The first n rows to train, the others to test."""
    return X[:n], y[:n], X[n:], y[n:]


def sinc(seed, n):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-10, 10, (n + N_TEST, 1))
    return split(X, np.sinc(X[:, 0] / np.pi) + 0.1 * rng.standard_normal(len(X)), n)


def waves(seed, n):
    """A smooth function of two inputs."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n + N_TEST, 2))
    return split(X, np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.2 * rng.standard_normal(len(X)), n)


def friedman(make, noise):
    return lambda seed, n: split(*make(n + N_TEST, noise=noise, random_state=seed), n)


def diabetes(seed, n):
    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    return split(X[order], y[order], n)


REGRESSIONS = {
    "sinc": sinc,
    "Friedman #1": friedman(make_friedman1, 1.0),
    "Friedman #2": friedman(make_friedman2, 100.0),
    "Friedman #3": friedman(make_friedman3, 0.1),
    "waves": waves,
    "diabetes": diabetes,
}
CLASSES = {
    "two mixtures": lambda seed, n: mixtures(n, seed, N_TEST),
    "and 20 useless": lambda seed, n: with_useless(lambda seed: mixtures(n, seed, N_TEST))(seed),
    "moons": lambda seed, n: split(*make_moons(n + N_TEST, noise=0.3, random_state=seed), n),
    "banana": lambda seed, n: random_split("banana", n)(seed),
    "twonorm": lambda seed, n: random_split("twonorm", n)(seed),
    "waveform": lambda seed, n: random_split("waveform", n)(seed),
    "image": lambda seed, n: random_split("image", n)(seed),
}


def seconds(fits, repeats):
    """The lower quintile of processor times of each fit, and the fitted models; the fits take turns."""
    times, models = [[] for _ in fits], []
    end = time.monotonic() + LONGEST
    for k in range(repeats):
        if k and time.monotonic() > end:
            break
        for fit, its in zip(fits, times, strict=True):
            start = time.process_time()
            model = fit()
            its.append(time.process_time() - start)
            if k == 0:
                models.append(model)
    return [float(np.quantile(its, 0.2)) for its in times], models


def compare(name, draws, n, ours, theirs, error, repeats):
    """A line for each draw; returns our time over fastrvm's."""
    ratios = []
    for seed, (X, y, X_test, y_test) in enumerate(draws):
        mean, std = X.mean(axis=0), X.std(axis=0)
        X, X_test = (X - mean) / std, (X_test - mean) / std
        gamma = 1 / X.shape[1]
        fits = [lambda: ours(gamma).fit(X, y), lambda: theirs(gamma).fit(X, y)]  # noqa: B023  called in this turn
        (our_time, their_time), models = seconds(fits, repeats)
        ratios.append(our_time / their_time)
        wrong = [error(model.predict(X_test), y_test) for model in models]
        kept = [len(model.relevance_vectors_) for model in models]
        print(
            f"{name:14} {seed}  {n}×{X.shape[1]:<3} {1e3 * our_time:8.2f} ms {1e3 * their_time:8.2f} ms "
            f"{ratios[-1]:6.2f} {wrong[0]:8.3f} {wrong[1]:8.3f} {kept[0]:5} {kept[1]:5}",
            flush=True,
        )
    return ratios


def regression(repeats):
    """Ours against RVR, 100 rows."""

    def ours(gamma):
        return RVMRegressor(gamma=gamma, vectors="sparse")

    def theirs(gamma):
        return RVR(gamma=gamma, fit_intercept=True)

    def error(predicted, y):
        return float(np.sqrt(np.mean((predicted - y) ** 2)) / y.std())

    for name, draw in REGRESSIONS.items():
        draws = []
        for seed in range(3):
            X, y, X_test, y_test = draw(seed, 100)
            draws.append((X, (y - y.mean()) / y.std(), X_test, (y_test - y.mean()) / y.std()))
        yield from compare(name, draws, 100, ours, theirs, error, repeats)


def classes(repeats):
    """Ours against RVC, 1,000 rows."""

    def ours(gamma):
        return RVMClassifier(gamma=gamma, vectors="sparse")

    def theirs(gamma):
        return RVC(gamma=gamma, fit_intercept=True)

    for name, draw in CLASSES.items():
        try:
            draws = [draw(seed, 1000) for seed in range(2)]
        except FileNotFoundError as error:
            print(f"{name}: {error}")
            continue
        yield from compare(name, draws, 1000, ours, theirs, percent_wrong, max(repeats // 10, 3))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["regression", "classes"])
    parser.add_argument("--repeats", type=int, default=50)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for run in (regression, classes):
        if arguments.only in (None, run.__name__):
            print(f"{run.__doc__}\n{'':30}ours      fastrvm   ratio    errors         vectors")
            ratios = list(run(arguments.repeats))
            print(f"our time over fastrvm's: median {np.median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}\n")


if __name__ == "__main__":
    main()
