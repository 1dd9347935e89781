"""Priors on the weights: the best precision of a weight, what it brings, and how precisions are re-estimated.

For one weight given all others the data enter through two numbers, s and q (docs/mathematics.md, section 4.1). A prior
says which precision α is best for them, and adds its own term to the objective (section 2).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self

import numpy as np
from scipy.special import log_ndtr

from sparsebayes.core.likelihoods import Bernoulli, Sites, expansion
from sparsebayes.core.scales import ScaleRule, ard_candidate, is_flat, laplace_candidate
from sparsebayes.core.scales import gain as evidence_gain
from sparsebayes.core.special import gamma_bound_terms, log_sigmoid
from sparsebayes.core.types import BoolArray, FloatArray, IntArray


class Rules(NamedTuple):
    """The numbers that the compiled search needs of a prior."""

    a: float = 0.0
    b: FloatArray | float = 0.0
    """Gamma(a, b) on α."""
    rate: float = 0.0
    """Of a Laplace prior."""
    min_alpha: float = 0.0
    """Smallest precision."""
    positive: bool = False
    """Whether weights below zero are of no use."""


class Moves(NamedTuple):
    """For every column the precision it should have given all others (∞: out), and the nats which that move brings."""

    alpha: FloatArray
    gain: FloatArray
    worth: FloatArray
    """Nats that the column brings at its own best precision, whether it is in the model or not."""


Blocks = Callable[[IntArray], tuple[FloatArray, FloatArray]]
"""S (a matrix each) and Q of units, as if none of the unit's columns were in the model; a row of columns per unit."""


class Prior(Protocol):
    """The methods of a prior that the engine needs. All arrays have one entry per weight."""

    @property
    def min_alpha(self) -> float:
        """Smallest precision: on separable classes nothing else would bound the weights."""

    @property
    def rules(self) -> Rules | None:
        """For the compiled search; None where only the NumPy form will do."""

    @property
    def is_scale_free(self) -> bool:
        """Whether the prior is unchanged when σ² and all 1/α are multiplied by one factor."""

    @property
    def a(self) -> float:
        """Shape of the Gamma hyper-prior of the precisions."""

    @property
    def b(self) -> FloatArray | float:
        """Its rate, per column."""

    def of(self, columns: IntArray | BoolArray) -> Self:
        """The prior of some of the weights."""

    def reestimate(self, rule: ScaleRule, mean: FloatArray, var: FloatArray, gamma: FloatArray) -> FloatArray:
        """All precisions at once, by a rule of core/scales.py."""

    def at_noise(self, noise: float) -> Self:
        """The prior when the noise variance is `noise`; differs only where its scale is that of the noise."""

    def candidate(self, s: FloatArray, q: FloatArray) -> FloatArray:
        """Best precision given everything else; ∞ where the weight is better left out."""

    def gain(self, alpha: FloatArray, s: FloatArray, q: FloatArray) -> FloatArray:
        """Nats of a weight at precision α against leaving it out."""

    def log_density(self, alpha: FloatArray) -> FloatArray:
        """The hyper-prior's term of each weight, as a density of log α; not part of `gain`."""

    def scale_term(self, alpha: FloatArray) -> float:
        """½ log|A| and all that the prior adds to the objective."""

    def newton_terms(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Slope and negative curvature, in log α, of what the prior adds to the objective."""

    def outside(self, s: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """s and q of weights outside the model together with what the prior adds to them at w = 0."""

    def weight_sites(self, w: FloatArray) -> Sites | None:
        """A factor of the prior that is not Gaussian, as one site per weight; None where there is none."""

    def log_factor(self, w: FloatArray) -> float:
        """Log of that factor at w."""

    def log_mass(self, mean: FloatArray, var: FloatArray) -> float:
        """Log of what Laplace's integral must still be multiplied with, where weights are bounded."""

    @property
    def floor(self) -> float:
        """Smallest value of a weight."""

    def unit(self, j: int) -> IntArray:
        """The columns that enter and leave together with column j."""

    def units(self, columns: IntArray | list[int]) -> IntArray | list[int]:
        """One column of each unit among these: a price is paid once per unit."""

    def closed(self, columns: IntArray) -> IntArray:
        """These columns and all that enter and leave together with one of them."""

    @property
    def ties(self) -> IntArray | None:
        """Which columns share a precision, by a common number; None where each has its own."""

    def directed(self, q: FloatArray) -> FloatArray:
        """q of every column (rows), or 0 where the weight would have a sign that it may not have."""

    def worth(self, s: FloatArray, q: FloatArray, alpha: FloatArray, blocks: Blocks) -> FloatArray:
        """Nats that the unit of every column brings at its best precision."""

    def moves(self, s: FloatArray, q: FloatArray, alpha: FloatArray, price: FloatArray, blocks: Blocks) -> Moves:
        """The best change of every unit, given all others; the columns of a unit have the same entries."""


@dataclass(frozen=True)
class ARD:
    """Automatic relevance determination: N(0, 1/α) with its own α, and a Gamma(a, b) hyper-prior on α.

    The hyper-prior is counted as a density of log α, so it adds a log α - b α; a = b = 0 is flat. `b` has one entry per
    column, because a rate in the user's units is another one in each column's.
    """

    a: float = 0.0
    b: FloatArray | float = 0.0
    min_alpha: float = 0.0
    floor: float = -np.inf

    @property
    def rules(self) -> Rules | None:
        """All of it."""
        return Rules(self.a, self.b, min_alpha=self.min_alpha)

    @property
    def is_scale_free(self) -> bool:
        """Where the hyper-prior is flat."""
        return is_flat(self.a, self.b)

    def reestimate(self, rule: ScaleRule, mean: FloatArray, var: FloatArray, gamma: FloatArray) -> FloatArray:
        """Each by its own mean, variance and γ."""
        return rule(mean, var, gamma, self.a, self.b)

    def of(self, columns: IntArray | BoolArray) -> Self:
        """With the rates of these columns."""
        return replace(self, b=self.b[columns]) if isinstance(self.b, np.ndarray) else self

    def at_noise(self, noise: float) -> Self:
        """The same."""
        return self

    def candidate(self, s: FloatArray, q: FloatArray) -> FloatArray:
        """α = s²/(q² - s) where q² > s; with a hyper-prior the mode of gain + a log α - b α."""
        return np.maximum(ard_candidate(s, q, self.a, self.b), self.min_alpha)

    def gain(self, alpha: FloatArray, s: FloatArray, q: FloatArray) -> FloatArray:
        """½[log α/(α + s) + q²/(α + s)]."""
        return evidence_gain(alpha, s, q)

    def log_density(self, alpha: FloatArray) -> FloatArray:
        """a log α - b α."""
        return np.zeros_like(alpha) if self.is_scale_free else np.asarray(self.a * np.log(alpha) - self.b * alpha)

    def scale_term(self, alpha: FloatArray) -> float:
        """½ log|A| + Σ(a log α - b α)."""
        value = 0.5 * float(np.log(alpha).sum())
        return value if self.is_scale_free else value + float(self.log_density(alpha).sum())

    def newton_terms(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """a - b α and b α."""
        rate = self.b * alpha
        return self.a - rate, rate

    def outside(self, s: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same."""
        return s, q

    def weight_sites(self, w: FloatArray) -> Sites | None:
        """None: the prior is Gaussian."""
        return None

    def log_factor(self, w: FloatArray) -> float:
        """Nothing."""
        return 0.0

    def log_mass(self, mean: FloatArray, var: FloatArray) -> float:
        """Nothing: weights are not bounded."""
        return 0.0

    def unit(self, j: int) -> IntArray:
        """The column alone."""
        return np.array([j])

    def units(self, columns: IntArray | list[int]) -> IntArray | list[int]:
        """All of them."""
        return columns

    def closed(self, columns: IntArray) -> IntArray:
        """The same."""
        return columns

    @property
    def ties(self) -> IntArray | None:
        """None."""
        return None

    def directed(self, q: FloatArray) -> FloatArray:
        """The same: any sign will do."""
        return q

    def worth(self, s: FloatArray, q: FloatArray, alpha: FloatArray, blocks: Blocks) -> FloatArray:
        """Of each column alone."""
        return self.gain(self.candidate(s, q), s, q)

    def moves(self, s: FloatArray, q: FloatArray, alpha: FloatArray, price: FloatArray, blocks: Blocks) -> Moves:
        """The best change of every single precision."""
        return best_moves(self, s, q, alpha, price)


FLAT = ARD()
"""ARD with a flat hyper-prior."""


@dataclass(frozen=True)
class Laplace(ARD):
    """Laplace prior scaled by the noise: variances σ²g = 1/α, and g has the density (λ/2) exp(-λg/2). λ → 0 is ARD."""

    rate: float = 0.0
    noise: float = 1.0

    @property
    def rules(self) -> Rules | None:
        """With the rate."""
        return Rules(rate=self.rate, min_alpha=self.min_alpha)

    @property
    def strength(self) -> float:
        """λ/σ², which the formulas ask for."""
        return self.rate / self.noise

    def at_noise(self, noise: float) -> Self:
        """Another σ²."""
        return replace(self, noise=noise)

    def candidate(self, s: FloatArray, q: FloatArray) -> FloatArray:
        """The precision of largest gain, where q² - s > λ/σ²."""
        return np.maximum(laplace_candidate(s, q, self.strength), self.min_alpha)

    def gain(self, alpha: FloatArray, s: FloatArray, q: FloatArray) -> FloatArray:
        """The evidence less ½ (λ/σ²)/α: the prior of g has its say about what is out, too."""
        return evidence_gain(alpha, s, q, self.strength)

    def scale_term(self, alpha: FloatArray) -> float:
        """½ log|A| - ½ (λ/σ²) Σ 1/α."""
        return super().scale_term(alpha) - 0.5 * self.strength * float((1 / alpha).sum())

    def newton_terms(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """½ (λ/σ²)/α, twice."""
        slope = 0.5 * self.strength / alpha
        return slope, slope


@dataclass(frozen=True)
class VariationalGamma(ARD):
    """Gamma(a, b) on the precisions, integrated out variationally: α stands for the mean of q(α) = Gamma(aₙ, aₙ/α)."""

    shared: bool = False
    """Whether all weights have one precision."""

    def scale_term(self, alpha: FloatArray) -> float:
        """What priors and posteriors of the precisions bring to the bound, once per precision."""
        if self.shared:
            shape = self.a + len(alpha) / 2
            return float(gamma_bound_terms(self.a, np.ravel(self.b)[0], shape, shape / alpha[0]))
        shape = self.a + 0.5
        return float(gamma_bound_terms(self.a, self.b, shape, shape / alpha).sum())


@dataclass(frozen=True)
class NonNegative(ARD):
    """N(0, 1/α) truncated to w ≥ 0: exactly, or smoothly by the factor 2σ(c w) with steepness c.

    σ(c w) + σ(-c w) = 1, so that the factor 2 normalises a zero-mean Gaussian times σ(c w) at any steepness.
    """

    steepness: float = np.inf
    floor: float = 0.0

    @classmethod
    def smooth(cls, steepness: float, min_alpha: float = 0.0) -> "NonNegative":
        """The smooth form; c is per unit of a standardised column's weight."""
        return cls(steepness=steepness, floor=-np.inf, min_alpha=min_alpha)

    @property
    def exact(self) -> bool:
        """Whether weights below zero are impossible."""
        return bool(np.isinf(self.steepness))

    @property
    def rules(self) -> Rules | None:
        """Those of ARD, for positive weights."""
        return Rules(min_alpha=self.min_alpha, positive=True)

    def directed(self, q: FloatArray) -> FloatArray:
        """A weight that the data would make negative is of no use."""
        return np.maximum(q, 0.0)

    def candidate(self, s: FloatArray, q: FloatArray) -> FloatArray:
        """As ARD; a weight that the data would make negative is out."""
        return super().candidate(s, self.directed(q))

    def gain(self, alpha: FloatArray, s: FloatArray, q: FloatArray) -> FloatArray:
        """As ARD, for a positive weight."""
        return super().gain(alpha, s, self.directed(q))

    def outside(self, s: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
        """With the truncation's slope c/2 and curvature c²/4 at w = 0; a weight that would be negative has no use."""
        if self.exact:
            return s, np.maximum(q, 0.0)
        own = self.weight_sites(np.zeros(1))
        assert own is not None
        return s + own.precision, np.maximum(q + own.shift, 0.0)

    def weight_sites(self, w: FloatArray) -> Sites | None:
        """Expansion of log 2σ(c w); none inside an exact bound, where the prior is Gaussian."""
        if self.exact:
            return None
        sites, c = expansion(Bernoulli(), np.ones_like(w), self.steepness * w), self.steepness
        return Sites(c**2 * sites.precision, c * sites.shift, sites.const + np.log(2))

    def log_factor(self, w: FloatArray) -> float:
        """Log of the truncating factor at w."""
        return 0.0 if self.exact else float((np.log(2) + log_sigmoid(self.steepness * w)).sum())

    def log_mass(self, mean: FloatArray, var: FloatArray) -> float:
        """Log of what Laplace's integral over all weights must still be multiplied with.

        For the exact bound Σ log 2Φ(μ/√Σ_jj): the prior's normaliser and the share of each posterior above zero; exact
        for weights that are independent in the posterior. The smooth factor is part of the integral already.
        """
        return float((np.log(2) + log_ndtr(mean / np.sqrt(var))).sum()) if self.exact else 0.0


def best_moves(prior: Prior, s: FloatArray, q: FloatArray, alpha: FloatArray, price: FloatArray) -> Moves:
    """The best change of each single precision; α = ∞ marks a column outside the model.

    The largest gain is the optimality certificate: at a maximum of the priced evidence it is zero. In the model belongs
    what is worth more than its price.
    """
    target = prior.candidate(s, q)
    worth = prior.gain(target, s, q)
    pays = worth > price
    target = np.where(pays, target, np.inf)
    brings = np.where(pays, worth - price, 0.0)
    inside = np.isfinite(alpha).nonzero()[0]
    own, at = prior.of(inside), alpha[inside]
    present = own.gain(at, s[inside], q[inside])
    moved = worth[inside] - present
    if not prior.is_scale_free:
        to = np.where(pays[inside], target[inside], at)
        moved += own.log_density(to) - own.log_density(at)
    # With a hyper-prior the best precision may be worth less than the present one; what decides is the best.
    brings[inside] = np.where(pays[inside], moved, price[inside] - np.minimum(present, worth[inside]))
    return Moves(target, brings, worth)
