"""Data that go wrong, for every estimator of the register: it answers, or says what is at fault."""

import numpy as np
import pytest
from counting import counts, is_counting
from forms import averages
from numpy.testing import assert_allclose
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError

FLOOR_TOLD = pytest.mark.filterwarnings("ignore:the noise variance reached its floor")
"""On data that can be reproduced exactly the estimator rightly says so."""


# --- every estimator of the register ---


def target_of(model, y):
    if is_classifier(model):
        return np.where(y > np.median(y), "high", "low")
    return counts(y) if is_counting(model) else y


def assert_answers(model, X, y):
    """Finite answers that are better than those of a constant."""
    assert np.isfinite(model.log_evidence_).all()
    if is_classifier(model):
        probability = model.predict_proba(X)
        assert np.isfinite(probability).all()
        assert_allclose(probability.sum(axis=1), 1.0)
        assert model.score(X, y) >= np.unique(y, return_counts=True)[1].max() / len(y)
    else:
        mean, std = model.predict(X, return_std=True)
        assert np.isfinite(mean).all()
        assert (std > 0).all()
        if is_counting(model):
            # By the deviance, which counts are fitted by; a model that keeps nothing is a constant itself.
            assert model.score(X, y) >= -1e-6 or not len(model.active_)
        else:
            assert np.linalg.norm(y - mean) <= np.linalg.norm(y - y.mean()) * (1 + 1e-6)


def spoilt_by_constants(X):
    X = X.copy()
    X[:, 3], X[:, 4] = 7.1, 0.0
    return X


def with_an_outlier(X):
    X = X.copy()
    X[7, 2] = 1e12
    return X


INPUTS = {
    "constant and zero columns": spoilt_by_constants,
    "only one column": lambda X: X[:, :1],
    "copies of columns": lambda X: np.column_stack([X, X[:, 0], -2 * X[:, 0]]),
    "an outlier": with_an_outlier,
    "tiny numbers": lambda X: 1e-100 * X,
    "huge numbers": lambda X: 1e100 * X,
    "far from the origin": lambda X: X + 1e7,
    "integers": lambda X: np.rint(10 * X).astype(int),
}


@FLOOR_TOLD
@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("change", INPUTS.values(), ids=INPUTS)
def test_strange_inputs(every, make_data, change):
    X, y = make_data(50, 6, n_true=2)
    X, y = change(X), target_of(every, y)
    assert_answers(clone(every).fit(X, y), X, y)


@FLOOR_TOLD
@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("shape", [(2, 3), (4, 1), (12, 60)], ids=str)
def test_few_rows(every, make_data, shape):
    X, y = make_data(*shape, n_true=1)
    y = target_of(every, y)
    assert_answers(clone(every).fit(X, y), X, y)


@FLOOR_TOLD
def test_rows_five_times(every, make_data):
    X, y = (np.repeat(array, 5, axis=0) for array in make_data(20, 4, n_true=2))
    y = target_of(every, y)
    assert_answers(clone(every).fit(X, y), X, y)


@pytest.mark.parametrize("value", [0.0, 1 / 3, -1e12])
def test_a_constant_target_is_predicted(every_regressor, make_data, value):
    X, y = make_data(30, 4, n_true=2)
    model, constant = clone(every_regressor), np.full(len(y), value)
    if is_counting(model) and value <= 0:
        with pytest.raises(ValueError, match="y"):
            model.fit(X, constant)
        return
    model.fit(X, constant)
    # The mean of exp η is above exp of its mean, as long as the rate is not known exactly; the more so if it may depend
    # on features.
    rtol = 0.1 * (1 + averages(model)) if is_counting(model) else 1e-12
    assert_allclose(model.predict(X), value, rtol=rtol)


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("gap", [1.0, 1e6])
def test_separable_classes_have_finite_answers(every_classifier, gap, rng):
    y = np.arange(40) % 2
    X = np.column_stack([gap * (2 * y - 1) + 0.1 * gap * rng.standard_normal(40), rng.standard_normal((40, 2))])
    model = clone(every_classifier).fit(X, y)
    assert_answers(model, X, y)
    assert model.score(X, y) == 1.0


def test_one_class_only_is_refused(every_classifier, make_data):
    X, y = make_data(30, 4, n_true=2)
    with pytest.raises(ValueError, match="class"):
        clone(every_classifier).fit(X, np.full(len(y), "only"))


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "predict_interval", "sample_y"])
def test_no_estimator_answers_before_fit_or_for_rows_of_another_width(every, make_data, method):
    if not hasattr(every, method):
        pytest.skip(f"has no {method}")
    X, y = make_data(40, 4, n_true=2)
    model = clone(every)
    with pytest.raises(NotFittedError):
        getattr(model, method)(X)
    model.fit(X, target_of(every, y))
    with pytest.raises(ValueError, match="expecting 4 features"):
        getattr(model, method)(X[:, 1:])


def test_every_fit_that_runs_out_of_steps_says_so(every, make_data):
    if type(every).__name__ == "DRVMRegressor":
        pytest.skip("its max_iter is that of each stage, and a stage may need one step only")
    X, y = make_data(50, 6, n_true=4)
    model = clone(every).set_params(max_iter=1)
    if "vectors" in model.get_params():
        model.set_params(vectors="sparse")  # a Gaussian process takes no steps
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model.fit(X, target_of(every, y))
    assert not model.converged_
    assert np.isfinite(model.predict_proba(X) if is_classifier(model) else model.predict(X)).all()


def test_every_refused_refit_leaves_no_fit(every, make_data):
    X, y = make_data(40, 4, n_true=2)
    y = target_of(every, y)
    model = clone(every).fit(X, y)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full_like(X, np.nan), y)
    with pytest.raises(NotFittedError):
        model.predict(X)
