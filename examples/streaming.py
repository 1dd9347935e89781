"""
Rows that keep coming
=====================

Sensor readings, sales, patients: rows arrive in batches, and nobody wants to keep them all. A linear model with
Gaussian noise needs only the *moments* of its rows: their number, means and scatter matrix. Moments of batches add
up, and the model fitted to them is the model of all rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from sparsebayes import ARDRegressor, Moments

# %%
# Twenty features and 20,000 rows. Six effects, from strong to weak.

rng = np.random.default_rng(0)
w = np.zeros(20)
w[:6] = 1.0, -0.5, 0.25, -0.12, 0.06, -0.03
X = rng.standard_normal((20_000, 20))
y = X @ w + rng.standard_normal(20_000)

# %%
# Each batch is added to the moments and forgotten. From time to time we ask for the model of all rows so far.

ends = np.unique(np.geomspace(30, 20_000, 22).astype(int))
moments, seen, models = None, 0, []
for end in ends:
    batch = Moments.of(X[seen:end], y[seen:end])
    moments = batch if moments is None else moments + batch
    models.append(ARDRegressor().fit_moments(moments))
    seen = end
claimed = [len(model.active_) for model in models]
print("claimed features:", dict(zip(ends.tolist(), claimed, strict=True)))
assert claimed[-1] == 6

# %%
# Nothing is lost: the last model is that of all rows in memory.

whole = ARDRegressor().fit(X, y)
print(f"largest difference of a weight: {np.abs(whole.coef_ - models[-1].coef_).max():.1e}")
assert np.allclose(whole.coef_, models[-1].coef_, atol=1e-8)

# %%
# Left: 90 % intervals close as rows come in. Right: the weaker an effect, the more rows it takes to be sure of it.
# The other fourteen features (grey) are never claimed.

never = np.array([model.inclusion_probability_[6:].max() for model in models])
print(f"largest probability of a feature without effect: {never.max():.2f}")
assert never.max() < 0.9

colours = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#222222")
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
interval = np.array([model.coef_interval(0.9) for model in models])
inclusion = np.array([model.inclusion_probability_ for model in models])
right.plot(ends, inclusion[:, 6:], color="#bbbbbb", lw=0.8)
for j, (colour, marker) in enumerate(zip(colours, "osD^vP", strict=True)):
    left.fill_between(ends, *interval[:, j].T, color=colour, alpha=0.25, lw=0)
    left.plot(ends, [model.coef_[j] for model in models], color=colour, lw=1.5)
    left.axhline(w[j], color=colour, lw=1, ls="--")
    right.plot(ends, inclusion[:, j], marker=marker, color=colour, ms=4, lw=1.5, label=f"effect {w[j]:g}")
left.set(xlabel="rows seen", ylabel="weight (dashed: truth)", ylim=(-0.9, 1.4))
right.set(xlabel="rows seen", ylabel="inclusion probability", ylim=(-0.02, 1.3))
right.set_yticks(np.linspace(0, 1, 6))
right.legend(frameon=False, fontsize=9, ncols=3, loc="upper left")
for axis in (left, right):
    axis.set_xscale("log")
    axis.set_xlim(ends[0], ends[-1])
    axis.spines[["top", "right"]].set_visible(False)
plt.show()
