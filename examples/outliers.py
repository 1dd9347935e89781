"""Gross outliers in the target, with Gaussian and with Student noise: draws docs/figures/outliers.png.

python examples/outliers.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from sparsebayes import ARDRegressor

rng = np.random.default_rng(0)
n, d, shares = 200, 500, np.arange(0, 0.31, 0.05)
X = rng.standard_normal((n, d))
weights = np.array([1.5, -1.2, 1.0, 0.8, -0.6])
clean = X[:, :5] @ weights + 0.5 * rng.standard_normal(n)
order, jump = rng.permutation(n), rng.choice([-1, 1], n) * rng.uniform(5, 20, n)


def spoiled(share):
    """The target with this share of its rows moved far away, and which rows these are."""
    bad = order[: round(share * n)]
    y = clean.copy()
    y[bad] += jump[bad]
    return y, np.isin(np.arange(n), bad)


def fitted(noise, share):
    return ARDRegressor(noise=noise).fit(X, spoiled(share)[0])


def error(model):
    return np.sqrt(np.sum((model.coef_[:5] - weights) ** 2) + np.sum(model.coef_[5:] ** 2))


figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
styles = {"gaussian": ("#cb181d", "s--"), "student": ("#08519c", "o-")}
for noise, (colour, style) in styles.items():
    models = [fitted(noise, share) for share in shares]
    left.plot(100 * shares, [error(model) for model in models], style, color=colour, ms=5, label=f'noise="{noise}"')
    for share, model in zip(shares, models, strict=True):
        hits = np.isin(np.arange(5), model.active_).sum()
        place = (100 * share, error(model))
        left.annotate(
            f"{hits}", place, xytext=(0, 6), textcoords="offset points", ha="center", fontsize=8, color=colour
        )
left.set_xlabel("rows with an outlier, %")
left.set_ylabel("error of the weights (Euclidean)")
left.set_title("numbers: how many of the five true features are kept", fontsize=11)
left.legend(fontsize=9, frameon=False)
left.set_ylim(-0.1, 2.8)

y, bad = spoiled(0.15)
model = ARDRegressor(noise="student").fit(X, y)
residual = y - model.predict(X)
for rows, colour, name in ((~bad, "#08519c", "other rows"), (bad, "#cb181d", "outliers")):
    right.plot(residual[rows], model.outlier_weight_[rows], ".", color=colour, ms=6, label=name)
right.set_xlabel("residual")
right.set_ylabel("outlier_weight_")
right.set_title(f"15 % outliers: ν = {model.noise_freedom_:.1f} is learned", fontsize=11)
right.legend(fontsize=9, frameon=False)
figure.savefig(Path(__file__).parents[1] / "docs" / "figures" / "outliers.png", dpi=110)
