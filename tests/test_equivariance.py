"""Units, order and storage of the data change neither what is kept nor (in those units) the answer.

Both fits of a pair take the same path up to rounding, which the flat directions of the evidence amplify: hence a
tolerance of 1e-6 where the numbers carry 1e-16.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from counting import counts, is_counting
from fits import fitted_once
from forms import averages
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier

RTOL = 1e-6
MONTE_CARLO = 0.1
"""Largest difference of two averages with different random numbers, of two chains of 3,000 flips each: in inclusion
probability, in class probability, or in standard deviations. Measured: 0.05 for classes and counts, 0.01 otherwise."""
AS_THEY_ARE = slice(None)


@dataclass(frozen=True)
class Change:
    """Columns x → x_scale x + x_shift and target y → y_scale y + y_shift."""

    x_scale: float | np.ndarray = 1.0
    x_shift: float | np.ndarray = 0.0
    y_scale: float = 1.0
    y_shift: float = 0.0


UNITS = {
    **{f"y*{scale:g}": Change(y_scale=scale) for scale in (1e-6, 1e6)},
    **{f"X*{scale:g}": Change(x_scale=scale) for scale in (1e-6, 1e6)},
    "every column in its own unit": Change(x_scale=10.0 ** np.linspace(-6, 6, 12)),
}
MIRRORED = Change(x_scale=-1.0)
PLACES = {
    "y+1e4": Change(y_shift=1e4),
    "X+1e3": Change(x_shift=1e3),
    "every column at its own place": Change(x_shift=10.0 ** np.linspace(-3, 4, 12)),
    "all at once": Change(1e-3, 1e3, 1e4, -1e7),
}


def assert_moved(model, base, X_new, X, change=None, order=AS_THEY_ARE):
    """`model` (fitted to changed data, column k being the old column order[k]) is `base` in the new units.

    The chains of an average see the same sets, and draw the same weights, unless columns change their order or sign.
    """
    change = change or Change()
    if averages(base):
        assert_average_moved(model, base, X_new, X, change, order)
        model, base = model.model_, base.model_
    c, k = change.y_scale, np.broadcast_to(change.x_scale, base.coef_.shape)
    place = np.arange(len(base.coef_))[order]
    kept = np.isin(place, base.active_)
    assert_array_equal(model.active_, np.flatnonzero(kept))
    old = [list(base.active_).index(j) for j in place[kept]]
    k_kept = k[base.active_]
    coef = c * base.coef_ / k
    spread = c * np.sqrt(base.noise_variance_)
    expected = {
        "coef_": coef[order],
        "relevance_": base.relevance_[order],
        "precision_": (base.precision_ * (k_kept / c) ** 2)[old],
        "covariance_": (c**2 * base.covariance_ / np.outer(k_kept, k_kept))[np.ix_(old, old)],
        "noise_variance_": spread**2,
    }
    for name, value in expected.items():
        # entries of the covariance may be zero but for rounding: they are measured by the variances
        atol = RTOL * 1e-3 * np.abs(value).max(initial=0) if name == "covariance_" else 0
        assert_allclose(getattr(model, name), value, RTOL, atol, err_msg=name)
    intercept = c * base.intercept_ + change.y_shift - np.broadcast_to(change.x_shift, k.shape) @ coef
    assert_allclose(model.intercept_, intercept, RTOL, RTOL * spread, err_msg="intercept_")
    flat = base.fit_intercept and base.intercept_prior == "flat"
    log_evidence = base.log_evidence_ - (len(X) - flat) * np.log(c)
    assert_allclose(model.log_evidence_, log_evidence, RTOL, err_msg="log_evidence_")
    mean, std = model.predict(X_new, return_std=True)
    base_mean, base_std = base.predict(X, return_std=True)
    assert_allclose(mean, c * base_mean + change.y_shift, RTOL, RTOL * spread, err_msg="mean")
    assert_allclose(std, c * base_std, RTOL, err_msg="std")


def assert_average_moved(model, base, X_new, X, change, order):
    """The same for averages over models."""
    same_draws = order is AS_THEY_ARE and (np.asarray(change.x_scale) > 0).all()
    rtol, atol = (RTOL, RTOL) if same_draws else (MONTE_CARLO, MONTE_CARLO)
    c, k = change.y_scale, np.abs(np.broadcast_to(change.x_scale, base.coef_.shape))
    close = partial(assert_allclose, rtol=rtol)
    close(model.inclusion_probability_, base.inclusion_probability_[order], atol=atol)
    assert_array_equal(model.active_, np.flatnonzero(model.inclusion_probability_ >= 0.9))
    likely = base.inclusion_probability_[order] > 0.9  # few draws tell of the others
    close(model.coef_std_[likely], (c * base.coef_std_ / k)[order][likely])
    close(model.noise_variance_, c**2 * base.noise_variance_)
    mean, std = model.predict(X_new, return_std=True)
    base_mean, base_std = base.predict(X, return_std=True)
    close(mean, c * base_mean + change.y_shift, rtol=RTOL, atol=atol * std.min())
    close(std, c * base_std)


def test_order_and_sign_of_columns_change_an_average_within_its_monte_carlo_error(averaged, data, rng):
    X, y = data
    model = clone(averaged).set_params(max_flips=3000)
    order = rng.permutation(X.shape[1])
    base = clone(model).fit(X, y)
    assert_average_moved(clone(model).fit(-X, y), base, -X, X, MIRRORED, AS_THEY_ARE)
    assert_average_moved(model.fit(X[:, order], y), base, X[:, order], X, Change(), order)


def assert_follows(regressor, data, change):
    X, y = data
    X_new, y_new = X * change.x_scale + change.x_shift, y * change.y_scale + change.y_shift
    model, base = clone(regressor).fit(X_new, y_new), fitted_once(regressor, X, y)
    assert_moved(model, base, X_new, X, change)


@pytest.fixture
def data(make_data):
    return make_data(offset=1.0)


@pytest.mark.parametrize("change", UNITS.values(), ids=UNITS)
def test_units(regressor, data, change):
    assert_follows(regressor, data, change)


def test_mirrored_columns(one_model, data):
    assert_follows(one_model, data, MIRRORED)


@pytest.mark.parametrize("change", PLACES.values(), ids=PLACES)
def test_place(flat, data, change):
    assert_follows(flat, data, change)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("shape", [(30, 60), (15, 200)], ids=["wide", "very wide"])
def test_units_of_wide_data(priced, make_data, shape, scale):
    assert_follows(priced, make_data(*shape), Change(scale, 0.0, 1 / scale))


def test_order_of_rows(regressor, data, rng):
    X, y = data
    order = rng.permutation(len(X))
    assert_moved(clone(regressor).fit(X[order], y[order]), fitted_once(regressor, X, y), X, X)


def test_order_of_columns(one_model, data, rng):
    X, y = data
    order = rng.permutation(X.shape[1])
    X_new = X[:, order]
    assert_moved(clone(one_model).fit(X_new, y), fitted_once(one_model, X, y), X_new, X, order=order)


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


STORAGE = {
    "Fortran order": np.asfortranarray,
    "read-only": read_only,
    "every other row and column of a larger array": lambda X: np.repeat(np.repeat(X, 2, 0), 2, 1)[::2, ::2],
    "backwards in memory": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "lists": np.ndarray.tolist,
    "big-endian": lambda X: X.astype(">f8"),
}


@pytest.mark.parametrize("store", STORAGE.values(), ids=STORAGE)
def test_storage(regressor, data, store):
    X, y = data
    model = clone(regressor).fit(store(X), np.ravel(store(y[:, None])))
    assert_moved(model, fitted_once(regressor, X, y), store(X), X)


def test_float32_input_is_the_same_numbers_in_double(regressor, data):
    X, y = (array.astype(np.float32) for array in data)
    X_double = X.astype(np.float64)
    assert_moved(clone(regressor).fit(X, y), clone(regressor).fit(X_double, y.astype(np.float64)), X, X_double)


def test_integers(regressor, data):
    X, y = (np.rint(10 * array).astype(np.int32) for array in data)
    X_double = X.astype(np.float64)
    assert_moved(clone(regressor).fit(X, y), clone(regressor).fit(X_double, y.astype(np.float64)), X, X_double)


# --- every estimator of the register: what it predicts ---


def answer(model, X):
    """Class probabilities, or mean and standard deviation of the target: one row for each row of X."""
    return model.predict_proba(X) if is_classifier(model) else np.stack(model.predict(X, return_std=True), axis=1)


def assert_same_answer(model, X, base, X_base, unit=1.0, tolerance=None):
    """Both answers agree, in units of the target's spread (of probability, for classifiers).

    Feature weights and the contact points of a bound are iterated until a step gains less than a tolerance in nats:
    they end less exactly.
    """
    iterated = hasattr(base, "feature_weights_") or base.get_params().get("inference") == "variational"
    tolerance = tolerance or (1e-4 if iterated else RTOL)
    assert_allclose(answer(model, X), answer(base, X_base), rtol=0, atol=tolerance * unit)


@pytest.fixture
def small(make_data):
    """Rows, a target, and three classes of different size made of it."""
    X, y = make_data(60, 5, n_true=2, offset=1.0)
    return X, y, np.digitize(y, np.quantile(y, [0.4, 0.75]))


def target(model, small):
    """The numbers, or two classes; and the unit in which answers are compared."""
    _, y, _ = small
    if is_classifier(model):
        return np.where(y > np.median(y), "high", "low"), 1.0
    y = counts(y) if is_counting(model) else y
    return y, y.std()


def fitted(model, X, y, **kwargs):
    return clone(model).fit(X, y, **kwargs)


def with_other_draws(model):
    """A model whose random numbers fall on other rows or columns, and how near its answers then are."""
    return (clone(model).set_params(max_flips=3000), MONTE_CARLO) if averages(model) else (model, None)


def draws_sites(model):
    """Whether the chains draw numbers for each row: those of classes do."""
    return averages(model) and is_classifier(model)


def test_answers_do_not_depend_on_the_order_of_rows(every, small, rng):
    X, (y, unit) = small[0], target(every, small)
    order = rng.permutation(len(y))
    model, tolerance = with_other_draws(every) if draws_sites(every) else (every, None)
    assert_same_answer(fitted(model, X[order], y[order]), X, fitted_once(model, X, y), X, unit, tolerance)


def test_answers_do_not_depend_on_the_order_of_columns(every, small, rng):
    X, (y, unit) = small[0], target(every, small)
    order = rng.permutation(X.shape[1])
    model, tolerance = with_other_draws(every)
    assert_same_answer(fitted(model, X[:, order], y), X[:, order], fitted_once(model, X, y), X, unit, tolerance)


def test_integer_weights_are_repeated_rows(every, small, rng):
    X, (y, unit) = small[0], target(every, small)
    weight = rng.integers(0, 4, len(y))
    again = np.repeat(np.arange(len(y)), weight)
    model, tolerance = with_other_draws(every) if draws_sites(every) else (every, None)
    weighted = fitted(model, X, y, sample_weight=weight)
    assert_same_answer(weighted, X, fitted(model, X[again], y[again]), X, unit, tolerance)


@pytest.mark.parametrize("store", [np.asfortranarray, lambda X: X.astype(np.float32)], ids=["Fortran", "float32"])
def test_answers_do_not_depend_on_storage(every, small, store):
    X, (y, unit) = store(small[0]), target(every, small)
    plain = np.ascontiguousarray(X, dtype=np.float64)
    assert_same_answer(fitted(every, X, y), X, fitted_once(every, plain, y), plain, unit)


def test_answers_do_not_depend_on_the_place_of_the_inputs(every, small):
    X, (y, unit) = small[0], target(every, small)
    shift = np.array([0.0, 100.0, -50.0, 3.0, 1e3])
    assert_same_answer(fitted(every, X + shift, y), X + shift, fitted_once(every, X, y), X, unit)


def has_a_prior_in_the_units_of_the_columns(model):
    """VBLogisticRegression: Gamma(a0, b0) of the precisions is a statement about weights in these units."""
    return type(model).__name__ == "VBLogisticRegression"


UNITS_OF_COLUMNS = {
    "1e-3": 1e-3,
    "1e3": 1e3,
    "each its own": 10.0 ** np.linspace(-3, 3, 5),
    "other than powers of two": np.array([3.7, 0.9, 1e-2, 7.0, 1.1]),
}


@pytest.mark.parametrize("scale", UNITS_OF_COLUMNS.values(), ids=UNITS_OF_COLUMNS)
def test_answers_do_not_depend_on_the_units_of_columns(every, small, scale):
    if has_a_prior_in_the_units_of_the_columns(every):
        pytest.skip("its prior is in the units of the columns")
    X, (y, unit) = small[0], target(every, small)
    assert_same_answer(fitted(every, X * scale, y), X * scale, fitted_once(every, X, y), X, unit)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_kernels_of_inputs_as_they_are(every, small, scale):
    """Without standard units a kernel model is the same when γ is rescaled with the columns; "scale" does so itself."""
    if "standardize" not in every.get_params():
        pytest.skip("it has no standard units")
    X, (y, unit) = small[0], target(every, small)
    for here, there in ((0.05, 0.05 / scale**2), ("scale", "scale"), ("evidence", "evidence")):
        base, moved = (clone(every).set_params(standardize=False, gamma=gamma) for gamma in (here, there))
        assert_same_answer(moved.fit(X * scale, y), X * scale, base.fit(X, y), X, unit)


@pytest.mark.parametrize(("scale", "shift"), [(1e-6, 0.0), (1e6, 0.0), (1.0, 1e3), (-2.0, 5.0)])
def test_units_of_the_target(every_regressor, small, scale, shift):
    if is_counting(every_regressor):
        pytest.skip("counts have no unit")
    X, y, _ = small
    base, moved = fitted_once(every_regressor, X, y), fitted(every_regressor, X, scale * y + shift)
    mean, std = base.predict(X, return_std=True)
    expected = np.stack([scale * mean + shift, abs(scale) * std], axis=1)
    tol = 1e-4 if hasattr(base, "feature_weights_") else RTOL
    if averages(every_regressor) and scale < 0:
        tol = MONTE_CARLO  # the weights' draws are not mirrored
    assert_allclose(answer(moved, X), expected, rtol=0, atol=tol * abs(scale) * y.std())


def test_names_of_two_classes(every_classifier, small):
    """The other class comes first in the alphabet now."""
    X, (y, _) = small[0], target(every_classifier, small)
    model, tolerance = with_other_draws(every_classifier)
    base, renamed = fitted_once(model, X, y), fitted(model, X, np.where(y == "high", "upper", "below"))
    assert list(base.classes_) == ["high", "low"]
    assert list(renamed.classes_) == ["below", "upper"]
    assert_allclose(renamed.predict_proba(X)[:, ::-1], base.predict_proba(X), atol=tolerance or RTOL)
    sure = np.abs(base.predict_proba(X)[:, 0] - 0.5) > (tolerance or 0.0)
    assert_array_equal((renamed.predict(X) == "upper")[sure], (base.predict(X) == "high")[sure])


def test_names_of_three_classes(every_classifier, small):
    X, _, classes = small
    order = np.array([2, 0, 1])
    if every_classifier.get_params().get("min_gain") == 0 or every_classifier.get_params().get("max_flips"):
        # A softmax is averaged over fixed points, which do not treat classes alike: good to 2e-4 only.
        every_classifier = clone(every_classifier).set_params(proba="plug-in")
    base, renamed = fitted(every_classifier, X, classes), fitted(every_classifier, X, order[classes])
    assert_allclose(renamed.predict_proba(X)[:, order], base.predict_proba(X), atol=RTOL)
