"""Do they find the true features? Support F1 and error against the oracle, and the power to see weak signals.

    python benchmarks/truth.py [--seeds 20] [--only table] [--out benchmarks/results]

Prints one row per design and contender, writes truth.csv and power.png. The oracle is least squares on the true
features.
"""

import argparse
import csv
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from peers import PEERS, oracle, quietly
from problems import Linear, rmse, support_f1

DESIGNS = [
    Linear(1_000, 200),
    Linear(200, 2_000),
    Linear(1_000, 200, rho=0.8),
    Linear(1_000, 200, rho=0.95),
    Linear(100_000, 200),
]
TOO_SLOW = ("skglm MCP, CV", "sparsebayes, min_gain=0")
"""Left out where there are 100,000 rows."""
POWER = Linear(200, 300)
STRENGTHS = np.array([0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5])
POWER_NAMES = ["sparsebayes", "sparsebayes, average=False", "scikit-learn LassoCV"]


def table(seeds):
    """Rows of design, contender and means over seeds."""
    for design in DESIGNS:
        names = [name for name in PEERS if design.n_samples < 1e5 or name not in TOO_SLOW]
        scores = {name: [] for name in names}
        best = []
        for seed in range(seeds):
            X, y, X_test, y_test, true = design.draw(seed)
            best.append(rmse(y_test, oracle(X, y, true)[1](X_test)))
            for name in names:
                kept, predict = quietly(PEERS[name], X, y)
                scores[name].append((len(kept), support_f1(kept, true), rmse(y_test, predict(X_test))))
        for name, values in scores.items():
            kept, f1, error = np.mean(values, axis=0)
            exact = sum(value[1] == 1 for value in values)
            yield str(design), name, seeds, kept, f1, exact, error, error / np.mean(best)


def power(seeds):
    """Share of the true features found, number of false ones and test error, by strength of the true weights."""
    scores = {name: np.zeros((len(STRENGTHS), seeds, 3)) for name in POWER_NAMES}
    for i, strength in enumerate(STRENGTHS):
        for seed in range(seeds):
            design = Linear(POWER.n_samples, POWER.n_features, strength=float(strength))
            X, y, X_test, y_test, true = design.draw(1000 + seed)
            for name in POWER_NAMES:
                kept, predict = quietly(PEERS[name], X, y)
                hits = len(set(kept) & set(true))
                scores[name][i, seed] = hits / len(true), len(kept) - hits, rmse(y_test, predict(X_test))
    return {name: values.mean(axis=1) for name, values in scores.items()}


def draw_power(scores, path):
    """Three panels: power, its cost in false discoveries, and what both mean for prediction."""
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
    for (name, values), colour, marker in zip(scores.items(), ("#0b6e4f", "#5b8fb9", "#b5532a"), "oDs", strict=True):
        for axis, column in zip(axes, values.T, strict=True):
            axis.plot(STRENGTHS, column, marker=marker, color=colour, label=name)
    axes[0].set(ylabel="share of the 10 true features found", ylim=(-0.03, 1.03))
    axes[1].set(ylabel="false features kept", ylim=(-0.8, None))
    axes[2].set(ylabel="test error (RMSE)", ylim=(1.0, None))
    for axis in axes:
        axis.set(xlabel="size of each true weight (noise sd 1)")
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(f"{POWER.n_samples} samples, {POWER.n_features} features, 10 of them true", fontsize=11)
    figure.savefig(path, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--only", choices=("table", "power"), nargs="+", default=["table", "power"])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    if "table" in arguments.only:
        write_table(arguments)
    if "power" in arguments.only:
        write_power(arguments)


def write_table(arguments):
    """Print the rows and write truth.csv."""
    with open(arguments.out / "truth.csv", "w", newline="") as file:
        writer = csv.writer(file)
        header = ["design", "contender", "seeds", "mean_kept", "mean_f1", "exact", "mean_rmse", "rmse_over_oracle"]
        writer.writerow(header)
        for row in table(arguments.seeds):
            design, name, n_seeds, kept, f1, exact, error, ratio = row
            print(
                f"{design:30s} {name:28s} kept {kept:6.1f}  F1 {f1:.3f}  exact {exact:2d}/{n_seeds}  "
                f"RMSE {error:.4f} ({ratio:.4f} × oracle)",
                flush=True,
            )
            writer.writerow(row)


def write_power(arguments):
    """Print the numbers and draw power.png."""
    scores = power(arguments.seeds)
    for name, values in scores.items():
        for strength, (share, false, error) in zip(STRENGTHS, values, strict=True):
            print(f"strength {strength:.2f}  {name:28s} found {share:.2f}  false {false:5.2f}  RMSE {error:.3f}")
    draw_power(scores, arguments.out / "power.png")


if __name__ == "__main__":
    main()
