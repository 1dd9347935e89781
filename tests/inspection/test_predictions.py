import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsebayes import ARDRegressor, RVMClassifier, RVMRegressor
from sparsebayes.inspection import PredictiveBandDisplay


@pytest.fixture(scope="module")
def sinc():
    rng = np.random.default_rng(0)
    x = rng.uniform(-10, 10, 60)
    return x[:, None], np.sinc(x / np.pi) + 0.1 * rng.standard_normal(60)


@pytest.fixture(scope="module")
def model(sinc):
    return RVMRegressor(gamma=0.1).fit(*sinc)


def test_the_band_is_the_models_prediction(model, sinc):
    X, y = sinc
    shown = PredictiveBandDisplay.from_estimator(model, X, y, coverage=0.8, grid_resolution=50).plot()
    grid = shown.x[:, None]
    assert_allclose(shown.mean, model.predict(grid))
    assert_allclose(np.column_stack([shown.lower, shown.upper]), model.predict_interval(grid, 0.8))
    reach = 0.1 * (X.max() - X.min())
    assert_allclose([shown.x[0], shown.x[-1]], [X.min() - reach, X.max() + reach])
    lower, upper, mean, observed, vectors = shown.ax_.lines
    assert_array_equal(mean.get_ydata(), shown.mean)
    assert_array_equal(lower.get_ydata(), shown.lower)
    assert_array_equal(upper.get_ydata(), shown.upper)
    assert_array_equal(observed.get_xydata(), np.column_stack([X[:, 0], y]))
    assert_array_equal(vectors.get_xdata(), model.relevance_vectors_[:, 0])
    assert_allclose(vectors.get_ydata(), model.predict(model.relevance_vectors_))
    band = shown.ax_.collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == pytest.approx(shown.lower.min())
    assert band[:, 1].max() == pytest.approx(shown.upper.max())
    words = [text.get_text() for text in shown.ax_.get_legend().get_texts()]
    assert words[0] == "80 % interval of new observations"
    assert words[-1] == f"{len(vectors.get_xdata())} relevance vectors"


def test_a_pipeline_is_drawn_in_its_own_units(sinc):
    X, y = sinc
    frame = pd.DataFrame({"cost in $": X[:, 0]})
    pipeline = make_pipeline(StandardScaler(), RVMRegressor()).fit(frame, y)
    shown = PredictiveBandDisplay.from_estimator(pipeline, frame, y).plot()
    assert_allclose(shown.mean, pipeline.predict(pd.DataFrame({"cost in $": shown.x})))
    assert set(np.round(shown.x_vectors, 9)) <= set(np.round(X[:, 0], 9))
    assert shown.ax_.get_xlabel() == "cost in $"
    shown.figure_.canvas.draw()


def test_without_observations_and_vectors(sinc):
    shown = PredictiveBandDisplay.from_estimator(ARDRegressor().fit(*sinc), sinc[0]).plot()
    assert len(shown.ax_.lines) == 3
    assert "relevance vectors" not in shown.text()


def test_several_outputs(sinc):
    X, y = sinc
    model = RVMRegressor(gamma=0.1).fit(X, np.column_stack([y, 10 - y]))
    shown = PredictiveBandDisplay.from_estimator(model, X, np.column_stack([y, 10 - y]), output=1)
    assert_allclose(shown.mean, model.predict(shown.x[:, None])[:, 1])
    assert_array_equal(shown.y_observed, 10 - y)
    assert_array_equal(shown.x_vectors, model.relevance_vectors_[1][:, 0])
    with pytest.raises(ValueError, match="has 2 outputs"):
        PredictiveBandDisplay.from_estimator(model, X)


def test_the_text_says_how_wide(model, sinc):
    shown = PredictiveBandDisplay.from_estimator(model, sinc[0])
    width = shown.upper - shown.lower
    assert f"90 % interval of new observations is {width.min():.3g} to {width.max():.3g} wide" in shown.text()
    assert shown.to_table()["mean"] == shown.mean.tolist()


def test_complaints_name_the_fault(model, sinc, make_data):
    X, y = make_data()
    with pytest.raises(ValueError, match="needs one input"):
        PredictiveBandDisplay.from_estimator(ARDRegressor().fit(X, y), X)
    with pytest.raises(TypeError, match="RVMClassifier has no predict_interval"):
        PredictiveBandDisplay.from_estimator(RVMClassifier().fit(sinc[0], sinc[1] > 0.3), sinc[0])
