"""Two-class problems: how the posterior of the weights is found for given precisions (mathematics, sections 1 and 3).

Each w-step hands out the Gaussian posterior under sites, the log evidence (a bound, or the Laplace approximation) and
what it needs to go on from there. A flat intercept is eliminated exactly, by centring the columns with the sites'
precisions as weights.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from sparsebayes.core.evidence import integral, scale_term
from sparsebayes.core.posterior import GaussianPosterior, gaussian_posterior
from sparsebayes.core.sites import Sites, bernoulli_log_likelihood, jaakkola, laplace
from sparsebayes.core.special import gamma_bound_terms
from sparsebayes.core.types import BoolArray, FloatArray, IntArray
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.batch import WStep
from sparsebayes.engine.problem import GaussianProblem

NEWTON_STEPS = 100
HALVINGS = 40
ROUNDING = 1e-13
"""Share of the penalised likelihood that a step may seem to lose: at the mode all steps gain less than that."""
TINY_PRECISION = 1e-12
"""Site precision below which a saturated row is treated as if it had this one, so that 1/√b stays finite."""


@dataclass(frozen=True)
class Predictor:
    """Posterior of the linear predictor η = level + Φw under sites, Φ centred when the intercept is flat."""

    rows: DenseRows
    posterior: GaussianPosterior
    level: float
    level_variance: float
    eta: FloatArray

    def variance(self) -> FloatArray:
        """Posterior variance of every row's η."""
        return self.level_variance + self.posterior.predictor_variance(self.rows)

    def intercept(self, origin: FloatArray) -> float:
        """Posterior mean of η at the point `origin` of the input space."""
        return self.level - float(((self.rows.mean - origin) / self.rows.scale) @ self.posterior.mean)

    def integral(self, sites: Sites, alpha: FloatArray) -> float:
        """Log ∫ exp(Σ sites) N(w; 0, A⁻¹) dw (d intercept), less ½ log|A|, which the prior's own term brings."""
        value = integral(sites.value(self.eta), self.posterior.mean, alpha, self.posterior.logdet)
        return value + (0.5 * float(np.log(2 * np.pi * self.level_variance)) if self.level_variance else 0.0)


def predictor(rows: DenseRows, sites: Sites, alpha: FloatArray, flat_intercept: bool) -> Predictor:
    """Posterior under given sites."""
    b, h = np.asarray(sites.precision), sites.shift
    level, variance = 0.0, 0.0
    if flat_intercept:
        total = float(b.sum())
        level, variance = float(h.sum()) / total, 1 / total
        rows = rows.centred(b)
    posterior = gaussian_posterior(rows, b, h - b * level, alpha)
    return Predictor(rows, posterior, level, variance, level + rows.predict(posterior.mean))


@dataclass(frozen=True)
class Mode:
    """Where Newton's method goes on: the weights, and the intercept at the rows' own origin."""

    w: FloatArray
    intercept: float = 0.0

    def keep(self, which: BoolArray) -> "Mode":
        """The same without some of the weights."""
        return replace(self, w=self.w[which])

    def grow(self) -> "Mode":
        """The same with one more weight, at zero."""
        return replace(self, w=np.append(self.w, 0.0))

    def eta(self, rows: DenseRows) -> FloatArray:
        """The linear predictor."""
        return self.intercept + rows.predict(self.w)

    def towards(self, goal: "Mode") -> Iterator["Mode"]:
        """Points on the way to the goal: all of it, a half, a quarter …"""
        for power in range(HALVINGS):
            part = 0.5**power
            w = self.w + part * (goal.w - self.w)
            yield Mode(w, self.intercept + part * (goal.intercept - self.intercept))


@dataclass(frozen=True)
class Contact:
    """Where the variational bound touches: one ξ per row."""

    xi: FloatArray

    def keep(self, which: BoolArray) -> "Contact":
        """Rows stay when weights go."""
        return self

    def grow(self) -> "Contact":
        """Rows stay when weights come."""
        return self


@dataclass
class View(GaussianProblem):
    """A problem under fixed sites; `level` is the intercept at the columns' weighted means."""

    level: float = 0.0

    def total_price(self, n_kept: int) -> float:
        """No noise is learned from the rows, so a feature costs the same in any company."""
        return self.price * n_kept


@dataclass(frozen=True)
class BernoulliProblem:
    """Rows, classes t in {0, 1} and row weights; and what is believed of the weights beforehand."""

    rows: DenseRows
    t: FloatArray
    weight: FloatArray
    flat_intercept: bool
    price: float
    a: float
    b: FloatArray
    least_alpha: float = 0.0
    """On separable data the likelihood has no curvature left at large weights, and nothing else would bound them."""

    def scale_term(self, active: IntArray, alpha: FloatArray) -> float:
        """½ log|A| and the log hyper-prior of the precisions."""
        return scale_term(alpha, self.a, self.b[active])

    def base_mode(self, n_weights: int) -> Mode:
        """No weight, and the intercept that says how frequent class 1 is."""
        if not self.flat_intercept:
            return Mode(np.zeros(n_weights))
        share = float(self.weight @ self.t / self.weight.sum())
        return Mode(np.zeros(n_weights), float(np.log(share / (1 - share))))

    def sites(self, rows: DenseRows, carry: Mode | Contact) -> Sites:
        """The local Gaussian view: Laplace's at a mode, Jaakkola's at contact points."""
        if isinstance(carry, Mode):
            return laplace(self.t, carry.eta(rows), self.weight)
        return jaakkola(self.t, carry.xi, self.weight)

    def laplace_step(self, rows: DenseRows, alpha: FloatArray, carry: Mode) -> WStep[Mode]:
        """Newton's method to the mode, then the posterior and the evidence there."""
        mode = self.find_mode(rows, alpha, carry)
        sites = self.sites(rows, mode)
        found = predictor(rows, sites, alpha, self.flat_intercept)
        return WStep(found.posterior, found.integral(sites, alpha), mode)

    def jaakkola_step(self, rows: DenseRows, alpha: FloatArray, carry: Contact) -> WStep[Contact]:
        """Posterior and bound at the given ξ, then the ξ that make the bound tightest there: ξ² = E[η²]."""
        sites = self.sites(rows, carry)
        found = predictor(rows, sites, alpha, self.flat_intercept)
        xi = np.sqrt(found.eta**2 + found.variance())
        return WStep(found.posterior, found.integral(sites, alpha), Contact(xi))

    def gaussian_view(self, sites: Sites) -> View:
        """All candidate columns under fixed sites, as a regression with noise variance one."""
        b = np.maximum(np.asarray(sites.precision), TINY_PRECISION)
        level = float(sites.shift.sum() / b.sum()) if self.flat_intercept else 0.0
        rows = self.rows.centred(b) if self.flat_intercept else self.rows
        t = (sites.shift - b * level) / np.sqrt(b)
        flat, total = self.flat_intercept, float(self.weight.sum())
        return View(rows.weighted(np.sqrt(b)), t, total, flat, self.price, self.a, self.b, c=0.0, d=0.0, level=level)

    def find_mode(self, rows: DenseRows, alpha: FloatArray, start: Mode) -> Mode:
        """Maximum of log p(t | w) - ½ wᵀAw by Newton's method with step halving.

        A full step overshoots on separable data with weak priors, and a start where all rows are saturated (a large
        weight was just taken out) has no curvature to go by: then the model without weights is the better start. The
        iteration ends when a step gains no more than rounding; the error of the weights is then the square of the last
        step's.
        """
        here = max((start, self.base_mode(len(start.w))), key=lambda mode: self._penalised(rows, mode, alpha))
        value = self._penalised(rows, here, alpha)
        for _ in range(NEWTON_STEPS):
            found = predictor(rows, self.sites(rows, here), alpha, self.flat_intercept)
            goal = Mode(found.posterior.mean, found.intercept(rows.mean) if self.flat_intercept else 0.0)
            tried = ((there, self._penalised(rows, there, alpha)) for there in here.towards(goal))
            nothing = ROUNDING * (1 + abs(value))  # at the mode the last and best step may seem to lose so much
            there, reached = next((pair for pair in tried if pair[1] >= value - nothing), (here, value))
            gained, here, value = reached - value, there, reached
            if gained <= nothing:
                break
        return here

    def _penalised(self, rows: DenseRows, mode: Mode, alpha: FloatArray) -> float:
        fit = self.weight @ bernoulli_log_likelihood(self.t, mode.eta(rows))
        return float(fit - 0.5 * (alpha @ mode.w**2))


@dataclass(frozen=True)
class VariationalProblem(BernoulliProblem):
    """The same with the precisions integrated out variationally: q(α) is Gamma with mean α."""

    shared: bool = False

    def scale_term(self, active: IntArray, alpha: FloatArray) -> float:
        """What the Gamma(a, b) priors and posteriors of the precisions bring to the bound, once per scale."""
        if self.shared:
            a_n = self.a + len(alpha) / 2
            return float(gamma_bound_terms(self.a, self.b[0], a_n, a_n / alpha[0]))
        a_n = self.a + 0.5
        return float(gamma_bound_terms(self.a, self.b[active], a_n, a_n / alpha).sum())
