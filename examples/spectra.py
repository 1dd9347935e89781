"""
Which wavelengths carry the concentration?
==========================================

Near-infrared spectra of powders: the protein that we look for absorbs in two narrow bands, next to the broad bands of
water and starch. Light is scattered differently in each sample, which shifts and tilts its spectrum. Which
wavelengths would a cheap instrument need?
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import savgol_filter
from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import GridSearchCV

from sparsebayes import ARDRegressor

# %%
# 150 samples to calibrate, 200 to test, and 200 wavelengths. The usual first step is the slope of each spectrum, by a
# Savitzky-Golay filter: it removes the shift.

rng = np.random.default_rng(0)
wavelengths = np.linspace(1100, 2500, 200)
n, n_train = 350, 150


def band(centre, width):
    """An absorption band."""
    return np.exp(-(((wavelengths - centre) / width) ** 2))


water, protein, starch = rng.uniform(5, 15, n), rng.uniform(8, 16, n), rng.uniform(50, 70, n)
spectra = (
    np.outer(water, 0.03 * band(1450, 70) + 0.06 * band(1940, 80))
    + np.outer(protein, 0.012 * band(1510, 30) + 0.02 * band(2180, 40))
    + np.outer(starch, 0.004 * band(1580, 120) + 0.008 * band(2100, 120))
    + rng.normal(0, 0.15, (n, 1))
    + rng.normal(0, 0.1, (n, 1)) * (wavelengths - 1800) / 700
)
spectra += 0.003 * rng.standard_normal(spectra.shape)
X, y = savgol_filter(spectra, 11, 2, deriv=1, axis=1), protein + 0.1 * rng.standard_normal(n)
train = np.arange(n) < n_train

# %%
# Partial least squares, the standard of chemometrics, uses all wavelengths. Our model averages over sets of
# wavelengths and predicts as well. Its best single model needs three wavelengths, at a price in accuracy.

model = ARDRegressor().fit(X[train], y[train])
pls = GridSearchCV(PLSRegression(scale=False), {"n_components": range(2, 13)}).fit(X[train], y[train])
fits = {"PLS, all wavelengths": pls, "averaged model": model, "best single model": model.model_}
for name, fit in fits.items():
    error = np.sqrt(np.mean((np.ravel(fit.predict(X[~train])) - y[~train]) ** 2))
    print(f"{name:21} test error {error:.3f} % protein")
print("the single model measures at", np.round(wavelengths[model.model_.active_]).astype(int).tolist(), "nm")

# %%
# Neighbouring wavelengths are alike, so that one cannot be told from the next. Credible sets name the ranges of which
# the model needs at least one wavelength.

sets = model.credible_sets_
for found in sets:
    nm = np.sort(wavelengths[found.features])
    print(f"at least one of {len(nm)} wavelengths from {nm[0]:.0f} to {nm[-1]:.0f} nm: {found.probability:.2f}")

# %%
# The steep flanks of the protein bands matter, because the model sees slopes. One more set corrects for the other
# substances.

colours = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#222222")
figure, (top, bottom) = plt.subplots(2, 1, figsize=(8, 5.2), sharex=True, layout="constrained")
top.plot(wavelengths, spectra[:40].T, color="#bbbbbb", lw=0.5)
top.plot(wavelengths, spectra.mean(axis=0), color="#222222", lw=2)
for axis in (top, bottom):
    for centre, width in ((1510, 30), (2180, 40)):
        span = axis.axvspan(centre - 1.5 * width, centre + 1.5 * width, color="#e69f00", alpha=0.2, lw=0)
    axis.spines[["top", "right"]].set_visible(False)
top.set_ylabel("absorbance")
names = ["mean spectrum, with 40 samples", "protein absorbs"]
top.legend([top.get_lines()[-1], span], names, frameon=False, fontsize=9, loc="upper left")
inclusion = model.inclusion_probability_
bottom.vlines(wavelengths, 0, inclusion, color="#bbbbbb", lw=1)
for found, colour, marker in zip(sets, colours, "osD^v", strict=False):
    at = found.features
    bottom.vlines(wavelengths[at], 0, inclusion[at], color=colour, lw=1.5)
    label = f"at least one of {len(at)}: {found.probability:.0%}"
    bottom.plot(wavelengths[at], inclusion[at], marker, color=colour, ms=6, label=label)
bottom.set(xlabel="wavelength (nm)", ylabel="inclusion probability", xlim=(1100, 2500), ylim=(0, 1.05))
bottom.legend(frameon=False, fontsize=9, loc="upper center", bbox_to_anchor=(0.55, 1.05))
plt.show()
