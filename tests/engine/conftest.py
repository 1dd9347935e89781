"""Problems for the solvers, and their objective by brute force: densities from SciPy, no code of the library."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from sparsebayes.core.prices import PerUnit
from sparsebayes.core.priors import ARD, Laplace
from sparsebayes.core.weighted_kernels import weighted_kernel
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import compiled, state
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.theta import ThetaSearch
from sparsebayes.engine.theta_model import RegressionModel

SHAPES = [(40, 8), (14, 25)]
"""More rows than columns, and the other way round."""


@pytest.fixture(params=SHAPES, ids=["tall", "wide"])
def shape(request) -> tuple[int, int]:
    return request.param


@pytest.fixture(params=["NumPy", "compiled"])
def form(request, monkeypatch) -> str:
    """The form that the state of a search shall have."""
    if request.param == "NumPy":
        monkeypatch.setattr(compiled, "COMPILED", False)
    elif not compiled.COMPILED:
        pytest.skip("the compiled module is not there, or switched off")
    return request.param


@pytest.fixture
def small_working_set(monkeypatch) -> None:
    """Four candidates are kept current, where otherwise all columns of a small problem are."""
    monkeypatch.setattr(state, "WORKING_SET", 4)
    monkeypatch.setattr(state, "ALL_COLUMNS", 0)


@pytest.fixture
def make_problem() -> Callable[..., LeastSquares]:
    """A regression on standardised columns. A price in nats is that of features, with the factor of a learned noise."""

    def make(n, m, *, seed=0, n_relevant=3, noise=0.5, price=0.0, prior=None, flat=True, X=None, y=None, **others):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, m)) if X is None else X
        w = np.zeros(m)
        w[:n_relevant] = np.linspace(2, 1, n_relevant)
        y = X @ w + noise * rng.standard_normal(n) if y is None else y
        y = y - y.mean() if flat else y
        return LeastSquares(
            design=DenseRows.of(X).standardised(np.ones(n), centre=flat),
            t=y / np.sqrt((y**2).mean()),
            n_weighted=float(n),
            flat_intercept=flat,
            prior=ARD() if prior is None else prior,
            price=PerUnit(price, rows=n - flat),
            **others,
        )

    return make


@pytest.fixture
def kernel_problem(make_problem) -> Callable[..., LeastSquares]:
    """A noisy sinc and one RBF column per row: neighbouring columns are nearly dependent."""

    def make(n=60, **keywords):
        x = np.linspace(-10, 10, n)
        y = np.sinc(x / np.pi) + 0.1 * np.random.default_rng(1).standard_normal(n)
        return make_problem(n, n, X=np.exp(-((x[:, None] - x) ** 2) / 9), y=y, **keywords)

    return make


@pytest.fixture
def near_duplicates(make_problem) -> Callable[..., LeastSquares]:
    """Pairs of columns with correlation ρ; one of each of the first pairs is in the target."""

    def make(rho=0.999, n=60, n_pairs=12, n_relevant=4, seed=0, **keywords):
        rng = np.random.default_rng([seed, 7])
        one = rng.standard_normal((n, n_pairs))
        other = rho * one + np.sqrt(1 - rho**2) * rng.standard_normal((n, n_pairs))
        X = np.column_stack([one, other])
        y = one[:, :n_relevant] @ np.linspace(1.5, 0.7, n_relevant) + 0.5 * rng.standard_normal(n)
        return make_problem(n, 2 * n_pairs, X=X, y=y, **{"price": np.log(2 * n_pairs), **keywords})

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
def design() -> Callable[[LeastSquares], np.ndarray]:
    """Φ, formed from the user's numbers."""

    def of(problem):
        X = problem.design.X - (problem.design.X.mean(axis=0) if problem.flat_intercept else 0.0)
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
    """Evidence, log hyper-priors of precisions and noise, and the density of a Laplace prior's g = 1/(ασ²)."""

    def of(problem, alpha, noise):
        inside, prior = np.isfinite(alpha), problem.prior
        b = np.broadcast_to(prior.b, len(alpha))[inside]
        hyper = (prior.a * np.log(alpha[inside]) - b * alpha[inside]).sum() - problem.c * np.log(noise)
        rate = prior.rate if isinstance(prior, Laplace) else 0.0
        return evidence(problem, alpha, noise) + float(
            hyper - problem.d / noise - 0.5 * rate * (1 / (alpha * noise)).sum()
        )

    return of


@pytest.fixture
def priced_objective(objective) -> Callable[..., float]:
    """Less the nats of each column, times n/(n - k)."""

    def of(problem, alpha, noise):
        inside, n = np.isfinite(alpha), problem.n
        nats = np.broadcast_to(problem.price.nats, len(alpha))[inside].sum()
        return objective(problem, alpha, noise) - nats * n / max(n - inside.sum(), 1)

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
def make_theta_search() -> Callable[..., ThetaSearch]:
    """A search for the feature weights of a regression. Inputs and target are standardised here."""

    def make(X, y, *, kernel="rbf", price=0.0, tol=1e-3, weight=None, flat=True):
        weight = np.ones(len(X)) if weight is None else weight
        mean = np.average(X, axis=0, weights=weight)
        spread = np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weight))
        X = (X - mean) / np.where(spread > 0, spread, 1.0)
        y = y - flat * np.average(y, weights=weight)
        t = np.sqrt(weight) * y / np.sqrt(np.average(y**2, weights=weight))
        model = RegressionModel(t, weight, flat, Settings(1e-5, 5000))
        return ThetaSearch(weighted_kernel(kernel), X, X, model, price, model.template.n, tol)

    return make


@pytest.fixture(scope="module")
def mixtures():
    """Two classes in the plane, each a mixture of two Gaussians that overlap with the other's."""

    def make(n, seed=0, spread=0.17):
        rng = np.random.default_rng(seed)
        t = (np.arange(n) % 2).astype(np.float64)
        centres = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
        return centres[t.astype(int), rng.integers(0, 2, n)] + spread * rng.standard_normal((n, 2)), t

    return make
