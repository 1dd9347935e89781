"""The algorithm summaries of the SLR document (SLR-LAP, SLR-VAR, RLR, L1-SLR) on toy data with irrelevant features.

    python experiments/slr_toolbox.py [--features 200] [--repeats 10] [--out docs/figures]

First, theirs against ours: runs of the SLR toolbox 1.2.1 that are recorded in tests/reference, which features survive
and how far the weights are apart. Then toy data in the manner of Yamashita et al. (2008): two classes, 5 features that
matter among many that do not. For each algorithm: how many features survive, how many of the true ones, and the test
error; and a figure of the weights against iterations, where the irrelevant ones must vanish for SLR and L1-SLR and
stay small for RLR.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import FIGURES, OURS, ROOT, fitted, header, line, mean_and_error, save
from matplotlib import pyplot as plt
from scipy.special import expit

from sparsebayes import SparseLogisticRegression

REFERENCE = ROOT / "tests" / "reference"
PROBLEMS = ["log_iris_vv", "log_n200_d10", "log_nearsep_n80_d5", "log_n60_d300"]
TOOLBOX = {"intercept_prior": "ard", "average": False, "min_gain": 0.0, "max_scale": 1e4, "proba": "plug-in"}
"""As the toolbox does: the intercept is one more weight, nothing is charged, and weights have hardly a bound."""
ALGORITHMS: dict[str, dict[str, Any]] = {
    "SLR-LAP": {"prior": "ard", "inference": "laplace"},
    "SLR-VAR": {"prior": "ard", "inference": "variational"},
    "RLR-LAP": {"prior": "ridge", "inference": "laplace"},
    "RLR-VAR": {"prior": "ridge", "inference": "variational"},
    "L1-SLR-LAP": {"prior": "laplace", "inference": "laplace", "penalty": 2.0},
    "L1-SLR-c": {"prior": "laplace", "inference": "coordinate", "penalty": 2.0},
}
NAMES = {name: "slrtb_" + name.lower().replace("l1-", "l1").replace("-", "_") for name in ALGORITHMS}
"""Of the recorded runs."""
SURVIVES = 1e-6
"""Weights are alive above this share of the largest: the toolbox prunes at precisions of 1e8."""


def model(name: str, **others: Any) -> SparseLogisticRegression:
    """Our counterpart of an algorithm of the toolbox."""
    return SparseLogisticRegression(**TOOLBOX | ALGORITHMS[name] | others)


def weights(fit: Any) -> np.ndarray:
    """Of all features and the intercept, as the toolbox orders them."""
    return np.append(fit.coef_[0], fit.intercept_)


def alive(w: np.ndarray) -> set[int]:
    """Indices of the weights that have not vanished."""
    return set(np.flatnonzero(np.abs(w) > SURVIVES * np.abs(w).max()).tolist())


def against_toolbox(problems: list[str]) -> None:
    """A line for each recorded run."""
    header("data", "algorithm", "toolbox keeps", "ours", "in both", "largest difference of a weight", "largest weight")
    for problem in problems:
        rows = np.loadtxt(REFERENCE / f"{problem}_train.csv", delimiter=",")
        for name in ALGORITHMS:
            theirs = json.loads((REFERENCE / f"{problem}__{NAMES[name]}.json").read_text())["results"]
            fit, _ = fitted(model(name), rows[:, :-1], rows[:, -1])
            w, w_theirs = weights(fit), np.ravel(theirs["w"])
            kept, kept_theirs = alive(w), alive(w_theirs)
            largest, gap = np.abs(w_theirs).max(), np.abs(w - w_theirs).max()
            line(
                problem, name, len(kept_theirs), len(kept), len(kept & kept_theirs), f"{gap:.1e}", f"{largest:.3g}"
            )  # fmt: skip


def toy(n_features: int, seed: int, n: int = 200, n_test: int = 1000) -> tuple[np.ndarray, ...]:
    """Classes whose log odds have five true features, the first ones, with weights from 1 to 2 of either sign."""
    rng = np.random.default_rng([seed, n_features])
    X = rng.standard_normal((n + n_test, n_features))
    w = rng.choice([-1, 1], 5) * np.linspace(2, 1, 5)
    y = (rng.random(n + n_test) < expit(X[:, :5] @ w)).astype(int)
    return X[:n], y[:n], X[n:], y[n:]


WAYS: dict[str, Callable[[], Any]] = {name: (lambda name=name: model(name)) for name in ALGORITHMS}
WAYS |= {
    "ours, one model": lambda: SparseLogisticRegression(average=False),
    "ours, averaged": SparseLogisticRegression,
}


def survivors(n_features: int, repeats: int) -> None:
    """Which features survive."""
    header("algorithm", f"features kept of {n_features}", "of 5 true", "test error", "seconds")
    for name, make in WAYS.items():
        scores = []
        for seed in range(repeats):
            X, y, X_test, y_test = toy(n_features, seed)
            fit, seconds = fitted(make(), X, y)
            averaged = "averaged" in name
            kept = set(fit.get_support(indices=True).tolist()) if averaged else alive(weights(fit)) - {n_features}
            wrong = float((fit.predict(X_test) != y_test).mean())
            scores.append((len(kept), len(kept & set(range(5))), wrong, seconds))
        kept, hits, wrong, seconds = np.array(scores).T
        line(name, f"{kept.mean():.1f}", f"{hits.mean():.1f}", mean_and_error(wrong), f"{seconds.mean():.2f}")


def draw(n_features: int, path: Path) -> None:
    """Weights against iterations: a fit for each largest number of iterations."""
    X, y, *_ = toy(n_features, 0)
    steps = np.unique(np.geomspace(1, 300, 22).astype(int))
    figure, axes = plt.subplots(2, 3, figsize=(11, 5.6), layout="constrained", sharex=True)
    for ax, name in zip(axes.flat, ALGORITHMS, strict=True):
        path_of = np.array([fitted(model(name, max_iter=int(k)), X, y)[0].coef_[0] for k in steps])
        ax.plot(steps, path_of[:, 5:], color="0.6", lw=0.5)
        ax.plot(steps, path_of[:, :5], color=OURS, lw=1.6)
        n_alive = len(alive(path_of[-1]))
        ax.set_title(f"{name}: {n_alive} of {n_features} features at the end", fontsize=9)
        ax.set(xscale="log")
        ax.spines[["top", "right"]].set_visible(False)
    axes[1, 0].set(xlabel="iterations", ylabel="weight")
    handles = [plt.Line2D([], [], color=OURS, label="true"), plt.Line2D([], [], color="0.6", label="irrelevant")]
    figure.legend(handles=handles, loc="outside upper center", ncols=2, frameon=False)
    save(figure, path)
    plt.close(figure)


def main() -> None:
    """Print the tables and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--features", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=PROBLEMS, help="of tests/reference")
    parser.add_argument("--out", type=Path, default=FIGURES)
    given = parser.parse_args()
    against_toolbox(given.problems)
    survivors(given.features, given.repeats)
    draw(given.features, given.out / "slr_toolbox.png")


if __name__ == "__main__":
    main()
