"""
Ten digits: which pixels speak for which class?
===============================================

Handwritten digits of 8 × 8 pixels, ten classes. Each class gets its own weights, and most of them are exactly zero.
The weights are pictures: they show where ink speaks for a digit, and where it speaks against.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from sparsebayes import SparseLogisticRegression

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)

# %%
# One sparse model for each digit against the rest. ``min_gain`` is the evidence that a pixel must bring to be kept.
# The default asks for much, because it is made for finding the truth; a lower price predicts better and keeps more.

for price in ("auto", 2.0):
    model = SparseLogisticRegression(average=False, multi_class="one-vs-rest", min_gain=price).fit(X_train, y_train)
    counts = [len(active) for active in model.active_]
    accuracy = model.score(X_test, y_test)
    print(f"min_gain={price}: accuracy {accuracy:.3f} on new digits, {sum(counts)} weights")

# %%
# Logistic regression with a ridge penalty is a little more accurate, and uses nearly all pixels for all digits.

peer = LogisticRegression(max_iter=2000).fit(X_train / 16, y_train)
print(f"ridge: accuracy {peer.score(X_test / 16, y_test):.3f}, {np.count_nonzero(peer.coef_)} weights")
print(f"pixels that each digit needs: {counts}, of 64")
assert peer.score(X_test / 16, y_test) - accuracy < 0.03

# %%
# How sure is the model? The share of correct answers, by the probability that the model gives to its answer.

probability = model.predict_proba(X_test)
answer, sure = probability.argmax(axis=1), probability.max(axis=1)
for low, high in ((0, 0.6), (0.6, 0.9), (0.9, 1)):
    here = (sure > low) & (sure <= high)
    print(f"probability {low} to {high}: {here.sum():4d} digits, {np.mean(answer[here] == y_test[here]):.1%} correct")

# %%
# Blue pixels speak for the digit, red ones against it, white ones are not used. Grey lines are the mean image.

figure, axes = plt.subplots(2, 5, figsize=(9, 4), layout="constrained")
effect = model.coef_ * X_train.std(axis=0)
limit = np.percentile(np.abs(effect[effect != 0]), 95)
for digit, axis in enumerate(axes.flat):
    drawn = axis.imshow(effect[digit].reshape(8, 8), cmap="RdBu", vmin=-limit, vmax=limit)
    mean = X_train[y_train == digit].mean(axis=0).reshape(8, 8)
    axis.contour(mean, [4, 8], colors="#555555", linewidths=[0.8, 1.6])
    axis.set_title(f"{digit}: {counts[digit]} pixels", fontsize=11)
    axis.set(xticks=[], yticks=[])
figure.colorbar(drawn, ax=axes, shrink=0.8, label="effect of one standard deviation\non the log-odds")
plt.show()
