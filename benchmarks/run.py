"""Time and error of the project and its peers on the same data, interleaved in one run.

    python benchmarks/run.py [--repeats 5] [--out benchmarks/results]

Each row says how many times longer a peer takes (median of the repeats, same BLAS threads), beside what it found: a fast
wrong answer is no answer. Writes run.csv and run.png.
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

CONTESTS = [
    (Linear(20_000, 200), ["sparsebayes", "sparsebayes, min_gain=0", "scikit-learn ARDRegression", "scikit-learn LassoCV"]),
    (Linear(500, 2_000), ["sparsebayes", "scikit-learn ARDRegression", "scikit-learn LassoCV"]),
]
WIDE = Linear(500, 100_000, n_true=20)


def contest(problem, names, repeats):
    """Median seconds, error, kept and F1 of each contender; the repeats go round, so that all share the noise."""
    X, y, X_test, y_test, true = problem.draw(0)
    seconds = {name: [] for name in names}
    found = {}
    for _ in range(repeats):
        for name in names:
            start = time.perf_counter()
            kept, predict = quietly(PEERS[name], X, y)
            seconds[name].append(time.perf_counter() - start)
            found[name] = len(kept), support_f1(kept, true), rmse(y_test, predict(X_test))
    return [(str(problem), name, float(np.median(seconds[name])), *found[name]) for name in names]


def wide_in_own_process():
    """Fit the widest problem in a fresh process, for its peak memory; the data count."""
    X, y, X_test, y_test, true = WIDE.draw(0)
    del X_test, y_test
    start = time.perf_counter()
    kept, _ = PEERS["sparsebayes"](X, y)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(f"{seconds},{len(kept)},{support_f1(kept, true)},{peak}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--wide", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.wide:
        return wide_in_own_process()
    rows = []
    for problem, names in CONTESTS:
        part = contest(problem, names, arguments.repeats)
        reference = part[0][2]
        for row in part:
            rows.append((*row, row[2] / reference))
            print(f"{row[0]:28s} {row[1]:28s} {row[2]:8.3f} s  ×{row[2] / reference:7.1f}  "
                  f"kept {row[3]:4d}  F1 {row[4]:.3f}  RMSE {row[5]:.4f}", flush=True)
    answer = subprocess.run([sys.executable, __file__, "--wide"], capture_output=True, text=True, check=True)
    seconds, kept, f1, peak = map(float, answer.stdout.strip().splitlines()[-1].split(","))
    print(f"{WIDE!s:28s} {'sparsebayes':28s} {seconds:8.3f} s            kept {kept:4.0f}  F1 {f1:.3f}  "
          f"peak memory {peak:.2f} GiB, data included")
    rows.append((str(WIDE), "sparsebayes", seconds, int(kept), f1, float("nan"), 1.0))
    arguments.out.mkdir(parents=True, exist_ok=True)
    with open(arguments.out / "run.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["problem", "contender", "median_seconds", "kept", "support_f1", "test_rmse", "times_ours"])
        writer.writerows(rows)


if __name__ == "__main__":
    main()
