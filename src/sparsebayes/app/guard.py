"""How the command ends: what goes wrong becomes one line on standard error and an exit code."""

import os
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import typer

from sparsebayes.app.errors import DataError, UsageError


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn what goes wrong into one line on standard error and an exit code."""

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
            sys.stdout.flush()
        except KeyboardInterrupt:
            raise typer.Exit(interrupted()) from None
        except UsageError as error:
            _fail(error, 2)
        except DataError as error:
            _fail(error, 3)
        except ModuleNotFoundError as error:
            if (error.name or "").startswith("sparsebayes"):
                raise
            _fail(UsageError(f"{error}; pip install 'sparsebayes[app]' brings what the command line needs"), 2)
        except BrokenPipeError:  # `| head` has seen enough
            _drop_output()
            raise typer.Exit(1) from None
        except (OSError, MemoryError) as error:
            _drop_output()
            _fail(error, 1)

    return run


def _drop_output() -> None:
    """What is still waiting to be written to standard output would fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(error: Exception, code: int) -> None:
    told = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.filename else str(error)
    print(f"sparsebayes: {told or type(error).__name__}", file=sys.stderr)
    raise typer.Exit(code)


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


def results_apart() -> None:
    """Keep standard output for results: what libraries print there by themselves goes to standard error."""
    sys.stdout.flush()
    results = os.dup(1)
    os.dup2(2, 1)
    # A terminal without ± shall not end a fit.
    sys.stdout = open(results, "w", encoding=sys.stdout.encoding, errors="replace", closefd=True)  # noqa: SIM115
    sys.stderr.reconfigure(errors="replace")  # type: ignore[union-attr]


def interrupted() -> int:
    """Tell of Ctrl-C; the exit code that shells expect."""
    print("sparsebayes: interrupted; no file is half-written", file=sys.stderr)
    return 130
