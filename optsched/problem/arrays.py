"""Types of arrays, as annotations (their shapes are said where they are used, f64[n] and i64[n] for short); `frozen`."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["Bools", "Floats", "Ints", "frozen"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
A = TypeVar("A", bound=npt.NDArray[Any])


def frozen(array: A) -> A:
    """The same array, which nobody can write into any more."""
    array.flags.writeable = False
    return array
