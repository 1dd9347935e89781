"""
A noisy curve, with a band
==========================

The first example of most papers on relevance vector machines: sin(x)/x from noisy observations. The model chooses the
width of its kernel, its noise and a handful of *relevance vectors* by itself. Its band says where new observations
will lie.
"""

import matplotlib.pyplot as plt
import numpy as np

from sparsebayes import RVMRegressor

# %%
# One hundred observations with noise of standard deviation 0.1.


def truth(x):
    """sin(x)/x."""
    return np.sinc(x / np.pi)


rng = np.random.default_rng(1)
X = rng.uniform(-10, 10, (100, 1))
y = truth(X[:, 0]) + 0.1 * rng.standard_normal(100)

# %%
# There is nothing to tune. ``vectors="sparse"`` asks for few vectors; the default would also consider a Gaussian
# process.

model = RVMRegressor(vectors="sparse").fit(X, y)
vectors = model.relevance_vectors_
print(f"{len(vectors)} relevance vectors of {len(X)} rows, noise {np.sqrt(model.noise_variance_):.3f} (true: 0.1)")

# %%
# Does the band keep its promise? Of 10,000 new observations, nine of ten should lie in their 90 % intervals.

new = rng.uniform(-10, 10, (10_000, 1))
y_new = truth(new[:, 0]) + 0.1 * rng.standard_normal(len(new))
low, high = model.predict_interval(new, coverage=0.9).T
coverage = np.mean((low <= y_new) & (y_new <= high))
error = np.sqrt(np.mean((model.predict(new) - truth(new[:, 0])) ** 2))
print(f"{coverage:.1%} of new observations lie in the 90 % band; error of the curve {error:.3f}")
assert 0.86 < coverage < 0.94

# %%
# The dark band is the uncertainty of the curve itself. The pale band also contains the noise.

grid = np.linspace(-10, 10, 500)[:, None]
x = grid[:, 0]
mean, std = model.predict(grid, return_std=True)
curve = 1.645 * np.sqrt(std**2 - model.noise_variance_)
low, high = model.predict_interval(grid, coverage=0.9).T

figure, axis = plt.subplots(figsize=(8, 4.6), layout="constrained")
axis.fill_between(x, low, high, color="#56b4e9", alpha=0.25, lw=0, label="90 % of new observations")
axis.fill_between(x, mean - curve, mean + curve, color="#0072b2", alpha=0.35, lw=0, label="90 % band of the curve")
axis.plot(x, truth(x), "--", color="#222222", lw=1.2, label="truth")
axis.plot(x, mean, color="#0072b2", lw=2, label="predicted mean")
axis.plot(X[:, 0], y, ".", color="#707070", ms=5, label=f"{len(X)} observations")
ring = {"mfc": "none", "mec": "#d55e00", "ms": 11, "mew": 1.8, "ls": "none"}
axis.plot(vectors[:, 0], model.predict(vectors), "o", label=f"{len(vectors)} relevance vectors", **ring)
axis.set(xlabel="x", ylabel="y", xlim=(-10, 10))
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, ncols=2, fontsize=9, loc="upper left")
axis.set_ylim(-0.65, 1.75)
plt.show()
