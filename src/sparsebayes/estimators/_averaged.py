"""A fit that is averaged over models: the weights of many sets of features, each with its probability."""

from dataclasses import dataclass, fields

import numpy as np

from sparsebayes.core.basis import LinearBasis
from sparsebayes.core.credible import CLAIMED
from sparsebayes.core.special import log_ratio, sigmoid
from sparsebayes.core.types import FloatArray
from sparsebayes.engine.averaging import Averaged
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.sets import Draw
from sparsebayes.estimators._linear import LinearFit, Units

VISIBLE = 0.01
"""A feature that is in no draw and less probable than this is left out of the averaged weights."""


@dataclass(frozen=True, kw_only=True)
class AveragedFit(LinearFit):
    """Mean and covariance over all models; evidence, certificate and relevance are those of the best single model."""

    probability: FloatArray
    """That each feature is in the model."""
    std: FloatArray
    """Posterior standard deviation of each weight."""
    sizes: FloatArray
    """Probability of 0, 1, … features."""
    draws: FloatArray
    """Weights of `columns` (and the intercept at the reference, last), one row per draw."""
    share: FloatArray
    """Probability of each draw."""
    error: float
    effective_size: float
    n_flips: int

    @property
    def covariance(self) -> FloatArray:
        """Posterior covariance of the claimed features' weights."""
        root = self.root[:, np.flatnonzero(self.probability[self.active] >= CLAIMED)]
        return root.T @ root

    def draw(self, n_samples: int, rng: np.random.RandomState) -> FloatArray:
        """Draws of the weights (and of the intercept at the reference), out of those that were kept."""
        return self.draws[rng.choice(len(self.draws), size=n_samples, p=self.share)]

    def weight_interval(self, coverage: float, n_features: int) -> FloatArray:
        """Central posterior intervals of all weights, lower and upper end on the last axis; most hold zero."""
        ends = np.zeros((n_features, 2))
        ends[self.active] = weighted_quantiles(self.draws[:, : len(self.active)], self.share, coverage)
        return ends


@dataclass(frozen=True, kw_only=True)
class LogisticAverage(AveragedFit):
    """An average whose probabilities are those of its draws, each with its share."""

    link: tuple[float, float]
    """Slope and shift of the log-odds (engine/held_out_link.py)."""

    @property
    def width(self) -> int:
        """Numbers that a prediction forms for each row."""
        return len(self.mean) + len(self.draws)

    def log_odds(self, X: FloatArray) -> FloatArray:
        """Log-odds of label 1, averaged over the draws, under the link."""
        eta = self.basis(X) @ self.draws.T
        a, b = self.link
        return np.asarray(a * log_ratio(sigmoid(eta) @ self.share, sigmoid(-eta) @ self.share) + b)


def weighted_quantiles(values: FloatArray, share: FloatArray, coverage: float) -> FloatArray:
    """Ends of the central interval of each column, whose rows have these probabilities."""
    order = np.argsort(values, axis=0, kind="stable")
    cumulative = np.cumsum(share[order], axis=0)
    places = [(cumulative < level).sum(axis=0) for level in ((1 - coverage) / 2, (1 + coverage) / 2)]
    rows = np.minimum(np.stack(places, axis=-1), len(values) - 1)
    return np.take_along_axis(values, np.take_along_axis(order, rows.T, axis=0), axis=0).T


def averaged_fit(
    single: LinearFit,
    found: Averaged,
    scale: FloatArray,
    reference: FloatArray,
    *,
    level: float | None,
    mean_level: float | None = None,
    unit: float = 1.0,
    noise: float = 0.0,
    freedom: float = np.inf,
) -> AveragedFit:
    """Averages in the data's units: w = w_standard / scale, and y = level + unit t (level None: no intercept).

    The intercept of the draws is measured from `level`. `mean_level` is its posterior mean where that is known;
    otherwise it is the mean of the draws.
    """
    visible = found.probability > VISIBLE
    for draw in found.draws:
        visible[draw.active] = True
    columns = np.flatnonzero(visible)
    drawn = np.zeros((len(found.draws), len(columns)))
    for row, draw in zip(drawn, found.draws, strict=True):
        row[np.searchsorted(columns, draw.active)] = draw.weights
    drawn /= scale[columns]
    mean = found.mean[columns] / scale[columns]
    share = np.array([draw.share for draw in found.draws])
    share = share / share.sum()
    if level is not None:
        levels = level + unit * np.array([draw.level for draw in found.draws])
        drawn = np.column_stack([drawn, levels])
        mean = np.append(mean, share @ levels if mean_level is None else mean_level)
    root = np.sqrt(share)[:, None] * (drawn - share @ drawn)
    if len(root) > root.shape[1]:
        root = np.linalg.qr(root, mode="r")
    finite = np.where(np.isfinite(scale), scale, 1.0)
    return AveragedFit(
        basis=LinearBasis(columns, reference[columns], ones=level is not None),
        mean=mean,
        root=root,
        diagonal=np.zeros(len(mean)),
        sign=1,
        columns=columns,
        precision=single.precision,
        gamma=single.gamma,
        log_evidence=single.log_evidence,
        path=single.path,
        worth=single.worth,
        min_gain=single.min_gain,
        gap=single.gap,
        converged=single.converged and found.agrees,
        n_jittered=single.n_jittered,
        noise_variance=unit**2 * noise,
        freedom=freedom,
        noise_at_floor=single.noise_at_floor,
        probability=found.probability,
        std=found.std / finite,
        sizes=found.sizes,
        draws=drawn,
        share=share,
        error=found.error,
        effective_size=found.effective_size,
        n_flips=found.n_flips,
    )


def logistic_average(fit: AveragedFit, link: tuple[float, float]) -> LogisticAverage:
    """The same with probabilities of its own."""
    return LogisticAverage(**{each.name: getattr(fit, each.name) for each in fields(fit)}, link=link)


def regression_average(
    single: LinearFit, found: Averaged, units: Units, problem: LeastSquares, origin: FloatArray, n: float
) -> AveragedFit:
    """Averages of a regression in the data's units; `n` degrees of freedom tell of the noise, unless it is known."""
    known = problem.known_noise is not None
    return averaged_fit(
        single,
        found,
        units.scale,
        origin,
        level=units.centre if problem.flat_intercept else None,
        mean_level=units.centre,
        unit=units.unit,
        noise=1.0 if known else found.rest / max(n - 2, 1.0),
        freedom=np.inf if known else n,
    )


def constant_average(single: LinearFit, n_features: int) -> AveragedFit:
    """The average over models of a target without any spread: no feature is in any of them."""
    nothing = np.zeros(n_features)
    sizes = np.zeros(n_features + 1)
    sizes[0] = 1.0
    draw = Draw(np.empty(0, dtype=np.intp), np.empty(0), 0.0, 0.0, 1.0)
    found = Averaged(nothing, nothing, nothing, sizes, 0.0, 0.0, 1.0, 0, [draw])
    level = single.mean[-1] if single.basis.ones else None
    return averaged_fit(single, found, np.ones(n_features), nothing, level=level, freedom=1.0)
