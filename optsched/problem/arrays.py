"""Types of arrays, as annotations (their shapes are said where they are used, f64[n] and i64[n] for short), and numbers."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
A = TypeVar("A", bound=npt.NDArray[Any])


def frozen(array: A) -> A:
    """Return the same array, read-only from now on.

    Parameters
    ----------
    array
        Array to protect.
    """
    array.flags.writeable = False
    return array


def is_number(value: object) -> bool:
    """Return True for a number of Python or numpy that is no truth value.

    Parameters
    ----------
    value
        Any object.
    """
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def is_whole(value: object) -> bool:
    """Return True for an integer of Python or numpy that is no truth value.

    Parameters
    ----------
    value
        Any object.
    """
    return type(value) is int or (isinstance(value, int | np.integer) and not isinstance(value, bool))
