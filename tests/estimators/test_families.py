"""Options of the linear models, all together: sparse inputs, ONNX, files, displays and notebooks know of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal, assert_equal
from scipy import sparse

from sparsebayes import ARDRegressor, SparseLogisticRegression, SparsePoissonRegressor, load, save, to_onnx
from sparsebayes.estimators._averaging import AVERAGES
from sparsebayes.estimators._groups import ATTRIBUTES as GROUP_ATTRIBUTES
from sparsebayes.estimators._noise import ATTRIBUTES as NOISE_ATTRIBUTES
from sparsebayes.inspection import EvidencePathDisplay, InclusionDisplay, RelevanceDisplay

SHORT = {"n_chains": 2, "max_flips": 150}
GROUPS = np.arange(12) // 2
OPTIONS = {
    "joint": ({"multi_output": "joint", **SHORT}, {}),
    "joint, one model": ({"multi_output": "joint", "average": False}, {}),
    "shared noise": ({"multi_output": "joint", "shared_noise": True, **SHORT}, {}),
    "groups": ({"groups": GROUPS, **SHORT}, {}),
    "groups, one model": ({"groups": GROUPS, "average": False}, {}),
    "positive": ({"positive": True, **SHORT}, {}),
    "positive, one model": ({"positive": True, "average": False}, {}),
    "outliers": ({"noise": "outliers", **SHORT}, {}),
    "outliers, one model": ({"noise": "outliers", "average": False}, {}),
    "student, averaged": ({"noise": "student", "average": True, **SHORT}, {}),
    "heteroscedastic": ({"noise": "heteroscedastic", **SHORT}, {}),
    "known noise": ({"noise_variance": 0.1, **SHORT}, {}),
    "variances": (SHORT, {"row_noise": np.linspace(1, 2, 100)}),
    "covariance": (SHORT, {"row_noise": np.diag(np.linspace(1, 2, 100))}),
}
pytestmark = pytest.mark.filterwarnings("ignore:the chains do not agree")


def draw():
    """Features that are zero in most rows, and a target; for joint outputs with another beside it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 12)) * (rng.random((100, 12)) < 0.4)
    return X, X[:, 0] - X[:, 3] + 0.3 * rng.standard_normal(100), rng


@pytest.fixture(params=OPTIONS.values(), ids=OPTIONS)
def case(request):
    parameters, arguments = request.param
    X, y, rng = draw()
    if "multi_output" in parameters:
        y = np.column_stack([y, 2 * y + rng.standard_normal(100)])
    return ARDRegressor(**parameters), X, y, arguments


def test_sparse_inputs_give_the_same(case):
    model, X, y, arguments = case
    dense = model.fit(X, y, **arguments).coef_
    assert_allclose(model.fit(sparse.csr_array(X), y, **arguments).coef_, dense, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("cls", [SparseLogisticRegression, SparsePoissonRegressor])
def test_sparse_inputs_in_groups_give_the_same(cls):
    X, y, rng = draw()
    t = y > 0 if cls is SparseLogisticRegression else rng.poisson(np.exp(0.3 * y))
    model = cls(groups=GROUPS, **SHORT)
    dense = model.fit(X, t).coef_
    assert_allclose(model.fit(sparse.csr_array(X), t).coef_, dense, rtol=1e-9, atol=1e-11)


def test_onnx_gives_the_same(case):
    onnxruntime = pytest.importorskip("onnxruntime")
    model, X, y, arguments = case
    model.fit(X, y, **arguments)
    session = onnxruntime.InferenceSession(to_onnx(model).SerializeToString(), providers=["CPUExecutionProvider"])
    mean, std = session.run(["mean", "std"], {"X": X})
    expected = model.predict(X, return_std=True)
    assert_allclose(mean, expected[0], rtol=1e-6, atol=1e-7)
    assert_allclose(std, expected[1], rtol=1e-6, atol=1e-7)


def test_notebooks_tables_and_figures_show_it(case):
    model, X, y, arguments = case
    model.fit(X, y, **arguments)
    assert "ARDRegressor" in model._repr_html_()
    output = {"output": 1} if y.ndim > 1 else {}
    shown = RelevanceDisplay.from_estimator(model, **output)
    assert ({"x0"} if model.positive else {"x0", "x3"}) <= set(shown.to_table()["name"])  # that of x3 is negative
    if hasattr(model, "inclusion_probability_"):
        assert len(InclusionDisplay.from_estimator(model, **output).to_table())
    assert EvidencePathDisplay.from_estimator(model).to_table()


def test_files_keep_it(case, tmp_path):
    model, X, y, arguments = case
    model.fit(X, y, **arguments)
    save(model, tmp_path / "model.skops")
    again = load(tmp_path / "model.skops")
    for ours, theirs in zip(again.predict(X, return_std=True), model.predict(X, return_std=True), strict=True):
        assert_array_equal(ours, theirs)
    assert_array_equal(again.predict_interval(X), model.predict_interval(X))
    for name in (*GROUP_ATTRIBUTES, *NOISE_ATTRIBUTES, *AVERAGES):
        if name.endswith("_") and hasattr(model, name):
            assert_equal(getattr(again, name), getattr(model, name))


def test_a_second_fit_forgets_the_first():
    X, y, _ = draw()
    model = ARDRegressor(noise="outliers", groups=GROUPS, **SHORT).fit(X, y)
    assert hasattr(model, "outliers_")
    assert hasattr(model, "groups_")
    model.set_params(noise="gaussian", groups=None, average=False).fit(X, y)
    fresh = ARDRegressor(average=False).fit(X, y)
    known = {name for name in vars(fresh) if name.endswith("_")}
    assert {name for name in vars(model) if name.endswith("_") and not name.startswith("_")} == known
    assert_array_equal(model.coef_, fresh.coef_)
