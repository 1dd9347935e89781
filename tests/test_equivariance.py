"""Units, order and storage of the data change neither what is kept nor (in those units) the answer.

Both fits of a pair take the same path up to rounding, which the flat directions of the evidence amplify: hence a
tolerance of 1e-6 where the numbers carry 1e-16.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

RTOL = 1e-6
AS_THEY_ARE = slice(None)


@dataclass(frozen=True)
class Change:
    """Columns x → x_scale x + x_shift and target y → y_scale y + y_shift."""

    x_scale: float | np.ndarray = 1.0
    x_shift: float | np.ndarray = 0.0
    y_scale: float = 1.0
    y_shift: float = 0.0


UNITS = {
    **{f"y*{scale:g}": Change(y_scale=scale) for scale in (1e-6, 1e-3, 1e3, 1e6)},
    **{f"X*{scale:g}": Change(x_scale=scale) for scale in (1e-6, 1e6)},
    "every column in its own unit": Change(x_scale=10.0 ** np.linspace(-6, 6, 12)),
    "columns mirrored": Change(x_scale=-1.0),
}
PLACES = {
    "y+1e4": Change(y_shift=1e4),
    "X+1e3": Change(x_shift=1e3),
    "every column at its own place": Change(x_shift=10.0 ** np.linspace(-3, 4, 12)),
    "all at once": Change(1e-3, 1e3, 1e4, -1e7),
}


def assert_moved(model, base, X_new, X, change=None, order=AS_THEY_ARE):
    """`model` (fitted to changed data, column k being the old column order[k]) is `base` in the new units."""
    change = change or Change()
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


def assert_follows(regressor, data, change):
    X, y = data
    X_new, y_new = X * change.x_scale + change.x_shift, y * change.y_scale + change.y_shift
    model, base = clone(regressor).fit(X_new, y_new), clone(regressor).fit(X, y)
    assert_moved(model, base, X_new, X, change)


@pytest.fixture
def data(make_data):
    return make_data(offset=1.0)


@pytest.mark.parametrize("change", UNITS.values(), ids=UNITS)
def test_units(regressor, data, change):
    assert_follows(regressor, data, change)


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
    assert_moved(clone(regressor).fit(X[order], y[order]), clone(regressor).fit(X, y), X, X)


def test_order_of_columns(regressor, data, rng):
    X, y = data
    order = rng.permutation(X.shape[1])
    X_new = X[:, order]
    assert_moved(clone(regressor).fit(X_new, y), clone(regressor).fit(X, y), X_new, X, order=order)


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
    assert_moved(model, clone(regressor).fit(X, y), store(X), X)


def test_float32_input_is_the_same_numbers_in_double(regressor, data):
    X, y = (array.astype(np.float32) for array in data)
    X_double = X.astype(np.float64)
    assert_moved(clone(regressor).fit(X, y), clone(regressor).fit(X_double, y.astype(np.float64)), X, X_double)


def test_integers(regressor, data):
    X, y = (np.rint(10 * array).astype(np.int32) for array in data)
    X_double = X.astype(np.float64)
    assert_moved(clone(regressor).fit(X, y), clone(regressor).fit(X_double, y.astype(np.float64)), X, X_double)
