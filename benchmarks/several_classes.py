"""More than two classes: all averaged together, one against the rest, and a single softmax.

    OPENBLAS_NUM_THREADS=1 python benchmarks/several_classes.py [--seeds 3] [--only iris,wine]

Error in per cent, log loss, processor seconds of the fit; for made data also the true features found (a share) and the
number of false ones. Measured data are split at random; `energy` and `boston` are regressions whose target is cut at
quantiles. Sets that are in no package are read from the folder of data sets (SPARSEBAYES_DATA) and left out where it
is not there.
"""

import argparse
import time
from functools import partial

import numpy as np
from peers import quietly
from sets import percent_wrong, table
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsebayes import SparseLogisticRegression

TEST_ROWS = 2000


def split(load, share, seed):
    """Measured data: a share of the rows to train, stratified."""
    X, y = load()
    X, X_test, y, y_test = train_test_split(X, y, train_size=share, random_state=seed, stratify=y)
    return X, y, X_test, y_test, None


def cut(name, n_classes):
    """A regression with its target cut at quantiles."""
    X, y = table(name)
    return X, np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))


def qualities():
    """Red wine with its rare marks merged."""
    X, y = table("wine_quality_red")
    return X, np.clip(y, 4, 7).astype(int)


def made(n, d, n_classes, n_true, seed, *, size=2.0, correlation=0.0):
    """A softmax with few true features; neighbouring columns may be correlated."""
    rng = np.random.default_rng([seed, n, d, n_classes])
    X = rng.standard_normal((n + TEST_ROWS, d))
    for j in range(1, d):
        X[:, j] = correlation * X[:, j - 1] + np.sqrt(1 - correlation**2) * X[:, j]
    true = rng.choice(d, n_true, replace=False)
    eta = X[:, true] @ (size * rng.standard_normal((n_true, n_classes)))
    y = (eta + rng.gumbel(size=eta.shape)).argmax(axis=1)
    return X[:n], y[:n], X[n:], y[n:], true


PROBLEMS = {
    "iris": partial(split, partial(load_iris, return_X_y=True), 0.6),
    "wine": partial(split, partial(load_wine, return_X_y=True), 0.6),
    "digits": partial(split, partial(load_digits, return_X_y=True), 0.6),
    "wine quality": partial(split, qualities, 0.5),
    "energy, 5": partial(split, partial(cut, "energy", 5), 0.5),
    "boston, 3": partial(split, partial(cut, "boston", 3), 0.5),
    "200x50, 3": partial(made, 200, 50, 3, 5),
    "400x100, 4": partial(made, 400, 100, 4, 6, correlation=0.7),
    "1000x20, 5": partial(made, 1000, 20, 5, 6),
    "1000x40, 10": partial(made, 1000, 40, 10, 8),
    "2000x60, 3, weak": partial(made, 2000, 60, 3, 8, size=0.5),
    "100x300, 3": partial(made, 100, 300, 3, 4, size=3.0),
}


def models():
    penalties = LogisticRegressionCV(Cs=8, cv=4, max_iter=500, scoring="neg_log_loss")
    return {
        "default": SparseLogisticRegression(),
        "one-vs-rest": SparseLogisticRegression(multi_class="one-vs-rest"),
        "softmax": SparseLogisticRegression(multi_class="softmax"),
        "L2, CV": make_pipeline(StandardScaler(), penalties),
    }


def judged(model, X, y, X_test, y_test, true):
    """Error, log loss, share of true features, false features, seconds."""
    began = time.process_time()
    quietly(model.fit, X, y)
    seconds = time.process_time() - began
    found = false = np.nan
    if true is not None and hasattr(model, "get_support"):
        claimed = model.get_support(indices=True)
        found, false = np.isin(true, claimed).mean(), len(np.setdiff1d(claimed, true))
    loss = log_loss(y_test, model.predict_proba(X_test), labels=model.classes_)
    return percent_wrong(model.predict(X_test), y_test), loss, found, false, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", help=f"some of {','.join(PROBLEMS)}")
    args = parser.parse_args()
    for name, draw in PROBLEMS.items():
        if args.only and name not in args.only.split(","):
            continue
        rows = {kind: [] for kind in models()}
        try:
            for seed in range(args.seeds):
                data = draw(seed=seed)
                for kind, model in models().items():
                    rows[kind].append(judged(model, *data))
        except FileNotFoundError:
            print(f"{name}: not there")
            continue
        for kind, each in rows.items():
            error, loss, found, false, seconds = np.mean(each, axis=0)
            print(
                f"{name:17s} {kind:12s} error {error:6.2f} %  log loss {loss:.3f}  "
                f"true {found:.2f}  false {false:.1f}  {seconds:6.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
