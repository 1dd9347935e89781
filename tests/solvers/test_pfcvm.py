"""The classification vector machine as a model whose inputs are weighed: evidence, signs, relevance and price."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit

from sparsebayes.core.evidence import scale_term
from sparsebayes.core.weighted import WEIGHTED, weighted_kernel
from sparsebayes.data.dense import DenseRows
from sparsebayes.solvers.bernoulli import BernoulliProblem
from sparsebayes.solvers.climb import _mode
from sparsebayes.solvers.feature_weights import Weighed, Weigher, class_feature_price
from sparsebayes.solvers.loop import Settings
from sparsebayes.solvers.pcvm import Exact, Smooth
from sparsebayes.solvers.pfcvm import ClassificationBlock, feature_relevance, start_on
from sparsebayes.solvers.width import Fit

N, TOL = 40, 1e-6


@pytest.fixture(params=[True, False], ids=["intercept", "none"])
def intercept(request):
    """Whether there is an intercept."""
    return request.param


@pytest.fixture
def ring(rng):
    """Inputs, classes and row weights: inside and outside of a circle in two of three inputs, some labels wrong."""
    X = rng.standard_normal((N, 3))
    t = ((X[:, :2] ** 2).sum(axis=1) > 1.4) ^ (rng.uniform(size=N) < 0.1)
    return X, t.astype(float), rng.uniform(0.5, 2, N)


def block_of(t, weight, intercept, sign=None, truncation=None):
    sign = 2 * t - 1 if sign is None else sign
    return ClassificationBlock.of(t, weight, sign, intercept, truncation or Exact(), Settings(TOL, 1000), 1e-6)


def plain_problem(K, t, weight, intercept):
    rows = DenseRows.of(K)
    return rows, BernoulliProblem(rows, t, weight, intercept, 0.0, 0.0, np.zeros(K.shape[1]))


def mode_by_scipy(K, alpha, t, weight, intercept):
    """Weights, the intercept first if there is one, and their design: no code of the library."""
    Phi = np.column_stack([np.ones((len(K), int(intercept))), K])
    prior = np.append(np.zeros(int(intercept)), alpha)

    def cost(w):
        eta = Phi @ w
        value = weight @ (np.logaddexp(0, eta) - t * eta) + 0.5 * prior @ w**2
        return value, Phi.T @ (weight * (expit(eta) - t)) + prior * w

    end = minimize(cost, np.zeros(Phi.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 5000})
    return end.x, Phi


# --- evidence ---


def test_evidence_is_that_of_the_laplace_step(ring, intercept):
    X, t, weight = ring
    K, alpha = weighted_kernel("rbf")(X, X[:4], np.array([0.6, 0.3, 0.1])).value, np.array([0.3, 1.0, 2.0, 0.1])
    rows, problem = plain_problem(K, t, weight, intercept)
    step = problem.laplace_step(rows, alpha, problem.base_mode(4))
    found = block_of(t, weight, intercept).evidence(K, np.log(alpha))
    assert_allclose(found.value, step.value + scale_term(alpha, 0.0, 0.0), rtol=1e-9)


def test_slopes_of_the_evidence_are_differences(ring, intercept, rng):
    X, t, weight = ring
    K, scales = weighted_kernel("rbf")(X, X[:3], np.array([0.6, 0.3, 0.1])).value, np.log([0.3, 1.0, 2.0])
    block, h = block_of(t, weight, intercept), 1e-2
    found = block.evidence(K, scales)

    def difference(at):
        """Of fourth order: the mode is known to some 1e-7 nats, hence the wide steps."""
        central = [(at(step) - at(-step)) / (2 * step) for step in (h, 2 * h)]
        return (4 * central[0] - central[1]) / 3

    for e, slope in zip(np.eye(3), found.scales, strict=True):
        assert_allclose(slope, difference(lambda step, e=e: block.evidence(K, scales + step * e).value), atol=5e-6)
    for _ in range(5):
        E = rng.standard_normal(K.shape) / np.sqrt(K.size)
        expected = difference(lambda step, E=E: block.evidence(K + step * E, scales).value)
        assert_allclose((found.design * E).sum(), expected, rtol=1e-5, atol=5e-6)


@pytest.mark.parametrize("separable", [False, True])
@pytest.mark.parametrize("start", [0.0, 50.0])
def test_the_mode_of_a_climb_is_that_of_the_problem(ring, intercept, separable, start, rng):
    """Also from a start where all rows are saturated, and with weights so little bound that full steps overshoot."""
    X, t, weight = ring
    K, alpha = X[:, :2], np.array([1e-3, 1e-2])
    if separable:
        t = (K[:, 0] > K[:, 0].mean()).astype(float)
    rows, problem = plain_problem(K, t, weight, intercept)
    base = problem.base_mode(2)
    expected = problem.find_mode(rows, alpha, base)
    Phi, prior = np.column_stack([np.ones((N, int(intercept))), K]), np.append(np.zeros(int(intercept)), alpha)
    first = np.append(np.full(int(intercept), base.intercept), base.w)
    value, w = _mode(Phi, prior, t, weight, (first + start, first))
    # the mode is where the value no longer rises by rounding: weights are known to the root of that
    assert_allclose(w[int(intercept) :], expected.w, rtol=1e-5, atol=1e-6)
    assert_allclose(w[: int(intercept)].sum(), expected.intercept, rtol=1e-5, atol=1e-6)
    assert_allclose(value, problem._penalised(rows, expected, alpha), rtol=1e-10)


# --- search ---


def test_columns_carry_the_sign_of_their_label(ring, intercept):
    X, t, weight = ring
    K, sign = weighted_kernel("rbf")(X, X, np.array([0.6, 0.3, 0.1])).value, 2 * t - 1
    problem = block_of(t, weight, intercept).problem_on(K)
    mean = weight @ K / weight.sum() if intercept else np.zeros(N)
    spread = np.sqrt(weight @ (K - mean) ** 2 / weight.sum())
    for j in (0, 5, 11):
        one = problem.rows.predict(np.eye(N)[j])
        level = one.mean() - (sign[j] * (K[:, j] - mean[j]) / spread[j]).mean()
        assert_allclose(one - level, sign[j] * (K[:, j] - mean[j]) / spread[j], atol=1e-12)


def test_no_weight_of_a_search_has_the_wrong_sign(ring, intercept):
    """What the search keeps has, on bare columns and with no bound, weights with the sign of their labels."""
    X, t, weight = ring
    K = weighted_kernel("rbf")(X, X, np.array([0.6, 0.6, 0.0])).value
    block = block_of(t, weight, intercept)
    fit = block.search(K, None)
    assert len(fit.active) >= 2
    w, Phi = mode_by_scipy(K[:, fit.active], np.exp(fit.scales), t, weight, intercept)
    assert_array_equal(np.sign(w[int(intercept) :]), block.sign[fit.active])
    # and the objective is Laplace's evidence there, in the units of the bare columns
    eta, alpha = Phi @ w, np.exp(fit.scales)
    b = weight * expit(eta) * expit(-eta)
    H = Phi.T @ (b[:, None] * Phi) + np.diag(np.append(np.zeros(int(intercept)), alpha))
    value = weight @ (t * eta - np.logaddexp(0, eta)) - 0.5 * alpha @ w[int(intercept) :] ** 2
    value += 0.5 * np.log(alpha).sum() - 0.5 * np.linalg.slogdet(H)[1] + 0.5 * intercept * np.log(2 * np.pi)
    assert_allclose(fit.objective, value, rtol=1e-8)


def test_the_other_sign_is_the_other_model(ring):
    """Columns with the wrong labels: the search can then keep only what speaks against its neighbours."""
    X, t, weight = ring
    K = weighted_kernel("rbf")(X, X, np.array([0.6, 0.6, 0.0])).value
    right = block_of(t, weight, True).search(K, None)
    wrong = block_of(t, weight, True, sign=1 - 2 * t).search(K, None)
    assert right.objective > wrong.objective + 1
    block = block_of(t, weight, True, sign=1 - 2 * t)
    w, _ = mode_by_scipy(K[:, wrong.active], np.exp(wrong.scales), t, weight, True)
    assert_array_equal(np.sign(w[1:]), block.sign[wrong.active])


@pytest.mark.parametrize("truncation", [Exact(), Smooth(5.0)], ids=["exact", "smooth"])
def test_a_search_from_its_own_end_stays_there(ring, truncation):
    X, t, weight = ring
    K = weighted_kernel("rbf")(X, X, np.array([0.6, 0.6, 0.0])).value
    block = block_of(t, weight, True, truncation=truncation)
    end = block.search(K, None)
    again = block.search(K, end)
    assert_array_equal(np.sort(again.active), np.sort(end.active))
    # the end is a maximum but for the tolerance, and its square root in the scales
    assert_allclose(again.objective, end.objective, atol=1e-3)


def test_a_start_leaves_out_columns_that_do_not_vary(ring):
    X, t, weight = ring
    K = weighted_kernel("rbf")(X, X, np.array([0.6, 0.3, 0.1])).value
    K[:, 3] = 1.0
    problem = block_of(t, weight, True).problem_on(K)
    scale = problem.rows.scale[[2, 5]]
    start = start_on(problem, Fit(0.0, np.array([2, 3, 5]), np.log([0.5, 1.0, 1e-9]), None))
    assert_array_equal(start.active, [2, 5])
    assert_allclose(start.alpha, np.maximum(np.array([0.5, 1e-9]) / scale**2, 1e-6))


# --- relevance and price ---


@pytest.mark.parametrize("name", WEIGHTED)
def test_relevance_is_that_of_the_joint_covariance(name, ring, intercept):
    """Weights of vectors, features and the intercept together, by a dense inverse; slopes in θ by differences."""
    X, t, weight = ring[0], ring[1], 10 * ring[2]  # enough rows for a relevance above 0
    block, kernel = block_of(t, weight, intercept), weighted_kernel(name)
    theta, active, alpha = np.array([0.7, 0.0, 0.5]), np.array([3, 8, 20]), np.array([2e-3, 5e-3, 1e-3])
    kept = np.flatnonzero(theta)
    weigher = Weigher(kernel, X, X, block, 1.0, np.inf, 1e-3)
    found = feature_relevance(block, weigher, Weighed(theta, Fit(0.0, active, np.log(alpha), None)))

    def columns(theta):
        return kernel(X, X[active], theta).value

    w, Phi = mode_by_scipy(columns(theta), alpha, t, weight, intercept)
    p = expit(Phi @ w)
    steps = 1e-5 * np.eye(3)[kept]
    D = [(columns(theta + step) - columns(theta - step)) @ w[int(intercept) :] / 2e-5 for step in steps]
    J = np.column_stack([Phi, *D])
    prior = np.concatenate([np.zeros(int(intercept)), alpha, theta[kept] ** -2])
    Sigma = np.linalg.inv(J.T @ ((weight * p * (1 - p))[:, None] * J) + np.diag(prior))
    # 1/Σ_kk = β + s with β = 1/θ², r = s θ² and γ = 1 - 1/r where that is positive
    r = (1 / np.diag(Sigma)[-2:] - theta[kept] ** -2) * theta[kept] ** 2
    assert_allclose(found, np.where(r > 1, 1 - 1 / r, 0), atol=1e-6)
    assert ((found >= 0) & (found <= 1)).all()
    assert (found > 0).any()


def test_what_matters_is_more_relevant_and_more_so_with_more_rows(ring):
    X, t, weight = ring
    found = []
    for factor in (1, 4):
        block = block_of(t, factor * weight, True)
        weigher = Weigher(weighted_kernel("rbf"), X, X, block, 1.0, np.inf, 1e-3)
        found.append(feature_relevance(block, weigher, weigher.searched(np.array([0.6, 0.6, 0.01]))))
    assert found[0][2] < 0.1 < found[0][:2].min()
    assert (found[1][:2] > found[0][:2]).all()


def test_a_feature_of_two_classes_costs_as_much_as_in_the_extended_bic():
    assert class_feature_price(100, 20) == pytest.approx(np.log(20 * 10))
    assert class_feature_price(400, 20) - class_feature_price(100, 20) == pytest.approx(np.log(2))
    assert class_feature_price(100, 1) == class_feature_price(100, 0) == 0  # nothing to choose
