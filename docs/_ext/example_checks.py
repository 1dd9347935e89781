"""Checks of each example while the gallery runs it: its processor time, its warnings, its figures and its files."""

import time
import warnings
from pathlib import Path
from typing import Any

from sklearn.exceptions import ConvergenceWarning
from sphinx.errors import ExtensionError

EXAMPLES = Path(__file__).parents[2] / "examples"
IMAGES = Path(__file__).parents[1] / "auto_examples" / "images"
SECONDS = 10
"""Processor time that an example may take, on a slow core; imports do not count after the first example."""

_before: dict[str, Any] = {}


def checked(gallery_conf: dict[str, Any], fname: str | None, when: str) -> None:
    """Called by sphinx-gallery before and after each example, and with None when it enters the folder."""
    if fname is None:
        return
    if when == "before":
        warnings.simplefilter("error", ConvergenceWarning)
        _before.update(seconds=time.process_time(), files=set(EXAMPLES.iterdir()))
        return
    seconds = time.process_time() - _before["seconds"]
    if seconds > SECONDS:
        raise ExtensionError(f"{fname} took {seconds:.1f} s of processor time; an example may take {SECONDS} s")
    if not list(IMAGES.glob(f"sphx_glr_{Path(fname).stem}_*.png")):
        raise ExtensionError(f"{fname} drew no figure")
    left = {each for each in EXAMPLES.iterdir() if each.name != "__pycache__"} - _before["files"]
    if left:
        raise ExtensionError(f"{fname} left files behind: {', '.join(sorted(each.name for each in left))}")
