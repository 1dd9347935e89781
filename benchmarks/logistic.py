"""Two-class problems: do they find the true features, at what error, and how long does it take?

    python benchmarks/logistic.py [--seeds 20]

Weights of size 0.5 to 1.5 with random sign. The peer is what a user would pick: scikit-learn's logistic regression with
an L1 penalty chosen by 5-fold cross-validation (log loss). The textbook is SLR-VAR.
"""

import argparse
import time

import numpy as np
from peers import quietly
from problems import support_f1
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss

from sparsebayes import SparseLogisticRegression

DESIGNS = [(1_000, 100, 10), (20_000, 100, 10), (200, 5_000, 10)]
CONTENDERS = {
    "sparsebayes": SparseLogisticRegression,
    "SLR-VAR (min_gain=0)": lambda: SparseLogisticRegression(inference="variational", min_gain=0, tol=1e-4),
    "L1, cross-validated": lambda: LogisticRegressionCV(
        l1_ratios=(1,), solver="liblinear", cv=5, scoring="neg_log_loss", use_legacy_attributes=False
    ),
}


def draw(seed, n, d, n_true, n_test=2000):
    """Train and test rows and classes, and the true features."""
    rng = np.random.default_rng([seed, n, d])
    true = np.sort(rng.choice(d, n_true, replace=False))
    weights = rng.choice([-1, 1], n_true) * rng.uniform(0.5, 1.5, n_true)
    X = rng.standard_normal((n + n_test, d))
    y = (rng.random(n + n_test) < 1 / (1 + np.exp(-X[:, true] @ weights))).astype(int)
    return X[:n], y[:n], X[n:], y[n:], true


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    seeds = parser.parse_args().seeds
    for design in DESIGNS:
        for name, make in CONTENDERS.items():
            scores = []
            for seed in range(seeds):
                X, y, X_test, y_test, true = draw(seed, *design)
                start = time.perf_counter()
                model = quietly(lambda X, y, make=make: make().fit(X, y), X, y)
                seconds = time.perf_counter() - start
                kept = np.flatnonzero(model.coef_[0])
                error = (model.predict(X_test) != y_test).mean()
                loss = log_loss(y_test, model.predict_proba(X_test))
                scores.append((len(kept), support_f1(kept, true), error, loss, seconds))
            kept, f1, error, loss, seconds = np.mean(scores, axis=0)
            exact = sum(score[1] == 1 for score in scores)
            print(
                f"{design[0]:6,d}×{design[1]:<6,d} {name:22s} kept {kept:6.1f}  F1 {f1:.3f}  exact {exact:2d}/{seeds}  "
                f"error {error:.4f}  log loss {loss:.4f}  {seconds:6.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
