"""
Four roads to the maximum of the evidence
=========================================

All solvers of :class:`~sparsebayes.ARDRegressor` climb the same hill, the evidence, and end with the same
certificate: no single change would gain more. They differ in the number of steps and in what a step costs.
"""

import matplotlib.pyplot as plt
import numpy as np

from sparsebayes import ARDRegressor

# %%
# 200 rows and 60 features, ten of which matter.

rng = np.random.default_rng(0)
X = rng.standard_normal((200, 60))
y = X[:, :10] @ rng.uniform(-2, 2, 10) + rng.standard_normal(200)

# %%
# The textbook objective (``min_gain=0``, no price for a feature), by each solver.

SOLVERS = {
    "sequential": "one feature at a time",  # Tipping and Faul
    "fixed-point": "all at once",  # MacKay
    "em": "expectation and maximisation",
    "reweighted-l1": "a chain of lassos",  # Wipf and Nagarajan
}
models = {}
for solver in SOLVERS:
    models[solver] = ARDRegressor(solver=solver, min_gain=0, average=False, max_iter=100_000).fit(X, y)
    model = models[solver]
    path = f"{len(model.evidence_path_) - 1:5d} steps, {len(model.active_)} features"
    print(f"{solver:14}{path}, log evidence {model.log_evidence_:.4f}, certificate {model.optimality_gap_:.1e}")

# %%
# EM never goes down, and it takes the most steps. A step of the sequential solver concerns one feature only, so it is
# cheap; the others re-estimate all 60 features in each step.

best = max(model.log_evidence_ for model in models.values())
steps = {solver: len(model.evidence_path_) - 1 for solver, model in models.items()}
spread = best - min(model.log_evidence_ for model in models.values())
print(f"the four maxima differ by {spread:.1e} nats")
assert max(steps, key=steps.get) == "em"
assert np.all(np.diff(models["em"].evidence_path_) > -1e-8)

# %%
# The distance to the highest evidence, step by step.

figure, axis = plt.subplots(figsize=(8, 4.4), layout="constrained")
looks = zip(("#0072b2", "#d55e00", "#009e73", "#cc79a7"), "osD^", ("-", "--", "-.", ":"), strict=True)
for (solver, model), (colour, marker, dash) in zip(models.items(), looks, strict=True):
    gap = best - model.evidence_path_
    step = np.arange(len(gap)) + 1
    here = gap > 1e-7
    every = np.unique(np.geomspace(1, here.sum(), 12).astype(int)) - 1
    label = f"{solver}: {SOLVERS[solver]}"
    line = {"ls": dash, "color": colour, "lw": 1.8, "marker": marker, "markevery": every.tolist()}
    axis.loglog(step[here], gap[here], label=label, **line)
axis.set(xlabel="step", ylabel="log evidence still to gain (nats)", ylim=(1e-7, 1e5))
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, fontsize=9, loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
plt.show()
