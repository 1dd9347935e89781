"""Drugowitsch (2013), Variational Bayesian inference for linear and logistic regression: the bound by iterations.

    python experiments/vb_logistic.py [--out docs/figures]

Theirs, twice: runs of the author's programs `vb_logit_fit` and `vb_logit_fit_ard` that are recorded in
tests/reference (first and last bound, weights), and the equations of the note written out here, which give every
value of the bound. Ours: `VBLogisticRegression`, whose `evidence_path_` is its bound before each iteration.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from common import FIGURES, OURS, ROOT, THEIRS, fitted, header, line, save
from matplotlib import pyplot as plt
from scipy.special import gammaln, log_expit

from sparsebayes import VBLogisticRegression

REFERENCE = ROOT / "tests" / "reference"
PROBLEMS = ["log_iris_vv", "log_n200_d10", "log_nearsep_n80_d5", "log_n60_d300"]
A0, B0 = 1e-2, 1e-4
"""Of the note's programs."""


def note(X: np.ndarray, y: np.ndarray, ard: bool, n_iter: int) -> np.ndarray:
    """The bound after each iteration by the note's equations as they stand, with an inverse in each."""
    sign, (n, d) = 2 * y - 1, X.shape
    n_priors = d if ard else 1
    a, alpha, xi = A0 + (1 if ard else d) / 2, np.full(n_priors, A0 / B0), np.zeros(n)
    bounds = []
    for _ in range(n_iter):
        slope = np.where(xi > 0, np.tanh(xi / 2) / (4 * np.where(xi > 0, xi, 1)), 1 / 8)  # λ(ξ), eq. (10)
        precision = np.diag(np.broadcast_to(alpha, d)) + 2 * (X * slope[:, None]).T @ X
        V = np.linalg.inv(precision)
        w = V @ (X.T @ sign) / 2
        square = w**2 + np.diag(V)
        b = B0 + (square if ard else square.sum()) / 2
        alpha = a / b * np.ones(n_priors)
        xi = np.sqrt(np.einsum("ij,jk,ik->i", X, V + np.outer(w, w), X))
        slope = np.tanh(xi / 2) / (4 * xi)
        # The bound at these factors, eq. (19): likelihood at the new ξ, then entropies and the priors of α.
        second = X.T @ (X * slope[:, None])
        data = log_expit(xi).sum() - xi.sum() / 2 + (slope * xi**2).sum()
        data += sign @ X @ w / 2 - w @ second @ w - np.trace(second @ V)
        # With E α = a/b the terms in α b sum to a, which cancels.
        logs = -gammaln(A0) + A0 * np.log(B0) - a * np.log(b * np.ones(n_priors)) + gammaln(a)
        entropy = 0.5 * (np.linalg.slogdet(V)[1] + d)
        bounds.append(data + entropy + logs.sum())
    return np.array(bounds)


def recorded(problem: str, ard: bool) -> dict:
    """The author's program on this problem."""
    name = f"{problem}__vb_logit_fit{'_ard' if ard else ''}__tight.json"
    return json.loads((REFERENCE / name).read_text())["results"]


def data(problem: str) -> tuple[np.ndarray, np.ndarray]:
    """Features with a column of ones, which is shrunk like the others, and classes 0 and 1."""
    rows = np.loadtxt(REFERENCE / f"{problem}_train.csv", delimiter=",")
    return np.column_stack([rows[:, :-1], np.ones(len(rows))]), rows[:, -1]


def row_by_row(problems: list[str]) -> None:
    """The posterior when rows come one at a time, against the author's `vb_logit_fit_iter`."""
    header("data", "rows", "largest difference of a weight, row by row", "largest weight")
    for problem in problems:
        X, y = data(problem)
        theirs = json.loads((REFERENCE / f"{problem}__vb_logit_fit_iter__shipped.json").read_text())["results"]
        model = VBLogisticRegression(prior_precision=X.shape[1], fit_intercept=False)
        for k in range(len(y)):
            model.partial_fit(X[k : k + 1], y[k : k + 1], classes=[0, 1])
        w = np.ravel(theirs["w"])
        line(problem, len(y), f"{np.abs(model.coef_[0] - w).max():.1e}", f"{np.abs(w).max():.3g}")


def main() -> None:
    """Print theirs beside ours, and draw the traces."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=300, help="of the note's equations")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=PROBLEMS, help="of tests/reference")
    parser.add_argument("--out", type=Path, default=FIGURES)
    given = parser.parse_args()
    n = len(given.problems)
    header(
        "data", "prior", "program: bound", "iterations", "note's equations", "ours: bound", "iterations",
        "largest difference of a weight", "bound ever falls",
    )  # fmt: skip
    figure, axes = plt.subplots(2, n, figsize=(3.4 * n, 5.6), layout="constrained", squeeze=False)
    for row, ard in zip(axes, (False, True), strict=True):
        for ax, problem in zip(row, given.problems, strict=True):
            X, y = data(problem)
            theirs = recorded(problem, ard)
            model = VBLogisticRegression(ard=ard, a0=A0, b0=B0, fit_intercept=False, tol=1e-9, max_iter=20_000)
            model, _ = fitted(model, X, y)
            path, n_iter = np.asarray(model.evidence_path_), min(given.iterations, len(model.evidence_path_))
            bounds = note(X, y, ard, n_iter)
            title = "a precision for each weight" if ard else "one precision"
            falls = "yes" if (np.diff(path) < -1e-9 * np.abs(path).max()).any() else "no"
            difference = np.abs(model.coef_[0] - np.ravel(theirs["w"])).max()
            line(
                problem, title, f"{theirs['bound']:.6f}", theirs["iterations"], f"{bounds[-1]:.6f} ({n_iter})",
                f"{model.log_evidence_:.6f}", model.n_iter_, f"{difference:.1e}", falls,
            )  # fmt: skip
            ax.plot(np.arange(1, len(bounds) + 1), bounds, color=THEIRS, lw=3, alpha=0.6, label="the note's equations")
            ax.plot(np.arange(1, len(path) + 1), path, color=OURS, lw=1.2, label="ours")
            ax.axhline(theirs["bound"], color="0.3", ls="--", lw=0.8, label="end of the author's program")
            ax.set(xscale="log", title=f"{problem}, {title}")
            ax.title.set_fontsize(8)
            ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].legend(frameon=False, fontsize=7)
    axes[1, 0].set(xlabel="iteration", ylabel="bound (nats)")
    save(figure, given.out / "vb_logistic.png")
    row_by_row(given.problems)


if __name__ == "__main__":
    main()
