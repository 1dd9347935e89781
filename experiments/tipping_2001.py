"""Tables 1 and 2 of Tipping (2001), Sparse Bayesian learning and the relevance vector machine, beside ours.

    python experiments/tipping_2001.py [--repeats 20] [--only banana usps]

The paper chose one kernel width per problem by 5-fold cross-validation on training data; ours is `gamma="evidence"`,
without cross-validation. The paper does not say how inputs were scaled; ours are standardised by the estimators. Sets
that are not generated need the data folder; each is left out where it is not there. Three models: the default, the
sparse one, and for regressions the sparse one with all weights re-estimated at once, as in the paper. The row
"friedman1, input scales" is the paper's machine with ten input scales, ours `DRVMRegressor`.
"""

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from common import draws, fitted, header, line, mean_and_error, rmse
from sets import friedman, gaussian_noise, official, percent_wrong, random_split, ripley, sinc, uniform_noise, usps
from sklearn.datasets import make_friedman2, make_friedman3

from sparsebayes import DRVMRegressor, RVMClassifier, RVMRegressor


def mse(predicted: np.ndarray, y: np.ndarray) -> float:
    """Mean squared error."""
    return float(np.mean((predicted - y) ** 2))


class Row(NamedTuple):
    """A row of the published tables."""

    draw: Callable[[int], Any]
    model: Callable[..., Any]
    error: Callable[[np.ndarray, np.ndarray], float]
    most: int
    """Repetitions at most."""
    published: float
    vectors: float
    svm: float
    """Error of the support vector machine in the same table."""


TABLE = {
    "sinc, Gaussian noise": Row(sinc(gaussian_noise), RVMRegressor, rmse, 100, 0.0326, 6.7, 0.0378),
    "sinc, uniform noise": Row(sinc(uniform_noise), RVMRegressor, rmse, 100, 0.0187, 7.0, 0.0215),
    "friedman1": Row(friedman(), RVMRegressor, mse, 100, 2.80, 59.4, 2.92),
    "friedman1, input scales": Row(friedman(), DRVMRegressor, mse, 100, 0.27, 11.5, np.nan),
    "friedman2": Row(friedman(make_friedman2, 1 / 3), RVMRegressor, mse, 100, 3505, 6.9, 4140),
    "friedman3": Row(friedman(make_friedman3, 1 / 3), RVMRegressor, mse, 100, 0.0164, 11.5, 0.0202),
    "boston": Row(random_split("boston", 481), RVMRegressor, mse, 100, 7.46, 39.0, 8.04),
    "ripley": Row(ripley, RVMClassifier, percent_wrong, 100, 9.3, 4, 10.6),
    "pima": Row(official("pima"), RVMClassifier, percent_wrong, 1, 19.6, 4, 20.1),
    "banana": Row(official("banana"), RVMClassifier, percent_wrong, 10, 10.8, 11.4, 10.9),
    "breast_cancer": Row(official("breast_cancer"), RVMClassifier, percent_wrong, 10, 29.9, 6.3, 26.9),
    "titanic": Row(official("titanic"), RVMClassifier, percent_wrong, 10, 23.0, 65.3, 22.1),
    "waveform": Row(official("waveform"), RVMClassifier, percent_wrong, 10, 10.9, 14.6, 10.3),
    "image": Row(official("image"), RVMClassifier, percent_wrong, 10, 3.9, 34.6, 3.0),
    "usps": Row(usps, RVMClassifier, percent_wrong, 1, 5.1, 316, 4.4),
}
WAYS: dict[Any, list[dict[str, str]]] = {
    RVMRegressor: [{}, {"vectors": "sparse"}, {"vectors": "sparse", "solver": "fixed-point"}],
    DRVMRegressor: [{}, {"vectors": "sparse"}],
    RVMClassifier: [{}, {"vectors": "sparse"}],
}


def n_vectors(model: Any) -> int:
    """Rows that predictions need; of several classes all machines together."""
    kept = model.relevance_indices_
    return sum(map(len, kept)) if isinstance(kept, list) else len(kept)


def measured(row: Row, way: dict[str, str], repeats: int, name: str) -> list[tuple[float, int, float]]:
    """Error, vectors and seconds of every draw."""
    scores = []
    for X, y, X_test, y_test in draws(row.draw, min(repeats, row.most), name):
        model, seconds = fitted(row.model(**way), X, y)
        scores.append((row.error(model.predict(X_test), y_test), n_vectors(model), seconds))
    return scores


def verdict(errors: np.ndarray, published: float) -> str:
    """How our mean compares, in per cent and standard errors."""
    change = f"{errors.mean() / published - 1:+.1%}"
    if len(errors) < 2:
        return f"{change}, one draw"
    gap = (errors.mean() - published) / (errors.std(ddof=1) / np.sqrt(len(errors)))
    return f"{change}, {'lower' if gap < -2 else 'higher' if gap > 2 else 'equal within two standard errors'}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--only", nargs="+", choices=TABLE, default=list(TABLE))
    given = parser.parse_args()
    header("problem", "paper: RVM", "vectors", "SVM", "ours", "error", "vectors", "seconds", "draws", "difference")
    for name in given.only:
        row = TABLE[name]
        for way in WAYS[row.model]:
            scores = measured(row, way, given.repeats, name)
            if not scores:
                break
            errors, vectors, seconds = np.array(scores).T
            told = (mean_and_error(errors, 4), f"{vectors.mean():.1f}", f"{seconds.mean():.2f}", len(scores))
            title = ", ".join(way.values()) or "default"
            line(name, row.published, row.vectors, row.svm, title, *told, verdict(errors, row.published))


if __name__ == "__main__":
    main()
