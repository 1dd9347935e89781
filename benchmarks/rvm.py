"""Relevance vector machines: our fits and the peers' on the same data in one run, time and test error side by side.

    OPENBLAS_NUM_THREADS=1 python benchmarks/rvm.py [--largest 1000] [--repeats 3]

sinc and Friedman #1 (240, 1,000, 4,000 rows) with the kernel width that the peers call "scale" (sinc: 0.5), and two
overlapping mixtures like Ripley's for classification. Peers: fastrvm (C++, sequential), sklearn-rvm (EM, up to 250
rows) and scikit-learn's Gaussian processes (up to 1,000 rows), each left out where it is not installed. Times are
medians of interleaved repeats, in units of ours. They are the processor's (`time.process_time`), which other work on
the machine disturbs least: with one BLAS thread all contenders run on one core. A fit that takes less than a tenth of a
second is repeated until it has taken so long, and the median is taken.
"""

import argparse
import time
from functools import partial

import numpy as np
from peers import quietly
from sklearn.datasets import make_friedman1
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from sparsebayes import RVMClassifier, RVMRegressor

TEXTBOOK = {"standardize": False, "vectors": "sparse"}
"""As the peers do: the kernel sees the inputs as they are, and few vectors are kept."""
try:
    from fastrvm import RVC, RVR
except ImportError:
    RVC = RVR = None
    print("fastrvm is not installed: its rows are left out")
try:
    from sklearn_rvm import EMRVR
except ImportError:
    EMRVR = None
    print("sklearn-rvm is not installed: its rows are left out")


def sinc(n, seed, n_test=1000):
    """sin(x)/x on [-10, 10], noise sd 0.1, noise-free test points."""
    rng = np.random.default_rng(seed)
    X, X_test = rng.uniform(-10, 10, (n, 1)), np.linspace(-10, 10, n_test)[:, None]
    return X, np.sinc(X[:, 0] / np.pi) + 0.1 * rng.standard_normal(n), X_test, np.sinc(X_test[:, 0] / np.pi)


def friedman(n, seed, n_test=1000):
    """Friedman #1, noise sd 1, noise-free test points."""
    X, f = make_friedman1(n + n_test, random_state=seed)
    noise = np.random.default_rng(seed).standard_normal(n)
    return X[:n], f[:n] + noise, X[n:], f[n:]


def mixtures(n, seed, n_test=2000):
    """Two classes, each a mixture of two round Gaussians in the plane."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n + n_test)
    centres = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
    X = centres[y, rng.integers(0, 2, n + n_test)] + 0.2 * rng.standard_normal((n + n_test, 2))
    return X[:n], y[:n], X[n:], y[n:]


def timed(make, X, y, at_least=0.1):
    """A fitted model, and the median of the processor's seconds that it took."""
    times = []
    while sum(times) < at_least:
        model, start = make(), time.process_time()
        quietly(model.fit, X, y)
        times.append(time.process_time() - start)
    return model, float(np.median(times))


def rmse(model, X, y):
    return float(np.sqrt(np.mean((model.predict(X) - y) ** 2)))


def error(model, X, y):
    return float((model.predict(X) != y).mean())


def n_vectors(model):
    for name in ("relevance_vectors_", "relevance_"):
        if getattr(model, name, None) is not None:
            return len(getattr(model, name))
    return len(model.X_train_) if hasattr(model, "X_train_") else len(model.base_estimator_.X_train_)


def scale(X):
    return 1 / (X.shape[1] * X.var())


def regressors(X, gamma):
    """The contenders for so many rows, ours first."""
    makers = {"sparsebayes": partial(RVMRegressor, gamma=gamma, **TEXTBOOK)}
    if RVR is not None:
        makers["fastrvm"] = partial(RVR, gamma=gamma, fit_intercept=True)
    if EMRVR is not None and len(X) <= 250:
        makers["sklearn-rvm"] = partial(EMRVR, kernel="rbf", gamma=gamma)
    if len(X) <= 1000:
        kernel = ConstantKernel() * RBF(1 / np.sqrt(2 * gamma)) + WhiteKernel()
        makers["GaussianProcess"] = partial(GaussianProcessRegressor, kernel, normalize_y=True)
    return makers


def classifiers(X, gamma):
    makers = {"sparsebayes": partial(RVMClassifier, gamma=gamma, **TEXTBOOK)}
    if RVC is not None:
        makers["fastrvm"] = partial(RVC, gamma=gamma, fit_intercept=True)
    if len(X) <= 250:
        kernel = ConstantKernel() * RBF(1 / np.sqrt(2 * gamma))
        makers["GaussianProcess"] = partial(GaussianProcessClassifier, kernel)
    return makers


CASES = [
    ("sinc", sinc, 100, regressors, rmse),
    ("Friedman #1", friedman, 240, regressors, rmse),
    ("Friedman #1", friedman, 1000, regressors, rmse),
    ("Friedman #1", friedman, 4000, regressors, rmse),
    ("mixtures", mixtures, 250, classifiers, error),
    ("mixtures", mixtures, 1000, classifiers, error),
    ("mixtures", mixtures, 2000, classifiers, error),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--largest", type=int, default=1000, help="leave out cases with more rows (4,000 take minutes)")
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    for name, draw, n, contenders, score in CASES:
        if n > given.largest:
            continue
        results = {}
        for seed in range(given.repeats):
            X, y, X_test, y_test = draw(n, seed)
            makers = contenders(X, 0.5 if draw is sinc else scale(X))
            for who, make in makers.items():
                model, seconds = timed(make, X, y)
                results.setdefault(who, []).append((seconds, score(model, X_test, y_test), n_vectors(model)))
        ours = np.median([seconds for seconds, *_ in results["sparsebayes"]])
        for who, rows in results.items():
            seconds, loss, kept = np.median(rows, axis=0)
            print(
                f"{name:12s} N={n:<6,d} {who:16s} error {loss:.4f}  vectors {kept:6.0f}  {seconds:9.4f} s  "
                f"{seconds / ours:8.1f} × ours",
                flush=True,
            )


if __name__ == "__main__":
    main()
