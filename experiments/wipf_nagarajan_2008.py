"""Wipf & Nagarajan (2008), A new view of automatic relevance determination: reweighted L1 against EM and others.

    python experiments/wipf_nagarajan_2008.py [--repeats 20] [--out docs/figures]

The paper: every step of the chain of reweighted lassos lowers the cost, each is convex, and sparse solutions appear
after a few of them, while EM is slow; and no method is safe from local minima, which are fewer when the weights have
different sizes than when all have the same. Ours: random dictionaries of 50 rows and 100 columns, a number of true
weights, hardly any noise, no price (min_gain=0). For each solver: the share of draws in which the true columns are
found, how often it ends at the highest evidence of all, the steps and the seconds. Then the evidence against steps of
one draw.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from common import FIGURES, FOURTH, OURS, THEIRS, THIRD, draw_climbs, fitted, header, line, save
from matplotlib import pyplot as plt

from sparsebayes import ARDRegressor

SOLVERS = {"reweighted-l1": OURS, "em": THEIRS, "fixed-point": THIRD, "sequential": FOURTH}
ROWS, COLUMNS = 50, 100
NOISE = 1e-3
"""Standard deviation, where a true weight has size about one: 60 dB."""
KNOWN = 1e6
"""Shape of the noise precision's Gamma prior with mean 1/NOISE²: it is known to a thousandth."""
SAME = 0.01
"""Nats: ends that are nearer than this count as the same maximum; the solvers stop at 1e-6."""


def draw(n_true: int, equal: bool, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A dictionary with columns of length one, the target, and the true columns."""
    rng = np.random.default_rng([seed, n_true, equal])
    X = rng.standard_normal((ROWS, COLUMNS))
    X /= np.linalg.norm(X, axis=0)
    true = np.sort(rng.choice(COLUMNS, n_true, replace=False))
    w = rng.choice([-1.0, 1.0], n_true) if equal else rng.standard_normal(n_true)
    return X, X[:, true] @ w + NOISE * rng.standard_normal(ROWS), true


def model(solver: str, **others: Any) -> ARDRegressor:
    """Textbook evidence maximisation with the noise known, as in the paper."""
    known = {"c": KNOWN, "d": KNOWN * NOISE**2}
    parameters = {"min_gain": 0.0, "fit_intercept": False, "average": False, "max_iter": 3000} | known
    return ARDRegressor(solver=solver, **parameters | others)


def recovered(fit: Any, true: np.ndarray) -> bool:
    """Whether the largest weights are the true ones: small spurious weights may remain at this noise."""
    return set(np.argsort(-np.abs(fit.coef_))[: len(true)].tolist()) == set(true.tolist())


def measure(equal: bool, numbers: list[int], repeats: int) -> dict[str, list[float]]:
    """Print a line for each number of true weights and solver; return the shares recovered."""
    shares: dict[str, list[float]] = {solver: [] for solver in SOLVERS}
    for n_true in numbers:
        scores = {solver: [] for solver in SOLVERS}
        for seed in range(repeats):
            X, y, true = draw(n_true, equal, seed)
            for solver in SOLVERS:
                fit, seconds = fitted(model(solver), X, y)
                scores[solver].append((recovered(fit, true), fit.log_evidence_, len(fit.evidence_path_), seconds))
        best = np.max([[row[1] for row in rows] for rows in scores.values()], axis=0)
        for solver, rows in scores.items():
            found, evidence, steps, seconds = np.array(rows, dtype=float).T
            shares[solver].append(float(found.mean()))
            highest, below = np.mean(evidence > best - SAME), np.mean(best - evidence)
            line(
                "equal" if equal else "normal", n_true, solver, f"{found.mean():.0%}", f"{highest:.0%}",
                f"{below:.1f}", f"{np.median(steps):.0f}", f"{np.median(seconds):.3f}",
            )  # fmt: skip
    return shares


def figure_of(shares: dict[bool, dict[str, list[float]]], numbers: list[int], path: Path) -> None:
    """Recovery by number of true weights, and the evidence against steps of one draw."""
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for ax, (equal, found) in zip(axes, shares.items(), strict=False):
        for solver, colour in SOLVERS.items():
            ax.plot(numbers, found[solver], "o-", color=colour, label=solver)
        title = "equal sizes" if equal else "normal weights"
        ax.set(xlabel="true weights", ylabel="share of draws recovered", ylim=(-0.03, 1.03), title=title)
    X, y, _ = draw(20, False, 0)
    draw_climbs(axes[2], {solver: fitted(model(solver), X, y)[0].evidence_path_ for solver in SOLVERS}, SOLVERS)
    axes[2].set_title("20 normal weights, one draw")
    axes[0].legend(frameon=False, fontsize=8)
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    save(figure, path)
    plt.close(figure)


def main() -> None:
    """Print the table and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--numbers", type=int, nargs="+", default=[5, 10, 15, 20, 25], help="of true weights")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--out", type=Path, default=FIGURES)
    given = parser.parse_args()
    header("weights", "true", "solver", "recovered", "highest of all", "nats below it", "steps", "seconds")
    shares = {equal: measure(equal, given.numbers, given.repeats) for equal in (False, True)}
    figure_of(shares, given.numbers, given.out / "wipf_nagarajan_2008.png")


if __name__ == "__main__":
    main()
