"""
Too little noise assumed
========================

What if the model believes that the data are cleaner than they are? ARD then fits the noise. A Laplace prior scaled by
the noise (:class:`~sparsebayes.BLSRegressor`) still gives a smooth function from few vectors.
"""

import matplotlib.pyplot as plt
import numpy as np

from sparsebayes import BLSRegressor


def truth(x):
    """sin(x)/x."""
    return np.sinc(x / np.pi)


# %%
# One hundred observations with noise of standard deviation 0.3. ``noise_variance="fixed"`` takes a hundredth of the
# variance of y for that of the noise, which is far too little here. (By default the noise is learned.)

given = {"gamma": 0.3, "standardize": False, "noise_variance": "fixed"}
rng = np.random.default_rng(5)
X = rng.uniform(-10, 10, (100, 1))
y = truth(X[:, 0]) + 0.3 * rng.standard_normal(100)
grid = np.linspace(-10, 10, 801)[:, None]
x = grid[:, 0]
print(f"noise variance: true {0.3**2:.3f}, assumed {y.var() / 100:.4f}")

# %%
# The rate λ of the Laplace prior is learned by default. As λ goes to zero the prior becomes that of ARD. We also fit
# a range of given rates.

learned = BLSRegressor(**given).fit(X, y)
rates = learned.rate_ * 10.0 ** np.arange(-6, 4.1, 0.5)
models = [BLSRegressor(**given, rate=rate).fit(X, y) for rate in rates]


def error(model):
    """Root mean squared error against the true function."""
    return np.sqrt(np.mean((model.predict(grid) - truth(x)) ** 2))


named = {"ARD": (models[0], "#d55e00", "-."), "Laplace prior, λ learned": (learned, "#0072b2", "-")}
for name, (model, _, _) in named.items():
    print(f"{name}: {len(model.dual_coef_)} vectors, error {error(model):.2f}")
assert error(learned) < error(models[0])

# %%
# Left: both fits. Right: the error and the number of vectors against λ. The learned λ lies in the flat part.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
left.plot(X[:, 0], y, ".", color="#999999", ms=5, label="100 observations")
left.plot(x, truth(x), color="#222222", lw=1, ls="--", label="truth")
for name, (model, colour, style) in named.items():
    left.plot(x, model.predict(grid), style, color=colour, lw=1.8, label=f"{name}: {len(model.dual_coef_)} vectors")
left.set_title("a hundredth of the variance of y assumed to be noise", fontsize=11)
left.set(xlabel="x", ylabel="y")
left.legend(fontsize=8, frameon=False, loc="upper left")
left.set_ylim(top=2.0)

right.semilogx(rates, [error(model) for model in models], "o-", color="#0072b2", ms=4)
right.axvline(learned.rate_, color="#707070", lw=1, ls=":")
right.text(1.3 * learned.rate_, 0.97, "λ learned", transform=right.get_xaxis_transform(), va="top", fontsize=9)
right.set_title("error of the fit, and vectors that are left", fontsize=11)
right.set_xlabel("λ")
right.set_ylabel("root mean squared error (circles)", color="#0072b2")
count = right.twinx()
count.semilogx(rates, [len(model.dual_coef_) for model in models], "s-", color="#d55e00", ms=4)
count.set_ylabel("vectors (squares)", color="#d55e00")
count.set_ylim(bottom=0)
plt.show()
