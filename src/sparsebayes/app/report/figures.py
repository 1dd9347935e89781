"""The figures of a report, drawn by the displays of `sparsebayes.inspection` where possible."""

import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sparsebayes.app.facts import COVERAGE, Comparison, Facts
from sparsebayes.app.importance import Importance
from sparsebayes.app.report.svg import drawn
from sparsebayes.app.selection import CREDIBLE, Effect
from sparsebayes.app.words import NO_BREAK, name, number, percent, typeset
from sparsebayes.core.types import BoolArray, FloatArray
from sparsebayes.inspection import EvidencePathDisplay, InclusionDisplay, RelevanceDisplay
from sparsebayes.inspection.rows import BEHIND, cut, draw_bars, draw_intervals
from sparsebayes.inspection.style import BLUE, GREY, PALE, RED, SERIES

ROWS = 12
"""Most named rows of a figure."""
POINTS = 400
"""Most points of a scatter plot."""
LONG = 5
"""Paths with more steps are drawn as the distance to the last value, on a logarithmic axis."""
FAR = 5
"""Differences beyond this multiple of the median are written as numbers instead of drawn."""
BELOW = 0.3
"""Thickness of a bar with its name above, as a share of the distance between bars."""
LINE = 50
"""Longest line of an axis label in characters."""


def thinned(n: int, most: int) -> Sequence[int]:
    """At most `most` of n positions, evenly spaced, with the first and the last."""
    return range(n) if n <= most else np.unique(np.linspace(0, n - 1, most).round().astype(int)).tolist()


def effect_name(effect: Effect) -> str:
    """The feature or row of an effect, and the class if there are several."""
    return f"{name(effect.name)} · {name(effect.output, 40)}" if effect.output else name(effect.name)


def relevance(facts: Facts) -> tuple[str, str]:
    """Kept or claimed features, or kept vectors, with their weights and intervals."""
    effects, selection = facts.selection.ranked, facts.selection
    weight, lower, upper = (
        np.array([getattr(effect, key) for effect in effects]) for key in ("weight", "lower", "upper")
    )
    of = (
        f" of {len(selection.names):,} features"
        if selection.what == "feature"
        else f" of {len(facts.study.y):,} rows as vectors"
    )
    display = RelevanceDisplay(
        names=[effect_name(effect) for effect in effects],
        weight=weight,
        lower=lower,
        upper=upper,
        title=f"{'claims' if selection.averaged else 'kept'} {len(selection.distinct):,}{of}",
        weight_label=selection.label + f", {percent(CREDIBLE)} interval" * selection.certain,
    )

    def draw(ax: Any) -> None:
        display.plot(ax, quantity="weight", max_features=ROWS)
        _names_above(ax)

    title = f"Weights of the {'claimed' if selection.averaged else 'kept'} features or rows"
    return drawn(draw, _height(len(effects)), "relevance", title), typeset(display.text())


def inclusion_display(facts: Facts) -> InclusionDisplay:
    """Inclusion probabilities and credible sets of an averaged model; names are fit for a page."""
    selection = facts.selection
    parts = [replace(part, output=name(part.output, 40)) for part in selection.parts]
    return InclusionDisplay.from_parts(parts, [name(each) for each in selection.names])


def inclusion(display: InclusionDisplay) -> tuple[str, str]:
    """Inclusion probabilities of the most probable features, with their credible sets."""

    def draw(ax: Any) -> None:
        display.plot(ax, max_features=ROWS, thickness=BELOW)
        _names_above(ax)

    title = "Inclusion probabilities of the features"
    return drawn(draw, _height(len(display.names)), "choice", title), typeset(display.text())


def _height(n: int) -> float:
    return 1.0 + 0.4 * max(cut(n, ROWS)[0] + (n > ROWS), 1)


def _names_above(ax: Any) -> None:
    """Write names above their rows: a phone has no room beside them."""
    rows, labels = ax.get_yticks(), ax.get_yticklabels()
    for note in ax.texts:
        note.set_fontsize(10)
    over = {"transform": ax.get_yaxis_transform(), "bbox": BEHIND}
    for row, label in zip(rows, labels, strict=True):
        ax.text(0, row - 0.24, label.get_text(), color=label.get_color(), va="bottom", **over)
    if len(rows):
        ax.set_ylim(len(rows) - 0.6, -0.85)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.set_title("")
    _wrap(ax)


def _wrap(ax: Any) -> None:
    ax.set_xlabel(textwrap.fill(typeset(ax.get_xlabel()), LINE), loc="right")


def evidence(facts: Facts) -> tuple[str, str] | None:
    """The path of the log evidence; None if the model has none."""
    if not len(getattr(facts.model, "evidence_path_", [])):
        return None
    display = EvidencePathDisplay.from_estimator(facts.model)
    shown = min(len(display.paths), len(SERIES))
    labels = [f"class {name(label, 16)}" if label else "" for label in display.labels]
    less = EvidencePathDisplay(paths=display.paths[:shown], labels=labels[:shown], converged=display.converged)

    def draw(ax: Any) -> None:
        less.plot(ax, quantity="to-gain" if _climbs(display) else "evidence")
        ax.set_title("")
        if shown > 1:
            _legend_above(ax)
        if _climbs(display):
            ax.yaxis.set_major_formatter(lambda value, _: number(value, 1))

    left_out = f" Only the first {shown} classes are drawn." if shown < len(labels) else ""
    return drawn(draw, 2.9 + 0.1 * shown, "evidence", "Log evidence step by step"), typeset(less.text()) + left_out


def _legend_above(ax: Any) -> None:
    ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=2, columnspacing=1.2, handlelength=1.6)


def _climbs(display: EvidencePathDisplay) -> bool:
    """Whether to draw the path on a logarithmic axis: a long path that only rises gains most in its first steps."""
    path = display.paths[0][np.isfinite(display.paths[0])]
    rises = np.all(np.diff(path) >= -np.finfo(float).eps * np.abs(path).max(initial=0.0))
    return len(display.paths) == 1 and len(path) > LONG and bool(rises)


def scatter(facts: Facts) -> tuple[str, str]:
    """Predicted against true values of held-out rows, with intervals; of many rows a part is drawn."""
    order = np.argsort(facts.truth, kind="stable")
    shown = order[list(thinned(len(order), POINTS))]
    truth, mean, ends, inside = facts.truth[shown], facts.predicted[shown], facts.intervals[shown], facts.inside[shown]

    def draw(ax: Any) -> None:
        line = [mean.min(), mean.max()]
        gap = np.full(len(truth), np.nan)
        x, y = np.column_stack([mean, mean, gap]).ravel(), np.column_stack([ends, gap]).ravel()
        ax.plot(x, y, color=PALE, lw=2, label=f"{percent(COVERAGE)} interval")
        ax.plot(line, line, color=GREY, lw=1, ls="--", label="true = predicted")
        size = 5 if len(truth) <= 150 else 4
        ax.plot(mean[inside], truth[inside], "o", color=BLUE, ms=size, mew=0, label="in the interval")
        ax.plot(mean[~inside], truth[~inside], "D", color=RED, ms=size, mew=0, label="outside")
        ax.set_xlabel(f"predicted {name(facts.study.target, 32)}")
        ax.set_ylabel("true")
        _legend_above(ax)

    told = (
        f"True against predicted values of {len(facts.truth):,} held-out rows: the correlation is "
        f"{_correlation(facts):.2f}, and {int(facts.inside.sum()):,} rows lie in their {percent(COVERAGE)} intervals."
    )
    if len(shown) < len(order):
        told += f" {len(shown):,} of the rows are drawn, spread evenly over the true values."
    return drawn(draw, 4.6, "predicted", "Predicted against true values"), typeset(told)


def _correlation(facts: Facts) -> float:
    if np.ptp(facts.predicted) == 0 or np.ptp(facts.truth) == 0:
        return 0.0
    return float(np.corrcoef(facts.predicted, facts.truth)[0, 1])


def calibration(facts: Facts) -> tuple[str, str]:
    """Coverage of intervals, or calibration of probabilities."""

    def draw(ax: Any) -> None:
        facts.coverage.plot(ax)
        ax.set_aspect("auto")

    title = "Probabilities against frequencies" if facts.study.classes else "Coverage of the intervals"
    return drawn(draw, 4.2, "calibration", title), typeset(facts.coverage.text())


def of_folds(facts: Facts, feature: int) -> str:
    """How many of the folds keep or claim a feature."""
    n = len(facts.study.kept_by_fold)
    return f"{facts.selection.frequency[feature] * n:.0f}{NO_BREAK}of{NO_BREAK}{n}"


def stability(facts: Facts, order: list[int]) -> str:
    """How many folds keep or claim each of the given features; hatched if the fit to all rows does not."""
    taken = {effect.index for effect in facts.selection.distinct}
    n, more = cut(len(order), ROWS)
    values = np.append(facts.selection.frequency[order[:n]], [np.nan] * len(more))
    strong = np.array([j in taken for j in order[:n]] + [False] * len(more), dtype=bool)
    notes = [of_folds(facts, j) for j in order[:n]]
    verb = "claim" if facts.selection.averaged else "keep"

    def draw(ax: Any) -> None:
        draw_bars(
            ax,
            [name(facts.selection.names[j]) for j in order[:n]] + more,
            values,
            strong,
            notes + more,
            thickness=BELOW,
        )
        ax.set(xlim=(0, 1.18), xticks=np.linspace(0, 1, 6))
        ax.set_xlabel(f"share of the folds that {verb} the feature")
        _names_above(ax)

    return drawn(draw, _height(len(order)), "stability", f"How many folds {verb} each feature")


def importance(found: Importance) -> str:
    """How much shuffling each column raises the error of held-out rows; hatched where that is not clear."""
    n, more = cut(len(found.names), ROWS)
    clear = set(found.clear)
    values = np.append(np.maximum(found.mean[:n], 0.0), [np.nan] * len(more))
    strong = np.array([each in clear for each in found.names[:n]] + [False] * len(more), dtype=bool)
    notes = [number(value, 2, sign=True) for value in found.mean[:n]]

    def draw(ax: Any) -> None:
        draw_bars(ax, [name(each) for each in found.names[:n]] + more, values, strong, notes + more, thickness=BELOW)
        ax.set_xlim(0, 1.2 * max(np.nanmax(values, initial=0.0), np.finfo(float).tiny))
        ax.set_xlabel(f"increase of the {found.unit} when the feature is shuffled")
        _names_above(ax)

    return drawn(draw, _height(len(found.names)), "importance", "Importance of the features")


def comparison(compared: Sequence[Comparison], classes: bool) -> str:
    """Difference in error of the other models, with intervals; percentage points for classes."""
    others = [other for other in compared if np.isfinite(other.score.difference)]
    unit = 100 if classes else 1
    difference = unit * np.array([other.score.difference for other in others])
    ends = unit * np.array([(other.lower, other.upper) for other in others]).reshape(-1, 2)

    def draw(ax: Any) -> None:
        near, right = _near(ends)
        middle, (low, high) = np.where(near, difference, np.nan), np.where(near[:, None], ends, np.nan).T
        draw_intervals(ax, [name(other.score.title) for other in others], middle, low, high, [])
        for row in np.flatnonzero(~near):
            ax.text(
                1,
                row,
                f"{number(difference[row], sign=True)}  →",
                ha="right",
                va="center",
                transform=ax.get_yaxis_transform(),
            )
        if np.isfinite(right):
            ax.set_xlim(right=1.25 * right)
        points = " in percentage points" if classes else ""
        ax.set_xlabel(f"difference in error{points}, {percent(CREDIBLE)} interval (right of the line: worse)")
        _names_above(ax)

    return drawn(draw, _height(len(others)), "comparison", "Error of other models minus that of the first")


def _near(ends: FloatArray) -> tuple[BoolArray, float]:
    """Which intervals are drawn, and where the axis ends: one far beyond the others would shrink them to dots."""
    reach = np.abs(ends).max(axis=1, initial=0.0)
    near = ~(reach > FAR * np.nanmedian(reach)) if len(ends) > 2 else np.ones(len(ends), dtype=bool)
    return near, np.nan if near.all() else float(np.nanmax(ends[near], initial=0.0))
