"""Slopes of the evidence against differences, the evidence against other roads to it, the width against a fine grid."""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import multivariate_normal

from sparsebayes.core.kernels import KERNELS, rbf, rbf_slope
from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.priors import ARD
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import glm
from sparsebayes.engine.evidence_gradient import gaussian_evidence, laplace_evidence
from sparsebayes.engine.kernel_regression import log_scales, start_on
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.loop import Settings
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.regression import solve
from sparsebayes.engine.width import VectorFit, choice_price, climb_width, distance_bounds, maximise_width


def central(f, x, h=1e-2):
    """Derivative with an error of order h⁴.

    Newton's method ends within 1e-13 of the mode's height, that is some 3e-7 from the mode, and log|Σ| feels it to
    first order: 1e-8 to 1e-7 nats, and 100 times that in a difference quotient with this h.
    """
    steps = np.eye(len(x))
    wide = [(f(x + 2 * h * e) - f(x - 2 * h * e)) / (4 * h) for e in steps]
    narrow = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in steps]
    return (4 * np.array(narrow) - np.array(wide)) / 3


def regression_at(kernel, X, y, weight, flat=True):
    """A function of γ that makes the problem, and the unit of y."""
    mean = np.average(y, weights=weight) if flat else 0.0
    unit = np.sqrt(np.average((y - mean) ** 2, weights=weight))
    t = np.sqrt(weight) * (y - mean) / unit

    def make(gamma):
        rows = DenseRows.of(kernel(X, X, gamma=gamma)).standardised(weight, centre=flat)
        return LeastSquares(design=rows, t=t, n_weighted=float(weight.sum()), flat_intercept=flat)

    return make


def regression(flat, rng):
    X = rng.uniform(-3, 3, (30, 2))
    y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(30)
    return X, regression_at(rbf, X, y, rng.uniform(0.3, 2, 30), flat)(1.0)


def two_class_problem(design, t, weight, flat=True, min_alpha=0.0):
    prior = ARD(min_alpha=min_alpha)
    return Problem(design=design, t=t, weight=weight, likelihood=Bernoulli(), prior=prior, flat_intercept=flat)


def two_classes(flat, rng):
    X = rng.uniform(-3, 3, (40, 2))
    t = (np.sin(X[:, 0]) + 0.5 * rng.standard_normal(40) > 0).astype(float)
    return X, two_class_problem(DenseRows.of(X), t, rng.uniform(0.3, 2, 40), flat)


SCALES = np.log(np.array([0.5, 2.0, 1.0, 0.3]))


@pytest.fixture(params=[(kind, flat) for kind in ("regression", "classes") for flat in (True, False)], ids=str)
def case(request, rng):
    """Inputs, the evidence of any design over them, and scales to go with four columns."""
    kind, flat = request.param
    if kind == "regression":
        X, problem = regression(flat, rng)
        return X, gaussian_evidence(problem), np.append(SCALES, np.log(0.2))
    X, classes = two_classes(flat, rng)
    return X, laplace_evidence(classes), SCALES


@pytest.mark.parametrize("intercept", [True, False])
def test_the_gaussian_evidence_is_the_density_of_the_target(intercept, rng):
    X, problem = regression(intercept, rng)
    K, scales = rbf(X, X[:4], gamma=0.4), np.append(SCALES, np.log(0.2))
    alpha, noise = np.exp(scales[:-1]), np.exp(scales[-1])
    # rows that count w times have the noise σ²/w; with a flat intercept C has an infinite variance along the ones
    weight = problem.design.root_weight**2
    C = np.diag(noise / weight) + (K / alpha) @ K.T
    t, ones = problem.t / problem.design.root_weight, np.ones(len(K))
    density = multivariate_normal(np.zeros(len(K)), C).logpdf(t)
    # the library counts a row of weight w as w rows: w log densities N(0, σ²) instead of one of N(0, σ²/w)
    density += 0.5 * (len(K) - weight.sum()) * np.log(2 * np.pi * noise) - 0.5 * np.log(weight).sum()
    if problem.flat_intercept:
        across, along = np.linalg.solve(C, np.column_stack([ones, t])).T @ ones
        density += 0.5 * np.log(2 * np.pi / across) + along**2 / (2 * across)
    assert gaussian_evidence(problem)(K, scales).value == pytest.approx(density, rel=1e-10)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_laplace_evidence_is_that_of_a_dense_computation(intercept, rng):
    """The mode by SciPy's trust-region Newton method, and the determinant of the curvature there."""
    X, problem = two_classes(intercept, rng)
    K = rbf(X, X[:4], gamma=0.4)
    Phi = np.column_stack([K, np.ones((len(K), int(intercept)))])
    alpha = np.append(np.exp(SCALES), np.zeros(int(intercept)))

    def loss(w):
        eta = Phi @ w
        fit = problem.weight @ (problem.t * eta - np.logaddexp(0, eta))
        return -fit + 0.5 * alpha @ w**2

    def slope(w):
        return -Phi.T @ (problem.weight * (problem.t - expit(Phi @ w))) + alpha * w

    def curvature(w):
        p = expit(Phi @ w)
        return Phi.T @ ((problem.weight * p * (1 - p))[:, None] * Phi) + np.diag(alpha)

    mode = minimize(loss, np.zeros(len(alpha)), jac=slope, hess=curvature, method="trust-exact", tol=1e-9).x
    expected = -loss(mode) + 0.5 * SCALES.sum() - 0.5 * np.linalg.slogdet(curvature(mode))[1]
    expected += 0.5 * intercept * np.log(2 * np.pi)
    assert laplace_evidence(problem)(K, SCALES).value == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", [name for name, kernel in KERNELS.items() if kernel.slope])
def test_slopes_are_differences(case, name):
    X, evidence, scales = case
    X, Z = X / 3, X[:4] / 3

    def value(at):
        return evidence(KERNELS[name](X, Z, gamma=np.exp(at[0])), at[1:]).value

    found = evidence(KERNELS[name](X, Z, gamma=0.4), scales)
    by_gamma = 0.4 * (found.design * KERNELS[name].slope(X, Z, gamma=0.4)).sum()
    numerical = central(value, np.append(np.log(0.4), scales))
    np.testing.assert_allclose(np.append(by_gamma, found.scales), numerical, rtol=1e-6, atol=5e-6)


def test_the_slope_of_every_entry_of_the_design_is_a_difference(case):
    X, evidence, scales = case
    K = rbf(X, X[:4], gamma=0.4)
    numerical = central(lambda flat: evidence(flat.reshape(K.shape), scales).value, K.ravel())
    np.testing.assert_allclose(evidence(K, scales).design.ravel(), numerical, rtol=1e-6, atol=5e-6)


def fit_regression(make, gamma, near):
    """A search at this γ, from another's model where there is one."""
    problem = make(gamma)
    scale = problem.design.scale
    start = None if near is None else start_on(scale, near)
    found = solve(problem, "sequential", Settings(1e-4, 5000), start=start).solution
    value = gaussian_evidence(problem)(problem.design.X[:, found.active], log_scales(scale, found)).value
    return VectorFit(value, found.active, log_scales(scale, found))


def fit_classes(X, t, gamma, near):
    """A search from nothing at this γ."""
    n = len(t)
    rows = DenseRows.of(rbf(X, X, gamma=gamma)).standardised(np.ones(n), centre=True)
    problem = two_class_problem(rows.unweighted(), t, np.ones(n), min_alpha=1e-6)
    found = glm.find(problem, Settings(1e-3, 500))
    return VectorFit(found.log_evidence, found.active, np.log(found.alpha * rows.scale[found.active] ** 2))


@pytest.fixture
def sinc():
    rng = np.random.default_rng(3)
    X = np.linspace(-10, 10, 80)[:, None]
    return X, np.sinc(X[:, 0] / np.pi) + 0.1 * rng.standard_normal(80)


def search_width(X, y, **options):
    make = regression_at(rbf, X, y, np.ones(len(X)))
    bounds = options.pop("bounds", None) or distance_bounds(X)
    evidence = gaussian_evidence(make(1.0))
    seen = []

    def fit_at(gamma, near):
        seen.append((gamma, fit_regression(make, gamma, near)))
        return seen[-1][1]

    def climb_from(gamma, fit):
        return climb_width(evidence, KERNELS["rbf"], X, X[fit.active], gamma, fit.scales, bounds)

    gamma, fit = maximise_width(fit_at, climb_from, **{"gamma": 1 / X.var(), "bounds": bounds, **options})
    return gamma, fit, seen, make


def test_the_climb_goes_up_and_ends_where_there_is_no_slope(sinc):
    X, y = sinc
    make = regression_at(rbf, X, y, np.ones(80))
    evidence, fit = gaussian_evidence(make(1.0)), fit_regression(make, 0.2, None)
    Z = X[fit.active]
    gamma, scales = climb_width(evidence, KERNELS["rbf"], X, Z, 0.2, fit.scales, (1e-3, 10.0))
    end = evidence(rbf(X, Z, gamma=gamma), scales)
    assert end.value > fit.objective + 0.1
    assert abs(gamma * (end.design * rbf_slope(X, Z, gamma=gamma)).sum()) < 0.05
    # it ends where the slope is small, by which way it came is seen in the digits after that
    assert climb_width(evidence, KERNELS["rbf"], X, Z, 0.2, fit.scales, (0.15, 0.3))[0] in (
        0.15,
        pytest.approx(gamma, rel=1e-3),
    )


def test_the_width_found_is_that_of_a_fine_grid(sinc):
    X, y = sinc
    gamma, fit, seen, make = search_width(X, y)
    grid = [fit_regression(make, value, None).score for value in np.geomspace(*distance_bounds(X), 40)]
    # searches from nothing end at maxima of their own: the score jumps by a few nats from one γ to the next
    assert fit.score >= max(grid) - 2
    assert fit.score >= np.sort(grid)[-4]
    assert fit.score == max(found.score for _, found in seen)
    assert any(gamma == value and fit.objective == found.objective for value, found in seen)


def test_vectors_count_against_a_width():
    kept = {0.25: 20, 1.0: 5, 4.0: 1}

    def fit_at(gamma, near):
        return VectorFit(float(gamma <= 4) * kept.get(gamma, 50) * 0.9, np.arange(kept.get(gamma, 50)), np.empty(0))

    gamma, fit = maximise_width(
        fit_at, lambda gamma, fit: (gamma, fit.scales), gamma=1.0, bounds=(0.25, 4.0), price_at=lambda gamma: 1.0
    )
    assert (gamma, fit.score) == (4.0, pytest.approx(-0.1))


@pytest.mark.parametrize("n", [50, 400])
def test_the_price_of_a_choice_counts_different_columns(n):
    X = np.random.default_rng(0).uniform(size=(n, 2))
    centring = np.eye(n) - 1 / n
    for gamma in (0.1, 10.0, 1e3):
        values = np.linalg.eigvalsh(centring @ rbf(X, X, gamma=gamma) @ centring)
        r = 2 * np.log(values.sum() ** 2 / (values**2).sum())
        expected = max(0.5 * (r - 1 - np.log(r)), 0.0) if r > 1 else 0.0
        assert choice_price(X, partial(rbf, gamma=gamma)) == pytest.approx(expected, rel=1e-9)
    # As many different columns as there are degrees of freedom, when each sees itself alone.
    r = 2 * np.log(n - 1)
    assert choice_price(X, partial(rbf, gamma=1e9)) == pytest.approx(0.5 * (r - 1 - np.log(r)))
    assert choice_price(X, lambda X, Z: np.ones((len(X), len(Z)))) == 0


def test_the_width_follows_the_units_of_the_data(sinc):
    X, y = sinc
    gamma, fit, *_ = search_width(X, y)
    scaled, scaled_fit, *_ = search_width(1e3 * X, 1e-4 * y)
    assert scaled == pytest.approx(1e-6 * gamma, rel=1e-3)
    assert scaled_fit.objective == pytest.approx(fit.objective, abs=1e-3)


def hill(gamma, near):
    """A fit whose objective is largest at γ = 1."""
    return VectorFit(-(np.log(gamma) ** 2), np.empty(0, dtype=np.intp), np.empty(0))


@pytest.mark.parametrize("start", [4.0**-6, 1.0, 4.0**6])
def test_the_grid_goes_on_while_it_rises(start):
    gamma, fit = maximise_width(hill, lambda gamma, fit: (gamma, fit.scales), gamma=start, bounds=(1e-5, 1e5))
    assert gamma == pytest.approx(1.0)
    assert fit.objective == pytest.approx(0.0)


@pytest.mark.parametrize(("bounds", "end"), [((1e-5, 0.01), 0.01), ((30.0, 1e5), 30.0)])
def test_the_grid_ends_at_a_bound(bounds, end):
    assert maximise_width(hill, lambda gamma, fit: (gamma, fit.scales), gamma=1.0, bounds=bounds)[0] == end


def test_bounds_are_kept(sinc):
    X, y = sinc
    gamma, _, seen, _ = search_width(X, y, bounds=(0.3, 0.5))
    assert all(0.3 <= value <= 0.5 for value, _ in seen)
    assert 0.3 <= gamma <= 0.5


def test_a_kernel_without_a_slope_is_left_to_the_grid():
    asked = []

    def fit_at(gamma, near):
        asked.append(gamma)
        return hill(gamma / 1.7, near)

    gamma, _ = maximise_width(fit_at, lambda gamma, fit: (gamma, fit.scales), gamma=1.0, bounds=(1e-3, 1e3))
    assert 1 / 1.5 < gamma / 1.7 < 1.5
    assert len(set(asked)) <= 12


def test_a_climb_that_misleads_does_no_harm():
    gamma, fit = maximise_width(hill, lambda gamma, fit: (50.0, fit.scales), gamma=1.0, bounds=(1e-3, 1e3))
    assert (gamma, fit.objective) == (1.0, 0.0)


def test_two_classes_find_a_width_too():
    rng = np.random.default_rng(5)
    X = rng.uniform(-2, 2, (60, 2))
    t = (np.sin(3 * X[:, 0]) + X[:, 1] + 0.4 * rng.standard_normal(60) > 0).astype(float)
    bounds, fit_at = distance_bounds(X), partial(fit_classes, X, t)
    evidence = laplace_evidence(two_class_problem(DenseRows.of(X), t, np.ones(60)))

    def climb_from(gamma, fit):
        return climb_width(evidence, KERNELS["rbf"], X, X[fit.active], gamma, fit.scales, bounds)

    gamma, fit = maximise_width(fit_at, climb_from, gamma=1 / X.var() / 2, bounds=bounds)
    grid = [fit_at(value, None).score for value in np.geomspace(*bounds, 6)]
    assert fit.score >= max(grid) - 0.5
    assert bounds[0] <= gamma <= bounds[1]


def test_bounds_come_from_the_distances():
    X = np.arange(11.0)[:, None]
    np.testing.assert_allclose(distance_bounds(X), (0.1 / 100, 1.0))
    np.testing.assert_allclose(distance_bounds(X, "cityblock"), (0.1 / 10, 1.0))
    np.testing.assert_allclose(distance_bounds(X.repeat(3, axis=0)), (0.1 / 100, 1.0))
    np.testing.assert_allclose(distance_bounds(7 * X), (0.1 / 4900, 1 / 49))
    # most of a hundred points in a row have their tenth neighbour five steps away
    np.testing.assert_allclose(distance_bounds(np.arange(100.0)[:, None]), (0.1 / 99**2, 1 / 25))
    with pytest.raises(ValueError, match="set gamma"):
        distance_bounds(np.ones((5, 2)))
