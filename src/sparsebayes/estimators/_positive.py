"""The parameter `positive` of `ARDRegressor`: weights that may not be negative."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from sparsebayes.core.priors import ARD
from sparsebayes.core.signed import Signed
from sparsebayes.core.types import BoolArray, FloatArray
from sparsebayes.estimators._linear import LinearFit

POSITIVE: list[Any] = ["boolean", "array-like"]
"""What `positive` may be."""


@dataclass(frozen=True)
class PositiveFit(LinearFit):
    """A linear fit some of whose weights may not be negative: intervals and draws end at zero."""

    bounded: BoolArray = field(default_factory=lambda: np.empty(0, dtype=bool))
    """Which of the kept weights may not be negative."""

    def weight_interval(self, coverage: float, n_features: int) -> FloatArray:
        """Intervals of all weights, cut at zero where the weight is bounded."""
        ends = super().weight_interval(coverage, n_features)
        chosen = self.active[self.bounded]
        ends[chosen] = np.maximum(ends[chosen], 0.0)
        return ends

    def draw(self, n_samples: int, rng: np.random.RandomState) -> FloatArray:
        """Draws of the kept weights, cut at zero where the weight is bounded."""
        draws = super().draw(n_samples, rng)
        draws[:, np.flatnonzero(self.bounded)] = np.maximum(draws[:, np.flatnonzero(self.bounded)], 0.0)
        return draws


def positive_of(positive: Any, n_features: int) -> BoolArray | None:
    """Which features may not have a negative weight; None where all may."""
    if isinstance(positive, bool | np.bool_):
        return np.ones(n_features, dtype=bool) if positive else None
    flags = np.asarray(positive)
    if flags.shape != (n_features,) or flags.dtype.kind != "b":
        raise ValueError(f"positive must be True, False or one of them for each of the {n_features} features")
    return flags if flags.any() else None


def check_positive(model: Any, joint: bool) -> None:
    """Refuse parameters that bounded weights do not go with."""
    needs = {
        "noise='gaussian'": model.noise == "gaussian",
        "solver='auto' or 'sequential'": model.solver in ("auto", "sequential"),
        "groups=None": model.groups is None,
        "multi_output='independent'": not joint,
    }
    missing = [need for need, holds in needs.items() if not holds]
    if missing:
        raise ValueError(f"positive needs {' and '.join(missing)}; set them, or positive=False")


def signed_prior(prior: ARD, positive: BoolArray, n_columns: int) -> ARD:
    """The prior with bounds; a further column, of ones, has none."""
    flags = np.append(positive, np.zeros(n_columns - len(positive), dtype=bool))
    return Signed(a=prior.a, b=prior.b, min_alpha=prior.min_alpha, positive=flags)


def signed_price(nats: FloatArray | float, positive: BoolArray) -> FloatArray | float:
    """The truncated prior has twice the density: a weight that is clearly positive brings log 2 nats more."""
    cheaper = np.maximum(np.asarray(nats) - np.log(2), 0.0)
    if positive.all() and np.ndim(nats) == 0:
        return float(cheaper)
    flags = np.append(positive, np.zeros(np.size(nats) - len(positive), dtype=bool)) if np.ndim(nats) else positive
    return np.where(flags, cheaper, nats)


def positive_fit(fit: LinearFit, positive: BoolArray, min_gain: float) -> PositiveFit:
    """The same fit with its bounds, and with the share of the posterior above zero in its evidence.

    2Φ(μ/√Σ_jj) for each bounded weight, as in docs/mathematics.md, section 5.
    """
    bounded, n = positive[fit.active], len(fit.active)
    root = fit.root[:, :n]
    std = np.sqrt(np.maximum(fit.diagonal[:n] + fit.sign * np.einsum("ij,ij->j", root, root), 0.0))
    mean = fit.mean.copy()
    mean[:n] = np.where(bounded, np.maximum(mean[:n], 0.0), mean[:n])  # rounding, or a search that was cut short
    mass = float((np.log(2) + log_ndtr(mean[:n][bounded] / std[bounded])).sum())
    fit = replace(fit, mean=mean, log_evidence=fit.log_evidence + mass, min_gain=min_gain)
    return PositiveFit(**vars(fit), bounded=bounded)
