"""Outputs that share features, groups, outliers, counts and non-negative weights, beside other packages.

python benchmarks/families.py [--only outputs] [--seeds 8]
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from sparsebayes import ARDRegressor


def f1(found: Any, true: Any) -> float:
    """Harmonic mean of precision and recall."""
    found, true = set(np.ravel(found).tolist()), set(np.ravel(true).tolist())
    return 2 * len(found & true) / max(len(found) + len(true), 1)


def timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    """What a fit returns, and the seconds of processor time that it took."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fit()
    return found, time.process_time() - start


def report(title: str, rows: dict[str, list[tuple[float, ...]]], head: str) -> None:
    """Means of what was measured, one line for each model."""
    print(f"\n{title}\n{'':40} {head}")
    for name, values in rows.items():
        print(f"{name:40}", *(f"{value:10.3f}" for value in np.mean(values, axis=0)))


def outputs(n_seeds: int) -> None:
    """Support of ten shared features by the joint model and by each output alone."""
    for T, snr in ((5, 1.0), (5, 2.0), (20, 1.0)):
        rows: dict[str, list[tuple[float, ...]]] = {"joint": [], "independent, averaged (two outputs)": []}
        for seed in range(n_seeds):
            rng = np.random.default_rng([seed, T])
            X, W = rng.standard_normal((100, 500)), np.zeros((500, T))
            W[:10] = rng.choice([-1, 1], (10, T))
            signal = X @ W
            Y = signal + signal.std(axis=0) / np.sqrt(snr) * rng.standard_normal((100, T))
            joint, seconds = timed(lambda X=X, Y=Y: ARDRegressor(multi_output="joint").fit(X, Y))
            rows["joint"].append((f1(joint.active_[0], range(10)), seconds))
            alone, seconds = timed(lambda X=X, Y=Y: ARDRegressor().fit(X, Y[:, :2]))
            rows["independent, averaged (two outputs)"] += [(f1(each, range(10)), seconds) for each in alone.active_]
        report(f"100×500, 10 shared features, {T} outputs, signal-to-noise ratio {snr:g}", rows, "F1, seconds")
    rng = np.random.default_rng(0)
    X, W = rng.standard_normal((500, 2000)), np.zeros((2000, 100))
    W[:20] = rng.standard_normal((20, 100))
    Y = X @ W + 4 * rng.standard_normal((500, 100))
    joint, seconds = timed(lambda: ARDRegressor(multi_output="joint").fit(X, Y))
    report("500×2,000, 100 outputs", {"joint": [(f1(joint.active_[0], range(20)), seconds)]}, "F1, seconds")


PARTS: dict[str, Callable[[int], None]] = {"outputs": outputs}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=sorted(PARTS))
    parser.add_argument("--seeds", type=int, default=8)
    arguments = parser.parse_args()
    for name, part in PARTS.items():
        if arguments.only in (None, name):
            part(arguments.seeds)
