"""Two-class w-steps against brute force: explicit columns, inverses, and integrals on a grid."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, optimize, stats
from scipy.special import expit, log_expit
from sparsebayes.core.sites import Sites, jaakkola, laplace
from sparsebayes.engine.bernoulli import BernoulliProblem, Contact, Mode, VariationalProblem, predictor
from sparsebayes.engine.sequential import Candidates

from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.problem import Solution

both_intercepts = pytest.mark.parametrize("flat_level", [False, True], ids=["none", "flat"])


@pytest.fixture
def make_bernoulli():
    """Columns off the origin and of different size, standardised with the row weights as the estimator does."""

    def make(n, d, flat_level, *, seed=0, weight=None, price=0.0, a=0.0, b=0.0, kind=BernoulliProblem, **kwargs):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, d)) * np.linspace(0.5, 3, d) + np.linspace(-2, 2, d)
        t = (X @ (rng.standard_normal(d) / np.sqrt(max(d, 1))) + rng.logistic(size=n) > 0).astype(float)
        t[:2] = 0.0, 1.0
        weight = np.ones(n) if weight is None else weight
        rows = DenseRows.of(X).standardised(weight, centre=flat_level).unweighted()
        return kind(rows, t, weight, flat_level, price, a, np.full(d, b), **kwargs)

    return make


@pytest.fixture
def design():
    """Φ as an array, with the intercept as an explicit column of ones; and the precisions, 0 for that column."""

    def of(problem, alpha):
        Phi = problem.rows.columns(slice(None))
        if not problem.flat_intercept:
            return Phi, alpha
        return np.column_stack([Phi, np.ones(len(Phi))]), np.append(alpha, 0.0)

    return of


@pytest.fixture
def mode_by_scipy(design):
    """Weights (and intercept last) of largest posterior density, by a trust-region Newton method."""

    def find(problem, alpha):
        Phi, A = design(problem, alpha)

        def minus(w):
            return -problem.weight @ log_expit((2 * problem.t - 1) * (Phi @ w)) + 0.5 * A @ w**2

        def slope(w):
            return -Phi.T @ (problem.weight * (problem.t - expit(Phi @ w))) + A * w

        def curvature(w):
            p = expit(Phi @ w)
            return np.diag(A) + (Phi.T * (problem.weight * p * (1 - p))) @ Phi

        start = np.zeros(Phi.shape[1])
        options = {"gtol": 1e-9, "maxiter": 1000}
        return optimize.minimize(minus, start, jac=slope, hess=curvature, method="trust-exact", options=options).x

    return find


@pytest.fixture
def on_a_grid():
    """Log ∫ exp(f(w)) dw over one or two axes by the trapezoidal rule, which is exact to rounding for such f."""

    def integral(f, half_widths, n=801):
        axes = [np.linspace(-half, half, n) for half in half_widths]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        values = f(points)
        cell = np.prod([axis[1] - axis[0] for axis in axes])
        return float(values.max() + np.log(np.exp(values - values.max()).sum() * cell))

    return integral


# --- the posterior under sites ---


@both_intercepts
def test_posterior_with_an_explicit_column_of_ones(shape, flat_level, make_bernoulli, design, rng):
    n, d = shape
    problem = make_bernoulli(n, d, flat_level)
    alpha = rng.uniform(0.1, 10, d)
    sites = Sites(rng.uniform(0.01, 2, n), rng.standard_normal(n), rng.standard_normal(n))
    found = predictor(problem.rows, sites, alpha, flat_level)
    Phi, A = design(problem, alpha)
    Sigma = np.linalg.inv(np.diag(A) + (Phi.T * sites.precision) @ Phi)
    mean = Sigma @ Phi.T @ sites.shift
    assert_allclose(found.posterior.mean, mean[:d], atol=1e-10)
    assert_allclose(found.posterior.covariance(), Sigma[:d, :d], atol=1e-10)
    assert_allclose(found.eta, Phi @ mean, atol=1e-10)
    assert_allclose(found.variance(), np.diag(Phi @ Sigma @ Phi.T), atol=1e-10)
    origin = rng.standard_normal(d)
    there = np.append((origin - problem.rows.mean) / problem.rows.scale, [1.0] * flat_level)
    assert_allclose(found.intercept(origin), there @ mean, atol=1e-10)


def test_flat_level_is_independent_of_the_weights_at_the_weighted_means(make_bernoulli, design, rng):
    problem = make_bernoulli(30, 4, True)
    b = rng.uniform(0.01, 2, 30)
    found = predictor(problem.rows, Sites(b, rng.standard_normal(30), np.zeros(30)), np.ones(4), True)
    assert_allclose(found.rows.mean, b @ problem.rows.X / b.sum(), rtol=1e-12)
    Phi, A = design(problem, np.ones(4))
    Sigma = np.linalg.inv(np.diag(A) + (Phi.T * b) @ Phi)
    at_mean = np.append((found.rows.mean - problem.rows.mean) / problem.rows.scale, 1.0)
    assert_allclose(Sigma[:4] @ at_mean, 0, atol=1e-12)
    assert_allclose(found.level_variance, at_mean @ Sigma @ at_mean, rtol=1e-10)


def test_flat_is_the_limit_of_a_broad_intercept(make_bernoulli, rng):
    problem = make_bernoulli(30, 4, True)
    sites = Sites(rng.uniform(0.1, 2, 30), rng.standard_normal(30), np.zeros(30))
    found = predictor(problem.rows, sites, np.ones(4), True)
    ones = DenseRows.of(np.column_stack([problem.rows.columns(slice(None)), np.ones(30)]))
    nearly = predictor(ones, sites, np.append(np.ones(4), 1e-9), False)
    assert_allclose(nearly.posterior.mean[:4], found.posterior.mean, atol=1e-8)
    assert_allclose(nearly.eta, found.eta, atol=1e-8)
    assert_allclose(nearly.variance(), found.variance(), rtol=1e-7)


# --- evidence ---


@pytest.mark.parametrize(("d", "flat_level"), [(1, False), (0, True), (1, True), (2, False)])
def test_bound_is_the_integral_of_the_sites_and_below_the_evidence(
    d, flat_level, make_bernoulli, design, on_a_grid, rng
):
    problem = make_bernoulli(12, d, flat_level, weight=rng.uniform(0.5, 2, 12))
    alpha = np.linspace(0.5, 1.5, d)
    Phi, A = design(problem, alpha)
    half = [12 / np.sqrt(a) if a else 45.0 for a in A]

    def prior(w):
        return -0.5 * (w**2 @ A) + 0.5 * np.log(alpha / (2 * np.pi)).sum()

    def exact(w):
        return log_expit((2 * problem.t - 1) * (w @ Phi.T)) @ problem.weight + prior(w)

    def under_sites(w):
        eta = w @ Phi.T
        return -0.5 * eta**2 @ sites.precision + eta @ sites.shift + sites.const.sum() + prior(w)

    truth = on_a_grid(exact, half)
    carry, last = Contact(rng.uniform(0, 3, 12)), -np.inf
    for _ in range(30):
        sites = problem.sites(problem.rows, carry)
        step = problem.jaakkola_step(problem.rows, alpha, carry)
        bound = step.value + problem.scale_term(np.arange(d), alpha)
        assert_allclose(bound, on_a_grid(under_sites, half), atol=1e-9)
        assert last - 1e-12 <= bound < truth
        if bound - last < 1e-4:
            break
        carry, last = step.carry, bound
    assert truth - bound < 1


@both_intercepts
def test_laplace_evidence_is_its_formula(shape, flat_level, make_bernoulli, design, mode_by_scipy, rng):
    n, d = shape
    problem = make_bernoulli(n, d, flat_level, weight=rng.uniform(0.5, 2, n), a=0.3, b=0.2)
    alpha = rng.uniform(0.5, 5, d)
    step = problem.laplace_step(problem.rows, alpha, Mode(np.zeros(d)))
    Phi, A = design(problem, alpha)
    w = mode_by_scipy(problem, alpha)
    p = expit(Phi @ w)
    H = np.diag(A) + (Phi.T * (problem.weight * p * (1 - p))) @ Phi
    expected = problem.weight @ log_expit((2 * problem.t - 1) * (Phi @ w)) - 0.5 * A @ w**2
    expected += 0.5 * np.log(alpha).sum() - 0.5 * np.linalg.slogdet(H)[1] + 0.5 * np.log(2 * np.pi) * flat_level
    expected += (0.3 * np.log(alpha) - 0.2 * alpha).sum()
    assert_allclose(step.value + problem.scale_term(np.arange(d), alpha), expected, atol=1e-8)
    assert_allclose(step.posterior.mean, w[:d], atol=1e-7)
    assert_allclose(step.posterior.covariance(), np.linalg.inv(H)[:d, :d], atol=1e-8)


def test_laplace_evidence_is_near_the_truth_with_many_rows(make_bernoulli, design, on_a_grid):
    problem = make_bernoulli(200, 1, True)
    Phi, A = design(problem, np.ones(1))
    step = problem.laplace_step(problem.rows, np.ones(1), Mode(np.zeros(1)))

    def exact(w):
        return log_expit((2 * problem.t - 1) * (w @ Phi.T)).sum(axis=1) - 0.5 * (w**2 @ A) - 0.5 * np.log(2 * np.pi)

    assert_allclose(step.value, on_a_grid(exact, [3, 3], n=201), atol=0.02)


@pytest.mark.parametrize("shared", [False, True])
def test_variational_scale_term_by_quadrature(shared, make_bernoulli, rng):
    """E_q[Σ ½ log α + log p(α) - log q(α)], of each scale."""
    a0, b0, d = 0.7, 0.4, 5
    problem = make_bernoulli(10, d, False, a=a0, b=b0, kind=VariationalProblem, shared=shared)
    active = np.array([0, 2, 3])
    alpha = np.full(3, 2.5) if shared else np.array([0.3, 2.0, 40.0])
    weights = 3 if shared else 1
    prior = stats.gamma(a0, scale=1 / b0)

    def term(mean):
        shape = a0 + weights / 2
        q = stats.gamma(shape, scale=mean / shape)

        def integrand(y):
            x = np.exp(y)
            return x * q.pdf(x) * (weights * y / 2 + prior.logpdf(x) - q.logpdf(x))

        return integrate.quad(integrand, np.log(mean) - 35, np.log(mean) + 5, epsabs=1e-11, limit=300)[0]

    expected = term(2.5) if shared else sum(term(mean) for mean in alpha)
    assert_allclose(problem.scale_term(active, alpha), expected, rtol=1e-8)


# --- the mode ---


@both_intercepts
def test_mode_is_the_optimisers(shape, flat_level, make_bernoulli, mode_by_scipy, rng):
    n, d = shape
    problem = make_bernoulli(n, d, flat_level, weight=rng.uniform(0.2, 3, n))
    alpha = rng.uniform(0.05, 5, d)
    expected = mode_by_scipy(problem, alpha)
    for start in (Mode(np.zeros(d)), Mode(3 * rng.standard_normal(d), 2.0 * flat_level)):
        found = problem.find_mode(problem.rows, alpha, start)
        assert_allclose(found.w, expected[:d], atol=1e-7)
        assert_allclose(found.intercept, expected[d:].sum(), atol=1e-7)


@both_intercepts
def test_row_weights_are_repeated_rows(flat_level, make_bernoulli, rng):
    weight = rng.integers(1, 5, 20).astype(float)
    problem = make_bernoulli(20, 3, flat_level, weight=weight)
    again = np.repeat(np.arange(20), weight.astype(int))
    repeated = replace(
        problem,
        rows=DenseRows.of(problem.rows.X[again]).standardised(np.ones(len(again)), centre=flat_level).unweighted(),
        t=problem.t[again],
        weight=np.ones(len(again)),
    )
    alpha = np.array([0.3, 1.0, 4.0])
    one = problem.laplace_step(problem.rows, alpha, Mode(np.zeros(3)))
    many = repeated.laplace_step(repeated.rows, alpha, Mode(np.zeros(3)))
    assert_allclose(one.carry.w, many.carry.w, atol=1e-8)
    assert_allclose(one.carry.intercept, many.carry.intercept, atol=1e-8)
    assert_allclose(one.value, many.value, rtol=1e-9)
    one = problem.jaakkola_step(problem.rows, alpha, Contact(np.ones(20)))
    many = repeated.jaakkola_step(repeated.rows, alpha, Contact(np.ones(len(again))))
    assert_allclose(one.value, many.value, rtol=1e-9)
    assert_allclose(one.carry.xi[again], many.carry.xi, rtol=1e-10)


@both_intercepts
@pytest.mark.parametrize("alpha", [1e-2, 1e-5, 1e-8])
def test_separable_data_have_a_finite_mode(flat_level, alpha, design, rng):
    X = rng.standard_normal((40, 3))
    t = (X[:, 0] + 0.5 * X[:, 1] > 0.3 * flat_level).astype(float)
    problem = BernoulliProblem(DenseRows.of(X), t, np.ones(40), flat_level, 0.0, 0.0, np.zeros(3))
    precisions = np.full(3, alpha)
    step = problem.laplace_step(problem.rows, precisions, Mode(np.zeros(3)))
    Phi, A = design(problem, precisions)
    w = np.append(step.carry.w, [step.carry.intercept] * flat_level)
    assert np.isfinite(w).all()
    assert np.isfinite(step.value)
    assert alpha > 1e-3 or (((Phi @ w) > 0) == (t > 0)).all()
    slope = Phi.T @ (t - expit(Phi @ w)) - A * w
    assert np.abs(slope).max() < 1e-3 * np.abs(A * w).max()


# --- the two shapes, and the contact points ---


@both_intercepts
def test_rows_of_weight_zero_change_the_shape_and_nothing_else(flat_level, make_bernoulli, rng):
    """14 rows and 25 weights are solved among the rows; with 20 rows more that count nothing, among the weights."""
    weight = np.append(rng.uniform(0.5, 2, 14), np.zeros(20))
    alpha = rng.uniform(0.1, 10, 25)
    tall = make_bernoulli(34, 25, flat_level, weight=weight)
    few = DenseRows(tall.rows.X[:14], tall.rows.mean, tall.rows.scale, np.ones(14))
    wide = replace(tall, rows=few, t=tall.t[:14], weight=weight[:14])
    xi = rng.uniform(0, 3, 34)
    for name, long, short in [
        ("laplace_step", Mode(np.zeros(25)), Mode(np.zeros(25))),
        ("jaakkola_step", Contact(xi), Contact(xi[:14])),
    ]:
        one = getattr(tall, name)(tall.rows, alpha, long)
        other = getattr(wide, name)(wide.rows, alpha, short)
        assert (one.posterior.sign, other.posterior.sign) == (1, -1)
        assert_allclose(one.value, other.value, rtol=1e-10)
        assert_allclose(one.posterior.mean, other.posterior.mean, atol=1e-8)
        assert_allclose(one.posterior.var, other.posterior.var, rtol=1e-8)
        if name == "jaakkola_step":
            assert_allclose(one.carry.xi[:14], other.carry.xi, rtol=1e-9)


@both_intercepts
def test_contact_points_are_the_second_moment_of_the_predictor(shape, flat_level, make_bernoulli, design, rng):
    n, d = shape
    problem = make_bernoulli(n, d, flat_level, weight=rng.uniform(0.5, 2, n))
    alpha, xi = rng.uniform(0.1, 10, d), rng.uniform(0, 3, n)
    step = problem.jaakkola_step(problem.rows, alpha, Contact(xi))
    Phi, A = design(problem, alpha)
    b = 2 * problem.weight * np.tanh(xi / 2) / (4 * xi)
    Sigma = np.linalg.inv(np.diag(A) + (Phi.T * b) @ Phi)
    mean = Sigma @ Phi.T @ (problem.weight * (problem.t - 0.5))
    assert_allclose(step.carry.xi**2, (Phi @ mean) ** 2 + np.diag(Phi @ Sigma @ Phi.T), rtol=1e-9)


@both_intercepts
@pytest.mark.parametrize("kind", ["laplace", "jaakkola"])
def test_view_of_all_candidates(shape, flat_level, kind, make_bernoulli, design, rng):
    """s and q of every candidate, by leaving it out of the explicit model."""
    n, d = shape
    weight = rng.uniform(0.5, 2, n)
    problem = make_bernoulli(n, d, flat_level, weight=weight)
    point = rng.standard_normal(n)
    sites = laplace(problem.t, point, weight) if kind == "laplace" else jaakkola(problem.t, np.abs(point), weight)
    active, alpha = np.array([1, 4, 6]), np.array([0.2, 3.0, 50.0])
    view = problem.gaussian_view(sites)
    assert_allclose(view.level, sites.shift.sum() / sites.precision.sum() * flat_level, rtol=1e-12)
    s, q = Candidates(view, Solution(active, alpha, 1.0)).factors()
    Phi, _ = design(problem, np.ones(d))
    b, h = sites.precision, sites.shift
    for j in range(d):
        others = active != j
        inside = np.append(active[others], [d] * flat_level).astype(int)
        A = np.append(alpha[others], [0.0] * flat_level)
        Psi, phi = Phi[:, inside], Phi[:, j]
        P = np.diag(A) + (Psi.T * b) @ Psi
        felt = np.linalg.solve(P, Psi.T @ (b * phi))
        assert_allclose(s[j], phi @ (b * phi) - felt @ Psi.T @ (b * phi), rtol=1e-8)
        assert_allclose(q[j], phi @ h - felt @ Psi.T @ h, rtol=1e-7, atol=1e-8)


def test_view_charges_every_feature_the_same(make_bernoulli):
    problem = make_bernoulli(20, 6, True, price=2.0)
    view = problem.gaussian_view(laplace(problem.t, np.zeros(20)))
    assert [view.total_price(k) for k in range(4)] == [0.0, 2.0, 4.0, 6.0]
