"""Options of the linear models, all together: sparse inputs, ONNX, files, displays and notebooks know of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from sparsebayes import ARDRegressor, SparseLogisticRegression, SparsePoissonRegressor, to_onnx

SHORT = {"n_chains": 2, "max_flips": 150}
GROUPS = np.arange(12) // 2
OPTIONS = {
    "joint": ({"multi_output": "joint"}, {}),
    "shared noise": ({"multi_output": "joint", "shared_noise": True}, {}),
    "groups": ({"groups": GROUPS, **SHORT}, {}),
    "groups, one model": ({"groups": GROUPS, "average": False}, {}),
    "positive": ({"positive": True}, {}),
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


def test_notebooks_and_tables_show_it(case):
    model, X, y, arguments = case
    model.fit(X, y, **arguments)
    assert "ARDRegressor" in model._repr_html_()


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
