"""The Laplace prior scaled by the noise: its moves, its noise and its rate against an objective by brute force."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sparsebayes.engine.bls import NO_RATE, learn, solve
from sparsebayes.engine.sequential import Candidates, ascend, empty, search

from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.loop import Trace
from sparsebayes.engine.problem import GaussianProblem, Solution

RUN = {"tol": 1e-9, "max_iter": 5000}
RATES = [0.3, 5.0, 40.0]


@pytest.fixture
def bls_objective(objective):
    """log p(t | g, σ²) - ½ λ Σg and the log prior of the noise, with g = 1/(ασ²)."""

    def of(problem, alpha, noise):
        return objective(problem, alpha, noise) - 0.5 * problem.rate * float((1 / (alpha * noise)).sum())

    return of


@pytest.fixture
def kernel_problem():
    """A noisy sinc on kernel columns as the kernel gives them: some with little spread, and neighbours alike."""

    def make():
        rng = np.random.default_rng(3)
        x = rng.uniform(-10, 10, 100)
        y = np.sinc(x / np.pi) + 0.1 * rng.standard_normal(100)
        K = np.exp(-0.03 * (x[:, None] - x) ** 2)
        rows, t, none = DenseRows.of(K - K.mean(axis=0)), (y - y.mean()) / y.std(), np.zeros(100)
        return GaussianProblem(rows, t, 100.0, True, price=0.0, a=0.0, b=none, c=0.0, d=0.0)

    return make


@pytest.mark.parametrize("rate", RATES)
def test_moves_bring_what_they_promise(shape, rate, make_problem, bls_objective):
    problem = replace(make_problem(*shape, c=0.5, rate=0.1), rate=rate)
    start = Solution(np.array([0, 4, 2]), np.array([0.5, 30.0, 4.0]), 0.3)
    state = Candidates(problem, start)
    before, moves = bls_objective(problem, state.alpha, state.noise), state.moves()
    assert state.objective == pytest.approx(before, rel=1e-10)
    kinds = set()
    for j in range(problem.n_columns):
        alpha = state.alpha.copy()
        alpha[j] = moves.alpha[j]
        kinds.add((bool(np.isfinite(state.alpha[j])), bool(np.isfinite(alpha[j]))))
        found = bls_objective(problem, alpha, state.noise) - before
        assert moves.gain[j] == pytest.approx(found, rel=1e-8, abs=1e-9)
    assert kinds >= {(True, True), (False, False)}


@pytest.mark.parametrize("rate", RATES)
def test_worth_is_what_a_basis_brings_at_its_best(rate, make_problem, bls_objective):
    problem = replace(make_problem(40, 8), rate=rate)
    state = Candidates(problem, Solution(np.array([0, 4]), np.array([0.5, 30.0]), 0.3))
    for j, worth in enumerate(state.moves().worth):
        without = state.alpha.copy()
        without[j] = np.inf
        base = bls_objective(problem, without, state.noise)

        def loss(log_alpha, j=j, without=without, base=base):
            changed = without.copy()
            changed[j] = np.exp(log_alpha)
            return base - bls_objective(problem, changed, state.noise)

        best = -min(minimize_scalar(loss, bounds=(-6, 12), method="bounded").fun, 0.0)
        assert worth == pytest.approx(best, rel=1e-5, abs=2e-3)  # the search for the best ends at log α = 12


@pytest.mark.parametrize("rate", RATES)
def test_the_noise_ends_where_the_objective_is_largest(shape, rate, make_problem, bls_objective):
    problem = replace(make_problem(*shape, c=0.5, rate=0.1), rate=rate)
    state = Candidates(problem, Solution(np.array([0, 4, 2]), np.array([0.5, 30.0, 4.0]), 0.3))
    assert state.noise_gain > 1e-3
    for _ in range(200):
        state.update_noise()
    best = minimize_scalar(lambda u: -bls_objective(problem, state.alpha, np.exp(u)), bounds=(-6, 2), method="bounded")
    assert state.noise == pytest.approx(np.exp(best.x), rel=1e-4)
    assert state.noise_gain < 1e-12


@pytest.mark.parametrize("rate", RATES)
def test_no_single_change_raises_the_objective_at_the_end(shape, rate, make_problem, bls_objective, everywhere):
    problem = make_problem(*shape)
    found = solve(problem, rate, **RUN)
    assert found.converged
    assert found.gap <= 1e-9
    assert found.rate == rate
    problem, noise = replace(problem, rate=rate), found.solution.noise
    alpha = everywhere(problem, found.solution)
    top = bls_objective(problem, alpha, noise) + 1e-8
    for factor in (*np.exp(np.linspace(-2, 2, 12)), 1.001, 0.999):
        assert bls_objective(problem, alpha, noise * factor) <= top
        assert bls_objective(problem, alpha / factor, noise * factor) <= top  # g as it is
    for j in range(problem.n_columns):
        inside = np.isfinite(alpha[j])
        for other in (*(alpha[j] if inside else 1.0) * np.logspace(-4, 5, 19), np.inf):
            changed = alpha.copy()
            changed[j] = other
            assert bls_objective(problem, changed, noise) <= top


def test_a_larger_rate_keeps_less(make_problem):
    problem = make_problem(14, 25, noise=2.0)
    kept = [len(solve(problem, rate, **RUN).solution.active) for rate in (0.3, 3.0, 30.0, 3000.0)]
    assert kept[0] > kept[-2] > kept[-1] == 0
    assert (np.diff(kept) <= 0).all()


def test_a_vanishing_rate_is_ard(make_problem):
    problem = make_problem(40, 8)
    exact = RUN | {"tol": 1e-13}
    ours = solve(problem, 1e-9, **exact)
    theirs, _ = ascend(problem, empty(0.1), trace=Trace(), **exact)
    assert list(ours.solution.active) == theirs.active
    # what gains 1e-13 nats is its root away from the best
    np.testing.assert_allclose(ours.solution.alpha, theirs.solution().alpha, rtol=1e-6)
    assert ours.log_evidence == pytest.approx(theirs.evidence, abs=1e-8)


def test_a_given_noise_is_held(make_problem):
    found = solve(make_problem(40, 8), 2.0, noise=0.37, **RUN)
    assert found.solution.noise == 0.37
    assert found.converged
    assert found.gap <= 1e-9


def test_an_empty_model_leaves_the_rate_alone(make_problem, rng):
    problem = make_problem(30, 3, X=rng.standard_normal((30, 3)), y=rng.standard_normal(30))
    found = solve(problem, 1e4, **RUN)
    assert len(found.solution.active) == 0
    assert found.rate == 1e4
    assert found.converged


def left_out(problem):
    """Mean squared error of rows that leave one by one, by as many models as there are rows."""
    K, t = problem.rows.X, problem.t

    def error(model):
        Phi, solution = K[:, model.solution.active], model.solution
        Phi, alpha = np.column_stack([Phi, np.ones(len(t))]), np.append(solution.alpha, 0.0)
        squares = []
        for i in range(len(t)):
            rest = np.arange(len(t)) != i
            A = np.diag(alpha) + Phi[rest].T @ Phi[rest] / solution.noise
            squares.append((t[i] - Phi[i] @ np.linalg.solve(A, Phi[rest].T @ t[rest]) / solution.noise) ** 2)
        return float(np.mean(squares))

    return error


@pytest.mark.parametrize("noise", [None, 0.01])
def test_of_all_rates_the_one_of_least_error_is_taken(noise, kernel_problem):
    problem, run = kernel_problem(), {"tol": 1e-6, "max_iter": 3000}
    judged = []

    def error(model):
        judged.append((model.rate, left_out(problem)(model), model))
        return judged[-1][1]

    found = learn(problem, error, noise=noise, **run)
    rates, errors, models = zip(*judged, strict=True)
    np.testing.assert_allclose(np.diff(np.log10(rates)), 0.5)
    first = models[0].solution
    assert rates[0] * (1 / (first.alpha * first.noise)).max() == pytest.approx(0.1, rel=0.2)  # which begins as ARD
    assert len(models[-1].solution.active) == 0  # the way ends at the empty model
    assert errors[-1] == pytest.approx((len(problem.t) / (len(problem.t) - 1)) ** 2 * np.mean(problem.t**2))
    assert 0 < np.argmin(errors) < len(errors) - 2  # neither end is the best here
    assert found.rate == rates[np.argmin(errors)]
    assert found.converged
    assert found.gap <= 1e-6
    if noise is None:
        ard, _ = search(problem, empty(0.1), trace=Trace(), **run)
    else:
        ard, _ = ascend(problem, empty(noise), trace=Trace(), hold_noise=True, **run)
    assert models[0].log_evidence == pytest.approx(ard.evidence, abs=0.1)  # and begins where ARD ends


@pytest.mark.parametrize("noise", [None, 0.1])
def test_units_of_the_columns_do_not_matter_to_a_learned_rate(noise, kernel_problem):
    problem = kernel_problem()
    larger = replace(problem, rows=DenseRows.of(1e3 * problem.rows.X))
    one, other = (learn(each, left_out(each), noise=noise, tol=1e-6, max_iter=3000) for each in (problem, larger))
    np.testing.assert_array_equal(one.solution.active, other.solution.active)
    assert other.rate == pytest.approx(1e6 * one.rate, rel=1e-6)


def test_what_ard_leaves_empty_has_no_rate_to_learn(make_problem):
    X = np.repeat([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], 5, axis=0)
    problem = make_problem(20, 2, n_relevant=0, X=X, y=X[:, 0] * X[:, 1])
    for noise in (None, 0.5):
        found = learn(problem, left_out(problem), noise=noise, **RUN)
        assert len(found.solution.active) == 0
        assert found.rate == NO_RATE
        assert found.converged


def test_wrong_arguments_are_named(make_problem):
    with pytest.raises(ValueError, match=r"rate=-1\.0"):
        solve(make_problem(40, 8), -1.0, **RUN)
    with pytest.raises(ValueError, match="a, b must be 0"):
        solve(make_problem(40, 8, a=0.1), 1.0, **RUN)


def test_the_way_ends_where_a_search_is_cut_short(make_problem):
    judged = []

    def error(model):
        judged.append(model)
        return 1.0

    found = learn(make_problem(40, 8), error, max_iter=2, tol=1e-9)
    assert not found.converged
    assert [model is found for model in judged] == [True]
