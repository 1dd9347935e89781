"""Which estimator? The picture and the seconds of docs/which_estimator.md.

    python docs/figures/chooser.py             draws which_estimator.png
    python docs/figures/chooser.py --seconds   prints the table of seconds, as medians of three fits

Seconds are processor time: set OPENBLAS_NUM_THREADS=1 to count one core.
"""

import argparse
import statistics
import time
from pathlib import Path

import numpy as np

import sparsebayes as sb

BLUE, ORANGE, GREY = "#0072b2", "#b34700", "#555555"
LINEAR, KERNEL = ("#e8f1f8", BLUE), ("#fdf0e6", ORANGE)

TREE = [
    (
        "numbers",
        [
            ("a straight line: which features matter?", "ARDRegressor()", LINEAR),
            ("… and some targets are outliers", 'ARDRegressor(noise="student")', LINEAR),
            ("… and several outputs share their features", 'ARDRegressor(multi_output="joint")', LINEAR),
            ("a curve: predict well", "RVMRegressor()", KERNEL),
            ("a curve: a few example rows", 'RVMRegressor(vectors="sparse")', KERNEL),
            ("… and the noise is hard to tell from the curve", "BLSRegressor()", KERNEL),
            ("a curve of a few of the features", "DRVMRegressor()", KERNEL),
        ],
    ),
    (
        "classes",
        [
            ("a straight boundary: which features matter?", "SparseLogisticRegression()", LINEAR),
            ("a straight boundary: rows arrive one by one", "VBLogisticRegression()", LINEAR),
            ("a curved boundary: predict well", "RVMClassifier()", KERNEL),
            ("… from typical examples of each class", "PCVMClassifier()", KERNEL),
            ("a curved boundary in a few of the features", "PFCVMClassifier()", KERNEL),
        ],
    ),
    ("counts", [("rates: which features matter?", "SparsePoissonRegressor()", LINEAR)]),
]

SECONDS = [
    (sb.ARDRegressor(), "numbers", [(100, 20), (1000, 200), (60, 20_000)]),
    (sb.ARDRegressor(average=False), "numbers", [(100, 20), (1000, 200), (60, 20_000)]),
    (sb.ARDRegressor(noise="student"), "numbers", [(100, 20), (1000, 200), (60, 20_000)]),
    (sb.ARDRegressor(multi_output="joint"), "outputs", [(100, 20), (1000, 200), (60, 20_000)]),
    (sb.SparseLogisticRegression(), "classes", [(100, 20), (1000, 200), (60, 20_000)]),
    (sb.SparseLogisticRegression(average=False), "classes", [(100, 20), (1000, 200), (60, 20_000)]),
    (sb.SparsePoissonRegressor(), "counts", [(100, 20), (1000, 200), (60, 20_000)]),
    (sb.VBLogisticRegression(), "classes", [(100, 20), (1000, 200), (60, 20_000)]),
    (sb.RVMRegressor(), "curve", [(100, 5), (500, 10), (2000, 10)]),
    (sb.RVMRegressor(vectors="sparse"), "curve", [(100, 5), (500, 10), (2000, 10)]),
    (sb.BLSRegressor(), "curve", [(100, 5), (500, 10), (2000, 10)]),
    (sb.DRVMRegressor(), "curve", [(100, 5), (500, 10), (2000, 10)]),
    (sb.RVMClassifier(), "regions", [(100, 5), (500, 10), (2000, 10)]),
    (sb.PCVMClassifier(), "regions", [(100, 5), (500, 10), (2000, 10)]),
    (sb.PFCVMClassifier(), "regions", [(100, 5), (500, 10), (2000, 10)]),
    (sb.PFCVMClassifier(vectors="sparse"), "regions", [(100, 5), (500, 10), (2000, 10)]),
]


def data(kind, n, d, seed):
    """Three features of d matter, in a line or in a curve."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    line = X[:, 0] - X[:, 1] + 0.5 * X[:, 2]
    curve = np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.5 * X[:, 2]
    if kind == "numbers":
        return X, line + rng.standard_normal(n)
    if kind == "outputs":
        return X, line[:, None] * [1.0, -1.0, 0.5] + rng.standard_normal((n, 3))
    if kind == "classes":
        return X, 2 * line + rng.logistic(size=n) > 0
    if kind == "counts":
        return X, rng.poisson(np.exp(0.5 * line))
    if kind == "curve":
        return X, curve + 0.3 * rng.standard_normal(n)
    return X, curve + 0.3 * rng.logistic(size=n) > 1


def seconds(model, kind, n, d):
    """Median processor seconds of three fits; the first also loads modules, so one small fit goes before."""
    model.fit(*data(kind, 60, 5, seed=9))
    taken = []
    for seed in range(3):
        X, y = data(kind, n, d, seed)
        start = time.process_time()
        model.fit(X, y)
        taken.append(time.process_time() - start)
        if taken[-1] > 20:
            break
    return statistics.median(taken)


def table():
    """One line for each model, as it stands in the document."""
    for model, kind, shapes in SECONDS:
        cells = [f"{seconds(model, kind, n, d):.2g}" for n, d in shapes]
        print(f"| `{model!r}` | ".replace("'", '"') + " | ".join(cells) + " |", flush=True)


def picture(path):
    """Target on the left, what is wanted in the middle, the constructor on the right."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    gap = 0.4
    n_rows = sum(len(leaves) for _, leaves in TREE) + gap * (len(TREE) - 1)
    figure, axis = plt.subplots(figsize=(9.6, 0.44 * n_rows + 0.5), layout="constrained")
    axis.set(xlim=(0, 10), ylim=(n_rows - 0.4, -1.1))
    axis.axis("off")
    heads = (0.4, "target", GREY), (2.0, "what you want", GREY), (6.2, "linear: keeps features", BLUE)
    for x, text, colour in (*heads, (8.4, "kernel: keeps rows", ORANGE)):
        axis.text(x, -0.75, text, color=colour, fontsize=10, style="italic")
    row = 0
    for target, leaves in TREE:
        middle = row + (len(leaves) - 1) / 2
        box = {"boxstyle": "round,pad=0.5", "facecolor": "#eeeeee", "edgecolor": GREY}
        axis.text(0.7, middle, target, ha="center", va="center", fontsize=12, weight="bold", bbox=box)
        for want, call, (face, edge) in leaves:
            axis.plot([1.3, 1.6, 1.6, 1.9], [middle, middle, row, row], color="#bbbbbb", lw=1, zorder=0)
            axis.text(2.0, row, want, va="center", fontsize=10.5)
            box = {"boxstyle": "round,pad=0.35", "facecolor": face, "edgecolor": edge}
            axis.text(6.3, row, call, va="center", fontsize=10, family="monospace", color=edge, bbox=box)
            row += 1
        row += gap
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", action="store_true", help="measure instead of drawing")
    if parser.parse_args().seconds:
        table()
    else:
        picture(Path(__file__).parent / "which_estimator.png")
