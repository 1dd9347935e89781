"""Figures with one named row per feature: bars with a threshold, and weights with intervals."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsebayes.core.types import BoolArray, FloatArray
from sparsebayes.inspection.style import BLUE, GREY, INK, PALE, RED, label_rows

MOST = 30
"""Default number of rows; the last row counts the rest."""


THICKNESS = 0.62
"""Thickness of a bar with its name beside it, as a share of the distance between bars."""
BEHIND = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
"""Background of a note that lies on a line."""


def nothing(ax: Any) -> None:
    """Write that there is nothing to draw."""
    ax.text(0.5, 0.5, "nothing was kept", transform=ax.transAxes, ha="center", va="center", color=GREY, bbox=BEHIND)


def cut(n: int, most: int) -> tuple[int, list[str]]:
    """How many of n rows are drawn, and the label of the row that counts the rest."""
    if most < 1:
        raise ValueError(f"max_features={most} must be at least 1")
    return (n, []) if n <= most else (most, [f"… and {n - most} more"])


def draw_bars(
    ax: Any,
    names: Sequence[str],
    values: FloatArray,
    strong: BoolArray,
    notes: Sequence[str],
    thickness: float = THICKNESS,
    colours: Sequence[str] = (),
) -> None:
    """Draw horizontal bars with notes: filled if `strong`, hatched otherwise, none for nan.

    `colours` are those of the filled bars, one for each row; blue by default.
    """
    rows, weak = np.arange(len(values)), ~strong & np.isfinite(values)
    paint = [colours[row] for row in rows[strong]] if colours else BLUE
    ax.barh(rows[strong], values[strong], height=thickness, color=paint, edgecolor=paint)
    ax.barh(rows[weak], values[weak], height=thickness, color="white", edgecolor=GREY, hatch="////", linewidth=0.8)
    for row in rows[np.isfinite(values)]:
        at = {"xytext": (5, 0), "textcoords": "offset points", "bbox": BEHIND}
        place = values[row], row
        ax.annotate(notes[row], place, va="center", fontsize=8.5, color=INK, parse_math=False, zorder=3, **at)
    if not len(rows):
        nothing(ax)
    label_rows(ax, names, grey=(~strong).tolist())


def draw_mark(ax: Any, value: float, label: str) -> None:
    """Draw the threshold for the bars, with its label above the axes."""
    ax.axvline(value, color=RED, lw=1.3, ls=(0, (4, 2)))
    ax.annotate(
        label,
        (value, 1),
        xycoords=("data", "axes fraction"),
        xytext=(0, 2),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=8.5,
        color=INK,
    )


def draw_intervals(
    ax: Any, names: Sequence[str], weight: FloatArray, lower: FloatArray, upper: FloatArray, below: Sequence[str]
) -> None:
    """Draw weights with intervals; dots are filled if the interval excludes zero. `below`: names of empty grey rows."""
    rows = np.arange(len(weight))
    ax.axvline(0, color=GREY, lw=1)
    ax.hlines(rows, 0, weight, color=PALE, lw=5)
    known = np.isfinite(lower) & np.isfinite(upper)
    ax.hlines(rows[known], lower[known], upper[known], color=BLUE, lw=1.6)
    clear = ~known | (lower > 0) | (upper < 0)
    ax.scatter(weight[clear], rows[clear], s=34, color=BLUE, zorder=3)
    ax.scatter(weight[~clear], rows[~clear], s=34, facecolor="white", edgecolor=BLUE, zorder=3)
    if not len(names):
        ax.set_xticks([])
        if not below:
            nothing(ax)
    label_rows(ax, [*names, *below], grey=[False] * len(names) + [True] * len(below))
