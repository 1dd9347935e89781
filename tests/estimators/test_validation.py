"""Arrays that need no conversion skip scikit-learn's checks, and only those."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.utils import check_X_y
from sklearn.utils._param_validation import InvalidParameterError

from sparsebayes import ARDRegressor, RVMRegressor
from sparsebayes.estimators._validation import is_plain

X, Y = np.arange(12.0).reshape(6, 2) ** 2, np.arange(6.0)
WITH_NAN = np.where(X == 4, np.nan, X)
WITH_INF = np.where(Y == 4, np.inf, Y)


@pytest.mark.parametrize(
    ("rows", "target", "options"),
    [
        (X, Y, {}),
        (X, Y.astype(int), {}),
        (X, Y > 2, {}),
        (np.asfortranarray(X)[::-1], Y.astype(np.float32), {}),
        (X.astype(np.float32), Y, {"dtype": (np.float64, np.float32)}),
        (X, X, {"multi_output": True}),
    ],
)
def test_plain_arrays_are_what_scikit_learn_would_return(rows, target, options):
    options = {"dtype": np.float64} | options
    assert is_plain(rows, target, **options)
    checked = check_X_y(rows, target, **options | {"dtype": list(np.atleast_1d(options["dtype"]))})
    assert checked[0] is rows
    assert checked[1] is target or np.shares_memory(checked[1], target)
    assert checked[1].shape == target.shape


@pytest.mark.parametrize(
    ("rows", "target"),
    [
        (WITH_NAN, Y),
        (X, WITH_INF),
        (X.astype(np.float32), Y),
        (X.astype(">f8"), Y),
        (X.astype(object), Y),
        (X.tolist(), Y),
        (X.view(np.matrix), Y),
        (X[0], Y),
        (X[:, :0], Y),
        (X[:1], Y[:1]),
        (X, Y[:5]),
        (X, Y[:, None]),
        (X, Y.astype(complex)),
        (X, Y.astype(str)),
        (X, Y.tolist()),
        (X, None),
        (np.full_like(X, 1e308), Y),
    ],
)
def test_others_are_left_to_scikit_learn(rows, target):
    assert not is_plain(rows, target, dtype=np.float64, ensure_min_samples=2)


def test_a_fit_to_plain_arrays_forgets_earlier_names(rng):
    pd = pytest.importorskip("pandas")
    rows, target = rng.standard_normal((30, 2)), rng.standard_normal(30)
    model = ARDRegressor(average=False).fit(pd.DataFrame(rows, columns=["a", "b"]), target)
    assert list(model.feature_names_in_) == ["a", "b"]
    model.fit(rows[:, :1], target)
    assert model.n_features_in_ == 1
    assert not hasattr(model, "feature_names_in_")


def test_parameters_are_checked_in_every_fit(rng):
    rows, target = rng.standard_normal((30, 2)), rng.standard_normal(30)
    model = RVMRegressor(gamma=1.0, vectors="sparse").fit(rows, target)
    with pytest.raises(InvalidParameterError, match=r"'tol' parameter of RVMRegressor must be .* Got -1"):
        model.set_params(tol=-1).fit(rows, target)
    clone(model).set_params(tol=1e-2).fit(rows, target)


def test_a_subclass_may_have_other_parameters(rng):
    class Narrow(RVMRegressor):
        def __init__(self, *, tol=1e-3, own=0):
            super().__init__(gamma=1.0, vectors="sparse", tol=tol)
            self.own = own

    rows, target = rng.standard_normal((30, 2)), rng.standard_normal(30)
    Narrow(own=1).fit(rows, target)
    with pytest.raises(InvalidParameterError, match="'tol' parameter of Narrow"):
        Narrow(tol=0).fit(rows, target)
