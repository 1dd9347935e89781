"""Sources of a simulated sensor array, found jointly over time points: draws docs/figures/lead_field.png.

python examples/lead_field.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from sparsebayes import ARDRegressor

N_SENSORS, N_SOURCES, N_TIMES = 64, 600, 30
rng = np.random.default_rng(0)

# Sources lie on a ring inside the ring of sensors; the field falls off with the cube of the distance.
angle, place = (
    np.linspace(0, 2 * np.pi, N_SENSORS, endpoint=False),
    np.linspace(0, 2 * np.pi, N_SOURCES, endpoint=False),
)
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

# Noise of neighbouring sensors is alike, and some sensors are worse than others.
apart = np.abs(np.subtract.outer(np.arange(N_SENSORS), np.arange(N_SENSORS)))
level = rng.uniform(0.5, 2.0, N_SENSORS)
covariance = np.outer(level, level) * 0.7 ** np.minimum(apart, N_SENSORS - apart)
noise = np.linalg.cholesky(covariance) @ rng.standard_normal((N_SENSORS, N_TIMES))
Y = signal + noise * np.sqrt((signal**2).mean() / (noise**2).mean())  # signal-to-noise ratio one

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

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
for k, coef in enumerate((alone.coef_, found.coef_)):
    strength = np.sqrt((coef**2).mean(axis=0))
    kept = np.flatnonzero(strength)
    left.vlines(kept, 0, (-1) ** (k + 1) * strength[kept], color=("#cb181d", "#08519c")[k], lw=2)
left.plot(true, np.zeros(5), "kv", ms=6, label="true sources")
left.axhline(0, color="0.6", lw=0.8)
left.set_xlabel("source")
left.set_ylabel("strength: alone (below), joint (above)")
left.legend(fontsize=9, frameon=False)
for k, j in enumerate(true):
    right.plot(time, courses[k], "--", color=f"C{k}", lw=1)
    right.plot(time, found.coef_[:, j], color=f"C{k}", lw=2)
right.set_xlabel("time")
right.set_title("true (dashed) and estimated courses", fontsize=11)
figure.savefig(Path(__file__).parents[1] / "docs" / "figures" / "lead_field.png", dpi=110)
