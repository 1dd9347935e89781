"""Draw docs/figures/walk.svg and walk.png: the way of `ARDRegressor().fit` through the rooms.

python docs/figures/walk.py
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch, Rectangle

ROOMS = {
    "estimators: the data's units": (3.45, "#dbe9f6"),
    "engine, Python: decides": (2.2, "#e2f0d9"),
    "engine/native, C++: updates": (0.95, "#fde9d9"),
    "data: products of columns": (-0.3, "#eee6f5"),
}
HEIGHT, GAP = 0.95, 0.2
BOXES = {
    "fit": (0.1, 3.6, 1.8, "estimators/ard.py", "ARDRegressor.fit"),
    "output": (2.25, 3.6, 2.1, "estimators/_output_fits.py", "_fit_output: LeastSquares"),
    "units": (8.35, 3.6, 1.85, "estimators/_linear.py", "Units.fit"),
    "solve": (2.25, 2.35, 2.1, "engine/regression.py", "solve … described"),
    "search": (4.65, 2.35, 2.1, "engine/gaussian_search.py", "search, certificate"),
    "ascent": (7.05, 2.35, 1.85, "engine/ascent.py", "Ascent.run"),
    "snapshot": (9.2, 2.35, 1.75, "engine/ascent.py", "Snapshot.of"),
    "native": (8.35, 1.1, 2.6, "engine/native/state.hpp", "best, move, survey, refresh"),
    "rows": (0.1, -0.15, 1.9, "data/dense.py", "standardised"),
    "gram": (8.35, -0.15, 2.6, "data/dense.py", "project, gram_column"),
}
ARROWS = [
    ("1", (0.6, 3.6), (0.6, 0.5)),
    ("2", (1.9, 3.92), (2.25, 3.92)),
    ("3", (2.8, 3.6), (2.8, 3.0)),
    ("4", (4.35, 2.8), (4.65, 2.8)),
    ("5", (6.75, 2.8), (7.05, 2.8)),
    ("6", (8.75, 2.35), (8.75, 1.75)),
    ("7", (9.3, 1.1), (9.3, 0.5)),
    ("8", (8.75, 0.5), (8.75, 1.1)),
    ("9", (9.9, 1.75), (9.9, 2.35)),
    ("10", (9.2, 2.5), (6.75, 2.5)),
    ("11", (4.65, 2.5), (4.35, 2.5)),
    ("12", (3.9, 3.0), (3.9, 3.6)),
    ("13", (4.35, 3.92), (8.35, 3.92)),
]
BEHIND = {"10"}
"""Passes below a box."""


def main() -> None:
    """Write both files."""
    plt.rcParams.update({"svg.fonttype": "none", "font.family": "sans-serif", "svg.hashsalt": "walk"})
    figure, axes = plt.subplots(figsize=(11.2, 5.2))
    for name, (y, colour) in ROOMS.items():
        axes.add_patch(Rectangle((0, y), 11.1, HEIGHT + GAP / 2, facecolor=colour, edgecolor="none"))
        axes.text(0.75 if 1 < y < 3 else 4.6, y + 0.82, name, fontsize=9, style="italic", color="#444")
    for x, y, width, path, function in BOXES.values():
        box = FancyBboxPatch(
            (x, y),
            width,
            0.65,
            boxstyle="round,pad=0,rounding_size=0.06",
            facecolor="white",
            edgecolor="#333",
            zorder=3,
        )
        axes.add_patch(box)
        axes.text(x + width / 2, y + 0.44, path, ha="center", va="center", fontsize=8.5, color="#555", zorder=4)
        axes.text(x + width / 2, y + 0.19, function, ha="center", va="center", fontsize=9.5, zorder=4)
    for number, start, end in ARROWS:
        low = 2 if number in BEHIND else 5
        axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": "#a33", "linewidth": 1.4}, zorder=low)
        middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
        if number in BEHIND:
            middle = 6.9, 2.5
        if number == "1":
            middle = 0.6, 2.05
        axes.text(
            *middle, number, ha="center", va="center", fontsize=8.5, color="white", weight="bold", zorder=6,
            bbox={"boxstyle": "circle,pad=0.15", "facecolor": "#a33", "edgecolor": "none"},
        )  # fmt: skip
    axes.set(xlim=(0, 11.1), ylim=(-0.35, 4.55))
    axes.axis("off")
    figure.tight_layout(pad=0.2)
    here = Path(__file__).parent
    figure.savefig(here / "walk.svg", metadata={"Date": None})
    figure.savefig(here / "walk.png", dpi=110)


if __name__ == "__main__":
    main()
