"""A Gaussian process through its values at some centres: kernel columns whose weights share one prior.

f(x) = k(x, Z) w with w ~ N(0, s K_ZZ⁻¹). With K_ZZ = L Lᵀ and v = Lᵀw this is a linear model with the columns
G = K(·, Z) L⁻ᵀ and v ~ N(0, s I): one precision that all weights share. Where the centres are all rows it is the
Gaussian process with the covariance s k itself. With fewer it leaves out a part of the prior variance,
s (k(x, x) - ‖g(x)‖²), and the evidence errs by no more than ½ (s/σ²) times its sum over the rows (Titsias 2009). See
docs/mathematics.md, section 10.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize, minimize_scalar

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
MAX_CENTRES = 1000
"""Most centres of a regression. With as many, 5,000 rows take a few seconds."""
LABEL_WORK = 1e9
"""Rows × centres² × classes of a classifier, which needs some twenty-five factorisations for each class. That is 300
centres for 1,000 rows and ten classes, or 450 for 5,000 rows and two."""
LOG_RATIOS = np.arange(-8.0, 19.0)
"""First grid for log s/σ²: from no signal to the noise floor of standardised targets."""
VARIANCE_FACTORS = 2.0 ** np.arange(6)
"""Multiples of the bound's best prior variance that are tried for labels, in this order."""
LOG_CONTACTS = np.log(0.25) + np.arange(12) * np.log(1.5)
"""First grid for log ξ, the size of log-odds: from 0.25 to 20."""


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
    energy = spectrum.p.sum(axis=0)

    def loss(log_c: float, p: FloatArray, floor: float) -> float:
        spread = 1 + np.exp(log_c) * e
        return 0.5 * float(n * np.log(max((p / spread).sum() / n, floor)) + np.log(spread).sum())

    values, ratios, noises = [], [], []
    for p, size in zip(spectrum.p.T, energy, strict=True):
        floor = NOISE_FLOOR * size / n
        first = int(np.argmin([loss(log_c, p, floor) for log_c in LOG_RATIOS]))
        bounds = LOG_RATIOS[max(first - 1, 0)], LOG_RATIOS[min(first + 1, len(LOG_RATIOS) - 1)]
        best = minimize_scalar(loss, bounds=bounds, args=(p, floor), method="bounded")
        values.append(-float(best.fun))
        ratios.append(float(np.exp(best.x)))
        noises.append(max(float((p / (1 + ratios[-1] * e)).sum()) / n, floor))
    return Signal(sum(values), np.array(ratios), np.array(ratios) * np.array(noises))


def label_signal(spectrum: Spectrum) -> Signal:
    """Labels ±½: a lower bound of the evidence at its best s, summed over the targets.

    Jaakkola and Jordan's bound with one contact point ξ for all rows: every site then has the precision b = 2λ(ξ), and
    the bound is a function of the spectrum. It is largest near the width at which Laplace's evidence is (on 16 data
    sets within a factor of four, with at most two nats lost), and needs no iteration.
    """
    e, total = spectrum.e, spectrum.total

    def loss(at: FloatArray, p: FloatArray, level: float) -> float:
        ratio, xi = np.exp(at)  # of s b
        lam = float(jj_lambda(xi))
        b = 2 * lam
        constant = total * (float(log_sigmoid(xi)) - 0.5 * xi + lam * xi**2)
        intercept = 0.0 if spectrum.mean is None else 0.5 * (total * level**2 / b - np.log(total * b))
        spread = 1 + ratio * e
        fit = 0.5 * float((ratio / b * e * p / spread).sum() - np.log(spread).sum())
        return float(-(constant + intercept + fit))

    values, ratios, variances = [], [], []
    means = np.zeros(spectrum.p.shape[1]) if spectrum.mean is None else spectrum.mean
    for p, level in zip(spectrum.p.T, means, strict=True):
        grid = [(loss(np.array([c, x]), p, level), c, x) for c in LOG_RATIOS[4:-4:2] for x in LOG_CONTACTS[::2]]
        _, c, x = min(grid)
        # SciPy's own simplex is flat where a coordinate starts at zero: the search would end where it begins.
        simplex = [[c, x], [c + 1, x], [c, x + np.log(1.5)]]
        options = {"initial_simplex": simplex, "xatol": 0.01, "fatol": 1e-3}
        best = minimize(loss, [c, x], args=(p, level), method="Nelder-Mead", options=options)
        values.append(-float(best.fun))
        ratios.append(float(np.exp(best.x[0])))
        variances.append(ratios[-1] / (2 * float(jj_lambda(np.exp(best.x[1])))))
    return Signal(sum(values), VARIANCE_FACTORS[-1] * np.array(ratios), np.array(variances))


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


def solve_labels(problem: Problem, variance: float) -> Result:
    """Labels 0 and 1 on columns that share one prior variance.

    Laplace's evidence takes the variance too large where classes are nearly separable, and the bound's maximum is too
    small. So it is the multiple of the latter under which held-out labels are most probable, as far as that grows.
    """
    design = problem.design.keep(np.arange(problem.design.n_columns))
    point, nobody, best, highest = problem.base_mode(design.n_columns), np.full(len(problem.t), -1), None, -np.inf
    for factor in VARIANCE_FACTORS:
        alpha = np.full(design.n_columns, 1 / (factor * variance))
        point = point.settled(problem, design, alpha)
        view = point.view(problem, design, alpha)
        value = point.value(problem, design, view, alpha) + problem.prior.scale_term(alpha)
        result = _at_mode(view, alpha, value)
        means = posterior_means(problem, point, view)
        density = float(problem.weight @ label_density(problem, result, nobody, means.held_out_shift))
        if best is not None and density <= highest:
            break
        posterior = replace(view.posterior, mean=means.w)
        best, highest = replace(result, posterior=posterior, level=means.level), density
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
    """Posterior means of the weights and of the intercept; and what each row's η is beyond its mode without the row."""

    w: FloatArray
    level: float
    held_out_shift: FloatArray


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
