"""Run the `sparsebayes` command in tests."""

import os
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

import sparsebayes
from sparsebayes.app.cli import app

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(sparsebayes.__file__).parents[1])}
"""The package that is tested, also from another folder."""


def command(*arguments, **options):
    """Run the command in a process of its own; a result has `returncode`, `stdout` and `stderr`."""
    options = {"capture_output": True, "text": True, "encoding": "utf-8", "timeout": 300, "env": ENVIRONMENT} | options
    return subprocess.run([sys.executable, "-m", "sparsebayes", *map(str, arguments)], **options)


def here(*arguments, **options):
    """Run it in this process, which is quicker, where only the exit code and the message matter."""
    return CliRunner().invoke(app, list(map(str, arguments)), **options)
