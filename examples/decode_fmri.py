"""
Decoding a brain map: which voxels carry the condition?
=======================================================

A slice of a simulated brain, measured while faces or houses are shown. Three small regions carry the condition.
Neighbouring voxels are correlated, so that the data determine regions rather than single voxels. Two tools say so:
*credible sets*, and the stability of the selection under resampling.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter

from sparsebayes import SparseLogisticRegression, StabilitySelector

# %%
# 300 images of 28 × 28 voxels, smoothed as images of the brain are. Only the voxels of the brain are used.

rng = np.random.default_rng(1)
side, n = 28, 300
height, width = np.mgrid[:side, :side]
brain = ((height - 13.5) / 13) ** 2 + ((width - 13.5) / 11) ** 2 < 1
centres = [(8, 9), (13, 19), (20, 11)]
face = rng.integers(0, 2, n).astype(bool)
images = gaussian_filter(rng.standard_normal((n, side, side)), (0, 1.2, 1.2))
images /= images.std()
pattern = sum(np.exp(-((height - i) ** 2 + (width - j) ** 2) / 4) for i, j in centres)
images += 0.9 * (face[:, None, None] - 0.5) * pattern
X = images[:, brain]
print(f"{n} images, {X.shape[1]} voxels")

# %%
# The model averages over sets of voxels. A credible set is a set of voxels of which at least one is in the model.

train = np.arange(n) < 200
model = SparseLogisticRegression().fit(X[train], face[train])
sets = model.credible_sets_
print(f"accuracy on {np.sum(~train)} new images: {model.score(X[~train], face[~train]):.2f}")
cells = np.argwhere(brain)
for found in sets:
    print(f"at least one of the voxels {cells[found.features].tolist()}: {found.probability:.3f}")
assert [any((cells[found.features] == centre).all(axis=1).any() for found in sets) for centre in centres] == [True] * 3

# %%
# Would other images give the same map? The single best model is fitted to 60 random halves of the images.

selector = StabilitySelector(SparseLogisticRegression(average=False), n_resamples=60, random_state=0)
frequency = selector.fit(X[train], face[train]).selection_frequency_
print(f"the most stable voxel is kept in {frequency.max():.0%} of the halves")

# %%
# There are three credible sets, and each contains the centre of a region. The stability map shows the same places
# with less certainty: half of the images hold less evidence, and different halves pick different neighbours.


def painted(values):
    """Values of the brain's voxels as an image, nothing outside."""
    image = np.full((side, side), np.nan)
    image[brain] = values
    return image


figure, axes = plt.subplots(1, 3, figsize=(9, 4), layout="constrained")
inclusion = model.inclusion_probability_.ravel()
maps = (
    (pattern[brain], "truth: three regions", "size of the effect"),
    (frequency, "stability of single voxels", "share of halves that keep it"),
    (inclusion, "credible sets (coloured frames)", "inclusion probability"),
)
for axis, (values, title, label) in zip(axes, maps, strict=True):
    drawn = axis.imshow(painted(values), cmap="gray_r", vmin=0)
    figure.colorbar(drawn, ax=axis, orientation="horizontal", shrink=0.8, pad=0.03, label=label)
    axis.contour(brain, [0.5], colors="#707070", linewidths=1)
    axis.set_title(title, fontsize=11)
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)
for found, colour in zip(sets, ("#d55e00", "#0072b2", "#009e73"), strict=True):
    rows, columns = cells[found.features].T
    axes[2].plot(columns, rows, "s", mfc="none", mec=colour, mew=2.2, ms=6.5)
    side_of = {"xytext": (0, 9), "ha": "right" if columns[0] > side / 2 else "left"}
    place = columns.max() if columns[0] > side / 2 else columns.min(), rows.min()
    note = {"textcoords": "offset points", "fontsize": 10, "color": colour, **side_of}
    axes[2].annotate(f"one of {len(rows)}: {found.probability:.0%}", place, **note)
plt.show()
