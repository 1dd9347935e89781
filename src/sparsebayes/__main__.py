"""`python -m sparsebayes`: the command line."""

import sys


def main() -> None:
    """Run the command line, or say what to install for it."""
    try:
        from sparsebayes.app.cli import run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(f"sparsebayes: the command line needs {error.name}: pip install 'sparsebayes[app]'")
    run()


if __name__ == "__main__":
    main()
