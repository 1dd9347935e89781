"""Tipping & Faul (2003), Fast marginal likelihood maximisation: one basis function at a time against all at once.

    python experiments/tipping_faul_2003.py [--rows 100 200 400 800] [--repeats 3] [--out docs/figures]

The paper: the sequential algorithm starts from an empty model, reaches about the evidence of the batch algorithm with
a similar or smaller number of vectors, and its time grows far more slowly with the number of rows, because it never
inverts a matrix of all of them. Ours on sinc (noise sd 0.1) and on two mixtures like Ripley's: processor seconds, log
evidence, vectors and test error of both, and the evidence against iterations.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import FIGURES, OURS, THEIRS, draw_climbs, fitted, header, line, rmse, save
from matplotlib import pyplot as plt
from sets import gaussian_noise, mixtures, percent_wrong, sinc

from sparsebayes import RVMClassifier, RVMRegressor


class Problem(NamedTuple):
    """Data of n rows, a model that takes a solver, and its error."""

    draw: Callable[[int, int], Any]
    model: Callable[..., Any]
    error: Callable[[np.ndarray, np.ndarray], float]


PROBLEMS = {
    "sinc": Problem(lambda n, seed: sinc(gaussian_noise, n)(seed), RVMRegressor, rmse),
    "Ripley": Problem(mixtures, RVMClassifier, percent_wrong),
}
SOLVERS = {"sequential": OURS, "fixed-point": THEIRS}
"""One at a time, and all at once with MacKay's rule, which is the batch algorithm of Tipping (2001)."""
GAMMA = {"sinc": 3.0, "Ripley": 1.0}
"""Kernel widths for inputs of standard deviation one, the same for both solvers: near those of largest evidence."""


def measure(name: str, rows: list[int], repeats: int) -> dict[tuple[str, int], np.ndarray]:
    """Medians over draws of seconds, evidence, vectors and error, by solver and number of rows."""
    problem, found = PROBLEMS[name], {}
    fitted(problem.model(vectors="sparse"), *problem.draw(50, 0)[:2])  # so that no time includes imports
    for n in rows:
        for solver in SOLVERS:
            scores = []
            for seed in range(repeats):
                X, y, X_test, y_test = problem.draw(n, seed)
                model = problem.model(vectors="sparse", gamma=GAMMA[name], solver=solver)
                model, seconds = fitted(model, X, y)
                error = problem.error(model.predict(X_test), y_test)
                scores.append((seconds, model.log_evidence_, len(model.relevance_indices_), error))
            found[solver, n] = np.median(scores, axis=0)
            seconds, evidence, vectors, error = found[solver, n]
            line(name, n, solver, f"{seconds:.3f}", f"{evidence:.1f}", f"{vectors:.0f}", f"{error:.4g}")
    return found


def tell(name: str, found: dict[tuple[str, int], np.ndarray], rows: list[int]) -> None:
    """A line for each claim of the paper."""
    first, last = rows[0], rows[-1]
    for n in (first, last):
        ratio = found["fixed-point", n][0] / found["sequential", n][0]
        print(f"{name}, {n} rows: all at once takes {ratio:.1f} times as long as one at a time")
    gaps = [found["sequential", n][1] - found["fixed-point", n][1] for n in rows]
    print(
        f"{name}: evidence of one at a time less that of all at once, nats: {', '.join(f'{gap:+.2f}' for gap in gaps)}"
    )
    if last > first:
        growth = {
            solver: np.log(found[solver, last][0] / found[solver, first][0]) / np.log(last / first)
            for solver in SOLVERS
        }
        print(f"{name}: time grows as rows to the power " + ", ".join(f"{p:.1f} ({s})" for s, p in growth.items()))


def draw(found: dict[str, dict[tuple[str, int], np.ndarray]], rows: list[int], path: Path) -> None:
    """Time against rows, and evidence against iterations at the largest number of rows."""
    figure, axes = plt.subplots(2, 2, figsize=(10, 6.4), layout="constrained")
    for (name, problem), (left, right) in zip(PROBLEMS.items(), axes, strict=True):
        X, y, *_ = problem.draw(rows[-1], 0)
        paths = {}
        for solver, colour in SOLVERS.items():
            left.plot(rows, [found[name][solver, n][0] for n in rows], "o-", color=colour, label=solver)
            model, _ = fitted(problem.model(vectors="sparse", gamma=GAMMA[name], solver=solver), X, y)
            paths[solver] = model.evidence_path_
        draw_climbs(right, paths, SOLVERS)
        left.set(xscale="log", yscale="log", xlabel="rows", ylabel="processor seconds", title=name)
        right.set_title(f"log evidence of {name}, {rows[-1]} rows")
        left.legend(frameon=False, fontsize=8)
        for ax in (left, right):
            ax.spines[["top", "right"]].set_visible(False)
    save(figure, path)
    plt.close(figure)


def main() -> None:
    """Print the table and the claims, and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 200, 400, 800])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=FIGURES)
    given = parser.parse_args()
    header("problem", "rows", "solver", "seconds", "log evidence", "vectors", "test error")
    found = {name: measure(name, given.rows, given.repeats) for name in PROBLEMS}
    for name, results in found.items():
        tell(name, results, given.rows)
    draw(found, given.rows, given.out / "tipping_faul_2003.png")


if __name__ == "__main__":
    main()
