"""
Counts: which features drive a rate?
====================================

A detector counts events. The rate depends on a few of 100 settings, and each count was taken over a different number
of hours. :class:`~sparsebayes.SparsePoissonRegressor` finds the settings that matter, and gives intervals for new
counts.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import PoissonRegressor
from sklearn.model_selection import GridSearchCV

from sparsebayes import SparsePoissonRegressor

# %%
# Two hundred counts. Four of the hundred features change the logarithm of the hourly rate. The hours are the
# *exposure*: twice the hours, twice the expected count.

rng = np.random.default_rng(2)
n, d = 200, 100
X = rng.standard_normal((n, d))
true = {3: 0.6, 20: -0.5, 41: 0.4, 77: -0.3}
weights = np.zeros(d)
weights[list(true)] = list(true.values())
hours = rng.uniform(0.5, 4, n)
y = rng.poisson(hours * np.exp(0.8 + X @ weights))

# %%
# We fit our model and scikit-learn's ridge-penalised Poisson regression, whose penalty is chosen by cross-validation.
# Our model needs no cross-validation.

model = SparsePoissonRegressor().fit(X, y, exposure=hours)
peer = GridSearchCV(PoissonRegressor(solver="newton-cholesky"), {"alpha": 10.0 ** np.arange(-4, 2)})
peer.fit(X, y / hours, sample_weight=hours)  # scikit-learn's way to give an exposure
kept = model.active_
print(f"kept {kept.tolist()}, dispersion {model.dispersion_:.2f}")
assert kept.tolist() == list(true)

# %%
# The sparse model keeps exactly the four true features (left). Its intervals of new counts end at whole numbers,
# because counts are whole numbers (right).

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.axhline(0, color="#999999", lw=0.8)
left.plot(peer.best_estimator_.coef_, ".", color="#d55e00", ms=5, label=f"PoissonRegressor, CV: {d} weights")
std = 2 * np.sqrt(np.diag(model.covariance_))
label = f"SparsePoissonRegressor: {len(kept)} weights, ±2 sd"
left.errorbar(kept, model.coef_[kept], std, fmt="o", color="#0072b2", ms=5, lw=1.5, label=label)
left.plot(list(true), list(true.values()), "x", color="#222222", ms=8, label="truth")
left.set(xlabel="feature", ylabel="weight (change of the log rate)", ylim=(-0.8, 1.1))
left.set_title(f"{n} rows, {d} features, four of which matter", fontsize=11)
left.legend(fontsize=8, frameon=False, loc="upper right")

feature = 3
grid = np.zeros((200, d))
grid[:, feature] = np.linspace(-3, 3, 200)
x = grid[:, feature]
low, high = model.predict_interval(grid, coverage=0.9).T
right.fill_between(x, low, high, step="mid", color="#56b4e9", alpha=0.4, lw=0, label="90 % interval of new counts")
right.plot(x, np.exp(0.8 + true[feature] * x), color="#222222", lw=1, ls="--", label="true rate")
right.plot(x, model.predict(grid), color="#0072b2", lw=1.8, label="predicted rate")
right.set(xlabel=f"feature {feature}, the others at zero", ylabel="counts per hour")
right.set_title("intervals are whole numbers", fontsize=11)
right.legend(fontsize=8, frameon=False, loc="upper left")
plt.show()
