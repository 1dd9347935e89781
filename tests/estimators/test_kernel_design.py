"""Kernel designs, and how the kernel estimators are composed: no early columns, no chain of estimators."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import SVR

from sparsebayes import BLSRegressor, DRVMRegressor, PCVMClassifier, PFCVMClassifier, RVMClassifier, RVMRegressor
from sparsebayes.core.kernels import KERNELS, Kernel
from sparsebayes.core.standard_units import StandardUnits
from sparsebayes.engine.process import regression_signal
from sparsebayes.estimators import ESTIMATORS, _kernel_design
from sparsebayes.estimators._kernel_design import (
    KernelParameters,
    centred_design,
    choose_kernel,
    kernel_design,
    own_columns,
    scale_gamma,
)


def problem(n=40):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n, 3))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize("cls", ESTIMATORS, ids=lambda cls: cls.__name__)
def test_no_estimator_is_another_one(cls):
    assert not set(cls.__mro__[1:]) & set(ESTIMATORS)


@pytest.mark.parametrize("cls", [DRVMRegressor, PFCVMClassifier])
def test_models_without_a_width_have_no_gamma(cls):
    assert "gamma" not in cls().get_params()
    assert not hasattr(cls(), "gamma")


@pytest.mark.parametrize(
    "model", [DRVMRegressor(n_restarts=1), PFCVMClassifier(n_restarts=1), BLSRegressor(feature_weights=True)], ids=str
)
def test_a_model_with_feature_weights_forms_no_kernel_of_one_width(model, monkeypatch):
    formed = []
    monkeypatch.setattr(_kernel_design.CheckedKernel, "__call__", lambda *args: formed.append(args))
    X, y = problem()
    model.fit(X, y > 0 if isinstance(model, PFCVMClassifier) else y)
    assert not formed


def test_columns_are_formed_once_and_only_when_asked_for():
    calls = []

    def kernel(X, Z):
        calls.append(1)
        return X @ Z.T

    X, _ = problem()
    design = kernel_design(RVMRegressor(), X, np.ones(40), np.ones(40, dtype=bool), kernel, ones=True)
    assert not calls
    assert design.columns is design.columns
    assert len(calls) == 1
    assert_allclose(design.columns.X, np.column_stack([X @ X.T, np.ones(40)]))
    assert design.n_columns == 41
    other = design.at(lambda X, Z: np.zeros((len(X), len(Z))))
    assert not other.columns.X[:, :-1].any()


def test_equal_rows_are_one_centre_which_belongs_to_none_of_them():
    X = np.array([[0.0], [1.0], [0.0], [2.0]])
    given = np.array([True, True, False, True, True])
    design = centred_design(X, np.array([1.0, 2.0, 1.0, 1.0]), given, None, None)
    assert_array_equal(design.centres, [[0.0], [1.0], [2.0]])
    assert_array_equal(design.indices, [0, 1, 4])
    assert_array_equal(design.own_column, [-1, -1, -1, 2])  # repeated, of weight two, repeated, alone


def test_own_columns_by_a_loop(rng):
    X = rng.integers(0, 3, (20, 2)).astype(float)
    weight, centres = rng.integers(1, 3, 20).astype(float), np.unique(X, axis=0)[1:]
    expected = []
    for x in X:
        alone = weight[(x == X).all(axis=1)].sum() <= 1
        where = np.flatnonzero((centres == x).all(axis=1))
        expected.append(where[0] if alone and len(where) else -1)
    assert max(expected) >= 0
    assert_array_equal(own_columns(X, weight, centres), expected)


def test_scale_gamma_is_scikit_learns(rng):
    X, y = rng.normal(3, [1, 20, 0.1], (30, 3)), rng.standard_normal(30)
    assert scale_gamma(X, np.ones(30)) == pytest.approx(SVR(gamma="scale").fit(X, y)._gamma)
    times = rng.integers(1, 4, 30)
    repeated = np.repeat(X, times, axis=0)
    assert scale_gamma(X, times.astype(float)) == pytest.approx(scale_gamma(repeated, np.ones(len(repeated))))


def test_a_kernel_is_one_entry_of_the_register(monkeypatch):
    """An estimator knows a new kernel by its record alone."""

    def cauchy(X, Z, *, gamma=1.0, coef0=1.0):
        return coef0 / (1 + gamma * ((X[:, None] - Z) ** 2).sum(axis=-1))

    monkeypatch.setitem(KERNELS, "cauchy", Kernel(cauchy, ("gamma", "coef0")))
    X, y = problem()
    ones, at = np.ones(40), StandardUnits.by_deviation(X, np.ones(40))
    for standardize, seen in ((False, X), (True, at(X))):
        parameters = KernelParameters("cauchy", 0.3, 3, 2.0, standardize)
        (units,) = parameters.units(X, ones)
        kernel = parameters.at(0.3, units)
        assert_allclose(kernel(X, X[:5]), cauchy(seen, seen[:5], gamma=0.3, coef0=2.0))
        model = RVMRegressor(kernel="cauchy", coef0=2.0, standardize=standardize)
        chosen = choose_kernel(model, X, lambda: y[:, None], ones, regression_signal, flat_intercept=True)
        assert chosen.gamma == scale_gamma(seen, ones)  # it has no metric by which widths could be compared
    model = RVMRegressor(kernel="linear")
    linear = choose_kernel(model, X, lambda: y[:, None], ones, regression_signal, flat_intercept=True)
    assert linear.gamma is None


@pytest.mark.parametrize("cls", [PCVMClassifier, RVMClassifier])
def test_a_classifier_is_fitted_once_at_the_width_of_largest_evidence(cls, monkeypatch):
    """The width comes from a Gaussian process, not from fits of the classifier."""
    widths = []
    fit = cls._fit_binary

    def counted(self, inputs, t, weight):
        design = (inputs.standard if cls is PCVMClassifier else inputs).design
        widths.append(design.kernel.kernel.kernel.keywords["gamma"])
        return fit(self, inputs, t, weight)

    monkeypatch.setattr(cls, "_fit_binary", counted)
    X, y = problem()
    model = cls(**({} if cls is PCVMClassifier else {"vectors": "sparse"})).fit(X, y > 0)
    assert widths == [model.gamma_]


@pytest.mark.parametrize("cls", [BLSRegressor, PCVMClassifier, RVMClassifier, RVMRegressor])
def test_the_width_is_that_of_all_outputs_together(cls):
    """Twice the same output in other units has the width of one, and so have swapped classes."""
    X, y = problem()
    if cls in (BLSRegressor, RVMRegressor):
        one, two = cls().fit(X, y), cls().fit(X, np.column_stack([y, 3 - 2 * y]))
        assert two.gamma_ == pytest.approx(one.gamma_, rel=1e-6)
    else:
        one, swapped = cls().fit(X, y > 0), cls().fit(X, y <= 0)
        assert swapped.gamma_ == pytest.approx(one.gamma_, rel=1e-6)
    assert 1e-3 < one.gamma_ < 10


@pytest.mark.parametrize("kernel", ["poly", "sigmoid"])
def test_a_kernel_without_a_width_takes_the_rule_of_thumb(kernel):
    X, y = problem()
    model = RVMRegressor(kernel=kernel, vectors="sparse").fit(X, y)
    assert model.gamma_ == pytest.approx(1 / 3)  # three features of variance one


@pytest.mark.parametrize("hashed", [2**20, 0], ids=["by bytes", "sorted"])
def test_equal_rows_are_one_centre_however_they_are_compared(rng, monkeypatch, hashed):
    """No column is without ties; the rows differ but for copies, of which one has -0 for 0."""
    monkeypatch.setattr(_kernel_design, "HASHED", hashed)
    X = np.array([[a, b, c] for a in (0.0, 1.0) for b in (0.0, 2.0) for c in (0.0, 3.0, 5.0)])[rng.permutation(12)]
    assert_array_equal(_kernel_design._first_of_equals(X), np.arange(12))
    assert_array_equal(_kernel_design._first_of_equals(np.asfortranarray(X)), np.arange(12))
    assert_array_equal(_kernel_design._first_of_equals(np.vstack([X, X[[3, 5]]])), np.arange(12))
    negative = np.where(X[4] == 0, -0.0, X[4])
    assert_array_equal(_kernel_design._first_of_equals(np.vstack([X, negative])), np.arange(12))


@pytest.mark.filterwarnings("error")
def test_kernel_values_whose_squares_overflow_are_finite(rng):
    """Only values that are not finite themselves are refused, and nothing warns."""
    X = rng.standard_normal((5, 2))

    def kernel_of(value):
        return _kernel_design.CheckedKernel(lambda X, Z: np.where(np.eye(len(X), len(Z)) > 0, value, 1.0))

    assert kernel_of(1e200)(X, X)[0, 0] == 1e200
    for wrong in (np.inf, np.nan):
        with pytest.raises(ValueError, match="not finite"):
            kernel_of(wrong)(X, X)
