"""onnxruntime gives what the models give."""

from functools import partial

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import special
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

from sparsebayes import ARDRegressor, RVMRegressor, SparseLogisticRegression, VBLogisticRegression, to_onnx
from sparsebayes.core import kernels, multinomial, predictive, weighted_kernels
from sparsebayes.core.standard_units import StandardisedKernel, StandardUnits
from sparsebayes.io.onnx import formulas
from sparsebayes.io.onnx.graph import IR_VERSION, OPSET, Graph

EXACT = partial(assert_allclose, rtol=1e-6, atol=1e-9)
"""What the export promises. Kernel weights that cancel (polynomials) cost eight of the sixteen digits; a probability
below 1e-9 is no other than zero."""


def run(proto, X):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]
    return dict(zip(outputs, session.run(None, {"X": np.asarray(X, dtype=np.float64)}), strict=True))


def assert_same_answers(model, X):
    got = run(to_onnx(model), X)
    if is_classifier(model):
        assert got.keys() == {"label", "probabilities"}
        EXACT(got["probabilities"], model.predict_proba(X))
        assert_array_equal(got["label"], model.predict(X))
    else:
        assert got.keys() == {"mean", "std"}
        for name, expected in zip(("mean", "std"), model.predict(X, return_std=True), strict=True):
            # Where terms cancel, an error of 1e-7 of the largest is left: powers and tanh of the runtime are not exact.
            EXACT(got[name], expected, atol=1e-7 * max(1.0, float(np.abs(expected).max())))


def test_every_model_gives_the_same_answers(fitted, new_rows):
    assert_same_answers(fitted, new_rows(fitted))


@pytest.mark.parametrize("multi_class", ["softmax", "one-vs-rest"])
def test_more_weights_than_rows(multi_class, rng):
    """Such a posterior is held by other roots: a diagonal less something."""
    X = rng.standard_normal((30, 40))
    model = SparseLogisticRegression(prior="ridge", multi_class=multi_class).fit(X, np.digitize(X[:, 0], [-0.5, 0.5]))
    if multi_class == "softmax":
        assert len(model._joint.fit.posterior.own)
    else:
        assert model._fits[0].sign < 0
    assert_same_answers(model, 2 * rng.standard_normal((20, 40)))


@pytest.fixture
def data(rng):
    X = rng.standard_normal((50, 4)) * [1, 10, 0.1, 1] + [0, 5, 0, 0]
    X[:, 3] = rng.integers(0, 3, 50)
    return X, X[:, 0] + 0.2 * X[:, 1] + 0.2 * rng.standard_normal(50)


STEPS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    RobustScaler(),
    RobustScaler(with_centering=False, with_scaling=False),
    MinMaxScaler(),
    MinMaxScaler(feature_range=(-1, 3), clip=True),
    MaxAbsScaler(),
    PCA(),
    PCA(3, whiten=True),
    VarianceThreshold(0.1),
    SelectFromModel(ARDRegressor(), threshold=1e-12),
    FunctionTransformer(),
    "passthrough",
    ColumnTransformer(
        [
            ("scaled", make_pipeline(SimpleImputer(), StandardScaler()), [1, 0]),
            ("category", OneHotEncoder(sparse_output=False), [3]),
            ("nothing", StandardScaler(), []),
            ("gone", "drop", [2]),
        ]
    ),
    ColumnTransformer([("scaled", StandardScaler(), slice(0, 2))], remainder="passthrough"),
    ColumnTransformer([("scaled", StandardScaler(), [False, True, False, False])], remainder=MaxAbsScaler()),
]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: repr(step)[:60].replace("\n", " "))
def test_a_pipeline_gives_the_same_answers(step, data):
    X, y = data
    pipeline = make_pipeline(step, ARDRegressor(min_gain=0)).fit(X, y)
    assert_same_answers(pipeline, X[::-1])
    assert_same_answers(make_pipeline(step, VBLogisticRegression()).fit(X, y > 1), X[::-1])


@pytest.mark.filterwarnings("ignore:Skipping features without any observed values")
@pytest.mark.parametrize("strategy", ["mean", "median", "constant"])
def test_missing_values_are_filled_in(strategy, data):
    X, y = data
    X[::7, 1] = np.nan
    X = np.column_stack([X, np.full(len(X), np.nan)])
    assert_same_answers(make_pipeline(SimpleImputer(strategy=strategy, fill_value=7.0), RVMRegressor()).fit(X, y), X)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([-3, 7]),
        np.array([0, 2, 1], dtype=np.uint8),
        np.array([False, True]),
        np.array([1.0, 2.0]),
        np.array(["no", "yes", "perhaps"]),
        np.array(["α", "β"], dtype=object),
    ],
    ids=str,
)
def test_labels_come_back(labels, data):
    X, y = data
    model = SparseLogisticRegression().fit(X, labels[np.digitize(y, [0.0, 1.5][: len(labels) - 1])])
    got = run(to_onnx(model), X)["label"]
    assert_array_equal(got, model.predict(X))
    assert len(set(got.tolist())) == len(labels)


def test_the_file_is_the_model_and_says_what_it_takes(data, tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = data
    model = ARDRegressor().fit(pd.DataFrame(X, columns=["a", "b", "c", "d"]), y)
    proto = to_onnx(model, tmp_path / "model.onnx")
    assert onnx.load(tmp_path / "model.onnx") == proto
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    (given,) = proto.graph.input
    assert given.name == "X"
    assert given.type.tensor_type.elem_type == onnx.TensorProto.DOUBLE
    assert given.type.tensor_type.shape.dim[1].dim_value == 4
    assert {entry.key: entry.value for entry in proto.metadata_props} == {"feature_names": '["a", "b", "c", "d"]'}
    assert proto.producer_name == "sparsebayes"


# --- what cannot be exported is refused ---


def my_kernel(X, Z):
    return X @ Z.T


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RVMRegressor(kernel=my_kernel), "kernel=<function my_kernel.*by its name"),
        (RVMRegressor(kernel=partial(my_kernel)), "kernel=.*by its name"),
        (make_pipeline(PowerTransformer(), ARDRegressor()), "PowerTransformer.*StandardScaler"),
        (make_pipeline(FunctionTransformer(np.log1p), ARDRegressor()), "function cannot be exported"),
        (make_pipeline(SimpleImputer(add_indicator=True), ARDRegressor()), "add_indicator"),
        (make_pipeline(SimpleImputer(missing_values=-1), ARDRegressor()), "missing_values"),
        (make_pipeline(OneHotEncoder(drop="first", sparse_output=False), ARDRegressor()), "drop"),
        (make_pipeline(StandardScaler(), LinearRegression()), "LinearRegression.*sparsebayes"),
    ],
    ids=["function", "partial", "power", "log", "indicator", "missing", "drop", "foreign"],
)
def test_what_has_no_graph_is_refused_by_name(model, message, data, tmp_path):
    X, y = data
    with pytest.raises(ValueError, match=message):
        to_onnx(model.fit(np.abs(X), y), tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_categories_of_text_are_refused(rng):
    X = np.array([["a"], ["b"]] * 10, dtype=object)
    pipeline = make_pipeline(OneHotEncoder(sparse_output=False), ARDRegressor()).fit(X, rng.standard_normal(20))
    with pytest.raises(ValueError, match="text"):
        to_onnx(pipeline)


def test_labels_of_another_kind_are_refused(data):
    X, y = data
    labels = np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]")[(y > 0).astype(int)]
    model = SparseLogisticRegression().fit(X, y > 0)
    model.classes_ = np.unique(labels)
    with pytest.raises(ValueError, match="no labels like"):
        to_onnx(model)


def test_a_category_that_was_not_seen_is_none_of_those_seen(data):
    X, y = data
    encoder = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    pipeline = make_pipeline(encoder, ARDRegressor(min_gain=0)).fit(X[:, 3:], y)
    assert_same_answers(pipeline, [[0.0], [1.0], [2.0], [5.0], [0.5]])


def test_a_pipeline_inside_a_pipeline(data):
    X, y = data
    assert_same_answers(make_pipeline(MaxAbsScaler(), make_pipeline(StandardScaler(), ARDRegressor())).fit(X, y), X)


def test_an_unfitted_model_is_refused():
    with pytest.raises(NotFittedError):
        to_onnx(ARDRegressor())


# --- the formulas one by one ---


def evaluated(formula, *inputs):
    """The value of a formula at given inputs."""
    graph = Graph()
    names = [f"x{k}" for k in range(len(inputs))]
    result = formula(*map(graph.input, names))
    info, double = onnx.helper.make_tensor_value_info, onnx.TensorProto.DOUBLE
    typed = [info(name, double, value.shape) for name, value in zip(names, inputs, strict=True)]
    proto = graph.proto("formula", typed, [info(result.name, double, None)])
    opset = onnx.helper.make_opsetid("", OPSET)
    model = onnx.helper.make_model(proto, ir_version=IR_VERSION, opset_imports=[opset])
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, inputs, strict=True)))[0]


def test_every_kernel_and_every_rule_has_a_graph():
    assert formulas.KERNELS.keys() == {kernel.value for kernel in kernels.KERNELS.values()}
    assert formulas.PROBABILITIES.keys() == predictive.PROBABILITIES.keys()


@pytest.mark.parametrize("name", kernels.KERNELS)
def test_kernels_are_those_of_core(name, rng):
    X, Z = rng.standard_normal((7, 3)) + 100, rng.standard_normal((5, 3)) + 100
    kernel = kernels.KERNELS[name].value
    graph = formulas.KERNELS[kernel]
    for parameters in ({}, {"gamma": 0.3} if "gamma" in kernels.KERNELS[name].parameters else {}):
        assert_allclose(evaluated(lambda T: graph(T, Z, **parameters), X), kernel(X, Z, **parameters), rtol=1e-9)  # noqa: B023
        itself = evaluated(formulas.KernelGraph(kernel, parameters).of_itself, X)
        assert_allclose(itself, np.diag(kernel(X, X, **parameters)), rtol=1e-9)


@pytest.mark.parametrize("name", weighted_kernels.WEIGHTED)
def test_kernels_with_feature_weights_are_those_of_core(name, rng):
    X, Z = rng.standard_normal((7, 4)) + 100, rng.standard_normal((5, 4)) + 100
    columns = np.array([2, 0])
    kernel = weighted_kernels.FeatureKernel(
        name, columns, np.array([0.3, 2.0]), np.array([100.0, 99.0]), degree=2, coef0=0.7
    )
    graph = formulas.KernelGraph.of(kernel)
    assert_allclose(evaluated(lambda T: graph(T, Z), X), kernel(X, Z), rtol=1e-9)
    assert_allclose(evaluated(graph.of_itself, X), np.diag(kernel(X, X)), rtol=1e-9)


@pytest.mark.parametrize("name", kernels.KERNELS)
def test_kernels_in_standard_units_are_those_of_core(name, rng):
    X = np.column_stack([rng.standard_normal(30), 1e6 * rng.uniform(size=30), np.full(30, 3.0), np.arange(30) // 29])
    units = StandardUnits.by_deviation(X, np.ones(30))
    assert np.isfinite(units.high[:2]).all()
    assert not np.isfinite(units.unit[2])
    assert not np.isfinite(units.high[3])  # mostly one value: no fence
    parameters = {"gamma": 0.3} if "gamma" in kernels.KERNELS[name].parameters else {}
    kernel = StandardisedKernel(partial(kernels.KERNELS[name].value, **parameters), units)
    graph = formulas.KernelGraph.of(kernel)
    new = np.concatenate([X[:5], X[5:8] * 1e4, -X[8:11] * 1e4, X[:1] + 0.1])
    assert_allclose(evaluated(lambda T: formulas.in_standard_units(T, units), new), units(new), rtol=1e-12)
    assert_allclose(evaluated(lambda T: graph(T, X[:6]), new), kernel(new, X[:6]), rtol=1e-9)
    assert_allclose(evaluated(graph.of_itself, new), np.diag(kernel(new, new)), rtol=1e-9)
    lost = new.copy()
    lost[3, 0] = np.nan
    assert_array_equal(np.isnan(evaluated(lambda T: graph(T, X[:6]), lost)).any(axis=1), np.arange(12) == 3)


def test_the_normal_distribution_function_has_its_digits_in_both_tails():
    x = np.concatenate([np.linspace(-37, 37, 5001), [-1e-300, 0.0, 1e-300, -1e4, 1e4]])[None]
    # Rounding of t² in exp(-t²): up to 37²/2 times the spacing of doubles, times a few.
    # A runtime may flush subnormal numbers to zero.
    assert_allclose(evaluated(formulas.ndtr, x), special.ndtr(x), rtol=1e-12, atol=np.finfo(float).tiny)


@pytest.mark.parametrize("rule", predictive.PROBABILITIES)
def test_probabilities_are_those_of_core(rule):
    m, v = np.meshgrid([-300.0, -30, -3, -0.3, 0, 1e-9, 2, 20, 200], [0.0, 1e-6, 0.5, 0.999, 1, 1.001, 30, 1e4, 1e8])
    expected = predictive.PROBABILITIES[rule](m, v)
    # The bound's ξ is settled to 1e-12 of itself, and both exponents are of its size.
    assert_allclose(evaluated(formulas.PROBABILITIES[rule], m, v), expected, rtol=1e-8, atol=1e-300)


def test_a_variance_that_is_rounding_is_left_out():
    A = np.array([[[1e-28, 1e-11, 0], [1e-11, 1e6, 1e6], [0, 1e6, 1e6]]])
    assert_array_equal(evaluated(lambda A: formulas.lower_roots(A, 3), A), multinomial.lower_roots(A))


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_roots_and_averages_are_those_of_core(rank, rng):
    factor = 3 * rng.standard_normal((20, 4, rank))
    mean, covariance = 2 * rng.standard_normal((20, 4)), factor @ factor.transpose(0, 2, 1)
    L = evaluated(lambda A: formulas.lower_roots(A, 4), covariance)
    assert_allclose(L @ L.transpose(0, 2, 1), covariance, atol=1e-12 * np.abs(covariance).max())
    assert (np.triu(L, 1) == 0).all()
    got = evaluated(lambda m, A: formulas.averaged_probabilities(m, A, 4), mean, covariance)
    assert_allclose(got, multinomial.averaged_probabilities(mean, covariance), atol=1e-6)
