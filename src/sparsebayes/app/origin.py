"""Where a result comes from: what was typed, when, on which data, with which versions."""

import os
import platform
import shlex
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata

PACKAGES = ("sparsebayes", "numpy", "scipy", "scikit-learn", "polars")


@dataclass(frozen=True)
class Origin:
    """Enough to repeat a study."""

    command: str
    """What was typed."""
    date: str
    """When, in UTC."""
    digest: str
    """SHA-256 of the data file; empty for a built-in data set."""
    versions: dict[str, str]


def origin(digest: str) -> Origin:
    """The origin of what this process makes."""
    versions = {"Python": platform.python_version()} | {each: _version(each) for each in PACKAGES}
    return Origin(typed(sys.argv), _now(), digest, versions)


def typed(arguments: list[str]) -> str:
    """The command line, quoted for a shell; without the path of the program."""
    return " ".join(["sparsebayes", *map(shlex.quote, arguments[1:])])


def _now() -> str:
    """The time; that of SOURCE_DATE_EPOCH if it is set, so that builds can be repeated."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(given), UTC) if given.isdigit() else datetime.now(UTC)
    return f"{now:%Y-%m-%d %H:%M} UTC"


def _version(package: str) -> str:
    if package == "sparsebayes":
        from sparsebayes import __version__

        return __version__
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "?"
