"""Displays of models that are averaged over models."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsebayes import ARDRegressor, RVMRegressor, SparseLogisticRegression
from sparsebayes.core.credible import CLAIMED
from sparsebayes.estimators import kept, probable, set_text, size_text
from sparsebayes.inspection import InclusionDisplay, RelevanceDisplay, RelevanceSpectrumDisplay
from sparsebayes.inspection.inclusion import SETS
from sparsebayes.inspection.style import BLUE


def trio(seed=0, n=100, d=12):
    """Columns 0, 1 and 2 are nearly the same, and the second of them matters; so does column 5."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, :3] = 0.97**0.5 * rng.standard_normal((n, 1)) + 0.03**0.5 * X[:, :3]
    return X, 0.7 * X[:, 1] - 2 * X[:, 5] + rng.standard_normal(n)


@pytest.fixture(scope="module")
def data():
    return trio()


@pytest.fixture(scope="module")
def model(data):
    return ARDRegressor().fit(*data)


def test_bars_are_the_probabilities_set_by_set(model, labels_of):
    shown = InclusionDisplay.from_estimator(model).plot()
    places = [int(name[1:]) for name in shown.names]
    assert_array_equal(shown.probability, model.inclusion_probability_[places])
    assert_allclose([bar.get_width() for bar in shown.ax_.patches[: len(places)]], shown.probability)
    assert labels_of(shown.ax_)[: len(places)] == shown.names
    sets = [set(found.features.tolist()) for found in model.credible_sets_]
    assert {5} in sets
    assert {0, 1, 2} in sets
    for k, members in enumerate(sets):
        rows = np.flatnonzero(shown.group == k)
        assert {places[row] for row in rows} == members
        assert_array_equal(np.diff(rows), 1)  # the bracket joins neighbours
        assert (np.diff(shown.probability[rows]) <= 0).all()
        assert shown.set_probability[k] == model.credible_sets_[k].probability
    assert (np.diff(shown.set_probability) <= 0).all()
    alone = shown.group < 0
    assert alone[np.flatnonzero(alone)[0] :].all()  # features without a set come last
    assert (shown.probability[alone] >= 0.05).all()


def test_colour_and_bracket_tell_the_sets_apart(model):
    import matplotlib.colors

    shown = InclusionDisplay.from_estimator(model).plot()
    colour = {
        round(bar.get_y() + bar.get_height() / 2): matplotlib.colors.to_hex(bar.get_facecolor())
        for bar in shown.ax_.patches
    }
    row = {name: k for k, name in enumerate(shown.names)}
    assert colour[row["x5"]] == BLUE
    assert {colour[row[name]] for name in ("x0", "x1", "x2")} == {SETS[0]}
    others = [bar for bar in shown.ax_.patches if bar.get_hatch()]
    assert len(others) == (shown.group < 0).sum()
    brackets = [line for line in shown.ax_.lines if len(line.get_xdata()) == 4]
    assert len(brackets) == 1
    rows = sorted(row[name] for name in ("x0", "x1", "x2"))
    assert_allclose([min(brackets[0].get_ydata()), max(brackets[0].get_ydata())], [rows[0] - 0.35, rows[-1] + 0.35])
    words = [text.get_text() for text in shown.ax_.texts]
    (pair,) = [found for found in model.credible_sets_ if len(found.features) == 3]
    assert f"one of 3:\n{probable(pair.probability)}" in words
    marks = [line for line in shown.ax_.lines if len(line.get_xdata()) == 2]
    assert_array_equal(marks[0].get_xdata(), [CLAIMED] * 2)


def test_the_text_says_claims_sets_and_size(model):
    shown = InclusionDisplay.from_estimator(model)
    low, median, high = np.searchsorted(np.cumsum(model.n_features_posterior_), [0.05, 0.5, 0.95]).tolist()
    assert shown.text().startswith("Claims 1 of 12 features with an inclusion probability of at least 90 %: x5 (")
    (three,) = [found for found in model.credible_sets_ if len(found.features) == 3]
    ranked = sorted(three.features.tolist(), key=lambda j: -model.inclusion_probability_[j])
    assert set_text([f"x{j}" for j in ranked], three.probability) in shown.text()
    assert shown.text().endswith(f"In the model: {size_text(low, median, high)}.")
    table = shown.to_table()
    assert table["set_probability"][table["name"].index("x5")] == model.credible_sets_[table["set"][0]].probability
    assert table["set_probability"][-1] is None


def test_pipelines_are_told_in_their_own_names(data, model):
    X, y = data
    frame = pd.DataFrame(X, columns=[f"gene {j}" for j in range(12)])
    pipeline = make_pipeline(StandardScaler(), ARDRegressor()).fit(frame, y)
    shown, plain = InclusionDisplay.from_estimator(pipeline), InclusionDisplay.from_estimator(model)
    assert shown.names[0] == plain.names[0].replace("x", "gene ")
    assert InclusionDisplay.from_estimator(model, feature_names=[f"f{j}" for j in range(12)]).names[0][0] == "f"


def test_outputs_and_classes_are_chosen_by_name(data):
    X, y = data
    two = ARDRegressor(max_flips=600).fit(
        X, np.column_stack([y, X[:, 7] + np.random.default_rng(1).standard_normal(100)])
    )
    shown = InclusionDisplay.from_estimator(two, output=1)
    assert shown.title.startswith("output 1: claims")
    assert shown.names[0] == "x7"
    assert_array_equal(shown.probability[:1], two.inclusion_probability_[1, 7])
    with pytest.raises(ValueError, match="has 2 outputs"):
        InclusionDisplay.from_estimator(two)
    both = InclusionDisplay.from_parts(kept(two), [f"x{j}" for j in range(12)])
    assert {"x7 · output 1", "x5 · output 0"} <= set(both.names)
    assert len(both.set_probability) == sum(map(len, two.credible_sets_))
    assert both.n_candidates == 24
    binary = SparseLogisticRegression(max_flips=600, average=True).fit(X, y > 0)
    assert InclusionDisplay.from_estimator(binary).names[0] == "x5"


def test_a_single_model_has_no_probabilities(data):
    with pytest.raises(TypeError, match=r"ARDRegressor is a single model.*average=True"):
        InclusionDisplay.from_estimator(ARDRegressor(average=False).fit(*data))
    with pytest.raises(TypeError, match="RVMRegressor is a single model"):
        InclusionDisplay.from_estimator(RVMRegressor().fit(data[0][:20], data[1][:20]))


def made(n_sets, size, alone):
    """A display of so many sets of equal size, and of further features without one."""
    group = np.append(np.repeat(np.arange(n_sets), size), [-1] * alone)
    probability = np.append(np.full(n_sets * size, 0.4), np.full(alone, 0.2))
    names = [f"f{k}" for k in range(len(group))]
    sure = np.full(n_sets, 0.95)
    return InclusionDisplay(names=names, probability=probability, group=group, set_probability=sure, n_candidates=500)


def test_many_features_are_cut_and_counted(labels_of):
    shown = made(7, 6, 100).plot()
    assert labels_of(shown.ax_)[-1] == "… and 112 more"
    assert len(shown.ax_.get_yticks()) == 31
    brackets = [line for line in shown.ax_.lines if len(line.get_xdata()) == 4]
    assert len(brackets) == 5  # 30 rows
    assert len(shown.plot(max_features=142).ax_.get_yticks()) == 142
    with pytest.raises(ValueError, match="max_features"):
        shown.plot(max_features=0)


def test_nothing_probable_is_said():
    shown = made(0, 1, 0)
    assert shown.text() == "Claims 0 of 500 features with an inclusion probability of at least 90 %."
    shown.plot().figure_.canvas.draw()


# --- the other displays ---


def test_the_relevance_display_shows_claims_and_likely_features(data, model):
    X, _ = data
    shown = RelevanceDisplay.from_estimator(model, X, coverage=0.8)
    assert shown.names == ["x5"]
    unit = X[:, 5].std()
    assert_allclose(shown.weight, model.coef_[5] * unit)
    assert_allclose([shown.lower[0], shown.upper[0]], model.coef_interval(0.8)[5] * unit)
    assert_array_equal(shown.probability, model.inclusion_probability_[[5]])
    assert shown.gain is None
    probability = model.inclusion_probability_
    likely = sorted(np.flatnonzero((probability >= 0.5) & (probability < 0.9)), key=lambda j: -probability[j])
    assert len(likely) > 0
    assert shown.near_names == [f"x{j}" for j in likely]
    assert "Claims 1 of 12 features (inclusion probability at least 90 %)" in shown.text()
    assert shown.text().endswith(f"Likely, not claimed: {' and '.join(shown.near_names)}.")
    words = [text.get_text() for text in shown.plot().ax_.texts]
    assert f"likely, not claimed: {probable(probability[likely[0]])}" in words
    assert not any("nats" in word for word in words)
    assert "probability" in shown.to_table()
    with pytest.raises(ValueError, match=r"quantity='gain'.*the best single model \(model_\)"):
        shown.plot(quantity="gain")
    assert RelevanceDisplay.from_estimator(model.model_).gain is not None


def test_the_spectrum_shows_the_channels_of_the_credible_sets(data, model):
    X, _ = data
    shown = RelevanceSpectrumDisplay.from_estimator(model, X)
    members = sorted({j for found in model.credible_sets_ for j in found.features.tolist()})
    assert {0, 1, 2, 5} <= set(members)
    assert_array_equal(shown.channels, members)
    assert_allclose(shown.weight, (model.coef_ * X.std(axis=0))[members])
    assert shown.n_sets == len(model.credible_sets_)
    assert shown.plot().ax_.get_title(loc="left") == f"{len(members)} of 12 channels in {shown.n_sets} credible sets"
    assert shown.text().startswith(f"{len(members)} of 12 channels in {shown.n_sets} credible sets of the mean")
