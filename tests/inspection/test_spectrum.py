import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsebayes import ARDRegressor, RVMRegressor
from sparsebayes.inspection import RelevanceSpectrumDisplay


@pytest.fixture(scope="module")
def spectra(make_data):
    X, y = make_data(80, 20)
    return X * np.linspace(1, 2, 20) + 5, y


def test_kept_channels_are_marked_at_their_place_by_their_sign(spectra):
    X, y = spectra
    model = ARDRegressor(average=False).fit(X, y)
    shown = RelevanceSpectrumDisplay.from_estimator(model, X, wavelengths=np.arange(1000, 1200, 10)).plot()
    assert_array_equal(shown.channels, model.active_)
    assert_allclose(shown.weight, (model.coef_ * X.std(axis=0))[model.active_])
    assert_array_equal(shown.ax_.lines[0].get_xydata(), np.column_stack([shown.wavelengths, X.mean(axis=0)]))
    marks = {
        c.get_label(): np.asarray(c.get_offsets()) for c in shown.ax_.collections if "weight" in str(c.get_label())
    }
    up, down = shown.channels[shown.weight > 0], shown.channels[shown.weight < 0]
    assert_array_equal(marks["positive weight"], np.column_stack([1000 + 10 * up, X.mean(axis=0)[up]]))
    assert_array_equal(marks["negative weight"], np.column_stack([1000 + 10 * down, X.mean(axis=0)[down]]))
    sizes = next(c for c in shown.ax_.collections if c.get_label() == "positive weight").get_sizes()
    assert_array_equal(np.argsort(sizes), np.argsort(np.abs(shown.weight[shown.weight > 0])))
    assert shown.to_table()["wavelength"] == (1000 + 10 * model.active_).tolist()
    assert f"1000 ({shown.weight[0]:+.3g})" in shown.text()


def test_channels_in_any_order_are_drawn_in_that_of_their_wavelengths(spectra):
    X, y = spectra
    places = np.random.default_rng(0).permutation(20)
    model = ARDRegressor(average=False).fit(X, y)
    shown = RelevanceSpectrumDisplay.from_estimator(model, X, wavelengths=places)
    assert_array_equal(shown.wavelengths, np.arange(20))
    assert_array_equal(shown.mean[places], X.mean(axis=0))
    assert_array_equal(shown.spread[places], X.std(axis=0))
    weight = dict(zip(shown.wavelengths[shown.channels], shown.weight, strict=True))
    assert weight == pytest.approx({places[j]: model.coef_[j] * X[:, j].std() for j in model.active_})


def test_wavelengths_are_read_from_the_names(spectra):
    X, y = spectra
    frame = pd.DataFrame(X, columns=[f"w{1100.5 + 2 * j} nm" for j in range(20)])
    pipeline = make_pipeline(StandardScaler(), ARDRegressor(average=False)).fit(frame, y)
    shown = RelevanceSpectrumDisplay.from_estimator(pipeline, frame)
    assert_allclose(shown.wavelengths, 1100.5 + 2 * np.arange(20))
    assert shown.label == "wavelength"
    assert_allclose(shown.mean, X.mean(axis=0))  # the spectra themselves, not what the scaler makes of them
    plain = RelevanceSpectrumDisplay.from_estimator(ARDRegressor(average=False).fit(X, y), X)
    assert_allclose(shown.weight, plain.weight, rtol=1e-6)
    assert plain.label == "channel"
    assert_array_equal(plain.wavelengths, np.arange(20))


def test_nothing_kept(spectra):
    X, _ = spectra
    model = ARDRegressor(min_gain=1e6).fit(X, np.random.default_rng(0).standard_normal(80))
    shown = RelevanceSpectrumDisplay.from_estimator(model, X).plot()
    assert shown.text() == "Kept 0 of 20 channels of the mean spectrum."


def test_complaints_name_the_fault(spectra):
    X, y = spectra
    with pytest.raises(ValueError, match="wavelengths has shape"):
        RelevanceSpectrumDisplay.from_estimator(ARDRegressor(average=False).fit(X, y), X, wavelengths=[1, 2])
    with pytest.raises(TypeError, match="keeps rows"):
        RelevanceSpectrumDisplay.from_estimator(RVMRegressor().fit(X, y), X)
