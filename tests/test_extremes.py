"""Numbers and weights at the ends of their range: a sane answer, or a complaint that names the argument."""

import warnings

import numpy as np
import pytest
from counting import counts, is_counting
from forms import averages
from sklearn.base import clone, is_classifier

from sparsebayes import (
    BLSRegressor,
    DRVMRegressor,
    PCVMClassifier,
    PFCVMClassifier,
    SparseLogisticRegression,
    StabilitySelector,
)


def problem(model, rng, n=30, d=4):
    """Rows, and a target of the model's kind."""
    X = rng.standard_normal((n, d))
    y = 2 * X[:, 0] + 0.3 * rng.standard_normal(n)
    if is_counting(model):
        return X, counts(y)
    return X, (y > 0).astype(float) if is_classifier(model) else y


def answered(model, X, y, new, **options):
    """The predictions of a fit that warns of nothing but convergence and noise-free data."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "not converged|the chains do not agree|the noise variance reached")
        warnings.filterwarnings("error", category=RuntimeWarning)
        found = clone(model).fit(X, y, **options)
        return found.predict_proba(new) if is_classifier(found) else found.predict(new)


# --- sizes ---


@pytest.mark.parametrize("size", [1e155, 1e300, 1e-160, 1e-300])
@pytest.mark.parametrize("which", ["X", "y"])
def test_squares_that_overflow_or_vanish_are_refused_by_name(every, which, size, rng):
    X, y = problem(every, rng)
    if which == "y" and (is_classifier(every) or is_counting(every)):
        return
    X, y = (X * size, y) if which == "X" else (X, y * size)
    told = f"{'column 0 of X' if which == 'X' else 'y'} has values up to .*, whose squares (overflow|vanish)"
    with pytest.raises(ValueError, match=told):
        clone(every).fit(X, y)


@pytest.mark.parametrize("size", [1e120, 1e-120])
def test_sizes_far_from_one_give_the_same_answer(every, size, rng):
    """Up to the stopping rule: the numbers differ by rounding, which a search may end a step sooner or later by."""
    X, y = problem(every, rng)
    if "ard" in every.get_params() and "a0" in every.get_params():
        pytest.skip("the prior of VBLogisticRegression is in the units of the features")
    expected = answered(every, X, y, X)
    np.testing.assert_allclose(answered(every, X * size, y, X * size), expected, rtol=0.02, atol=0.02)


def test_one_extreme_column_is_named(every, rng):
    X, y = problem(every, rng)
    X[3, 2] = 1e200
    with pytest.raises(ValueError, match="column 2 of X has values up to 1e\\+200"):
        clone(every).fit(X, y)


# --- weights ---


def test_a_class_without_weight_is_refused_by_name(every_classifier, rng):
    X, y = problem(every_classifier, rng)
    y[:5] = 2
    with pytest.raises(ValueError, match=r"class '2.0' has no row with a positive weight"):
        clone(every_classifier).fit(X, y, sample_weight=(y < 2).astype(float))
    if "class_weight" in every_classifier.get_params():
        with pytest.raises(ValueError, match=r"class '2.0' has no row with a positive weight"):
            clone(every_classifier).set_params(class_weight={2: 0.0}).fit(X, y)
        with pytest.raises(ValueError, match=r"class_weight=.* leaves no row"):
            clone(every_classifier).set_params(class_weight={0: 0.0, 1: 0.0, 2: 0.0}).fit(X, y)


def test_a_class_with_next_to_no_weight_is_refused_by_name(every_classifier, rng):
    X, y = problem(every_classifier, rng)
    with pytest.raises(ValueError, match=r"rows of class '1.0' have a weight of .* in .*: give them more weight"):
        clone(every_classifier).fit(X, y, sample_weight=np.where(y == 1, 1e-200, 1.0))


@pytest.mark.parametrize("weight", [1e300, 1e16])
def test_weights_beyond_counting_are_refused(every, weight, rng):
    X, y = problem(every, rng)
    with pytest.raises(ValueError, match=r"sample_weight adds up to .* rows; at most 9.01e\+15 can be counted"):
        clone(every).fit(X, y, sample_weight=np.full(len(y), weight))


def test_a_row_with_next_to_no_weight_is_as_good_as_none(every, rng):
    X, y = problem(every, rng)
    if averages(every):
        every = clone(every).set_params(average=False)  # short chains differ by more
    weight = np.ones(len(y))
    weight[0] = 1e-300
    found = answered(every, X, y, X, sample_weight=weight)
    if hasattr(every, "kernel"):  # the row is a candidate for a centre all the same
        assert np.isfinite(found).all()
        return
    expected = answered(every, X[1:], y[1:], X)
    np.testing.assert_allclose(found, expected, rtol=0.02, atol=0.02)


def test_weights_that_add_up_to_one_row_are_weights(every_classifier, rng):
    """As boosting gives them."""
    X, y = problem(every_classifier, rng)
    weight = np.full(len(y), 1 / len(y))
    if isinstance(every_classifier, PFCVMClassifier):  # which starts from least squares
        with pytest.raises(ValueError, match="sample_weight adds up to 1 rows: give more weight"):
            clone(every_classifier).fit(X, y, sample_weight=weight)
        return
    assert np.isfinite(answered(every_classifier, X, y, X, sample_weight=weight)).all()


# --- masks ---


@pytest.mark.parametrize("which", ["X", "y", "sample_weight"])
def test_masked_values_are_refused(every, which, rng):
    X, y = problem(every, rng)
    given = {"X": X, "y": y, "sample_weight": np.ones(len(y))}
    given[which] = np.ma.array(given[which], mask=np.zeros_like(given[which], dtype=bool))
    clone(every).fit(**given)  # a mask that hides nothing
    given[which].mask.flat[3] = True
    with pytest.raises(ValueError, match=f"{which} is a masked array with 1 masked value"):
        clone(every).fit(**given)


def test_masked_values_of_new_rows_are_refused(every, rng):
    X, y = problem(every, rng)
    model = clone(every).fit(X, y)
    with pytest.raises(ValueError, match="X is a masked array with 1 masked value"):
        model.predict(np.ma.array(X, mask=np.arange(X.size).reshape(X.shape) == 5))


def test_masked_values_are_refused_by_a_selector(rng):
    X, y = problem(DRVMRegressor(), rng)
    with pytest.raises(ValueError, match="X is a masked array"):
        StabilitySelector(SparseLogisticRegression()).fit(np.ma.array(X, mask=X > 1), y > 0)


# --- what was slow or failed once ---


def test_a_constant_column_does_not_change_a_batch_fit(rng):
    X, y = problem(DRVMRegressor(), rng)
    model = DRVMRegressor(solver="batch", n_restarts=1)
    expected = clone(model).fit(X, y).predict(X)
    wide = np.column_stack([X, np.full(len(X), 3.0)])
    np.testing.assert_allclose(clone(model).fit(wide, y).predict(wide), expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize(
    "model",
    [PFCVMClassifier(tol=1e-300, n_restarts=1), PCVMClassifier(tol=1e300), PCVMClassifier(tol=1e-300)],
    ids=lambda model: f"{type(model).__name__}, tol={model.tol:g}",
)
def test_any_tolerance_ends(model, rng):
    X, y = problem(model, rng)
    assert np.isfinite(clone(model).fit(X, y).predict_proba(X)).all()


def test_rows_on_a_line_with_many_features_end(rng):
    """Rank one, 5 × 5000: EM gains less and less from step to step, unless it leaps."""
    X = np.outer(rng.standard_normal(5), rng.standard_normal(5000))
    model = SparseLogisticRegression(prior="ridge", rule="em", max_iter=200).fit(X, [0, 1, 0, 1, 1])
    assert model.converged_
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("prior", ["ard", "ridge"])
def test_features_without_any_spread_give_the_class_shares(prior):
    model = SparseLogisticRegression(prior=prior, average=False).fit(np.zeros((6, 2)), [0, 1, 1, 1, 1, 0])
    np.testing.assert_allclose(model.predict_proba(np.zeros((1, 2))), [[1 / 3, 2 / 3]], atol=0.05)


def test_a_constant_target_with_known_noise(rng):
    X = rng.standard_normal((20, 3))
    model = BLSRegressor(noise_variance=1.0).fit(X, np.full(20, 2.5))
    np.testing.assert_allclose(model.predict(X), 2.5)
