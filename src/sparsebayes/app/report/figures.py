"""The pictures of a report, drawn by the displays of `sparsebayes.inspection` where there is one."""

import textwrap
from typing import Any

import numpy as np

from sparsebayes.app.facts import COVERAGE, CREDIBLE, Effect, Facts, thinned
from sparsebayes.app.report.svg import drawn
from sparsebayes.app.report.words import NO_BREAK, name, number, percent, typeset
from sparsebayes.core.types import BoolArray, FloatArray
from sparsebayes.inspection import EvidencePathDisplay, RelevanceDisplay
from sparsebayes.inspection.rows import BEHIND, cut, draw_bars, draw_intervals
from sparsebayes.inspection.style import BLUE, GREY, PALE, RED, SERIES

ROWS = 12
"""Named rows of a picture."""
POINTS = 400
"""Points of a scatter."""
LONG = 5
"""Steps from which on a path is drawn by what was still to be gained."""
FAR = 5
"""Times the median from which on a difference is written, not drawn."""
LINE = 50
"""Letters of an axis label in a line."""


def effect_name(effect: Effect) -> str:
    """What an effect is on, and on which class."""
    return f"{effect.name} · {effect.output}" if effect.output else effect.name


def relevance(facts: Facts) -> tuple[str, str]:
    """Kept features or vectors with their weights and intervals."""
    effects = facts.effects
    weight, lower, upper = (
        np.array([getattr(effect, key) for effect in effects]) for key in ("weight", "lower", "upper")
    )
    of = (
        f" of {len(facts.names):,} features"
        if facts.what == "feature"
        else f" of {len(facts.study.y):,} rows as vectors"
    )
    display = RelevanceDisplay(
        names=[effect_name(effect) for effect in effects],
        weight=weight,
        lower=lower,
        upper=upper,
        title=f"kept {len(facts.distinct):,}{of}",
        weight_label=facts.weight_label,
    )

    def draw(ax: Any) -> None:
        display.plot(ax, quantity="weight", max_features=ROWS)
        _names_above(ax)

    return drawn(draw, _height(len(effects)), "relevance", "Weights of what was kept"), typeset(display.text())


def _height(n: int) -> float:
    return 1.0 + 0.4 * max(cut(n, ROWS)[0] + (n > ROWS), 1)


def _names_above(ax: Any) -> None:
    """Names above their rows instead of beside them: on a phone there is no room beside."""
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
    """The path of the log evidence; nothing where the model has none."""
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

    left_out = f" The first {shown} classes are drawn." if shown < len(labels) else ""
    return drawn(draw, 2.9 + 0.1 * shown, "evidence", "Log evidence step by step"), typeset(less.text()) + left_out


def _legend_above(ax: Any) -> None:
    ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1), ncols=2, columnspacing=1.2, handlelength=1.6)


def _climbs(display: EvidencePathDisplay) -> bool:
    """Whether the path is better seen on a logarithmic axis: most is gained at once, and the rest would be flat."""
    path = display.paths[0][np.isfinite(display.paths[0])]
    rises = np.all(np.diff(path) >= -np.finfo(float).eps * np.abs(path).max(initial=0.0))
    return len(display.paths) == 1 and len(path) > LONG and bool(rises)


def scatter(facts: Facts) -> tuple[str, str]:
    """Predicted against true values of held-out rows, with intervals; many rows are thinned."""
    order = np.argsort(facts.truth, kind="stable")
    shown = order[list(thinned(len(order), POINTS))]
    truth, mean, ends, held = facts.truth[shown], facts.predicted[shown], facts.ends[shown], facts.held[shown]

    def draw(ax: Any) -> None:
        line = [mean.min(), mean.max()]
        gap = np.full(len(truth), np.nan)
        x, y = np.column_stack([mean, mean, gap]).ravel(), np.column_stack([ends, gap]).ravel()
        ax.plot(x, y, color=PALE, lw=2, label=f"{percent(COVERAGE)} interval")
        ax.plot(line, line, color=GREY, lw=1, ls="--", label="true = predicted")
        size = 5 if len(truth) <= 150 else 4
        ax.plot(mean[held], truth[held], "o", color=BLUE, ms=size, mew=0, label="in its interval")
        ax.plot(mean[~held], truth[~held], "D", color=RED, ms=size, mew=0, label="not in it")
        ax.set_xlabel(f"predicted {name(facts.study.target, 32)}")
        ax.set_ylabel("true")
        _legend_above(ax)

    told = (
        f"True against predicted values of {len(facts.truth):,} rows that the model had not seen: correlation "
        f"{_correlation(facts):.2f}; {int(facts.held.sum()):,} lie in their {percent(COVERAGE)} intervals."
    )
    if len(shown) < len(order):
        told += f" {len(shown):,} of the rows are drawn, evenly over the true values."
    return drawn(draw, 4.6, "predicted", "Predicted against true values"), typeset(told)


def _correlation(facts: Facts) -> float:
    if np.ptp(facts.predicted) == 0 or np.ptp(facts.truth) == 0:
        return 0.0
    return float(np.corrcoef(facts.predicted, facts.truth)[0, 1])


def promises(facts: Facts) -> tuple[str, str]:
    """Coverage of intervals, or calibration of probabilities."""

    def draw(ax: Any) -> None:
        facts.promises.plot(ax)
        ax.set_aspect("auto")

    title = "Probabilities against frequencies" if facts.study.classes else "Coverage of the intervals"
    return drawn(draw, 4.2, "promises", title), typeset(facts.promises.text())


def of_folds(facts: Facts, feature: int) -> str:
    """How many of how many folds keep a feature."""
    n = len(facts.study.kept_by_fold)
    return f"{facts.frequency[feature] * n:.0f}{NO_BREAK}of{NO_BREAK}{n}"


def stability(facts: Facts, order: list[int]) -> str:
    """How many folds keep each of the features, in the given order; those that the whole data drop are hatched."""
    taken = {effect.index for effect in facts.effects}
    n, more = cut(len(order), ROWS)
    values = np.append(facts.frequency[order[:n]], [np.nan] * len(more))
    strong = np.array([j in taken for j in order[:n]] + [False] * len(more), dtype=bool)
    notes = [of_folds(facts, j) for j in order[:n]]

    def draw(ax: Any) -> None:
        draw_bars(ax, [facts.names[j] for j in order[:n]] + more, values, strong, notes + more, thickness=0.3)
        ax.set(xlim=(0, 1.18), xticks=np.linspace(0, 1, 6))
        ax.set_xlabel("share of the folds that keep the feature")
        _names_above(ax)

    return drawn(draw, _height(len(order)), "stability", "How many folds keep each feature")


def comparison(facts: Facts) -> str:
    """Difference in error of the other models, with intervals; percentage points for classes."""
    others = [score for score in facts.study.scores[1:] if np.isfinite(score.difference)]
    unit = 100 if facts.study.classes else 1
    difference = unit * np.array([score.difference for score in others])
    ends = unit * np.array([facts.difference_interval(score) for score in others]).reshape(-1, 2)

    def draw(ax: Any) -> None:
        near, right = _near(ends)
        middle, (low, high) = np.where(near, difference, np.nan), np.where(near[:, None], ends, np.nan).T
        draw_intervals(ax, [name(score.title) for score in others], middle, low, high, [])
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
        points = " in percentage points" if facts.study.classes else ""
        ax.set_xlabel(f"difference in error{points}, {percent(CREDIBLE)} interval (right of the line: worse)")
        _names_above(ax)

    return drawn(draw, _height(len(others)), "comparison", "Error of other models minus that of this one")


def _near(ends: FloatArray) -> tuple[BoolArray, float]:
    """Which intervals are drawn, and how far the axis then goes: one far beyond all others would make them dots."""
    reach = np.abs(ends).max(axis=1, initial=0.0)
    near = ~(reach > FAR * np.nanmedian(reach)) if len(ends) > 2 else np.ones(len(ends), dtype=bool)
    return near, np.nan if near.all() else float(np.nanmax(ends[near], initial=0.0))
