"""Samples and features chosen together: the published table of the DRVM, ours beside it, and which features are kept.

    python experiments/drvm_table.py [--repeats 20] [--only friedman1] [--out docs/figures]

The published numbers are those of Heimsæter's thesis (table 5.1): relevance vector machines by kernlab with its own
choice of the width, and the DRVM with starts chosen by cross-validation, each over 100 repetitions. Ours are
`RVMRegressor(vectors="sparse")` and `DRVMRegressor()`, without cross-validation. Sets that are not generated need the
data folder, and are left out where it is not there. Writes a figure of how often each feature was kept, and how large
its weight was, as the thesis's figures 5.3 to 5.5 have it.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1

from sparsebayes import DRVMRegressor, RVMRegressor
from sparsebayes.inspection import RelevanceDisplay

DATA = Path(__file__).parents[2] / "shared" / "data" / "sets"
FIGURES = Path(__file__).parents[1] / "docs" / "figures"


class Split(NamedTuple):
    """Rows to train and to test with."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


class Published(NamedTuple):
    """Test RMSE, relevance vectors and kept features."""

    error: float
    vectors: float
    features: float


class Problem(NamedTuple):
    """A line of the table."""

    draw: Callable[[int], Split]
    names: Callable[[], list[str]]
    rvm: Published
    drvm: Published


def sinc(seed: int) -> Split:
    """100 equally spaced points with noise from [-0.1, 0.1], 1,000 without to test."""
    X, X_test = np.linspace(-10, 10, 100)[:, None], np.linspace(-10, 10, 1000)[:, None]
    noise = np.random.default_rng(seed).uniform(-0.1, 0.1, 100)
    return Split(X, np.sinc(X[:, 0] / np.pi) + noise, X_test, np.sinc(X_test[:, 0] / np.pi))


def friedman1(seed: int) -> Split:
    """240 rows with noise of standard deviation one, 1,000 without to test; five of ten features matter."""
    X, f = make_friedman1(n_samples=1240, noise=0.0, random_state=seed)
    y = f + np.random.default_rng(seed).standard_normal(1240)
    return Split(X[:240], y[:240], X[240:], f[240:])


def halves(name: str) -> Callable[[int], Split]:
    """Random halves of a data set."""

    def draw(seed: int) -> Split:
        rows = np.loadtxt(DATA / f"{name}.csv", delimiter=",", skiprows=1)
        order = np.random.default_rng(seed).permutation(len(rows))
        train, test = rows[order[: len(rows) // 2]], rows[order[len(rows) // 2 :]]
        return Split(train[:, :-1], train[:, -1], test[:, :-1], test[:, -1])

    return draw


def columns(name: str) -> Callable[[], list[str]]:
    """Names of the features in the file."""
    return lambda: (DATA / f"{name}.csv").read_text().splitlines()[0].split(",")[:-1]


def numbered(n_features: int) -> Callable[[], list[str]]:
    """x1, x2, and so on."""
    return lambda: [f"x{k + 1}" for k in range(n_features)]


TABLE = {
    "sinc": Problem(sinc, numbered(1), Published(0.023, 10.1, 1), Published(0.017, 9.2, 1)),
    "friedman1": Problem(friedman1, numbered(10), Published(1.6, 28.4, 10), Published(1.14, 18.0, 7.0)),
    "diabetes_lars": Problem(
        halves("diabetes_lars"), columns("diabetes_lars"), Published(61.24, 20.1, 10), Published(55.54, 3.3, 7.3)
    ),
    "boston": Problem(halves("boston"), columns("boston"), Published(6.21, 32.1, 13), Published(5.87, 11.0, 3.3)),
}


class Score(NamedTuple):
    """What one fit has come to."""

    error: float
    vectors: int
    features: int
    seconds: float


def scored(model: RVMRegressor | DRVMRegressor, split: Split) -> Score:
    """Fit and test. One width for all features needs them standardised."""
    centre, spread = split.X.mean(axis=0), split.X.std(axis=0)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a noise at its floor; the table shows what came of it
        model.fit((split.X - centre) / spread, split.y)
    seconds = time.perf_counter() - start
    error = model.predict((split.X_test - centre) / spread) - split.y_test
    n_features = model.get_support().sum() if isinstance(model, DRVMRegressor) else split.X.shape[1]
    return Score(float(np.sqrt(np.mean(error**2))), len(model.relevance_indices_), int(n_features), seconds)


def line(name: str, method: str, published: Published, scores: list[Score]) -> str:
    """A line of the table, in Markdown."""
    mean, error = np.mean(scores, axis=0), np.std([score.error for score in scores]) / np.sqrt(len(scores))
    theirs = " | ".join(f"{value:g}" for value in published)
    ours = f"{mean[0]:.3g} ± {error:.2g} | {mean[1]:.1f} | {mean[2]:.1f} | {mean[3]:.1f}"
    return f"| {name} | {method} | {theirs} | {ours} |"


def main() -> None:
    """Print the table, and draw which features were kept."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--only", choices=TABLE)
    parser.add_argument("--out", type=Path, default=FIGURES)
    given = parser.parse_args()
    print("| problem | | published RMSE | vectors | features | ours: RMSE | vectors | features | seconds a fit |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    displays = {}
    for name in TABLE if given.only is None else [given.only]:
        problem, weights = TABLE[name], []
        if not (problem.draw in (sinc, friedman1) or (DATA / f"{name}.csv").exists()):
            print(f"{name}: no {name}.csv in the data folder, left out")
            continue
        scores: dict[str, list[Score]] = {"RVM": [], "DRVM": []}
        for seed in range(given.repeats):
            split, model = problem.draw(seed), DRVMRegressor()
            scores["RVM"].append(scored(RVMRegressor(vectors="sparse"), split))
            scores["DRVM"].append(scored(model, split))
            weights.append(model.feature_weights_)
        for method, published in (("RVM", problem.rvm), ("DRVM", problem.drvm)):
            print(line(name, method, published, scores[method]), flush=True)
        if len(problem.names()) > 1:
            displays[name] = RelevanceDisplay.from_weights(weights, feature_names=problem.names())
    if displays:
        draw(displays, given.out / "drvm_features.png")


def draw(displays: dict[str, RelevanceDisplay], path: Path) -> None:
    """How often each feature was kept, and its mean weight for inputs of standard deviation one."""
    figure, axes = plt.subplots(
        1, len(displays), figsize=(5.2 * len(displays), 4.2), layout="constrained", squeeze=False
    )
    for ax, (name, display) in zip(axes[0], displays.items(), strict=True):
        display.plot(ax)
        ax.set_title(f"{name}: {display.title}", fontsize=10)
        ax.set_xlim(0, 1.5)  # room for the weights beside the bars
        ax.set_xlabel("share of repetitions that keep it\n(mean weight ± standard deviation)", loc="right")
        print(f"{name}: {display.text()}")
    figure.savefig(path, dpi=80)
    print(f"drawn: {path} ({path.stat().st_size / 1000:.0f} kB)")


if __name__ == "__main__":
    main()
