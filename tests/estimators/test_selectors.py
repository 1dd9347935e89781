"""Estimators that keep features are selectors: transform, names of columns, frames."""

import inspect
from typing import Self

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from packages import skip_without_names
from sklearn.base import clone, is_classifier
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from test_documents import python_blocks

from sparsebayes import (
    DRVMRegressor,
    PFCVMClassifier,
    SparseLogisticRegression,
    StabilitySelector,
    VBLogisticRegression,
)
from sparsebayes.estimators import ESTIMATORS
from sparsebayes.inspection import CoverageDisplay, EvidencePathDisplay, RelevanceDisplay

WEIGHTED = [DRVMRegressor(n_restarts=1, random_state=0), PFCVMClassifier(n_restarts=1, random_state=0)]


@pytest.fixture(params=WEIGHTED, ids=lambda model: type(model).__name__)
def weighted(request, rng):
    """A fitted model with feature weights, and its data: of six features the first two matter."""
    X = rng.standard_normal((80, 6))
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    return clone(request.param).fit(X, y > 0 if is_classifier(request.param) else y + 0.1 * rng.standard_normal(80)), X


def test_a_linear_model_gives_the_features_that_it_keeps(default_selector, data_for):
    X, y = data_for(default_selector)
    model = clone(default_selector).fit(X, y)
    kept = model.get_support(indices=True)
    assert len(kept) < X.shape[1] or isinstance(model, VBLogisticRegression)  # which keeps all
    assert_array_equal(model.transform(X), X[:, kept])
    assert_array_equal(clone(default_selector).fit_transform(X, y), X[:, kept])
    assert model.get_feature_names_out().tolist() == [f"x{j}" for j in kept]
    back = model.inverse_transform(model.transform(X))
    assert_array_equal(back[:, kept], X[:, kept])
    assert not np.delete(back, kept, axis=1).any()


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_frames_stay_frames(default_selector, data_for, make):
    X, y = data_for(default_selector)
    frame = make({f"gene {j}": column for j, column in enumerate(X.T)})
    skip_without_names(frame)
    kind = make.__module__.split(".")[0]
    model = clone(default_selector).set_output(transform=kind).fit(frame, y)
    kept = model.transform(frame)
    assert isinstance(kept, make)
    assert list(kept.columns) == list(model.get_feature_names_out())
    assert list(kept.columns) == [f"gene {j}" for j in model.get_support(indices=True)]


def test_a_step_before_another_model(default_selector, data_for):
    """A pipeline of a selector and a model sees what the selector keeps."""
    X, y = data_for(default_selector)
    last = LogisticRegression() if is_classifier(default_selector) else LinearRegression()
    pipeline = make_pipeline(clone(default_selector), last).fit(X, y)
    assert pipeline[-1].n_features_in_ == pipeline[0].get_support().sum()
    assert pipeline.predict(X).shape == y.shape


def test_feature_weights_select_and_are_importances(weighted):
    model, X = weighted
    kept = model.get_support(indices=True)
    assert {0, 1} <= set(kept)
    assert_array_equal(model.transform(X), X[:, kept])
    assert model.get_feature_names_out().tolist() == [f"x{j}" for j in kept]
    shares = model.feature_importances_
    assert shares.shape == (6,)
    assert_allclose(shares.sum(), 1)
    assert_array_equal(np.flatnonzero(shares), kept)


def test_importances_do_not_depend_on_units(rng):
    X = rng.standard_normal((60, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(60)
    model = clone(WEIGHTED[0])
    shares = [clone(model).fit(X * unit, y).feature_importances_ for unit in (np.ones(4), np.array([8.0, 0.25, 1, 64]))]
    assert_allclose(*shares, rtol=1e-3, atol=1e-6)


def test_select_from_model_finds_importances(weighted, rng):
    model, X = weighted
    chosen = SelectFromModel(model, prefit=True, threshold=1e-12)
    assert_array_equal(chosen.transform(X), model.transform(X))


def test_select_from_model_takes_what_is_kept_if_told_so(rng):
    """The remedy of docs/which_features.md, in any unit of the target; the default rule takes something else."""
    names = {}
    for code in python_blocks("docs/which_features.md"):
        if "def kept" in code:
            exec("from sparsebayes import ARDRegressor\n" + code, names)
    X = rng.standard_normal((80, 8))
    y = 3 * X[:, 1] + 0.3 * X[:, 5] + 0.1 * rng.standard_normal(80)
    for unit in (1e-9, 1.0, 1e9):
        chosen = clone(names["selector"]).fit(X, unit * y)
        assert_array_equal(np.flatnonzero(chosen.get_support()), [1, 5])
        assert_array_equal(chosen.get_support(), chosen.estimator_.get_support())


# --- displays ---


def test_displays_work_on_pipelines_of_several_classes(rng):
    X = pd.DataFrame(rng.standard_normal((90, 4)), columns=list("abcd"))
    y = np.array(["low", "middle", "high"])[np.digitize(X["a"] + 0.3 * rng.standard_normal(90), [-0.5, 0.5])]
    pipeline = make_pipeline(StandardScaler(), SparseLogisticRegression(average=False)).fit(X, y)
    for output in ("low", "middle", "high"):
        names = RelevanceDisplay.from_estimator(pipeline, output=output).names
        assert names == ([] if output == "middle" else ["a"])  # the middle is no matter of more or less
        assert CoverageDisplay.from_estimator(pipeline, X, y, output=output).observed.min() >= 0
    assert CoverageDisplay.from_estimator(pipeline, X, y).count.sum() == 90
    assert EvidencePathDisplay.from_estimator(pipeline).labels == ["high", "low", "middle"]
    with pytest.raises(ValueError, match=r"This model has 3 outputs\. Pass output= one of \['high', 'low', 'middle'\]"):
        RelevanceDisplay.from_estimator(pipeline)


# --- types ---


@pytest.mark.parametrize("cls", [*ESTIMATORS, StabilitySelector], ids=lambda cls: cls.__name__)
def test_fit_returns_the_estimator_and_says_so(cls):
    assert inspect.signature(cls.fit).return_annotation is Self
