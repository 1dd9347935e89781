"""Numbers and names as text: few digits, true minus signs, no control characters."""

import numpy as np
import pytest

from sparsebayes.app.words import error_text, for_terminal, interval, name, number, percent, plus_minus


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


@pytest.mark.parametrize(
    ("value", "error", "percent", "text"),
    [
        (54.6823, 1.1249, False, "54.7 ± 1.1"),
        (0.10128, 0.00605, False, "0.1013 ± 0.0060"),
        (0.0533, 0.0226, True, "5.3 ± 2.3 %"),
        (-0.0533, 0.00226, True, "-5.33 ± 0.23 %"),
        (0.667, 0.0, True, "66.7 ± 0.0 %"),
        (np.nan, np.nan, True, "–"),
    ],
)
def test_errors_in_units_of_the_target_or_in_percent(value, error, percent, text):
    assert for_terminal(error_text(value, error, percent=percent)) == text
