"""Problems on which the search for any likelihood is tried, and models of them."""

from dataclasses import replace

import numpy as np
import pytest

from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.prices import FREE
from sparsebayes.core.priors import ARD
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.scale_fit import fit_scales

TOL = 1e-6
EXACTLY = Settings(TOL, 1000)
INFERENCES = ("laplace", "variational")
both_inferences = pytest.mark.parametrize("inference", INFERENCES)


def kernel(X, Z, gamma=4.0):
    return np.exp(-gamma * ((X[:, None] - Z[None]) ** 2).sum(axis=-1))


def problem_of(Phi, t, *, level=False, weight=None, min_alpha=1e-6, a=0.0, b=0.0, price=FREE, likelihood=None):
    """A problem for Laplace's method; `level` says whether there is a flat intercept."""
    weight = np.ones(len(t)) if weight is None else weight
    return Problem(
        design=DenseRows.of(Phi).standardised(weight, centre=level).unweighted(),
        t=t,
        weight=weight,
        likelihood=likelihood or Bernoulli(),
        prior=ARD(a, b, min_alpha),
        price=price,
        flat_intercept=level,
    )


def by(problem, inference):
    return replace(problem, bounded=inference == "variational")


def fitted(problem, active, alpha=None, tol=TOL):
    """The model that keeps these columns, with its best precisions under the real likelihood."""
    active = np.asarray(active, dtype=np.intp)
    alpha = np.ones(len(active)) if alpha is None else alpha
    return fit_scales(problem, active, alpha, problem.start(len(active)), tol, drop_worthless=False)


def design(problem):
    """Φ of all candidates, from the given numbers."""
    return (problem.design.X - problem.design.mean) / problem.design.scale


def informative(n=200, d=15, seed=0, strength=1.5, likelihood="bernoulli"):
    """Of d features the first three matter; classes, or counts."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    eta = strength * (X[:, 0] - X[:, 1] + 0.8 * X[:, 2])
    if likelihood == "poisson":
        return X, rng.poisson(np.exp(0.4 * eta)).astype(float)
    return X, (eta + rng.logistic(size=n) > 0).astype(float)
