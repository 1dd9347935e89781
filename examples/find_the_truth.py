"""
Ten true features among two thousand
====================================

Two hundred rows, two thousand features, ten of which matter. The lasso predicts well here, but it keeps many features
that have no effect. :class:`~sparsebayes.ARDRegressor` claims the ten true features, and says how sure it is of each
weight.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LassoCV

from sparsebayes import ARDRegressor

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 2000))
true = np.zeros(2000)
true[::200] = rng.uniform(0.5, 1.5, 10) * rng.choice([-1, 1], 10)
y = X @ true + rng.standard_normal(200)

# %%
# The penalty of the lasso is chosen by cross-validation. ``ARDRegressor`` has no setting to choose: it averages over
# sets of features, each with its posterior probability.

model = ARDRegressor().fit(X, y)
lasso = LassoCV().fit(X, y)
kept = np.flatnonzero(lasso.coef_)
print(f"lasso keeps {len(kept)} features, ARDRegressor claims {len(model.active_)}")
print(f"all ten true ones: lasso {true[kept].astype(bool).sum() == 10}, ARDRegressor {true[model.active_].all()}")
assert model.active_.tolist() == np.flatnonzero(true).tolist()

# %%
# Nine of the ten 95 % intervals contain the true weight. The lasso shrinks all weights, so that its estimates are too
# small.

inside = (model.coef_interval(0.95)[:, 0] <= true) & (true <= model.coef_interval(0.95)[:, 1])
print(f"95 % intervals contain {inside[true != 0].sum()} of the ten true weights")
size, shrunk = np.abs(true[true != 0]).mean(), np.abs(lasso.coef_[true != 0]).mean()
print(f"mean size of the ten weights: true {size:.2f}, lasso {shrunk:.2f}")

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharex=True, sharey=True, layout="constrained")
ends = np.abs(model.coef_interval(0.95) - model.coef_[:, None]).T
for axis, coef, found, error, title in (
    (axes[0], lasso.coef_, kept, None, f"lasso, cross-validated: {len(kept)} kept"),
    (axes[1], model.coef_, model.active_, ends[:, model.active_], "ARDRegressor: 10 claimed, with 95 % intervals"),
):
    axis.axhline(0, color="0.8", lw=1, zorder=0)
    axis.plot(np.flatnonzero(true), true[true != 0], "o", mfc="none", mec="#d55e00", ms=11, label="truth")
    axis.errorbar(found, coef[found], error, fmt=".", color="#0072b2", ms=7, capsize=3, label="estimate")
    axis.set(title=title, xlabel="feature")
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set(ylabel="weight", ylim=(-2, 1.8))
axes[0].legend(frameon=False, loc="lower left", ncols=2)
plt.show()
