"""Arrays of other libraries: torch tensors and CuPy arrays, which may be on a graphics card.

The batch passes need a handful of functions that NumPy, torch and CuPy call by the same name.
"""

import sys
from typing import Any

import numpy as np

from sparsebayes.core.types import FloatArray

LIBRARIES = ("torch", "cupy")
"""Libraries whose arrays are not copied to NumPy: the computation runs on their device."""


def library_of(X: Any) -> str:
    """The name of the library that an array belongs to."""
    return type(X).__module__.partition(".")[0]


def on_device(X: Any) -> bool:
    """Whether it is an array of another library."""
    return library_of(X) in LIBRARIES


def namespace_of(X: Any) -> Any:
    """The module with the functions for an array: numpy, torch or cupy."""
    return sys.modules[library_of(X)] if on_device(X) else np


def to_numpy(X: Any) -> Any:
    """The array in the computer's own memory."""
    if library_of(X) == "torch":
        return X.detach().cpu().numpy()
    return X.get() if library_of(X) == "cupy" else np.asarray(X)


def like(values: FloatArray, X: Any) -> Any:
    """NumPy values as an array of X's library, on its device and of its precision."""
    if library_of(X) == "torch":
        return sys.modules["torch"].asarray(values, dtype=X.dtype, device=X.device)
    return namespace_of(X).asarray(values, dtype=X.dtype)
