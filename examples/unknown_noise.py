"""Too little noise assumed, with ARD and with a Laplace prior: draws docs/figures/unknown_noise.png.

python examples/unknown_noise.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from sparsebayes import BLSRegressor


def truth(x):
    return np.sinc(x / np.pi)


rng = np.random.default_rng(5)
X = rng.uniform(-10, 10, (100, 1))
y = truth(X[:, 0]) + 0.3 * rng.standard_normal(100)
grid = np.linspace(-10, 10, 801)[:, None]
x = grid[:, 0]


def error(model):
    return np.sqrt(np.mean((model.predict(grid) - truth(x)) ** 2))


learned = BLSRegressor(gamma=0.3, standardize=False).fit(X, y)
rates = learned.rate_ * 10.0 ** np.arange(-6, 4.1, 0.5)
models = [BLSRegressor(gamma=0.3, standardize=False, rate=rate).fit(X, y) for rate in rates]

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.plot(X[:, 0], y, ".", color="#999999", ms=5, label="100 observations")
left.plot(x, truth(x), color="#333333", lw=1, ls="--", label="truth")
named = {"ARD": (models[0], "#cb181d"), "Laplace prior, λ learned": (learned, "#08519c")}
for name, (model, colour) in named.items():
    left.plot(x, model.predict(grid), color=colour, lw=1.8, label=f"{name}: {len(model.dual_coef_)} vectors")
left.set_title("a hundredth of the variance of y assumed to be noise", fontsize=11)
left.set_xlabel("x")
left.set_ylabel("y")
left.legend(fontsize=8, frameon=False, loc="upper left")
left.set_ylim(top=2.0)

right.semilogx(rates, [error(model) for model in models], "o-", color="#08519c", ms=4)
right.axvline(learned.rate_, color="#555555", lw=1, ls=":")
right.text(1.3 * learned.rate_, 0.97, "λ learned", transform=right.get_xaxis_transform(), va="top", fontsize=9)
right.set_title("error of the fit, and vectors that are left", fontsize=11)
right.set_xlabel("λ")
right.set_ylabel("root mean squared error", color="#08519c")
count = right.twinx()
count.semilogx(rates, [len(model.dual_coef_) for model in models], "s-", color="#e6550d", ms=4)
count.set_ylabel("vectors", color="#e6550d")
count.set_ylim(bottom=0)
figure.savefig(Path(__file__).parents[1] / "docs" / "figures" / "unknown_noise.png", dpi=120)
