"""One colour a job: the same in every picture of an instance, and safe for the colour-blind."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.colors import to_rgb

Floats = npt.NDArray[np.float64]

# Okabe and Ito, "Color Universal Design" (2008), without black, in the order that keeps each colour as far as can be from
# the next two for normal, protanopic and deuteranopic eyes (CIELAB distance at least 16).
HUES = ("#56B4E9", "#F0E442", "#E69F00", "#0072B2", "#D55E00", "#CC79A7", "#009E73")
TINTS = (0.6, 0.3, 0.0)  # share of white that is mixed in


def _mixed(hue: str, white: float) -> list[float]:
    return [part + (1 - part) * white for part in to_rgb(hue)]


# 7 and 3 are coprime: both turn at every step, and 21 steps meet every pair once.
PALETTE: Floats = np.array([_mixed(HUES[k % 7], TINTS[k % 3]) for k in range(21)])


def job_colours(ids: Sequence[str]) -> Floats:
    """RGB of every job, f64[n, 3].

    The colour follows the rank of the id among all ids ("j2" before "j10"), hence not the policy, and not whether the
    instance is at hand. Any `len(PALETTE)` consecutive jobs differ.
    """
    rank = np.empty(len(ids), dtype=np.int64)
    rank[sorted(range(len(ids)), key=lambda j: natural(ids[j]))] = np.arange(len(ids))
    return PALETTE[rank % len(PALETTE)]


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """A key that sorts "j2" before "j10"."""
    parts = re.split(r"([0-9]+)", name)
    return tuple((1, int(part), "") if k % 2 else (0, 0, part) for k, part in enumerate(parts))


def paler(colour: Floats, white: float) -> Floats:
    """Colours mixed with this share of white."""
    return colour + (1 - colour) * white


def ink_on(colour: Floats) -> str:
    """Black or white, whichever reads better on ``colour`` (relative luminance, WCAG 2)."""
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    luminance = float(linear @ np.array([0.2126, 0.7152, 0.0722]))
    return "black" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "white"
