"""Numbers and names as text: few digits, true minus signs, no control characters."""

import math
import re
from collections.abc import Sequence
from typing import Any

from sparsebayes.estimators import listed, probable, short

LONGEST = 80
"""Longest name in a table, in characters."""
NONE = "–"
"""Shown where a number does not apply."""
NO_BREAK = "\N{NO-BREAK SPACE}"
PLUS_MINUS = f"{NO_BREAK}±{NO_BREAK}"
KEYBOARD = str.maketrans({NO_BREAK: " ", "−": "-"})
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def name(thing: Any, longest: int = LONGEST) -> str:
    """A name from the data on one line, shortened, without control characters."""
    text = "".join(
        letter if letter.isprintable() or letter.isspace() else "\N{REPLACEMENT CHARACTER}" for letter in str(thing)
    )
    return short(text, longest)


def typeset(text: str) -> str:
    """Text of a display with true minus signs, and no line break before a percent sign."""
    return re.sub(r"(?<=[ (])-(?=\d)", "−", text.replace(" %", f"{NO_BREAK}%"))


def names(things: Sequence[Any], most: int = 5) -> str:
    """Names in a sentence: a, b and c; of many, the first and how many more."""
    return listed([f"“{name(thing, 40)}”" for thing in things[:most]] + [""] * max(len(things) - most, 0), most)


def chance(probability: float) -> str:
    """An estimated probability in percent."""
    return typeset(probable(probability))


def count(n: float, what: str) -> str:
    """A count with its noun, in the singular or plural."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def number(value: float, digits: int = 3, *, sign: bool = False) -> str:
    """A number with the given significant digits; digits before the decimal point are never rounded away."""
    if math.isnan(value):
        return NONE
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    plus = "+" if sign else "-"
    mantissa, _, power = f"{value:{plus}.{digits - 1}e}".partition("e")
    exponent = int(power)
    if -4 <= exponent <= 5:
        text = f"{value:{plus},.{max(digits - 1 - exponent, 0)}f}"
    else:
        text = f"{mantissa}{NO_BREAK}×{NO_BREAK}10{str(exponent).translate(SUPERSCRIPTS)}"
    return text.replace("-", "−")


def plus_minus(value: float, error: float, *, sign: bool = False) -> str:
    """A number and its standard error, both rounded to two digits of the error."""
    if not (math.isfinite(value) and math.isfinite(error)) or error <= 0 or not 1e-4 <= error < 1e5:
        tail = f"{PLUS_MINUS}{number(error, 2)}" if math.isfinite(error) and math.isfinite(value) else ""
        return number(value, sign=sign) + tail
    decimals = max(1 - int(f"{error:.1e}".partition("e")[2]), 0)
    plus = "+" if sign else "-"
    return f"{value:{plus},.{decimals}f}{PLUS_MINUS}{error:,.{decimals}f}".replace("-", "−")


def error_text(value: float, error: float, *, percent: bool, sign: bool = False) -> str:
    """An error or a difference of errors with its standard error, in units of the target or in percent of the rows."""
    if not percent:
        return plus_minus(value, error, sign=sign)
    return plus_minus(100 * value, 100 * error, sign=sign) + (f"{NO_BREAK}%" if math.isfinite(value) else "")


def for_terminal(text: str) -> str:
    """Text with the characters of a keyboard: ordinary spaces and hyphens instead of the typographic ones."""
    return text.translate(KEYBOARD)


def interval(low: float, high: float, *, sign: bool = False) -> str:
    """The ends of an interval, with digits according to its width."""
    width = high - low
    if not math.isfinite(width):
        return NONE
    size = max(abs(low), abs(high))
    lost = math.floor(math.log10(size / width)) if width > 0 and size > 0 else 0
    digits = min(3 + max(lost, 0), 8)
    return f"{_to(low, size, digits, sign)}{NO_BREAK}…{NO_BREAK}{_to(high, size, digits, sign)}"


def _to(value: float, size: float, digits: int, sign: bool) -> str:
    """One end, with as many decimals as the larger one."""
    exponent = math.floor(math.log10(size)) if size > 0 else 0
    if not -4 <= exponent <= 5:
        return number(value, digits, sign=sign)
    decimals = max(digits - 1 - exponent, 0)
    return f"{value:{'+' if sign else '-'},.{decimals}f}".replace("-", "−")


def percent(share: float) -> str:
    """A share in percent without decimals; near 0 and 100 with decimals, so as not to round to these."""
    if math.isnan(share):
        return NONE
    value = 100 * share
    rest = min(value, 100 - value)
    decimals = 0 if rest >= 0.95 or rest <= 0 else 1 if rest >= 0.05 else 2
    return f"{value:.{decimals}f}{NO_BREAK}%".replace("-", "−")
