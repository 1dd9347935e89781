"""How far a long piece of work is, shown where a person looks on."""

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def shown(items: Iterable[T], total: int, what: str, verbose: int) -> Iterator[T]:
    """The same items one by one, with a bar on standard error if `verbose` and that is a terminal.

    The bar is rich's; without it there is one line for every tenth of the way. Nothing goes into a pipe or a file.
    """
    if not verbose or not sys.stderr.isatty():
        yield from items
        return
    try:
        from rich.console import Console
        from rich.progress import track
    except ImportError:
        yield from _told(items, total, what)
        return
    yield from track(items, description=what, total=total, console=Console(stderr=True), transient=True)


def _told(items: Iterable[T], total: int, what: str) -> Iterator[T]:
    for k, item in enumerate(items, start=1):
        if 10 * k // total > 10 * (k - 1) // total:
            print(f"{what}: {k} of {total}", file=sys.stderr)
        yield item
