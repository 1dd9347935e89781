"""The allow list: which types a model file may hold, and of what kind each of their attributes must be.

skops trusts every estimator of scikit-learn by its name. That is not enough: some of them call what their attributes
hold, look methods up by a name from an attribute, or use one as a path. So only the types below are allowed, and only
with attributes whose kinds are known:

* A parameter of the constructor is of the kind that the class itself declares in `_parameter_constraints`, as far as
  that is a number, a word out of a list, an array or None. Functions and free text need an entry in `STEPS`.
* A fitted attribute of a step of scikit-learn is listed in `STEPS`.
* A fitted attribute of an estimator of ours holds plain data; a private one is annotated in its class.

Before a type joins `STEPS`, read what its methods do with every attribute.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from numbers import Integral, Real
from typing import Any

from sklearn import feature_selection as selection
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.pipeline import Pipeline
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
from sklearn.utils._param_validation import Hidden, Interval, MissingValues, Options

from sparsebayes.io.archive import Archive, Refused
from sparsebayes.io.kinds import (
    DTYPE,
    NONE,
    NUMBER,
    PLAIN,
    TEXT,
    WORDS,
    Array,
    Dict,
    Entry,
    Kind,
    Object,
    RandomState,
    Row,
    Several,
    Slice,
    State,
    Version,
    Whole,
    any_of,
    check,
    choice,
    functions,
    is_a,
    told,
)
from sparsebayes.io.own_types import KERNEL, estimators, private_kinds

# The tables below hold each other: these functions read them when a file is checked.


@cache
def own_states() -> Mapping[str, State]:
    """Our estimators by their names."""
    return {state.name: state for state in map(_own_state, estimators())}


def _own_state(cls: type[BaseEstimator]) -> State:
    kinds = {**_parameters(cls), **COMMON, **private_kinds(cls)}
    if "kernel" in kinds:
        kinds["kernel"] |= KERNEL
    if "estimator" in kinds:
        kinds["estimator"] = STEP
    return State(cls, frozenset(cls._get_param_names()), kinds, FITTED)


@cache
def step_states(*classes: type) -> Mapping[str, State]:
    """Steps of scikit-learn by their names: these, or all."""
    states = [State(cls, frozenset(), {**_parameters(cls), **COMMON, **STEPS[cls]}) for cls in classes or STEPS]
    return {state.name: state for state in states}


@cache
def all_states() -> Mapping[str, State]:
    """All estimators by their names."""
    return {**own_states(), **step_states()}


MOST_JOBS = 256
"""Workers that a model may ask for: each is a process."""
ARRAY = Array() | NONE
BOTH = ("ListNode", "TupleNode")
NUMBERS = Several(NUMBER, BOTH)
ARRAY_LIKE = any_of(Array(), WORDS, Several(any_of(PLAIN, Several(PLAIN, BOTH), Array(), WORDS), BOTH))
FITTED = any_of(PLAIN, Array("biufUS"), WORDS, Several(any_of(PLAIN, Array("biufUS"))))
"""What fitted attributes of our estimators hold."""

OWN: Kind = Object(lambda: own_states())
STEP: Kind = Object(lambda: all_states())
COLUMNS = any_of(PLAIN, Slice(), Array("biuU"), WORDS, Several(PLAIN))
BRANCH = any_of(STEP, choice("drop", "passthrough"))
BRANCHES = Several(Row((TEXT, BRANCH, COLUMNS)))
SCORES = functions(
    selection.chi2,
    selection.f_classif,
    selection.f_regression,
    selection.r_regression,
    selection.mutual_info_classif,
    selection.mutual_info_regression,
)


def _all(kind: Kind, *names: str) -> dict[str, Kind]:
    return dict.fromkeys(names, kind)


COMMON: Mapping[str, Kind] = {
    "n_jobs": Whole(-MOST_JOBS, MOST_JOBS) | NONE,
    "n_features_in_": NUMBER,
    "feature_names_in_": WORDS,
    "_sklearn_version": Version(),
    "_sklearn_output_config": Dict(choice("default", "pandas", "polars"), frozenset({"transform"})),
}
"""Attributes that any estimator may have."""
SCORED = {"score_func": SCORES, **_all(ARRAY, "scores_", "pvalues_")}
IMPUTED = {
    "fill_value": PLAIN,
    "statistics_": Array() | WORDS,
    **_all(DTYPE | NONE, "_fit_dtype", "_fill_dtype"),
    "indicator_": any_of(NONE, Object(lambda: step_states(MissingIndicator))),
    **_all(Array(), "_fit_X", "_mask_fit_X", "_valid_mask"),
}
ENCODED = {
    "categories": choice("auto") | ARRAY_LIKE,
    "dtype": DTYPE,
    "categories_": Several(Array() | WORDS),
    "_infrequent_enabled": NUMBER,
    **_all(Several(ARRAY), "_infrequent_indices", "_default_to_infrequent_mappings"),
    "_missing_indices": Dict(NUMBER),
}
STEPS: Mapping[type, Mapping[str, Kind]] = {
    # `memory` is a path, and the names in `transform_input` those of methods' arguments.
    Pipeline: {
        "steps": Several(Row((TEXT, any_of(STEP, choice("passthrough"), NONE)))),
        "memory": NONE,
        "transform_input": NONE,
    },
    # Columns may be chosen by a function, and names be made by a function or from a format.
    ColumnTransformer: {
        **_all(BRANCHES, "transformers", "transformers_"),
        "remainder": BRANCH,
        "_remainder": Row((TEXT, BRANCH, COLUMNS)),
        "transformer_weights": NONE | Dict(NUMBER),
        **_all(NUMBER, "verbose_feature_names_out", "sparse_output_", "_n_features"),
        "force_int_remainder_cols": NUMBER | choice("deprecated"),
        "_columns": Several(COLUMNS),
        "_transformer_to_input_indices": Dict(NUMBERS),
        "_name_to_fitted_passthrough": Dict(STEP),
        "_transformers_feature_names_out": WORDS,
        "output_indices_": Dict(Slice()),
    },
    # ColumnTransformer keeps one for "passthrough"; its functions would be called.
    FunctionTransformer: {
        **_all(NONE, "func", "inverse_func", "kw_args", "inv_kw_args"),
        "feature_names_out": NONE | choice("one-to-one"),
    },
    StandardScaler: _all(ARRAY, "mean_", "var_", "scale_") | {"n_samples_seen_": NUMBER | Array()},
    MinMaxScaler: {
        "feature_range": NUMBERS,
        **_all(Array(), "min_", "scale_", "data_min_", "data_max_", "data_range_"),
        "n_samples_seen_": NUMBER,
    },
    MaxAbsScaler: _all(Array(), "scale_", "max_abs_") | {"n_samples_seen_": NUMBER},
    RobustScaler: _all(ARRAY, "center_", "scale_") | {"quantile_range": NUMBERS},
    PowerTransformer: {"lambdas_": Array(), "_scaler": Object(lambda: step_states(StandardScaler))},
    QuantileTransformer: _all(Array(), "quantiles_", "references_") | {"n_quantiles_": NUMBER},
    Normalizer: {},
    # `strategy`, `metric` and `weights` may be functions.
    SimpleImputer: IMPUTED,
    KNNImputer: IMPUTED,
    MissingIndicator: _all(NUMBER, "_precomputed", "_n_features") | {"features_": Array()},
    # `feature_name_combiner` may be a function. What compiled code takes on trust is checked in `sound`.
    OneHotEncoder: ENCODED
    | _all(NONE | Array() | WORDS, "drop_idx_", "_drop_idx_after_grouping")
    | {"_n_features_outs": NUMBERS},
    OrdinalEncoder: ENCODED,
    PCA: {
        **_all(Array(), "mean_", "components_", "explained_variance_", "explained_variance_ratio_", "singular_values_"),
        **_all(NUMBER, "noise_variance_", "n_samples_", "n_components_"),
        "_fit_svd_solver": choice("full", "covariance_eigh", "arpack", "randomized"),
    },
    PolynomialFeatures: _all(NUMBER, "_min_degree", "_max_degree", "n_output_features_", "_n_out_full"),
    selection.VarianceThreshold: {"variances_": Array()},
    selection.SelectKBest: SCORED,
    selection.SelectPercentile: SCORED,
    selection.SelectFpr: SCORED,
    selection.SelectFdr: SCORED,
    selection.SelectFwe: SCORED,
    # `importance_getter` is a path through attributes, or a function; `max_features` may be a function.
    selection.SelectFromModel: {
        **_all(OWN, "estimator", "estimator_"),
        "threshold": PLAIN,
        "importance_getter": choice("auto"),
        "max_features_": NUMBER | NONE,
    },
}
"""Steps of scikit-learn, with the attributes that their parameters' constraints do not cover, or cover too widely."""

DECLARED: Mapping[Any, tuple[Kind, ...]] = {
    None: (NONE,),
    "boolean": (NUMBER,),
    "verbose": (NUMBER,),
    "random_state": (NONE, NUMBER, RandomState()),
    "cv_object": (NONE, NUMBER),
    "array-like": (ARRAY_LIKE,),
    "missing_values": (PLAIN,),
    Integral: (NUMBER,),
    Real: (NUMBER,),
    int: (NUMBER,),
    float: (NUMBER,),
    dict: (Dict(NUMBER),),
}
"""What constraints of parameters allow here. Those that are not listed (functions, text, any object) allow nothing."""


def _declared(constraint: Any) -> Iterator[Kind]:
    if isinstance(constraint, Hidden):
        yield from _declared(constraint.constraint)
    elif isinstance(constraint, Options):
        yield choice(*(option for option in constraint.options if isinstance(option, str)))
        yield from (NUMBER for option in constraint.options if not isinstance(option, str))
    elif isinstance(constraint, Interval):
        yield NUMBER
    elif isinstance(constraint, MissingValues):
        yield PLAIN
    else:
        yield from DECLARED.get(constraint, ())


def _parameters(cls: type) -> dict[str, Kind]:
    """Kinds of the constructor's parameters, as far as the class declares them in a way that is safe."""
    constraints = cls._parameter_constraints  # type: ignore[attr-defined]
    return {
        name: any_of(*(kind for constraint in allowed for kind in _declared(constraint)))
        for name, allowed in constraints.items()
        if isinstance(allowed, list)
    }


def check_model(schema: Entry, archive: Archive) -> set[str]:
    """Refuse a description that is not that of a model; otherwise the names of all types and functions in it."""
    names: set[str] = set()
    model = any_of(OWN, Object(lambda: step_states(Pipeline)))
    if not model.fits(schema):
        raise Refused(f"no model but {told(schema)}")
    check(model, schema, archive, names)
    last = schema
    while is_a(last, "ObjectNode") and not OWN.fits(last):
        steps = last["content"]["content"]["steps"]["content"] if last["__class__"] == "Pipeline" else []
        last = steps[-1]["content"][1] if steps else {}
    if not OWN.fits(last):
        raise Refused("a pipeline whose last step is no model of sparsebayes")
    return names
