import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import t
from sklearn.base import BaseEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsebayes import ARDRegressor, RVMRegressor, SparseLogisticRegression
from sparsebayes.inspection import RelevanceDisplay


@pytest.fixture(scope="module")
def data():
    """Two features that matter, and a third that nearly pays."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, 12))
    return X * np.linspace(1, 5, 12) + 3, X[:, :3] @ [2, -1.5, 0.25] + rng.standard_normal(60)


@pytest.fixture(scope="module")
def model(data):
    return ARDRegressor(average=False).fit(*data)


def test_weights_are_effects_of_a_standard_deviation_largest_first(model, data):
    X, _ = data
    shown = RelevanceDisplay.from_estimator(model, X, coverage=0.8)
    effect = model.coef_[:2] * X.std(axis=0)[:2]
    assert_allclose(shown.weight, effect[np.argsort(-np.abs(effect))], rtol=1e-12)
    assert shown.names == [f"x{j}" for j in np.argsort(-np.abs(effect))]
    # By hand: Student's quantile with the degrees of freedom that the weights left.
    std = np.sqrt(np.diag(model.covariance_)) * X.std(axis=0)[:2]
    quantile = t.ppf(0.9, len(X) - model.relevance_.sum())
    order = np.argsort(-np.abs(effect))
    assert_allclose(
        shown.upper - shown.weight, quantile * std[order], rtol=1e-2
    )  # the intercept's share of the freedom
    assert_allclose(shown.weight - shown.lower, shown.upper - shown.weight, rtol=1e-9)


def test_without_rows_the_weights_are_the_models_and_evidence_gives_the_order(model):
    shown = RelevanceDisplay.from_estimator(model)
    order = np.argsort(-model.gain_[:2])
    assert_array_equal(shown.weight, model.coef_[order])
    assert_array_equal(shown.gain, model.gain_[order])
    assert "per unit" in shown.weight_label


def test_near_misses_are_told(model):
    shown = RelevanceDisplay.from_estimator(model)
    assert shown.near_names[0] == "x2"
    assert_allclose(shown.near_gain[0], model.gain_[2])
    assert f"{shown.asked:.1f} nats" in shown.text()
    assert "x2" in shown.text()


def test_drawn_weights_and_intervals_are_the_numbers(model, data, segments, labels_of):
    shown = RelevanceDisplay.from_estimator(model, data[0]).plot()
    lines = [segments(collection) for collection in shown.ax_.collections[:2]]
    assert_allclose(lines[0][:, 1] + lines[0][:, 0], shown.weight)  # from zero
    assert_allclose(lines[1], np.column_stack([shown.lower, shown.upper, [0, 1]]))
    assert_allclose(shown.ax_.collections[2].get_offsets(), np.column_stack([shown.weight, [0, 1]]))
    assert labels_of(shown.ax_)[:3] == [*shown.names, "x2"]
    assert shown.ax_.get_ylim()[0] > shown.ax_.get_ylim()[1]  # the first is on top
    assert f"dropped: adds {model.gain_[2]:.1f} of" in shown.ax_.texts[0].get_text()
    assert shown.figure_ is shown.ax_.figure


def test_a_weight_whose_interval_holds_zero_is_hollow():
    shown = RelevanceDisplay(
        names=["a", "b"], weight=np.array([2.0, 1.0]), lower=np.array([1.0, -1.0]), upper=np.array([3.0, 3.0])
    ).plot()
    full, hollow = shown.ax_.collections[2:4]
    assert_array_equal(full.get_offsets(), [[2, 0]])
    assert_array_equal(hollow.get_offsets(), [[1, 1]])
    assert_array_equal(hollow.get_facecolor()[0, :3], [1, 1, 1])


def test_drawn_gains_and_price_are_the_numbers(model, data, labels_of):
    shown = RelevanceDisplay.from_estimator(model, data[0]).plot(quantity="gain")
    bars = {label: bar.get_width() for label, bar in zip(labels_of(shown.ax_), shown.ax_.patches, strict=True)}
    expected = {f"x{j}": model.gain_[j] for j in (0, 1, 2)}
    assert {name: bars[name] for name in expected} == pytest.approx(expected)
    kept = [bar.get_width() for bar in shown.ax_.patches[:2]]
    assert kept == sorted(kept, reverse=True)
    (price,) = shown.ax_.lines
    assert_allclose(price.get_xdata(), shown.asked)
    assert shown.asked == pytest.approx(model.min_gain_, rel=0.15)  # beyond it by n²/((n - k)(n - k - 1))
    assert [bar.get_hatch() is None for bar in shown.ax_.patches][:3] == [True, True, False]


def test_gains_of_very_different_size_are_all_seen(make_data):
    X, y = make_data(500, 4, n_true=2, noise=0.1)
    y = y + 0.02 * X[:, 3]
    shown = RelevanceDisplay.from_estimator(ARDRegressor(average=False).fit(X, y)).plot(quantity="gain")
    assert shown.gain.max() > 100 * shown.gain.min()
    assert shown.ax_.get_xscale() == "symlog"


def test_many_features_are_cut_and_counted(labels_of):
    weight = np.arange(300.0, 0, -1)
    names = [f"f{k}" for k in range(300)]
    shown = RelevanceDisplay(names=names, weight=weight, lower=weight - 1, upper=weight + 1).plot()
    assert labels_of(shown.ax_) == [*names[:30], "… and 270 more"]
    assert len(shown.to_table()["name"]) == 300
    assert "295 more" in shown.text()
    assert shown.figure_.get_figheight() < 12
    assert len(shown.plot(max_features=300).ax_.get_yticks()) == 300
    with pytest.raises(ValueError, match="max_features"):
        shown.plot(max_features=0)


def test_nothing_kept_is_said(make_data):
    X, _ = make_data()
    y = np.random.default_rng(0).standard_normal(len(X))
    shown = RelevanceDisplay.from_estimator(ARDRegressor(average=False).fit(X, y), X)
    assert shown.text() == "Kept 0 of 12 features."
    for quantity in ("weight", "gain"):
        words = [text.get_text() for text in shown.plot(quantity=quantity).ax_.texts]
        assert shown.near_names or "nothing was kept" in words
        shown.figure_.canvas.draw()


def test_pipelines_are_told_in_their_own_names(data):
    X, y = data
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(12)])
    pipeline = make_pipeline(StandardScaler(), ARDRegressor(average=False)).fit(frame, y)
    plain = RelevanceDisplay.from_estimator(ARDRegressor(average=False).fit(X, y), X)
    shown = RelevanceDisplay.from_estimator(pipeline, frame)
    assert shown.names == [name.replace("x", "gene ") for name in plain.names]
    assert_allclose(shown.weight, plain.weight, rtol=1e-6)


def test_classes_and_outputs_are_chosen_by_name(make_data):
    X, y = make_data(120, 4)
    model = SparseLogisticRegression(average=False).fit(X, np.digitize(y, [-1.5, 1.5]))
    shown = RelevanceDisplay.from_estimator(model, output=2)
    assert shown.names[0] == f"x{np.abs(model.gain_[2]).argmax()}"
    assert shown.weight[0] == model.coef_[2, np.abs(model.gain_[2]).argmax()]
    assert shown.title.startswith("2: ")
    assert "log-odds" in shown.weight_label
    with pytest.raises(ValueError, match=r"has 3 outputs\. Pass output= one of \['0', '1', '2'\]"):
        RelevanceDisplay.from_estimator(model)
    two = ARDRegressor(average=False).fit(X, np.column_stack([y, -X[:, 3]]) + np.linspace(0, 1, 120)[:, None])
    assert RelevanceDisplay.from_estimator(two, output=1).names == ["x3"]
    with pytest.raises(ValueError, match="has one output"):
        RelevanceDisplay.from_estimator(ARDRegressor(average=False).fit(X, y), output=1)


def test_vectors_of_a_kernel_model_are_rows(make_data):
    X, y = make_data(50, 2, n_true=2)
    model = RVMRegressor().fit(X, y)
    shown = RelevanceDisplay.from_estimator(model, X)
    order = np.argsort(-np.abs(model.dual_coef_))
    assert shown.names == [f"row {k}" for k in model.relevance_indices_[order]]
    assert_array_equal(shown.weight, model.dual_coef_[order])
    with pytest.raises(ValueError, match="quantity='gain': the model does not compute it"):
        shown.plot(quantity="gain")


class Learned(BaseEstimator):
    """A kernel model with weights of the inputs."""

    def __init__(self, kernel="rbf"):
        self.kernel = kernel

    def fit(self, weights):
        self.feature_weights_, self.n_features_in_ = np.array(weights), len(weights)
        return self


@pytest.mark.parametrize(("kernel", "power"), [("rbf", 2), ("laplacian", 1)])
def test_weights_inside_a_kernel_are_told_in_standard_units(kernel, power):
    """Inputs in other units have other weights, and the same picture."""
    X = np.random.default_rng(0).standard_normal((50, 3)) * [1.0, 5.0, 1.0]
    unit = np.array([0.1, 1.0, 10.0])
    theta = np.array([0.3, 0.2, 0.0])
    first = RelevanceDisplay.from_estimator(Learned(kernel).fit(theta), X)
    second = RelevanceDisplay.from_estimator(Learned(kernel).fit(theta / unit**power), X * unit)
    assert first.names == second.names == ["x1", "x0"]
    assert_allclose(first.weight, second.weight)
    assert_allclose(first.weight, (theta * X.std(axis=0) ** power)[[1, 0]])
    assert "standard deviation one" in first.weight_label
    assert np.isnan(first.lower).all()
    assert_allclose(first.plot().ax_.collections[2].get_offsets()[:, 0], first.weight)


def test_repetitions_are_counted_and_averaged(labels_of):
    shown = RelevanceDisplay.from_estimators(
        [Learned().fit(w) for w in ([0, 2.0, 0, 1], [0, 4.0, 0, 0], [0, 3.0, 0, 0])]
    )
    assert shown.names == ["x1", "x3"]
    assert_allclose(shown.frequency, [1, 1 / 3])
    assert_allclose(shown.weight, [3, 1 / 3])
    assert_allclose(shown.upper - shown.weight, [np.std([2, 4, 3]), np.std([1, 0, 0])])
    shown.plot()
    assert_allclose([bar.get_width() for bar in shown.ax_.patches], [1, 1 / 3])
    assert labels_of(shown.ax_) == ["x1", "x3"]
    assert [text.get_text() for text in shown.ax_.texts] == ["+3 ± 0.82", "+0.333 ± 0.47"]
    assert "in 3 repetitions" in shown.text()


def test_weights_of_repetitions_can_be_given():
    W = np.array([[0.0, 1.0], [2.0, 1.0]])
    shown = RelevanceDisplay.from_weights(W, feature_names=["a", "b"])
    assert shown.to_table()["name"] == ["b", "a"]
    assert shown.to_table()["frequency"] == [1.0, 0.5]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m, X: RelevanceDisplay.from_estimator(m, coverage=95), ValueError, "coverage"),
        (lambda m, X: RelevanceDisplay.from_estimator(m, X[:, :3]), ValueError, "X has shape"),
        (lambda m, X: RelevanceDisplay.from_estimator(m, feature_names=["a"]), ValueError, "feature_names has 1"),
        (lambda m, X: RelevanceDisplay.from_estimator(m).plot(quantity="size"), ValueError, "quantity='size'"),
        (lambda m, X: RelevanceDisplay.from_estimators([]), ValueError, "estimators is empty"),
        (lambda m, X: RelevanceDisplay.from_weights([1.0, 2.0]), ValueError, "weights has shape"),
        (lambda m, X: RelevanceDisplay.from_weights([[1.0]], feature_names="ab"), ValueError, "feature_names has 2"),
        (lambda m, X: RelevanceDisplay.from_estimators([RVMRegressor().fit(X, X[:, 0] ** 2)]), TypeError, "keeps rows"),
    ],
)
def test_complaints_name_the_fault(model, data, call, error, message):
    with pytest.raises(error, match=message):
        call(model, data[0])
