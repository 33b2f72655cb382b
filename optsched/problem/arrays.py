"""Types of arrays, as annotations: their shapes are said where they are used, f64[n] and i64[n] for short."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["Bools", "Floats", "Ints"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
