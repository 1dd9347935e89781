"""The posterior over all sets of columns by enumeration: dense matrices and no code of the sampler."""

from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from sparsebayes.core.inclusion import InclusionPrior
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.sets import Sets

ALWAYS, NEVER = np.inf, -np.inf


def make_sets(n=12, m=8, *, seed=0, log_prior=None, learns_noise=True, flat=True, **others):
    """A regression of n rows and m columns, two of them correlated, as a chain sees it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    X[:, 1] = X[:, 0] + 0.3 * X[:, 1]
    y = X[:, 0] - 0.6 * X[:, m // 2] + rng.standard_normal(n)
    return sets_of(X, y, log_prior=log_prior, learns_noise=learns_noise, flat=flat, **others)


def sets_of(X, y, *, log_prior=None, learns_noise=True, flat=True, **others):
    """A regression as a chain sees it."""
    n, m = X.shape
    y = y - y.mean() if flat else y
    problem = LeastSquares(
        design=DenseRows.of(X).standardised(np.ones(n), centre=flat),
        t=y / np.sqrt((y**2).mean()),
        n_weighted=float(n),
        flat_intercept=flat,
        **others,
    )
    log_prior = np.zeros(m) if log_prior is None else np.asarray(log_prior, dtype=float)
    return Sets(problem, log_prior, InclusionPrior.of(int(np.isfinite(log_prior).sum())), learns_noise)


@dataclass(frozen=True)
class Moments:
    """Of one set, for one c or for several: tᵀMt, log |I + cΦΦᵀ|, mean and covariance of the weights for noise one."""

    rest: np.ndarray
    log_volume: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray


def moments(sets, active, c):
    """By inverting dense matrices."""
    Phi, t = sets.problem.design.columns(slice(None))[:, list(active)], sets.problem.t
    c = np.asarray(c)[..., None, None]
    K = np.eye(len(t)) + c * (Phi @ Phi.T)
    solved = np.linalg.solve(K, t[:, None])[..., 0]
    covariance = np.linalg.inv(Phi.T @ Phi + np.eye(len(active)) / c)
    return Moments(solved @ t + sets.floor, np.linalg.slogdet(K)[1], c[..., 0] * (solved @ Phi), covariance)


def log_joint(sets, active, slabs):
    """log p(set, c, t) up to a constant: prior of the size and of the columns, and the evidence."""
    at = moments(sets, active, sets.prior.slabs[slabs])
    fit = -0.5 * sets.n * np.log(at.rest) if sets.learns_noise else -0.5 * at.rest
    own = sets.log_prior[list(active)]
    n_free = int(np.isfinite(own).sum())
    return sets.prior.log_size(n_free)[slabs] + own[np.isfinite(own)].sum() + fit - 0.5 * at.log_volume, at


def all_sets(sets):
    """Every set that has the forced columns, and none of those that are never in."""
    free = np.flatnonzero(np.isfinite(sets.log_prior))
    chosen = chain.from_iterable(combinations(free, k) for k in range(len(free) + 1))
    return [np.union1d(each, sets.forced).astype(int) for each in chosen]


@dataclass(frozen=True)
class Posterior:
    """Exact averages over all sets, and over c."""

    probability: np.ndarray
    mean: np.ndarray
    second: np.ndarray
    sizes: np.ndarray
    rest: float


def enumerated(sets, slabs=slice(None)):
    """The exact posterior; `slabs` restricts c to some values of the grid."""
    m, log_p, rows = sets.problem.n_columns, [], []
    for active in all_sets(sets):
        value, at = log_joint(sets, active, slabs)
        noise = at.rest / max(sets.n - 2, 1.0) if sets.learns_noise else np.ones_like(at.rest)
        inside, mean, second, size = (np.zeros((len(value), width)) for width in (m, m, m, m + 1))
        inside[:, active], mean[:, active], size[:, len(active)] = 1.0, at.mean, 1.0
        second[:, active] = at.mean**2 + noise[:, None] * np.diagonal(at.covariance, axis1=1, axis2=2)
        log_p.append(value)
        rows.append(np.column_stack([inside, mean, second, size, at.rest]))
    p = np.exp(np.concatenate(log_p) - np.max(log_p))
    parts = np.split(p @ np.concatenate(rows) / p.sum(), [m, 2 * m, 3 * m, 4 * m + 1])
    return Posterior(*parts[:4], float(parts[4][0]))
