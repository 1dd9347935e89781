"""The Laplace prior scaled by the noise: its moves, its noise and its rate against an objective by brute force."""

from dataclasses import replace

import numpy as np
import pytest

from sparsebayes.core.priors import ARD, Laplace
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.ascent import Limits
from sparsebayes.engine.gaussian_search import climb, search
from sparsebayes.engine.laplace_rate import EMPTY_RATE, learn, solve, with_rate
from sparsebayes.engine.least_squares import LeastSquares, empty
from sparsebayes.engine.loop import Settings, Trace

SETTINGS = Settings(1e-9, 5000)
COARSE = Settings(1e-6, 3000)
RATES = [0.3, 5.0, 40.0]


@pytest.fixture
def kernel_problem():
    """A noisy sinc on kernel columns as the kernel gives them: some with little spread, and neighbours alike."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-10, 10, 100)
    y = np.sinc(x / np.pi) + 0.1 * rng.standard_normal(100)
    K = np.exp(-0.03 * (x[:, None] - x) ** 2)
    rows = DenseRows.of(K - K.mean(axis=0))
    return LeastSquares(design=rows, t=(y - y.mean()) / y.std(), n_weighted=100.0, flat_intercept=True)


def test_a_rate_makes_the_prior_laplaces(make_problem):
    assert with_rate(make_problem(40, 8), 2.5).prior == Laplace(rate=2.5)


@pytest.mark.parametrize("rate", RATES)
def test_no_single_change_raises_the_objective_at_the_end(shape, rate, make_problem, objective, everywhere):
    problem = make_problem(*shape)
    found = solve(problem, rate, SETTINGS)
    assert found.converged
    assert found.gap <= 1e-9
    problem, noise = with_rate(problem, rate), found.noise
    alpha = everywhere(problem, found.solution)
    top = objective(problem, alpha, noise) + 1e-8
    for factor in (*np.exp(np.linspace(-2, 2, 12)), 1.001, 0.999):
        assert objective(problem, alpha, noise * factor) <= top
        assert objective(problem, alpha / factor, noise * factor) <= top  # g as it is
    for j in range(problem.n_columns):
        inside = np.isfinite(alpha[j])
        for other in (*(alpha[j] if inside else 1.0) * np.logspace(-4, 5, 19), np.inf):
            changed = alpha.copy()
            changed[j] = other
            assert objective(problem, changed, noise) <= top


def test_a_larger_rate_keeps_less(make_problem):
    problem = make_problem(14, 25, noise=2.0)
    kept = [len(solve(problem, rate, SETTINGS).active) for rate in (0.3, 3.0, 30.0, 3000.0)]
    assert kept[0] > kept[-2] > kept[-1] == 0
    assert (np.diff(kept) <= 0).all()


def test_a_vanishing_rate_is_ard(make_problem):
    problem = make_problem(40, 8)
    exact = Settings(1e-13, 5000)
    ours = solve(problem, 1e-9, exact)
    theirs, _ = climb(problem, empty(0.1), Limits(1e-13), Trace(), exact)
    assert list(ours.active) == list(theirs.active)
    # what gains 1e-13 nats is its root away from the best
    np.testing.assert_allclose(ours.alpha, theirs.solution.alpha, rtol=1e-6)
    assert ours.log_evidence == pytest.approx(theirs.evidence, abs=1e-8)


def test_a_given_noise_is_held(make_problem):
    found = solve(make_problem(40, 8), 2.0, SETTINGS, noise=0.37)
    assert found.noise == 0.37
    assert found.converged
    assert found.gap <= 1e-9


def test_a_rate_may_leave_nothing(make_problem, rng):
    problem = make_problem(30, 3, X=rng.standard_normal((30, 3)), y=rng.standard_normal(30))
    found = solve(problem, 1e4, SETTINGS)
    assert len(found.active) == 0
    assert found.converged


def left_out(problem, model):
    """Mean squared error of rows that leave one by one, by as many models as there are rows."""
    K, t = problem.design.X, problem.t
    Phi, alpha = np.column_stack([K[:, model.active], np.ones(len(t))]), np.append(model.alpha, 0.0)
    squares = []
    for i in range(len(t)):
        rest = np.arange(len(t)) != i
        A = np.diag(alpha) + Phi[rest].T @ Phi[rest] / model.noise
        squares.append((t[i] - Phi[i] @ np.linalg.solve(A, Phi[rest].T @ t[rest]) / model.noise) ** 2)
    return float(np.mean(squares))


@pytest.mark.parametrize("noise", [None, 0.01])
def test_of_all_rates_the_one_of_least_error_is_taken(noise, kernel_problem):
    problem, judged = kernel_problem, []

    def error(posed, model):
        judged.append((posed.prior.rate, left_out(problem, model), model))
        return judged[-1][1]

    found, rate = learn(problem, error, COARSE, noise=noise)
    rates, errors, models = zip(*judged, strict=True)
    np.testing.assert_allclose(np.diff(np.log10(rates)), 0.5)
    first = models[0]
    assert rates[0] * (1 / (first.alpha * first.noise)).max() == pytest.approx(0.1, rel=0.2)  # which begins as ARD
    assert len(models[-1].active) == 0  # the path ends at the empty model
    assert errors[-1] == pytest.approx((len(problem.t) / (len(problem.t) - 1)) ** 2 * np.mean(problem.t**2))
    assert 0 < np.argmin(errors) < len(errors) - 2  # neither end is the best here
    assert rate == rates[np.argmin(errors)]
    assert found is models[np.argmin(errors)]
    assert found.converged
    assert found.gap <= 1e-6
    if noise is None:
        ard, _ = search(problem, empty(0.1), Trace(), COARSE)
    else:
        ard, _ = climb(problem, empty(noise), Limits(1e-6, hold_noise=True), Trace(), COARSE)
    assert first.log_evidence == pytest.approx(ard.evidence, abs=0.1)  # and begins where ARD ends


@pytest.mark.parametrize("noise", [None, 0.1])
def test_units_of_the_columns_do_not_matter_to_a_learned_rate(noise, kernel_problem):
    larger = replace(kernel_problem, design=DenseRows.of(1e3 * kernel_problem.design.X))
    (one, rate), (other, scaled) = (learn(each, left_out, COARSE, noise=noise) for each in (kernel_problem, larger))
    np.testing.assert_array_equal(one.active, other.active)
    assert scaled == pytest.approx(1e6 * rate, rel=1e-6)


def test_what_ard_leaves_empty_has_no_rate_to_learn(make_problem):
    X = np.repeat([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], 5, axis=0)
    problem = make_problem(20, 2, n_relevant=0, X=X, y=X[:, 0] * X[:, 1])
    for noise in (None, 0.5):
        found, rate = learn(problem, left_out, SETTINGS, noise=noise)
        assert len(found.active) == 0
        assert rate == EMPTY_RATE
        assert found.converged


def test_wrong_arguments_are_named(make_problem):
    with pytest.raises(ValueError, match=r"rate=-1\.0"):
        solve(make_problem(40, 8), -1.0, SETTINGS)
    with pytest.raises(ValueError, match="prior must be flat"):
        solve(make_problem(40, 8, prior=ARD(0.1)), 1.0, SETTINGS)


def test_the_path_ends_where_a_search_is_cut_short(make_problem):
    judged = []

    def error(problem, model):
        judged.append(model)
        return 1.0

    found, _ = learn(make_problem(40, 8), error, Settings(1e-9, 2))
    assert not found.converged
    assert [model is found for model in judged] == [True]


def test_of_rates_that_predict_alike_the_largest_is_taken(kernel_problem):
    _, rate = learn(kernel_problem, lambda problem, model: 1.0 + 5e-4 * len(model.active) / 100, COARSE)
    _, least = learn(kernel_problem, lambda problem, model: -len(model.active) + 100.0, COARSE)
    assert rate > 10 * least
    assert not len(solve(kernel_problem, rate, COARSE).active)
