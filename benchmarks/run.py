"""Time and error of the project and its peers on the same data, interleaved in one run.

    python benchmarks/run.py [--repeats 5] [--out benchmarks/results]

Each row says how many times longer a contender takes than our default (median of the repeats, same BLAS threads),
beside what it found: a fast wrong answer is no answer. Writes run.csv.
"""

import argparse
import csv
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from peers import PEERS, quietly
from problems import Linear, rmse, support_f1

OURS, TEXTBOOK, SKLEARN, LASSO = list(PEERS)[:4]
CONTESTS = [
    # scikit-learn's thresholds are absolute, so its answer and its time depend on the unit of y: two units are shown.
    (Linear(20_000, 200), [OURS, TEXTBOOK, SKLEARN, LASSO]),
    (Linear(20_000, 200, unit=30.0), [OURS, TEXTBOOK, SKLEARN, LASSO]),
    (Linear(500, 2_000), [OURS, SKLEARN, LASSO]),
]
WIDE = Linear(500, 100_000, n_true=20)
HEADER = ["problem", "contender", "median_seconds", "kept", "support_f1", "test_rmse", "times_ours", "peak_gib"]


def contest(problem, names, repeats):
    """One row per contender; the repeats go round, so that all share the noise of the machine."""
    X, y, X_test, y_test, true = problem.draw(0)
    seconds = {name: [] for name in names}
    found = {}
    for _ in range(repeats):
        for name in names:
            start = time.perf_counter()
            kept, predict = quietly(PEERS[name], X, y)
            seconds[name].append(time.perf_counter() - start)
            found[name] = len(kept), support_f1(kept, true), rmse(y_test, predict(X_test)) / problem.unit
    median = {name: float(np.median(seconds[name])) for name in names}
    return [(str(problem), name, median[name], *found[name], median[name] / median[OURS], "") for name in names]


def wide_in_own_process():
    """Fit the widest problem in a fresh process, for its peak memory (the data count)."""
    X, y, _, _, true = WIDE.draw(0, n_test=0)
    start = time.perf_counter()
    kept, _ = PEERS[OURS](X, y)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(seconds, len(kept), support_f1(kept, true), peak)


def wide():
    """The row of the widest problem."""
    answer = subprocess.run([sys.executable, __file__, "--wide"], capture_output=True, text=True, check=True)
    seconds, kept, f1, peak = map(float, answer.stdout.split()[-4:])
    return (str(WIDE), OURS, seconds, int(kept), f1, float("nan"), 1.0, round(peak, 2))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--wide", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.wide:
        wide_in_own_process()
        return
    rows = []
    for part in [*(contest(problem, names, arguments.repeats) for problem, names in CONTESTS), [wide()]]:
        for row in part:
            problem, name, seconds, kept, f1, error, ratio, peak = row
            memory = f"  peak {peak} GiB with the data" if peak else ""
            print(
                f"{problem:34s} {name:28s} {seconds:8.3f} s  ×{ratio:6.1f}  kept {kept:4d}  F1 {f1:.3f}  "
                f"RMSE {error:.4f}{memory}",
                flush=True,
            )
            rows.append(row)
    arguments.out.mkdir(parents=True, exist_ok=True)
    with open(arguments.out / "run.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
