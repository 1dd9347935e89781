"""Prices: the evidence, in nats, that a model must bring for what it keeps. The only place where a price is defined.

| who pays | nats | where it comes from |
| --- | --- | --- |
| a feature of a regression | log D, times n/(n - k) | prior odds 1 : D; the factor is that of a learned noise |
| a feature of a classifier or of counts | `classification_price` | a squared z-score of log D + log max(N, D) |
| a feature weight inside a kernel | `false_discovery_price` | 0.05 useless features expected to pass |
| a kernel column | 0 up to half of the rows; no more | columns are interchangeable; half of the rows tell the noise |
| a kernel column, when widths are compared | `choice_price` | the best of m different columns of pure noise |

docs/mathematics.md, section 4.3, has the derivations, docs/min_gain.md the measurements.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import chdtri

from sparsebayes.core.types import FloatArray, IntArray

LARGEST_GAIN = 0.5 * math.log(1e8)
"""Nats that a model can bring for each row, where the noise is learned: its variance stays above 1e-8 of the target's
(engine/least_squares.py, NOISE_FLOOR), and ½ log of the ratio is what a row gains."""


class Price(Protocol):
    """The price of a model with k units (features, vectors or groups): factor(k) × Σ nats of its units + base(k)."""

    @property
    def nats(self) -> FloatArray | float:
        """What each unit costs, or what all of them do."""

    def factor(self, k: int) -> float:
        """How much dearer units are in a model of k."""

    def base(self, k: int) -> float:
        """What is asked for the number of units itself."""


@dataclass(frozen=True)
class PerUnit:
    """Every unit costs its nats, times n/(n - k) where the noise is learned from the same n rows.

    The factor is what learning the noise makes of the tail of the null distribution: the residual of k useless features
    falls like a Beta variable with n - k degrees of freedom, not n. It is near one for few features, and keeps a model
    from paying by reproducing the target.
    """

    nats: FloatArray | float
    rows: float = np.inf
    """n, where the noise is learned; infinite otherwise."""

    def factor(self, k: int) -> float:
        """n/(n - k)."""
        return self.rows / max(self.rows - k, 1.0) if math.isfinite(self.rows) else 1.0

    def base(self, k: int) -> float:
        """Nothing."""
        return 0.0


@dataclass(frozen=True)
class HalfTheRows:
    """Units are (nearly) free up to half of the rows, and there are no more: beyond, each costs more than it can bring.

    With as many columns as rows the evidence grows without bound as the model takes one column per row and the noise
    vanishes. A sparse model leaves at least as many rows to tell the noise as it has vectors (docs/mathematics.md,
    section 4.3).
    """

    rows: float
    nats: FloatArray | float = 0.0
    """What brings nothing would otherwise stay, because nothing is gained by its deletion."""

    def factor(self, k: int) -> float:
        """One."""
        return 1.0

    def base(self, k: int) -> float:
        """Beyond n/2, all that a model of n rows can bring, once for each unit."""
        beyond = k - self.rows // 2
        return beyond * LARGEST_GAIN * self.rows if beyond > 0 else 0.0


FREE = PerUnit(0.0)
"""Nothing is charged."""


def cheaper(price: Price, factor: float) -> PerUnit:
    """Units at a fraction of their nats, whatever their number."""
    return PerUnit(price.nats / factor)


def chosen(price: Price, columns: IntArray) -> Price:
    """The price of some of the columns."""
    return replace(price, nats=price.nats[columns]) if isinstance(price.nats, np.ndarray) else price  # type: ignore[type-var]


def total(price: Price, active: IntArray | list[int]) -> float:
    """Price of a model that keeps these columns."""
    return price.factor(len(active)) * charge(price, active) + price.base(len(active))


def charge(price: Price, active: IntArray | list[int] | range) -> float:
    """Σ nats of these columns."""
    return float(price.nats[active].sum()) if isinstance(price.nats, np.ndarray) else price.nats * len(active)


Total = tuple[float, float]
"""What a number of units costs: a factor of their nats, and what is paid beside."""


class Marginal(NamedTuple):
    """What one unit more costs (out) and what one of those inside saves (in), both as offset + factor × its nats."""

    out_offset: float
    out_factor: float
    in_offset: float
    in_factor: float

    @classmethod
    def at(cls, price: Price, active: IntArray | list[int] | range) -> "Marginal":
        """For a model that keeps these columns."""
        k, nats = len(active), charge(price, active)
        return cls.between(nats, *((price.factor(at), price.base(at)) for at in (max(k - 1, 0), k, k + 1)))

    @classmethod
    def between(cls, nats: float, fewer: Total, here: Total, more: Total) -> "Marginal":
        """From the totals of one unit less, of this model, whose units have `nats` in all, and of one unit more."""
        total = here[0] * nats + here[1]
        return cls(more[0] * nats + more[1] - total, more[0], total - fewer[0] * nats - fewer[1], fewer[0])

    def of(self, inside: FloatArray, nats: FloatArray | float) -> FloatArray:
        """Marginal price of every column; `inside` says which are in the model."""
        return np.where(inside, self.in_offset + self.in_factor * nats, self.out_offset + self.out_factor * nats)


def is_free(price: Price) -> bool:
    """Whether units cost nothing of their own."""
    return not (price.nats.any() if isinstance(price.nats, np.ndarray) else price.nats)


def worth_at(r: float) -> float:
    """What a column with r = q²/s is worth at its own best precision, in nats: ½(r - 1 - log r), 0 for r ≤ 1."""
    return float(0.5 * (r - 1 - np.log(r))) if r > 1 else 0.0


def classification_price(n_rows: float, n_claims: int) -> float:
    """What a feature must bring in a classifier: the worth at r = log D + log max(N, D).

    With fewer rows than claims D that is the universal threshold |z| = √(2 log D) of a single weight's z-score; with
    more rows it grows like the BIC's, so that false discoveries vanish.
    """
    return worth_at(float(np.log(n_claims) + np.log(max(n_rows, n_claims))))


def false_discovery_price(n_features: int, expected: float = 0.05) -> float:
    """What a feature weight must be worth so that of P useless ones `expected` pass.

    The squared z-score of a useless weight, which cannot be negative, exceeds r with half of the probability that χ²
    with one degree of freedom does; the price is the worth at that r.
    """
    return worth_at(float(chdtri(1, 2 * expected / n_features))) if n_features > 1 else 0.0


def choice_price(K: FloatArray) -> float:
    """What the best of many useless kernel columns would seem to be worth: the worth at r = 2 log m.

    m counts the columns that differ: a narrow kernel has as many as rows, a wide one only a few. It is the
    participation ratio (Σλ)²/Σλ² of the eigenvalues of the centred kernel matrix K, which its entries give directly.
    """
    K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    square = float(np.vdot(K, K))
    return worth_at(float(2 * np.log(np.trace(K) ** 2 / square))) if square > 0 else 0.0
