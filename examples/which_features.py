"""
Which features matter, and how sure is that?
============================================

A made-up study: the blood pressure of 150 people, and 30 measurements of each. Weight, waist and body mass index are
nearly the same measurement. Salt and age matter too, and coffee a little.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from sparsebayes import ARDRegressor
from sparsebayes.inspection import InclusionDisplay

rng = np.random.default_rng(0)
n = 150
names = ["age", "salt", "coffee", *(f"marker {k}" for k in range(1, 25))]
X = pd.DataFrame(rng.standard_normal((n, len(names))), columns=names)
size = rng.standard_normal(n)
for name in ("weight", "waist", "body mass index"):
    X[name] = size + 0.25 * rng.standard_normal(n)
pressure = 120 + 4 * X["waist"] + 5 * X["age"] + 3 * X["salt"] + 1.5 * X["coffee"] + 8 * rng.standard_normal(n)

# %%
# ``active_`` lists the features that the model claims: those with a probability of at least 0.9. The three measures
# of body size share one *credible set*: at least one of them matters, and the data do not say which.

model = ARDRegressor().fit(X, pressure)
print("claimed:", ", ".join(X.columns[model.active_]))
for found in model.credible_sets_:
    if len(found.features) > 1:
        print(f"one of {', '.join(X.columns[found.features])}: {found.probability:.1%}")

# %%
# Weights are averages over all models. An interval that starts at zero says that the feature may be out. One marker
# looks likely by chance, with a probability of 0.83; it is not claimed.

interval = model.coef_interval(0.9)
for j in np.argsort(-model.inclusion_probability_)[:6]:
    low, high = interval[j]
    print(f"{X.columns[j]:16s} probability {model.inclusion_probability_[j]:.2f}  weight {low:+.1f} to {high:+.1f}")

# %%
# What is known beforehand goes into the prices of the features. Here age is known to matter, and salt is expensive to
# measure: it must bring ten nats of evidence.

prior = ARDRegressor(min_gain={"age": 0, "salt": 10}).fit(X, pressure)
print(f"salt at a price of 10 nats: probability {prior.inclusion_probability_[X.columns.get_loc('salt')]:.2f}")

# %%
# The figure shows the probabilities. A bracket joins the features of a credible set.

display = InclusionDisplay.from_estimator(model, least=0.1).plot(max_features=12)
print(display.text())
plt.show()
