"""The compiled twins of the searches: there when a compiler was, and unless SPARSEBAYES_COMPILED is 0."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparsebayes.engine import _bernoulli, _sequential


def _load(module: str, name: str) -> Any:
    if os.environ.get("SPARSEBAYES_COMPILED") == "0":
        return None
    try:
        return getattr(import_module(f"sparsebayes.engine.{module}"), name)
    except ImportError:
        return None


Search: "type[_sequential.Search] | None" = _load("_sequential", "Search")
"""One step of the sequential search a call; None where the NumPy form has to serve."""
Settler: "type[_bernoulli.Settler] | None" = _load("_bernoulli", "Settler")
"""Settles two-class models and looks at candidates; None where the NumPy form has to serve."""
