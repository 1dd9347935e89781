"""Ten true features among two thousand, two hundred samples: draws docs/figures/find_the_truth.png.

python examples/find_the_truth.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LassoCV

from sparsebayes import ARDRegressor

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 2000))
true = np.zeros(2000)
true[::200] = rng.uniform(0.5, 1.5, 10) * rng.choice([-1, 1], 10)
y = X @ true + rng.standard_normal(200)

model = ARDRegressor().fit(X, y)
lasso = LassoCV().fit(X, y)

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), sharex=True, sharey=True, layout="constrained")
ends = np.abs(model.coef_interval(0.95) - model.coef_[:, None]).T
for axis, coef, kept, title in (
    (
        axes[0],
        lasso.coef_,
        np.flatnonzero(lasso.coef_),
        f"lasso, cross-validated: {np.count_nonzero(lasso.coef_)} kept",
    ),
    (axes[1], model.coef_, model.active_, f"ARDRegressor: {len(model.active_)} claimed, with 95 % intervals"),
):
    axis.axhline(0, color="0.8", lw=1, zorder=0)
    axis.plot(np.flatnonzero(true), true[true != 0], "o", mfc="none", mec="#b5532a", ms=11, label="truth")
    error = ends[:, kept] if coef is model.coef_ else None
    axis.errorbar(kept, coef[kept], error, fmt=".", color="#0b6e4f", ms=7, capsize=3, label="estimate")
    axis.set(title=title, xlabel="feature")
    axis.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("weight")
axes[0].legend(frameon=False, loc="upper right")
target = Path(__file__).parents[1] / "docs" / "figures" / "find_the_truth.png"
figure.savefig(target, dpi=130)
print(f"wrote {target}")
