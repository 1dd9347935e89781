"""Error bars of a relevance vector machine away from its data: draws docs/figures/far_variance.png.

python examples/far_variance.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from sparsebayes import RVMRegressor

rng = np.random.default_rng(4)
X = np.concatenate([rng.uniform(-10, -2, 50), rng.uniform(3, 8, 30)])[:, None]
y = np.sinc(X[:, 0] / np.pi) + 0.05 * rng.standard_normal(len(X))
grid = np.linspace(-18, 18, 721)[:, None]

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True, layout="constrained")
titles = {"none": 'far_variance="none": sure of itself where it knows nothing', "augment": 'far_variance="augment"'}
for axis, (far_variance, title) in zip(axes, titles.items(), strict=True):
    model = RVMRegressor(gamma=0.15, standardize=False, vectors="sparse", far_variance=far_variance).fit(X, y)
    mean, std = model.predict(grid, return_std=True)
    x = grid[:, 0]
    band = {"color": "#9ecae1", "alpha": 0.6, "lw": 0, "label": "±2 standard deviations"}
    axis.fill_between(x, mean - 2 * std, mean + 2 * std, **band)
    axis.plot(x, np.sinc(x / np.pi), color="#555555", lw=1, ls="--", label="truth")
    axis.plot(x, mean, color="#08519c", lw=1.8, label="predicted mean")
    axis.plot(X[:, 0], y, ".", color="#333333", ms=4, label=f"{len(X)} observations")
    vectors = model.relevance_vectors_
    axis.plot(vectors[:, 0], model.predict(vectors), "o", mfc="none", mec="#cb181d", ms=9, label="relevance vectors")
    axis.set_title(title, fontsize=11)
    axis.set_xlabel("x")
axes[0].set_ylabel("y")
axes[0].legend(fontsize=8, loc="upper left", frameon=False)
figure.savefig(Path(__file__).parents[1] / "docs" / "figures" / "far_variance.png", dpi=120)
