"""
All figures of a model
======================

Every display of ``sparsebayes.inspection`` on one page. ``from_estimator`` computes, ``plot`` draws, and ``text``
says in a sentence what the figure shows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes, make_moons
from sklearn.model_selection import train_test_split

from sparsebayes import ARDRegressor, RVMClassifier, RVMRegressor, StabilitySelector
from sparsebayes.inspection import (
    CoverageDisplay,
    DecisionRegionsDisplay,
    EvidencePathDisplay,
    InclusionDisplay,
    PredictiveBandDisplay,
    RelevanceDisplay,
    RelevanceSpectrumDisplay,
    StabilityDisplay,
)

DESCRIPTIONS = {
    "bmi": "body mass index",
    "bp": "mean blood pressure",
    "s1": "total cholesterol",
    "s2": "LDL cholesterol",
    "s3": "HDL cholesterol",
    "s4": "cholesterol / HDL",
    "s5": "log triglycerides",
    "s6": "blood sugar",
}


def shown(display, name):
    """Name the figure, and say what it shows."""
    display.figure_.set_label(name)
    print(display.text())


# %%
# Weights
# -------
# Which measurements predict the progression of diabetes? The claimed features, with the effect of one standard
# deviation.

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X = X.rename(columns=DESCRIPTIONS)
model = ARDRegressor(random_state=2).fit(X, y)
shown(RelevanceDisplay.from_estimator(model, X).plot(), "relevance")

# %%
# Evidence
# --------
# The best single model: what each feature adds to the evidence, given the others.

shown(RelevanceDisplay.from_estimator(model.model_, X).plot(quantity="gain"), "gain")

# %%
# Probabilities
# -------------
# How sure is each feature? Features of one credible set can stand in for each other.

shown(InclusionDisplay.from_estimator(model).plot(), "inclusion")

# %%
# The search
# ----------
# How far the log evidence was from its maximum, step by step.

shown(EvidencePathDisplay.from_estimator(model).plot(quantity="to-gain"), "path")

# %%
# Stability
# ---------
# Would other patients give the same selection? The share of random halves of the rows that keep each feature.

selector = StabilitySelector(ARDRegressor(average=False), n_resamples=100, random_state=0).fit(X, y)
shown(StabilityDisplay.from_estimator(selector).plot(), "stability")
print(f"at most {selector.expected_false_selections():.1f} of the selected are expected to be there by chance")

# %%
# Coverage
# --------
# How many held-out patients lie in their intervals?

X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
shown(CoverageDisplay.from_estimator(ARDRegressor().fit(X_train, y_train), X_test, y_test).plot(), "coverage")

# %%
# One input
# ---------
# Mean, interval, observations and relevance vectors of a kernel model.

rng = np.random.default_rng(4)
x = rng.uniform(-10, 10, size=(90, 1))
t = np.sinc(x[:, 0] / np.pi) + 0.08 * rng.standard_normal(90)
shown(PredictiveBandDisplay.from_estimator(RVMRegressor(vectors="sparse").fit(x, t), x, t).plot(), "band")

# %%
# Two inputs
# ----------
# Regions of two classes, and the relevance vectors.

points, moon = make_moons(200, noise=0.25, random_state=0)
classes = np.array(["inner", "outer"])[moon]
classifier = RVMClassifier(vectors="sparse").fit(points, classes)
shown(DecisionRegionsDisplay.from_estimator(classifier, points, classes).plot(), "regions")

# %%
# Spectra
# -------
# Near-infrared spectra of two substances in water. The target is the first less half of the second.

wavelengths = np.linspace(1100, 2500, 300)


def peak(centre, width):
    """An absorption band."""
    return np.exp(-(((wavelengths - centre) / width) ** 2))


water = peak(1450, 60) + 0.7 * peak(1940, 80) + 0.3 * peak(2200, 150)
amount = rng.uniform(0, 1, (120, 2))
spectra = water + 0.4 * amount[:, :1] * peak(1700, 40) + 0.3 * amount[:, 1:] * peak(2310, 50)
spectra += 0.01 * rng.standard_normal(spectra.shape)
measured = amount @ [1, -0.5] + 0.02 * rng.standard_normal(120)
spectrum = RelevanceSpectrumDisplay.from_estimator(
    ARDRegressor().fit(spectra, measured), spectra, wavelengths=wavelengths, label="wavelength (nm)"
)
shown(spectrum.plot(), "spectrum")
plt.show()
