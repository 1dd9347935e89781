"""Problems for the solvers, and their objective by brute force: densities from SciPy, no code of the library."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sparsebayes.engine.feature_weights import Weigher

from sparsebayes.core.weighted import weighted_kernel
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.drvm import RegressionBlock
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.problem import GaussianProblem

SHAPES = [(40, 8), (14, 25)]
"""More rows than columns, and the other way round."""


@pytest.fixture(params=SHAPES, ids=["tall", "wide"])
def shape(request) -> tuple[int, int]:
    return request.param


@pytest.fixture
def make_problem() -> Callable[..., GaussianProblem]:
    def make(
        n, d, *, seed=0, n_relevant=3, noise=0.5, price=0.0, a=0.0, b=0.0, c=0.0, rate=0.0, flat=True, X=None, y=None
    ):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, d)) if X is None else X
        w = np.zeros(d)
        w[:n_relevant] = np.linspace(2, 1, n_relevant)
        y = X @ w + noise * rng.standard_normal(n) if y is None else y
        y = y - y.mean() if flat else y
        rows = DenseRows.of(X).standardised(np.ones(n), centre=flat)
        return GaussianProblem(rows, y / np.sqrt((y**2).mean()), float(n), flat, price, a, np.full(d, b), c, rate)

    return make


@pytest.fixture
def everywhere() -> Callable[..., np.ndarray]:
    """α of every column, ∞ outside the model."""

    def of(problem, solution):
        alpha = np.full(problem.n_columns, np.inf)
        alpha[solution.active] = solution.alpha
        return alpha

    return of


@pytest.fixture
def design() -> Callable[[GaussianProblem], np.ndarray]:
    """Φ, formed from the user's numbers."""

    def of(problem):
        X = problem.rows.X - (problem.rows.X.mean(axis=0) if problem.flat_intercept else 0.0)
        return X / np.sqrt((X**2).mean(axis=0))

    return of


@pytest.fixture
def evidence(design) -> Callable[..., float]:
    """log p(t | α, σ²); a flat intercept (density one) is integrated out by the closed form of that integral."""

    def of(problem, alpha, noise):
        Phi, t = design(problem), problem.t
        C = noise * np.eye(len(t)) + (Phi / alpha) @ Phi.T
        density = multivariate_normal(np.zeros(len(t)), C).logpdf(t)
        if not problem.flat_intercept:
            return float(density)
        ones = np.ones(len(t))
        across, along = np.linalg.solve(C, np.column_stack([ones, t])).T @ ones
        return float(density + 0.5 * np.log(2 * np.pi / across) + along**2 / (2 * across))

    return of


@pytest.fixture
def objective(evidence) -> Callable[..., float]:
    """Evidence and log hyper-priors, of which the rules and the re-estimation of a precision are the ascent."""

    def of(problem, alpha, noise):
        inside = np.isfinite(alpha)
        a, b, c, d = problem.a, problem.b[inside], problem.c, problem.d
        hyper = (a * np.log(alpha[inside]) - b * alpha[inside]).sum() - c * np.log(noise) - d / noise
        return evidence(problem, alpha, noise) + float(hyper)

    return of


@pytest.fixture
def priced_objective(objective) -> Callable[..., float]:
    def of(problem, alpha, noise):
        k, n = np.isfinite(alpha).sum(), problem.n
        return objective(problem, alpha, noise) - problem.price * k * n / max(n - k, 1)

    return of


@pytest.fixture
def slopes(objective) -> Callable[..., np.ndarray]:
    """Derivatives of the objective in log σ² and in the log α of what is in the model, by central differences.

    Fourth order at h = 1e-2: an error of about 1e-9 of the (unit sized) derivatives of higher order.
    """

    def of(problem, alpha, noise, h=1e-2):
        inside = np.flatnonzero(np.isfinite(alpha))

        def at(direction, step):
            moved = alpha.copy()
            if direction < 0:
                return objective(problem, moved, noise * np.exp(step))
            moved[direction] *= np.exp(step)
            return objective(problem, moved, noise)

        def central(direction, step):
            return (at(direction, step) - at(direction, -step)) / (2 * step)

        return np.array([(4 * central(j, h / 2) - central(j, h)) / 3 for j in (-1, *inside)])

    return of


@pytest.fixture
def lasso() -> Callable[..., np.ndarray]:
    """argmin ½‖t - Φw‖² + Σ penalty |w| by plain coordinate descent to rounding."""

    def solve(Phi, t, penalty, start):
        w, gram, projection = start.copy(), Phi.T @ Phi, Phi.T @ t
        diagonal = np.diag(gram)
        for _ in range(5000):
            before = w.copy()
            for j in range(len(w)):
                pull = projection[j] - gram[j] @ w + diagonal[j] * w[j]
                w[j] = np.sign(pull) * max(abs(pull) - penalty[j], 0.0) / diagonal[j]
            if np.abs(w - before).max() <= 1e-13 * np.abs(w).max():
                break
        return w

    return solve


@pytest.fixture
def make_weigher() -> Callable[..., Weigher]:
    """A regression whose inputs are to be weighed; its block is in it. Inputs and target become standard here."""

    def make(X, y, *, kernel="rbf", price=0.0, tol=1e-3, weight=None, flat=True):
        weight = np.ones(len(X)) if weight is None else weight
        mean = np.average(X, axis=0, weights=weight)
        spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
        X = (X - mean) / np.where(spread > 0, spread, 1.0)
        y = y - flat * np.average(y, weights=weight)
        t = np.sqrt(weight) * y / np.sqrt(np.average(y**2, weights=weight))
        block = RegressionBlock(t, weight, flat, Settings(1e-5, 5000))
        return Weigher(weighted_kernel(kernel), X, X, block, price, block.template.n, tol)

    return make
