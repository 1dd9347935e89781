"""The compiled twin of the sequential search: there when a compiler was, and unless SPARSEBAYES_COMPILED is 0."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sparsebayes.solvers import _sequential


def _load() -> "type[_sequential.Search] | None":
    if os.environ.get("SPARSEBAYES_COMPILED") == "0":
        return None
    try:
        from sparsebayes.solvers import _sequential
    except ImportError:
        return None
    return _sequential.Search


Search = _load()
"""One step of the search a call; None where the NumPy form has to serve."""
