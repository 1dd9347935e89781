"""The kept or claimed features with their weights, intervals and evidence or probabilities."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsebayes.core.types import FloatArray
from sparsebayes.estimators import Kept, kept, listed, probable, short
from sparsebayes.inspection.display import Display, column, matrix, one_of, unwrapped
from sparsebayes.inspection.effects import effects_of, weight_label
from sparsebayes.inspection.rows import BEHIND, MOST, cut, draw_bars, draw_intervals, draw_mark
from sparsebayes.inspection.style import GREY, height, percent

NEAR_SHOWN = 5
"""Most nearly kept or likely features that are shown below the others."""


class RelevanceDisplay(Display):
    """Kept features (or relevance vectors), most important first.

    Of a model that is averaged over models: the features that it claims, with averaged weights.

    Make one with `from_estimator`, `from_estimators` or `from_weights`.

    Parameters
    ----------
    names : sequence of str
        Names of the kept features, most important first. The arrays below have the same order.
    weight, lower, upper : ndarray
        Weights and the ends of their intervals (nan if there are none).
    gain : ndarray or None
        Nats of evidence that each feature adds.
    frequency : ndarray or None
        Share of repetitions that keep each feature.
    probability : ndarray or None
        Inclusion probability of each feature, for an averaged model.
    near_names : sequence of str
        Features below the threshold. Single model: those that would add at least half of `asked`. Averaged model: those
        with an inclusion probability from 0.5 to 0.9.
    near_gain, near_probability : ndarray or None
        What they would add, or their inclusion probabilities.
    asked : float
        Nats that one more feature must add: `min_gain_`, or more if the kept features use many degrees of freedom.
    n_candidates : int or None
        Number of features to choose from.
    title, weight_label : str
        Title, and unit of the weights.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last `plot`.
    """

    def __init__(
        self,
        *,
        names: Sequence[str],
        weight: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        gain: FloatArray | None = None,
        frequency: FloatArray | None = None,
        probability: FloatArray | None = None,
        near_names: Sequence[str] = (),
        near_gain: FloatArray | None = None,
        near_probability: FloatArray | None = None,
        asked: float = 0.0,
        n_candidates: int | None = None,
        title: str = "",
        weight_label: str = "weight",
    ) -> None:
        self.names = list(names)
        self.weight, self.lower, self.upper = weight, lower, upper
        self.gain, self.frequency, self.probability = gain, frequency, probability
        self.near_names = list(near_names)
        self.near_gain = np.empty(0) if near_gain is None else near_gain
        self.near_probability = near_probability
        self.asked, self.n_candidates = asked, n_candidates
        self.title, self.weight_label = title, weight_label

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        coverage: float = 0.95,
        output: Any = None,
        feature_names: Sequence[str] | None = None,
    ) -> "RelevanceDisplay":
        """From a fitted estimator, or a pipeline that ends in one.

        Parameters
        ----------
        estimator : fitted estimator of this library, or a pipeline that ends in one
        X : array-like of shape (n_samples, n_features), optional
            With it, weights are effects of one standard deviation of each feature, and features are ordered by size.
            Without it, weights are per unit of the feature, and features are ordered by evidence or probability.
        coverage : float, default=0.95
            Posterior probability of the intervals.
        output : int or label, optional
            Which output or class, if the model has several.
        feature_names : sequence of str, optional
            Names of the features, if the model was not fitted to a data frame.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"coverage={coverage!r} must be between 0 and 1")
        model, X, names = unwrapped(estimator, X, feature_names)
        parts = kept(model)
        part = one_of(parts, [part.output for part in parts], output)
        features = part.what == "feature"
        spread = matrix(X, model).std(axis=0) if features and X is not None else None
        effects = effects_of(part, spread, coverage)
        near = part.near_misses() if part.choice is None else part.choice.likely()
        interval = f", {percent(coverage)} interval" * bool(np.isfinite([effects.lower, effects.upper]).all())
        return cls(
            names=[names[j] if features else f"row {j}" for j in effects.index],
            weight=effects.weight,
            lower=effects.lower,
            upper=effects.upper,
            gain=effects.gain if len(part.gain) else None,
            near_names=[names[j] for j in near],
            near_gain=part.gain[near] if len(part.gain) else None,
            probability=None if part.choice is None else effects.probability,
            near_probability=None if part.choice is None else part.choice.probability[near],
            asked=part.asked,
            n_candidates=len(names) if features else None,
            title=_title(part, len(names)),
            weight_label=weight_label(model, effects.per_sd) + interval,
        )

    @classmethod
    def from_estimators(
        cls, estimators: Sequence[Any], *, output: Any = None, feature_names: Sequence[str] | None = None
    ) -> "RelevanceDisplay":
        """From fits to several data sets, folds or seeds: how often each feature is kept, and its mean weight.

        Parameters
        ----------
        estimators : sequence of fitted estimators (or pipelines) with the same features
        output, feature_names
            As in `from_estimator`.
        """
        weights = []
        for estimator in estimators:
            model, _, names = unwrapped(estimator, None, feature_names)
            parts = kept(model)
            part = one_of(parts, [part.output for part in parts], output)
            if part.what != "feature":
                raise TypeError(
                    f"{type(model).__name__} keeps rows, not features, so that several fits cannot be combined"
                )
            weights.append(np.zeros(len(names)))
            weights[-1][part.index] = part.weight
        if not weights:
            raise ValueError("estimators is empty: pass at least one fitted estimator")
        return cls.from_weights(np.array(weights), feature_names=names)

    @classmethod
    def from_weights(cls, weights: Any, *, feature_names: Sequence[str] | None = None) -> "RelevanceDisplay":
        """From the weights of repeated fits; zero means that a feature was dropped.

        Parameters
        ----------
        weights : array-like of shape (n_repetitions, n_features)
        feature_names : sequence of str, optional
        """
        weights = np.asarray(weights, dtype=np.float64)
        if weights.ndim != 2 or not len(weights):
            raise ValueError(
                f"weights has shape {weights.shape}: it must have one row per repetition and one column per feature"
            )
        if feature_names is None:
            feature_names = [f"x{j}" for j in range(weights.shape[1])]
        if len(feature_names) != weights.shape[1]:
            raise ValueError(f"feature_names has {len(feature_names)} names for {weights.shape[1]} columns of weights")
        frequency, mean, std = (weights != 0).mean(axis=0), weights.mean(axis=0), weights.std(axis=0)
        ever = np.flatnonzero(frequency)
        order = ever[np.lexsort((-np.abs(mean[ever]), -frequency[ever]))]
        return cls(
            names=[str(feature_names[j]) for j in order],
            weight=mean[order],
            lower=(mean - std)[order],
            upper=(mean + std)[order],
            frequency=frequency[order],
            n_candidates=weights.shape[1],
            title=f"kept at least once in {len(weights)} repetitions: {len(order)} of {weights.shape[1]} features",
            weight_label="mean weight ± standard deviation over repetitions",
        )

    def plot(self, ax: Any = None, *, quantity: str = "auto", max_features: int = MOST) -> "RelevanceDisplay":
        """Draw the features.

        Parameters
        ----------
        ax : matplotlib axes, optional
        quantity : {"auto", "weight", "gain", "frequency"}, default="auto"
            Weights with intervals; evidence against the threshold, also of nearly kept features; or how often a
            feature is kept. "auto" is "frequency" for repeated fits, otherwise "weight".
        max_features : int, default=30
            Number of features that are drawn; the rest is counted.
        """
        draw = {"weight": self._draw_weight, "gain": self._draw_gain, "frequency": self._draw_frequency}
        if quantity == "auto":
            quantity = "weight" if self.frequency is None else "frequency"
        if quantity not in draw:
            raise ValueError(f"quantity={quantity!r} must be one of {['auto', *draw]}")
        if quantity != "weight" and getattr(self, quantity) is None:
            single = " or the best single model (model_)" * (self.probability is not None)
            raise ValueError(f"quantity={quantity!r}: the model does not compute it; use quantity='weight'{single}")
        n, more = cut(len(self.names), max_features)
        near = 0 if quantity == "frequency" else min(len(self.near_names), NEAR_SHOWN)
        with self._canvas(ax, (6.4, height(n + len(more) + near))) as ax:
            draw[quantity](ax, n, more, near)
            ax.set_title(self.title, parse_math=False, pad=18 if quantity == "gain" else None)
            self._drawn(ax)
        return self

    def _draw_weight(self, ax: Any, n: int, more: list[str], n_near: int) -> None:
        draw_intervals(
            ax, self.names[:n], self.weight[:n], self.lower[:n], self.upper[:n], more + self.near_names[:n_near]
        )
        for row, note in enumerate(self._near_notes()[:n_near], start=n + len(more)):
            over = {"transform": ax.get_yaxis_transform(), "bbox": BEHIND}
            ax.text(0.01, row, note, va="center", fontsize=8.5, color=GREY, **over)
        ax.set_xlabel(self.weight_label, loc="right")

    def _near_notes(self) -> list[str]:
        if self.near_probability is not None:
            return [f"likely, not claimed: {probable(value)}" for value in self.near_probability]
        return [f"dropped: adds {gain:.1f} of {self.asked:.1f} nats" for gain in self.near_gain]

    def _draw_gain(self, ax: Any, n: int, more: list[str], n_near: int) -> None:
        assert self.gain is not None
        by_gain = np.argsort(-self.gain, kind="stable")[:n]
        names = [self.names[k] for k in by_gain] + more + self.near_names[:n_near]
        values = np.concatenate([self.gain[by_gain], [np.nan] * len(more), self.near_gain[:n_near]])
        notes = [f"{value:.1f}" if value < 1000 else f"{value:.0f}" for value in values]
        draw_bars(ax, names, values, np.arange(len(values)) < n, notes)
        drawn = values[values > 0]
        if len(drawn) and drawn.max() > 100 * drawn.min():
            ax.set_xscale("symlog", linthresh=max(self.asked, 1.0))
        ax.set_xlim(0, 1.15 * np.max(drawn, initial=max(self.asked, 1e-3)))
        if self.asked > 0:
            draw_mark(ax, self.asked, f"threshold: {self.asked:.1f}")
        ax.set_xlabel("evidence that the feature adds (nats)", loc="right")

    def _draw_frequency(self, ax: Any, n: int, more: list[str], _: int) -> None:
        assert self.frequency is not None
        notes = [f"{mean:+.3g} ± {top - mean:.2g}" for mean, top in zip(self.weight[:n], self.upper[:n], strict=True)]
        values = np.append(self.frequency[:n], [np.nan] * len(more))
        draw_bars(ax, self.names[:n] + more, values, values > 0, notes + more)
        ax.set(xlim=(0, 1.25), xticks=np.linspace(0, 1, 6))
        ax.set_xlabel("share of repetitions that keep it (mean weight ± standard deviation)", loc="right")

    def to_table(self) -> dict[str, list[Any]]:
        """One row per feature, most important first: name, weight, interval, and further quantities if known."""
        table = {"name": list(self.names)}
        for key in ("weight", "lower", "upper", "gain", "frequency", "probability"):
            values = getattr(self, key)
            if values is not None:
                table[key] = column(values)
        return table

    def text(self) -> str:
        """The features and their weights in one sentence."""
        tops = [f"{short(name)} ({weight:+.3g})" for name, weight in zip(self.names, self.weight, strict=True)]
        told = _sentence(self.title)
        told += f", most important first, with {self.weight_label}: {listed(tops)}." if tops else "."
        near = listed([short(name) for name in self.near_names])
        if near and self.near_probability is not None:
            told += f" Likely, not claimed: {near}."
        elif near and tops:
            told += f" Nearly kept (threshold {self.asked:.1f} nats): {near}."
        return told


def _sentence(title: str) -> str:
    return title[:1].upper() + title[1:]


def _title(part: Kept, n_features: int) -> str:
    if part.choice is not None:
        claims = f"claims {len(part.index)} of {n_features} features (inclusion probability at least 90 %)"
        return f"{short(part.output, 24)}: " * bool(part.output) + claims
    of = f" of {n_features}" if part.what == "feature" else ""
    plural = "" if len(part.index) == 1 and not of else "s"
    return f"{short(part.output, 24)}: " * bool(part.output) + f"kept {len(part.index)}{of} {part.what}{plural}"
