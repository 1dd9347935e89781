"""Which features matter? Pictures and numbers of docs/which_features.md.

    python docs/figures/which_features.py              draws which_features.png and which_features_sets.png
    python docs/figures/which_features.py --compare 20 prints claims of three methods, over so many data sets
    python docs/figures/which_features.py --prices 5   prints intervals and errors with and without a price

Five kinds of data with 100 rows, 60 features and noise of standard deviation 1.
"""

import argparse
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from sparsebayes import ARDRegressor, StabilitySelector
from sparsebayes.estimators import set_text
from sparsebayes.inspection import InclusionDisplay

ROWS, FEATURES = 100, 60
CORRELATION = 0.95
BLUE, GREY, RED, GREEN = "#0072b2", "#909090", "#d55e00", "#009e73"
WHITE = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}


def weights(case):
    """The true weights."""
    w = np.zeros(FEATURES)
    if case == "independent":
        w[[5, 20, 35, 50]] = 1.0, -0.8, 0.7, -0.6
    elif case == "correlated":
        w[[5, 20, 35, 50]] = 0.6, 1.0, -0.8, 0.7
    elif case == "weak":
        w[2::6] = 0.25
    elif case == "dense":
        w[::2] = np.tile([0.4, -0.4], 15)
    return w


def draw(case, seed=0):
    """Rows, target and true weights; under "correlated" 4, 5 and 6 are a trio, of which 5 is true."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, FEATURES))
    if case == "correlated":
        X[:, 4:7] = CORRELATION**0.5 * rng.standard_normal((ROWS, 1)) + (1 - CORRELATION) ** 0.5 * X[:, 4:7]
    w = weights(case)
    return X, X @ w + rng.standard_normal(ROWS), w


CASES = {
    "independent": "Independent: four true features",
    "correlated": f"Correlated: 4, 5, 6 at {CORRELATION}, only 5 is true",
    "weak": "Weak: ten true weights of 0.25",
    "dense": "Dense: every second feature is true",
    "noise": "Noise: nothing is true",
}


def panel(axis, case, title):
    """Inclusion probability of every feature; true ones are filled."""
    X, y, w = draw(case)
    model = ARDRegressor().fit(X, y)
    probability, true = model.inclusion_probability_, w != 0
    low, median, high = np.searchsorted(np.cumsum(model.n_features_posterior_), [0.05, 0.5, 0.95])
    for found in model.credible_sets_:
        if len(found.features) > 1:
            left, right = found.features.min() - 1, found.features.max() + 1
            axis.axvspan(left, right, color=GREEN, alpha=0.2, lw=0)
            axis.text(
                right + 0.7, 0.5, set_text([str(j) for j in found.features], found.probability), fontsize=9, bbox=WHITE
            )
    axis.vlines(np.arange(FEATURES), 0, probability, color=np.where(true, BLUE, GREY).tolist(), lw=1.5)
    axis.plot(np.flatnonzero(true), probability[true], "o", color=BLUE, ms=6, label="true")
    axis.plot(np.flatnonzero(~true), probability[~true], "o", mfc="white", mec=GREY, ms=5, label="not true")
    axis.axhline(0.9, color=RED, lw=1.2, ls=(0, (4, 2)), label="claimed from 0.9")
    claimed = model.get_support()
    told = f"claims {claimed.sum()}, {(claimed & true).sum()} of them true; in the model: {median} ({low} to {high})"
    axis.set_title(f"{title}\n{told}", loc="left", fontsize=9.5)
    axis.set(ylim=(0, 1.05), xlim=(-1, FEATURES), yticks=[0, 0.5, 0.9, 1], xlabel="feature")
    axis.spines[["top", "right"]].set_visible(False)
    print(f"{title}. {told}; sets {[(s.features.tolist(), round(s.probability, 3)) for s in model.credible_sets_]}")


def pictures(folder):
    """Draw both figures."""
    figure, axes = plt.subplots(3, 2, figsize=(11, 9), layout="constrained")
    for axis, (case, title) in zip(axes.flat, CASES.items(), strict=False):
        panel(axis, case, title)
    for axis in axes[:, 0]:
        axis.set_ylabel("inclusion probability")
    legend = axes.flat[-1]
    legend.axis("off")
    legend.legend(*axes[0, 0].get_legend_handles_labels(), loc="upper left", frameon=False)
    figure.savefig(folder / "which_features.png", dpi=100)
    X, y, _ = draw("correlated")
    display = InclusionDisplay.from_estimator(ARDRegressor().fit(X, y), least=0.1).plot()
    display.figure_.savefig(folder / "which_features_sets.png")
    print(display.text())


def averaged(X, y):
    """Claims at probability 0.9, and the credible sets."""
    model = ARDRegressor().fit(X, y)
    return model.get_support(), model.credible_sets_


def single(X, y):
    """What the best single model keeps."""
    return ARDRegressor(average=False).fit(X, y).get_support(), []


def stable(X, y):
    """What the best single model keeps on at least 60 of 100 random halves of the rows."""
    model = StabilitySelector(ARDRegressor(average=False), n_resamples=100, random_state=0).fit(X, y)
    return model.get_support(), []


METHODS = {"averaged, claims at 0.9": averaged, "StabilitySelector": stable, "single model": single}


def compare(seeds):
    """Means over data sets: features claimed, true ones, sets with a true feature, seconds."""
    print("| data | method | claimed | true ones | false ones | sets | sets with a true feature | seconds |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for case in CASES:
        for name, method in METHODS.items():
            rows = []
            for seed in range(seeds):
                X, y, w = draw(case, seed)
                start = time.process_time()
                claimed, sets = method(X, y)
                true = w != 0
                hits = sum(bool(true[found.features].any()) for found in sets)
                counts = claimed.sum(), (claimed & true).sum(), (claimed & ~true).sum()
                rows.append([*counts, len(sets), hits, time.process_time() - start])
            *values, seconds = np.mean(rows, axis=0)
            values = [*(f"{value:.1f}" for value in values), f"{seconds:.2f}"]
            if method is not averaged:
                values[3:5] = "", ""
            print(f"| {case} | {name} | {' | '.join(values)} |")


PRICES = {"averaged": {}, "single model": {"average": False}, "`min_gain=0`": {"min_gain": 0}}


def prices(seeds):
    """Means over data sets with four true features: features kept, test error, coverage of 90 % intervals."""
    print("| rows × features | | kept | test error | coverage of 90 % intervals |\n| --- | --- | --- | --- | --- |")
    for n, d in ((100, 60), (100, 200), (200, 2000)):
        found = {name: [] for name in PRICES}
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            X = rng.standard_normal((2 * n, d))
            y = X[:, :4] @ [1.0, -0.8, 0.7, -0.6] + rng.standard_normal(2 * n)
            for name, parameters in PRICES.items():
                model = ARDRegressor(**parameters).fit(X[:n], y[:n])
                low, high = model.predict_interval(X[n:], 0.9).T
                error = np.sqrt(np.mean((model.predict(X[n:]) - y[n:]) ** 2))
                found[name].append((len(model.active_), error, np.mean((low <= y[n:]) & (y[n:] <= high))))
        for name, values in found.items():
            kept, error, coverage = np.mean(values, axis=0)
            print(f"| {n}×{d:,} | {name} | {kept:.1f} | {error:.2f} | {coverage:.2f} |")


def main():
    """Draw, or compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compare", type=int, metavar="SEEDS")
    parser.add_argument("--prices", type=int, metavar="SEEDS")
    given = parser.parse_args()
    if given.compare:
        compare(given.compare)
    elif given.prices:
        prices(given.prices)
    else:
        pictures(Path(__file__).parent)


if __name__ == "__main__":
    main()
