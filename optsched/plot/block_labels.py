"""Job ids on blocks, where they fit."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from optsched.plot.colours import ink_on
from optsched.problem.arrays import Floats

MOST_LABELS = 800  # texts are slow to draw; the largest blocks come first
CHARACTER = 0.62  # width of a character by its height, on the safe side for digits and lower case
LEAST_FONT, LARGEST_FONT = 4.5, 9.0  # points


def short_ids(ids: Sequence[str]) -> list[str]:
    """Ids without what all of them begin with, up to a separator: "application_1506_0042" -> "0042"."""
    if len(ids) < 2:
        return list(ids)
    first, last = min(ids), max(ids)  # what these two share, all ids share
    same = [a == b for a, b in zip(first, last, strict=False)]
    shared = first[: same.index(False) if False in same else len(same)]
    cut = max(shared.rfind(mark) for mark in "_-/:.# ") + 1
    return [name[cut:] or name for name in ids]


def block_label(name: str, xi: float, wide: float, font: float) -> str:
    """``name``, with the slow-down ``xi`` (nan: none) where ``wide`` points have room for it across."""
    label = f"{name} x{xi:.3g}"
    return label if math.isfinite(xi) and len(label) * font * CHARACTER + 2 <= wide else name


def points_per_unit(ax: Axes) -> tuple[float, float]:
    """Size of one unit of x and of y on paper, in points."""
    figure = ax.get_figure(root=True)
    box = ax.get_window_extent()
    scale = 72.0 / (figure.dpi if figure is not None else 72.0)
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    return box.width * scale / abs(right - left), box.height * scale / abs(top - bottom)


def label_blocks(
    ax: Axes,
    names: Sequence[str],
    left: Floats,
    right: Floats,
    top: Floats,
    bottom: Floats,
    colour: Floats,
    font: float,
) -> int:
    """Write ``names[k]`` on block k where it fits, upright if need be; returns how many were written."""
    x_points, y_points = points_per_unit(ax)
    low, high = sorted(ax.get_xlim())
    left, right = np.clip(left, low, high), np.clip(right, low, high)
    wide, tall = (right - left) * x_points, (bottom - top) * y_points
    if font < LEAST_FONT:
        return 0
    long = np.array([len(name) for name in names]) * font * CHARACTER + 2
    across = (wide >= long) & (tall >= font)
    upright = ~across & (tall >= long) & (wide >= font * 1.1)
    fits = np.flatnonzero(across | upright)
    for k in fits[np.argsort(-(wide * tall)[fits], kind="stable")][:MOST_LABELS]:
        ax.text(
            *((left[k] + right[k]) / 2, (top[k] + bottom[k]) / 2, names[k]),
            rotation=90 if upright[k] else 0,
            ha="center",
            va="center_baseline" if across[k] else "center",
            fontsize=font,
            color=ink_on(colour[k]),
            clip_on=True,
            parse_math=False,
            zorder=4,
        )
    return min(fits.size, MOST_LABELS)
