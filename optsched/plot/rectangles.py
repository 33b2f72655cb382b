"""Many rectangles at once: one collection, however many."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from optsched.problem.arrays import Floats


def draw_rectangles(ax: Axes, left: Floats, right: Floats, top: Floats, bottom: Floats, **style: Any) -> PolyCollection:
    """Add rectangles in data coordinates, each f64[m]; ``style`` as for `PolyCollection`. O(m)."""
    x = np.stack([left, left, right, right], axis=1)
    y = np.stack([top, bottom, bottom, top], axis=1)
    corners = cast("Sequence[Any]", np.stack([x, y], axis=2))  # an array is drawn faster than a list of arrays
    collection = PolyCollection(corners, **style)
    ax.add_collection(collection, autolim=False)
    return collection
