"""
Are the probabilities right?
============================

Of all rows that get a probability of 70 %, seven in ten should belong to the class. With few rows many classifiers
are too sure of themselves, because they use one best set of weights as if it were known. Averaging over the posterior
cures this.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.naive_bayes import GaussianNB

from sparsebayes import SparseLogisticRegression

# %%
# Five small studies: 80 rows, 20 features, of which four matter. Each study has 4,000 new rows, so that the
# probabilities of 20,000 rows can be compared with what happened.

MODELS = {
    "SparseLogisticRegression": lambda: SparseLogisticRegression(),
    "logistic regression": lambda: LogisticRegression(),
    "naive Bayes": lambda: GaussianNB(),
    "random forest": lambda: RandomForestClassifier(random_state=0),
}
w = np.array([1.5, -1.2, 0.9, 0.6])
probability, outcome = {name: [] for name in MODELS}, []
for seed in range(5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((4080, 20))
    y = X[:, :4] @ w + rng.logistic(size=4080) > 0
    outcome.append(y[80:])
    for name, make in MODELS.items():
        probability[name].append(make().fit(X[:80], y[:80]).predict_proba(X[80:])[:, 1])
outcome = np.concatenate(outcome)
probability = {name: np.concatenate(parts) for name, parts in probability.items()}

# %%
# The log loss punishes confident errors. The calibration error is the mean distance between the probability and the
# share of rows that belong to the class, over ten bins.


def reliability(p):
    """Mean probability, share of the class, and number of rows in ten bins of equal width."""
    which = np.minimum((10 * p).astype(int), 9)
    count = np.bincount(which, minlength=10)
    return np.bincount(which, p, 10) / count, np.bincount(which, outcome, 10) / count, count


loss, distance = {}, {}
for name, p in probability.items():
    mean, share, count = reliability(p)
    loss[name] = log_loss(outcome, np.clip(p, 1e-6, 1 - 1e-6))
    distance[name] = np.average(np.abs(mean - share), weights=count)
    print(f"{name:25} log loss {loss[name]:.3f}, calibration error {distance[name]:.3f}")
assert min(loss, key=loss.get) == min(distance, key=distance.get) == "SparseLogisticRegression"

# %%
# On the diagonal probabilities are right. A curve that is flatter than the diagonal is too sure, a steeper one too
# timid. Below: how often each probability is given.

figure, (top, bottom) = plt.subplots(2, 1, figsize=(6, 6.4), height_ratios=(2.6, 1), sharex=True, layout="constrained")
top.plot([0, 1], [0, 1], color="#999999", lw=1)
looks = zip(("#0072b2", "#d55e00", "#e69f00", "#009e73"), "osD^", ("-", "--", "-.", ":"), strict=True)
for (name, p), (colour, marker, dash) in zip(probability.items(), looks, strict=True):
    mean, share, count = reliability(p)
    label = f"{name}: log loss {loss[name]:.2f}"
    top.plot(mean, share, marker=marker, ls=dash, color=colour, ms=6, lw=1.8, label=label)
    bottom.stairs(count / count.sum(), np.linspace(0, 1, 11), color=colour, ls=dash, lw=1.8)
top.set(ylabel="share of new rows in the class", ylim=(0, 1), xlim=(0, 1))
top.legend(frameon=False, fontsize=9, loc="upper left")
bottom.set(xlabel="predicted probability", ylabel="share of rows")
for axis in (top, bottom):
    axis.spines[["top", "right"]].set_visible(False)
plt.show()
