"""What scikit-learn and its users expect of every estimator in the register."""

import doctest
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from checks import NUMERICAL, check_name, checks_of
from forms import averages
from numpy.testing import assert_allclose, assert_array_equal
from packages import skip_without_names
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import InvalidParameterError, validate_parameter_constraints
from sklearn.utils.validation import check_is_fitted

from sparsebayes.estimators import ESTIMATORS


# Some of scikit-learn's checks fit noise-free data, of which the estimator rightly tells.
@pytest.mark.filterwarnings("ignore:the noise variance reached its floor")
def test_scikit_learn_check(estimator_check):
    estimator_check()


def test_pickle_keeps_every_bit(estimator, data_for):
    X, y = data_for(estimator)
    model = clone(estimator).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(X), model.predict(X))
    if hasattr(model, "predict_interval"):
        assert_array_equal(again.predict_interval(X), model.predict_interval(X))


def test_clone_of_fitted_is_unfitted_with_same_parameters(estimator, data_for):
    model = clone(estimator).fit(*data_for(estimator))
    copy = clone(model)
    assert copy.get_params() == estimator.get_params()
    with pytest.raises(NotFittedError):
        check_is_fitted(copy)


def test_set_params_reaches_every_parameter(default):
    params = default.get_params()
    assert params.keys() == default._parameter_constraints.keys()
    model = clone(default)
    marks = {key: object() for key in params}
    assert model.set_params(**marks).get_params() == marks
    with pytest.raises(ValueError, match="no_such"):
        model.set_params(no_such=1)


def test_parameters_are_keyword_only(default):
    with pytest.raises(TypeError):
        type(default)("auto")


def test_fit_writes_no_parameter(estimator, data_for):
    model = clone(estimator)
    before = model.get_params()
    assert model.fit(*data_for(estimator)) is model
    assert all(value is before[key] for key, value in model.get_params().items())


def test_refit_forgets_the_first_fit(estimator, data_for):
    model = clone(estimator).fit(*data_for(estimator, d=8, seed=1))
    X, y = data_for(estimator)
    assert_array_equal(model.fit(X, y).predict(X), clone(estimator).fit(X, y).predict(X))


def test_pipeline_with_scaler(estimator, data_for):
    X, y = data_for(estimator)
    assert make_pipeline(StandardScaler(), clone(estimator)).fit(X * 100, y).score(X * 100, y) > 0.75


def test_grid_search_over_min_gain(priced, data_for):
    X, y = data_for(priced)
    search = GridSearchCV(priced, {"min_gain": ["auto", 0, 1.0, 1e6]}, cv=3).fit(X, y)
    assert search.best_params_["min_gain"] != 1e6  # at that price nothing is kept
    assert search.best_score_ > 0.75


def test_cross_validation_scores(quick_default, data_for):
    # A kernel model cannot know that only three of the twelve features matter, and needs more rows.
    assert cross_val_score(quick_default, *data_for(quick_default, n=120), cv=4).min() > 0.6


def importances(model):
    """Inclusion probabilities, of the class for which each feature is surest."""
    return np.atleast_2d(model.inclusion_probability_).max(axis=0)


SELECTION = {False: {"threshold": 1e-12}, True: {"threshold": 0.9, "importance_getter": importances}}
"""How scikit-learn selects what a model keeps: weights other than zero or, where it averages, claims."""


def test_select_from_model_takes_what_the_estimator_keeps(selector, data_for):
    X, y = data_for(selector)
    chosen = SelectFromModel(clone(selector), **SELECTION[averages(selector)]).fit(X, y)
    assert_array_equal(chosen.get_support(), chosen.estimator_.get_support())
    assert chosen.get_support()[:3].all()
    assert_array_equal(chosen.transform(X), X[:, chosen.get_support()])


@pytest.fixture(params=[pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def frame_of(request):
    def make(X):
        return request.param({f"gene {j}": column for j, column in enumerate(X.T)})

    return make


def test_frames_are_read_and_their_names_checked(estimator, data_for, frame_of):
    X, y = data_for(estimator)
    frame = frame_of(X)
    skip_without_names(frame)
    model = clone(estimator).fit(frame, y)
    assert list(model.feature_names_in_) == list(frame.columns)
    # A frame's columns lie otherwise in memory, so sums are rounded otherwise.
    predict = "decision_function" if is_classifier(estimator) else "predict"
    expected = getattr(clone(estimator).fit(X, y), predict)(X)
    assert_allclose(getattr(model, predict)(frame), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[[*frame.columns[1:], frame.columns[0]]])


def test_set_output_through_a_selector(default_selector, data_for, frame_of):
    X, y = data_for(default_selector)
    frame = frame_of(X)
    skip_without_names(frame)
    kind = type(frame).__module__.split(".")[0]
    pipeline = make_pipeline(
        StandardScaler(), SelectFromModel(clone(default_selector), **SELECTION[averages(default_selector)])
    )
    kept = pipeline.set_output(transform=kind).fit(frame, y).transform(frame)
    assert isinstance(kept, type(frame))
    assert list(kept.columns) == [f"gene {j}" for j in pipeline[-1].estimator_.get_support(indices=True)]


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_docstring_examples_run(cls):
    tests = [test for test in doctest.DocTestFinder().find(cls, cls.__name__) if test.examples]
    assert tests, "the class shows no example"
    assert all(doctest.DocTestRunner().run(test).failed == 0 for test in tests)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_docstring_names_every_parameter_and_fitted_attribute(cls, data_for):
    model = cls().fit(*data_for(cls()))
    public = [key for key in vars(model) if not key.startswith("_")]
    words = set(cls.__doc__.replace(",", " ").split())
    assert not [key for key in public if key not in words]


def test_every_default_is_an_allowed_value(default):
    """A fit checks only parameters that are not the defaults."""
    validate_parameter_constraints(type(default)._parameter_constraints, default.get_params(), type(default).__name__)


def test_a_parameter_that_equals_no_default_is_checked(default):
    for name in ("tol", "max_iter"):
        wrong = clone(default).set_params(**{name: -1})
        with pytest.raises(InvalidParameterError, match=name):
            wrong._validate_params()


def test_repr_names_only_what_differs_from_the_defaults(default):
    assert repr(default) == f"{type(default).__name__}()"
    assert "max_iter=7" in repr(clone(default).set_params(max_iter=7))


def test_register_is_what_the_package_exports():
    import sparsebayes

    exported = [getattr(sparsebayes, name) for name in sparsebayes.__all__]
    assert {thing for thing in exported if isinstance(thing, type) and hasattr(thing, "predict")} == set(ESTIMATORS)


# Rows that count many times have no noise between them: a kernel model may reproduce them.
@pytest.mark.filterwarnings("ignore:the noise variance reached its floor")
def test_fit_leaves_its_inputs_alone(estimator, data_for):
    X, y = data_for(estimator)
    weight = np.arange(1.0, len(X) + 1)
    copies = X.copy(), y.copy(), weight.copy()
    clone(estimator).fit(X, y, sample_weight=weight)
    for array, copy in zip((X, y, weight), copies, strict=True):
        assert_array_equal(array, copy)


def test_weights_below_zero_are_named(default, data_for):
    X, y = data_for(default)
    weight = np.ones(len(X))
    weight[3] = -0.5
    with pytest.raises(ValueError, match="sample_weight"):
        clone(default).fit(X, y, sample_weight=weight)


def test_the_checks_of_numbers_exist():
    found = {check_name(check) for cls in ESTIMATORS for check in checks_of(cls())}
    assert found >= NUMERICAL
