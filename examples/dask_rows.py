"""
Rows on a cluster: Dask
=======================

``fit`` accepts Dask arrays. Each block of rows becomes one task, which returns a small matrix of sums; the rows stay
where they are. The answer is that of the same rows in memory.
"""

import dask
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np

from sparsebayes import SparseLogisticRegression

# %%
# A lazy array of 200,000 rows in 20 blocks. Nothing is computed yet. On a cluster the blocks would be files or
# partitions; here they are drawn at random when they are needed, and this machine computes them one after the other.

dask.config.set(scheduler="synchronous")
n, d = 200_000, 30
X = da.random.default_rng(0).standard_normal((n, d), chunks=(n // 20, d))
w = np.zeros(d)
w[::3] = 0.5 * 0.5 ** np.arange(10)
y = (X @ w + da.random.default_rng(1).logistic(size=n, chunks=n // 20)) > 0
print(f"{X.npartitions} blocks of {X.chunks[0][0]:,} rows, {X.nbytes / 1e6:.0f} MB in all")

# %%
# The model of all rows, and for comparison that of the first block alone.

model = SparseLogisticRegression(average=False).fit(X, y)
part = SparseLogisticRegression(average=False).fit(X.blocks[0].compute(), y.blocks[0].compute())
for name, each in (("all blocks", model), ("one block", part)):
    found = np.isin(each.active_, np.flatnonzero(w))
    print(f"{name:11} {found.sum()} of 10 effects found, {np.sum(~found)} other features kept")

# %%
# The same rows in memory give the same weights.

memory = SparseLogisticRegression(average=False).fit(*dask.compute(X, y))
print(f"largest difference of a weight: {np.abs(memory.coef_ - model.coef_).max():.1e}")
assert np.allclose(memory.coef_, model.coef_, atol=1e-6)

# %%
# Predictions of Dask arrays are lazy Dask arrays. Here one number is computed from them: the accuracy.

lazy = model.predict(X)
print(f"{lazy.npartitions} lazy blocks, accuracy {(lazy == y).mean().compute():.3f}")

# %%
# Effects halve from one to the next. Twenty times the rows show effects that are about four times smaller.

figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharex=True, sharey=True, layout="constrained")
for axis, each, title in ((axes[0], part, "one block: 10,000 rows"), (axes[1], model, "20 blocks: 200,000 rows")):
    kept = each.active_
    reach = 2 * np.sqrt(np.diag(each.covariance_))
    axis.plot(np.flatnonzero(w), w[w > 0], "o", mfc="none", mec="#d55e00", ms=10, mew=1.5, label="true effects")
    bars = {"fmt": "s", "color": "#0072b2", "ms": 4, "lw": 1.5, "capsize": 3}
    axis.errorbar(kept, each.coef_[0, kept], reach, label=f"kept: {len(kept)}, ±2 standard deviations", **bars)
    axis.set_title(title, fontsize=11, loc="left")
    axis.set(xlabel="feature", yscale="log", ylim=(5e-4, 1))
    axis.legend(frameon=False, fontsize=9, loc="lower left")
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("weight")
plt.show()
