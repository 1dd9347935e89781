"""The compiled module, where there is one: everything in it has a readable NumPy form beside it."""

import os

try:
    from sparsebayes.engine import _native as native
except ImportError:  # no compiler when the package was installed
    native = None  # type: ignore[assignment]

COMPILED = native is not None and os.environ.get("SPARSEBAYES_COMPILED") != "0"
"""Whether the compiled forms are used. SPARSEBAYES_COMPILED=0 in the environment asks for the NumPy forms."""

__all__ = ["COMPILED", "native"]
