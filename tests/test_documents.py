"""The code in the documents runs, and says what is true."""

import ast
import re
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.optimize import approx_fprime
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, nbinom, norm
from sklearn.exceptions import ConvergenceWarning

from sparsebayes import ARDRegressor, RVMRegressor
from sparsebayes.core.kernels import rbf
from sparsebayes.core.likelihoods import Bernoulli
from sparsebayes.core.prices import PerUnit, total
from sparsebayes.data.dense import DenseRows
from sparsebayes.engine import glm
from sparsebayes.engine.ascent import Limits
from sparsebayes.engine.compiled import COMPILED
from sparsebayes.engine.gaussian_search import climb
from sparsebayes.engine.least_squares import LeastSquares, empty
from sparsebayes.engine.loop import Settings, Trace
from sparsebayes.engine.problem import Problem
from sparsebayes.engine.regression import solve

ROOT = Path(__file__).parents[1]


def python_blocks(document):
    return re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), flags=re.DOTALL)


@pytest.fixture(scope="module")
def contributed():
    """Everything that the examples of CONTRIBUTING define."""
    namespace = {}
    for code in python_blocks("CONTRIBUTING.md"):
        exec(code, namespace)
    return namespace


def standard_problem(X, y, **parts):
    """Centred columns of mean square one, a target of variance one, and the given parts."""
    n = len(X)
    design = parts.pop("design", None) or DenseRows.of(X).standardised(np.ones(n), centre=True)
    return LeastSquares(design=design, t=(y - y.mean()) / y.std(), n_weighted=float(n), flat_intercept=True, **parts)


def evidence_of(problem, active, alpha, noise):
    """Log density of the error contrasts, which is the evidence with a flat intercept, but for ½ log N."""
    n, Phi = len(problem.t), problem.design.columns(np.array(active, dtype=np.intp))
    contrasts = null_space(np.ones((1, n))).T
    covariance = contrasts @ (noise * np.eye(n) + (Phi / alpha) @ Phi.T) @ contrasts.T
    return multivariate_normal.logpdf(contrasts @ problem.t, cov=covariance)


def test_the_example_of_a_model_ends_at_a_maximum(rng, contributed):
    X = rng.standard_normal((40, 6))
    y = X @ rng.standard_normal(6) + 0.5 * rng.standard_normal(40)
    y = y / y.std()  # in standard units precisions need no conversion
    alpha, noise, converged = contributed["bayesian_ridge"](X, y)
    problem = standard_problem(X, y)

    def evidence(log_alpha, log_noise):
        return evidence_of(problem, range(6), np.exp(log_alpha), np.exp(log_noise))

    at = np.log([alpha, noise])
    slope = approx_fprime(at, lambda x: evidence(*x), 1e-6)
    assert converged
    assert np.abs(slope).max() < 1e-3  # nats per e-fold, at tol=1e-10 nats; forward differences are good to 1e-5
    assert evidence(*at) > evidence(*(at + 0.1))


def test_the_example_of_a_likelihood_is_the_negative_binomial(contributed):
    likelihood = contributed["NegativeBinomial"](k=2.5)
    t, eta = (each.ravel() for each in np.meshgrid([0.0, 1.0, 4.0, 30.0], [-3.0, 0.0, 2.0, 5.0]))
    mean = np.exp(eta)
    np.testing.assert_allclose(likelihood.log_density(t, eta), nbinom.logpmf(t, 2.5, 2.5 / (2.5 + mean)), rtol=1e-9)
    step = 1e-5  # central differences: step² from the formula, 1e-16/step from rounding
    slope, curvature = likelihood.derivatives(t, eta)
    up, down = likelihood.derivatives(t, eta + step), likelihood.derivatives(t, eta - step)
    difference = likelihood.log_density(t, eta + step) - likelihood.log_density(t, eta - step)
    np.testing.assert_allclose(slope, difference / (2 * step), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(curvature, -(up[0] - down[0]) / (2 * step), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(likelihood.skew(t, eta), (up[1] - down[1]) / (2 * step), rtol=1e-6, atol=1e-8)
    counts = np.array([0.0, 3.0, 1.0])
    level = likelihood.base_level(counts, np.ones(3))
    assert abs(likelihood.derivatives(counts, np.full(3, level))[0].sum()) < 1e-12


def test_the_example_of_a_likelihood_runs_in_the_engine(rng, contributed):
    """It finds the two features, and Laplace's evidence is near that of quadrature over weight and intercept."""
    X = rng.standard_normal((300, 30))
    mean = np.exp(0.5 + X[:, 0] - 0.8 * X[:, 1])
    t = rng.negative_binomial(3.0, 3.0 / (3.0 + mean)).astype(float)
    result = contributed["sparse_counts"](X, t, 3.0)
    assert sorted(result.active) == [0, 1]
    assert result.converged
    one = contributed["sparse_counts"](X[:, :1], t, 3.0)
    likelihood = contributed["NegativeBinomial"](3.0)
    x = (X[:, 0] - X[:, 0].mean()) / X[:, 0].std()
    (w,), (alpha,) = one.posterior.mean, one.alpha
    weights = w + np.linspace(-8, 8, 81) * np.sqrt(one.posterior.var[0])
    levels = one.level + np.linspace(-8, 8, 81) * np.sqrt(one.level_variance)
    origin = one.origin[0]
    density = (
        np.array([[likelihood.log_density(t, level + v * (x - origin)).sum() for level in levels] for v in weights])
        + norm.logpdf(weights, scale=alpha**-0.5)[:, None]
    )
    quadrature = logsumexp(density) + np.log((weights[1] - weights[0]) * (levels[1] - levels[0]))
    assert one.log_evidence == pytest.approx(quadrature, abs=0.02)  # Laplace's own error, of order 1/N


def test_the_example_of_a_prior_selects_as_enumeration_does(rng, contributed):
    X = rng.standard_normal((60, 8))
    y = X @ np.array([1.0, -0.7, 0.5, 0.3, 0, 0, 0, 0]) + rng.standard_normal(60)
    slab, noise, price = contributed["Slab"](known=4.0), 0.4, 2.0
    problem = standard_problem(X, y, prior=slab, price=PerUnit(price))
    limits = Limits(1e-9, hold_noise=True)
    snapshot, converged = climb(problem, empty(noise), limits, Trace(), Settings(1e-9, 1000))
    supports = [list(support) for k in range(9) for support in combinations(range(8), k)]
    best = max(supports, key=lambda support: evidence_of(problem, support, 4.0, noise) - price * len(support))
    assert converged
    assert 1 < len(best) < 8
    assert sorted(snapshot.active) == best
    np.testing.assert_array_equal(snapshot.alpha[snapshot.active], 4.0)


def test_the_example_of_a_prior_holds_its_precision_under_any_likelihood(rng, contributed):
    X = rng.standard_normal((200, 5))
    t = (rng.random(200) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(float)
    design = DenseRows.of(X).standardised(np.ones(200), centre=True)
    problem = Problem(
        design=design,
        t=t,
        weight=np.ones(200),
        likelihood=Bernoulli(),
        prior=contributed["Slab"](known=3.0),
        price=PerUnit(3.0),
    )
    result = glm.find(problem, Settings(1e-6, 1000))
    assert list(result.active) == [0]
    np.testing.assert_allclose(result.alpha, 3.0, rtol=1e-9)


def test_the_example_of_a_price_is_charged(rng, contributed):
    """The end is a local maximum of the evidence less (2^k - 1) nats, by brute force; PerUnit keeps more."""
    X = rng.standard_normal((100, 12))
    y = X @ np.repeat([0.6, 0.0], 6) + rng.standard_normal(100)
    price = contributed["Doubling"](2.0)
    doubled = solve(standard_problem(X, y, price=price), "sequential", Settings(1e-8, 1000))
    plain = solve(standard_problem(X, y, price=PerUnit(2.0)), "sequential", Settings(1e-8, 1000))
    k = len(doubled.active)
    assert total(price, doubled.active) == 2.0 * (2**k - 1)
    assert len(plain.active) == 6
    assert 1 < k < 6
    assert doubled.gap <= 1e-8
    assert (doubled.worth[doubled.active] > 2.0 * 2 ** (k - 1)).all()
    assert (np.delete(doubled.worth, doubled.active) < 2.0 * 2**k).all()


@pytest.mark.parametrize("compiled", [True, False])
def test_the_example_of_a_data_source_gives_the_same_model(rng, contributed, tmp_path, monkeypatch, compiled):
    monkeypatch.setattr("sparsebayes.engine.compiled.COMPILED", compiled and COMPILED)
    X = rng.standard_normal((80, 600))
    X[:, 7] = 1.0
    mapped = np.memmap(tmp_path / "columns", dtype=np.float64, mode="w+", shape=X.shape, order="F")
    mapped[:] = X
    y = X[:, :5].sum(axis=1) + 0.5 * rng.standard_normal(80)
    price, settings = PerUnit(np.log(600), 79), Settings(1e-6, 1000)
    there = contributed["MappedColumns"](mapped, block=100)
    found = solve(standard_problem(X, y, price=price, design=there), "sequential", settings)
    expected = solve(standard_problem(X, y, price=price), "sequential", settings)
    np.testing.assert_array_equal(np.sort(found.active), np.arange(5))
    np.testing.assert_array_equal(found.active, expected.active)
    np.testing.assert_allclose(found.posterior.mean, expected.posterior.mean, rtol=1e-6)
    assert found.log_evidence == pytest.approx(expected.log_evidence, abs=1e-6)


def test_the_example_of_a_kernel_is_the_rational_quadratic(rng, contributed):
    kernel = contributed["rational_quadratic"]
    X, Z = rng.standard_normal((5, 3)), rng.standard_normal((4, 3))
    squared = ((X[:, None] - Z) ** 2).sum(axis=-1)
    np.testing.assert_allclose(kernel(X, Z, gamma=0.7, degree=2.0), (1 + 0.35 * squared) ** -2)
    np.testing.assert_allclose(kernel(X, Z, gamma=0.7, degree=1e9), rbf(X, Z, gamma=0.7), rtol=1e-6)
    x = np.linspace(-3, 3, 60)[:, None]
    model = RVMRegressor(kernel=kernel).fit(x, np.sin(2 * x[:, 0]) + 0.05 * rng.standard_normal(60))
    assert model.score(x, np.sin(2 * x[:, 0])) > 0.98


def names_in(path):
    """Functions, classes and Class.method of a Python file; of C++ everything that is followed by a parenthesis."""
    text = path.read_text()
    if path.suffix != ".py":
        return set(re.findall(r"(\w+)\(", text))
    names = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            names |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return names


WALK = re.findall(r"`([\w/]+\.(?:py|hpp)):([\w.]+)`", (ROOT / "docs/walk.md").read_text())


@pytest.mark.parametrize(("path", "name"), sorted(set(WALK)), ids=str)
def test_the_walk_names_what_exists(path, name):
    assert name in names_in(ROOT / "src/sparsebayes" / path)


def test_the_first_walk_has_no_more_than_eight_files():
    first = (ROOT / "docs/walk.md").read_text().split("## Classes")[0]
    files = {path for path, name in WALK if f"`{path}:{name}`" in first}
    assert 5 < len(files) <= 8


def test_the_first_walk_is_the_way_of_a_fit(rng):
    """Every Python function of the first walk is called by a fit."""
    first = (ROOT / "docs/walk.md").read_text().split("## Classes")[0]
    called = set()

    def note(frame, event, arg):
        path = frame.f_code.co_filename
        if event == "call" and "sparsebayes" in path:
            called.add((path.split("sparsebayes/")[-1], frame.f_code.co_qualname))

    X = rng.standard_normal((40, 600))
    sys.setprofile(note)
    try:
        ARDRegressor().fit(X, X[:, 0] + 0.1 * rng.standard_normal(40))
    finally:
        sys.setprofile(None)
    named = {(path, name) for path, name in WALK if path.endswith(".py") and f"`{path}:{name}`" in first}
    assert named - called == set()


CITATIONS = [
    (path.relative_to(ROOT).as_posix(), number)
    for path in sorted((ROOT / "src").rglob("*.py"))
    for cited in re.findall(r"docs/mathematics\.md,\s+sections? ([\d., and to]+)", path.read_text())
    for number in re.findall(r"\d+(?:\.\d)?", cited)
]


@pytest.mark.parametrize(("path", "number"), sorted(set(CITATIONS)))
def test_cited_sections_of_the_mathematics_exist(path, number):
    headings = re.findall(r"^#+ (\d+(?:\.\d)?)", (ROOT / "docs/mathematics.md").read_text(), flags=re.MULTILINE)
    assert number in headings


def test_the_mathematics_are_cited_by_their_address():
    for path in (ROOT / "src").rglob("*.py"):
        assert not re.search(r"(?<!docs/)mathematics, section", path.read_text()), path


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def anchors(page):
    """Addresses of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for address in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        path, _, anchor = address.partition("#")
        if "://" in path or path.startswith("auto_examples"):  # which Sphinx makes
            continue
        target = (page.parent / path) if path else page
        assert target.exists(), address
        assert not anchor or anchor in anchors(target), address


MODULES = sorted(
    {each for page in PAGES for each in re.findall(r"`((?:core|data|engine|estimators)/\w+\.py)", page.read_text())}
)


@pytest.mark.parametrize("module", MODULES)
def test_modules_named_in_the_documents_exist(module):
    assert (ROOT / "src/sparsebayes" / module).exists()


def test_the_ten_lines_of_the_readme_find_the_ten_features():
    code = python_blocks("README.md")[0]
    namespace = {}
    exec(code, namespace)
    np.testing.assert_array_equal(namespace["model"].active_, np.arange(10))


def test_a_model_goes_to_a_file_and_to_onnx_as_documented(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for code in python_blocks("docs/saving.md"):
        exec(code, namespace)
    assert {path.name for path in tmp_path.iterdir()} == {"model.skops", "model.onnx"}


def test_a_fit_is_watched_as_documented():
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from version 1.9 on")
    namespace = {}
    for code in python_blocks("docs/progress.md"):
        exec(code, namespace)
    assert namespace["model"].converged_
    stopped = namespace["RVMRegressor"]().set_callbacks(namespace["TimeLimit"](-1))
    with pytest.warns(ConvergenceWarning, match="a callback stopped the fit at step 1"):
        stopped.fit(namespace["X"], namespace["y"])


def test_which_features_matter_is_as_documented():
    namespace = {}
    for code in python_blocks("docs/which_features.md"):
        exec(code, namespace)
    model, X, y = namespace["model"], namespace["X"], namespace["y"]
    probability = model.inclusion_probability_
    np.testing.assert_array_equal(model.active_, [5])
    assert probability[[0, 1]] == pytest.approx([0.83, 0.26], abs=0.06)  # twice what the chains' error allows
    assert np.delete(probability, [0, 1, 5]).max() < 0.2
    (pair,) = [found for found in model.credible_sets_ if len(found.features) > 1]
    assert set(pair.features.tolist()) == {0, 1}
    assert pair.probability > 0.999
    np.testing.assert_allclose(model.predict(X), X.to_numpy() @ model.coef_ + model.intercept_)
    assert namespace["forced"].inclusion_probability_[3] == 1
    assert namespace["expensive"].inclusion_probability_[0] < 0.01
    assert namespace["expensive"].inclusion_probability_[1] > 0.99
    assert len(y) == 100


def test_gains_are_conditional_as_documented(monkeypatch):
    """A stand-in takes the place of the true feature, whose gain is then next to nothing; averaging sees both."""
    monkeypatch.syspath_prepend(ROOT / "docs" / "figures")
    from which_features import draw

    X, y, w = draw("correlated", seed=9)
    assert np.flatnonzero(w)[0] == 5
    single = ARDRegressor(average=False).fit(X, y)
    assert 6 in single.active_
    assert 5 not in single.active_
    assert single.gain_[[5, 6]] == pytest.approx([0.14, 26.7], rel=0.02)
    assert single.relevance_[6] == pytest.approx(0.98, abs=0.005)
    (found,) = [each for each in ARDRegressor().fit(X, y).credible_sets_ if 5 in each.features]
    assert {5, 6} <= set(found.features.tolist())


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "docs/min_gain.md", ROOT / "docs/which_features.md"])
def test_no_place_is_left_to_fill_in(page):
    assert not re.findall(r"^[A-Z]{5,}$", page.read_text(), flags=re.MULTILINE)


@pytest.mark.parametrize("document", ["docs/counts.md", "docs/outliers.md"])
def test_counts_and_outliers_are_as_documented(document):
    namespace = {}
    for code in python_blocks(document):
        exec(code, namespace)
    model = namespace["model"]
    np.testing.assert_array_equal(model.active_, [3, 7])
    if document == "docs/outliers.md":
        assert model.outlier_weight_[:20].max() < 0.1
        np.testing.assert_array_equal(namespace["named"].outliers_, np.arange(20))
        assert namespace["named"].outlier_share_ == pytest.approx(0.1, abs=0.03)


def test_outputs_groups_noise_and_signs_are_as_documented():
    models = {}
    for page in ("outputs", "groups", "noise", "positive"):
        namespace = {}
        for code in python_blocks(f"docs/{page}.md"):
            exec(code, namespace)
        models[page] = namespace["model"]
        models |= {"changing": namespace["changing"]} if page == "noise" else {}
    np.testing.assert_array_equal(models["outputs"].active_[0], np.arange(5))
    assert models["outputs"].noise_variance_.shape == (10,)
    np.testing.assert_array_equal(models["groups"].active_, [0, 1, 2, 30, 31, 32])
    assert models["groups"].group_inclusion_probability_.shape == (20,)
    np.testing.assert_array_equal(models["noise"].active_, [3, 7])
    assert models["noise"].noise_variance_ == pytest.approx(1, rel=0.3)
    np.testing.assert_array_equal(np.flatnonzero(models["changing"].noise_coef_), [0])
    np.testing.assert_array_equal(models["positive"].active_, [3, 7])
