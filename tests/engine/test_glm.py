"""The recipes for likelihoods that are not Gaussian: against the original programs, and against each other."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats

from sparsebayes.core.likelihoods import Bernoulli, Poisson, StudentT
from sparsebayes.core.prices import FREE, PerUnit, classification_price
from sparsebayes.core.priors import ARD, VariationalGamma
from sparsebayes.core.scales import em, mackay, shared_em
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import batch, glm
from sparsebayes.engine.incremental import Belief, update
from sparsebayes.engine.loop import Settings, Trace
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.view import Contact, Mode


def problem_of(rows, t, *, weight=None, likelihood=None, prior=None, price=FREE, level=False, bounded=False):
    return Problem(
        design=rows,
        t=t,
        weight=np.ones(len(t)) if weight is None else weight,
        likelihood=likelihood or Bernoulli(),
        prior=prior or ARD(),
        price=price,
        flat_intercept=level,
        bounded=bounded,
    )


def w_step(problem):
    """The w-step of the batch loop."""
    return lambda design, alpha, point: point.step(problem, design, alpha)


def everything(rows):
    """All columns, formed."""
    return rows.keep(np.arange(rows.n_columns))


def toolbox_start(problem, inference):
    n, d = len(problem.t), problem.design.n_columns
    return Contact(problem.likelihood, np.full(n, 2.0)) if inference == "var" else Mode(problem.likelihood, np.zeros(d))


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
        return problem_of(DenseRows.of(X), t, prior=VariationalGamma(a0, b0, shared=shared), bounded=True)

    return make


@pytest.mark.parametrize("program", ["vb_logit_fit", "vb_logit_fit_ard"])
def test_variational_bayes_after_as_many_iterations(log_problem, program, vb_problem, recorded):
    expected = recorded(log_problem, f"{program}__tight")["results"]
    shared = program == "vb_logit_fit"
    problem = vb_problem(log_problem, shared)
    d = problem.design.n_columns
    first = Contact(problem.likelihood, np.zeros(len(problem.t)))
    state = batch.State(everything(problem.design), np.arange(d), np.full(d, 100.0), first)
    trace = Trace()
    # The original takes its first w-step before it counts.
    state, _ = batch.run(
        problem,
        state,
        w_step=w_step(problem),
        rule=shared_em if shared else em,
        trace=trace,
        settings=Settings(0.0, expected["iterations"]),
        prune_below=0.0,
    )
    found = state.carry.step(problem, state.design, state.alpha)
    assert_allclose(found.posterior.mean, expected["w"], atol=1e-6)
    assert_allclose(state.alpha, np.broadcast_to(expected["E_alpha"], d), rtol=1e-5)
    bound = found.value + problem.prior.of(state.active).scale_term(state.alpha)
    assert_allclose(bound, expected["bound"], rtol=1e-8)
    path = np.array([*trace.objective, bound])
    assert (np.diff(path) >= -1e-13 * np.abs(path).max()).all()


@pytest.mark.parametrize("shared", [False, True])
def test_variational_bayes_starts_where_the_original_does(shared, vb_problem):
    problem = vb_problem("log_n200_d10", shared)
    result = glm.variational_bayes(problem, Settings(tol=1e-8, max_iter=3000))
    d = problem.design.n_columns
    alpha = np.full(d, 100.0)
    first = Contact(problem.likelihood, np.zeros(len(problem.t))).step(problem, everything(problem.design), alpha)
    assert_allclose(result.trace.objective[0], first.value + problem.prior.scale_term(alpha), rtol=1e-12)
    assert result.converged
    assert result.log_evidence >= result.trace.objective[-1] - 1e-10
    assert_array_equal(result.active, np.arange(d))


@pytest.mark.parametrize("inference", ["var", "lap"])
def test_ridge_iteration_by_iteration(log_problem, inference, with_ones, recorded):
    """The toolbox has not converged after its 1000 iterations; each recorded one of the first 300 is compared."""
    X, t = with_ones(log_problem)
    d = X.shape[1]
    expected = recorded(log_problem, f"slrtb_rlr_{inference}")["results"]
    problem = problem_of(DenseRows.of(X), t, bounded=inference == "var")
    state = batch.State(everything(problem.design), np.arange(d), np.ones(d), toolbox_start(problem, inference))
    compared, done = 0, 0
    for n, alpha in zip(expected["hist_iterations"], np.ravel(expected["alpha_hist"]), strict=True):
        if n > 300:
            break
        state, _ = batch.run(
            problem,
            state,
            w_step=w_step(problem),
            rule=shared_em,
            trace=Trace(),
            settings=Settings(0.0, n - done),
            prune_below=0.0,
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
    problem = problem_of(rows, t, bounded=inference == "var")
    state = batch.State(everything(rows), np.arange(d), 1 / rows.scale**2, toolbox_start(problem, inference))
    state, converged = batch.run(
        problem, state, w_step=w_step(problem), rule=mackay, trace=Trace(), settings=Settings(1e-9, 5000)
    )
    assert converged
    assert_array_equal(state.active, np.ravel(expected["kept_0based"]))
    w = np.zeros(d)
    found = state.carry.step(problem, state.design, state.alpha)
    w[state.active] = found.posterior.mean / rows.scale[state.active]
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


@pytest.mark.parametrize("shared", [False, True])
def test_variational_scale_term_by_quadrature(shared):
    """E_q[Σ ½ log α + log p(α) - log q(α)], of each scale."""
    a0, b0 = 0.7, 0.4
    prior = VariationalGamma(a0, b0, shared=shared)
    alpha = np.full(3, 2.5) if shared else np.array([0.3, 2.0, 40.0])
    weights = 3 if shared else 1
    density = stats.gamma(a0, scale=1 / b0)

    def term(mean):
        shape = a0 + weights / 2
        q = stats.gamma(shape, scale=mean / shape)

        def integrand(y):
            x = np.exp(y)
            return x * q.pdf(x) * (weights * y / 2 + density.logpdf(x) - q.logpdf(x))

        return integrate.quad(integrand, np.log(mean) - 35, np.log(mean) + 5, epsabs=1e-11, limit=300)[0]

    expected = term(2.5) if shared else sum(term(mean) for mean in alpha)
    assert_allclose(prior.scale_term(alpha), expected, rtol=1e-8)


# --- recipes against each other ---


def drawn(likelihood, n=200, d=12, seed=0):
    """Of d features the first three matter."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.linspace(0.5, 3, d)
    eta = (X / np.linspace(0.5, 3, d))[:, :3] @ [1.5, -1.5, 1.2]
    if likelihood == "bernoulli":
        t = (eta + rng.logistic(size=n) > 0).astype(float)
    elif likelihood == "poisson":
        t = rng.poisson(np.exp(0.4 * eta)).astype(float)
    else:
        t = eta + 0.5 * rng.standard_t(2.5, n)
    return DenseRows.of(X).standardised(np.ones(n), centre=True).unweighted(), t


KINDS = {"bernoulli": Bernoulli(), "poisson": Poisson(), "student": StudentT(noise=1.0, freedom=4.0)}
WAYS = [("bernoulli", False), ("bernoulli", True), ("poisson", False), ("student", True)]
every_way = pytest.mark.parametrize(("name", "bounded"), WAYS, ids=["laplace", "bound", "counts", "heavy tails"])


@every_way
@pytest.mark.parametrize("seed", range(2))
def test_every_recipe_with_a_price_finds_the_features(name, bounded, seed, lasso):
    rows, t = drawn(name, seed=seed)
    price = PerUnit(classification_price(len(t), rows.n_columns))
    problem = problem_of(
        rows, t, likelihood=KINDS[name], prior=ARD(min_alpha=1e-6), price=price, level=True, bounded=bounded
    )
    settings = Settings(1e-5, 2000)
    results = [glm.find(problem, settings), glm.batch_then_search(problem, "fixed-point", settings)]
    results.append(glm.sparse(problem, "em", settings))
    if name == "bernoulli" and not bounded:
        results.append(glm.reweighted_l1(problem, lasso, settings))
    for result in results:
        assert result.converged
        assert result.gap <= 1e-3
        assert_array_equal(np.sort(result.active), [0, 1, 2])
        # Each is fitted to 1e-5 nats; the same model has the same evidence by whichever way it was found.
        assert_allclose(result.log_evidence, results[0].log_evidence, atol=1e-3)


def test_noise_of_heavy_tails_is_learned_and_outliers_do_not_matter():
    rows, t = drawn("student", 400)
    likelihood = StudentT(noise=1.0, freedom=4.0, learns_freedom=True)
    price = PerUnit(classification_price(400, rows.n_columns))

    def fit(t):
        problem = problem_of(rows, t, likelihood=likelihood, price=price, level=True, bounded=True)
        return glm.find(problem, Settings(1e-5, 2000))

    result = fit(t)
    # Scale 0.5 and 2.5 degrees of freedom were drawn from; 400 rows tell them to a fifth and to two fifths.
    assert 0.4 < np.sqrt(result.likelihood.noise) < 0.6
    assert 1.7 < result.likelihood.freedom < 3.6
    spoilt = t.copy()
    spoilt[:8] += 1e4
    again = fit(spoilt)
    assert_array_equal(np.sort(again.active), np.sort(result.active))
    order, other = np.argsort(result.active), np.argsort(again.active)
    off = again.posterior.mean[other] - result.posterior.mean[order]
    assert (np.abs(off) < 3 * np.sqrt(result.posterior.var[order])).all()


@every_way
@pytest.mark.parametrize("rule", ["fixed-point", "em"])
def test_ridge_ends_where_the_evidence_has_no_slope(name, bounded, rule):
    rows, t = drawn(name, 80, 6)
    likelihood = StudentT(noise=0.3, freedom=2.5, learns=False) if name == "student" else KINDS[name]
    problem = problem_of(rows, t, likelihood=likelihood, level=True, bounded=bounded)
    result = glm.ridge(problem, rule, Settings(1e-10, 20_000))
    assert result.converged
    assert_array_equal(result.active, np.arange(6))
    assert np.ptp(result.alpha) == 0
    mean, var, alpha = result.posterior.mean, result.posterior.var, result.alpha[0]
    # Slope in log α of the evidence under the sites: ½ Σ (1 - α(μ² + Σ_mm)).
    assert abs(np.sum(1 - alpha * (mean**2 + var))) < 1e-4


def test_l1_by_scales_ends_at_the_optimum_of_l1(lasso):
    rows, t = drawn("bernoulli", 80, 6)
    problem = problem_of(rows, t, level=True)
    direct = glm.l1(problem, 3.0, lasso, Settings(1e-12, 500))
    slow = glm.l1_by_scales(problem, 3.0, Settings(1e-9, 20_000))
    assert_array_equal(direct.active, slow.active)
    assert_allclose(slow.posterior.mean, direct.posterior.mean, atol=1e-5)
    assert_allclose(slow.log_evidence, direct.log_evidence, atol=1e-7)
    assert_allclose(direct.alpha, 3.0 / np.abs(direct.posterior.mean), rtol=1e-9)


def test_stopped_fits_say_so():
    rows, t = drawn("bernoulli")
    for way in (glm.find, lambda p, s: glm.sparse(p, "fixed-point", s), lambda p, s: glm.ridge(p, "em", s)):
        result = way(problem_of(rows, t, level=True), Settings(1e-9, 1))
        assert not result.converged
        assert len(result.trace.infos) == 1


@pytest.mark.parametrize("rule", ["em", "fixed-point"])
def test_one_precision_of_many_columns_does_not_creep(rule, rng):
    """Rows on a line with 200 times as many columns: a plain step of EM goes a thousandth of the way."""
    u = rng.standard_normal(5)
    X = np.outer(u, rng.standard_normal(1000))
    problem = Problem(
        design=DenseRows.of(X).standardised(np.ones(5), centre=True),
        t=(u > np.median(u)).astype(float),
        weight=np.ones(5),
        likelihood=Bernoulli(),
        prior=ARD(min_alpha=1e-6),
        flat_intercept=True,
    )
    found = glm.ridge(problem, rule, Settings(tol=1e-8, max_iter=300))
    assert found.converged
    # MacKay's fixed point: α ‖μ‖² is the effective number of weights, γ = Σ (1 - α Σ_jj).
    last = glm.ridge(problem, "fixed-point", Settings(tol=1e-12, max_iter=3000))
    assert_allclose(found.alpha[0], last.alpha[0], rtol=1e-3)
