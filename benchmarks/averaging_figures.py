"""Figures of the results that averaging.py writes."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from averaging_tables import SHOWN, binned, excess
from records import by

DOCS = Path(__file__).parents[1] / "docs" / "figures"
STYLES = (
    {"marker": "o", "color": "#0072b2", "zorder": 3},
    {"marker": "s", "color": "#e69f00"},
    {"marker": "^", "color": "#d55e00"},
)
"""Of the methods in `SHOWN`: colours for all kinds of colour vision, and shapes besides."""


def reliability(sums, path):
    """Draw the share of true features against the mean inclusion probability of each bin, with its standard error."""
    count, total, hits = sums[sums[:, 0] > 0].T
    share = hits / count
    # Half a feature more on either side: a share of 0 or 1 has an error too.
    error = np.sqrt((hits + 0.5) * (count - hits + 0.5) / (count + 1) ** 3)
    fig, ax = plt.subplots(figsize=(4.6, 4.6), layout="constrained")
    ax.axline((0, 0), slope=1, color="0.6", lw=0.8)
    ax.fill_between([0, 1], [-0.1, 0.9], [0.1, 1.1], color="0.93", zorder=0, label="within 0.1")
    ax.errorbar(total / count, share, yerr=error, fmt="o", ms=5, capsize=2, color="#0072b2", label="share ± std. error")
    ax.set(xlabel="inclusion probability", ylabel="share of true features", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ax.legend(loc="upper left", frameon=False)
    fig.savefig(path, dpi=110)
    plt.close(fig)


def by_design(records, path):
    """Draw the test error of three methods in each design, in per cent above that of the best rival."""
    found = {design: excess(fits) for design, fits in by(records, "design").items()}
    found = {design: each for design, each in found.items() if each is not None}
    order = sorted(found, key=lambda design: found[design][2][SHOWN[0]][0], reverse=True)
    fig, ax = plt.subplots(figsize=(8, 0.25 * len(order) + 1.3), layout="constrained")
    ax.axvline(0, color="0.4", lw=0.8)
    for name, style in zip(SHOWN, STYLES, strict=True):
        known = [(k, found[design][2][name][0]) for k, design in enumerate(order) if name in found[design][2]]
        if known:
            place, ratio = np.transpose(known)
            ax.scatter(100 * (ratio - 1), place, label=name, s=30, **style)
    ax.set_yticks(range(len(order)), order, fontsize=8)
    ax.set(xlabel="test error above that of the best of nine rivals, %", ylim=(-1, len(order)))
    ax.grid(axis="y", alpha=0.4)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    fig.legend(loc="outside upper center", ncols=len(SHOWN), frameon=False)
    fig.savefig(path, dpi=110)
    plt.close(fig)


def publish(records, folder=DOCS):
    """Both figures of the simulated designs."""
    designs = [record for record in records if record["group"] == "designs"]
    reliability(binned(designs), folder / "averaging_reliability.png")
    by_design(designs, folder / "averaging_designs.png")
