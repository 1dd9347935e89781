"""
Sources of a sensor array, found jointly over time
==================================================

Sixty-four sensors on a ring measure the field of sources inside it, as in magnetoencephalography. There are 600
possible places and five active sources. We look for the places that explain all time points together.
"""

import matplotlib.pyplot as plt
import numpy as np

from sparsebayes import ARDRegressor

# %%
# The lead field says what each sensor measures of a unit source at each place. The field falls off with the cube of
# the distance, so that neighbouring places look alike.

N_SENSORS, N_SOURCES, N_TIMES = 64, 600, 30
rng = np.random.default_rng(0)
angle = np.linspace(0, 2 * np.pi, N_SENSORS, endpoint=False)
place = np.linspace(0, 2 * np.pi, N_SOURCES, endpoint=False)
sensors, depth = np.stack([np.cos(angle), np.sin(angle)], axis=1), rng.uniform(0.6, 0.85, N_SOURCES)
sources = depth[:, None] * np.stack([np.cos(place), np.sin(place)], axis=1)
offset = sensors[:, None] - sources
distance = np.sqrt((offset**2).sum(axis=2))
direction = rng.standard_normal((N_SOURCES, 2))
lead_field = (offset * direction).sum(axis=2) / distance**3
lead_field /= np.sqrt((lead_field**2).mean(axis=0))

true = np.array([40, 130, 260, 410, 520])
time = np.linspace(0, 1, N_TIMES)
courses = np.stack([np.sin(2 * np.pi * (2 + k) * time + k) * np.exp(-((time - 0.2 * k) ** 2) / 0.1) for k in range(5)])
signal = lead_field[:, true] @ courses

# %%
# The noise of neighbouring sensors is correlated, and some sensors are noisier than others. Signal and noise have the
# same power.

apart = np.abs(np.subtract.outer(np.arange(N_SENSORS), np.arange(N_SENSORS)))
level = rng.uniform(0.5, 2.0, N_SENSORS)
covariance = np.outer(level, level) * 0.7 ** np.minimum(apart, N_SENSORS - apart)
noise = np.linalg.cholesky(covariance) @ rng.standard_normal((N_SENSORS, N_TIMES))
Y = signal + noise * np.sqrt((signal**2).mean() / (noise**2).mean())

# %%
# ``multi_output="joint"`` keeps a source for all time points or for none, and ``row_noise`` is the covariance of the
# sensors' noise. Both help.

joint = ARDRegressor(multi_output="joint", shared_noise=True, fit_intercept=False, average=False)
blind = joint.fit(lead_field, Y).active_[0]
found = joint.fit(lead_field, Y, row_noise=covariance)
alone = ARDRegressor(fit_intercept=False, average=False).fit(lead_field, Y)
for name, active in (
    ("each time point alone", np.unique(np.concatenate(alone.active_))),
    ("joint, noise taken as independent", blind),
    ("joint, noise covariance given", found.active_[0]),
):
    print(f"{name:34} {len(active):3d} sources, {np.isin(true, active).sum()} of {len(true)} true ones")
assert set(found.active_[0]) == set(true)

# %%
# Above the line: the joint fit finds the five sources and no other. Below the line: fits to single time points
# scatter over many places.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for sign, coef, colour in ((-1, alone.coef_, "#d55e00"), (1, found.coef_, "#0072b2")):
    strength = np.sqrt((coef**2).mean(axis=0))
    kept = np.flatnonzero(strength)
    left.vlines(kept, 0, sign * strength[kept], color=colour, lw=2)
left.plot(true, np.zeros(5), "kv", ms=6, label="true sources")
left.axhline(0, color="0.6", lw=0.8)
left.set(xlabel="source", ylabel="strength: alone (below), joint (above)")
left.legend(fontsize=9, frameon=False)
for k, (j, colour) in enumerate(zip(true, ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#222222"), strict=True)):
    right.plot(time, courses[k], "--", color=colour, lw=1)
    right.plot(time, found.coef_[:, j], color=colour, lw=2)
right.set(xlabel="time", ylabel="strength of the source")
right.set_title("true (dashed) and estimated courses", fontsize=11)
plt.show()
