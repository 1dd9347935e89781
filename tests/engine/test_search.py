"""The fast search for two classes: its parts by brute force, its ends against the original and our other search."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from scipy.stats import multivariate_normal

from sparsebayes.data.dense import DenseRows
from sparsebayes.data.lowrank import LowRankRows
from sparsebayes.engine import compiled, linearised, rvc, settling, slr
from sparsebayes.engine.bernoulli import BernoulliProblem, Contact, Mode
from sparsebayes.engine.loop import Settings, Trace
from sparsebayes.engine.problem import GaussianProblem
from sparsebayes.engine.sequential import beginning, empty, go, way_from
from sparsebayes.engine.settling import CompiledSettler, Settler, settler

TOL = 1e-6
EXACTLY = Settings(TOL, 1000)
INFERENCES = ("laplace", "variational")
REFERENCES = [
    ("cls2d_ripley_n250", "sparsebayes_bernoulli_rbf0p5_bias__tight"),
    ("cls2d_ripley_n250", "sparsebayes_bernoulli_rbf0p5__tight"),
    ("cls2d_moons_n150", "sparsebayes_bernoulli_rbf0p5_bias__tight"),
]


def kernel(X, Z, gamma=4.0):
    return np.exp(-gamma * ((X[:, None] - Z[None]) ** 2).sum(axis=-1))


def problem_of(Phi, t, *, flat=False, weight=None, least_alpha=1e-6, a=0.0, b=0.0):
    weight = np.ones(len(t)) if weight is None else weight
    rows = DenseRows.of(Phi).standardised(weight, centre=flat).unweighted()
    return BernoulliProblem(rows, t, weight, flat, 0.0, a, np.full(Phi.shape[1], b), least_alpha)


@pytest.fixture(params=[Settler, CompiledSettler])
def form(request):
    """Either form of what settles a model."""
    if request.param is CompiledSettler and compiled.Settler is None:
        pytest.skip("the compiled module is not there, or switched off")
    return request.param


@pytest.fixture(scope="module")
def mixtures():
    """Two classes in the plane, each a mixture of two Gaussians that overlap with the other's."""

    def make(n, seed=0, spread=0.17):
        rng = np.random.default_rng(seed)
        t = (np.arange(n) % 2).astype(np.float64)
        centres = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
        return centres[t.astype(int), rng.integers(0, 2, n)] + spread * rng.standard_normal((n, 2)), t

    return make


@pytest.fixture(params=[(False, False), (True, False), (True, True)], ids=["flat", "weighted", "flat and weighted"])
def setting(request, mixtures):
    """A small problem with a flat intercept, row weights, or both (and a column of ones where it is not flat)."""
    weighted, flat = request.param[0], request.param[1] or not request.param[0]
    X, t = mixtures(60, 3)
    Phi = kernel(X, X)
    weight = np.random.default_rng(1).integers(1, 4, len(t)).astype(np.float64) if weighted else None
    return problem_of(Phi if flat else np.column_stack([Phi, np.ones(len(t))]), t, flat=flat, weight=weight)


def design(problem):
    """Φ of all candidates, from the given numbers."""
    rows = problem.rows
    return (rows.X - rows.mean) / rows.scale


def laplace_by_hand(problem, active, alpha):
    """Log evidence: the mode by a general optimiser polished with plain Newton steps, a dense determinant."""
    flat, t, weight = problem.flat_intercept, problem.t, problem.weight
    Phi = design(problem)[:, active]
    if flat:
        Phi = np.column_stack([Phi, np.ones(len(t))])
    A = np.diag(np.append(alpha, 0.0) if flat else alpha)

    def loss(w):
        eta = Phi @ w
        return -weight @ (t * eta + log_expit(-eta)) + 0.5 * w @ A @ w

    def slope(w):
        return -Phi.T @ (weight * (t - expit(Phi @ w))) + A @ w

    def curvature(w):
        p = expit(Phi @ w)
        return Phi.T @ ((weight * p * (1 - p))[:, None] * Phi) + A

    w = minimize(loss, np.zeros(len(A)), jac=slope, method="BFGS", options={"maxiter": 2000}).x
    for _ in range(20):
        w = w - np.linalg.solve(curvature(w), slope(w))
    value = -loss(w) + 0.5 * np.log(alpha).sum() - 0.5 * np.linalg.slogdet(curvature(w))[1]
    return value + flat * 0.5 * np.log(2 * np.pi), w


def factors_by_hand(problem, b, h, active, alpha, j):
    """s and q of candidate j, itself left out of the model, by a dense inverse of the marginal covariance."""
    Phi, others = design(problem), active != j
    C = np.diag(1 / b) + (Phi[:, active[others]] / alpha[others]) @ Phi[:, active[others]].T
    inverse = np.linalg.inv(C)
    if problem.flat_intercept:  # the limit of a column of ones with a prior precision that vanishes
        ones = inverse @ np.ones(len(b))
        inverse = inverse - np.outer(ones, ones) / ones.sum()
    return Phi[:, j] @ inverse @ Phi[:, j], Phi[:, j] @ inverse @ (h / b)


def kept(problem, result):
    """The model that was found, to be settled again."""
    rows = problem.rows.keep(result.active)
    intercept = result.predictor.intercept(rows.mean) if problem.flat_intercept else 0.0
    return rvc.Model(result.active, result.alpha, Mode(result.posterior.mean, intercept))


@pytest.mark.parametrize(("name", "program"), REFERENCES)
def test_no_worse_than_the_original(name, program, log_data, recorded):
    """The evidence has many maxima; ours may be another, but not by a nat worse."""
    X, t = log_data(name)
    ones = "bias" in program
    expected = recorded(name, program)["results"]
    problem = problem_of(np.column_stack([kernel(X, X), np.ones(len(t))]) if ones else kernel(X, X), t)
    result = rvc.solve(problem, "laplace", EXACTLY)
    assert result.converged
    assert result.gap <= TOL
    assert result.log_evidence >= expected["logML_final"] - 1
    by_hand, w = laplace_by_hand(problem, result.active, result.alpha)
    assert_allclose(result.log_evidence, by_hand, rtol=1e-10)
    assert_allclose(result.posterior.mean, w, atol=1e-6 * np.abs(w).max())


@pytest.mark.parametrize(("name", "program"), REFERENCES)
def test_settles_where_the_original_does(name, program, form, log_data, recorded):
    """From the neighbourhood the same fixed point; the original's weights are good to 1e-6 of the largest or so."""
    X, t = log_data(name)
    expected = recorded(name, program)["results"]
    problem = problem_of(np.column_stack([kernel(X, X), np.ones(len(t))]), t)
    active = np.array(expected["relevant_0based"])
    scale = problem.rows.scale[active]
    alpha = np.array(expected["alpha_original_scale"]) / scale**2 * np.geomspace(0.8, 1.25, len(active))
    start = rvc.Model(active, alpha, Mode(np.array(expected["w"]) * scale))
    settler = form(problem)
    model, view, _ = settler.settle(start, settler.formed(active), 1e-9)
    assert_array_equal(model.active, active)
    assert_allclose(model.evidence, expected["logML_final"], atol=1e-6)
    assert_allclose(view.mean / scale, expected["w"], atol=2e-5 * np.abs(expected["w"]).max())
    assert_allclose(model.alpha * scale**2, expected["alpha_original_scale"], rtol=1e-4)


def test_newton_step_in_log_precisions(rng):
    """Gradient and curvature by differences of the density of the view; near the maximum the step is Newton's."""
    Phi, b = rng.standard_normal((30, 3)), rng.uniform(0.1, 1.0, 30)
    target = Phi @ [1.5, -1.0, 0.7] + rng.standard_normal(30) / np.sqrt(b)
    a, rate = 0.3, np.array([0.1, 0.2, 0.05])

    def value(x):
        alpha = np.exp(x)
        C = np.diag(1 / b) + (Phi / alpha) @ Phi.T
        return multivariate_normal(np.zeros(30), C).logpdf(target) + (a * x - rate * alpha).sum()

    x = minimize(lambda x: -value(x), np.zeros(3)).x + 0.05
    h, eye = 1e-3, np.eye(3)
    slope = np.array([(value(x + h * e) - value(x - h * e)) / (2 * h) for e in eye])
    curvature = np.array(
        [
            [
                (
                    value(x + h * (e + f)) - value(x + h * (e - f)) - value(x - h * (e - f)) + value(x - h * (e + f))
                ) / (4 * h**2)
                for f in eye
            ]
            for e in eye
        ]
    )  # fmt: skip
    assert (np.linalg.eigvalsh(-curvature) > settling.LEAST_CURVATURE).all()
    Sigma = np.linalg.inv(np.diag(np.exp(x)) + Phi.T @ (b[:, None] * Phi))
    step = settling.newton_scales(Sigma @ Phi.T @ (b * target), Sigma, np.exp(x), a, rate)
    # Second differences at h = 1e-3 have rounding errors of 1e-14 × |value| / h² ≈ 1e-7.
    assert_allclose(step, np.linalg.solve(-curvature, slope), rtol=1e-4)


@pytest.mark.parametrize("inference", INFERENCES)
def test_factors_by_dense_inverse(setting, inference, form):
    problem = setting
    settler = form(problem)
    active, alpha = np.array([4, 17, 30]), np.array([0.3, 2.0, 0.7])
    carry = Mode(np.array([1.0, -0.5, 0.3]), 0.2 * problem.flat_intercept)
    if inference == "variational":
        carry = Contact(np.linspace(0.1, 3.0, len(problem.t)))
    view = settler.view(settler.formed(active), rvc.Model(active, alpha, carry))
    found = settler.factors(view, problem.rows)
    b, h = view.sites.precision, view.sites.shift
    outside = np.setdiff1d(np.arange(problem.rows.n_columns), active)
    expected = np.array([factors_by_hand(problem, b, h, active, alpha, j) for j in outside])
    scale = np.abs(expected).max(axis=0)
    assert_allclose(found.S[outside], expected[:, 0], atol=1e-10 * scale[0])
    assert_allclose(found.Q[outside], expected[:, 1], atol=1e-10 * scale[1])
    assert_array_equal(np.flatnonzero(found.copy), active)


@pytest.mark.parametrize("inference", INFERENCES)
def test_certificate_by_dense_inverse(setting, inference):
    """At the end α(μ² + Σ_mm) = 1 inside, and q² ≤ s outside but for what did not rise when it was tried."""
    problem = setting
    result = rvc.solve(problem, inference, EXACTLY)
    assert result.converged
    assert result.gap <= TOL
    active, alpha, posterior = result.active, result.alpha, result.posterior
    assert len(active)
    # Settled to 1e-6 in γ log α.
    assert_allclose(alpha * (posterior.mean**2 + posterior.var), 1.0, atol=1e-5)
    rows = problem.rows.keep(active)
    carry = kept(problem, result).carry
    if inference == "variational":
        carry = Contact(np.sqrt(result.predictor.eta**2 + result.predictor.variance()))
    sites = problem.sites(rows, carry)
    worth = np.zeros(problem.rows.n_columns)
    for j in range(len(worth)):
        s, q = factors_by_hand(problem, sites.precision, sites.shift, active, alpha, j)
        r = max(q**2 / s, 1.0)
        worth[j] = 0.5 * (r - 1 - np.log(r))
    assert_allclose(result.worth, worth, atol=1e-5 * worth.max())
    for j in np.setdiff1d(np.flatnonzero(worth > 2 * TOL), active):
        s, q = factors_by_hand(problem, sites.precision, sites.shift, active, alpha, j)
        grown = rvc.Model(np.append(active, j), np.append(alpha, s**2 / (q**2 - s)), carry.grow())
        form = settler(problem)
        loose = form.settle(grown, form.formed(grown.active), rvc.LOOSE)
        there = form.settle(loose.model, loose.view.Phi, TOL)
        assert there.model.evidence <= result.log_evidence + 2 * TOL


@pytest.mark.parametrize("inference", INFERENCES)
def test_evidence_and_posterior_are_those_of_the_problem(setting, inference):
    """The search sees a flat intercept as a column; the problem eliminates it by centring."""
    problem = setting
    result = rvc.solve(problem, inference, EXACTLY)
    if inference == "laplace":
        assert_allclose(result.log_evidence, laplace_by_hand(problem, result.active, result.alpha)[0], rtol=1e-10)
    assert_allclose(result.trace.objective[-1], result.log_evidence, atol=2 * TOL)


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("seed", range(4))
def test_ends_like_the_other_search(inference, seed, mixtures):
    """Both climb to a maximum, not always the same one: on such small data ours is not by a nat the worse."""
    X, t = mixtures(60, seed)
    problem = problem_of(np.column_stack([kernel(X, X, 1.0), np.ones(len(t))]), t)
    w_step, carry = slr.first_carry(problem, inference, 0)
    nothing = linearised.Model(np.empty(0, dtype=np.intp), np.empty(0), carry)
    other, _ = linearised.Search(problem, w_step, TOL, 1000).run(nothing, Trace())
    result = rvc.solve(problem, inference, EXACTLY)
    assert result.converged
    assert -1 < result.log_evidence - other.evidence < 3


def test_evidence_of_exact_models_rises(mixtures, monkeypatch):
    monkeypatch.setattr(rvc, "NARROW", 0)  # without a crowd there are more steps
    rises = 0
    for seed in range(6, 14):  # among them 12, where additions have to be taken back
        X, t = mixtures(150, seed)
        infos = rvc.solve(problem_of(kernel(X, X), t, flat=True), "laplace", EXACTLY).trace.infos
        exact = [info.objective for info in infos if info.action == "survey"]
        assert (np.diff(exact) >= 0).all()
        rises += len(exact) > 1
        for before, after in pairwise(infos):
            # Only exact settling, and going back to the last exact model, may lower it.
            assert after.objective >= before.objective or after.action == "survey"
    assert rises > 1


@pytest.mark.parametrize("free", [True, False])
def test_a_crowd_is_what_a_regression_on_the_labels_takes_in(free, mixtures):
    """On pseudo-targets (t - p)/√b with the noise far too low, all written down by hand."""
    X, t = mixtures(60, 1)
    weight = np.random.default_rng(1).integers(1, 4, len(t)).astype(np.float64)
    problem = problem_of(kernel(X, X), t, flat=free, weight=weight)
    share = weight @ t / weight.sum() if free else 0.5
    root = np.sqrt(weight * share * (1 - share))
    rows = DenseRows.of(root[:, None] * design(problem))
    by_hand = GaussianProblem(rows, weight * (t - share) / root, weight.sum(), free, 0.0, 0.0, np.zeros(60), 0.0, 0.0)
    way = way_from(by_hand, empty(rvc.CROWD_NOISE))
    go(way, beginning(by_hand), trace=Trace(), max_iter=100, callback=None)
    crowd = rvc.crowd(problem)
    assert_array_equal(crowd, way.end().active)
    assert 8 < len(crowd) <= weight.sum() / 4
    assert len(rvc.solve(problem, "laplace", EXACTLY).active) < 0.7 * len(crowd)


def test_a_wide_dictionary_has_no_crowd(mixtures, monkeypatch):
    X, t = mixtures(60, 1)
    problem = problem_of(kernel(X, X), t, flat=True)
    monkeypatch.setattr(rvc, "NARROW", 59)
    assert len(rvc.crowd(problem)) == 0


@pytest.mark.parametrize("inference", INFERENCES)
def test_weights_are_repetitions(inference, mixtures):
    X, t = mixtures(50, 2)
    weight = np.random.default_rng(0).integers(1, 4, len(t)).astype(np.float64)
    Phi, times = kernel(X, X), weight.astype(int)
    once = rvc.solve(problem_of(Phi, t, flat=True, weight=weight), inference, EXACTLY)
    often = rvc.solve(problem_of(np.repeat(Phi, times, axis=0), np.repeat(t, times), flat=True), inference, EXACTLY)
    assert_array_equal(np.sort(once.active), np.sort(often.active))
    assert_allclose(once.log_evidence, often.log_evidence, rtol=1e-7)


@pytest.mark.parametrize("inference", INFERENCES)
def test_scale_of_columns_does_not_matter(inference, mixtures):
    X, t = mixtures(60, 1)
    factor = 10.0 ** np.linspace(-6, 6, len(t))
    results = []
    for scale in (1.0, factor):
        rows = DenseRows.of(kernel(X, X) * scale)
        problem = BernoulliProblem(rows, t, np.ones(len(t)), False, 0.0, 0.0, np.zeros(len(t)), 0.0)
        results.append(rvc.solve(problem, inference, EXACTLY))
    assert_array_equal(results[0].active, results[1].active)
    # Both are settled to so many nats, by steps that rounding sends apart.
    assert_allclose(results[0].log_evidence, results[1].log_evidence, rtol=0, atol=TOL)
    # At a maximum with curvature one, TOL nats are √(2 TOL) in log α.
    ratio = results[1].alpha / results[0].alpha / factor[results[1].active] ** 2
    assert_allclose(np.log(ratio), 0.0, atol=np.sqrt(2 * TOL))


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("free", [True, False], ids=["flat intercept", "no intercept"])
def test_separable_classes(inference, free, mixtures):
    X, t = mixtures(80, 0, spread=0.02)
    problem = problem_of(kernel(X, X), t, flat=free)
    result = rvc.solve(problem, inference, EXACTLY)
    assert np.isfinite(result.posterior.mean).all()
    assert (result.alpha >= problem.least_alpha).all()
    assert_array_equal(result.predictor.eta > 0, t == 1)
    assert -len(t) * np.log(2) / 2 < result.log_evidence < 0


def test_copies_do_not_enter_together(mixtures):
    X, t = mixtures(60, 4)
    Phi = kernel(X, X)
    problem = problem_of(np.column_stack([Phi, 3 * Phi]), t)
    result = rvc.solve(problem, "laplace", EXACTLY)
    once = rvc.solve(problem_of(Phi, t), "laplace", EXACTLY)
    assert result.converged
    assert len(set(result.active % len(t))) == len(result.active)
    assert_allclose(result.log_evidence, once.log_evidence, rtol=1e-9)
    # A basis whose precision is still far too large would gain by its copy as much as by itself.
    form, j = settler(problem), int(once.active[0])
    model = rvc.Model(np.array([j]), np.array([1e3]), Mode(np.zeros(1)))
    now = rvc.Settled(model, form.view(form.formed(model.active), model), False)
    found = form.factors(now.view, problem.rows)
    state = rvc.State(now, now, found, rvc.Pool(np.arange(120), problem.rows, 0.0))
    _, brings = rvc.Search(problem, TOL).additions(state, np.arange(120), found)
    assert found.Q[j + 60] ** 2 > 2 * found.S[j + 60]
    assert brings[j] == brings[j + 60] == 0


@pytest.mark.parametrize("free", [True, False], ids=["flat intercept", "no intercept"])
def test_nothing_to_find(free):
    """Every input has both classes, once each."""
    X = np.random.default_rng(0).standard_normal((20, 2))
    X, t = np.repeat(X, 2, axis=0), np.tile([0.0, 1.0], 20)
    result = rvc.solve(problem_of(kernel(X, X), t, flat=free), "laplace", EXACTLY)
    assert result.converged
    assert not len(result.active)
    assert result.gap == 0
    # A flat intercept is integrated out: N/4 is the curvature at the mode.
    assert_allclose(result.log_evidence, -40 * np.log(2) + free * 0.5 * np.log(2 * np.pi / 10), rtol=1e-12)


def test_hyper_prior_counts(mixtures):
    """With Gamma(a, b) the precisions settle at (2a + 1) / (2b + μ² + Σ_mm)."""
    X, t = mixtures(60, 3)
    result = rvc.solve(problem_of(kernel(X, X), t, flat=True, a=0.5, b=0.2), "laplace", EXACTLY)
    assert result.converged
    mean, var = result.posterior.mean, result.posterior.var
    assert_allclose(result.alpha, 2.0 / (0.4 + mean**2 + var), rtol=1e-5)


def test_out_of_steps(mixtures):
    X, t = mixtures(60, 3)
    result = rvc.solve(problem_of(kernel(X, X), t), "laplace", Settings(TOL, 2))
    assert not result.converged
    assert result.gap > TOL
    assert len(result.trace.infos) == 2


def test_kernel_matrix_that_is_never_formed(mixtures):
    """Low-rank rows are good to 1e-6; kept columns are exact, so that the evidence is the dense model's."""
    X, t = mixtures(120, 6)
    dense = problem_of(kernel(X, X), t, flat=True)
    rows = LowRankRows.of(kernel, X).standardised(dense.weight, centre=True).unweighted()
    result = rvc.solve(replace(dense, rows=rows), "laplace", Settings(1e-3, 1000))
    assert_allclose(result.log_evidence, laplace_by_hand(dense, result.active, result.alpha)[0], rtol=1e-5)
    assert abs(result.log_evidence - rvc.solve(dense, "laplace", Settings(1e-3, 1000)).log_evidence) < 1
