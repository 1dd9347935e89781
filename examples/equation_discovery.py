"""
Equations from a trajectory: Lorenz with pysindy
================================================

SINDy (sparse identification of nonlinear dynamics) regresses time derivatives on a library of candidate terms. The
regression must be sparse: what it keeps is the equation. Usually a threshold has to be chosen. Here
:class:`~sparsebayes.ARDRegressor` does the regression inside `pysindy <https://pysindy.readthedocs.io>`_ and needs
none.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pysindy as ps
from scipy.integrate import solve_ivp

from sparsebayes import ARDRegressor

# %%
# Ten seconds of the Lorenz system, observed with noise.


def lorenz(_, x):
    """Right-hand side of the Lorenz equations."""
    return [10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]]


times = np.arange(0, 10, 0.002)
clean = solve_ivp(lorenz, (0, 10), [-8, 8, 27], t_eval=times, rtol=1e-9, atol=1e-9).y.T
x = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)

# %%
# Twenty polynomial terms up to the third degree are candidates for each equation. pysindy takes every weight that is
# not zero for a term, so we use the best single model (``average=False``); the library has its own constant.


def discover(optimizer):
    """The fitted system."""
    smooth = ps.SmoothedFiniteDifference(smoother_kws={"window_length": 31})
    library = ps.PolynomialLibrary(degree=3)
    system = ps.SINDy(optimizer=optimizer, feature_library=library, differentiation_method=smooth)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pysindy warns of estimators that are not its own
        return system.fit(x, t=0.002, feature_names=["x", "y", "z"])


system = discover(ps.WrappedOptimizer(ARDRegressor(fit_intercept=False, average=False)))
system.print()

# %%
# All seven true terms are found, and no other. The usual optimiser finds them too, if its threshold is right.

names = system.get_feature_names()
truth = np.zeros((3, len(names)))
for row, terms in enumerate(({"x": -10, "y": 10}, {"x": 28, "y": -1, "x z": -1}, {"z": -8 / 3, "x y": 1})):
    for name, value in terms.items():
        truth[row, names.index(name)] = value
found = system.coefficients()
kept, right = found != 0, truth != 0
print(f"right terms: {np.sum(kept & right)} of {right.sum()}, wrong terms: {np.sum(kept & ~right)}")
assert np.array_equal(kept, right)
thresholds = 10 ** np.linspace(-2, 1, 13)
wrong = [int(np.sum((discover(ps.STLSQ(threshold=each)).coefficients() != 0) != right)) for each in thresholds]
print("STLSQ, wrong or missing terms by threshold:", dict(zip(thresholds.round(3).tolist(), wrong, strict=True)))

# %%
# Left: the observed trajectory, and a simulation of the equations that were found. The system is chaotic, so that the
# smallest error of a weight grows until the two part. Right: errors of the thresholded optimiser by its threshold;
# ours has no threshold, and no error.


def rediscovered(_, state):
    """Right-hand side of the equations that were found."""
    return found @ system.feature_library.transform(state[None])[0]


again = solve_ivp(rediscovered, (0, 10), clean[0], t_eval=times[::5], rtol=1e-6).y
together = times[::5][np.argmax(np.abs(again[0] - clean[::5, 0]) > 2)]
print(f"the simulation follows the true system for {together:.1f} seconds")
figure, (left, beside) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.plot(times[::10], x[::10, 0], ".", color="#999999", ms=3, label="observed, with noise")
left.plot(times[::5], again[0], color="#0072b2", lw=1.5, label="equations that were found")
left.set(xlabel="time", ylabel="x", ylim=(-22, 32))
left.legend(frameon=False, fontsize=9, loc="upper left", markerscale=3)
beside.semilogx(thresholds, wrong, "s--", color="#d55e00", label="STLSQ")
beside.axhline(0, color="#0072b2", lw=3, label="ARDRegressor: no threshold")
beside.set(xlabel="threshold", ylabel="wrong or missing terms")
beside.legend(frameon=False, fontsize=9)
for axis in (left, beside):
    axis.spines[["top", "right"]].set_visible(False)
plt.show()
