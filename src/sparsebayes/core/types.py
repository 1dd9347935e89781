"""Array types used in signatures."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
BoolArray = NDArray[np.bool_]
AnyArray = NDArray[Any]
Scalar = float | np.float64
"""A number; `FloatArray | Scalar` marks what may be shared by all rows or all columns."""
