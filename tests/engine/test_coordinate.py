"""L1-penalised likelihoods against their optimality conditions and scikit-learn."""

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.utils.fixes import parse_version

from sparsebayes.core.likelihoods import Bernoulli, Poisson
from sparsebayes.core.priors import ARD
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.coordinate import L1Problem
from sparsebayes.engine.loop import Settings, Trace
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.view import Mode

both_intercepts = pytest.mark.parametrize("flat_level", [False, True], ids=["none", "flat"])
L1 = {"l1_ratio": 1.0} if parse_version(sklearn.__version__) >= parse_version("1.8") else {"penalty": "l1"}


def problem_of(rows, t, weight, flat_level, likelihood=None):
    likelihood = likelihood or Bernoulli()
    return Problem(design=rows, t=t, weight=weight, likelihood=likelihood, prior=ARD(), flat_intercept=flat_level)


@pytest.fixture
def make_l1(lasso):
    def make(n, d, flat_level, penalty=2.0, weight=None, seed=0):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, d)) + rng.standard_normal((n, 1)) + 0.5
        t = (X[:, 0] - X[:, 1] + 1 + rng.logistic(size=n) > 0).astype(float)
        weight = np.ones(n) if weight is None else weight
        rows = DenseRows.of(X).centred(weight) if flat_level else DenseRows.of(X)
        return L1Problem(problem_of(rows, t, weight, flat_level), np.broadcast_to(penalty, d) * 1.0, lasso)

    return make


@pytest.fixture
def solve():
    def of(problem, start=None):
        trace = Trace()
        start = problem.problem.start(len(problem.penalty)) if start is None else start
        mode, converged = problem.run(start, trace, Settings(1e-13, 200))
        assert converged
        return mode, trace

    return of


@both_intercepts
@pytest.mark.parametrize("each", [False, True], ids=["one penalty", "a penalty each"])
def test_optimality_conditions(shape, flat_level, each, make_l1, solve, rng):
    n, d = shape
    penalty = rng.uniform(0.5, 4, d) if each else 3.0
    problem = make_l1(n, d, flat_level, penalty, weight=rng.uniform(0.5, 2, n))
    mode, _ = solve(problem)
    b = problem.problem
    X = b.design.X - b.design.mean
    eta = X @ mode.w + mode.level
    pull = b.weight * (b.t - expit(eta))
    slope = X.T @ pull
    inside = mode.w != 0
    assert 0 < inside.sum() < d
    assert_allclose(slope[inside], (problem.penalty * np.sign(mode.w))[inside], atol=1e-6)
    assert (np.abs(slope) <= problem.penalty + 1e-6).all()
    if flat_level:
        assert abs(pull.sum()) < 1e-6
    else:
        assert mode.level == 0


@both_intercepts
def test_against_scikit_learn(flat_level, make_l1, solve):
    problem = make_l1(80, 6, flat_level, penalty=3.0)
    mode, _ = solve(problem)
    X, t = problem.problem.design.X, problem.problem.t
    # liblinear shrinks its intercept, saga does not
    solver = "saga" if flat_level else "liblinear"
    model = LogisticRegression(C=1 / 3, solver=solver, fit_intercept=flat_level, tol=1e-10, max_iter=50_000, **L1)
    model.fit(X, t)
    assert_allclose(mode.w, model.coef_[0], atol=1e-6)
    assert_array_equal(mode.w == 0, np.abs(model.coef_[0]) < 1e-9)
    intercept = mode.level - problem.problem.design.mean @ mode.w
    assert_allclose(intercept, np.ravel(model.intercept_)[0], atol=1e-6)


@both_intercepts
def test_log_joint_never_falls(shape, flat_level, make_l1, solve, rng):
    n, d = shape
    problem = make_l1(n, d, flat_level, penalty=0.3)
    start = Mode(problem.problem.likelihood, 5 * rng.standard_normal(d))
    mode, trace = solve(problem, start)
    path = np.array([problem.log_joint(start), *trace.objective])
    assert (np.diff(path) >= 0).all()
    assert_allclose(problem.log_joint(mode), path[-1], rtol=1e-12)


def test_log_joint_is_the_penalised_likelihood(make_l1, rng):
    problem = make_l1(30, 4, True, penalty=2.0, weight=rng.uniform(0, 2, 30))
    b = problem.problem
    w = rng.standard_normal(4)
    p = expit((b.design.X - b.design.mean) @ w + 0.3)
    expected = b.weight @ np.log(np.where(b.t == 1, p, 1 - p)) - 2 * np.abs(w).sum()
    assert_allclose(problem.log_joint(Mode(b.likelihood, w, 0.3)), expected, rtol=1e-12)


def test_under_a_large_penalty_only_the_intercept_is_left(make_l1, solve):
    problem = make_l1(40, 5, True, penalty=1e3)
    mode, _ = solve(problem)
    share = problem.problem.t.mean()
    assert_array_equal(mode.w, 0)
    assert_allclose(mode.level, np.log(share / (1 - share)), atol=1e-7)


def test_separable_data_are_held_by_the_penalty(lasso, solve, rng):
    X = rng.standard_normal((40, 3))
    t = (X[:, 0] > 0).astype(float)
    mode, _ = solve(L1Problem(problem_of(DenseRows.of(X), t, np.ones(40), True), np.full(3, 1e-3), lasso))
    slope = X.T @ (t - expit(X @ mode.w + mode.level))
    assert_allclose(slope[mode.w != 0], 1e-3 * np.sign(mode.w[mode.w != 0]), rtol=1e-3)


def test_optimality_conditions_of_counts(lasso, solve, rng):
    X = rng.standard_normal((60, 6))
    t = rng.poisson(np.exp(0.5 + 0.8 * X[:, 0] - 0.6 * X[:, 1])).astype(float)
    problem = L1Problem(problem_of(DenseRows.of(X), t, np.ones(60), True, Poisson()), np.full(6, 8.0), lasso)
    mode, _ = solve(problem)
    pull = t - np.exp(mode.level + X @ mode.w)
    slope, inside = X.T @ pull, mode.w != 0
    assert 0 < inside.sum() < 6
    assert_allclose(slope[inside], 8.0 * np.sign(mode.w)[inside], atol=1e-5)
    assert (np.abs(slope) <= 8.0 + 1e-5).all()
    assert abs(pull.sum()) < 1e-5
