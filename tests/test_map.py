"""Every published name in docs/map.md: its call runs, and gives the numbers of the original program or of an oracle."""

import re
from pathlib import Path

import numpy as np
import pytest
from enumeration import enumerated
from numpy.testing import assert_allclose, assert_array_equal
from oracles import laplace_evidence, log_density, marginal_evidence
from scipy.optimize import lsq_linear, minimize
from scipy.special import gammaln, log_ndtr
from sklearn.base import clone
from sklearn.datasets import make_friedman1, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import ShuffleSplit

import sparsebayes
from sparsebayes.core.inclusion import InclusionPrior
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine.least_squares import LeastSquares
from sparsebayes.engine.recipes import RECIPES
from sparsebayes.engine.sets import Sets

MAP = (Path(__file__).parents[1] / "docs" / "map.md").read_text()
HEADER = "| name | paper | call | differs from the paper | tested against |"


def rows():
    """Cells of every table with the map's header."""
    for part in MAP.split(HEADER)[1:]:
        table = part.split("\n\n")[0].strip().splitlines()[1:]
        yield from ([cell.strip() for cell in line.strip("|").split(" | ")] for line in table)


ROWS = {name.strip("| "): (paper, call.strip("`")) for name, paper, call, *_ in rows()}
NAMES = {name: getattr(sparsebayes, name) for name in sparsebayes.__all__}
CHECKS = {}


def checks(*names, **options):
    """Registers a check of these rows; the test calls it with the row's model and the fixtures."""

    def register(function):
        CHECKS.update(dict.fromkeys(names, (function, options)))
        return function

    return register


class Reference:
    """Problems and answers of the original programs."""

    def __init__(self, data, recorded):
        self.data, self.recorded = data, recorded

    def results(self, problem, program):
        return self.recorded(problem, program)["results"]


@pytest.fixture
def reference(log_data, recorded):
    return Reference(log_data, recorded)


@pytest.mark.parametrize("name", ROWS)
def test_the_call_gives_what_the_name_promises(name, reference):
    assert name in CHECKS, f"docs/map.md: {name!r} has no check in tests/test_map.py"
    check, options = CHECKS[name]
    check(eval(ROWS[name][1], dict(NAMES)), reference, **options)


def test_every_check_has_its_row_and_every_recipe_is_in_the_map():
    assert set(CHECKS) == set(ROWS)
    named = " ".join([*ROWS, *(paper for paper, _ in ROWS.values())])
    for recipe in RECIPES:
        assert recipe.name in named or recipe.source.split(" 2")[0].split(",")[0] in named, recipe
    estimators = {cls.__name__ for cls in sparsebayes.estimators.ESTIMATORS}
    assert estimators == {re.match(r"\w+", call)[0] for _, call in ROWS.values()} - {"StabilitySelector"}


# --- linear regression ---


@checks("FMLM (linear)", "MacKay", "EM", "Wipf-Nagarajan")
def linear_ard(model, reference):
    """The case on which both versions of SparseBayes end at one point; evidence in their file lacks -½N log 2π."""
    X, y = reference.data("reg_lin_n100_d50")
    model.fit(X, y)
    for program in ("sparsebayes_gaussian_lin_bias__tight", "sb1rvm_gaussian_lin_bias__tight"):
        theirs = reference.results("reg_lin_n100_d50", program)
        kept = np.array(theirs["relevant_0based"])
        assert_array_equal(model.active_, kept[kept < 50])
        assert model.log_evidence_ == pytest.approx(theirs["logML_final"] - 50 * np.log(2 * np.pi), abs=1e-6)
        assert_allclose(model.coef_[model.active_], np.array(theirs["w"])[kept < 50], atol=1e-5)
        assert_allclose(model.noise_variance_, theirs["noise_var"], rtol=1e-5)


def correlated(n=40, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.5 * rng.standard_normal((n, 1))
    return rng, X


@checks("M-SBL")
def joint_outputs(model, reference):
    """Σ_t log N(y_t; 0, σ²(I + ΦA⁻¹Φᵀ)) has no slope in any log α nor in log σ², and other columns do not help."""
    rng, X = correlated()
    Y = X[:, :2] @ rng.uniform(0.5, 1.5, (2, 3)) + rng.standard_normal((40, 3))
    model.fit(X, Y)
    kept = model.active_[0]
    noise = model.noise_variance_[0]
    assert_array_equal(model.noise_variance_, noise)

    def density(x, columns=kept):
        shape = np.eye(40) + (X[:, columns] / np.exp(x[:-1])) @ X[:, columns].T
        return sum(log_density(y, np.exp(x[-1]) * shape) for y in Y.T)

    at = np.log([*(model.precision_[0] * noise), noise])
    assert model.log_evidence_.sum() == pytest.approx(density(at), rel=1e-8)
    best = minimize(lambda x: -density(x), at + 0.2, method="BFGS", options={"gtol": 1e-6})
    assert_allclose(at, best.x, atol=1e-3)
    for out in np.setdiff1d(range(6), kept):
        more = [density(np.insert(at, -1, x), np.append(kept, out)) for x in np.linspace(-2, 14, 33)]
        assert max(more) <= density(at) + 1e-6


@checks("group ARD")
def grouped(model, reference):
    """The features of a group, in standard units, share one precision, and it is the best one."""
    rng, X = correlated()
    X /= np.sqrt((X**2).mean(axis=0))
    y = X[:, :3] @ [1.0, -1.0, 0.5] + 0.7 * rng.standard_normal(40)
    model.fit(X, y)
    assert {0, 1, 2} <= set(model.active_)
    alpha, kept = model.precision_, model.active_
    assert_allclose(alpha, np.repeat(alpha[::3], 3), rtol=1e-8)

    def density(factor):
        C = model.noise_variance_ * np.eye(40) + (X[:, kept] / (alpha * factor)) @ X[:, kept].T
        return log_density(y, C)

    assert model.log_evidence_ == pytest.approx(density(1.0), rel=1e-8)
    for group in range(len(kept) // 3):
        for step in (0.9, 1.1):
            factor = np.ones(len(kept))
            factor[3 * group : 3 * group + 3] = step
            assert density(factor) <= density(1.0) + model.tol


@checks("non-negative SBL")
def non_negative(model, reference):
    """No weight is negative, and together they are the bounded mode at the published precisions and noise."""
    rng, X = correlated()
    y = X @ [1.0, 0.5, -0.8, 0, 0, 0] + 0.5 * rng.standard_normal(40)
    model.fit(X, y)
    kept = model.active_
    assert 2 not in kept
    assert (model.coef_ >= 0).all()
    ridge = np.diag(np.sqrt(model.precision_ * model.noise_variance_))
    rows, target = np.vstack([X[:, kept], ridge]), np.append(y, np.zeros(len(kept)))
    assert_allclose(model.coef_[kept], lsq_linear(rows, target, bounds=(0, np.inf), tol=1e-14).x, rtol=1e-4)


@checks("Student-t ARD")
def heavy_tails(model, reference):
    """The weights solve the weighted least squares that their own row weights pose; a gross error hardly counts."""
    rng, X = correlated(n=80)
    y = X[:, 0] - X[:, 1] + 0.3 * rng.standard_t(4, 80)
    y[:3] += 30
    model.fit(X, y)
    assert model.noise_freedom_ == 4
    assert_array_equal(model.active_[:2], [0, 1])
    assert_allclose(model.coef_[:2], [1, -1], atol=0.15)
    assert model.outlier_weight_[:3].max() < 0.01
    u = model.outlier_weight_
    kept, level = model.active_, np.ones((80, 1))
    Phi = np.hstack([X[:, kept], level])
    A = np.diag(np.append(model.precision_, 0.0))
    mean = np.linalg.solve(
        Phi.T @ (u[:, None] * Phi) / model.noise_variance_ + A, Phi.T @ (u * y) / model.noise_variance_
    )
    assert_allclose([*model.coef_[kept], model.intercept_], mean, atol=2e-3)


@checks("spike and slab")
def averaged(model, reference):
    """Inclusion probabilities are those of all 2⁶ models, one by one."""
    rng, X = correlated(n=30)
    y = X[:, 0] + 0.4 * X[:, 3] + rng.standard_normal(30)
    model.fit(X, y)
    t = (y - y.mean()) / y.std()
    rows = DenseRows.of(X).standardised(np.ones(30), centre=True)
    problem = LeastSquares(design=rows, t=t, n_weighted=30.0, flat_intercept=True)
    exact = enumerated(Sets(problem, np.zeros(6), InclusionPrior.of(6), True))
    assert_allclose(model.inclusion_probability_, exact.probability, atol=3 * max(model.chain_error_, 0.01))
    assert_allclose(model.coef_ * X.std(axis=0) / y.std(), exact.mean, atol=0.03)


# --- linear classification ---


@checks("SLR-LAP", program="slrtb_slr_lap")
@checks("SLR-VAR", program="slrtb_slr_var")
@checks("RLR-LAP", program="slrtb_rlr_lap")
@checks("RLR-VAR", program="slrtb_rlr_var")
def two_classes(model, reference, program):
    """Weights, the intercept last, and probabilities of new rows."""
    model.fit(*reference.data("log_n200_d10"))
    theirs = reference.results("log_n200_d10", program)
    assert_allclose([*model.coef_[0], *model.intercept_], theirs["w"], atol=1e-5)
    assert_allclose(model.predict_proba(reference.data("log_n200_d10", "test")[0])[:, 1], theirs["p_test"], atol=1e-6)


@checks("L1-SLR-LAP", program="slrtb_l1slr_lap")
@checks("L1-SLR-c", program="slrtb_l1slr_c")
def l1(model, reference, program):
    w = reference.recorded("log_n200_d10", program)["derived_by_harness"]["independent_optimum"]["w"]
    model.fit(*reference.data("log_n200_d10"))
    assert_allclose([*model.coef_[0], *model.intercept_], w, atol=1e-5)


@checks("reweighted L1")
def reweighted(model, reference):
    """The maximum is flat: 1e-6 nats are 4e-5 in a weight."""
    X, t = reference.data("log_n200_d10")
    laplace = clone(model).set_params(inference="laplace").fit(X, t)
    assert_array_equal(model.fit(X, t).active_, laplace.active_)
    assert model.log_evidence_ == pytest.approx(laplace.log_evidence_, abs=1e-5)
    assert_allclose(model.coef_, laplace.coef_, atol=1e-4)


@checks("SMLR", program="slrtb_muclsfy_smlr")
@checks("RMLR", program="slrtb_muclsfy_rmlr")
def three_classes(model, reference, program):
    model.fit(*reference.data("mc_iris"))
    theirs = reference.results("mc_iris", program)
    assert_allclose(model.predict_proba(reference.data("mc_iris", "test")[0]), theirs["p_test"], atol=1e-6)


def with_ones(X):
    return np.column_stack([X, np.ones(len(X))])


@checks("VB logistic", program="vb_logit_fit__tight")
@checks("VB logistic, ARD", program="vb_logit_fit_ard__tight")
def variational_bayes(model, reference, program):
    """The design has a column of ones, last, with the prior of every other."""
    X, t = reference.data("log_n200_d10")
    model.fit(with_ones(X), t)
    theirs = reference.results("log_n200_d10", program)
    assert model.log_evidence_ == pytest.approx(theirs["bound"], rel=1e-8)
    assert_allclose(model.coef_[0], theirs["w"], atol=1e-3)


@checks("VB logistic, row by row")
def row_by_row(model, reference):
    X, t = reference.data("log_n200_d10")
    for row, label in zip(with_ones(X), t, strict=True):
        model.partial_fit(row[None], [label], classes=[0, 1])
    theirs = reference.results("log_n200_d10", "vb_logit_fit_iter__shipped")
    assert_allclose(model.coef_[0], theirs["w"], atol=1e-6)
    assert_allclose(np.diag(model.covariance_), theirs["w_var"], rtol=1e-6)


# --- kernel machines ---


def on_their_vectors(model, X, theirs, key):
    """The model with the candidates that the original program kept, and without the bias if it dropped that."""
    kept = np.array(theirs[key])
    vectors = kept[kept < len(X)]
    options = {"fit_intercept": False} if len(vectors) == len(kept) else {}
    return clone(model).set_params(candidates=X[vectors], tol=1e-10, **options)


@checks("RVM", program="sb1rvm_gaussian_rbf3_bias__tight")
@checks("FRVM", program="sparsebayes_gaussian_rbf3_bias__tight")
def machine(model, reference, program):
    """On the vectors of the original its numbers; left alone an evidence that is not lower, and is right."""
    X, y = reference.data("reg_sinc_g01")
    theirs = reference.results("reg_sinc_g01", program)
    evidence = theirs["logML_final"] - len(y) / 2 * np.log(2 * np.pi)
    same = on_their_vectors(model, X, theirs, "relevant_0based").fit(X, y)
    assert same.log_evidence_ == pytest.approx(evidence, abs=1e-6)
    assert_allclose(same.predict(reference.data("reg_sinc_g01", "test")[0]), theirs["pred_mean"], atol=1e-4 * y.std())
    model.fit(X, y)
    assert model.log_evidence_ > evidence - 1e-6
    Phi = rbf_kernel(X, model.relevance_vectors_, gamma=1 / 9)
    assert model.log_evidence_ == pytest.approx(marginal_evidence(model, Phi, y), rel=1e-8)


@checks("RVM, classes", program="sb1rvm_bernoulli_rbf0p5_bias__tight")
@checks("FRVM, classes", program="sparsebayes_bernoulli_rbf0p5_bias__tight")
def classes(model, reference, program):
    """SparseBayes stops Newton's method at a gradient of 1e-6: evidence to 2e-6, probabilities to 1e-6."""
    X, t = reference.data("cls2d_moons_n150")
    theirs = reference.results("cls2d_moons_n150", program)
    same = on_their_vectors(model, X, theirs, "relevant_0based").fit(X, t)
    assert same.log_evidence_ == pytest.approx(theirs["logML_final"], abs=5e-6)
    new = reference.data("cls2d_moons_n150", "test")[0]
    assert_allclose(same.predict_proba(new)[:, 1], theirs["p_test"], atol=1e-6)
    assert model.fit(X, t).log_evidence_ > theirs["logML_final"] - 1.5  # another local maximum


@checks("variational RVM")
def variational_classes(model, reference):
    X, t = reference.data("cls2d_moons_n150")
    theirs = reference.results("cls2d_moons_n150", "slrtb_rvm_gaussianR8")
    same = on_their_vectors(model, X, theirs, "kept_0based").fit(X, t)
    new = reference.data("cls2d_moons_n150", "test")[0]
    assert_allclose(same.predict_proba(new)[:, 1], theirs["p_test"], atol=1e-5)


def sinc(n=60):
    rng = np.random.default_rng(0)
    X = rng.uniform(-10, 10, (n, 1))
    return X, np.sinc(X[:, 0] / np.pi) + 0.1 * rng.standard_normal(n)


@checks("augmented RVM")
def augmented(model, reference):
    """The variance is that of a posterior with one more basis function, at the new point."""
    X, y = sinc()
    model.fit(X, y)
    new = np.array([[0.3], [14.0], [40.0]])
    std = model.predict(new, return_std=True)[1]
    left = model.noise_variance_ + model.excess_variance_
    for x, value in zip(new, std, strict=True):
        basis = np.vstack([model.relevance_vectors_, x])
        Phi, phi = rbf_kernel(X, basis, gamma=0.2), rbf_kernel([x], basis, gamma=0.2)[0]
        alpha = np.append(model.precision_, 1 / (np.mean(y**2) - left))  # far away the variance of y itself
        Sigma = np.linalg.inv(np.diag(alpha) + Phi.T @ Phi / model.noise_variance_)
        assert value**2 == pytest.approx(phi @ Sigma @ phi + left, rel=1e-6)


@checks("Gaussian process")
def process(model, reference):
    """log N(y; 0, sK + σ²I) at the published noise is the evidence at the best s, and falls with another noise.

    Inducing points may leave a hundredth of a nat per row.
    """
    X, y = sinc()
    model.fit(X, y)
    K = rbf_kernel(X, gamma=0.2)

    def best(noise):
        return max(log_density(y, s * K + noise * np.eye(60)) for s in np.geomspace(0.01, 10, 400))

    here = best(model.noise_variance_)
    assert model.log_evidence_ == pytest.approx(here, abs=0.6)
    assert here > max(best(model.noise_variance_ * factor) for factor in (0.5, 2.0))


@checks("BLS")
def laplace_prior(model, reference):
    """log p(t | g, σ²) - ½λΣg by brute force: no prior variance σ²g is better alone."""
    X, y = sinc()
    model.fit(X, y)
    Phi, noise = rbf_kernel(X, model.relevance_vectors_, gamma=0.1), model.noise_variance_
    assert noise == pytest.approx(0.03)
    assert model.log_evidence_ == pytest.approx(marginal_evidence(model, Phi, y), rel=1e-8)
    g = 1 / (model.precision_ * noise)

    def objective(g):
        return log_density(y, noise * (np.eye(60) + (Phi * g) @ Phi.T)) - 0.5 * model.rate_ * g.sum()

    for j in range(len(g)):
        for factor in (0.9, 1.1):
            assert objective(np.where(np.arange(len(g)) == j, factor, 1.0) * g) <= objective(g) + model.tol


def check_truncated(model, Phi, y):
    """Laplace's evidence with the mass above zero of each weight, no slope, and the sign of every vector's class."""
    t = y == model.classes_[1]
    w = model.dual_coef_
    assert_array_equal(np.sign(w), np.where(t[model.relevance_indices_], 1, -1))
    value, slope, Sigma = laplace_evidence(Phi, t, w, model.precision_, level=model.intercept_[0])
    spread = np.sqrt(np.diag(Sigma)[: len(w)])
    assert model.log_evidence_ == pytest.approx(value + (np.log(2) + log_ndtr(np.abs(w) / spread)).sum(), abs=1e-4)
    assert_allclose(slope, 0, atol=1e-3 * np.abs(model.precision_ * w).max())


@checks("PCVM")
def truncated(model, reference):
    X, y = make_moons(80, noise=0.25, random_state=0)
    model.fit(X, y)
    check_truncated(model, rbf_kernel(X, model.relevance_vectors_, gamma=1.0), y)


def weighted_kernel(model, X, theta):
    """exp(-Σθ(x - z)²) with the kept vectors."""
    scale = np.sqrt(theta)
    return rbf_kernel(X * scale, model.relevance_vectors_ * scale, gamma=1.0)


@checks("PFCVM")
def truncated_with_features(model, reference):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 5))
    y = ((X[:, [1, 3]] ** 2).sum(axis=1) > 1.4) ^ (rng.uniform(size=100) < 0.1)
    model.fit(X, y)
    assert_array_equal(model.get_support(indices=True), [1, 3])
    check_truncated(model, weighted_kernel(model, X, model.feature_weights_), y)


@checks("DRVM")
def features_and_samples(model, reference):
    """The evidence is that of the weighted kernel and has next to no slope in the kept feature weights.

    Turns end at a thousandth of a nat: with a curvature of about one, a slope of √(2 × 0.001) = 0.045.
    """
    X, y = make_friedman1(50, n_features=8, noise=1.0, random_state=1)
    model.fit(X, y)
    kept = model.get_support(indices=True)
    theta = model.feature_weights_
    assert {0, 1, 3} <= set(kept)

    def evidence(theta):
        return marginal_evidence(model, weighted_kernel(model, X, theta), y)

    assert model.log_evidence_ == pytest.approx(evidence(theta), rel=1e-8)
    for k in kept:
        up, down = (evidence(theta * (1 + sign * 1e-3 * (np.arange(8) == k))) for sign in (1, -1))
        assert abs(up - down) / 2e-3 < 0.045


# --- resamples, counts ---


@checks("stability selection")
def stability(model, reference):
    """The frequency is the share of complementary halves whose own fit keeps the feature."""
    rng, X = correlated(n=60)
    y = X[:, 0] + 0.4 * X[:, 1] + rng.standard_normal(60)
    model.fit(X, y)
    assert_array_equal(model.selection_frequency_, np.mean(model.selections_, axis=0))
    assert model.selection_frequency_[0] > 0.9
    cv = ShuffleSplit(4, test_size=0.5, random_state=0)
    other = clone(model).set_params(cv=cv).fit(X, y)
    by_hand = [clone(model.estimator).fit(X[half], y[half]).coef_ != 0 for half, _ in cv.split(X)]
    assert_array_equal(other.selections_, by_hand)


@checks("Poisson ARD")
def counts(model, reference):
    """Laplace's evidence with a log link and a flat intercept, at the published weights and precisions."""
    rng, X = correlated(n=80)
    t = rng.poisson(np.exp(0.3 + 0.6 * X[:, 0] - 0.5 * X[:, 2]))
    model.fit(X, t)
    kept = model.active_
    Phi, w = with_ones(X[:, kept]), np.append(model.coef_[kept], model.intercept_)
    alpha = np.append(model.precision_, 0.0)
    rate = np.exp(Phi @ w)
    H = np.diag(alpha) + Phi.T @ (rate[:, None] * Phi)
    value = (t * np.log(rate) - rate - gammaln(t + 1)).sum() - 0.5 * alpha @ w**2
    value += 0.5 * (np.log(model.precision_).sum() + np.log(2 * np.pi) - np.linalg.slogdet(H)[1])
    assert model.log_evidence_ == pytest.approx(value, rel=1e-7)
    assert_allclose(Phi.T @ (t - rate) - alpha * w, 0, atol=1e-5)
