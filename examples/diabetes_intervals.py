"""
Intervals for patients
======================

How will a patient's diabetes progress within a year? Ten measurements tell part of it. An honest prediction is an
interval, and 90 % of new patients must lie in theirs.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from sparsebayes import ARDRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

# %%
# Half of the 442 patients train the model, the others test it. ``predict_interval`` covers three things: the noise,
# the uncertainty of the weights, and the uncertainty about which measurements matter.

model = ARDRegressor().fit(X_train, y_train)
mean, (low, high) = model.predict(X_test), model.predict_interval(X_test, coverage=0.9).T
inside = (low <= y_test) & (y_test <= high)
print("claimed:", ", ".join(X.columns[model.active_]))
print(f"{inside.mean():.1%} of {len(y_test)} new patients lie in their 90 % intervals")
print(f"median width {np.median(high - low):.0f}, standard deviation of the target {y.std():.0f}")
assert 0.85 < inside.mean() < 0.95

# %%
# The same at other levels: the share of new patients in the interval against its promised coverage.

levels = np.arange(0.05, 1, 0.05)
shares = []
for level in levels:
    ends = model.predict_interval(X_test, coverage=level)
    shares.append(np.mean((ends[:, 0] <= y_test) & (y_test <= ends[:, 1])))
print(f"largest distance from the promise: {np.abs(np.array(shares) - levels).max():.3f}")

# %%
# Left: every new patient, sorted by predicted progression. Right: coverage at all levels, with the band in which 95 %
# of well calibrated models would lie.

order = np.argsort(mean)
outside = ~inside.to_numpy()[order]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), width_ratios=(1.7, 1), layout="constrained")
rank, seen = np.arange(len(order)), y_test.to_numpy()[order]
left.vlines(rank, low[order], high[order], color="#56b4e9", lw=1.4, alpha=0.5, label="90 % interval")
left.plot(rank, mean[order], color="#0072b2", lw=2, label="prediction")
left.plot(rank[~outside], seen[~outside], ".", color="#222222", ms=4, label="observed, inside")
left.plot(rank[outside], seen[outside], "D", color="#d55e00", ms=5, label=f"observed, outside: {outside.sum()}")
left.set(xlabel="new patients, by prediction", ylabel="progression after a year", xlim=(-1, len(order)))
left.set_ylim(-60, 480)
left.legend(frameon=False, fontsize=9, ncols=2, loc="upper left")
reach = 1.96 * np.sqrt(levels * (1 - levels) / len(y_test))
right.fill_between(levels, levels - reach, levels + reach, color="#dddddd", lw=0)
right.plot([0, 1], [0, 1], color="#707070", lw=1)
right.plot(levels, shares, "o-", color="#0072b2", ms=4)
right.set(xlabel="promised coverage", ylabel="share of new patients inside", aspect="equal", xlim=(0, 1), ylim=(0, 1))
for axis in (left, right):
    axis.spines[["top", "right"]].set_visible(False)
plt.show()
