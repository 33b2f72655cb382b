"""One row a node, shaded by how busy it is: a schedule of any size in one picture."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from optsched.plot.canvas import FLOOR
from optsched.plot.rows import LABEL_HEIGHT, spread
from optsched.plot.timeline import Timeline, bin_means
from optsched.problem.arrays import Floats

BINS = 1200  # about one a pixel
MOST_IMAGE_ROWS = 512  # beyond, neighbouring nodes share a row
PARTED_ROWS = 100  # up to here a white line parts the rows
BUSY = LinearSegmentedColormap.from_list("optsched-busy", [FLOOR, "#8ccbf0", "#0072B2", "#004a75"])


def image_height(timeline: Timeline) -> float:
    """Inches for the image of this many nodes."""
    return 1.1 + float(np.clip(0.12 * timeline.node_gpus.size, 1.2, 6.5))


def busy_share(timeline: Timeline, start: float, end: float, bins: int = BINS) -> tuple[Floats, int]:
    """(mean share of busy GPUs, f64[rows, bins]; nodes in a row). O(S + rows * bins)."""
    nodes = timeline.node_gpus.size
    together = -(-nodes // MOST_IMAGE_ROWS)
    rows = -(-nodes // together)
    size = np.bincount(np.arange(nodes) // together, weights=timeline.node_gpus, minlength=rows)
    begin, finish, node, count = timeline.held
    row = np.concatenate([node, node]) // together
    when = np.concatenate([begin, finish])
    change = np.concatenate([count, -count]).astype(np.float64)
    return bin_means(row, when, change, rows, start, end, bins) / size[:, None], together


def draw_node_image(ax: Axes, timeline: Timeline, start: float, end: float) -> None:
    """The image, its rows named, and a bar that says what the shades mean."""
    share, together = busy_share(timeline, start, end)
    rows = share.shape[0]
    ax.set_ylim(rows, 0)
    smooth = "nearest" if rows <= 200 else "antialiased"
    extent = (start, end, rows, 0)
    image = ax.imshow(share, aspect="auto", extent=extent, cmap=BUSY, vmin=0.0, vmax=1.0, interpolation=smooth)
    if rows <= PARTED_ROWS:
        ax.hlines(np.arange(1, rows), start, end, colors="white", linewidths=0.5)
    names = [name + " ff." * (together > 1) for name in timeline.node_names[::together]]
    figure = ax.get_figure(root=True)
    points = ax.get_window_extent().height * 72 / (figure.dpi if figure is not None else 72) / rows
    chosen = spread((np.arange(rows) + 0.5) * points, LABEL_HEIGHT)
    ax.set_yticks([k + 0.5 for k in chosen], [names[k] for k in chosen], fontsize=8, parse_math=False)
    ax.tick_params(axis="y", length=0)
    if figure is not None:
        bar = figure.colorbar(image, ax=ax, pad=0.01, fraction=0.025, aspect=30, format=lambda x, _: f"{x:.0%}")
        bar.set_label("busy GPUs of a node", fontsize=8)
        bar.ax.tick_params(labelsize=7)
        bar.outline.set_visible(False)
