"""The search for feature weights: prices, scores and what is dropped, on made-up evidences and by brute force."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq
from scipy.stats import chi2, linregress

from sparsebayes.core.prices import false_discovery_price, worth_at
from sparsebayes.core.scales import ard_candidate
from sparsebayes.engine.evidence_gradient import Slopes
from sparsebayes.engine.loop import Trace
from sparsebayes.engine.theta import (
    STARTS,
    VECTOR_PRICE,
    ThetaFit,
    ThetaSearch,
    random_starts,
    relevance,
    run_starts,
    sized_starts,
    univariate_share,
)
from sparsebayes.engine.width import VectorFit, choice_price


def wave(rng, n=50, n_useless=3):
    """Two features that matter, one of them not in a straight line, and some that do not."""
    X = rng.uniform(-2, 2, (n, 2 + n_useless))
    return X, np.sin(2 * X[:, 0]) + 0.7 * X[:, 1] + 0.1 * rng.standard_normal(n)


@pytest.fixture
def search(make_theta_search, rng):
    return make_theta_search(*wave(rng), price=2.0, tol=1e-2)


@pytest.fixture
def settled(search):
    """The best of three starts; a single one may end at a poor maximum."""
    ends = run_starts(search, sized_starts(np.full(5, 0.2))[:3], Trace(), search)
    return max(ends, key=search.score)


class Value(NamedTuple):
    value: np.ndarray


@dataclass(frozen=True)
class MadeUp:
    """A kernel and a model at once: the evidence is any function of the set of features with a weight.

    The rows of X hold the numbers of the features, by which the kernel knows which of them it was given.
    """

    worth: object
    searches: list = field(default_factory=list)

    def __call__(self, X, Z, theta):
        return Value(np.array([[float(self.worth(frozenset(X[0, theta > 0].astype(int))))]]))

    def leaving_out(self, X, Z, theta, each):
        return (self(X, Z, theta * (np.arange(len(theta)) != k)).value for k in each)

    def gradient(self, X, Z, at, slope):
        return np.zeros(X.shape[1])

    def search(self, K, near):
        self.searches.append(near)
        return VectorFit(float(K[0, 0]), np.array([0]), np.zeros(1))

    def evidence(self, K, scales):
        return Slopes(float(K[0, 0]), np.zeros_like(K), np.zeros(1))

    def theta_search(self, n_features, price):
        X = np.arange(n_features, dtype=float)[None]
        return ThetaSearch(self, X, X, self, price, 1e15, 1e-3)


def pruned(worth, n_features, price):
    """What is left of the features."""
    search = MadeUp(worth).theta_search(n_features, price)
    needed = np.zeros(n_features, dtype=bool)
    return search.prune(search.search_vectors(np.ones(n_features)), needed).kept, needed


@pytest.mark.parametrize("seed", range(5))
def test_what_is_dropped_does_not_pay_and_what_is_kept_does(seed):
    """Features that bring what they bring, whatever the others do: then the answer is known."""
    brings = np.random.default_rng(seed).uniform(0, 4, 12)
    kept, needed = pruned(lambda kept: brings[list(kept)].sum(), 12, price=2.0)
    assert_array_equal(kept, brings >= 2.0)
    assert_array_equal(needed, kept)


@pytest.mark.parametrize("copies", [2, 5])
def test_of_copies_one_stays(copies):
    """None of them loses anything alone; all of them together lose ten nats."""
    kept, _ = pruned(lambda kept: 10.0 * bool(kept & set(range(copies))) + 5.0 * (7 in kept), 8, price=2.0)
    assert kept.sum() == 2
    assert kept[7]


def test_features_that_only_pay_together_stay():
    kept, _ = pruned(lambda kept: 10.0 * ({0, 1} <= kept), 6, price=2.0)
    assert_array_equal(np.flatnonzero(kept), [0, 1])


def test_the_last_feature_is_not_taken_away():
    """Whether a model without features is better is the search's to say, which then keeps no vector."""
    assert pruned(lambda kept: 0.0, 6, price=2.0)[0].sum() == 1


def test_without_a_price_nothing_is_dropped():
    assert pruned(lambda kept: -len(kept), 6, price=0.0)[0].all()


def test_what_leaves_is_given_a_chance_to_come_back(search, settled):
    """A feature whose weight is zero gets one again, if the vectors need it and the noise does not hide that."""
    theta = settled.theta.copy()
    theta[1] = 0
    start = ThetaFit(theta, replace(settled.fit, scales=np.append(settled.fit.scales[:-1], 0.0)))
    assert search.maximise_theta(start, search.varying).kept[1]
    assert not search.maximise_theta(start, theta > 0).kept[1]


def test_every_refinement_of_a_run_begins_with_all_features(search):
    begun = []

    class Recording(ThetaSearch):
        def refine(self, start, free, trace):
            begun.append(free.copy())
            return super().refine(start, free, trace)

    recording = Recording(**vars(search))
    end = recording.run(recording.search_vectors(np.full(5, 0.14)), Trace())
    assert len(begun) > 1
    assert not end.kept.all()
    assert all(free.all() for free in begun)


def test_without_a_price_all_features_go_on_being_weighed(search, settled):
    assert_array_equal(search.free_features(settled), settled.kept)
    assert_array_equal(replace(search, price=0.0).free_features(settled), search.varying)


def test_every_start_is_followed_from_where_the_one_before_began():
    made = MadeUp(lambda kept: float(len(kept)))
    search, seen = made.theta_search(3, 0.0), []

    class First:
        def initialise(self, theta, near):
            seen.append((theta, near))
            return search.search_vectors(theta)

    starts = [np.array([1.0, 2.0, 0.0]), np.array([0.5, 0.0, 1.0])]
    ends = run_starts(search, starts, Trace(), First())
    assert len(ends) == 2
    assert_array_equal(seen[0][0], [0, 2.0, 0])  # the first feature is constant here: it has nothing to weigh
    assert seen[0][1] is None
    assert isinstance(seen[1][1], VectorFit)


def test_the_objective_is_the_priced_evidence(search, evidence):
    at = search.search_vectors(np.full(5, 0.14))
    problem = search.model.problem_on(search.columns(at.theta, search.Z))
    alpha = np.full(len(search.X), np.inf)
    alpha[at.fit.active] = np.exp(at.fit.scales[:-1]) / problem.design.scale[at.fit.active] ** 2
    expected = evidence(problem, alpha, np.exp(at.fit.scales[-1])) - VECTOR_PRICE * len(at.fit.active)
    assert at.fit.objective == pytest.approx(expected, abs=1e-6)
    columns = search.columns(at.theta, search.Z[at.fit.active])
    assert search.model.evidence(columns, at.fit.scales).value == pytest.approx(at.fit.objective, abs=1e-6)


def test_a_climb_gains_and_leaves_alone_what_is_not_free(search):
    at = search.search_vectors(np.full(5, 0.14))
    free = np.array([True, True, False, True, False])
    whole, part = search.maximise_theta(at, search.varying), search.maximise_theta(at, free)
    assert whole.fit.objective > at.fit.objective
    assert (part.theta[~free] == 0).all()
    assert_array_equal(part.fit.active, at.fit.active)
    columns = search.columns(whole.theta, search.Z[at.fit.active])
    assert search.model.evidence(columns, whole.fit.scales).value == pytest.approx(whole.fit.objective, abs=1e-8)


@pytest.mark.parametrize("price", [0.0, 2.0])
def test_turns_never_lose(search, price):
    search, trace = replace(search, price=price), Trace()
    start = search.search_vectors(np.full(5, 0.14))
    end = search.refine(start, search.varying, trace)
    assert search.criterion(end) > search.criterion(start)
    assert trace.objective[0] == start.fit.objective
    assert trace.infos[-1].change <= search.tol
    if price == 0:
        assert (np.diff(trace.objective) >= 0).all()
        assert end.fit.objective >= max(trace.objective)


def test_the_truth_is_kept_and_only_what_pays(search, settled):
    assert_array_equal(np.flatnonzero(settled.kept), [0, 1])
    for k in (0, 1):  # not even a new search makes up for the loss
        X = search.X * (np.arange(5) != k)
        other = replace(search, X=X, Z=X)
        without = other.run(other.search_vectors(settled.theta * other.varying), Trace())
        assert other.score(without) < search.score(settled)


def test_the_end_is_a_maximum_of_all_features_and_scales(make_theta_search, rng):
    """Without a price: no slope in what is kept, and none inward in what is not."""
    search = make_theta_search(*wave(rng), tol=1e-4)
    end = search.run(search.search_vectors(np.full(5, 0.14)), Trace())
    Z = search.Z[end.fit.active]
    shape = search.kernel(search.X, Z, end.theta)
    slopes = search.model.evidence(shape.value, end.fit.scales)
    slope = search.kernel.gradient(search.X, Z, shape, slopes.design)
    assert np.abs(slope * end.theta)[end.kept].max() < 0.01  # nats per e-fold
    assert (slope[~end.kept] < 0.01 / end.theta.max()).all()
    assert np.abs(slopes.scales).max() < 0.05


def test_total_price(search):
    n = search.n
    assert n == 49
    assert search.total_price(0, 10) == 0
    assert search.total_price(3, 6) == pytest.approx(2.0 * 3 * n / (n - 9))
    assert np.isfinite(search.total_price(40, 30))
    assert replace(search, n=1e15).total_price(3, 6) == pytest.approx(6.0)


def test_score_charges_for_features_and_vectors(search, settled):
    kept = settled.kept
    each = choice_price(search.X, lambda X, Z: search.kernel(X[:, kept], Z[:, kept], settled.theta[kept]).value)
    assert each > 0
    n_features, n_vectors = kept.sum(), len(settled.fit.active)
    expected = settled.fit.objective - search.total_price(n_features, n_vectors) - each * n_vectors
    assert search.score(settled) == pytest.approx(expected)
    nothing = ThetaFit(np.zeros(5), VectorFit(-70.0, np.empty(0, dtype=np.intp), np.zeros(1)))
    assert search.score(nothing) == -70.0


@pytest.mark.parametrize("n_features", [2, 10, 300])
def test_the_price_lets_one_useless_feature_in_of_twenty_sets(n_features):
    """z² of each is χ² with one degree of freedom, and half of the z are of the wrong sign."""
    r = brentq(lambda r: n_features * 0.5 * chi2(1).sf(r) - 0.05, 1, 100)
    assert false_discovery_price(n_features) == pytest.approx(0.5 * (r - 1 - np.log(r)))


def test_a_single_feature_has_no_price():
    assert false_discovery_price(1) == 0


def test_relevance_is_that_of_each_weight_given_all_others(rng):
    """The rule of s and q, each weight against the others' covariance by its Schur complement."""
    J, alpha = rng.standard_normal((30, 7)), np.array([0.5, 2.0, 1.0, 0.1])
    theta = np.array([0.5, 0.15, 3.0])
    prior = np.append(alpha, theta**-2.0)
    expected = []
    for k in range(4, 7):
        others = np.delete(np.arange(7), k)
        inner = np.linalg.inv(J[:, others].T @ J[:, others] + np.diag(prior[others]))
        cross = J[:, k] @ J[:, others]
        s = J[:, k] @ J[:, k] - cross @ inner @ cross
        q = s * theta[k - 4]
        beta = ard_candidate(np.array([s]), np.array([q]))[0]
        expected.append(s / (s + beta))
    assert min(expected) == 0  # one of them is not seen at all
    assert max(expected) > 0.9
    assert_allclose(relevance(J, alpha, theta), expected, rtol=1e-9, atol=1e-12)


def test_first_weights_give_typical_exponents(rng):
    """Standard inputs are a squared distance of two apart, so that the mean exponent is that of the table."""
    starts = sized_starts(rng.dirichlet(np.ones(6)))
    X = rng.standard_normal((400, 6))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    distance = ((X[:, None] - X) ** 2).mean(axis=(0, 1))
    assert_allclose([start @ distance for start in starts], STARTS)


def test_random_weights_are_of_the_same_sizes_and_repeat():
    starts = random_starts(6, 50, np.random.RandomState(0))
    sizes = 2 * np.sum(starts, axis=1)
    assert (np.array(starts) > 0).all()
    assert min(STARTS) <= sizes.min() < 2 * min(STARTS)
    assert max(STARTS) / 2 < sizes.max() <= max(STARTS)
    assert_array_equal(starts, random_starts(6, 50, np.random.RandomState(0)))
    assert random_starts(6, 0, np.random.RandomState(0)) == []


def test_a_constant_feature_never_has_a_weight(make_theta_search, rng):
    X, y = wave(rng, n=30)
    X[:, 3] = 7.0
    search = make_theta_search(X, y)
    assert_array_equal(search.varying, [True, True, True, False, True])
    (end,) = run_starts(search, [np.full(5, 0.14)], Trace(), search)
    assert end.theta[3] == 0
    assert end.kept[0]


def test_weights_alone_go_with_the_t_values(rng):
    X, weight = rng.standard_normal((60, 5)), np.ones(60)
    t = X @ [1.0, 0.5, 0.0, 0.0, -0.7] + rng.standard_normal(60)
    X, t = (X - X.mean(axis=0)) / X.std(axis=0), (t - t.mean()) / t.std()
    F = np.array([(fit.slope / fit.stderr) ** 2 for fit in (linregress(x, t) for x in X.T)])
    price = 2.0
    pays = np.array([worth_at(f) > price for f in F])
    assert 0 < pays.sum() < 5
    expected = np.where(pays, np.sqrt(F - 1, where=pays, out=np.zeros(5)), 0)
    assert_allclose(univariate_share(X, t, weight, 59.0, price), expected / expected.sum(), rtol=1e-9)


def test_weights_alone_count_rows_by_their_weight(rng):
    X, times = rng.standard_normal((40, 3)), rng.integers(1, 4, 40)
    t = X[:, 0] + rng.standard_normal(40)
    mean, spread = np.average(X, axis=0, weights=times), np.average(t, weights=times)
    X = (X - mean) / np.sqrt(np.average((X - mean) ** 2, axis=0, weights=times))
    t = (t - spread) / np.sqrt(np.average((t - spread) ** 2, weights=times))
    n = float(times.sum() - 1)
    repeated = univariate_share(np.repeat(X, times, axis=0), np.repeat(t, times), np.ones(times.sum()), n, 0.1)
    assert repeated.any()
    assert_allclose(univariate_share(X, t, times.astype(float), n, 0.1), repeated, rtol=1e-9)


def test_a_feature_that_says_it_all_and_features_that_say_nothing(rng):
    t = np.repeat([-1.0, 1.0], 20)
    nothing = np.tile([-1.0, 1.0], 20)
    found = univariate_share(np.column_stack([nothing, t]), t, np.ones(40), 39.0, 1.0)
    assert_array_equal(found, [0, 1])
    assert_array_equal(univariate_share(nothing[:, None], t, np.ones(40), 39.0, 1.0), [0])
