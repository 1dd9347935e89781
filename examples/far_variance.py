"""
Error bars away from the data
=============================

The basis functions of a relevance vector machine fall to zero away from its vectors, and so does its uncertainty:
where there are no data, the model is surest of itself. ``far_variance="augment"`` corrects this.
"""

import matplotlib.pyplot as plt
import numpy as np

from sparsebayes import RVMRegressor

# %%
# Eighty noisy observations of sin(x)/x, with a gap between -2 and 3 and nothing beyond -10 and 8.

rng = np.random.default_rng(4)
X = np.concatenate([rng.uniform(-10, -2, 50), rng.uniform(3, 8, 30)])[:, None]
y = np.sinc(X[:, 0] / np.pi) + 0.05 * rng.standard_normal(len(X))
grid = np.linspace(-18, 18, 721)[:, None]
x = grid[:, 0]

# %%
# With ``"augment"``, each new point gets a basis function of its own, with the prior variance that the data support.
# Near the data this adds almost nothing. Far away it adds the full prior variance. The mean does not change.

models = {
    word: RVMRegressor(gamma=0.15, standardize=False, vectors="sparse", far_variance=word).fit(X, y)
    for word in ("none", "augment")
}
for word, model in models.items():
    std = model.predict([[-6.0], [0.5], [16.0]], return_std=True)[1]
    places = f"{std[0]:.2f} in the data, {std[1]:.2f} in the gap, {std[2]:.2f} far out"
    print(f"far_variance={word!r:9}: standard deviation {places}")
print(f"standard deviation of the target: {y.std():.2f}")

# %%
# Far out, the corrected band opens to the spread of the target. In the gap it is wider too. The peak lies outside of
# both bands: these data do not show it, and error bars cannot replace data.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
titles = {"none": 'far_variance="none": sure of itself where it knows nothing', "augment": 'far_variance="augment"'}
for axis, (word, model) in zip(axes, models.items(), strict=True):
    mean, std = model.predict(grid, return_std=True)
    band = {"color": "#56b4e9", "alpha": 0.4, "lw": 0, "label": "±2 standard deviations"}
    axis.fill_between(x, mean - 2 * std, mean + 2 * std, **band)
    axis.plot(x, np.sinc(x / np.pi), color="#707070", lw=1, ls="--", label="truth")
    axis.plot(x, mean, color="#0072b2", lw=1.8, label="predicted mean")
    axis.plot(X[:, 0], y, ".", color="#222222", ms=4, label=f"{len(X)} observations")
    vectors = model.relevance_vectors_
    axis.plot(vectors[:, 0], model.predict(vectors), "o", mfc="none", mec="#d55e00", ms=9, label="relevance vectors")
    axis.set_title(titles[word], fontsize=11)
    axis.set_xlabel("x")
axes[0].set_ylabel("y")
axes[0].legend(fontsize=8, loc="upper left", frameon=False)
plt.show()
