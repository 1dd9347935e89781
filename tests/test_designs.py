"""The simulated data of the benchmarks have the signal, the correlations and the truth that they promise."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[1] / "benchmarks" / "designs.py"
SPEC = importlib.util.spec_from_file_location("designs", PATH)
designs = importlib.util.module_from_spec(SPEC)
sys.modules["designs"] = designs  # dataclasses look their module up there
SPEC.loader.exec_module(designs)

REGRESSIONS = [*designs.DESIGNS, *designs.NOISE, *designs.TRIOS]
EVERY = [*REGRESSIONS, *designs.CLASS_DESIGNS]
MANY = 4000
"""Fresh rows: a correlation or a mean square of normal values is known to 3/√4000 = 0.05."""


def by_name(name):
    return next(design for design in REGRESSIONS if design.name == name)


def test_names_are_unique_because_results_are_stored_under_them():
    for group in (REGRESSIONS, designs.CLASS_DESIGNS):
        names = [design.name for design in group]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("design", EVERY, ids=lambda design: design.name)
def test_a_draw_has_the_promised_shape_and_repeats_itself(design):
    draw, again, other = design.draw(0, n_test=50), design.draw(0, n_test=50), design.draw(1, n_test=50)
    assert draw.X.shape == (design.n_samples, design.n_features)
    assert draw.X_test.shape == (50, design.n_features)
    assert len(draw.y) == design.n_samples
    assert len(draw.y_test) == 50
    np.testing.assert_array_equal(draw.X, again.X)
    np.testing.assert_array_equal(draw.y, again.y)
    assert not np.array_equal(draw.y, other.y)


@pytest.mark.parametrize("design", EVERY, ids=lambda design: design.name)
def test_the_truth_is_what_the_weights_say(design):
    draw = design.draw(0, n_test=50)
    if draw.true is None:
        assert draw.weights is None
        return
    np.testing.assert_array_equal(draw.true, np.flatnonzero(draw.weights))
    assert len(draw.true) == (0 if design in designs.NOISE else design.n_true)


COMPLETE = [design for design in designs.DESIGNS if not isinstance(design, designs.MissingGroups)]


@pytest.mark.parametrize("design", COMPLETE, ids=lambda design: design.name)
def test_the_signal_to_noise_ratio_is_as_stated(design):
    draw = design.draw(0, n_test=MANY)
    total, noise = draw.y_test.var(), draw.noise**2
    # Of Student noise with 3 degrees of freedom the fourth moment is infinite: its mean square is known less well.
    tolerance = 0.3 if design.noise is designs.student3 else 0.15
    assert (total - noise) / noise == pytest.approx(design.snr, rel=tolerance, abs=0.03)


def test_values_that_were_not_recorded_are_noise_too():
    draw = by_name("missing groups").draw(0, n_test=MANY)
    assert draw.noise**2 == pytest.approx(1 / 3 + 0.15, rel=0.1)
    assert (draw.X_test == 0).mean() == pytest.approx(0.15, abs=0.01)  # ten groups a row: standard error 0.002


@pytest.mark.parametrize(
    ("name", "correlated", "expected"),
    [
        ("independent", (0, 1), 0.0),
        ("AR(1) 0.8", (5, 6), 0.8),
        ("AR(1) 0.95", (5, 7), 0.95**2),
        ("blocks 0.9", (0, 9), 0.9),
        ("blocks 0.9", (9, 10), 0.0),
        ("blocks 0.99", (10, 11), 0.99),
        ("near-duplicates", (2, 3), 0.995),
        ("near-duplicates", (1, 2), 0.0),
        ("equicorrelated 0.5", (3, 150), 0.5),
        ("smooth images", (100, 101), 0.78),
        ("trio 0.99", (0, 2), 0.99),
        ("trio 0.99", (2, 3), 0.0),
    ],
)
def test_columns_are_correlated_as_stated(name, correlated, expected):
    X = by_name(name).draw(0, n_test=MANY).X_test[:, correlated]
    assert np.corrcoef(X.T)[0, 1] == pytest.approx(expected, abs=0.05)


def test_only_training_rows_have_outliers():
    draw = by_name("5 % outliers").draw(0, n_test=MANY)
    residual = np.abs(draw.y - draw.X @ draw.weights) * np.sqrt(3)
    assert 1 <= (residual > 4).sum() <= 12  # 5 of 100 expected, by a binomial with standard deviation 2.2
    assert (np.abs(draw.y_test - draw.X_test @ draw.weights) * np.sqrt(3)).max() < 5


@pytest.mark.parametrize("design", designs.CLASS_DESIGNS, ids=lambda design: design.name)
def test_class_1_has_its_share_of_rows(design):
    draw = design.draw(0, n_test=MANY)
    assert draw.y_test.mean() == pytest.approx(design.rate, abs=0.03)  # three standard errors are 0.024
    assert 0 < draw.noise < min(design.rate, 1 - design.rate)
