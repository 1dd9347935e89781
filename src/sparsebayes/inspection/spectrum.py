"""The kept channels of a spectrum."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.estimators import Kept, kept, listed
from sparsebayes.inspection.display import Display, column, matrix, one_of, unwrapped
from sparsebayes.inspection.effects import effects_of
from sparsebayes.inspection.style import BLUE, INK, PALE, RED

NUMBER = re.compile(r"\d+(?:\.\d+)?")


class RelevanceSpectrumDisplay(Display):
    """The mean spectrum with the kept channels, marked by sign and size of their weights.

    Of a model that is averaged over models: the channels of its credible sets. Neighbouring channels are alike, so that
    the data often determine a band and not one channel of it.

    Parameters
    ----------
    wavelengths : ndarray of shape (n_channels,)
        Position of each channel, ascending.
    mean, spread : ndarray of shape (n_channels,)
        Mean and standard deviation of the spectra.
    channels : ndarray of int
        The kept channels, or those of the credible sets.
    weight : ndarray
        Effects of one standard deviation of the kept channels.
    label : str
        Label of the horizontal axis.
    n_sets : int or None
        Number of credible sets; None for a single model.

    Attributes
    ----------
    ax_, figure_
        Axes and figure of the last `plot`.
    """

    def __init__(
        self,
        *,
        wavelengths: FloatArray,
        mean: FloatArray,
        spread: FloatArray,
        channels: IntArray,
        weight: FloatArray,
        label: str = "wavelength",
        n_sets: int | None = None,
    ) -> None:
        self.wavelengths, self.mean, self.spread = wavelengths, mean, spread
        self.channels, self.weight, self.label, self.n_sets = channels, weight, label, n_sets

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        *,
        wavelengths: Sequence[float] | None = None,
        output: Any = None,
        label: str | None = None,
    ) -> "RelevanceSpectrumDisplay":
        """From a fitted estimator that keeps features, or a pipeline that does not change their number.

        Parameters
        ----------
        estimator : fitted estimator
        X : array-like of shape (n_samples, n_channels)
            The spectra.
        wavelengths : sequence of float, optional
            Position of each channel; by default the numbers in the feature names if these are unique, otherwise
            0, 1, 2, …
        output : int or label, optional
            Which output or class, if the model has several.
        label : str, optional
            Label of the horizontal axis; by default "wavelength", or "channel" if channels are only numbered.
        """
        model, inner, names = unwrapped(estimator, X)
        parts = kept(model)
        part = one_of(parts, [part.output for part in parts], output)
        if part.what != "feature":
            raise TypeError(f"{type(model).__name__} keeps rows, not channels: use a linear model")
        spectra = matrix(X, model)
        effects = effects_of(_marked(part), matrix(inner, model).std(axis=0))
        if wavelengths is None:
            wavelengths, found = _wavelengths(names)
            label = label or found
        places = np.asarray(wavelengths, dtype=np.float64)
        if places.shape != (len(names),):
            raise ValueError(f"wavelengths has shape {places.shape} for {len(names)} channels")
        order = np.argsort(places, kind="stable")
        rank = np.empty(len(order), dtype=np.intp)
        rank[order] = np.arange(len(order))
        by_place = np.argsort(rank[effects.index])
        return cls(
            wavelengths=places[order],
            mean=spectra.mean(axis=0)[order],
            spread=spectra.std(axis=0)[order],
            channels=rank[effects.index][by_place],
            weight=effects.weight[by_place],
            label=label or "wavelength",
            n_sets=None if part.choice is None else len(part.choice.sets),
        )

    def plot(self, ax: Any = None) -> "RelevanceSpectrumDisplay":
        """Draw the spectrum. Triangles point up for positive weights; their area shows the size of the weight."""
        with self._canvas(ax, (7.2, 3.6)) as ax:
            x = self.wavelengths
            ax.fill_between(
                x, self.mean - self.spread, self.mean + self.spread, color=PALE, lw=0, label="± standard deviation"
            )
            ax.plot(x, self.mean, color=INK, lw=1.2, label="mean spectrum")
            size = np.abs(self.weight) / np.abs(self.weight).max(initial=0.0) if self.weight.any() else self.weight
            signs = (self.weight > 0, "^", BLUE, "positive weight"), (self.weight < 0, "v", RED, "negative weight")
            for here, marker, colour, name in signs:
                if here.any():
                    at, area = self.channels[here], 25 + 150 * size[here]
                    ax.vlines(x[at], 0, 1, transform=ax.get_xaxis_transform(), color=colour, lw=0.8, alpha=0.5)
                    ax.scatter(
                        x[at], self.mean[at], area, marker=marker, color=colour, edgecolor="white", zorder=3, label=name
                    )
            ax.set(xlabel=self.label, ylabel="signal")
            ax.set_title(self._title(), pad=24)
            ax.margins(x=0.01)
            spacing = {"columnspacing": 1.2, "handlelength": 1.4, "handletextpad": 0.5, "borderaxespad": 0.1}
            legend = ax.legend(ncols=4, loc="lower left", bbox_to_anchor=(0, 0.99), **spacing)
            for handle in legend.legend_handles:
                if hasattr(handle, "set_sizes"):
                    handle.set_sizes([45])
            self._drawn(ax)
        return self

    def _title(self) -> str:
        of = f"{len(self.channels)} of {len(self.wavelengths)} channels"
        return f"kept {of}" if self.n_sets is None else f"{of} in {self.n_sets} credible set{'s' * (self.n_sets != 1)}"

    def to_table(self) -> dict[str, list[Any]]:
        """One row per kept channel: wavelength, weight, mean and spread of the signal."""
        at = self.channels
        columns = self.wavelengths[at], self.weight, self.mean[at], self.spread[at]
        return dict(zip(("wavelength", "weight", "mean", "spread"), map(column, columns), strict=True))

    def text(self) -> str:
        """The channels in one sentence, largest weights first."""
        order = np.argsort(-np.abs(self.weight), kind="stable")
        tops = [f"{self.wavelengths[self.channels[k]]:g} ({self.weight[k]:+.3g})" for k in order]
        title = self._title()
        told = f"{title[:1].upper()}{title[1:]} of the mean spectrum"
        return f"{told}, by {self.label}: {listed(tops)}." if tops else f"{told}."


def _marked(part: Kept) -> Kept:
    """The kept channels or, of an averaged model, those that are claimed or in a credible set."""
    if part.choice is None:
        return part
    sets = [found.features for found in part.choice.sets]
    return part.of(np.unique(np.concatenate([part.index, *sets])))


def _wavelengths(names: Sequence[str]) -> tuple[list[float], str]:
    """The numbers in the names if they are unique, otherwise 0, 1, 2, …; and the label of the axis."""
    numbers = [NUMBER.findall(name) for name in names]
    values = [float(found[0]) for found in numbers if len(found) == 1]
    counted = [float(j) for j in range(len(names))]
    if len(set(values)) < len(names) or values == counted:
        return counted, "channel"
    return values, "wavelength"
