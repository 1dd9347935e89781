"""Local approximations against SciPy's densities and optimisers, explicit matrices and integrals on a grid."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize, stats
from scipy.special import expit, log_expit

from sparsebayes.core.likelihoods import Bernoulli, Gaussian, Poisson, Sites, StudentT, expansion
from sparsebayes.core.priors import ARD
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.view import Contact, Mode, take_view

LIKELIHOODS = {
    "bernoulli": Bernoulli(),
    "poisson": Poisson(offset=0.3),
    "student": StudentT(noise=0.4, freedom=3.0),
    "gaussian": Gaussian(noise=0.4),
}
DENSITIES = {
    "bernoulli": lambda t, eta: log_expit((2 * t - 1) * eta),
    "poisson": lambda t, eta: stats.poisson.logpmf(t, np.exp(eta + 0.3)),
    "student": lambda t, eta: stats.t.logpdf(t, 3.0, loc=eta, scale=np.sqrt(0.4)),
    "gaussian": lambda t, eta: stats.norm.logpdf(t, eta, np.sqrt(0.4)),
}
LOG_CONCAVE = ("bernoulli", "poisson", "gaussian")
BOUNDED = ("bernoulli", "student", "gaussian")
SHAPES = {"tall": (40, 8), "wide": (14, 25)}

all_likelihoods = pytest.mark.parametrize("name", LIKELIHOODS)
both_intercepts = pytest.mark.parametrize("flat_level", [False, True], ids=["none", "flat"])
both_shapes = pytest.mark.parametrize(("n", "d"), SHAPES.values(), ids=SHAPES)
few_weights = pytest.mark.parametrize(("d", "flat_level"), [(1, False), (0, True), (1, True), (2, False)])


def make(name, n, d, flat_level, *, seed=0, weight=None, prior=None, bounded=False):
    """Columns off the origin and of different size, standardised with the row weights as the estimators do."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.linspace(0.5, 3, d) + np.linspace(-2, 2, d)
    eta = X @ (rng.standard_normal(d) / np.sqrt(max(d, 1)) / np.linspace(0.5, 3, d)) if d else np.zeros(n)
    if name == "bernoulli":
        t = (eta + rng.logistic(size=n) > 0).astype(float)
        t[:2] = 0.0, 1.0
    elif name == "poisson":
        t = rng.poisson(np.exp(np.clip(eta, None, 3.0) + 0.3)).astype(float)
    else:
        t = eta + np.sqrt(0.4) * rng.standard_t(3.0, n)
    weight = np.ones(n) if weight is None else weight
    return Problem(
        design=DenseRows.of(X).standardised(weight, centre=flat_level).unweighted(),
        t=t,
        weight=weight,
        likelihood=LIKELIHOODS[name],
        prior=prior or ARD(),
        flat_intercept=flat_level,
        bounded=bounded,
    )


def explicit(problem, alpha):
    """Φ as an array, with the intercept as a column of ones at the end; and the precisions, 0 for that column."""
    Phi = problem.design.columns(slice(None))
    if not problem.flat_intercept:
        return Phi, alpha
    return np.column_stack([Phi, np.ones(len(Phi))]), np.append(alpha, 0.0)


def formed(problem):
    """All columns, as a model has those that it keeps."""
    return problem.design.keep(np.arange(problem.design.n_columns))


def log_joint(name, problem, alpha):
    """log p(t | w) + log p(w) as a function of points (..., weights), the intercept last and with density one."""
    Phi, A = explicit(problem, alpha)
    const = 0.5 * np.log(alpha / (2 * np.pi)).sum()

    def of(w):
        return DENSITIES[name](problem.t, w @ Phi.T) @ problem.weight - 0.5 * (w**2 @ A) + const

    return of


def mode_by_scipy(name, problem, alpha):
    """Weights (and the intercept) of largest posterior density by BFGS, polished by Newton steps."""
    f = log_joint(name, problem, alpha)
    w = optimize.minimize(lambda w: -f(w), np.zeros(len(explicit(problem, alpha)[1])), method="BFGS").x
    Phi, A = explicit(problem, alpha)
    for _ in range(5):
        slope, curvature = numerical(name, problem.t, Phi @ w)
        H = np.diag(A) + (Phi.T * (problem.weight * curvature)) @ Phi
        w = w + np.linalg.solve(H, Phi.T @ (problem.weight * slope) - A * w)
    return w


def numerical(name, t, eta, h=1e-3):
    """Slope and negative curvature of the log density by central differences of sixth order, good to 1e-10 or so."""
    f = [DENSITIES[name](t, eta + k * h) for k in range(-3, 4)]
    slope = (-f[0] + 9 * f[1] - 45 * f[2] + 45 * f[4] - 9 * f[5] + f[6]) / (60 * h)
    bend = (2 * f[0] - 27 * f[1] + 270 * f[2] - 490 * f[3] + 270 * f[4] - 27 * f[5] + 2 * f[6]) / (180 * h**2)
    return slope, -bend


def on_a_grid(f, half_widths, centre, n):
    """Log ∫ exp(f(w)) dw over one or two axes by the trapezoidal rule, which is exact to rounding for such f."""
    axes = [np.linspace(-half, half, n) for half in half_widths]
    points = centre + np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    values = np.concatenate([f(part) for part in np.array_split(points, 10)])
    cell = np.prod([axis[1] - axis[0] for axis in axes])
    return float(values.max() + np.log(np.exp(values - values.max()).sum() * cell))


def integrated(name, problem, alpha, deviations=12.0, n=121):
    """log p(t | α) by quadrature about the mode."""
    w = mode_by_scipy(name, problem, alpha)
    Phi, A = explicit(problem, alpha)
    curvature = np.maximum(numerical(name, problem.t, Phi @ w)[1], 1e-3)
    spread = np.sqrt(np.diag(np.linalg.inv(np.diag(A) + (Phi.T * (problem.weight * curvature)) @ Phi)))
    return on_a_grid(log_joint(name, problem, alpha), deviations * spread, w, n)


def evidence_of(problem, step, alpha):
    return step.value + problem.prior.of(np.arange(len(alpha))).scale_term(alpha)


# --- the posterior under sites ---


@both_intercepts
@both_shapes
def test_posterior_with_an_explicit_column_of_ones(n, d, flat_level, rng):
    problem = make("bernoulli", n, d, flat_level)
    alpha = rng.uniform(0.1, 10, d)
    sites = Sites(rng.uniform(0.01, 2, n), rng.standard_normal(n), rng.standard_normal(n))
    found = take_view(formed(problem), sites, alpha, flat_level)
    Phi, A = explicit(problem, alpha)
    Sigma = np.linalg.inv(np.diag(A) + (Phi.T * sites.precision) @ Phi)
    mean = Sigma @ Phi.T @ sites.shift
    assert_allclose(found.posterior.mean, mean[:d], atol=1e-10)
    assert_allclose(found.posterior.covariance(), Sigma[:d, :d], atol=1e-10)
    assert_allclose(found.eta, Phi @ mean, atol=1e-10)
    assert_allclose(found.variance(), np.diag(Phi @ Sigma @ Phi.T), atol=1e-10)


def test_sites_of_the_weights_are_a_factor_of_their_prior(rng):
    problem = make("bernoulli", 30, 4, True)
    alpha, own = rng.uniform(0.1, 10, 4), Sites(rng.uniform(0.1, 2, 4), rng.standard_normal(4), np.zeros(4))
    sites = Sites(rng.uniform(0.01, 2, 30), rng.standard_normal(30), np.zeros(30))
    found = take_view(formed(problem), sites, alpha, True, own)
    Phi, A = explicit(problem, alpha + own.precision)
    Sigma = np.linalg.inv(np.diag(A) + (Phi.T * sites.precision) @ Phi)
    assert_allclose(found.posterior.covariance(), Sigma[:4, :4], atol=1e-10)
    assert_allclose(found.eta, Phi @ Sigma @ (Phi.T @ sites.shift + np.append(own.shift, 0.0)), atol=1e-10)


def test_flat_level_is_independent_of_the_weights_at_the_weighted_means(rng):
    problem = make("bernoulli", 30, 4, True)
    b = rng.uniform(0.01, 2, 30)
    found = take_view(formed(problem), Sites(b, rng.standard_normal(30), np.zeros(30)), np.ones(4), True)
    Phi, A = explicit(problem, np.ones(4))
    Sigma = np.linalg.inv(np.diag(A) + (Phi.T * b) @ Phi)
    at_mean = b @ Phi / b.sum()
    assert_allclose(Sigma[:4] @ at_mean, 0, atol=1e-12)
    assert_allclose(found.level, at_mean @ Sigma @ Phi.T @ found.sites.shift, rtol=1e-10)
    assert_allclose(found.level_variance, at_mean @ Sigma @ at_mean, rtol=1e-10)


def test_flat_is_the_limit_of_a_broad_intercept(rng):
    problem = make("bernoulli", 30, 4, True)
    sites = Sites(rng.uniform(0.1, 2, 30), rng.standard_normal(30), np.zeros(30))
    found = take_view(formed(problem), sites, np.ones(4), True)
    ones = DenseRows.of(np.column_stack([problem.design.columns(slice(None)), np.ones(30)])).keep(np.arange(5))
    nearly = take_view(ones, sites, np.append(np.ones(4), 1e-9), False)
    assert_allclose(nearly.posterior.mean[:4], found.posterior.mean, atol=1e-8)
    assert_allclose(nearly.eta, found.eta, atol=1e-8)
    assert_allclose(nearly.variance(), found.variance(), rtol=1e-7)


# --- the mode, and Laplace's evidence ---


@all_likelihoods
@both_intercepts
@both_shapes
def test_mode_is_the_optimisers(name, n, d, flat_level, rng):
    problem = make(name, n, d, flat_level, weight=rng.uniform(0.2, 3, n))
    alpha = rng.uniform(0.5, 5, d)
    expected = mode_by_scipy(name, problem, alpha)
    starts = [problem.start(d)]
    if name in LOG_CONCAVE:  # Student's density has several modes; from the model without weights the nearest is found
        starts.append(Mode(problem.likelihood, 3 * rng.standard_normal(d), 2.0 * flat_level))
    for start in starts:
        found = start.settled(problem, formed(problem), alpha)
        # Newton ends when a step gains less than 1e-13 of the log density (some 100 nats): 1e-6 in the weights. The
        # steps of Student's density are those of EM and shorten by a constant factor only.
        assert_allclose(found.w, expected[:d], atol=1e-5 if name == "student" else 1e-6)
        assert_allclose(found.level, expected[d:].sum(), atol=1e-5 if name == "student" else 1e-6)


@pytest.mark.parametrize("name", LOG_CONCAVE)
@few_weights
def test_laplace_evidence_is_its_formula_with_a_numerical_hessian(name, d, flat_level, rng):
    problem = make(name, 30, d, flat_level, weight=rng.uniform(0.5, 2, 30), prior=ARD(a=0.3, b=0.2))
    alpha = rng.uniform(0.5, 5, d)
    step = problem.start(d).step(problem, formed(problem), alpha)
    w = mode_by_scipy(name, problem, alpha)
    Phi, A = explicit(problem, alpha)
    H = np.diag(A) + (Phi.T * (problem.weight * numerical(name, problem.t, Phi @ w)[1])) @ Phi
    expected = log_joint(name, problem, alpha)(w) + 0.5 * len(A) * np.log(2 * np.pi) - 0.5 * np.linalg.slogdet(H)[1]
    expected += (0.3 * np.log(alpha) - 0.2 * alpha).sum()
    assert_allclose(evidence_of(problem, step, alpha), expected, atol=1e-7)
    assert_allclose(step.posterior.mean, w[:d], atol=1e-7)
    assert_allclose(step.posterior.covariance(), np.linalg.inv(H)[:d, :d], atol=1e-7)


@pytest.mark.parametrize("name", ["bernoulli", "poisson"])
@few_weights
def test_laplace_evidence_comes_near_the_integral_with_more_rows(name, d, flat_level):
    errors = []
    for n in (25, 400):
        problem, alpha = make(name, n, d, flat_level), np.linspace(0.5, 1.5, d)
        step = problem.start(d).step(problem, formed(problem), alpha)
        errors.append(abs(evidence_of(problem, step, alpha) - integrated(name, problem, alpha)))
    # The error falls as 1/n: sixteenfold here, with some luck in the constants.
    assert errors[1] < max(0.2 * errors[0], 1e-3)
    assert errors[0] < 0.1


@few_weights
def test_laplace_evidence_of_heavy_tails_is_below_the_integral(d, flat_level, rng):
    """Student's sites have the curvature of a lower bound that touches at the mode: no negative ones, and a bound."""
    problem, alpha = make("student", 25, d, flat_level, weight=rng.uniform(0.5, 2, 25)), np.linspace(0.5, 1.5, d)
    step = problem.start(d).step(problem, formed(problem), alpha)
    found, truth = evidence_of(problem, step, alpha), integrated("student", problem, alpha)
    assert truth - 1 < found < truth
    eta = step.point.eta(formed(problem))
    bound = Contact(problem.likelihood, np.abs(problem.t - eta)).step(problem, formed(problem), alpha)
    assert_allclose(found, evidence_of(problem, bound, alpha), atol=1e-6)


@few_weights
@pytest.mark.parametrize("bounded", [False, True])
def test_gaussian_noise_is_exact(d, flat_level, bounded, rng):
    """A multivariate normal density; a flat intercept is integrated out by the closed form of that integral."""
    weight = rng.uniform(0.5, 2, 12)
    problem = make("gaussian", 12, d, flat_level, weight=weight, bounded=bounded)
    alpha = np.linspace(0.5, 1.5, d)
    step = problem.start(d).step(problem, formed(problem), alpha)
    Phi = problem.design.columns(slice(None))
    C = np.diag(0.4 / weight) + (Phi / alpha) @ Phi.T
    expected = stats.multivariate_normal(np.zeros(12), C).logpdf(problem.t)
    # A row of weight v is v rows with noise σ², not one with noise σ²/v: the normalisers differ.
    expected += (-0.5 * weight * np.log(2 * np.pi * 0.4) + 0.5 * np.log(2 * np.pi * 0.4 / weight)).sum()
    if flat_level:
        across, along = np.linalg.solve(C, np.column_stack([np.ones(12), problem.t])).T @ np.ones(12)
        expected += 0.5 * np.log(2 * np.pi / across) + along**2 / (2 * across)
    assert_allclose(evidence_of(problem, step, alpha), expected, rtol=1e-10)


# --- the bound ---


def bound_by_hand(name, problem, alpha, xi):
    """The integral over the weights of a Gaussian lower bound, written down anew, by dense matrices."""
    t, weight = problem.t, problem.weight
    if name == "bernoulli":
        b = np.tanh(xi / 2) / (2 * xi)
        h, c = t - 0.5, log_expit(xi) - xi / 2 + 0.5 * b * xi**2
    else:
        b = 4.0 / (3.0 + xi**2 / 0.4) / 0.4
        h, c = b * t, DENSITIES["student"](xi, 0.0) + 0.5 * b * (xi**2 - t**2)
    Phi, A = explicit(problem, alpha)
    H, pull = np.diag(A) + (Phi.T * (weight * b)) @ Phi, Phi.T @ (weight * h)
    value = weight @ c + 0.5 * pull @ np.linalg.solve(H, pull) - 0.5 * np.linalg.slogdet(H)[1]
    return value + 0.5 * np.log(alpha).sum() + 0.5 * problem.flat_intercept * np.log(2 * np.pi)


@pytest.mark.parametrize("name", ["bernoulli", "student"])
@few_weights
def test_bound_rises_to_the_largest_one_and_stays_below_the_integral(name, d, flat_level, rng):
    problem = make(name, 12, d, flat_level, weight=rng.uniform(0.5, 2, 12), bounded=True)
    alpha = np.linspace(0.5, 1.5, d)
    truth = integrated(name, problem, alpha, deviations=20, n=201)
    point, last = Contact(problem.likelihood, rng.uniform(0.1, 3, 12)), -np.inf
    for turn in range(300):
        step = point.step(problem, formed(problem), alpha)
        bound = evidence_of(problem, step, alpha)
        if turn < 3:
            assert_allclose(bound, bound_by_hand(name, problem, alpha, point.xi), atol=1e-9)
        assert last - 1e-12 <= bound < truth
        point, last = step.point, bound
    best = optimize.minimize(
        lambda x: -bound_by_hand(name, problem, alpha, np.exp(x)), np.zeros(12), method="BFGS", options={"gtol": 1e-7}
    )
    assert_allclose(bound, -best.fun, atol=1e-7)
    assert_allclose(bound_by_hand(name, problem, alpha, point.xi), bound, atol=1e-9)
    assert truth - bound < 1.5


@pytest.mark.parametrize("name", ["bernoulli", "student"])
def test_extrapolated_contact_points_end_where_plain_steps_do(name, rng):
    problem = make(name, 30, 3, True, bounded=True)
    alpha = np.full(3, 0.1)
    plain = leaping = problem.start(3)
    for _ in range(1000):
        plain = plain.step(problem, formed(problem), alpha).point
    for turn in range(60):
        leaping = leaping.follow(problem, formed(problem), leaping.view(problem, formed(problem), alpha), alpha)
        if turn % 2 == 0 and np.allclose(leaping.xi, plain.xi, rtol=1e-9):
            break
    assert_allclose(leaping.xi, plain.xi, rtol=1e-6)


def test_counts_have_no_bound():
    problem = make("poisson", 12, 1, True, bounded=True)
    with pytest.raises(NotImplementedError, match="Laplace"):
        problem.start(1)


@both_intercepts
@both_shapes
def test_contact_points_are_the_second_moment_of_the_predictor(n, d, flat_level, rng):
    problem = make("bernoulli", n, d, flat_level, weight=rng.uniform(0.5, 2, n), bounded=True)
    alpha, xi = rng.uniform(0.1, 10, d), rng.uniform(0.1, 3, n)
    step = Contact(problem.likelihood, xi).step(problem, formed(problem), alpha)
    Phi, A = explicit(problem, alpha)
    b = 2 * problem.weight * np.tanh(xi / 2) / (4 * xi)
    Sigma = np.linalg.inv(np.diag(A) + (Phi.T * b) @ Phi)
    mean = Sigma @ Phi.T @ (problem.weight * (problem.t - 0.5))
    assert_allclose(step.point.xi**2, (Phi @ mean) ** 2 + np.diag(Phi @ Sigma @ Phi.T), rtol=1e-9)


# --- weights of rows, shapes, separable classes ---


@pytest.mark.parametrize("name", ["bernoulli", "poisson", "student"])
@both_intercepts
def test_row_weights_are_repeated_rows(name, flat_level, rng):
    weight = rng.integers(1, 5, 20).astype(float)
    problem = make(name, 20, 3, flat_level, weight=weight)
    again = np.repeat(np.arange(20), weight.astype(int))
    repeated = replace(
        problem,
        design=DenseRows.of(problem.design.X[again]).standardised(np.ones(len(again)), centre=flat_level).unweighted(),
        t=problem.t[again],
        weight=np.ones(len(again)),
    )
    alpha = np.array([0.3, 1.0, 4.0])
    one = problem.start(3).step(problem, formed(problem), alpha)
    many = repeated.start(3).step(repeated, formed(repeated), alpha)
    tol = 1e-5 if name == "student" else 1e-7  # as far as the way to the mode was gone
    assert_allclose(one.point.w, many.point.w, atol=tol)
    assert_allclose(one.point.level, many.point.level, atol=tol)
    assert_allclose(one.value, many.value, rtol=1e-9)
    if name in BOUNDED:
        one = Contact(problem.likelihood, np.ones(20)).step(problem, formed(problem), alpha)
        many = Contact(problem.likelihood, np.ones(len(again))).step(repeated, formed(repeated), alpha)
        assert_allclose(one.value, many.value, rtol=1e-9)
        assert_allclose(one.point.xi[again], many.point.xi, rtol=1e-10)


@both_intercepts
@pytest.mark.parametrize("alpha", [1e-2, 1e-5, 1e-8])
def test_separable_data_have_a_finite_mode(flat_level, alpha, rng):
    X = rng.standard_normal((40, 3))
    t = (X[:, 0] + 0.5 * X[:, 1] > 0.3 * flat_level).astype(float)
    problem = replace(make("bernoulli", 40, 3, flat_level), design=DenseRows.of(X), t=t)
    precisions = np.full(3, alpha)
    step = problem.start(3).step(problem, formed(problem), precisions)
    Phi, A = explicit(problem, precisions)
    w = np.append(step.point.w, [step.point.level] * flat_level)
    assert np.isfinite(w).all()
    assert np.isfinite(step.value)
    assert alpha > 1e-3 or (((Phi @ w) > 0) == (t > 0)).all()
    slope = Phi.T @ (t - expit(Phi @ w)) - A * w
    assert np.abs(slope).max() < 1e-3 * np.abs(A * w).max()


@both_intercepts
@pytest.mark.parametrize("name", ["bernoulli", "poisson", "student"])
def test_rows_of_weight_zero_change_the_shape_and_nothing_else(name, flat_level, rng):
    """14 rows and 25 weights are solved among the rows; with 20 rows more that count nothing, among the weights."""
    weight = np.append(rng.uniform(0.5, 2, 14), np.zeros(20))
    alpha, xi = rng.uniform(0.5, 10, 25), rng.uniform(0, 3, 34)
    tall = make(name, 34, 25, flat_level, weight=weight)
    few = DenseRows(tall.design.X[:14], tall.design.mean, tall.design.scale, np.ones(14))
    wide = replace(tall, design=few, t=tall.t[:14], weight=weight[:14])
    pairs = [(Mode(tall.likelihood, np.zeros(25)), Mode(tall.likelihood, np.zeros(25)))]
    if name in BOUNDED:
        pairs.append((Contact(tall.likelihood, xi), Contact(tall.likelihood, xi[:14])))
    for long, short in pairs:
        one, other = long.step(tall, formed(tall), alpha), short.step(wide, formed(wide), alpha)
        assert (one.posterior.sign, other.posterior.sign) == (1, -1)
        assert_allclose(one.value, other.value, rtol=1e-9)
        assert_allclose(one.posterior.mean, other.posterior.mean, atol=1e-5 if name == "student" else 1e-7)
        assert_allclose(one.posterior.var, other.posterior.var, rtol=1e-5 if name == "student" else 1e-7)


def test_evidence_at_the_view_is_wrong_by_the_third_power_of_the_distance_from_the_mode(rng):
    """Why a model need not be at its mode to the last digit before its evidence is known.

    The curvature changes with the first power of the distance; without it the cubic term is what is left.
    """
    problem = make("bernoulli", 60, 3, True)
    alpha, direction = np.ones(3), np.array([1.0, -0.5, 0.7])
    mode = problem.start(3).settled(problem, formed(problem), alpha)

    errors = [abs(_without_curvature(problem, mode, alpha, direction, h)) for h in (0.2, 0.1, 0.05)]
    assert errors[1] < errors[0] / 6
    assert errors[2] < errors[1] / 6


def _without_curvature(problem, mode, alpha, direction, distance):
    """Value of the view's parabola at its own maximum less the true maximum."""
    point = replace(mode, w=mode.w + distance * direction, _eta=None)
    view = point.view(problem, formed(problem), alpha)
    top = mode.penalised(problem, formed(problem), alpha)
    return view.sites.value(view.eta) - 0.5 * alpha @ view.posterior.mean**2 - top


def test_start_is_the_model_without_weights():
    """Its intercept is that of largest likelihood, by a general optimiser."""
    for name in ("bernoulli", "poisson", "gaussian"):
        problem = make(name, 30, 0, True, weight=np.linspace(0.5, 2, 30))
        best = optimize.minimize_scalar(
            lambda level, name=name, p=problem: -p.weight @ DENSITIES[name](p.t, np.full(30, level)), (-1, 1), tol=1e-10
        )
        assert_allclose(problem.start(0).level, best.x, atol=1e-6)


def test_expansion_is_where_the_view_is_taken(rng):
    problem = make("poisson", 30, 3, True, weight=rng.uniform(0.5, 2, 30))
    mode = Mode(problem.likelihood, np.array([0.1, -0.2, 0.05]), 0.4)
    eta = 0.4 + problem.design.columns(slice(None)) @ mode.w
    expected = expansion(problem.likelihood, problem.t, eta, problem.weight)
    for ours, theirs in zip(mode.sites(problem, formed(problem)), expected, strict=True):
        assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("flat_level", [False, True])
def test_a_reduced_mode_is_where_the_same_sites_put_the_other_weights(flat_level, rng):
    problem, alpha = make("bernoulli", 40, 5, flat_level), rng.uniform(0.5, 3, 5)
    design, stays = formed(problem), np.array([True, False, True, True, False])
    mode = problem.base_mode(5).settled(problem, design, alpha)
    view = mode.view(problem, design, alpha)
    reduced = mode.keep(stays, view)
    without = take_view(design.keep(stays), view.sites, alpha[stays], flat_level)
    assert_allclose(reduced.w, without.posterior.mean, rtol=1e-9)
    assert reduced.level == pytest.approx(without.intercept() if flat_level else 0.0, rel=1e-9)
    assert np.abs(reduced.w - mode.w[stays]).max() > 1e-3
