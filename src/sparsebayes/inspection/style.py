"""The style of all figures: colours for all kinds of colour vision, shapes that work in black and white."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sparsebayes.estimators import short

INK = "#222222"
GREY = "#707070"
PALE = "#e3e3e3"
BLUE = "#0072b2"
RED = "#d55e00"
# The palette of Okabe and Ito suits all kinds of colour vision; dashes distinguish the lines in grey.
SERIES = (BLUE, RED, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", INK)
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)))
MARKERS = "osD^vPX"

LOOK = {
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "figure.dpi": 110,
    "savefig.dpi": 110,
    "figure.constrained_layout.h_pad": 0.09,
    "figure.constrained_layout.w_pad": 0.09,
    "svg.fonttype": "path",
}
FURTHER_FONTS = (
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "WenQuanYi Zen Hei",
    "PingFang SC",
    "Hiragino Sans",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "Noto Sans Devanagari",
    "Noto Sans Arabic",
)
"""Fonts for characters that matplotlib's own font lacks, used if they are installed."""
LONGEST_NAME = 36
"""Longest name beside an axis, in characters."""


def pyplot(caller: str) -> Any:
    """Import matplotlib.pyplot, or say how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{caller} needs matplotlib, which is not installed: pip install 'sparsebayes[plot]'"
        ) from error
    return plt


@contextmanager
def canvas(caller: str, ax: Any, size: tuple[float, float]) -> Iterator[Any]:
    """The given axes, or new ones of the given size in the style of the library."""
    plt = pyplot(caller)
    if ax is not None:
        yield ax
        return
    with plt.rc_context(LOOK | {"font.family": font_families(plt.rcParams["font.family"])}):
        _, ax = plt.subplots(figsize=size, layout="constrained")
        yield ax


def font_families(families: Sequence[str]) -> list[str]:
    """The given font families, followed by installed ones for characters that they lack."""
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    return [*families, *(name for name in FURTHER_FONTS if name in installed)]


def label_rows(ax: Any, names: Sequence[str], *, grey: Sequence[bool]) -> None:
    """Write names down the left side, the first on top. A dollar sign does not start a formula."""
    ax.set_yticks(range(len(names)), shortened(names), parse_math=False)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    for text, faint in zip(ax.get_yticklabels(), grey, strict=True):
        text.set_color(GREY if faint else INK)


def shortened(names: Sequence[str]) -> list[str]:
    """Names that fit beside an axis. Where shortening makes two alike, the part that differs is kept."""
    names = [" ".join(name.split()) for name in names]
    fitting = [short(name, LONGEST_NAME) for name in names]
    counts = Counter(fitting)
    alike = [name for name, fit in zip(names, fitting, strict=True) if counts[fit] > 1]
    start = max(_shared_start(alike) - LONGEST_NAME // 2, 0)
    windows = [name[start : start + LONGEST_NAME - 2] for name in names]
    return [
        f"{'…' * (start > 0)}{window}{'…' * (start + len(window) < len(name))}" if counts[fit] > 1 else fit
        for name, fit, window in zip(names, fitting, windows, strict=True)
    ]


def _shared_start(names: Sequence[str]) -> int:
    """Length of the common prefix of all names: that of the first and the last in alphabetical order."""
    first, last = min(names, default=""), max(names, default="")
    return next((k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))


def percent(share: float) -> str:
    """A share in percent with at most three digits."""
    return f"{100 * share:.3g} %"


def height(n_rows: int) -> float:
    """Height in inches of a figure with the given number of rows."""
    return 1.3 + 0.27 * max(n_rows, 2)


def line(k: int) -> dict[str, Any]:
    """Colour and dashes of line k."""
    return {"color": SERIES[k % len(SERIES)], "linestyle": DASHES[k % len(DASHES)]}
