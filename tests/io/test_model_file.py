"""Models come back from their files to the bit, and no file makes the program run what it holds."""

import os
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn
import skops.io
from forging import MARK, SCHEMA, rewritten
from model_answers import assert_same, kernel_fit
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA
from sklearn.feature_selection import (
    SelectFdr,
    SelectFromModel,
    SelectKBest,
    SelectPercentile,
    VarianceThreshold,
    f_regression,
    r_regression,
)
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.utils.fixes import parse_version

import sparsebayes
from sparsebayes import (
    ARDRegressor,
    ModelFileError,
    RVMClassifier,
    RVMRegressor,
    StabilitySelector,
    VBLogisticRegression,
    load,
    save,
)
from sparsebayes.estimators import ESTIMATORS
from sparsebayes.io.allowlist import STEPS, all_states, own_states
from sparsebayes.io.model_file import FORMAT, read
from sparsebayes.io.own_types import data_classes


@pytest.fixture
def data(rng):
    X = rng.standard_normal((40, 3))
    return X, X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(40)


# --- there and back ---


def test_every_model_comes_back_to_the_bit(fitted, new_rows, path):
    save(fitted, path)
    again = load(path)
    assert type(again) is type(fitted)
    assert again.get_params() == fitted.get_params()
    assert vars(again).keys() == vars(fitted).keys()
    assert_same(again, fitted, new_rows(fitted))


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_an_unfitted_model_comes_back(cls, path):
    save(cls(), path)
    assert vars(load(path)) == vars(cls())


@pytest.mark.parametrize(
    "value",
    [{"verbose": np.True_}, {"random_state": np.random.RandomState(3)}, {"tol": np.float64(1e-4)}, {"max_iter": 10**6}],
    ids=lambda value: next(iter(value)),
)
def test_parameters_of_any_kind_come_back(value, path):
    save(RVMRegressor(**value), path)
    ((key, expected),) = value.items()
    got = getattr(load(path), key)
    assert type(got) is type(expected)
    if key == "random_state":
        got, expected = got.standard_normal(5).tolist(), expected.standard_normal(5).tolist()
    assert got == expected


@pytest.mark.parametrize("kind", [int, float, str])
def test_class_weights_come_back(kind, path):
    weights = {kind(0): 2.0, kind(1): 1}
    save(RVMClassifier(class_weight=weights), path)
    assert load(path).class_weight == weights


def test_learning_goes_on_after_loading(data, path):
    X, y = data
    model = VBLogisticRegression().partial_fit(X[:20], y[:20] > 0, classes=[False, True])
    save(model, path)
    for learner in (again := load(path), model):
        learner.partial_fit(X[20:], y[20:] > 0)
    assert_same(again, model, X)
    warm = ARDRegressor(warm_start=True).fit(X, y)
    save(warm, path)
    assert_same(load(path).fit(X, y + X[:, 2]), warm.fit(X, y + X[:, 2]), X)


PIPELINES = [
    make_pipeline(StandardScaler(), ARDRegressor()),
    make_pipeline(SimpleImputer(add_indicator=True), PolynomialFeatures(2), PCA(4), RVMRegressor()),
    make_pipeline(QuantileTransformer(n_quantiles=10), SelectFromModel(ARDRegressor()), RVMRegressor()),
    make_pipeline(KNNImputer(add_indicator=True), SelectKBest(f_regression, k=2), ARDRegressor()),
    make_pipeline(RobustScaler(), PowerTransformer(), VarianceThreshold(), SelectFdr(f_regression), ARDRegressor()),
    make_pipeline(MinMaxScaler(), MaxAbsScaler(), SelectPercentile(r_regression, percentile=60), RVMRegressor()),
    make_pipeline(Normalizer(), RVMRegressor()),
    make_pipeline(StabilitySelector(make_pipeline(StandardScaler(), ARDRegressor()), n_resamples=4), ARDRegressor()),
    Pipeline([("nothing", None), ("none", "passthrough"), ("inner", make_pipeline(StandardScaler(), ARDRegressor()))]),
]


@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda pipeline: repr(pipeline)[:90].replace("\n", ""))
def test_pipelines_come_back(pipeline, data, path):
    X, y = data
    model = clone(pipeline).fit(X, y)
    save(model, path)
    assert_same(load(path), model, X)


@pytest.mark.skipif(parse_version(sklearn.__version__) < parse_version("1.7"), reason="other type of remainder")
@pytest.mark.parametrize("output", ["default", "pandas"])
def test_names_and_kinds_of_columns_come_back(output, data, path):
    X, y = data
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=np.where(X[:, 2] > 0, "up", "down"), count=[1, 2] * 20)
    columns = ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["a", "b", "c"]),
            ("kinds", OneHotEncoder(sparse_output=False, handle_unknown="ignore"), ["kind"]),
        ],
        remainder="passthrough",
    ).set_output(transform=output)
    model = make_pipeline(columns, ARDRegressor()).fit(frame, y)
    save(model, path)
    again = load(path)
    assert_array_equal(again.feature_names_in_, model.feature_names_in_)
    assert type(again[0].transform(frame)) is type(model[0].transform(frame))
    assert_array_equal(again[0].get_feature_names_out(), model[0].get_feature_names_out())
    assert_same(again, model, frame)
    with pytest.raises(ValueError, match="columns are missing"):
        again.predict(frame.drop(columns="b"))


ENCODERS = [
    OneHotEncoder(drop="first", sparse_output=False),
    OneHotEncoder(drop="if_binary", sparse_output=False, dtype=np.float32),
    OneHotEncoder(drop=["a", "x"], sparse_output=False),
    OneHotEncoder(categories=[["c", "b", "a"], ["x", "y", "z"]], sparse_output=False),
    OneHotEncoder(max_categories=2, handle_unknown="infrequent_if_exist", sparse_output=False),
    OneHotEncoder(min_frequency=15, drop="first", sparse_output=False),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, dtype=int),
    OrdinalEncoder(min_frequency=15),
    make_pipeline(SimpleImputer(strategy="most_frequent"), OrdinalEncoder()),
    make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), OneHotEncoder(sparse_output=False)),
]


@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda encoder: repr(encoder)[:90].replace("\n", ""))
@pytest.mark.parametrize("kind", [object, str])
def test_encoders_come_back(encoder, kind, data, path):
    y = data[1]
    words = np.column_stack([np.array(list("abcab"))[np.arange(40) % 5], np.where(y > 0, "x", "y")])
    words = words.astype(object if isinstance(encoder, Pipeline) else kind)  # SimpleImputer wants objects
    model = make_pipeline(clone(encoder), ARDRegressor()).fit(words, y)
    save(model, path)
    assert_same(load(path), model, words)


def test_metadata_and_versions_come_back(model, path):
    metadata = {"target": "y", "scores": [0.5, None, {"α": True}]}
    save(model, path, metadata=metadata)
    got = read(path)
    assert got.metadata == metadata
    assert got.versions["sparsebayes"] == sparsebayes.__version__
    assert set(got.versions) == {"sparsebayes", "scikit-learn", "numpy", "scipy"}


def test_skops_itself_reads_the_file_too(model, file, data):
    assert_same(skops.io.load(file, trusted=skops.io.get_untrusted_types(file=file)), model, data[0])


# --- what cannot be stored is refused, and nothing is written ---


def my_kernel(X, Z):
    return np.exp(-((X[:, None] - Z) ** 2).sum(axis=2))


class MyKernel:
    def __call__(self, X, Z):
        return my_kernel(X, Z)


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        (my_kernel, "my_kernel"),
        (lambda X, Z: my_kernel(X, Z), "<lambda>"),
        (partial(my_kernel), "my_kernel"),
        (MyKernel(), "MyKernel"),
        (MyKernel().__call__, "MyKernel"),
    ],
    ids=["function", "lambda", "partial", "object", "method"],
)
def test_a_function_of_the_user_is_refused(kernel, name, data, path):
    for model in (RVMRegressor(kernel=kernel), RVMRegressor(kernel=kernel).fit(*data)):
        with pytest.raises(ModelFileError, match=rf"{name}.*kernel by its name"):
            save(model, path)
    assert not list(path.parent.iterdir())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RVMClassifier(class_weight={True: 2, False: 1}), "keys of type builtins.bool"),
        (RVMClassifier(class_weight={("a", 1): 2}), "cannot be stored .*keys"),
        (make_pipeline(FunctionTransformer(os.path.join), ARDRegressor()), r"FunctionTransformer\.func.*join"),
        (make_pipeline(FunctionTransformer(np.expm1), ARDRegressor()), r"FunctionTransformer\.func.*expm1"),
        (make_pipeline(StandardScaler(), ARDRegressor(), memory="cache"), r"Pipeline\.memory"),
        (make_pipeline(SelectKBest(np.add), ARDRegressor()), r"SelectKBest\.score_func.*add"),
        (make_pipeline(ColumnTransformer([("a", "drop", make_column_selector())]), ARDRegressor()), "column_selector"),
        (TransformedTargetRegressor(ARDRegressor()), "TransformedTargetRegressor"),
        (make_pipeline(ARDRegressor(), StandardScaler()), "last step is no model"),
        (StandardScaler(), "no model but .*StandardScaler"),
        (RVMRegressor(candidates=pd.DataFrame({"a": [1.0]})), "cannot be stored .* arrays, lists"),
    ],
    ids=lambda value: "" if isinstance(value, str) else type(value).__name__,
)
def test_what_would_not_come_back_is_refused(model, message, path):
    with pytest.raises(ModelFileError, match=message):
        save(model, path)
    assert not list(path.parent.iterdir())


def test_a_search_for_parameters_is_refused_when_saving(data, path):
    with pytest.raises(ModelFileError, match=r"GridSearchCV"):
        save(GridSearchCV(ARDRegressor(), {"min_gain": [0, 1.0]}, cv=3).fit(*data), path)
    assert not list(path.parent.iterdir())


def test_what_is_no_model_is_refused(path, model):
    with pytest.raises(TypeError, match="estimator"):
        save({"model": model}, path)
    with pytest.raises(TypeError, match=r"metadata.*JSON"):
        save(model, path, metadata={"rows": np.arange(3)})
    assert not list(path.parent.iterdir())


def test_a_failed_write_leaves_the_old_file(file, model, monkeypatch):
    before = file.read_bytes()

    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space"):
        save(model, file)
    assert file.read_bytes() == before
    assert list(file.parent.iterdir()) == [file]


# --- other versions ---


@pytest.mark.parametrize(("number", "remedy"), [(FORMAT + 1, "upgrade sparsebayes"), (FORMAT - 1, "that version")])
def test_another_format_is_named_with_the_version_that_wrote_it(number, remedy, file):
    def change(members):
        members[MARK] |= {"format": number}
        members[MARK]["versions"]["sparsebayes"] = "99.1"
        members[SCHEMA]["__loader__"] = "NodeOfTheFuture"

    rewritten(file, change)
    with pytest.raises(ModelFileError, match=rf"format {number} \(sparsebayes 99.1\).*{remedy}"):
        load(file)


@pytest.mark.parametrize("extra", [False, True])
def test_other_fields_than_those_of_this_version_are_named(extra, file):
    def change(members):
        described = kernel_fit(members)["content"]
        fields, types = described["content"], described["key_types"]["content"]
        if extra:
            fields["shape"] = fields["excess"]
            types.append(types[0])
        else:
            del fields["excess"], types[0]

    rewritten(file, change)
    with pytest.raises(ModelFileError, match=f"KernelFit of another version.*{'shape' if extra else 'excess'}"):
        load(file)


def test_a_missing_parameter_is_named(file):
    def change(members):
        del members[SCHEMA]["content"]["content"]["gamma"], members[SCHEMA]["content"]["key_types"]["content"][0]

    rewritten(file, change)
    with pytest.raises(ModelFileError, match=r"RVMRegressor of another version.*gamma"):
        load(file)


def test_an_older_protocol_of_skops_is_refused(file):
    """Its entries are read by other rules than those that were checked."""
    rewritten(file, lambda members: members[SCHEMA].update(protocol=1))
    with pytest.raises(ModelFileError, match="protocol 1"):
        load(file)


def test_a_file_of_skops_alone_is_told_apart(model, path):
    skops.io.dump(model, path)
    with pytest.raises(ModelFileError, match=r"not written by sparsebayes.save; skops.io.load may"):
        load(path)


# --- the list itself ---


def test_the_list_holds_every_estimator_and_few_steps():
    assert {state.cls for state in own_states().values()} == {*ESTIMATORS, StabilitySelector}
    assert {state.cls for state in all_states().values()} == {*ESTIMATORS, StabilitySelector, *STEPS}
    assert all(name == f"{state.cls.__module__}.{state.cls.__qualname__}" for name, state in all_states().items())


def test_allowed_types_do_nothing_while_they_are_filled_in():
    """skops makes an object without calling it, and calls `__setstate__` where there is one."""
    for cls in data_classes():
        assert "__setstate__" not in vars(cls)
        assert cls.__new__ is object.__new__
    for state in all_states().values():
        assert state.cls.__setstate__ is BaseEstimator.__setstate__
        assert state.cls.__new__ is object.__new__


# --- without the extra ---


@pytest.mark.parametrize(("package", "extra"), [("skops", "app"), ("onnx", "onnx")])
def test_a_missing_package_is_named_with_its_extra(package, extra, model, path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "skops.io", raising=False)
    with pytest.raises(ImportError, match=rf"sparsebayes\[{extra}\]"):
        sparsebayes.save(model, path) if package == "skops" else sparsebayes.to_onnx(model)


def test_names_on_demand_are_listed_and_others_are_missed():
    assert {"save", "load", "to_onnx", "ModelFileError"} <= set(dir(sparsebayes))
    with pytest.raises(AttributeError, match="no_such"):
        sparsebayes.no_such  # noqa: B018
    assert issubclass(ModelFileError, ValueError)


# --- callbacks ---


def test_callbacks_are_not_stored(make_data, tmp_path):
    """They are for a fit, and may hold anything; the model goes into the file without them."""
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from version 1.9 on")
    X, y = make_data()
    told = callback.ProgressBar()
    for model in (RVMRegressor(), make_pipeline(StandardScaler(), RVMRegressor())):
        model.set_callbacks(told).fit(X, y)
        save(model, tmp_path / "model.skops")
        again = load(tmp_path / "model.skops")
        assert_array_equal(again.predict(X), model.predict(X))
        assert not hasattr(again, "_skl_callbacks")
        assert model._skl_callbacks == [told]
