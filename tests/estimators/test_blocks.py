"""`fit_blocks` against `fit` on the rows, for several chunkings; interrupted fits; what is refused."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from sparsebayes import (
    ARDRegressor,
    BLSRegressor,
    SparseLogisticRegression,
    SparsePoissonRegressor,
    VBLogisticRegression,
    read_blocks,
)
from sparsebayes.data.blocks import array_blocks

CLOSE = {"tol": 1e-10, "max_iter": 20_000}
"""In memory the variational iteration leaps, and by blocks it does not: both end within `tol` of one maximum."""
FORMS = [
    (ARDRegressor, "y", {}),
    (ARDRegressor, "y", {"average": False}),
    (SparseLogisticRegression, "two", {"average": False}),
    (SparseLogisticRegression, "three", {"average": False}),
    (SparseLogisticRegression, "two", {"average": False, "fit_intercept": False}),
    (SparseLogisticRegression, "two", {"average": False, "class_weight": {"yes": 3.0}}),
    (SparsePoissonRegressor, "counts", {"average": False}),
    (VBLogisticRegression, "two", CLOSE),
    (VBLogisticRegression, "three", {"ard": False, "class_weight": "balanced"} | CLOSE),
]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((1500, 12))
    X = Z * np.logspace(-2, 2, 12) + np.linspace(-20, 20, 12) * np.logspace(-2, 2, 12)
    X[:, 7] = 4.2
    eta = Z[:, :4] @ [1.0, -0.8, 0.5, 0.3]
    noisy = eta + rng.logistic(size=1500)
    targets = {
        "y": eta + rng.standard_normal(1500),
        "two": np.where(noisy > 0, "yes", "no"),
        "three": np.digitize(noisy, [-1, 1]),
        "counts": rng.poisson(np.exp(0.5 * eta)),
    }
    return X, targets, rng.integers(1, 3, 1500).astype(float)


@pytest.mark.parametrize(("cls", "target", "parameters"), FORMS, ids=str)
@pytest.mark.parametrize("rows", [64, 500, 8192])
def test_the_model_is_that_of_the_rows(cls, target, parameters, rows, data):
    X, targets, weight = data
    y = targets[target]
    whole = cls(**parameters).fit(X, y, sample_weight=weight)
    found = cls(**parameters).fit_blocks(array_blocks(X, y, weight, rows=rows))
    if cls is not VBLogisticRegression:  # which keeps all, a constant one with a weight of rounding errors
        assert_array_equal(found.coef_ != 0, whole.coef_ != 0)
    # Both end within `tol`, 1e-6 nats, of the maximum; the weights are then off by its root times their spread.
    assert_allclose(found.coef_ * X.std(axis=0), whole.coef_ * X.std(axis=0), rtol=1e-7, atol=1e-9)
    assert_allclose(found.log_evidence_, whole.log_evidence_, rtol=1e-10)
    assert_allclose(found.intercept_, whole.intercept_, rtol=1e-6, atol=1e-6)
    assert found.converged_
    if hasattr(whole, "dispersion_"):
        assert found.dispersion_ == pytest.approx(whole.dispersion_, rel=1e-8)
    predict = "predict_proba" if hasattr(whole, "predict_proba") else "predict"
    assert_allclose(getattr(found, predict)(X), getattr(whole, predict)(X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("cls", "target"), [(ARDRegressor, "y"), (SparseLogisticRegression, "two")])
def test_chunks_do_not_matter(cls, target, data):
    X, targets, _ = data
    fits = [cls(average=False).fit_blocks(array_blocks(X, targets[target], rows=rows)) for rows in (33, 700, 5000)]
    for other in fits[1:]:
        assert_allclose(other.coef_, fits[0].coef_, rtol=1e-10)


def test_names_come_from_the_file(data, tmp_path):
    pl = pytest.importorskip("polars")
    pytest.importorskip("pyarrow", reason="Parquet files need pyarrow")
    X, targets, _ = data
    names = [f"x{j}" for j in range(12)]
    frame = pl.DataFrame(X, schema=names).with_columns(pl.Series("class", targets["two"]))
    frame.write_parquet(tmp_path / "rows.parquet")
    model = SparseLogisticRegression().fit_blocks(read_blocks(tmp_path / "rows.parquet", target="class"))
    assert model.feature_names_in_.tolist() == names
    assert model.classes_.tolist() == ["no", "yes"]
    assert (model.predict(frame.select(names)) == targets["two"]).mean() > 0.7


class Failing:
    """Blocks that can be read a number of times only."""

    def __init__(self, inner, passes):
        self.inner, self.left = inner, passes
        self.n_features, self.feature_names = inner.n_features, inner.feature_names

    def reduce(self, statistic, columns=None):
        self.left -= 1
        if self.left < 0:
            raise ConnectionError("the disk is gone")
        return self.inner.reduce(statistic, columns)

    def first(self):
        return self.inner.first()


@pytest.mark.parametrize(("cls", "target"), [(SparseLogisticRegression, "two"), (VBLogisticRegression, "two")])
def test_an_interrupted_fit_goes_on(cls, target, data, tmp_path):
    X, targets, _ = data
    blocks = array_blocks(X, targets[target])
    whole = Failing(blocks, 1000)
    expected = cls().fit_blocks(whole)
    n_passes = 1000 - whole.left
    with pytest.raises(ConnectionError):
        cls().fit_blocks(Failing(blocks, 3), checkpoint=tmp_path)
    rest = Failing(blocks, n_passes - 3)
    found = cls().fit_blocks(rest, checkpoint=tmp_path)
    assert rest.left == 0
    assert_array_equal(found.coef_, expected.coef_)


def test_few_wide_passes(data):
    X, targets, _ = data
    wide = []

    class Watched(Failing):
        def reduce(self, statistic, columns=None):
            wide.append(columns is None)
            return super().reduce(statistic, columns)

    SparseLogisticRegression().fit_blocks(Watched(array_blocks(X, targets["two"]), 1000))
    assert sum(wide) <= 4


def test_progress_is_told_pass_by_pass(data, capsys):
    X, targets, _ = data
    SparseLogisticRegression(verbose=2).fit_blocks(array_blocks(X, targets["two"]))
    assert "wide pass" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SparseLogisticRegression(prior="ridge"), "fit_blocks needs prior='ard'"),
        (SparseLogisticRegression(inference="variational"), "fit_blocks needs inference='laplace'"),
        (SparseLogisticRegression(average=True), "does not average"),
        (SparseLogisticRegression(min_gain=0), "positive min_gain"),
        (SparsePoissonRegressor(average=True), "does not average"),
        (SparsePoissonRegressor(groups=[0] * 12), "groups=None"),
        (ARDRegressor(noise="student"), "noise='gaussian'"),
    ],
    ids=str,
)
def test_what_passes_cannot_do_is_refused(model, message, data):
    X, targets, _ = data
    y = targets["counts"] if isinstance(model, SparsePoissonRegressor) else targets["y"] > 0
    with pytest.raises(ValueError, match=message):
        model.fit_blocks(array_blocks(X, y))
    assert not hasattr(model, "coef_")


def test_hostile_targets(data):
    X, targets, _ = data
    for model, y, message in (
        (SparseLogisticRegression(), np.ones(1500), "one class only"),
        (SparseLogisticRegression(), targets["y"], "distinct values"),
        (SparsePoissonRegressor(), targets["counts"] - 3, "negative value in block 0"),
        (SparsePoissonRegressor(), np.zeros(1500), "zero in every row"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit_blocks(array_blocks(X, y))
    with pytest.raises(TypeError, match="read_blocks"):
        ARDRegressor().fit_blocks(X)
    assert not hasattr(BLSRegressor(), "fit_blocks")


def test_units_do_not_matter(data):
    X, targets, _ = data
    plain = SparseLogisticRegression().fit_blocks(array_blocks(X, targets["two"]))
    scaled = SparseLogisticRegression().fit_blocks(array_blocks(X * 1e6, targets["two"]))
    assert_allclose(scaled.coef_ * 1e6, plain.coef_, rtol=1e-6)


def test_callbacks_are_told_although_there_are_no_rows(data):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from version 1.9 on")
    X, targets, _ = data
    steps = []

    class Count:
        requires_fit_info = ()
        max_propagation_depth = 0

        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context, **kwargs): ...
        def on_fit_task_end(self, estimator, context, **kwargs):
            steps.append(context.task_name)

    del callback
    SparseLogisticRegression().set_callbacks(Count()).fit_blocks(array_blocks(X, targets["two"]))
    assert "step" in steps
