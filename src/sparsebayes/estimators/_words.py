"""Names, probabilities and credible sets as text: notebook, displays, command line and report use the same words."""

from collections.abc import Sequence

LONGEST = 60
"""Characters of a name."""
NAMED = 5
"""Names in a sentence; the others are counted."""


def short(name: str, longest: int = LONGEST) -> str:
    """A name on one line. If it is too long its middle is left out, because both ends tell names apart."""
    name = " ".join(name.split())
    head = (longest - 1) // 2
    return name if len(name) <= longest else f"{name[: longest - 1 - head]}…{name[-head:]}"


def listed(names: Sequence[str], most: int = NAMED) -> str:
    """Names in a sentence: a, b and c; of many, the first and how many more."""
    names = list(names)
    if len(names) > most:
        names = [*names[:most], f"{len(names) - most} more"]
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def probable(probability: float) -> str:
    """An estimated probability in percent; it is never rounded to 0 or 100."""
    value = 100 * probability
    if value > 99.9:
        return "> 99.9 %"
    if value < 0.1:
        return "< 0.1 %"
    return f"{value:.1f} %" if min(value, 100 - value) < 1 else f"{value:.0f} %"


def set_text(names: Sequence[str], probability: float) -> str:
    """A credible set of several features: "one of these 3, 97 %: x1, x4 and x9"."""
    return f"one of these {len(names)}, {probable(probability)}: {listed(names)}"


def size_text(low: int, median: int, high: int) -> str:
    """The posterior of the number of features: its median and its central 90 % range."""
    features = f"{median:,} feature{'s' * (median != 1)}"
    return f"{features} ({low:,} to {high:,} with probability 90 %)" if low < high else f"{features} (nearly certain)"
