"""
A few genes among a thousand
============================

Two types of a disease, and the expression of 1,000 genes in 150 patients. Genes work in modules, and the genes of a
module are strongly correlated. So the right answer is not a list of single genes but of sets: one of these matters,
and the data cannot say which.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_selection import f_classif

from sparsebayes import SparseLogisticRegression

# %%
# The eight genes of a module have a correlation of 0.94. The type depends on one gene in each of two modules, and on
# one gene without a module.

rng = np.random.default_rng(3)
n, n_modules, per_module = 250, 125, 8
module = np.repeat(np.arange(n_modules), per_module)
X = 0.97 * rng.standard_normal((n, n_modules))[:, module] + np.sqrt(1 - 0.97**2) * rng.standard_normal((n, len(module)))
X[:, module == 62] = rng.standard_normal((n, per_module))
true = np.array([163, 499, 722])
y = X[:, true] @ np.array([2.5, 2.5, -2.5]) + rng.logistic(size=n) > 0
train = np.arange(n) < 150

# %%
# The usual first look tests each gene by itself, here with Bonferroni's correction. It finds most genes of a module
# that contains a true one, and cannot tell a cause from a neighbour.

p_value = f_classif(X[train], y[train])[1]
tested = np.flatnonzero(p_value < 0.05 / len(p_value))
print(f"{len(tested)} genes are significant by themselves, {np.isin(true, tested).sum()} of the 3 true ones among them")

# %%
# Our model looks at all genes together.

model = SparseLogisticRegression().fit(X[train], y[train])
print(f"accuracy for 100 new patients: {model.score(X[~train], y[~train]):.2f}")
print(f"number of genes in the model, most probable: {model.n_features_posterior_.ravel().argmax()}")

# %%
# There are three credible sets, and each contains a true gene. The genes of a set come from one module.

sets = model.credible_sets_
for found in sets:
    print(f"at least one of genes {found.features.tolist()}: {found.probability:.3f}")
assert all(np.isin(true, found.features).sum() == 1 for found in sets)
assert len(sets) == 3

# %%
# Left: every gene with its inclusion probability. Right: the two modules from near. In module 90 another gene looks
# better than the true one, by chance; the credible set still contains the true one.

inclusion = model.inclusion_probability_.ravel()
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), width_ratios=(1.6, 1), sharey=True, layout="constrained")
left.vlines(np.arange(len(inclusion)), 0, inclusion, color="#bbbbbb", lw=0.8)
styles = [
    {"color": colour, "marker": marker} for colour, marker in (("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "D"))
]
for found, style in zip(sets, styles, strict=True):
    several = len(found.features) > 1
    label = f"at least one of {len(found.features)}: {found.probability:.1%}" if several else "a gene that is sure"
    left.plot(found.features, inclusion[found.features], ls="none", ms=6, label=label, **style)
left.plot(true, inclusion[true], "x", color="#222222", ms=13, mew=1.5, label="true genes")
left.plot(tested, np.full(len(tested), -0.05), "|", color="#222222", ms=8, label=f"significant alone: {len(tested)}")
left.set(xlabel="gene", ylabel="inclusion probability", xlim=(-10, len(inclusion) + 10), ylim=(-0.1, 1.45))
left.set_yticks(np.linspace(0, 1, 6))
left.legend(frameon=False, fontsize=9, loc="upper left", ncols=2)
place = 0
for found, style in zip(sets, styles, strict=True):
    if len(found.features) == 1:
        continue
    genes = np.flatnonzero(module == module[found.features[0]])
    right.bar(place + np.arange(per_module), inclusion[genes], color="#dddddd")
    inside = np.isin(genes, found.features)
    right.bar(place + np.flatnonzero(inside), inclusion[genes[inside]], color=style["color"])
    cause = np.isin(genes, true)
    right.plot(place + np.flatnonzero(cause), inclusion[genes[cause]], "x", color="#222222", ms=12, mew=1.5)
    right.text(place + 3.5, 1.05, f"module {module[genes[0]]}", ha="center", fontsize=10)
    place += per_module + 2
right.set_xticks([])
right.set_xlabel("the eight genes of two modules")
for axis in (left, right):
    axis.spines[["top", "right"]].set_visible(False)
plt.show()
