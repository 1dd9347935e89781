"""Output: results on standard output, everything else on standard error."""

import json
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from rich.console import Console
from rich.segment import Segment

from sparsebayes.io.printable import printable

PIPED = 80
"""Width in characters of tables that go into a file or another program."""
NAME = 8
"""Width in characters of a model's name, so that progress bars are aligned."""


BEYOND_ASCII = re.compile("[^\\n -~]")
"""JSON itself escapes control characters of ASCII only; terminals know others."""


class PlainConsole(Console):
    """A console that shows control characters in what it is given, instead of sending them to the terminal."""

    def render(self, *args: Any, **kwargs: Any) -> Iterable[Segment]:
        """What rich makes of something, piece by piece."""
        for piece in super().render(*args, **kwargs):
            yield piece if piece.control else Segment(printable(piece.text, keep="\n"), piece.style)


def out() -> Console:
    """The console for results. Markup is off, so that names may contain brackets."""
    width = None if sys.stdout.isatty() else PIPED
    return PlainConsole(width=width, markup=False, highlight=False, emoji=False)


def tell(message: str) -> None:
    """Print a message on standard error, without control characters."""
    print(printable(message), file=sys.stderr)


def escape_warnings() -> None:
    """Show warnings of libraries without control characters: they may hold text from files."""
    usual = warnings.formatwarning
    warnings.formatwarning = lambda *args, **kwargs: printable(usual(*args, **kwargs), keep="\n")


def print_json(value: Any) -> None:
    """Print one JSON document on standard output."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    print(BEYOND_ASCII.sub(lambda found: found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1], text))


@contextmanager
def progress(verbose: bool, live: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar for each model if `live` and on a terminal, otherwise a line for each fold if `verbose`."""
    from sparsebayes.estimators import SCREEN, Bar, looked_at

    if not (live and looked_at()):
        yield _Lines() if verbose else _silence
        return
    with ExitStack() as shown:
        bars: dict[str, Bar] = {}

        def show(name: str, done: int, total: int) -> None:
            if name not in bars:
                bars[name] = Bar(f"{name:<{NAME}}", total)
                shown.enter_context(SCREEN.showing(bars[name]))
            bars[name].reach(done)

        yield show


def _silence(name: str, done: int, total: int) -> None:
    pass


class _Lines:
    """A line for each fold, with the time since the model was begun."""

    def __init__(self) -> None:
        self._begun: dict[str, float] = {}

    def __call__(self, name: str, done: int, total: int) -> None:
        begun = self._begun.setdefault(name, time.monotonic())
        if done:
            tell(f"{name}: {done} of {total} ({time.monotonic() - begun:.1f} s)")
