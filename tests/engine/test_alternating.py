"""The batch way to feature weights: its algebra by direct solves, and that no step loses."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsebayes.engine.alternating import Alternation, BatchState, nearest_psd, solve_by_rows
from sparsebayes.engine.loop import Trace


@pytest.fixture
def alternation(make_theta_search, rng):
    X = rng.uniform(-2, 2, (40, 5))
    y = np.sin(2 * X[:, 0]) + 0.7 * X[:, 1] + 0.2 * rng.standard_normal(40)
    search = make_theta_search(X, y, tol=1e-2)
    return Alternation(search.model, search, Trace())


def some_state(search, theta, n_centres=10, seed=0):
    active = np.sort(np.random.default_rng(seed).choice(len(search.X), n_centres, replace=False))
    with np.errstate(divide="ignore"):
        return BatchState(theta, theta**-2.0, active, np.full(n_centres, 0.5), 0.1)


@pytest.mark.parametrize("shape", [(6, 30), (30, 6), (8, 8)])
def test_the_form_by_rows_is_the_direct_solve(shape, rng):
    D, beta, gradient = rng.standard_normal(shape), rng.uniform(0.1, 10, shape[1]), rng.standard_normal(shape[1])
    inverse = np.linalg.inv(D.T @ D + np.diag(beta))
    change, var = solve_by_rows(D, beta, gradient)
    assert_allclose(change, inverse @ gradient, rtol=1e-9)
    assert_allclose(var, np.diag(inverse), rtol=1e-9)


def test_positive_is_the_nearest_of_its_kind(rng):
    H = rng.standard_normal((6, 6))
    H = H + H.T
    found, values = nearest_psd(H), np.linalg.eigvalsh(H)
    assert values.min() < 0 < values.max()
    assert np.linalg.eigvalsh(found).min() > -1e-12
    # in the Frobenius norm nothing positive semi-definite is nearer than the negative eigenvalues are large
    assert np.linalg.norm(found - H) == pytest.approx(np.sqrt((values[values < 0] ** 2).sum()))
    assert_allclose(nearest_psd(found), found, atol=1e-12)


def test_the_objective_is_evidence_and_prior(alternation):
    theta = np.array([0.3, 0.1, 0.2, 0.0, 0.05])
    state = some_state(alternation.search, theta)
    K = alternation.search.columns(theta, alternation.search.Z[state.active])
    problem = alternation.model.template
    Phi = K - K.mean(axis=0)
    C = 0.1 * np.eye(40) + Phi @ Phi.T / 0.5
    # on the 39 directions beside the ones, and the flat intercept of density one beside them
    basis = np.linalg.svd(np.ones((1, 40)))[2][1:]
    C, t = basis @ C @ basis.T, basis @ problem.t
    evidence = -0.5 * (39 * np.log(2 * np.pi) + np.linalg.slogdet(C)[1] + t @ np.linalg.solve(C, t)) - 0.5 * np.log(40)
    kept = theta > 0
    prior = -np.log(theta[kept]).sum() - 0.5 * kept.sum()
    expected = evidence + prior - problem.total_price(list(range(10)))
    assert alternation.objective(state, theta) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_a_step_in_the_feature_weights_never_loses(alternation, seed):
    theta = np.random.default_rng(seed).exponential(0.3, 5)
    state = some_state(alternation.search, theta, seed=seed)
    there = alternation.update_theta(state)
    moved = there.theta > 0
    assert moved.any()
    assert (there.theta >= 0).all()
    assert np.isinf(there.beta[~moved]).all()
    if moved.all():  # what is dropped for telling nothing may cost something
        assert alternation.objective(state, there.theta) >= alternation.objective(state, theta) - 1e-9


@pytest.mark.parametrize("seed", range(6))
def test_the_line_search_never_loses(alternation, seed):
    rng = np.random.default_rng(seed)
    theta = rng.exponential(0.3, 5)
    state, change = some_state(alternation.search, theta, seed=seed), rng.standard_normal(5)
    there = alternation._line_search(state, np.arange(5), change)
    assert alternation.objective(state, there) >= alternation.objective(state, theta)
    assert (there >= 0).all()


def test_a_step_is_newtons_where_that_gains(alternation):
    """The gradient is that of evidence and prior, so a small enough step in its direction gains what it says."""
    theta = np.array([0.3, 0.1, 0.2, 0.1, 0.05])
    state = some_state(alternation.search, theta)
    h = 1e-5
    gradient = np.array(
        [(alternation.objective(state, theta + h * e) - alternation.objective(state, theta - h * e)) / (2 * h)
         for e in np.eye(5)]
    )  # fmt: skip
    step = alternation.update_theta(state).theta - theta
    assert gradient @ step > 0


def test_the_end_is_near_a_maximum_in_the_scales(alternation):
    """MacKay's rules have the evidence's maximum for their fixed point: all weights fixed, so that it gets there."""
    state = some_state(alternation.search, np.full(5, 0.14), n_centres=40)
    for _ in range(300):
        state = alternation.update_scales(state)
    K = alternation.search.columns(state.theta, alternation.search.Z[state.active])
    slopes = alternation.model.evidence(K, np.log(np.append(state.alpha, state.noise))).scales
    assert len(state.active) < 25
    assert np.abs(slopes).max() < 0.02


def test_it_begins_with_all_vectors_and_ends_with_few(alternation):
    end = alternation.initialise(np.full(5, 0.14), None)
    columns = alternation.search.columns(end.theta, alternation.search.Z[end.fit.active])
    value = alternation.model.evidence(columns, end.fit.scales).value
    assert end.fit.objective == pytest.approx(value)
    assert alternation.trace.infos[0].n_active > len(end.fit.active)
    assert len(end.fit.active) < 20
    assert end.kept[:2].all()
    assert end.theta[:2].min() > end.theta[2:].max()


def test_more_features_than_rows(make_theta_search, rng):
    X = rng.standard_normal((20, 60))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(20)
    search = make_theta_search(X, y, tol=1e-2)
    end = Alternation(search.model, search, Trace()).initialise(np.full(60, 0.7 / 60), None)
    assert np.isfinite(end.fit.objective)
    assert 0 < end.kept.sum() < 60


def test_a_useless_kernel_does_not_get_wider_for_ever(make_theta_search, rng):
    """Where the target is noise the prior of θ alone would take it to 0, and the columns with it."""
    search = make_theta_search(rng.uniform(size=(30, 3)), np.arange(30.0) % 3, tol=0.05)
    trace = Trace()
    end = Alternation(search.model, search, trace).initialise(np.full(3, 0.23), None)
    assert np.isfinite(end.fit.objective)
    assert end.theta.max() > 1e-8
    assert trace.infos[-1].change <= 0.05


def test_columns_that_have_become_constant_leave(alternation):
    state = some_state(alternation.search, np.array([1e-18, 0, 0, 0, 0]))
    there = alternation.update_scales(state)
    assert len(there.active) == 0
    assert_array_equal(alternation.update_theta(there).theta > 0, state.theta > 0)
    assert there.noise == pytest.approx(40 / 39)  # all that the target varies, by its degrees of freedom
    search = alternation.search  # centres that no row is near to have columns of zeros
    far = replace(search, Z=search.Z + 1e3 * (np.arange(40) < 15)[:, None])
    state = some_state(search, np.full(5, 0.14), n_centres=40)
    assert replace(alternation, search=far).update_scales(state).active.min() >= 15
