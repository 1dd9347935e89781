"""What all displays have in common, on every estimator of the register."""

import json
import subprocess
import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError

import sparsebayes.inspection as inspection
from sparsebayes import ARDRegressor, StabilitySelector
from sparsebayes.estimators import ESTIMATORS, listed
from sparsebayes.inspection.style import LONGEST_NAME, percent, shortened


def once(cls):
    """The estimator as a single model, where it averages by default: it is fitted many times."""
    return cls(**({"average": False} if "average" in cls._parameter_constraints else {}))


def displays(model, X, y):
    """Every display that suits a model with two inputs, of which one class or output is looked at."""
    which = {"output": "top"} if is_classifier(model) else {}
    yield inspection.RelevanceDisplay.from_estimator(model, X, **which)
    if hasattr(model, "inclusion_probability_"):
        yield inspection.InclusionDisplay.from_estimator(model, **which)
    yield inspection.EvidencePathDisplay.from_estimator(model)
    yield inspection.CoverageDisplay.from_estimator(model, X, y, **which)
    if is_classifier(model):
        yield inspection.DecisionRegionsDisplay.from_estimator(model, X, y, grid_resolution=20)
    if hasattr(model, "coef_"):
        yield inspection.RelevanceSpectrumDisplay.from_estimator(model, X, **which)
        selector = StabilitySelector(once(type(model)), n_resamples=2, random_state=0).fit(X, y)
        yield inspection.StabilityDisplay.from_estimator(selector)


@pytest.mark.parametrize("place", range(len(ESTIMATORS)), ids=[cls.__name__ for cls in ESTIMATORS])
def test_every_display_draws_lists_and_tells(fitted, place):
    model, X, y = fitted[place]
    for shown in displays(model, X, y):
        assert shown.plot() is shown
        shown.figure_.canvas.draw()
        table = shown.to_table()
        assert len({len(column) for column in table.values()}) == 1
        json.dumps(table)
        assert shown.text().endswith(".")
        assert len(shown.text().splitlines()) == 1
        figure, ax = plt.subplots()
        assert shown.plot(ax=ax).ax_ is ax
        assert shown.figure_ is figure


def test_the_register_of_displays_is_whole():
    covered = {
        "CoverageDisplay",
        "DecisionRegionsDisplay",
        "EvidencePathDisplay",
        "InclusionDisplay",
        "PredictiveBandDisplay",  # one input: tests of its own
        "RelevanceDisplay",
        "RelevanceSpectrumDisplay",
        "StabilityDisplay",
        "to_datatree",  # draws, no display: tests/inspection/test_posterior.py
    }
    assert set(inspection.__all__) == covered


@pytest.mark.parametrize("name", ["RelevanceDisplay", "EvidencePathDisplay", "InclusionDisplay"])
def test_an_estimator_that_is_not_fitted_is_refused(name):
    with pytest.raises(NotFittedError):
        getattr(inspection, name).from_estimator(ARDRegressor())


def test_without_matplotlib_only_plotting_fails_and_says_what_to_install(make_data, monkeypatch):
    X, y = make_data()
    shown = inspection.RelevanceDisplay.from_estimator(ARDRegressor(average=False).fit(X, y), X)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    assert shown.text()
    with pytest.raises(ImportError, match=r"RelevanceDisplay needs matplotlib.*sparsebayes\[plot\]"):
        shown.plot()


def test_importing_the_displays_does_not_import_matplotlib():
    program = (
        f"import sys; sys.path[:0] = {sys.path!r}; import sparsebayes.inspection; print('matplotlib' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert result.stdout.strip() == "False"


# --- names ---

HARD = ["$x_1", "100 % of $", "größe ₂ Δ", "a\nb", "x" * 200, "", "_", r"\frac{1}", "<b>"]


def test_names_of_any_kind_are_drawn_as_they_are(labels_of):
    weight = np.arange(len(HARD), 0, -1.0)
    shown = inspection.RelevanceDisplay(names=HARD, weight=weight, lower=weight - 1, upper=weight + 1, gain=weight)
    for quantity in ("weight", "gain"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            shown.plot(quantity=quantity).figure_.canvas.draw()
        assert labels_of(shown.ax_)[:4] == ["$x_1", "100 % of $", "größe ₂ Δ", "a b"]
        assert all(len(label) <= LONGEST_NAME for label in labels_of(shown.ax_))
        assert not any(label.get_parse_math() for label in shown.ax_.get_yticklabels())
    assert shown.to_table()["name"] == HARD


def test_labels_are_inside_the_picture():
    names = ["a name of some length, as they come in tables (mg/dl)", "another one, of which there is more to say"]
    shown = inspection.RelevanceDisplay(
        names=names, weight=np.ones(2), lower=np.zeros(2), upper=np.full(2, 2.0), title="kept 2 of 3 features",
        weight_label="effect of one standard deviation of the feature on the log-odds, 95 % interval",
    ).plot()  # fmt: skip
    figure = shown.figure_
    figure.canvas.draw()
    box, frame = figure.get_tightbbox(), figure.bbox_inches
    assert box.x0 >= frame.x0
    assert box.x1 <= frame.x1
    assert box.y0 >= frame.y0
    assert box.y1 <= frame.y1


def test_shortened_names_stay_different():
    names = [
        f"the expression (log2, normalised) of gene number {k} in the tissue sample of the left ventricle"
        for k in range(40)
    ]
    fitting = shortened(names)
    assert len(set(fitting)) == 40
    assert all(len(name) <= LONGEST_NAME for name in fitting)
    assert all(f" {k} " in name for k, name in enumerate(fitting))
    assert shortened(["short", *names])[0] == "short"
    assert shortened([]) == []


def test_words():
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(list("abcdefgh")) == "a, b, c, d, e and 3 more"
    assert percent(0.9) == "90 %"
    assert percent(0.995) == "99.5 %"
    assert percent(1 / 3) == "33.3 %"
