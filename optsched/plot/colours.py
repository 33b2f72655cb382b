"""Colours of jobs: the same in every picture of an instance, and safe for colour-blind readers."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from matplotlib.colors import to_rgb

from optsched.problem.arrays import Floats

# Okabe and Ito, "Color Universal Design" (2008), without black; each also mixed with white, and with black.
HUES = {
    "sky": "#56B4E9",
    "yellow": "#F0E442",
    "orange": "#E69F00",
    "blue": "#0072B2",
    "red": "#D55E00",
    "pink": "#CC79A7",
    "green": "#009E73",
}
CURVES = [HUES[name] for name in ("blue", "red", "green", "orange", "pink", "sky", "yellow")]  # lines that are no jobs
MARKS = "os^Dv*P"
WHITE, BLACK = 0.55, 0.4  # shares that are mixed into a light and a dark shade

# In an order, found by annealing, in which a job's colour is far from those of the next jobs, as seen on a chart: any two of
# eight jobs in a row are at least 23 apart in CIELAB (2 to 3 is just noticeable), the next two 41, and 18 for protanopic
# and deuteranopic eyes; tests measure it.
ORDER = (
    *("blue", "light orange", "pink", "dark red", "light blue", "dark yellow", "green", "light pink", "dark sky"),
    *("orange", "light yellow", "dark pink", "sky", "dark orange", "light red", "dark green", "light sky", "dark blue"),
    *("red", "yellow", "light green"),
)


def _shade(name: str) -> list[float]:
    kind, _, hue = name.rpartition(" ")
    colour = to_rgb(HUES[hue])
    if kind == "dark":
        return [part * (1 - BLACK) for part in colour]
    return [part + (1 - part) * WHITE for part in colour] if kind == "light" else list(colour)


PALETTE: Floats = np.array([_shade(name) for name in ORDER])


def job_colours(ids: Sequence[str]) -> Floats:
    """Return the RGB colour of every job, f64[n, 3].

    The colour follows the rank of the id among all ids ("j2" before "j10"), so it depends neither on the policy nor on
    whether the instance is available. Any `len(PALETTE)` consecutive jobs differ.

    Parameters
    ----------
    ids
        Ids of the n jobs.
    """
    rank = np.empty(len(ids), dtype=np.int64)
    rank[sorted(range(len(ids)), key=lambda j: natural(ids[j]))] = np.arange(len(ids))
    return PALETTE[rank % len(PALETTE)]


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key that places "j2" before "j10".

    Parameters
    ----------
    name
        Text to sort.
    """
    parts = re.split(r"([0-9]+)", name)
    return tuple((1, int(part), "") if k % 2 else (0, 0, part) for k, part in enumerate(parts))


def paler(colour: Floats, white: float) -> Floats:
    """Mix colours with white.

    Parameters
    ----------
    colour
        RGB, f64[..., 3].
    white
        Share of white, from 0 to 1.
    """
    return colour + (1 - colour) * white


def ink_on(colour: Floats) -> str:
    """Return black or white, whichever has more contrast on a colour (relative luminance, WCAG 2).

    Parameters
    ----------
    colour
        RGB of the background, f64[3].
    """
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    luminance = float(linear @ np.array([0.2126, 0.7152, 0.0722]))
    return "black" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "white"
