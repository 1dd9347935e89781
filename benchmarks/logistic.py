"""Two-class problems: do they find the true features, at what error, how well calibrated, and how long does it take?

    python benchmarks/logistic.py [--seeds 20] [--only 200x5000]

Simulated: weights of size 0.5 to 1.5 with random sign in a logistic model; and 200×20,000 with twenty features that
each shift by ±0.5 standard deviations between the classes. Measured: colon and leukemia, where the data folder is.
Peers: what a user would pick (scikit-learn's logistic regression, L1 penalty by 5-fold cross-validation of the log
loss), and the textbook's SLR-VAR, which inverts a D×D matrix in each iteration. Last, the L1 problem itself against
liblinear at the same penalty: the same optimum, and the ratio of the times.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from peers import quietly
from problems import support_f1
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.preprocessing import StandardScaler
from textbook import SLRVar

from sparsebayes import SparseLogisticRegression

DESIGNS = [(1_000, 100, 10), (20_000, 100, 10), (100_000, 100, 10), (200, 5_000, 10), (200, 20_000, 20)]
DATA = Path(__file__).parents[2] / "shared" / "data" / "sets"
CONTENDERS = {
    "sparsebayes, average=False": lambda: SparseLogisticRegression(average=False),
    "sparsebayes, min_gain=0": lambda: SparseLogisticRegression(min_gain=0, tol=1e-4),
    "same, max_scale=0.5": lambda: SparseLogisticRegression(min_gain=0, max_scale=0.5, tol=1e-4),
    "textbook SLR-VAR": SLRVar,
    "L1, cross-validated": lambda: LogisticRegressionCV(
        l1_ratios=(1,), solver="liblinear", cv=5, scoring="neg_log_loss", use_legacy_attributes=False
    ),
}
LARGEST_INVERSE = 1_000
"""Columns beyond which the textbook's D×D inverse is left out."""


def draw(seed, n, d, n_true, n_test=2000):
    """Train and test rows and classes, and the true features."""
    rng = np.random.default_rng([seed, n, d])
    true = np.sort(rng.choice(d, n_true, replace=False))
    X = rng.standard_normal((n + n_test, d))
    if d >= 20_000:
        y = rng.integers(0, 2, n + n_test)
        X[:, true] += 0.5 * (2 * y[:, None] - 1) * rng.choice([-1, 1], n_true)
    else:
        weights = rng.choice([-1, 1], n_true) * rng.uniform(0.5, 1.5, n_true)
        y = (rng.random(n + n_test) < 1 / (1 + np.exp(-X[:, true] @ weights))).astype(int)
    return X[:n], y[:n], X[n:], y[n:], true


def calibration_error(y, p, n_bins=10):
    """Mean distance between the predicted and the observed share of class 1, over bins of equal size."""
    bins = np.array_split(np.argsort(p), n_bins)
    return float(np.average([abs(y[b].mean() - p[b].mean()) for b in bins], weights=[len(b) for b in bins]))


def judged(make, X, y, X_test):
    """Kept features, probabilities of class 1 on the test rows, and seconds of one fit."""
    start = time.perf_counter()
    model = quietly(lambda X, y: make().fit(X, y), X, y)
    seconds = time.perf_counter() - start
    return np.flatnonzero(model.coef_[0]), model.predict_proba(X_test)[:, 1], seconds


def simulated(design, seeds, contenders):
    """One line per contender."""
    scores = {name: [] for name in contenders if name != "textbook SLR-VAR" or design[1] <= LARGEST_INVERSE}
    for seed in range(seeds):
        X, y, X_test, y_test, true = draw(seed, *design)
        for name in scores:
            kept, p, seconds = judged(CONTENDERS[name], X, y, X_test)
            error = ((p > 0.5) != y_test).mean()
            hits = np.isin(true, kept).sum()
            f1, loss, calibration = support_f1(kept, true), log_loss(y_test, p), calibration_error(y_test, p)
            scores[name].append((len(kept), hits, f1, f1 == 1, error, loss, calibration, seconds))
    for name, rows in scores.items():
        kept, hits, f1, exact, error, loss, calibration, seconds = np.mean(rows, axis=0)
        print(
            f"{design[0]:7,d}×{design[1]:<6,d} {name:24s} kept {kept:6.1f}  true {hits:4.1f}  F1 {f1:.3f}  exact "
            f"{round(exact * seeds):2d}/{seeds}  error {error:.4f}  log loss {loss:.4f}  "
            f"calibration {calibration:.4f}  {seconds:7.3f} s",
            flush=True,
        )


def measured(name, repeats):
    """Repeated stratified 10-fold cross-validation on a microarray set; columns standardised in each fold."""
    path = DATA / f"{name}.csv.gz"
    if not path.exists():
        print(f"{name}: no {path.name} in the data folder, left out")
        return
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    X, y = table[:, :-1], table[:, -1].astype(int)
    if (X > 0).all():
        X = np.log(X)  # raw intensities
    scores = {name: [] for name in CONTENDERS if name != "textbook SLR-VAR"}
    for train, test in RepeatedStratifiedKFold(n_splits=10, n_repeats=repeats, random_state=0).split(X, y):
        scaler = StandardScaler().fit(X[train])
        for contender in scores:
            kept, p, seconds = judged(
                CONTENDERS[contender], scaler.transform(X[train]), y[train], scaler.transform(X[test])
            )
            loss = log_loss(y[test], p, labels=[0, 1])
            scores[contender].append((len(kept), ((p > 0.5) != y[test]).mean(), loss, seconds))
    for contender, rows in scores.items():
        kept, error, loss, seconds = np.mean(rows, axis=0)
        print(
            f"{name:14s} {contender:24s} kept {kept:6.1f}  error {error:.4f}  log loss {loss:.4f}  {seconds:7.3f} s",
            flush=True,
        )


def against_liblinear(repeats=5):
    """The L1 problem at a given penalty: by how much our objective is lower, and the ratio of the times."""
    for n, d, n_true in DESIGNS[:2] + DESIGNS[3:4]:
        X, y, *_ = draw(0, n, d, n_true)
        penalty = 0.05 * np.sqrt(n) * np.sqrt(np.log(d))
        ours = SparseLogisticRegression(prior="laplace", inference="coordinate", penalty=penalty)
        # liblinear penalises the intercept too; a large intercept_scaling makes that negligible.
        theirs = LogisticRegression(
            l1_ratio=1, C=1 / penalty, solver="liblinear", tol=1e-6, intercept_scaling=100, max_iter=1000
        )
        times = {"ours": [], "theirs": []}
        for _ in range(repeats):
            for name, model in (("ours", ours), ("theirs", theirs)):
                start = time.perf_counter()
                quietly(model.fit, X, y)
                times[name].append(time.perf_counter() - start)
        lower = 1 - objective(ours, X, y, penalty) / objective(theirs, X, y, penalty)
        ratio = np.median(times["ours"]) / np.median(times["theirs"])
        print(
            f"{n:7,d}×{d:<6,d} L1 problem: objective lower by {lower:.1e} of it, {ratio:.2f} × liblinear's time",
            flush=True,
        )


def objective(model, X, y, penalty):
    """Negative log likelihood and L1 penalty of a fitted model."""
    eta = X @ model.coef_[0] + model.intercept_
    return np.logaddexp(0, (1 - 2 * y) * eta).sum() + penalty * np.abs(model.coef_).sum()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--ours", action="store_true", help="without the peers (100,000 rows take them minutes a fit)")
    parser.add_argument("--repeats", type=int, default=5, help="of the 10-fold cross-validation on measured data")
    parser.add_argument("--only", help="one design, such as 200x5000, or: measured, liblinear")
    given = parser.parse_args()
    for design in DESIGNS:
        if given.only in (None, f"{design[0]}x{design[1]}"):
            simulated(design, given.seeds, ["sparsebayes, average=False"] if given.ours else list(CONTENDERS))
    if given.only in (None, "measured"):
        for name in ("colon_alon", "leukemia_golub"):
            measured(name, given.repeats)
    if given.only in (None, "liblinear"):
        against_liblinear()


if __name__ == "__main__":
    main()
