"""Long work shows how far it is where a person looks on: in terminals and notebooks, never in pipes and files.

There is one screen for all. Work that goes on inside other work (a fit inside a selection) adds its line to those that
are there; a thread draws them, so that the clock goes on during a long step and telling costs a step next to nothing.
"""

import math
import multiprocessing
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any, Protocol, TypeVar

from sparsebayes.engine.loop import Info

T = TypeVar("T")

DELAY = 1.0
"""Seconds of work before its line appears: what is done sooner never flickers."""
PERIOD = 0.1
"""Seconds between two drawings."""
WIDTH = 30
"""Characters of a bar."""
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
PLAIN = str.maketrans("━╌" + SPINNER, "#." + r"|/-\|/-\|/")
"""For terminals that know no other characters."""


# --- who looks on ---


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def looked_at() -> bool:
    """Whether a person sees what is shown while work goes on.

    Not in worker processes: several of them would draw over each other.
    """
    if multiprocessing.parent_process() is not None:
        return False
    return in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


def can_draw() -> bool:
    """Whether lines can be drawn in place where one looks: terminals need rich for that."""
    if in_notebook():
        return True
    try:
        import rich.console
        import rich.live  # noqa: F401
    except ImportError:
        return False
    return True


# --- lines ---


class Line:
    """A piece of work: what it is, and since when it goes on."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.begun, self.ended = time.monotonic(), math.inf
        self.ended_well = False

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return min(time.monotonic(), self.ended) - self.begun

    @property
    def clock(self) -> str:
        """The same for people."""
        minutes, seconds = divmod(int(self.seconds), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"

    def text(self) -> str:
        """How far it is."""
        return f"{self.what}  {self.clock}"

    def last(self) -> str:
        """The line that stays when the fit has ended."""
        return ""


class Bar(Line):
    """How much is done, of how much."""

    def __init__(self, what: str, total: int) -> None:
        super().__init__(what)
        self.done, self.total = 0, total

    def reach(self, done: int) -> None:
        """So much is done; with all of it the clock stops."""
        self.done = done
        if done >= self.total:
            self.ended = time.monotonic()

    def text(self) -> str:
        """How much."""
        full = WIDTH * self.done // max(self.total, 1)
        return f"{self.what}  {'━' * full}{'╌' * (WIDTH - full)}  {self.done} of {self.total}  {self.clock}"


def figures(info: Info) -> list[str]:
    """What a line says of one step. Steps of chains over models have no objective, but a standard error."""
    if math.isnan(info.objective):
        found = [f"features {info.n_active}", f"standard error {info.change:.3f}"]
    else:
        found = [f"log evidence {info.objective:.4f}", f"active {info.n_active}"]
        found += [f"to gain {info.change:.1e}"] * math.isfinite(info.change)
    return found + [info.action] * bool(info.action)


class Steps(Line):
    """A fit. Nobody knows how many steps it will take; what is still to gain says how near its end is."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.n_steps = 0
        self.info: Info | None = None
        self.places: dict[str, str] = {}
        """Of parts that are fitted one after the other (classes, outputs, starts): which it is."""

    def __call__(self, n_steps: int, info: Info) -> None:
        """Count a step. A fit of several stages starts its count again; this count goes on."""
        self.n_steps, self.info = self.n_steps + 1, info

    def text(self) -> str:
        """The numbers of the last step."""
        spin = SPINNER[int(self.seconds / PERIOD) % len(SPINNER)]
        parts, info = [f"{spin} {self.what}", self.clock, *self.places.values()], self.info
        if info is not None:
            parts += [f"step {self.n_steps}", *figures(info)]
        return "  ".join(parts)

    def last(self) -> str:
        """One line for the record."""
        steps = f"{self.n_steps} step{'s' * (self.n_steps > 1)} in " if self.n_steps else ""
        return f"{self.what}: {steps}{self.seconds:.1f} s"


# --- the screen ---


class Canvas(Protocol):
    """Where lines are drawn."""

    def draw(self, lines: list[str]) -> None:
        """Show these in place of those before."""

    def close(self, last: str) -> None:
        """Show this line in place of them, or nothing."""


class Terminal:
    """Standard error, by rich."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(stderr=True, markup=False, highlight=False, emoji=False)
        # What is printed meanwhile goes above the lines; but never from a piped standard output to here.
        aside = sys.stdout is not None and sys.stdout.isatty()
        self.live = Live(console=console, auto_refresh=False, transient=True, redirect_stdout=aside)

    def draw(self, lines: list[str]) -> None:
        """As said above."""
        from rich.text import Text

        text = "\n".join(lines)
        text = text.translate(PLAIN) if self.live.console.options.ascii_only else text
        self.live.start()
        self.live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)

    def close(self, last: str) -> None:
        """As said above."""
        self.live.stop()
        if last:
            self.live.console.print(last)


class Notebook:
    """An output of the running cell. rich would need ipywidgets for that, which are not everywhere."""

    def __init__(self) -> None:
        self.output: Any = None

    def draw(self, lines: list[str]) -> None:
        """As said above."""
        from IPython.display import display

        bundle = {"text/plain": "\n".join(lines)}
        if self.output is None:
            self.output = display(bundle, raw=True, display_id=True)
        else:
            self.output.update(bundle, raw=True)

    def close(self, last: str) -> None:
        """As said above."""
        self.draw([last])


class Screen:
    """All lines of work that goes on now, drawn by a thread that lives as long as there are any."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.thread = threading.Thread()

    @contextmanager
    def showing(self, line: Line) -> Iterator[Line]:
        """Show a line while work goes on, however that ends."""
        with self.lock:
            self.lines.append(line)
            if len(self.lines) == 1:
                self.over = threading.Event()
                canvas: Canvas = Notebook() if in_notebook() else Terminal()
                # In this context a notebook knows to which cell the output belongs.
                run, args = copy_context().run, (self._draw, canvas, self.over)
                self.thread = threading.Thread(target=run, args=args, daemon=True)
                self.thread.start()
        try:
            yield line
            line.ended_well = True
        finally:
            with self.lock:
                if len(self.lines) == 1:
                    self.over.set()
                    self.thread.join()
                self.lines.remove(line)

    def _draw(self, canvas: Canvas, over: threading.Event) -> None:
        """Draw until all is over. The last line that goes leaves its last words, if there is anything to say."""
        drawn = False
        try:
            while not over.wait(PERIOD):
                texts = [line.text() for line in self.lines.copy() if line.seconds >= DELAY]
                if texts or drawn:
                    canvas.draw(texts)
                    drawn = True
        finally:
            if drawn:
                canvas.close("".join(line.last() for line in self.lines if line.ended_well and line.seconds >= DELAY))


SCREEN = Screen()


def shown(items: Iterable[T], total: int, what: str, verbose: int) -> Iterator[T]:
    """The same items one by one, with a bar if `verbose` and a person looks on.

    In a terminal without rich there is one line for every tenth of the way. Nothing goes into a pipe or a file.
    """
    if not verbose or not looked_at():
        yield from items
        return
    if not can_draw():
        yield from _told(items, total, what)
        return
    bar = Bar(what, total)
    with SCREEN.showing(bar):
        for k, item in enumerate(items, start=1):
            bar.reach(k)
            yield item


def _told(items: Iterable[T], total: int, what: str) -> Iterator[T]:
    for k, item in enumerate(items, start=1):
        if 10 * k // total > 10 * (k - 1) // total:
            print(f"{what}: {k} of {total}", file=sys.stderr)
        yield item
