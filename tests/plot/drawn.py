"""What a picture shows, read from its artists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes


def words(texts: Iterable[Any]) -> list[str]:
    """The words of its texts, or of the labels at its ticks."""
    return [text.get_text() for text in texts]


def legend(ax: Axes) -> list[str]:
    """What its key says; [] where there is none."""
    found = ax.get_legend()
    return words(found.get_texts()) if found else []


def labelled(ax: Axes, label: str) -> Any:
    """The one collection under this label; None where there is none."""
    found = [each for each in ax.collections if each.get_label() == label]
    assert len(found) <= 1
    return found[0] if found else None


def rectangles(ax: Axes, label: str) -> list[tuple[float, float, float, float]]:
    """(left, right, top, bottom) of the shapes that are drawn under this label, in order."""
    corners = [np.asarray(path.vertices) for c in ax.collections if c.get_label() == label for path in c.get_paths()]
    return [(v[:, 0].min(), v[:, 0].max(), v[:, 1].min(), v[:, 1].max()) for v in corners]
