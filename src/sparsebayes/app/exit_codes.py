"""How the command ends: what goes wrong becomes one line on standard error and an exit code."""

import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from tempfile import TemporaryFile
from threading import Event
from types import FrameType
from typing import Any

import typer

from sparsebayes.app.errors import DataError, UsageError

CTRL_C = Event()
"""Set once Ctrl-C was pressed: an import that it breaks off may raise anything."""


def with_exit_codes(command: Callable[..., None]) -> Callable[..., None]:
    """Turn what goes wrong into one line on standard error and an exit code."""

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
    """The exit code of what a user can mend; None for what is our own fault."""
    if isinstance(error, UsageError):
        return 2
    if isinstance(error, DataError):
        return 3
    if isinstance(error, ModuleNotFoundError):
        return None if (error.name or "").startswith("sparsebayes") else 2
    return 1 if isinstance(error, OSError | MemoryError) else None


def _drop_output() -> None:
    """What is still waiting to be written to standard output would fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(error: Exception, code: int) -> None:
    told = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.filename else str(error)
    if isinstance(error, ModuleNotFoundError):
        told += "; pip install 'sparsebayes[app]' brings what the command line needs"
    if isinstance(error, OSError | MemoryError):
        _drop_output()
    if not isinstance(error, BrokenPipeError):  # `| head` has seen enough
        print(f"sparsebayes: {told or type(error).__name__}", file=sys.stderr)
    raise typer.Exit(code) from None


def check_writable(path: str | None, option: str, suffixes: tuple[str, ...] = ()) -> None:
    """Find out before the work whether its result can be written."""
    if path is None:
        return
    place = Path(path)
    folder = place.parent
    if suffixes and place.suffix.lower() not in suffixes:
        raise UsageError(f"{option} {path}: the name must end in {', '.join(suffixes)}")
    if not folder.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {folder}")
    if place.exists() and not place.is_file():
        raise UsageError(f"{option} {path} is no plain file")
    try:
        with TemporaryFile(dir=folder):  # what the system says of permissions is not all there is to it
            pass
    except OSError as error:
        raise UsageError(f"{option} {path}: nothing can be written there ({error.strerror})") from error


def reserve_stdout() -> None:
    """Keep standard output for results: what libraries print there by themselves goes to standard error."""
    sys.stdout.flush()
    results = os.dup(1)
    os.dup2(2, 1)
    # A terminal without ± shall not end a fit.
    sys.stdout = open(results, "w", encoding=sys.stdout.encoding, errors="replace", closefd=True)  # noqa: SIM115
    sys.stderr.reconfigure(errors="replace")  # type: ignore[union-attr]


def watch_ctrl_c() -> None:
    """Remember that Ctrl-C was pressed, where it is not switched off."""

    def heed(number: int, frame: FrameType | None) -> None:
        CTRL_C.set()
        signal.default_int_handler(number, frame)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, heed)


def report_interrupt() -> int:
    """Tell of Ctrl-C; the exit code that shells expect."""
    print("sparsebayes: interrupted; no file is half-written", file=sys.stderr)
    return 130
