"""Model files that are made to do harm: each is refused, and nothing is called or written."""

import io
import os
import subprocess
import sys
import zipfile
from functools import partial

import numpy as np
import pytest
import skops.io
from forging import (
    MARK,
    SCHEMA,
    a_dict,
    a_list,
    a_tuple,
    an_object,
    array,
    function,
    items,
    node,
    objects,
    partial_of,
    plain,
    rewritten,
    with_attribute,
)
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import StackingRegressor
from sklearn.feature_selection import SelectFromModel, SelectKBest, f_regression
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, QuantileTransformer, StandardScaler

from sparsebayes import ARDRegressor, ModelFileError, RVMRegressor, load, save
from sparsebayes.io.model_file import _mark


def stored(model, path):
    """What skops alone would write, marked as ours: nothing of it has been checked."""
    archive = io.BytesIO(skops.io.dumps(model))
    with zipfile.ZipFile(archive, "a") as members:
        members.writestr(MARK, _mark({}))
    path.write_bytes(archive.getvalue())


# --- the model that writes a file when it predicts ---


def test_a_pipeline_that_writes_a_file_is_refused(path, sentinel):
    stacking = StackingRegressor([("a", ARDRegressor())], passthrough=True)
    stacking.estimators_ = [np.array([b"written by a model file"])]
    stacking.stack_method_, stacking.final_estimator_ = ["tofile"], ARDRegressor()
    name = partial(np.logical_or, str(sentinel))
    pipeline = Pipeline(
        [
            ("text", FunctionTransformer(func=str)),
            ("path", FunctionTransformer(name, kw_args={"dtype": np.dtype(object)})),
            ("write", stacking),
        ]
    )
    stored(pipeline, path)
    with pytest.raises(ModelFileError, match=r"FunctionTransformer|StackingRegressor"):
        load(path).predict([[0.0]])


# --- state of the allowed types that would be called, looked up by name, or used as a path ---


@pytest.fixture
def pipeline_file(path, data):
    """A fitted pipeline, and how to set an attribute of one of its steps."""
    X, y = data
    words = np.where(X[:, :1] > 0, "up", "down").astype(object)
    columns = ColumnTransformer(
        [
            ("n", make_pipeline(SimpleImputer(), QuantileTransformer(n_quantiles=5), StandardScaler()), [0, 1, 2]),
            ("c", OneHotEncoder(sparse_output=False), [3]),
        ],
        remainder="passthrough",
    )
    steps = [("columns", columns), ("best", SelectKBest(f_regression, k=3))]
    steps += [("model", SelectFromModel(ARDRegressor(), threshold=-1.0)), ("last", ARDRegressor())]
    save(Pipeline(steps).fit(np.column_stack([X.astype(object), words, X[:, :1]]), y), path)

    def put(cls, attribute, forged):
        def change(members):
            for entry in entries(members[SCHEMA]):
                if entry["__class__"] == cls and "content" in entry:
                    content = entry["content"]
                    if attribute not in content["content"]:
                        content["key_types"]["content"].append(node("TypeNode", "builtins.str"))
                    made = forged(members) if callable(forged) else forged
                    content["content"][attribute] = made

        rewritten(path, change)

    return put


def entries(tree):
    waiting = [tree]
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, dict):
            if thing.get("__loader__") == "ObjectNode":
                yield thing
            waiting.extend(thing.values())
        elif isinstance(thing, list):
            waiting.extend(thing)


SCALER = "sklearn.preprocessing._data.StandardScaler"
RBF = function("sparsebayes.core.kernels.rbf")
UFUNC = function("numpy.logical_or")
STATES = {
    "memory is a path": ("Pipeline", "memory", plain("/tmp/sparsebayes-cache")),
    "memory is an object": ("Pipeline", "memory", node("ObjectNode", "joblib.memory.Memory")),
    "transform_input": ("Pipeline", "transform_input", a_list(plain("X"))),
    "a step is a function": ("Pipeline", "steps", a_list(a_tuple(plain("a"), RBF))),
    "a step is a text": ("Pipeline", "steps", a_list(a_tuple(plain("a"), plain("os.system")))),
    "a step has no name": ("Pipeline", "steps", a_list(a_tuple(node("ObjectNode", SCALER)))),
    "categories are objects": ("OneHotEncoder", "categories_", a_list(objects(RBF, plain("up")))),
    "categories are estimators": (
        "OneHotEncoder",
        "categories_",
        a_list(objects(node("ObjectNode", "sklearn.pipeline.Pipeline"))),
    ),
    "categories are a function": ("OneHotEncoder", "categories", UFUNC),
    "names combined by a function": ("OneHotEncoder", "feature_name_combiner", UFUNC),
    "dtype is any type": ("OneHotEncoder", "dtype", node("TypeNode", "builtins.map")),
    "dtype is a module's function": ("OneHotEncoder", "dtype", node("TypeNode", "numpy.load")),
    "strategy is a function": ("SimpleImputer", "strategy", UFUNC),
    "strategy is a method": ("SimpleImputer", "strategy", plain("tofile")),
    "missing values are an object": ("SimpleImputer", "missing_values", RBF),
    "statistics are objects": ("SimpleImputer", "statistics_", objects(UFUNC)),
    "columns by a function": (
        "ColumnTransformer",
        "transformers",
        a_list(a_tuple(plain("a"), plain("drop"), UFUNC)),
    ),
    "columns by a selector": (
        "ColumnTransformer",
        "transformers",
        a_list(
            a_tuple(
                plain("a"),
                plain("drop"),
                an_object(
                    "sklearn.compose._column_transformer.make_column_selector",
                    pattern=plain("(a+)+$"),
                    dtype_include=plain(None),
                    dtype_exclude=plain(None),
                ),
            )
        ),
    ),
    "names by a format": ("ColumnTransformer", "verbose_feature_names_out", plain("{feature_name:>999999999}")),
    "ten thousand workers": ("ColumnTransformer", "n_jobs", plain(10_000)),
    "score is a ufunc": ("SelectKBest", "score_func", UFUNC),
    "score is a partial": ("SelectKBest", "score_func", partial_of(UFUNC, plain("/tmp/x"))),
    "score is another function": ("SelectKBest", "score_func", function("sklearn.datasets._base.load_files")),
    "importance by a path": ("SelectFromModel", "importance_getter", plain("coef_.tofile")),
    "importance by a function": ("SelectFromModel", "importance_getter", UFUNC),
    "importance by an operator": (
        "SelectFromModel",
        "importance_getter",
        node("OperatorFuncNode", "operator.attrgetter", attrs=a_tuple(plain("__class__"))),
    ),
    "features by a function": ("SelectFromModel", "max_features", UFUNC),
    "estimator is an array": ("SelectFromModel", "estimator_", lambda members: array(members, np.ones(3), 98)),
    "estimator of scikit-learn": (
        "SelectFromModel",
        "estimator_",
        node("ObjectNode", "sklearn.ensemble._stacking.StackingRegressor"),
    ),
    "a distribution by its name": ("QuantileTransformer", "output_distribution", plain("rv_continuous")),
    "output in another format": ("StandardScaler", "_sklearn_output_config", a_dict({"transform": plain("os")})),
    "output of another method": ("StandardScaler", "_sklearn_output_config", a_dict({"fit": plain("pandas")})),
    "output is an object": ("StandardScaler", "_sklearn_output_config", a_dict({"transform": RBF})),
    "a method is replaced": ("StandardScaler", "transform", RBF),
    "a method is replaced by a number": ("StandardScaler", "transform", plain(1)),
    "the class is replaced": ("ARDRegressor", "__class__", plain("x")),
    "our method is replaced": ("ARDRegressor", "predict", RBF),
    "our private method is replaced": ("ARDRegressor", "_validated", RBF),
    "a fitted attribute is a function": ("ARDRegressor", "coef_", RBF),
    "a function where no kernel is": ("ARDRegressor", "min_gain", RBF),
    "callbacks": ("ARDRegressor", "_skl_callbacks", a_list(RBF)),
    "routing": ("StandardScaler", "_metadata_request", a_dict({"fit": plain("x")})),
    "escapes in a version": ("StandardScaler", "_sklearn_version", plain("\x1b[2J")),
    "an unknown attribute": ("StandardScaler", "extra", plain(1)),
    "scale is a sparse matrix": (
        "StandardScaler",
        "scale_",
        node("SparseMatrixNode", "scipy.sparse._csr.csr_matrix", type="scipy", file=SCHEMA),
    ),
    "scale is masked": (
        "StandardScaler",
        "scale_",
        node("MaskedArrayNode", "numpy.ma.MaskedArray", content={"data": plain(1), "mask": plain(0)}),
    ),
    "scale is text": ("StandardScaler", "scale_", lambda members: array(members, np.array(["a"]), 98)),
    "scale is a view of a file": (
        "StandardScaler",
        "scale_",
        lambda members: array(members, np.array("x"), 98) | {"__class__": "memmap"},
    ),
    "names are an ordered dict": (
        "ColumnTransformer",
        "output_indices_",
        a_dict({"n": plain(1)}, name="collections.OrderedDict"),
    ),
    "keys are any type": ("ColumnTransformer", "output_indices_", a_dict({"n": plain(1)}, key="builtins.bytearray")),
    "keys are made by a function": (
        "ColumnTransformer",
        "output_indices_",
        a_dict({"/tmp/x": plain(1)}, key="os.mkdir"),
    ),
    "a default that is called": (
        "ColumnTransformer",
        "output_indices_",
        node("DefaultDictNode", "collections.defaultdict", content={"main": a_dict({}), "default_factory": RBF}),
    ),
    "a slice of objects": (
        "ColumnTransformer",
        "output_indices_",
        a_dict({"n": node("SliceNode", "builtins.slice", content={"start": [1], "stop": None, "step": None})}),
    ),
    "a seed that is called": ("QuantileTransformer", "random_state", node("RandomStateNode", "numpy.random.seed")),
    "a generator of random numbers": (
        "QuantileTransformer",
        "random_state",
        node(
            "RandomGeneratorNode",
            "numpy.random._generator.Generator",
            content={"bit_generator": a_dict({"bit_generator": plain("seed")}), "seed_seq": a_dict({})},
        ),
    ),
    "a random state beyond its end": (
        "QuantileTransformer",
        "random_state",
        lambda members: node(
            "RandomStateNode",
            "numpy.random.mtrand.RandomState",
            content=a_dict(
                {
                    "bit_generator": plain("MT19937"),
                    "state": a_dict({"key": array(members, np.ones(624, np.uint32), 98), "pos": plain(10**9)}),
                    "has_gauss": plain(0),
                    "gauss": plain(0.0),
                }
            ),
        ),
    ),
    "bytes": ("SimpleImputer", "fill_value", node("BytesNode", "builtins.bytes", file=SCHEMA)),
    "a set": ("SimpleImputer", "fill_value", items("SetNode", "builtins.set", plain(1))),
    "a bound method": (
        "SimpleImputer",
        "strategy",
        node("MethodNode", "sklearn.pipeline.Pipeline", content={"func": "fit", "obj": plain(1)}),
    ),
    "a cached entry": ("SimpleImputer", "strategy", node("CachedNode", "builtins.str", __id__=1)),
    "JSON inside JSON": ("SimpleImputer", "strategy", plain(["mean"])),
    "more than one-hot": ("OneHotEncoder", "_n_features_outs", a_list(plain(1))),
    "a category beyond the last": ("OneHotEncoder", "_drop_idx_after_grouping", objects(plain(-5))),
}


@pytest.mark.parametrize("attack", STATES)
def test_forged_state_is_refused(attack, pipeline_file, path, monkeypatch, refused):
    cls, attribute, forged = STATES[attack]
    pipeline_file(cls, attribute, forged)
    written = sorted(os.listdir(path.parent))
    refused(path, rf"{cls}|has the attribute|one-hot")
    assert sorted(os.listdir(path.parent)) == written


def test_the_pipeline_itself_is_accepted(pipeline_file, path):
    """What is refused above is the forged attribute, not the pipeline around it."""
    pipeline_file("StandardScaler", "copy", plain(False))
    assert load(path)[0].named_transformers_["n"][-1].copy is False


KERNELS = {
    "another function": function("numpy.load"),
    "a ufunc": UFUNC,
    "a helper of ours": function("sparsebayes.core.kernels.squared_distance"),
    "a type": node("TypeNode", "builtins.map"),
    "an estimator": node("ObjectNode", "sklearn.pipeline.Pipeline"),
    "a partial of a partial": partial_of(partial_of(RBF)),
    "a partial of another function": partial_of(function("os.path.join")),
    "a partial with values": partial_of(RBF, plain(1)),
    "a partial with an unknown parameter": partial_of(RBF, out=plain(1)),
    "a partial with a path": partial_of(RBF, gamma=plain("/tmp/x")),
    "a partial with a function": partial_of(RBF, gamma=RBF),
    "a dataclass that is no kernel": an_object("sparsebayes.engine.loop.Settings", tol=plain(1), max_iter=plain(1)),
}


@pytest.mark.parametrize("attack", KERNELS)
def test_only_a_kernel_is_taken_for_one(attack, path, data, refused):
    save(RVMRegressor().fit(*data), path)

    def change(members):
        (fit,) = members[SCHEMA]["content"]["content"]["_fits"]["content"]
        basis = fit["content"]["content"]["basis"]["content"]["content"]
        basis["kernel"]["content"]["content"]["kernel"] = KERNELS[attack]

    rewritten(path, change)
    refused(path, "kernel")


@pytest.mark.parametrize("steps", ["", "StandardScaler"])
def test_the_last_step_must_be_a_model_of_ours(steps, path, refused):
    stored(make_pipeline(StandardScaler()) if steps else StandardScaler(), path)
    refused(path, "model")


def test_loading_imports_nothing_that_a_file_names(path):
    save(ARDRegressor(), path)
    with_attribute(path, "verbose", node("TypeNode", "this.s"))
    program = f"""
import sys, sparsebayes
try: sparsebayes.load({str(path)!r})
except ValueError: print('this' in sys.modules)
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"


def test_a_message_shows_no_control_characters(path):
    save(ARDRegressor(), path)
    with_attribute(path, "verbose", node("TypeNode", "\x1b[2J.\x07bell"))
    with pytest.raises(ModelFileError) as caught:
        load(path)
    assert str(caught.value).isprintable()
