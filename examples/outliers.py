"""
Outliers in the target
======================

Two hundred rows, five hundred features, five of which matter, and a growing share of rows whose target is grossly
wrong. With Gaussian noise each outlier pulls at the fit. With Student noise (``noise="student"``) outliers hardly
count.
"""

import matplotlib.pyplot as plt
import numpy as np

from sparsebayes import ARDRegressor

rng = np.random.default_rng(0)
n, d, shares = 200, 500, np.arange(0, 0.31, 0.05)
X = rng.standard_normal((n, d))
weights = np.array([1.5, -1.2, 1.0, 0.8, -0.6])
clean = X[:, :5] @ weights + 0.5 * rng.standard_normal(n)

# %%
# Each outlier is moved up or down by 10 to 40 standard deviations of the noise.

order, jump = rng.permutation(n), rng.choice([-1, 1], n) * rng.uniform(5, 20, n)


def spoiled(share):
    """The target with this share of its rows moved far away, and which rows these are."""
    bad = order[: round(share * n)]
    y = clean.copy()
    y[bad] += jump[bad]
    return y, np.isin(np.arange(n), bad)


def error(model):
    """Euclidean distance of the weights from the truth."""
    return np.sqrt(np.sum((model.coef_[:5] - weights) ** 2) + np.sum(model.coef_[5:] ** 2))


# %%
# We fit a single model with each kind of noise to each share of outliers. The tails of the Student distribution are
# learned from the data.

targets = [spoiled(share)[0] for share in shares]
models = {
    noise: [ARDRegressor(noise=noise, average=False).fit(X, y) for y in targets] for noise in ("gaussian", "student")
}
for noise, fits in models.items():
    hits = [int(np.isin(np.arange(5), model.active_).sum()) for model in fits]
    print(f"{noise:8}: true features kept {hits}, error {error(fits[0]):.2f} to {error(fits[-1]):.2f}")

# %%
# Left: with Student noise the error of the weights hardly grows. Right: ``outlier_weight_`` is the weight with which
# each row counts. It is near zero for the outliers.

y, bad = spoiled(0.15)
student = models["student"][3]
weight = student.outlier_weight_
print(f"weight of outliers: at most {weight[bad].max():.2f}; median of the other rows: {np.median(weight[~bad]):.2f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for (noise, fits), colour, style in zip(models.items(), ("#d55e00", "#0072b2"), ("s--", "o-"), strict=True):
    errors = [error(model) for model in fits]
    left.plot(100 * shares, errors, style, color=colour, ms=5, label=f'noise="{noise}"')
    for share, at, model in zip(shares, errors, fits, strict=True):
        hits = np.isin(np.arange(5), model.active_).sum()
        beside = {"xytext": (0, 6), "textcoords": "offset points", "ha": "center", "fontsize": 8, "color": colour}
        left.annotate(f"{hits}", (100 * share, at), **beside)
left.set(xlabel="rows with an outlier, %", ylabel="error of the weights (Euclidean)", ylim=(-0.1, 2.8))
left.set_title("numbers: how many of the five true features are kept", fontsize=11)
left.legend(fontsize=9, frameon=False)
residual = y - student.predict(X)
for rows, colour, marker, name in ((~bad, "#0072b2", "o", "other rows"), (bad, "#d55e00", "s", "outliers")):
    right.plot(residual[rows], weight[rows], marker, color=colour, ms=4, alpha=0.7, label=name)
right.set(xlabel="residual", ylabel="outlier_weight_")
right.set_title(f"15 % outliers: ν = {student.noise_freedom_:.1f} is learned", fontsize=11)
right.legend(fontsize=9, frameon=False)
plt.show()
