"""
Polynomial chaos: a cheap stand-in for a costly simulation
==========================================================

A polynomial chaos expansion replaces a simulation by a sum of orthogonal polynomials of its inputs. With few runs of
the simulation there are more polynomials than runs, so the regression has to be sparse. `chaospy
<https://chaospy.readthedocs.io>`_ makes the polynomials, :class:`~sparsebayes.ARDRegressor` fits them.
"""

import chaospy as cp
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LassoCV, LinearRegression

from sparsebayes import ARDRegressor

# %%
# The simulation is Ishigami's function of three inputs, a standard test of sensitivity analysis.


def ishigami(x):
    """Ishigami and Homma, 1990, with a = 7 and b = 0.1."""
    return np.sin(x[0]) + 7 * np.sin(x[1]) ** 2 + 0.1 * x[2] ** 4 * np.sin(x[0])


space = cp.J(*(cp.Uniform(-np.pi, np.pi) for _ in range(3)))
expansion = cp.generate_expansion(10, space, normed=True)
new = space.sample(2000, rule="random", seed=1)
truth, columns = ishigami(new), expansion(*new).T
print(f"{len(expansion)} polynomials up to order 10")

# %%
# From 60 to 320 runs: least squares, the lasso with a cross-validated penalty, and ours.

MODELS = {
    "least squares": LinearRegression(fit_intercept=False),
    "lasso, CV": LassoCV(fit_intercept=False, max_iter=20_000),
    "ARDRegressor": ARDRegressor(fit_intercept=False),
}
runs = [60, 80, 120, 170, 240, 320]
error = {name: [] for name in MODELS}
for n in runs:
    nodes = space.sample(n, rule="sobol")
    for name, model in MODELS.items():
        model.fit(expansion(*nodes).T, ishigami(nodes))
        error[name].append(np.sqrt(np.mean((model.predict(columns) - truth) ** 2)) / truth.std())
for name, values in error.items():
    print(f"{name:14} relative error", *(f"{value:.4f}" for value in values))
assert all(ours < others / 2 for ours, others in zip(error["ARDRegressor"], error["lasso, CV"], strict=True))

# %%
# Polynomials of norm one make sensitivity indices simple: the share of the variance that an input causes is a sum of
# squared weights. We draw weights from the posterior, which gives the indices with their uncertainty. Sixty runs give
# them to two digits.

nodes = space.sample(60, rule="sobol")
model = ARDRegressor(fit_intercept=False).fit(expansion(*nodes).T, ishigami(nodes))
powers = cp.lead_exponent(expansion)
draws = model.sample_posterior(1000, random_state=0)[0] ** 2
variance = draws[:, powers.any(axis=1)].sum(axis=1)
total = np.array([draws[:, powers[:, j] > 0].sum(axis=1) / variance for j in range(3)])
whole = 0.5 + 49 / 8 + 0.1 * np.pi**4 / 5 + 0.01 * np.pi**8 / 18
both = 0.01 * np.pi**8 * (1 / 18 - 1 / 50)
exact = np.array([0.5 * (1 + 0.1 * np.pi**4 / 5) ** 2 + both, 49 / 8, both]) / whole
for j in range(3):
    low, high = np.quantile(total[j], (0.05, 0.95))
    print(f"total index of x{j}: exact {exact[j]:.4f}, estimated {total[j].mean():.4f}, 90 % {low:.4f} to {high:.4f}")
assert np.allclose(total.mean(axis=1), exact, atol=0.005)

# %%
# Left: the error by the number of runs. Right: total sensitivity indices from 60 runs; their 90 % intervals are
# smaller than the points.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
looks = (("#999999", "s", ":"), ("#d55e00", "D", "--"), ("#0072b2", "o", "-"))
for (name, values), (colour, marker, dash) in zip(error.items(), looks, strict=True):
    left.loglog(runs, values, marker=marker, ls=dash, color=colour, lw=1.8, label=name)
left.set(xlabel="runs of the simulation", ylabel="error / standard deviation")
left.set_xticks(runs, [str(n) for n in runs])
left.minorticks_off()
left.legend(frameon=False, fontsize=9)
ends = np.abs(np.quantile(total, (0.05, 0.95), axis=1) - total.mean(axis=1))
right.bar(range(3), exact, color="#dddddd", width=0.6, label="exact")
bars = {"fmt": "o", "color": "#0072b2", "ms": 7, "lw": 2, "capsize": 5}
right.errorbar(range(3), total.mean(axis=1), ends, label="from 60 runs, 90 % interval", **bars)
right.set_xticks(range(3), ["x₀", "x₁", "x₂"])
right.set(ylabel="total sensitivity index", ylim=(0, 0.75))
right.legend(frameon=False, fontsize=9)
for axis in (left, right):
    axis.spines[["top", "right"]].set_visible(False)
plt.show()
