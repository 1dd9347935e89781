"""The Laplace prior scaled by the noise: its moves, its noise and its rate against an objective by brute force."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import gammaln
from scipy.stats import expon, gamma

from sparsebayes.data.dense import DenseRows
from sparsebayes.solvers.bls import NO_RATE, best_rate, rate_objective, solve
from sparsebayes.solvers.loop import Trace
from sparsebayes.solvers.problem import GaussianProblem, Solution
from sparsebayes.solvers.sequential import Candidates, ascend, empty

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


@pytest.mark.parametrize(("shape_", "scale"), [(1.0, 0.0), (3.0, 0.5)])
def test_a_learned_rate_is_its_own_best(shape_, scale, make_problem):
    found = solve(make_problem(60, 10, noise=0.3), shape=shape_, scale=scale, **RUN)
    assert found.converged
    g = 1 / (found.solution.alpha * found.solution.noise)
    # a gain of 1e-9 nats is a relative distance of its root
    assert found.rate == pytest.approx(2 * (len(g) + shape_ - 1) / (g.sum() + 2 * scale), rel=1e-4)


def test_the_path_ends_near_the_best_of_many_fixed_points(kernel_problem):
    """The alternation alone ends wherever its first rate leads it, decades and tens of nats apart."""
    problem, run = kernel_problem(), {"tol": 1e-6, "max_iter": 3000}

    def alternated(rate):
        here = empty(0.1)
        for _ in range(60):
            state, _ = ascend(replace(problem, rate=rate), here, trace=Trace(), **run)
            here, last, rate = state.solution(), rate, best_rate(state, 1.0, 0.0)
            if abs(np.log(rate / last)) < 1e-6:
                break
        return rate, rate_objective(state, 1.0, 0.0)

    rates, objectives = np.array([alternated(rate) for rate in (1e-4, 1e-2, 1.0, 1e2)]).T
    assert rates.max() > 100 * rates.min()
    assert np.ptp(objectives) > 40
    found = solve(problem, **run)
    state = Candidates(replace(problem, rate=found.rate), found.solution)
    assert rate_objective(state, 1.0, 0.0) > objectives.max() - 4


@pytest.mark.parametrize("noise", [None, 0.1])
def test_units_of_the_columns_do_not_matter_to_a_learned_rate(noise, kernel_problem):
    problem = kernel_problem()
    larger = replace(problem, rows=DenseRows.of(1e3 * problem.rows.X))
    one, other = (solve(each, noise=noise, tol=1e-6, max_iter=3000) for each in (problem, larger))
    np.testing.assert_array_equal(one.solution.active, other.solution.active)
    assert other.rate == pytest.approx(1e6 * one.rate, rel=1e-6)


def test_the_objective_of_a_rate_is_a_density(kernel_problem):
    """Of t given g, and of log g and λ: by SciPy."""
    problem = replace(kernel_problem(), rate=3.0)
    state = Candidates(problem, Solution(np.array([5, 30]), np.array([2.0, 7.0]), 0.3))
    g = 1 / (0.3 * np.array([2.0, 7.0]))
    prior = expon.logpdf(g, scale=2 / 3.0).sum() + np.log(g).sum() + gamma.logpdf(3.0, 2.5, scale=1 / 0.4)
    constant = gammaln(2.5) - 2.5 * np.log(0.4)
    assert rate_objective(state, 2.5, 0.4) == pytest.approx(state.evidence + prior + constant, rel=1e-12)


def test_where_the_best_rate_jumps_the_way_is_halved(make_problem):
    """One weight more or less decides: the plain iteration goes to and fro for ever, the halving ends at the jump."""
    problem = make_problem(40, 8, seed=2, noise=2.0)

    def at(rate):
        state, _ = ascend(replace(problem, rate=rate), empty(0.1), trace=Trace(), tol=1e-6, max_iter=3000)
        return len(state.active), best_rate(state, 1.0, 0.0)

    plain = [1.0]
    for _ in range(50):
        plain.append(at(plain[-1])[1])
    low, high = sorted(plain[-2:])
    assert high > 1.1 * low
    np.testing.assert_allclose(plain[-4:-2], plain[-2:], rtol=1e-4)
    found = solve(problem, tol=1e-6, max_iter=3000)
    assert found.converged
    assert low < found.rate < high
    (more, raised), (less, lowered) = at(0.99 * found.rate), at(1.01 * found.rate)
    assert more == less + 1
    assert lowered < found.rate < raised


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


def test_where_nothing_can_enter_there_is_no_rate_to_learn(make_problem):
    X = np.repeat([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], 5, axis=0)
    found = solve(make_problem(20, 2, n_relevant=0, X=X, y=X[:, 0] * X[:, 1]), **RUN)
    assert len(found.solution.active) == 0
    assert found.rate == NO_RATE
    assert found.converged


def test_wrong_arguments_are_named(make_problem):
    with pytest.raises(ValueError, match=r"rate=-1\.0"):
        solve(make_problem(40, 8), -1.0, **RUN)
    with pytest.raises(ValueError, match="a, b must be 0"):
        solve(make_problem(40, 8, a=0.1), 1.0, **RUN)
    assert not solve(make_problem(40, 8), max_iter=2, tol=1e-9).converged
