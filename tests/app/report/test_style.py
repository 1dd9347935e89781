"""Colours of the report have enough contrast."""

import re
from pathlib import Path

import numpy as np
import pytest

import sparsebayes


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
