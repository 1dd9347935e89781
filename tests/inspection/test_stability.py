import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsebayes import ARDRegressor, SparseLogisticRegression, StabilitySelector
from sparsebayes.inspection import StabilityDisplay


@pytest.fixture(scope="module")
def stability(make_data):
    X, y = make_data(60, 8, noise=3.0)
    return StabilitySelector(ARDRegressor(min_gain=0.5), n_resamples=10, random_state=0).fit(X, y)


def test_bars_are_the_frequencies_most_frequent_first(stability, labels_of):
    shown = StabilityDisplay.from_estimator(stability).plot()
    ever = np.flatnonzero(stability.selection_frequency_)
    widths = [bar.get_width() for bar in shown.ax_.patches]
    by_name = dict(zip(labels_of(shown.ax_), widths, strict=True))
    assert by_name == pytest.approx({f"x{j}": stability.selection_frequency_[j] for j in ever})
    assert widths == sorted(widths, reverse=True)


def test_what_is_below_the_threshold_is_hollow(stability):
    shown = StabilityDisplay.from_estimator(stability).plot()
    full = [bar.get_width() >= 0.6 for bar in shown.ax_.patches]
    assert any(full)
    assert not all(full)
    assert [bar.get_hatch() is None for bar in shown.ax_.patches] == full
    (line,) = shown.ax_.lines
    assert_allclose(line.get_xdata(), 0.6)
    assert shown.to_table()["selected"] == full
    assert f"selected {sum(full)} of 8" in shown.ax_.get_title(loc="left")
    first = f"x{stability.selection_frequency_.argmax()} ({100 * stability.selection_frequency_.max():.0f} %)"
    assert f"Selected {sum(full)} of 8 features, kept in at least 60 % of 10 repetitions: {first}" in shown.text()


def test_notes_say_the_share_and_the_sign(stability):
    shown = StabilityDisplay.from_estimator(stability).plot()
    signs = dict(zip(shown.names, [text.get_text()[-1] for text in shown.ax_.texts], strict=False))
    assert signs["x0"] == "+"
    assert signs["x1"] == "−"
    assert shown.ax_.texts[0].get_text().startswith(f"{100 * stability.selection_frequency_.max():.0f} %")


def test_of_several_classes_the_largest_weight_is_told(make_data):
    X, y = make_data(150, 3, n_true=2)
    y = np.digitize(y, [-1.5, 1.5])
    selector = StabilitySelector(SparseLogisticRegression(average=False), n_resamples=2, random_state=0).fit(X, y)
    table = StabilityDisplay.from_estimator(selector).to_table()
    mean = selector.weight_mean_[:, 0]
    assert dict(zip(table["name"], table["weight"], strict=True))["x0"] == mean[np.abs(mean).argmax()]


def test_names_can_be_given_and_are_counted(stability):
    names = [f"gene {j}" for j in range(8)]
    assert StabilityDisplay.from_estimator(stability, feature_names=names).names[0].startswith("gene ")
    with pytest.raises(ValueError, match="feature_names has 2"):
        StabilityDisplay.from_estimator(stability, feature_names=["a", "b"])
    with pytest.raises(NotFittedError):
        StabilityDisplay.from_estimator(StabilitySelector(ARDRegressor()))


def test_a_pipeline_that_ends_in_a_selector(make_data):
    X, y = make_data()
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(12)])
    selector = StabilitySelector(ARDRegressor(), n_resamples=2, random_state=0)
    shown = StabilityDisplay.from_estimator(make_pipeline(StandardScaler(), selector).fit(frame, y))
    assert set(shown.names) >= {"gene 0", "gene 1", "gene 2"}


def test_nothing_selected_is_said(make_data):
    X, _ = make_data()
    y = np.random.default_rng(0).standard_normal(len(X))
    shown = StabilityDisplay.from_estimator(
        StabilitySelector(ARDRegressor(min_gain=1e6), n_resamples=2).fit(X, y)
    ).plot()
    assert shown.text() == "Selected 0 of 12 features, kept in at least 60 % of 2 repetitions."
    assert "nothing was kept" in [text.get_text() for text in shown.ax_.texts]
