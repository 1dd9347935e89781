"""The whole search under Gaussian noise: what it calls a maximum is one, and it finds what single moves cannot."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.datasets import make_friedman1
from sklearn.metrics.pairwise import rbf_kernel

from sparsebayes.core.priors import ARD, Laplace
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import gaussian_search
from sparsebayes.engine.ascent import Ascent, Limits
from sparsebayes.engine.gaussian_search import certificate, climb, cold_start, low_noise_limits, search
from sparsebayes.engine.least_squares import LOW_NOISE, LeastSquares, Solution, empty
from sparsebayes.engine.loop import Settings, Trace
from sparsebayes.engine.state import State

HYPER = {"none": {}, "noise": {"c": 2.0, "d": 0.2}, "Laplace": {"prior": Laplace(rate=5.0)}}
CASES = [
    (shape, charged, hyper)
    for shape in ((40, 8), (14, 25))
    for charged in (False, True)
    for hyper in HYPER
    if shape == (40, 8) or charged or hyper != "none"
]
"""Without price or hyper-prior a wide model takes up all rows, and the noise falls to its floor in very small steps."""
SETTINGS = Settings(1e-6, 3000)


def climbed(problem, start, settings=SETTINGS, trace=None):
    return climb(problem, start, Limits(settings.tol), Trace() if trace is None else trace, settings)


@pytest.mark.usefixtures("form")
@pytest.mark.parametrize(("shape", "charged", "hyper"), CASES)
def test_no_single_change_beats_the_certificate(shape, charged, hyper, make_problem, priced_objective):
    problem = make_problem(*shape, price=charged * np.log(shape[1]), **HYPER[hyper])
    found, converged = search(problem, empty(0.1), Trace(), Settings(1e-9, 5000))
    gap = certificate(found)
    assert converged
    assert gap <= 1e-9
    alpha, noise = found.alpha, found.noise
    top = priced_objective(problem, alpha, noise) + gap + 1e-9
    for factor in (*np.exp(np.linspace(-2, 2, 8)), 1.001, 0.999):
        assert priced_objective(problem, alpha, noise * factor) <= top
    for j in range(problem.n_columns):
        here = alpha[j] if np.isfinite(alpha[j]) else 10.0
        for other in (*here * np.logspace(-4, 4, 8), np.inf, here * 1.001, here * 0.999):
            changed = alpha.copy()
            changed[j] = other
            assert priced_objective(problem, changed, noise) <= top


def test_the_certificate_of_a_poor_model_is_the_best_single_change(make_problem, priced_objective):
    problem = make_problem(40, 8)
    found = Ascent(problem, Solution(np.array([0, 5]), np.array([2.0, 30.0]), 0.3)).snapshot()
    here = priced_objective(problem, found.alpha, found.noise)

    def loss(log_alpha, j):
        changed = found.alpha.copy()
        changed[j] = np.exp(log_alpha)
        return here - priced_objective(problem, changed, found.noise)

    best = max(-minimize_scalar(loss, bounds=(-5, 9), args=(j,), method="bounded").fun for j in range(8))
    assert best > problem.noise_left(found)
    assert certificate(found) == pytest.approx(best, rel=1e-6)


def test_the_certificate_sees_a_noise_that_would_fall_far(make_problem, evidence):
    problem = make_problem(14, 25, seed=2)
    found, _ = climbed(problem, empty(0.1), Settings(1e-4, 5000))
    gain = evidence(problem, found.alpha, found.noise / 3) - evidence(problem, found.alpha, found.noise)
    assert gain <= certificate(found) + 1e-9
    moved = Ascent(problem, Solution(found.active, found.alpha[found.active], 0.5)).snapshot()
    assert certificate(moved, hold_noise=True) == moved.best_moves.gain.max()


# --- what single moves cannot find ---


@pytest.fixture
def team(make_problem, rng):
    """Two features that only pay together: they nearly cancel, and what is left of their difference is the target."""
    n, d = 60, 30
    X = rng.standard_normal((n, d))
    X[:, 1] = X[:, 0] + 0.15 * X[:, 1]
    y = X[:, 0] - X[:, 1] + 0.02 * rng.standard_normal(n)
    return make_problem(n, d, X=X, y=y, price=np.log(d))


@pytest.mark.usefixtures("form")
def test_the_search_finds_features_that_only_pay_together(team):
    stuck, converged = climbed(team, empty(0.9))
    assert converged
    assert not {0, 1} <= set(stuck.active)
    found, converged = search(team, empty(0.9), Trace(), SETTINGS)
    assert converged
    assert {0, 1} <= set(found.active)
    assert found.priced_evidence > stuck.priced_evidence + 10


def test_a_feature_that_pays_only_at_the_noise_it_brought_leaves_again(make_problem):
    """Pure noise: from the luckiest feature single moves lead nowhere, the search goes on to the empty model."""
    for seed in (15, 23, 38):
        rng = np.random.default_rng([seed, 20, 400])
        X, y = rng.standard_normal((20, 400)), rng.standard_normal(20)
        problem = make_problem(20, 400, X=X, y=y - y.mean(), price=np.log(400))
        lucky = int(np.argmax(np.abs(problem.projection)))
        start = Solution(np.array([lucky]), np.array([1.0]), 0.4)
        stuck, _ = climbed(problem, start)
        found, converged = search(problem, start, Trace(), SETTINGS)
        assert converged
        assert list(stuck.active) == [lucky]
        assert list(found.active) == []
        assert found.priced_evidence > stuck.priced_evidence + 0.01


def test_the_search_is_never_worse_than_its_first_climb(shape, make_problem):
    for seed in range(6):
        problem = make_problem(*shape, seed=seed, price=np.log(shape[1]), noise=2.0)
        single, _ = climbed(problem, empty(0.1))
        found, converged = search(problem, empty(0.1), Trace(), SETTINGS)
        assert converged
        assert found.priced_evidence >= single.priced_evidence - 1e-9


def test_a_price_keeps_the_model_from_reproducing_the_target(make_problem):
    """With as many features as rows the total price passes any evidence that the noise floor allows."""
    problem = make_problem(12, 40, price=np.log(40))
    floor = problem.fit(1e-8 * problem.energy, 1e-8) - problem.fit(problem.energy, 1.0)
    prices = [problem.total_price(list(range(k))) for k in range(11)]
    assert prices[1] == pytest.approx(np.log(40) * 11 / 10)
    assert prices[10] > floor
    assert (np.diff(prices, 2) > 0).all()
    found, _ = search(problem, empty(0.1), Trace(), SETTINGS)
    assert len(found.active) < 6


# --- free columns ---


def test_without_a_price_the_search_from_nothing_is_the_cold_start(make_problem):
    problem = make_problem(40, 8)
    alone, both = Trace(), Trace()
    cold_start(problem, alone, SETTINGS)
    search(problem, empty(0.1), both, SETTINGS)
    assert alone.infos == both.infos


@pytest.mark.parametrize("keywords", [{"price": 1.0}, {"prior": ARD(0.1, 0.1)}])
def test_with_a_price_or_a_prior_the_noise_is_free_from_the_first_step(keywords, make_problem):
    problem = make_problem(40, 8, **keywords)
    alone, both = Trace(), Trace()
    climbed(problem, empty(0.1), trace=alone)
    search(problem, empty(0.1), both, SETTINGS)
    assert alone.infos == both.infos[: len(alone.infos)]


def test_a_cold_start_holds_the_noise_low_and_lets_few_columns_in(make_problem, monkeypatch):
    problem = make_problem(40, 30)
    runs, run = [], Ascent.run

    def told(ascent, limits, *others):
        before = ascent.snapshot().solution
        arrived = run(ascent, limits, *others)
        runs.append((limits, before, ascent.snapshot().solution))
        return arrived

    monkeypatch.setattr(gaussian_search.Ascent, "run", told)
    _, arrived = cold_start(problem, Trace(), SETTINGS)
    assert arrived
    (low, nothing, begun), (free, _, _) = runs
    assert low == low_noise_limits(problem)
    assert not len(nothing.active)
    assert begun.noise == nothing.noise == LOW_NOISE
    assert len(begun.active) == low.max_additions == problem.n // 4
    assert free == Limits(SETTINGS.tol)


@pytest.mark.parametrize(("n", "least"), [(512, 1 / 512), (513, 1e-5)])
def test_with_many_rows_columns_that_bring_little_new_may_enter(n, least, make_problem):
    low = low_noise_limits(make_problem(n, 5, flat=False))
    assert low.min_novelty == pytest.approx(least)
    assert low.max_additions == 128


def test_a_wide_kernel_on_many_rows_does_not_end_at_too_much_noise(make_problem):
    """Friedman's first function, whose noise has variance 1; with columns of one row's share the search ends at 1.9."""
    X, y = make_friedman1(800, 10, noise=1.0, random_state=1)
    K = rbf_kernel((X - X.mean(axis=0)) / X.std(axis=0), gamma=0.02)
    problem = make_problem(800, 800, X=K, y=y)
    found, _ = search(problem, empty(0.1), Trace(), Settings(1e-3, 10_000))
    few = replace(low_noise_limits(problem), min_novelty=1 / 800)
    ascent = Ascent(problem, empty(LOW_NOISE))
    ascent.run(few, Trace(), 10_000)
    ascent.run(Limits(1e-3), Trace(), 10_000)
    assert found.noise * y.var() < 1.4 < 1.7 < ascent.state.noise * y.var()
    assert found.evidence > ascent.state.evidence + 50


@pytest.mark.parametrize(("lost", "evidences", "ends_at"), [
    (False, [1.0, 2.0], 1.0), (True, [1.0, 2.0], 2.0), (True, [2.0, 1.0], 2.0)
])  # fmt: skip
def test_where_little_new_costs_digits_the_better_of_two_climbs_counts(
    lost, evidences, ends_at, make_problem, monkeypatch
):
    tried = []

    def from_nothing(ascent, low, trace, settings):
        evidence = evidences[len(tried)]
        tried.append(low.min_novelty)
        trace.infos.append(evidence)
        ascent.lost_digits = lost
        return SimpleNamespace(evidence=evidence), not lost

    monkeypatch.setattr(gaussian_search, "_from_nothing", from_nothing)
    trace = Trace(["earlier"])
    found, converged = cold_start(make_problem(600, 3), trace, SETTINGS)
    assert tried == [1e-5, pytest.approx(1 / 599)][: 1 + lost]
    assert (found.evidence, converged) == (ends_at, not lost)
    assert trace.infos == ["earlier", ends_at]


def test_a_search_that_is_cut_short_lets_the_noise_go(make_problem):
    problem, trace = make_problem(40, 30), Trace()
    found, converged = search(problem, empty(0.1), trace, Settings(1e-6, 3))
    assert not converged
    assert len(trace.infos) == 3
    assert found.noise > 2 * LOW_NOISE
    assert found.evidence == pytest.approx(State(problem, found.solution).evidence)


@pytest.mark.usefixtures("form")
def test_columns_that_only_pay_together_enter_from_nothing(make_problem):
    """In a wide kernel no single column explains a sinc. Were the rest called noise at once, the others would stay out.

    Then the noise ended at a third of the target's variance on five of these eight draws; in truth it is a tenth.
    """
    for seed in range(8):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-10, 10, 100)
        y = np.sinc(x / np.pi) + 0.1 * rng.standard_normal(100)
        problem = make_problem(100, 100, X=np.exp(-0.03 * (x[:, None] - x) ** 2), y=y)
        found, converged = search(problem, empty(0.1), Trace(), Settings(1e-3, 3000))
        assert converged
        assert 0.05 < found.noise < 0.15


def test_no_free_column_stays_that_would_rather_be_out(rng):
    """Joint steps leave columns behind whose deletion gains less than the tolerance."""
    X = rng.uniform(0, 1, (120, 4))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + rng.standard_normal(120)
    K = np.exp(-2 * ((X[:, None] - X) ** 2).sum(axis=-1))
    design = DenseRows.of(K).standardised(np.ones(120), centre=True)
    problem = LeastSquares(design=design, t=(y - y.mean()) / y.std(), n_weighted=120.0, flat_intercept=True)
    end, converged = search(problem, empty(LOW_NOISE), Trace(), Settings(1e-2, 10_000))
    assert converged
    assert len(end.active) > 5
    assert np.isfinite(end.best_moves.alpha[end.active]).all()
