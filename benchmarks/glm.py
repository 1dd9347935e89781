"""Counts, and targets with gross outliers: are the true features found, at what error, and how long does it take?

    OPENBLAS_NUM_THREADS=1 python benchmarks/glm.py [--seeds 20] [--only counts]

Counts: weights of size 0.2 to 0.5 with random sign in a log-linear model with mean rate about 2; the error is 1 - D² on
2,000 fresh rows, the share of the Poisson deviance that is not explained. Peer: scikit-learn's `PoissonRegressor`, its
penalty by 5-fold cross-validation. Outliers: weights of size 0.5 to 1.5, noise of standard deviation ½, and a share of
the training rows moved by 5 to 20; the error is the root mean squared distance of the predictions from the true
function on 2,000 fresh rows. Peers: `HuberRegressor`, `LassoCV`, and one `ARDRegressor` model with Gaussian noise.
Each line is a mean over data sets.
"""

import argparse
import time

import numpy as np
from peers import quietly
from sklearn.linear_model import HuberRegressor, LassoCV, PoissonRegressor
from sklearn.metrics import d2_tweedie_score
from sklearn.model_selection import GridSearchCV

from sparsebayes import ARDRegressor, SparsePoissonRegressor

DESIGNS = [(200, 50, 5), (1_000, 200, 10), (200, 2_000, 5)]
SHARES = (0.0, 0.1, 0.2)
FRESH = 2_000
COUNTS = {
    "sparsebayes": SparsePoissonRegressor,
    "sparsebayes, one model": lambda: SparsePoissonRegressor(average=False),
    "sparsebayes, min_gain=0": lambda: SparsePoissonRegressor(min_gain=0, tol=1e-4),
    "PoissonRegressor, CV": lambda: GridSearchCV(PoissonRegressor(max_iter=1000), {"alpha": 10.0 ** np.arange(-4, 2)}),
}
OUTLIERS = {
    "sparsebayes, Student": lambda: ARDRegressor(noise="student"),
    "sparsebayes, Gaussian": lambda: ARDRegressor(average=False),
    "HuberRegressor": lambda: HuberRegressor(max_iter=1000),
    "LassoCV": LassoCV,
}


def features(rng, n, d, n_true, smallest, largest):
    """Train and fresh rows, and the true function of both."""
    X = rng.standard_normal((n + FRESH, d))
    true = np.sort(rng.choice(d, n_true, replace=False))
    return X, X[:, true] @ (rng.choice([-1, 1], n_true) * rng.uniform(smallest, largest, n_true)), true


def kept(model):
    if hasattr(model, "get_support"):
        return model.get_support(indices=True)
    return np.flatnonzero(getattr(model, "best_estimator_", model).coef_)


def timed(make, X, y):
    start = time.perf_counter()
    model = quietly(lambda X, y: make().fit(X, y), X, y)
    return model, time.perf_counter() - start


def counts(design, seed):
    """For every contender: features kept, whether these are the true ones, unexplained deviance, seconds."""
    rng = np.random.default_rng([seed, *design])
    X, f, true = features(rng, *design, 0.2, 0.5)
    y, n = rng.poisson(np.exp(0.5 + f)), design[0]
    for name, make in COUNTS.items():
        model, seconds = timed(make, X[:n], y[:n])
        error = 1 - d2_tweedie_score(y[n:], model.predict(X[n:]), power=1)
        yield name, (len(kept(model)), np.array_equal(kept(model), true), error, seconds)


def outliers(design, share, seed):
    """The same with the distance from the true function."""
    rng = np.random.default_rng([seed, *design])
    X, f, true = features(rng, *design, 0.5, 1.5)
    y, n = f + 0.5 * rng.standard_normal(len(f)), design[0]
    bad = np.flatnonzero(rng.random(n) < share)
    y[bad] += rng.choice([-1, 1], len(bad)) * rng.uniform(5, 20, len(bad))
    for name, make in OUTLIERS.items():
        model, seconds = timed(make, X[:n], y[:n])
        error = np.sqrt(np.mean((model.predict(X[n:]) - f[n:]) ** 2))
        yield name, (len(kept(model)), np.array_equal(kept(model), true), error, seconds)


def tell(title, runs):
    """One line for every contender."""
    scores = {}
    for run in runs:
        for name, row in run:
            scores.setdefault(name, []).append(row)
    for name, rows in scores.items():
        n_kept, exact, error, seconds = np.mean(rows, axis=0)
        print(
            f"{title:28s} {name:24s} kept {n_kept:7.1f}  exact {round(exact * len(rows)):2d}/{len(rows)}  "
            f"error {error:.3f}  {seconds:6.3f} s",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", choices=["counts", "outliers"])
    given = parser.parse_args()
    for design in DESIGNS:
        size = f"{design[0]:,}×{design[1]:,}"
        if given.only in (None, "counts"):
            tell(f"{size} counts", [counts(design, seed) for seed in range(given.seeds)])
        if given.only in (None, "outliers"):
            for share in SHARES:
                runs = [outliers(design, share, seed) for seed in range(given.seeds)]
                tell(f"{size} {share:.0%} outliers", runs)


if __name__ == "__main__":
    main()
