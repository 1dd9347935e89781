"""Values that JSON can hold."""

from typing import Any

import numpy as np


def plain(value: Any) -> Any:
    """Convert arrays and NumPy scalars to plain values; nan and infinity become None."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value
