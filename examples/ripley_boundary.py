"""
A class boundary from a few vectors
===================================

Ripley's synthetic problem has two classes of two Gaussian humps each. The best possible classifier is wrong for 8 %
of new points. A support vector machine keeps every point near the boundary. A relevance vector machine keeps a few
points, which need not be near the boundary, and it gives probabilities.

The mixture is that of B. D. Ripley, *Pattern Recognition and Neural Networks*, Cambridge University Press, 1996:
humps at (-0.7, 0.3) and (0.3, 0.3) against (-0.3, 0.7) and (0.4, 0.7), each with variance 0.03.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from sparsebayes import RVMClassifier

# %%
# 250 points to train and 10,000 to test, drawn from the mixture.

HUMPS = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])


def draw(n, rng):
    """Points of the mixture, and their classes."""
    y, hump = rng.integers(0, 2, (2, n))
    return HUMPS[y, hump] + np.sqrt(0.03) * rng.standard_normal((n, 2)), y


rng = np.random.default_rng(3)
X, y = draw(250, rng)
new, y_new = draw(10_000, rng)
density = np.exp(-((new[:, None, None] - HUMPS) ** 2).sum(axis=-1) / 0.06).sum(axis=-1)
print(f"error of the best possible classifier on the new points: {np.mean(density.argmax(axis=1) != y_new):.1%}")

# %%
# The support vector machine is tuned by cross-validation over 25 pairs of settings. The relevance vector machine has
# none.

rvm = RVMClassifier(vectors="sparse").fit(X, y)
grid = {"C": 10.0 ** np.arange(-1, 4), "gamma": 2.0 ** np.arange(-2, 3)}
svm = GridSearchCV(SVC(), grid).fit(X, y).best_estimator_
vectors = {"rvm": rvm.relevance_vectors_, "svm": svm.support_vectors_}
for name, model in (("rvm", rvm), ("svm", svm)):
    print(f"{name}: {len(vectors[name])} vectors, error {1 - model.score(new, y_new):.1%} on new points")
assert len(vectors["rvm"]) < len(vectors["svm"]) / 5

# %%
# Solid lines are the boundaries. Shades are the probabilities of the relevance vector machine, dashed lines its odds
# of 3 to 1. The support vector machine has scores without a unit.

ends = -1.25, 1.05, -0.25, 1.25
x0, x1 = np.linspace(*ends[:2], 200), np.linspace(*ends[2:], 200)
points = np.stack(np.meshgrid(x0, x1), axis=-1).reshape(-1, 2)
probability = rvm.predict_proba(points)[:, 1].reshape(200, 200)

figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharex=True, sharey=True, layout="constrained")
shades = {"extent": ends, "origin": "lower", "aspect": "auto", "cmap": "PuOr", "vmin": -0.35, "vmax": 1.35}
axes[0].imshow(probability, **shades)
axes[0].contour(x0, x1, probability, [0.25, 0.75], colors="#222222", linewidths=0.9, linestyles="--")
axes[0].contour(x0, x1, probability, [0.5], colors="#222222", linewidths=2)
axes[1].contour(x0, x1, svm.decision_function(points).reshape(200, 200), [0], colors="#222222", linewidths=2)
for axis, model, name in ((axes[0], rvm, "RVMClassifier"), (axes[1], svm, "SVC, cross-validated")):
    kept = vectors["rvm" if model is rvm else "svm"]
    for k, colour, marker in ((0, "#b35806", "o"), (1, "#542788", "^")):
        axis.scatter(*X[y == k].T, s=16, color=colour, marker=marker, linewidth=0, label=f"class {k}")
    axis.scatter(*kept.T, s=90, facecolor="none", edgecolor="#222222", linewidth=1.5, label="vectors")
    axis.set_title(f"{name}: {len(kept)} vectors, error {1 - model.score(new, y_new):.1%}", fontsize=11, loc="left")
    axis.set_xlabel("first input")
axes[0].set_ylabel("second input")
axes[1].legend(frameon=False, fontsize=9, loc="lower right")
plt.show()
