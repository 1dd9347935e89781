"""Labels by least squares: a Gaussian process for the labels themselves, and a link from it to probabilities.

Where classes hardly overlap, a log-odds process learns from the few rows near the boundary only, and its prior variance
is hard to determine. Least squares asks all rows to be near their labels. All classes, each against the rest, share one
posterior covariance, so that they take no longer than one. The log-odds are η = a f + b, where f is the process and a
and b make each label most probable given the other rows (Rasmussen and Williams 2006, section 6.5, with a logistic link
and one a and b for all classes). See docs/mathematics.md, section 10.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from sparsebayes.core.linalg import weighted_gram
from sparsebayes.core.posterior import GaussianPosterior, relevance
from sparsebayes.core.special import log_sigmoid, sigmoid
from sparsebayes.core.types import FloatArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.least_squares import NOISE_FLOOR
from sparsebayes.engine.process import LOG_RATIOS
from sparsebayes.engine.result import Result

CENTRES_PER_ROOT = 35.0
"""Centres, over √rows: a number of this order keeps the rate at which least squares learns (Rudi, Camoriano and Rosasco
2015). On USPS (7,291 rows) the error is 5.3, 5.1 and 4.8 % with 1,536, 2,134 and 2,988 centres, in 9, 13 and 22 s."""
MAX_CENTRES = 3000
"""Most centres: their eigenvalue decomposition takes four seconds."""
MATERIAL = 0.01
"""Nats by which a ratio must be better than its neighbour. Where nothing needs shrinkage (a linear kernel of few
features) the density has a plateau, along which rounding would lead to an endless prior variance."""
BLOCK_ROWS = 1024
"""Rows whose squares are held at a time."""


def regression_centres(n_rows: int) -> int:
    """Most centres of a regression on labels."""
    return min(MAX_CENTRES, max(1, int(CENTRES_PER_ROOT * np.sqrt(n_rows))))


class Link(NamedTuple):
    """The log-odds a f + b of a process f."""

    a: float
    b: float


class HeldOutLabels(NamedTuple):
    """Means and variances of every label given the other rows, one labelling in each column; and the noise variance."""

    mean: FloatArray
    variance: FloatArray
    noise: float


class Chosen(NamedTuple):
    """A ratio of signal to noise, the link that goes with it, and the log probability of labels given other rows."""

    ratio: float
    link: Link
    density: float


@dataclass(frozen=True)
class LabelRegression:
    """Labels ±½ of the same rows, one labelling in each column of T, on columns whose weights share one prior."""

    columns: DenseRows
    """G, centred by weight where the intercept is flat; rows are not multiplied by their weights."""
    T: FloatArray
    weight: FloatArray
    flat_intercept: bool

    @cached_property
    def level(self) -> FloatArray:
        """Means of the labels, which a flat intercept takes."""
        return (
            np.asarray(self.weight @ self.T / self.weight.sum()) if self.flat_intercept else np.zeros(self.T.shape[1])
        )

    @cached_property
    def axes(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Eigenvalues and axes of GᵀVG, the rows in these axes, and their products with the labels."""
        G = self.columns.columns(slice(None))
        e, axes = np.linalg.eigh(weighted_gram(G, self.weight))
        rows = G @ axes
        return np.maximum(e, 0.0), axes, rows, rows.T @ (self.weight[:, None] * (self.T - self.level))

    @cached_property
    def leverages(self) -> FloatArray:
        """h = g(x)ᵀ(GᵀVG + I/c)⁻¹g(x), plus 1/N for a flat intercept: a row for each row, a column for each ratio c."""
        e, _, rows, _ = self.axes
        shrink = 1 / (e[:, None] + np.exp(-LOG_RATIOS))
        blocks = [rows[i : i + BLOCK_ROWS] ** 2 @ shrink for i in range(0, len(rows), BLOCK_ROWS)]
        return np.concatenate(blocks) + self.flat_intercept / float(self.weight.sum())

    def held_out(self, i: int) -> HeldOutLabels:
        """Every label given the other rows: error r/(1 - h) and variance σ²h/(1 - h), at the ratio s/σ² of number i."""
        e, _, rows, products = self.axes
        shrink, leverage = 1 / (e + np.exp(-LOG_RATIOS[i])), self.leverages[:, i]
        residual = self.T - self.level - rows @ (shrink[:, None] * products)
        stays = np.maximum(1 - np.minimum(self.weight, 1.0) * leverage, np.finfo(np.float64).eps)
        noise = self._noise(shrink)
        return HeldOutLabels(self.T - residual / stays[:, None], noise * leverage / stays, noise)

    def _noise(self, shrink: FloatArray) -> float:
        """σ² of largest evidence, one for all labellings: Σ p/(1 + ce) over the degrees of freedom."""
        energy = float(self.weight @ ((self.T - self.level) ** 2).sum(axis=1))
        left = energy - float((shrink[:, None] * self.axes[3] ** 2).sum())
        free = max(float(self.weight.sum()) - self.flat_intercept, 1.0)
        return float(max(left, NOISE_FLOOR * energy) / (free * self.T.shape[1]))

    def choose(self) -> Chosen:
        """The ratio under which held-out labels are most probable: the best on a grid, climbed from its middle."""
        tried: dict[int, Chosen] = {}

        def at(i: int) -> Chosen:
            if i not in tried:
                link, density = best_link(self.held_out(i), self.T, self.weight)
                tried[i] = Chosen(float(np.exp(LOG_RATIOS[i])), link, density)
            return tried[i]

        here = len(LOG_RATIOS) // 2
        while True:
            near = [i for i in (here, here - 1, here + 1) if 0 <= i < len(LOG_RATIOS)]
            best = max(near, key=lambda i: at(i).density - (i != here) * MATERIAL)
            if best == here:
                return at(here)
            here = best

    def results(self, chosen: Chosen) -> Sequence[Result]:
        """The log-odds of each labelling as a model on the columns."""
        e, axes, _, products = self.axes
        (a, b), shrink = chosen.link, 1 / (e + 1 / chosen.ratio)
        noise = self._noise(shrink)
        weights, signal = axes @ (shrink[:, None] * products), a * a * chosen.ratio * noise
        root = (a * np.sqrt(noise * shrink)[:, None]) * axes.T
        var, alpha = (root**2).sum(axis=0), np.full(len(e), 1 / signal)
        posterior = GaussianPosterior(
            mean=np.zeros(len(e)),
            var=var,
            gamma=relevance(alpha, var),
            logdet=float(np.log(a * a * noise * shrink).sum()),
            root=root,
            diagonal=np.zeros(len(e)),
            sign=1,
            jitter=0.0,
        )
        return [
            Result(
                active=np.arange(len(e)),
                alpha=alpha,
                posterior=replace(posterior, mean=a * w),
                level=float(a * level + b),
                level_variance=a * a * noise / float(self.weight.sum()) if self.flat_intercept else 0.0,
                log_evidence=chosen.density,
                worth=np.zeros(len(e)),
                gap=0.0,
                converged=True,
            )
            for w, level in zip(weights.T, self.level, strict=True)
        ]


def best_link(labels: HeldOutLabels, T: FloatArray, weight: FloatArray) -> tuple[Link, float]:
    """a and b under which held-out labels are most probable, and the log probability.

    The log-odds of a label are (a m + b)/√(1 + π a² v/8), MacKay's average over the process. Where all held-out labels
    are on their side, a would be infinite. So labels count as if each side had one row more of the other kind (Platt
    1999): their targets are (n + 1)/(n + 2) for n rows on a side.
    """
    m, v, v_row = labels.mean, np.pi / 8 * labels.variance[:, None], weight[:, None]
    positive = T > 0
    ups = float((v_row * positive).sum())
    downs = float(weight.sum() * T.shape[1] - ups)
    target = np.where(positive, (ups + 1) / (ups + 2), 1 / (downs + 2))

    def loss(x: FloatArray) -> tuple[float, FloatArray]:
        a, b = float(np.exp(x[0])), float(x[1])
        size = np.sqrt(1 + a * a * v)
        z = (a * m + b) / size
        value = -float((v_row * (target * log_sigmoid(z) + (1 - target) * log_sigmoid(-z))).sum())
        pull = v_row * (sigmoid(z) - target)
        slope_a = float((pull * (m / size - z * a * v / size**2)).sum())
        return value, np.array([a * slope_a, float((pull / size).sum())])

    # Labels are ±½: with a = 4 a row that the process reproduces has a probability of 0.88. With a slope of 1e-5 nats
    # for each row, the loss is right to some 1e-8.
    found = minimize(loss, np.array([np.log(4.0), 0.0]), jac=True, method="BFGS", options={"gtol": 1e-5 * weight.sum()})
    a, b = float(np.exp(found.x[0])), float(found.x[1])
    z = (a * m + b) / np.sqrt(1 + a * a * v)
    return Link(a, b), float((v_row * log_sigmoid(np.where(positive, z, -z))).sum())
