"""The loops of sparse logistic regression, iteration by iteration against the original programs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsebayes.core.scales import em, mackay, shared_em
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import batch, slr
from sparsebayes.engine.bernoulli import BernoulliProblem, Contact, Mode, VariationalProblem
from sparsebayes.engine.incremental import Belief, update
from sparsebayes.engine.loop import Settings, Trace


@pytest.fixture
def with_ones(log_data):
    """Design [X, 1] and classes."""

    def load(problem):
        X, t = log_data(problem)
        return np.column_stack([X, np.ones(len(X))]), t

    return load


@pytest.fixture
def vb_problem(with_ones):
    def make(problem, shared, a0=1e-2, b0=1e-4):
        X, t = with_ones(problem)
        d = X.shape[1]
        return VariationalProblem(DenseRows.of(X), t, np.ones(len(t)), False, 0.0, a0, np.full(d, b0), shared=shared)

    return make


@pytest.mark.parametrize("program", ["vb_logit_fit", "vb_logit_fit_ard"])
def test_variational_bayes_after_as_many_iterations(log_problem, program, vb_problem, recorded):
    expected = recorded(log_problem, f"{program}__tight")["results"]
    shared = program == "vb_logit_fit"
    problem = vb_problem(log_problem, shared)
    d = problem.rows.n_columns
    state = batch.State(problem.rows, np.arange(d), np.full(d, 100.0), Contact(np.zeros(len(problem.t))))
    trace = Trace()
    # The original takes its first w-step before it counts.
    state, _ = batch.run(
        problem,
        state,
        w_step=problem.jaakkola_step,
        rule=shared_em if shared else em,
        trace=trace,
        tol=0.0,
        max_iter=expected["iterations"],
        gone=0.0,
    )
    found = problem.jaakkola_step(state.rows, state.alpha, state.carry)
    assert_allclose(found.posterior.mean, expected["w"], atol=1e-6)
    assert_allclose(state.alpha, np.broadcast_to(expected["E_alpha"], d), rtol=1e-5)
    bound = found.value + problem.scale_term(state.active, state.alpha)
    assert_allclose(bound, expected["bound"], rtol=1e-8)
    path = np.array([*trace.objective, bound])
    assert (np.diff(path) >= -1e-13 * np.abs(path).max()).all()


@pytest.mark.parametrize("shared", [False, True])
def test_variational_bayes_starts_where_the_original_does(shared, vb_problem):
    problem = vb_problem("log_n200_d10", shared)
    result = slr.variational_bayes(problem, Settings(tol=1e-8, max_iter=3000))
    d = problem.rows.n_columns
    first = problem.jaakkola_step(problem.rows, np.full(d, 100.0), Contact(np.zeros(len(problem.t))))
    assert_allclose(
        result.trace.objective[0], first.value + problem.scale_term(np.arange(d), np.full(d, 100.0)), rtol=1e-12
    )
    assert result.converged
    assert result.log_evidence >= result.trace.objective[-1] - 1e-10
    assert_array_equal(result.active, np.arange(d))


@pytest.mark.parametrize("inference", ["var", "lap"])
def test_ridge_iteration_by_iteration(log_problem, inference, with_ones, recorded):
    """The toolbox has not converged after its 1000 iterations; each recorded one of the first 300 is compared."""
    X, t = with_ones(log_problem)
    d = X.shape[1]
    expected = recorded(log_problem, f"slrtb_rlr_{inference}")["results"]
    problem = BernoulliProblem(DenseRows.of(X), t, np.ones(len(t)), False, 0.0, 0.0, np.zeros(d))
    start = Contact(np.full(len(t), 2.0)) if inference == "var" else Mode(np.zeros(d))
    w_step = problem.jaakkola_step if inference == "var" else problem.laplace_step
    state = batch.State(problem.rows, np.arange(d), np.ones(d), start)
    compared, done = 0, 0
    for n, alpha in zip(expected["hist_iterations"], np.ravel(expected["alpha_hist"]), strict=True):
        if n > 300:
            break
        state, _ = batch.run(
            problem, state, w_step=w_step, rule=shared_em, trace=Trace(), tol=0.0, max_iter=n - done, gone=0.0
        )
        done, compared = n, compared + 1
        assert_allclose(state.alpha, alpha, rtol=1e-8)
    assert compared >= 5


@pytest.mark.parametrize("inference", ["var", "lap"])
def test_ard_ends_where_the_toolbox_does(log_problem, inference, with_ones, recorded):
    """From the toolbox's own start: precisions 1 for the columns as they are, ξ = 2."""
    X, t = with_ones(log_problem)
    d = X.shape[1]
    expected = recorded(log_problem, f"slrtb_slr_{inference}")["results"]
    rows = DenseRows.of(X).standardised(np.ones(len(t)), centre=False)
    problem = BernoulliProblem(rows, t, np.ones(len(t)), False, 0.0, 0.0, np.zeros(d))
    start = Contact(np.full(len(t), 2.0)) if inference == "var" else Mode(np.zeros(d))
    w_step = problem.jaakkola_step if inference == "var" else problem.laplace_step
    state = batch.State(rows, np.arange(d), 1 / rows.scale**2, start)
    state, converged = batch.run(problem, state, w_step=w_step, rule=mackay, trace=Trace(), tol=1e-9, max_iter=5000)
    assert converged
    assert_array_equal(state.active, np.ravel(expected["kept_0based"]))
    w = np.zeros(d)
    w[state.active] = w_step(state.rows, state.alpha, state.carry).posterior.mean / rows.scale[state.active]
    assert_allclose(w, expected["w"], atol=1e-5)


def test_rows_one_by_one(log_problem, with_ones, recorded):
    X, t = with_ones(log_problem)
    expected = recorded(log_problem, "vb_logit_fit_iter__shipped")["results"]
    d = X.shape[1]
    belief = Belief.prior(np.full(d, float(d)))
    for i in range(len(t)):
        belief = update(belief, X[i : i + 1], t[i : i + 1], np.ones(1), 1e-5)
    assert_allclose(belief.mean, expected["w"], atol=1e-6)
    assert_allclose(np.diag(belief.covariance), expected["w_var"], rtol=1e-6)
    assert_allclose(belief.logdet, expected["logdet_cov"], rtol=1e-6)
    assert belief.n_seen == len(t)
