"""Numbers and names as a reader wants them, and colours that can be told from their ground."""

import re
from pathlib import Path

import numpy as np
import pytest

import sparsebayes
from sparsebayes.app.report.words import interval, name, number, percent, plus_minus


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00"),
        (54.321, "54.3"),
        (-0.001234, "−0.00123"),
        (123456.7, "123,457"),
        (9.996, "10.0"),
        (1.5e-7, "1.50 × 10⁻⁷"),
        (-2e9, "−2.00 × 10⁹"),
        (np.inf, "∞"),
        (np.nan, "–"),
    ],
)
def test_numbers_have_three_digits(value, text):
    assert number(value).replace("\xa0", " ") == text


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (54.321, 1.1234, "54.3 ± 1.1"),
        (1234.5, 99.6, "1,234 ± 100"),
        (0.5, 0.0, "0.500 ± 0.0"),
        (2.0, np.nan, "2.00"),
        (np.nan, np.nan, "–"),
        (3e7, 2e6, "3.00 × 10⁷ ± 2.0 × 10⁶"),
    ],
)
def test_a_number_has_the_digits_of_its_error(value, error, text):
    assert plus_minus(value, error).replace("\xa0", " ") == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.9, "90 %"), (0.994, "99.4 %"), (0.9996, "99.96 %"), (1.0, "100 %"), (0.004, "0.4 %"), (-0.2, "−20 %")],
)
def test_shares_near_the_ends_are_not_rounded_away(share, text):
    assert percent(share).replace("\xa0", " ") == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [(-1.234, 12.345, "−1.2 … 12.3"), (1000.1, 1000.3, "1,000.10 … 1,000.30"), (np.nan, 1, "–")],
)
def test_intervals_have_digits_for_their_width(low, high, text):
    assert interval(low, high).replace("\xa0", " ") == text


def test_names_are_short_and_printable():
    assert name("a\nb") == "a b"
    assert name("a\x00b") == "a\N{REPLACEMENT CHARACTER}b"
    assert len(name("x" * 500)) == 80


# --- colours ---


def luminance(colour):
    levels = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(first, second):
    low, high = sorted([luminance(first), luminance(second)])
    return (high + 0.05) / (low + 0.05)


def schemes():
    """The colours of the page in light and in darkness."""
    style = (Path(sparsebayes.__file__).parent / "app" / "report" / "templates" / "report.css").read_text()
    light, dark = (
        dict(re.findall(r"--([\w-]+): (#\w{6});", part)) for part in re.findall(r":root \{.*?\}", style, re.DOTALL)
    )
    assert light.keys() == dark.keys()
    return {"light": light, "dark": dark}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_letters_and_lines_stand_out(scheme):
    """WCAG 2.2 AA: 4.5 for text, 3 for what must be seen in a picture."""
    colours = schemes()[scheme]
    for ground in ("paper", "sheet"):
        for letters in ("ink", "muted", "link"):
            assert contrast(colours[letters], colours[ground]) >= 4.5, (letters, ground)
    assert contrast(colours["accent"], colours["paper"]) >= 4.5  # the name in the heading
    for line in [key for key in colours if key.startswith("line-")] + ["accent", "alarm"]:
        assert contrast(colours[line], colours["paper"]) >= 3, line
