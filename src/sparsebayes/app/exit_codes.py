"""Exit codes: errors become one line on standard error and an exit code."""

import io
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event
from types import FrameType
from typing import Any

import typer

from sparsebayes.app.errors import DataError, UsageError
from sparsebayes.io.atomic_file import leads_to_itself
from sparsebayes.io.printable import printable

CTRL_C = Event()
"""Set when Ctrl-C was pressed. An import that it interrupts may raise any exception."""


def with_exit_codes(command: Callable[..., None]) -> Callable[..., None]:
    """Turn the errors of a command into one line on standard error and an exit code."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except KeyboardInterrupt:
            raise typer.Exit(report_interrupt()) from None
        except Exception as error:
            if CTRL_C.is_set():
                raise typer.Exit(report_interrupt()) from None
            code = _code(error)
            if code is None:
                raise
            _fail(error, code)

    return run


def _code(error: Exception) -> int | None:
    """The exit code of an error that the user can fix; None for a bug of ours."""
    if isinstance(error, UsageError):
        return 2
    if isinstance(error, DataError):
        return 3
    if isinstance(error, ModuleNotFoundError):
        return None if (error.name or "").startswith("sparsebayes") else 2
    return 1 if isinstance(error, OSError | MemoryError) else None


def _drop_output() -> None:
    """Discard buffered output: flushing it when Python exits would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(error: Exception, code: int) -> None:
    told = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.filename else str(error)
    if isinstance(error, ModuleNotFoundError):
        told += "; pip install 'sparsebayes[app]' installs what the command line needs"
    if isinstance(error, OSError | MemoryError):
        _drop_output()
    if not isinstance(error, BrokenPipeError):  # the reader, such as `head`, has closed the pipe
        print(f"sparsebayes: {printable(told) or type(error).__name__}", file=sys.stderr)
    raise typer.Exit(code) from None


def report_misuse(error: Any) -> int:
    """Print what typer has found wrong with the arguments, without control characters; return the exit code."""
    told = io.StringIO()
    error.show(told)
    print(printable(told.getvalue(), keep="\n"), end="", file=sys.stderr)
    return int(error.exit_code)


def check_writable(path: str | None, option: str, suffixes: tuple[str, ...] = ()) -> None:
    """Check before the work whether its result can be written."""
    if path is None:
        return
    place = Path(path)
    folder = place.parent
    if leads_to_itself(place):
        raise UsageError(f"{option} {path} is a link that leads to itself: remove it")
    if suffixes and place.suffix.lower() not in suffixes:
        raise UsageError(f"{option} {path}: the name must end in {', '.join(suffixes)}")
    if not folder.is_dir():
        raise UsageError(f"{option} {path}: folder {folder} does not exist")
    if place.exists() and not place.is_file():
        raise UsageError(f"{option} {path} is not a regular file")
    try:
        with TemporaryFile(dir=folder):  # permissions alone do not tell: try it
            pass
    except OSError as error:
        raise UsageError(f"{option} {path}: cannot write there ({error.strerror})") from error


def reserve_stdout() -> None:
    """Reserve standard output for results: what libraries print there goes to standard error."""
    sys.stdout.flush()
    results = os.dup(1)
    os.dup2(2, 1)
    # A terminal that cannot show ± must not stop a fit.
    sys.stdout = open(results, "w", encoding=sys.stdout.encoding, errors="replace", closefd=True)  # noqa: SIM115
    sys.stderr.reconfigure(errors="replace")  # type: ignore[union-attr]


def release_stdout() -> None:
    """Close what `reserve_stdout` has opened: left to Python's end, that would be a warning among the results."""
    with suppress(OSError, ValueError):
        sys.stdout.close()


def watch_ctrl_c() -> None:
    """Record that Ctrl-C was pressed, unless it is ignored."""

    def heed(number: int, frame: FrameType | None) -> None:
        CTRL_C.set()
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, heed)


def report_interrupt() -> int:
    """Report Ctrl-C, and return the exit code that shells expect."""
    print("sparsebayes: interrupted; no incomplete file was left behind", file=sys.stderr)
    return 130
