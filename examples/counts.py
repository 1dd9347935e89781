"""Counts with a log link: which features matter, and intervals of new counts. Draws docs/figures/counts.png.

python examples/counts.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import PoissonRegressor
from sklearn.model_selection import GridSearchCV

from sparsebayes import SparsePoissonRegressor

rng = np.random.default_rng(2)
n, d = 200, 100
X = rng.standard_normal((n, d))
true = {3: 0.6, 20: -0.5, 41: 0.4, 77: -0.3}
weights = np.zeros(d)
weights[list(true)] = list(true.values())
hours = rng.uniform(0.5, 4, n)
y = rng.poisson(hours * np.exp(0.8 + X @ weights))

model = SparsePoissonRegressor().fit(X, y, exposure=hours)
peer = GridSearchCV(PoissonRegressor(max_iter=1000), {"alpha": 10.0 ** np.arange(-4, 2)})
peer.fit(X, y / hours, sample_weight=hours)  # scikit-learn's way to give an exposure

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.axhline(0, color="#999999", lw=0.8)
left.plot(peer.best_estimator_.coef_, ".", color="#e6550d", ms=5, label=f"PoissonRegressor, CV: {d} weights")
std = 2 * np.sqrt(np.diag(model.covariance_))
kept = model.active_
label = f"SparsePoissonRegressor: {len(kept)} weights, ±2 sd"
left.errorbar(kept, model.coef_[kept], std, fmt="o", color="#08519c", ms=5, lw=1.5, label=label)
left.plot(list(true), list(true.values()), "x", color="#333333", ms=8, label="truth")
left.set_xlabel("feature")
left.set_ylabel("weight (change of the log rate)")
left.set_title(f"{n} rows, {d} features, four of which matter", fontsize=11)
left.legend(fontsize=8, frameon=False, loc="upper right")
left.set_ylim(-0.8, 1.1)

feature = 3
grid = np.zeros((200, d))
grid[:, feature] = np.linspace(-3, 3, 200)
x = grid[:, feature]
low, high = model.predict_interval(grid, coverage=0.9).T
right.fill_between(x, low, high, step="mid", color="#9ecae1", alpha=0.6, lw=0, label="90 % interval of new counts")
right.plot(x, np.exp(0.8 + true[feature] * x), color="#333333", lw=1, ls="--", label="true rate")
right.plot(x, model.predict(grid), color="#08519c", lw=1.8, label="predicted rate")
right.set_xlabel(f"feature {feature}, the others at zero")
right.set_ylabel("counts per hour")
right.set_title("intervals are whole numbers", fontsize=11)
right.legend(fontsize=8, frameon=False, loc="upper left")
figure.savefig(Path(__file__).parents[1] / "docs" / "figures" / "counts.png", dpi=110)
print(f"kept {kept.tolist()}, dispersion {model.dispersion_:.2f}")
