"""Output: results on standard output, everything else on standard error."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from rich.console import Console

PIPED = 110
"""Width in characters of tables that go into a file or another program."""
NAME = 8
"""Width in characters of a model's name, so that progress bars are aligned."""


def out() -> Console:
    """The console for results. Markup is off, so that names may contain brackets."""
    width = None if sys.stdout.isatty() else PIPED
    return Console(width=width, markup=False, highlight=False, emoji=False)


def tell(message: str) -> None:
    """Print a message on standard error."""
    print(message, file=sys.stderr)


def print_json(value: Any) -> None:
    """Print one JSON document on standard output."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


@contextmanager
def progress(verbose: bool, live: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Show a progress bar for each model if `live` and on a terminal, otherwise a line for each fold if `verbose`."""
    from sparsebayes.estimators import SCREEN, Bar, looked_at

    if not (live and looked_at()):
        yield _lines if verbose else _silence
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


def _lines(name: str, done: int, total: int) -> None:
    if done:
        tell(f"{name}: {done} of {total}")
