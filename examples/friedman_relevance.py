"""
Which inputs does a curved function use?
========================================

Friedman's first function has ten inputs and uses five of them, in a sine, a square and two lines. A linear model
cannot see the square. :class:`~sparsebayes.DRVMRegressor` gives every input a weight inside its kernel, and drops
inputs whose weight the data do not support.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1

from sparsebayes import ARDRegressor, DRVMRegressor, RVMRegressor

X, y = make_friedman1(n_samples=150, n_features=10, noise=1.0, random_state=0)
new, y_new = make_friedman1(n_samples=2000, n_features=10, noise=0.0, random_state=1)

# %%
# Three models: linear, a kernel with one width for all inputs, and a kernel with a weight for each input.

models = {
    "linear": ARDRegressor().fit(X, y),
    "one width": RVMRegressor().fit(X, y),
    "a weight for each input": DRVMRegressor(random_state=0).fit(X, y),
}
error = {name: np.sqrt(np.mean((model.predict(new) - y_new) ** 2)) for name, model in models.items()}
for name, value in error.items():
    print(f"{name:24} error {value:.2f}")
assert min(error, key=error.get) == "a weight for each input"

# %%
# The weights of the five inputs that matter are positive; the other five are exactly zero. The linear model misses
# input 2, whose effect 20 (x - ½)² goes down and up again. It also claims an input that has no effect: its
# probabilities assume that a linear model is right, and here it is not.

weights = models["a weight for each input"].feature_weights_
claimed = models["linear"].active_.tolist()
print("inputs kept:", np.flatnonzero(weights).tolist(), "- claimed by the linear model:", claimed)
assert np.flatnonzero(weights).tolist() == [0, 1, 2, 3, 4]
assert 2 not in claimed

# %%
# Left: the weight of each input in the kernel, for inputs of standard deviation one. The more a function bends along
# an input, the larger the weight; straight lines need little. Right: predictions for new rows against the true
# function.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
scaled = weights * X.var(axis=0)
terms = ["10 sin(π x₀ x₁)", "10 sin(π x₀ x₁)", "20 (x₂ - ½)²", "10 x₃", "5 x₄"]
least = scaled[scaled > 0].min() / 5
left.hlines(range(5), least, scaled[:5], color="#0072b2", lw=3)
left.plot(scaled[:5], range(5), "o", color="#0072b2", ms=9)
for j in range(10):
    note = {"xytext": (9, 0), "textcoords": "offset points", "va": "center", "fontsize": 10}
    if j < 5:
        left.annotate(terms[j], (scaled[j], j), **note)
    else:
        left.annotate("dropped: no effect", (least, j), color="#707070", **note)
left.set_xscale("log")
left.set_yticks(range(10), [f"input {j}" for j in range(10)])
left.set(xlabel="weight in the kernel", xlim=(least, 40 * scaled.max()), ylim=(9.6, -0.6))
left.set_title("the five inputs that matter are kept", fontsize=11, loc="left")
for (name, model), colour, marker in zip(models.items(), ("#bbbbbb", "#e69f00", "#0072b2"), "s^o", strict=True):
    label = f"{name}: error {error[name]:.2f}"
    right.plot(y_new[:300], model.predict(new[:300]), marker, color=colour, ms=4, alpha=0.8, mew=0, label=label)
right.axline((15, 15), slope=1, color="#222222", lw=1)
right.set(xlabel="true function", ylabel="prediction", ylim=(-4, 28))
right.set_title("predictions for 300 new rows", fontsize=11, loc="left")
right.legend(frameon=False, fontsize=9, loc="lower right")
for axis in (left, right):
    axis.spines[["top", "right"]].set_visible(False)
plt.show()
