import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsebayes import ARDRegressor, RVMClassifier, SparseLogisticRegression
from sparsebayes.inspection import DecisionRegionsDisplay


@pytest.fixture(scope="module")
def data(make_data):
    X, y = make_data(120, 2, n_true=2)
    return X, np.array(["a", "b"])[(y > 0).astype(int)], np.array(["a", "b", "c"])[np.digitize(y, [-1.5, 1.5])]


def test_the_picture_is_the_models_probability(data):
    X, y, _ = data
    model = RVMClassifier().fit(X, y)
    shown = DecisionRegionsDisplay.from_estimator(model, X, y, grid_resolution=21).plot()
    for i, j in ((0, 0), (3, 17), (20, 5)):
        assert_allclose(shown.probability[i, j], model.predict_proba([[shown.x0[j], shown.x1[i]]])[0])
    image = shown.ax_.images[0]
    assert_allclose(image.get_extent(), [shown.x0[0], shown.x0[-1], shown.x1[0], shown.x1[-1]])
    assert image.origin == "lower"
    scatters = {c.get_label(): np.asarray(c.get_offsets()) for c in shown.ax_.collections}
    assert_array_equal(scatters["a"], X[y == "a"])
    assert_array_equal(scatters["b"], X[y == "b"])
    assert_array_equal(
        np.sort(scatters[f"{len(model.relevance_vectors_)} relevance vectors"], axis=0),
        np.sort(model.relevance_vectors_, axis=0),
    )


def test_borders_are_where_classes_are_equally_probable(data):
    X, y, _ = data
    model = SparseLogisticRegression().fit(X, y)
    shown = DecisionRegionsDisplay.from_estimator(model, X, y, grid_resolution=200).plot()
    contours = [c for c in shown.ax_.collections if hasattr(c, "levels")]
    levels = {0.0: [0.5], 0.25: [0.25, 0.75]}
    for contour in contours:
        for path, level in zip(contour.get_paths(), levels[float(contour.levels[0])], strict=True):
            assert len(path.vertices)
            assert_allclose(model.predict_proba(path.vertices)[:, 1], level, atol=0.01)  # linear between grid points


def test_colours_are_those_of_the_classes_and_white_between(data):
    X, y, _ = data
    shown = DecisionRegionsDisplay.from_estimator(SparseLogisticRegression().fit(X, y), X, y)
    shown.probability = np.array([[[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]])
    first, middle, last = shown._colours()[0]
    assert_allclose(middle, 1.0)
    assert_allclose(1 - first, 0.55 * (1 - np.array(to_rgb("#0072b2"))))
    assert_allclose(1 - last, 0.55 * (1 - np.array(to_rgb("#d55e00"))))


def test_three_classes_in_a_pipeline_of_a_frame(data):
    X, _, y = data
    frame = pd.DataFrame(X * 100, columns=["width", "height"])
    pipeline = make_pipeline(StandardScaler(), RVMClassifier()).fit(frame, y)
    shown = DecisionRegionsDisplay.from_estimator(pipeline, frame, y, grid_resolution=40).plot()
    near = np.abs(shown.vectors[:, None] - X[None] * 100).max(axis=2).min(axis=1)
    assert_allclose(near, 0, atol=1e-9)
    assert (shown.ax_.get_xlabel(), shown.ax_.get_ylabel()) == ("width", "height")
    words = [text.get_text() for text in shown.ax_.get_legend().get_texts()]
    assert words == ["a", "b", "c", f"{len(shown.vectors)} relevance vectors"]
    table = shown.to_table()
    assert_allclose(table["area"], [(shown.predicted == k).mean() for k in range(3)])
    assert table["observations"] == [int((y == label).sum()) for label in "abc"]
    assert f"a in {100 * table['area'][0]:.3g} %" in shown.text()


def test_without_observations(data):
    X, y, _ = data
    shown = DecisionRegionsDisplay.from_estimator(SparseLogisticRegression().fit(X, y), X, grid_resolution=20).plot()
    assert shown.to_table()["observations"] == [0, 0]
    assert shown.ax_.get_legend() is None


def test_complaints_name_the_fault(data, make_data):
    X = data[0]
    with pytest.raises(TypeError, match="ARDRegressor is not a classifier"):
        DecisionRegionsDisplay.from_estimator(ARDRegressor().fit(X, X[:, 0] + np.sin(np.arange(120))), X)
    wide, target = make_data()
    with pytest.raises(ValueError, match="needs two inputs"):
        DecisionRegionsDisplay.from_estimator(SparseLogisticRegression().fit(wide, target > 0), wide)
