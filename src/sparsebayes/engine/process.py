"""A Gaussian process through its values at some centres: kernel columns whose weights share one prior.

f(x) = k(x, Z) w with w ~ N(0, s K_ZZ⁻¹). With K_ZZ = L Lᵀ and v = Lᵀw this is a linear model with the columns
G = K(·, Z) L⁻ᵀ and v ~ N(0, s I): one precision that all weights share. Where the centres are all rows it is the
Gaussian process with the covariance s k itself. With fewer it leaves out a part of the prior variance,
s (k(x, x) - ‖g(x)‖²), and its evidence is too large by no more than ½ (s/σ²) times the sum of that over the rows
(Titsias 2009). See docs/mathematics.md, section 10.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize_scalar

from sparsebayes.core.evidence import integral
from sparsebayes.core.posterior import gaussian_posterior
from sparsebayes.core.special import jj_lambda, log_sigmoid
from sparsebayes.core.types import FloatArray, IntArray
from sparsebayes.data.lowrank import Kernel, pivoted_cholesky
from sparsebayes.engine.least_squares import NOISE_FLOOR, LeastSquares
from sparsebayes.engine.leave_one_out import label_density
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.result import Result
from sparsebayes.engine.view import Mode, View

LEFT_OUT = 0.01
"""Nats per row that the evidence may lose because centres are fewer than rows: a fiftieth of the noise variance. With a
tenth of it the errors on eleven data sets are the same to 1 %, with twice as many centres."""
MAX_CENTRES = 2000
"""Most centres of a regression. With as many, 5,000 rows take a few seconds."""
LABEL_WORK = 1e9
"""Rows × centres² × classes of a classifier, which needs some twenty-five factorisations for each class. That is 300
centres for 1,000 rows and ten classes, or 450 for 5,000 rows and two."""
LOG_RATIOS = np.arange(-8.0, 19.0)
"""First grid for log s/σ²: from no signal to the noise floor of standardised targets."""
VARIANCE_FACTORS = 2.0 ** np.arange(6)
"""Multiples of the bound's best prior variance that are tried for labels, in this order."""
CONTACTS = np.geomspace(0.1, 40.0, 120)
"""Grid for ξ, the size of log-odds. Steps of 5 % are fine enough, because the bound is flat at its maximum."""


def label_centres(n_rows: int, n_fits: int) -> int:
    """Most centres of a classifier."""
    return min(MAX_CENTRES, max(1, int(np.sqrt(LABEL_WORK / (n_rows * n_fits)))))


class Spectrum(NamedTuple):
    """A kernel matrix, centred and multiplied by √weight on both sides, in its own axes; and the targets there."""

    e: FloatArray
    """Eigenvalues."""
    p: FloatArray
    """Squared coordinates of the targets, one column for each."""
    total: float
    """Sum of the weights."""
    n: float
    """Degrees of freedom: rows, less one for a flat intercept."""
    mean: FloatArray | None = None
    """Means of the targets, which a flat intercept takes; None without one."""

    @classmethod
    def of(cls, K: FloatArray, weight: FloatArray, T: FloatArray, flat_intercept: bool) -> "Spectrum":
        """For targets T, one in each column."""
        share, root, mean = weight / weight.sum(), np.sqrt(weight), None
        if flat_intercept:
            level, mean = share @ K, share @ T
            K, T = K - level - level[:, None] + share @ level, T - mean
        e, U = np.linalg.eigh(root[:, None] * K * root)
        p = (U.T @ (root[:, None] * T)) ** 2
        return cls(np.maximum(e, 0.0), p, float(weight.sum()), len(K) - flat_intercept, mean)


class Signal(NamedTuple):
    """How well a Gaussian process explains its targets, and with what signal."""

    log_evidence: float
    """Summed over the targets."""
    ratio: FloatArray
    """s times the precision of a row, for each target (for labels with the largest s that is tried)."""
    variance: FloatArray
    """s, for each target."""


def regression_signal(spectrum: Spectrum) -> Signal:
    """Gaussian noise: the evidence at its best s and σ², up to a constant, summed over the targets.

    With c = s/σ² the best noise is σ² = Σ p/(1 + c e)/n, and the evidence -½ [n log σ² + Σ log(1 + c e)].
    """
    e, n = spectrum.e, spectrum.n
    values, ratios, variances = [], [], []
    for p in spectrum.p.T:
        energy = float(p.sum())
        if n < 1 or energy <= 0:  # nothing to explain: all rows are the same, or their means are
            values.append(0.0)
            ratios.append(float(np.exp(LOG_RATIOS[0])))
            variances.append(0.0)
            continue
        floor = NOISE_FLOOR * energy / n

        def noise(c: float, p: FloatArray = p, floor: float = floor) -> float:
            return max(float((p / (1 + c * e)).sum()) / n, floor)

        value, ratio = _best_ratio(lambda c: -0.5 * (n * np.log(noise(c)) + np.log1p(c * e).sum()))
        values.append(value)
        ratios.append(ratio)
        variances.append(ratio * noise(ratio))
    return Signal(sum(values), np.array(ratios), np.array(variances))


def label_signal(spectrum: Spectrum) -> Signal:
    """Labels ±½: a lower bound of the evidence at its best s, summed over the targets.

    Jaakkola and Jordan's bound with one contact point ξ for all rows: every site then has the precision b = 2λ(ξ), and
    the bound is a function of the spectrum. It is largest near the width at which Laplace's evidence is (on 16 data
    sets within a factor of four, with at most two nats lost), and needs no iteration. With c = s b it is
    N [log σ(ξ) - ξ/2 + λ(ξ) ξ²] + [Σ c e p/(1 + c e) + N m²]/2b - ½ Σ log(1 + c e) - ½ log(N b), where m is the mean of
    the labels and N the number of rows; without a flat intercept the terms with m and log N are missing.
    """
    e, total = spectrum.e, spectrum.total
    b = 2 * jj_lambda(CONTACTS)
    sites = total * (log_sigmoid(CONTACTS) - 0.5 * CONTACTS + 0.5 * b * CONTACTS**2)
    means = np.zeros(spectrum.p.shape[1])
    if spectrum.mean is not None:
        means, sites = spectrum.mean, sites - 0.5 * np.log(total * b)
    values, ratios, variances = [], [], []
    for p, mean in zip(spectrum.p.T, means, strict=True):

        def bounds(c: float, p: FloatArray = p, level: float = total * float(mean) ** 2) -> FloatArray:
            explained = float((c * e * p / (1 + c * e)).sum())
            return np.asarray(sites + 0.5 * (explained + level) / b - 0.5 * np.log1p(c * e).sum())

        value, ratio = _best_ratio(lambda c: bounds(c).max())
        values.append(value)
        ratios.append(VARIANCE_FACTORS[-1] * ratio)
        variances.append(ratio / b[np.argmax(bounds(ratio))])
    return Signal(sum(values), np.array(ratios), np.array(variances))


def _best_ratio(value: Callable[[float], float]) -> tuple[float, float]:
    """The largest value of a function of c, and c."""
    grid = [-float(value(float(c))) for c in np.exp(LOG_RATIOS)]
    first = int(np.argmin(grid))
    around = LOG_RATIOS[max(first - 1, 0)], LOG_RATIOS[min(first + 1, len(LOG_RATIOS) - 1)]
    found = minimize_scalar(lambda x: -float(value(float(np.exp(x)))), bounds=around, method="bounded")
    return -float(found.fun), float(np.exp(found.x))


@dataclass(frozen=True)
class Features:
    """The columns G of a Gaussian process, and its centres."""

    G: FloatArray
    L: FloatArray
    """Lower factor of K_ZZ."""
    centres: IntArray
    """Which of the candidates they are."""

    @classmethod
    def of(cls, kernel: Kernel, X: FloatArray, candidates: FloatArray, ratio: float, most: int) -> "Features":
        """As many of the candidates as the ratio of signal to noise asks for (`LEFT_OUT`), at most `most`.

        The first centre is the candidate nearest to their mean, each further one (nearly) that of which the others say
        least.
        """
        left_out = 2 * LEFT_OUT / ratio
        middle = int(np.argmax(kernel(candidates, candidates.mean(axis=0, keepdims=True))[:, 0]))
        order = np.append(middle, np.delete(np.arange(len(candidates)), middle))
        factor = pivoted_cholesky(kernel, candidates[order], left_out, most=min(most, len(candidates), len(X)))
        residual = factor.diagonal[:, None] - np.cumsum(factor.L**2, axis=1)
        enough = np.flatnonzero(np.maximum(residual, 0.0).mean(axis=0) <= left_out)
        m = int(enough[0]) + 1 if len(enough) else len(factor.pivots)
        L, chosen = np.tril(factor.L[factor.pivots[:m], :m]), order[factor.pivots[:m]]
        return cls(solve_triangular(L, kernel(candidates[chosen], X), lower=True).T, L, chosen)


def solve(problem: LeastSquares) -> Result:
    """The model in which all columns share one precision, at the s and σ² of largest evidence.

    The columns keep their own scale. Nothing is chosen, so that no column has a worth of its own.
    """
    design = problem.design
    e, U = np.linalg.eigh(design.gram())
    e, projected = np.maximum(e, 0.0), U.T @ problem.projection
    # In the axes of the Gram matrix the target has coordinates projected/√e, and a rest that no column reaches.
    inside = np.divide(projected**2, e, out=np.zeros_like(e), where=e > np.finfo(np.float64).eps * e.max(initial=0.0))
    rest = max(problem.energy - float(inside.sum()), 0.0)
    spectrum = Spectrum(np.append(e, 0.0), np.append(inside, rest)[:, None], problem.n_weighted, problem.n)
    signal = regression_signal(spectrum)
    noise = max(float(signal.variance[0] / signal.ratio[0]), NOISE_FLOOR)
    alpha = np.full(design.n_columns, 1 / (float(signal.ratio[0]) * noise))
    posterior = gaussian_posterior(design, 1 / noise, problem.t / noise, alpha)
    residual = problem.distance(design.predict(posterior.mean))
    value = integral(problem.fit(residual, noise), posterior.mean, alpha, posterior.logdet)
    return Result(
        active=np.arange(design.n_columns),
        alpha=alpha,
        posterior=posterior,
        noise=noise,
        level_variance=noise / problem.n_weighted if problem.flat_intercept else 0.0,
        log_evidence=value + 0.5 * float(np.log(alpha).sum()),
        worth=np.zeros(design.n_columns),
        gap=0.0,
        converged=True,
        noise_at_floor=bool(noise <= NOISE_FLOOR),
    )


def solve_labels(problem: Problem, variances: FloatArray) -> Result:
    """Labels 0 and 1 on columns that share one prior variance, one of those given.

    Laplace's evidence takes the variance too large where classes are nearly separable, and the bound's maximum is too
    small. So it is the one under which held-out labels are most probable, as far as that grows along `variances`
    (`VARIANCE_FACTORS` times the bound's).
    """
    design = problem.design.keep(np.arange(problem.design.n_columns))
    point, nobody, best, highest = problem.base_mode(design.n_columns), np.full(len(problem.t), -1), None, -np.inf
    for variance in variances:
        alpha = np.full(design.n_columns, 1 / variance)
        point = point.settled(problem, design, alpha)
        view = point.view(problem, design, alpha)
        value = point.value(problem, design, view, alpha) + problem.prior.scale_term(alpha)
        result = _at_mode(view, alpha, value)
        means = posterior_means(problem, point, view)
        if len(variances) > 1:
            density = float(problem.weight @ label_density(problem, result, nobody, means.shift_by_others))
            if best is not None and density <= highest:
                break
            highest = density
        best = replace(result, posterior=replace(view.posterior, mean=means.w), level=means.level)
    assert best is not None
    return best


def _at_mode(view: View, alpha: FloatArray, log_evidence: float) -> Result:
    return Result(
        active=np.arange(len(alpha)),
        alpha=alpha,
        posterior=view.posterior,
        level=view.level,
        level_variance=view.level_variance,
        origin=view.design.offset,
        log_evidence=log_evidence,
        worth=np.zeros(len(alpha)),
        gap=0.0,
        converged=True,
    )


class Means(NamedTuple):
    """Posterior means of the weights and of the intercept."""

    w: FloatArray
    level: float
    shift_by_others: FloatArray
    """By how much each row's η is farther from zero than its mode because of the other rows."""


def posterior_means(problem: Problem, point: Mode, view: View) -> Means:
    """The mode, corrected for the skewness of the posterior to first order: μ = w + ½ Σ Φᵀ(∂³ log p/∂η³ · var η).

    A logistic likelihood is flatter on the far side of the mode, so that the mean is farther from zero. With many
    weights the difference matters: predictions that average over a posterior centred at the mode are not sure enough
    (log loss .38 rather than .29 on sonar, .26 rather than .15 on ionosphere).
    """
    variance, posterior = view.variance(), view.posterior
    pull = -0.5 * problem.weight * point.likelihood.skew(problem.t, view.eta) * variance
    w = posterior.mean + posterior.root.T @ (posterior.root @ view.design.project(pull))
    level = view.level + view.level_variance * float(pull.sum())
    # A row leaves once, with its own pull and its site, as in `label_density`: its label must not tell of itself.
    share = 1 / np.maximum(problem.weight, 1.0)
    stays = np.maximum(1 - share * view.sites.precision * variance, np.finfo(np.float64).eps)
    shift = (level + view.design.predict(w) - view.eta - share * variance * pull) / stays
    return Means(w, level, shift)
