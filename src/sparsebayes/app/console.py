"""Where things are said: results on standard output, everything else on standard error."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console

PIPED = 110
"""Columns of a table that goes into a file or another program."""


def out() -> Console:
    """For results. What a table holds is never taken for markup, so that names may have brackets."""
    width = None if sys.stdout.isatty() else PIPED
    return Console(width=width, markup=False, highlight=False, emoji=False)


def tell(message: str) -> None:
    """For diagnostics."""
    print(message, file=sys.stderr)


def print_json(value: Any) -> None:
    """One JSON document, and nothing else, on standard output."""
    print(json.dumps(value, indent=2, ensure_ascii=False))


@contextmanager
def progress(verbose: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each model on standard error, if a person looks on there; a line for each fold if `verbose`."""
    if not sys.stderr.isatty():
        yield _lines if verbose else _silence
        return
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        known: dict[str, Any] = {}

        def show(name: str, done: int, total: int) -> None:
            if name not in known:
                known[name] = bars.add_task(name, total=total)
            bars.update(known[name], completed=done)

        yield show


def _silence(name: str, done: int, total: int) -> None:
    pass


def _lines(name: str, done: int, total: int) -> None:
    if done:
        tell(f"{name}: {done} of {total}")
