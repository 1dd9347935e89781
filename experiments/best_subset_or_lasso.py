"""The simulations of Bertsimas, King & Mazumder (2016) and Hastie, Tibshirani & Tibshirani (2020), ours among them.

    python experiments/best_subset_or_lasso.py [--settings low high-10] [--repeats 3] [--out docs/figures]

Five kinds of weights ("beta-types"), correlation 0.35^|i-j| of the columns, and signal-to-noise ratios from 0.05 to 6.
Lasso, relaxed lasso and best subset (abess) are tuned on as many validation rows, as in the paper. Ours has nothing to
tune and is fitted to training and validation rows; a second entry gets the training rows only. Measured: test error
over the noise variance, the number of weights, and F1 of the support. The paper: neither best subset nor lasso is
better everywhere; lasso wins at low signal-to-noise ratios, best subset at high ones, and the relaxed lasso is nearly
as good as the better of the two. The lines below the table check each of these claims.
"""

import argparse
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from abess import LinearRegression
from common import FIGURES, FOURTH, OURS, THEIRS, THIRD, fitted, header, line, save
from designs import autoregressive
from matplotlib import pyplot as plt
from problems import support_f1
from sklearn.linear_model import lasso_path

from sparsebayes import ARDRegressor


class Setting(NamedTuple):
    """Rows, columns, true weights and the largest subset that is tried."""

    n: int
    p: int
    s: int
    largest: int


SETTINGS = {
    "low": Setting(100, 10, 5, 10),
    "medium": Setting(500, 100, 5, 50),
    "high-5": Setting(50, 1000, 5, 25),
    "high-10": Setting(100, 1000, 10, 50),
}
SNRS = (0.05, 0.14, 0.42, 1.22, 3.52, 6.0)
"""Every other one of the paper's ten values, which are equally spaced in the logarithm, and the last."""
RHO = 0.35
N_PENALTIES, BLENDS = 50, np.linspace(0, 1, 10)
COLOURS = {
    "ours": OURS,
    "ours, one model": "#56B4E9",
    "ours, half of the rows": "0.5",
    "lasso": THEIRS,
    "relaxed lasso": THIRD,
    "best subset": FOURTH,
}


def weights(kind: int, p: int, s: int) -> np.ndarray:
    """Beta-types 1 to 5; the second paper leaves out the fourth."""
    w = np.zeros(p)
    if kind == 1:
        w[np.round(np.linspace(0, p - 1, s)).astype(int)] = 1  # equally spaced
    elif kind == 2:
        w[:s] = 1
    elif kind == 3:
        w[:s] = np.linspace(10, 0.5, s)
    elif kind == 4:
        w[:6] = [-10, -6, -2, 2, 6, 10]
    else:
        w[:s] = 1
        w[s:] = 0.5 ** np.arange(1, p - s + 1)  # weak sparsity
    return w


@cache
def covariance(p: int) -> np.ndarray:
    """Of the columns."""
    return RHO ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))


def draw(setting: Setting, kind: int, snr: float, seed: int) -> tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray]:
    """Training and validation rows, and the true weights scaled to noise of variance one."""
    rng, w = np.random.default_rng([seed, setting.n, setting.p, kind, int(100 * snr)]), weights(kind, *setting[1:3])
    w *= np.sqrt(snr / (w @ covariance(setting.p) @ w))
    parts = []
    for _ in range(2):
        X = autoregressive(RHO)(rng, setting.n, setting.p)
        parts.append((X, X @ w + rng.standard_normal(setting.n)))
    return parts, w


def best_on(validation: tuple[np.ndarray, np.ndarray], candidates: np.ndarray) -> np.ndarray:
    """The column of weights with the smallest validation error."""
    X, y = validation
    return candidates[:, np.argmin(np.square(y[:, None] - X @ candidates).sum(axis=0))]


def lasso_and_relaxed(train: tuple[np.ndarray, np.ndarray], validation: tuple[np.ndarray, np.ndarray]) -> dict:
    """Both tuned on the validation rows; the relaxed lasso blends each lasso with least squares on its columns."""
    X, y = train
    penalties = np.abs(X.T @ y).max() / len(y) * np.geomspace(1, 1e-3, N_PENALTIES)
    _, path, _ = lasso_path(X, y, alphas=penalties)
    blended = []
    for w in path.T:
        active, refit = np.flatnonzero(w), np.zeros_like(w)
        if 0 < len(active) < len(y):
            refit[active] = np.linalg.lstsq(X[:, active], y, rcond=None)[0]
        else:
            refit = w
        blended += [share * w + (1 - share) * refit for share in BLENDS]
    return {"lasso": best_on(validation, path), "relaxed lasso": best_on(validation, np.array(blended).T)}


def best_subset(
    train: tuple[np.ndarray, np.ndarray], validation: tuple[np.ndarray, np.ndarray], largest: int
) -> np.ndarray:
    """Subsets of every size by abess, the size by validation."""
    X, y = train
    sizes = range(largest + 1)
    found = [np.ravel(LinearRegression(support_size=[k], fit_intercept=False).fit(X, y).coef_) for k in sizes]
    return best_on(validation, np.array(found).T)


def all_methods(
    setting: Setting, parts: list[tuple[np.ndarray, np.ndarray]]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Weights of every method, and the columns that it claims."""
    train, validation = parts
    both = tuple(np.concatenate(pair) for pair in zip(train, validation, strict=True))
    averaged, half = (fitted(ARDRegressor(fit_intercept=False), *rows)[0] for rows in (both, train))
    single, _ = fitted(ARDRegressor(fit_intercept=False, average=False), *both)
    found = {"ours": averaged.coef_, "ours, one model": single.coef_, "ours, half of the rows": half.coef_}
    found |= lasso_and_relaxed(train, validation)
    found["best subset"] = best_subset(train, validation, setting.largest)
    claims = {name: np.flatnonzero(w) for name, w in found.items()}
    claims |= {"ours": averaged.active_, "ours, half of the rows": half.active_}
    return {name: (w, claims[name]) for name, w in found.items()}


def judged(w: np.ndarray, claim: np.ndarray, true: np.ndarray, p: int) -> tuple[float, int, float]:
    """Test error over the noise variance (exactly, from the weights), weights claimed, F1 of the support."""
    off = w - true
    large = np.flatnonzero(np.abs(true) > 0.1 * np.abs(true).max())  # weak weights of beta-type 5 are not counted
    return 1 + float(off @ covariance(p) @ off), len(claim), support_f1(claim, large)


def simulate(name: str, kinds: list[int], repeats: int) -> dict[tuple[int, float, str], np.ndarray]:
    """Means by beta-type, signal-to-noise ratio and method."""
    setting, found = SETTINGS[name], {}
    for kind in kinds:
        for snr in SNRS:
            scores: dict[str, list] = {}
            for seed in range(repeats):
                parts, w = draw(setting, kind, snr, seed)
                for method, (got, claim) in all_methods(setting, parts).items():
                    scores.setdefault(method, []).append(judged(got, claim, w, setting.p))
            for method, rows in scores.items():
                found[kind, snr, method] = np.mean(rows, axis=0)
            errors = [f"{found[kind, snr, method][0]:.3f} ({found[kind, snr, method][1]:.0f})" for method in COLOURS]
            line(name, kind, snr, *errors)
    return found


def check(name: str, found: dict[tuple[int, float, str], np.ndarray], kinds: list[int]) -> None:
    """Each claim of the paper, and where ours is."""
    error = {method: np.array([[found[kind, snr, method][0] for snr in SNRS] for kind in kinds]) for method in COLOURS}
    lower = (error["lasso"] < error["best subset"]).mean(axis=0)
    print(f"{name}: lasso is better than best subset in " + ", ".join(
        f"{share:.0%} (SNR {snr})" for share, snr in zip(lower, SNRS, strict=True)
    ))  # fmt: skip
    better = np.minimum(error["lasso"], error["best subset"])
    for method in ("relaxed lasso", "ours", "ours, one model", "ours, half of the rows"):
        excess = error[method] / better - 1
        print(
            f"{name}: {method} against the better of lasso and best subset: {excess.mean():+.1%} on average, "
            f"{excess.max():+.1%} at worst"
        )
    f1 = {m: np.mean([found[kind, snr, m][2] for kind in kinds for snr in SNRS]) for m in COLOURS}
    print(f"{name}: mean F1 of the support " + ", ".join(f"{value:.2f} ({method})" for method, value in f1.items()))


def figure_of(found: dict[str, dict], kinds: list[int], path: Path) -> None:
    """Error against the signal-to-noise ratio, mean over the beta-types."""
    figure, axes = plt.subplots(1, len(found), figsize=(4 * len(found), 3.6), layout="constrained", squeeze=False)
    for ax, (name, results) in zip(axes[0], found.items(), strict=True):
        for method, colour in COLOURS.items():
            means = [np.mean([results[kind, snr, method][0] for kind in kinds]) for snr in SNRS]
            ax.plot(SNRS, means, "o-", color=colour, label=method, ms=4)
        ax.set(xscale="log", xlabel="signal-to-noise ratio", title=f"{name}: {SETTINGS[name].n}×{SETTINGS[name].p}")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("test error ÷ noise variance")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=6, frameon=False)
    save(figure, path)
    plt.close(figure)


def main() -> None:
    """Print the table and the claims, and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--kinds", nargs="+", type=int, choices=range(1, 6), default=[1, 2, 3, 5], help="beta-types")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=FIGURES)
    given = parser.parse_args()
    header("setting", "beta-type", "SNR", *(f"{method}: error (weights)" for method in COLOURS))
    found = {name: simulate(name, given.kinds, given.repeats) for name in given.settings}
    for name, results in found.items():
        check(name, results, given.kinds)
    figure_of(found, given.kinds, given.out / "best_subset_or_lasso.png")


if __name__ == "__main__":
    main()
