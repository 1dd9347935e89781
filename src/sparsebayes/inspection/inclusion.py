"""Inclusion probabilities of the features, and the credible sets that they form."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsebayes.core.credible import CLAIMED
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.estimators import Choice, Kept, kept, listed, probable, set_text, short, size_text
from sparsebayes.inspection.display import Display, column, one_of, unwrapped
from sparsebayes.inspection.rows import MOST, THICKNESS, cut, draw_bars, draw_mark
from sparsebayes.inspection.style import BLUE, INK, SERIES, height

LEAST = 0.05
"""Least probability of a feature that is listed; features of credible sets are always listed."""
SETS = SERIES[2:6]
"""Colours of credible sets with several features: not blue (one feature), red (the threshold) or ink."""


class InclusionDisplay(Display):
    """Inclusion probabilities of the most probable features, grouped by credible set.

    Features of one credible set are correlated, and the data show that at least one of them matters, but not which.

    Parameters
    ----------
    names : sequence of str
        The features: those of the surest credible set first, features without a set last. The arrays below have the
        same order.
    probability : ndarray
        Inclusion probability of each feature.
    group : ndarray of int
        Number of the credible set of each feature, -1 for none.
    set_probability : ndarray
        Probability of each set that at least one of its features is in the model.
    n_candidates : int
        Number of features to choose from.
    n_features : tuple of int or None
        Number of features in the model: lower end of its 90 % range, median, upper end.
    title : str
        Title; by default it says how many features are claimed.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last `plot`.
    """

    def __init__(
        self,
        *,
        names: Sequence[str],
        probability: FloatArray,
        group: IntArray,
        set_probability: FloatArray,
        n_candidates: int,
        n_features: tuple[int, int, int] | None = None,
        title: str = "",
    ) -> None:
        self.names, self.probability = list(names), probability
        self.group, self.set_probability = np.asarray(group, dtype=np.intp), set_probability
        self.n_candidates, self.n_features = n_candidates, n_features
        self.title = title or self._claims()

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        least: float = LEAST,
        output: Any = None,
        feature_names: Sequence[str] | None = None,
    ) -> "InclusionDisplay":
        """From a fitted estimator that averages over models, or a pipeline that ends in one.

        Parameters
        ----------
        estimator : fitted estimator of this library with `inclusion_probability_`, or a pipeline that ends in one
        least : float, default=0.05
            Features that are less probable than this are left out, unless they belong to a credible set.
        output : int or label, optional
            Which output or class, if the model has several.
        feature_names : sequence of str, optional
            Names of the features, if the model was not fitted to a data frame.
        """
        model, _, names = unwrapped(estimator, None, feature_names)
        parts = kept(model)
        if any(part.choice is None for part in parts):
            raise TypeError(
                f"this {type(model).__name__} is a single model, which has no inclusion probabilities: fit it with "
                "average=True"
            )
        part = one_of(parts, [part.output for part in parts], output)
        return cls.from_parts([part], names, least=least)

    @classmethod
    def from_parts(cls, parts: Sequence[Kept], names: Sequence[str], *, least: float = LEAST) -> "InclusionDisplay":
        """From one or several outputs or classes of an averaged model; several are shown together.

        Parameters
        ----------
        parts : sequence of Kept
            What `sparsebayes.estimators.kept` says of the outputs.
        names : sequence of str
            Names of all features of the model.
        least : float, default=0.05
            As in `from_estimator`.
        """
        choices = [(part.output, part.choice) for part in parts if part.choice is not None]
        several = len(choices) > 1
        groups: list[tuple[float, bool, list[tuple[str, float]]]] = []
        for output, choice in choices:
            after = f" · {output}" if several else ""
            for sure, is_set, features in _groups(choice, least):
                rows = [(names[j] + after, float(choice.probability[j])) for j in features]
                groups.append((sure, is_set, rows))
        groups.sort(key=lambda group: (not group[1], -group[0]))
        numbered = [k if is_set else -1 for k, (_, is_set, rows) in enumerate(groups) for _ in rows]
        display = cls(
            names=[name for _, _, rows in groups for name, _ in rows],
            probability=np.array([value for _, _, rows in groups for _, value in rows]),
            group=np.array(numbered, dtype=np.intp),
            set_probability=np.array([sure for sure, is_set, _ in groups if is_set]),
            n_candidates=len(names) * len(choices),
            n_features=None if several else choices[0][1].n_features(),
        )
        output = "" if several else choices[0][0]
        display.title = f"{short(output, 24)}: " * bool(output) + display.title
        return display

    @property
    def claimed(self) -> Any:
        """Which features have a probability of at least 0.9."""
        return self.probability >= CLAIMED

    def _claims(self) -> str:
        return f"claims {int(self.claimed.sum())} of {self.n_candidates} features"

    def plot(self, ax: Any = None, *, max_features: int = MOST, thickness: float = THICKNESS) -> "InclusionDisplay":
        """Draw one bar per feature.

        Bars of features without a credible set are hatched. A bracket joins the features of one set.

        Parameters
        ----------
        ax : matplotlib axes, optional
        max_features : int, default=30
            Number of features that are drawn; the rest is counted.
        thickness : float, default=0.62
            Thickness of a bar, as a share of the distance between bars.
        """
        n, more = cut(len(self.names), max_features)
        with self._canvas(ax, (6.4, height(n + len(more)))) as ax:
            notes = [probable(value) for value in self.probability[:n]]
            values = np.append(self.probability[:n], [np.nan] * len(more))
            strong = np.append(self.group[:n], [-1] * len(more)) >= 0
            colours = [*self._colours()[:n], *[INK] * len(more)]
            draw_bars(ax, self.names[:n] + more, values, strong, notes + more, thickness, colours)
            for k in range(len(self.set_probability)):
                self._bracket(ax, k, n)
            draw_mark(ax, CLAIMED, f"claimed from {probable(CLAIMED)}")
            ax.set(xlim=(0, 1.2), xticks=np.linspace(0, 1, 6))
            ax.set_xlabel("inclusion probability", loc="right")
            ax.set_title(self.title, parse_math=False, pad=18)
            self._drawn(ax)
        return self

    def _colours(self) -> list[str]:
        """Blue for sets of one feature, otherwise a colour for each set."""
        sizes = np.bincount(self.group[self.group >= 0], minlength=len(self.set_probability))
        order = np.cumsum(sizes > 1) - 1
        return [BLUE if k < 0 or sizes[k] == 1 else SETS[order[k] % len(SETS)] for k in self.group]

    def _bracket(self, ax: Any, k: int, n: int) -> None:
        """Join the rows of a set with several features, and write its probability beside them."""
        rows = np.flatnonzero(self.group == k)
        drawn = rows[rows < n]
        if len(rows) < 2 or not len(drawn):
            return
        colour, beside = self._colours()[rows[0]], ax.get_yaxis_transform()
        top, bottom = drawn[0] - 0.35, drawn[-1] + 0.35
        line = [1.0, 1.015, 1.015, 1.0], [top, top, bottom, bottom]
        ax.plot(*line, color=colour, lw=1.8, transform=beside, clip_on=False)
        told = f"one of {len(rows)}:\n{probable(self.set_probability[k])}"
        ax.text(1.03, (top + bottom) / 2, told, va="center", fontsize=8.5, color=INK, transform=beside)

    def to_table(self) -> dict[str, list[Any]]:
        """One row per feature: name, probability, number and probability of its set (-1 and None if it has none)."""
        return {
            "name": list(self.names),
            "probability": column(self.probability),
            "set": column(self.group),
            "set_probability": [float(self.set_probability[k]) if k >= 0 else None for k in self.group.tolist()],
        }

    def text(self) -> str:
        """Claimed features, credible sets of several features and the number of features, in a few sentences."""
        order = np.argsort(-self.probability, kind="stable").tolist()
        tops = [f"{short(self.names[k])} ({probable(self.probability[k])})" for k in order if self.claimed[k]]
        told = f"{self.title[:1].upper()}{self.title[1:]} with an inclusion probability of at least {probable(CLAIMED)}"
        told += f": {listed(tops)}." if tops else "."
        sets = []
        for k, sure in enumerate(self.set_probability.tolist()):
            members = [short(self.names[row]) for row in np.flatnonzero(self.group == k)]
            sets += [set_text(members, sure)] * (len(members) > 1)
        told += f" At least {'; at least '.join(sets)}." if sets else ""
        return told + (f" In the model: {size_text(*self.n_features)}." if self.n_features is not None else "")


def _groups(choice: Choice, least: float) -> list[tuple[float, bool, list[int]]]:
    """Credible sets, then single features without a set: probability, whether it is a set, and features."""
    found: list[tuple[float, bool, list[int]]] = []
    for each in choice.sets:
        found.append((each.probability, True, sorted(each.features.tolist(), key=lambda j: -choice.probability[j])))
    taken = {j for _, _, features in found for j in features}
    others = [j for j in np.flatnonzero(choice.probability >= least).tolist() if j not in taken]
    return found + [(float(choice.probability[j]), False, [j]) for j in others]
