"""Where pictures are drawn: figures without pyplot, so that nothing stays behind and no display is needed."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from optsched.errors import InputError
from optsched.problem.arrays import Floats
from optsched.problem.files import atomic_path, write_atomic

SUFFIXES = (".png", ".svg", ".pdf", ".html")
DPI = 150
Mark = Line2D | Patch  # in a key
INK, QUIET, FLOOR = "#222222", "#666666", "#f0f0f0"  # text, secondary text, idle GPUs


def png_of(drawn: Axes | Figure, dpi: int = DPI) -> bytes:
    """The picture as PNG: of a figure, or of the whole figure of axes."""
    buffer = io.BytesIO()
    drawn.get_figure(root=True).savefig(buffer, format="png", dpi=dpi)  # type: ignore[union-attr]
    return buffer.getvalue()


class ShownAxes(Axes):
    """Axes that a notebook shows as their picture when a cell ends with them."""

    _repr_png_ = png_of


class ShownFigure(Figure):
    """A figure that a notebook shows as its picture, also where pyplot, which else says how, was never asked for one."""

    _repr_png_ = png_of


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches that pyplot knows nothing of, and a notebook shows."""
    return ShownFigure(figsize=(width, height), dpi=DPI, layout="constrained")


def new_axes(figure: Figure, *place: Any, **options: Any) -> Axes:
    """Axes on ``figure``; ``place`` as in `Figure.add_subplot`."""
    axes: Axes = figure.add_subplot(*place, axes_class=ShownAxes, **options)
    return axes


def plain(ax: Axes, *sides: str) -> None:
    """Leave only these sides of the frame standing."""
    for side, spine in ax.spines.items():
        spine.set_visible(side in sides)
        spine.set_color(QUIET)
    ax.tick_params(color=QUIET, labelcolor=INK, labelsize=8)


def set_title(ax: Axes, text: str, pad: float = 6.0) -> None:
    """A title at the left, ``pad`` points above the axes. Names are not mathematics: a ``$`` in one stays a ``$``."""
    ax.set_title(text, loc="left", fontsize=10, color=INK, pad=pad, wrap=True, parse_math=False)


def draw_rectangles(ax: Axes, left: Floats, right: Floats, top: Floats, bottom: Floats, **style: Any) -> None:
    """Add rectangles in data coordinates, each f64[m], as one collection; ``style`` as for `PolyCollection`. O(m)."""
    x = np.stack([left, left, right, right], axis=1)
    y = np.stack([top, bottom, bottom, top], axis=1)
    corners = cast("Sequence[Any]", np.stack([x, y], axis=2))  # an array is drawn faster than a list of arrays
    ax.add_collection(PolyCollection(corners, **style), autolim=False)


def note(ax: Axes, text: str, at: tuple[Any, Any], shift: tuple[float, float], x: str = "data", **style: Any) -> None:
    """A text ``shift`` points from ``at``, whose first number is of the data, or with ``x="axes fraction"`` of the axes."""
    style = {"fontsize": 8.5, "va": "center", "parse_math": False, "annotation_clip": False, **style}
    ax.annotate(text, at, shift, (x, "data"), "offset points", **style)


def label_left(ax: Axes, text: str, y: float, points: float, **style: Any) -> None:
    """A text so many points left of the axes, at ``y`` of the data."""
    note(ax, text, (0, y), (-points, 0), "axes fraction", ha="right", **style)


def key_above(ax: Axes, reverse: bool = False) -> None:
    """A key in one line between axes and title, whose ``pad`` must be 20 points; titles may be long."""
    _key(ax, "lower left", (0.0, 1.0), borderaxespad=0.1, borderpad=0.2, ncols=4, handletextpad=0.5, reverse=reverse)


def key_below(ax: Axes, handles: Sequence[Mark]) -> None:
    """A key under the tick labels, beside the name of the axis: titles can be long."""
    _key(ax, "upper right", (1.0, 0.0), borderaxespad=2.2, ncols=len(handles), handletextpad=0.4, handles=handles)


def _key(ax: Axes, corner: Literal["lower left", "upper right"], of_axes: tuple[float, float], **style: Any) -> None:
    ax.legend(loc=corner, bbox_to_anchor=of_axes, frameon=False, fontsize=8, labelcolor=QUIET, **style)


def legend(ax: Axes, place: Any = "best") -> None:
    """A key inside the axes. Names are not mathematics."""
    for text in ax.legend(fontsize=8.5, frameon=False, loc=place).get_texts():
        text.set_parse_math(False)


def name_lines(ax: Axes, points: float = 11.0) -> None:
    """Name every labelled line at its end, right of the axes, ``points`` apart; in a legend where no layout makes way."""
    figure = ax.get_figure(root=True)
    named = [line for line in ax.lines if not str(line.get_label()).startswith("_")]
    if figure is None or figure.get_layout_engine() is None:
        legend(ax)
        return
    ax.get_ylim()  # limits that follow from the data are not there before somebody asks for them
    high = ax.get_window_extent().height * 72 / figure.dpi
    to_axes = (ax.transData - ax.transAxes).transform
    wanted = [float(to_axes((1, float(np.asarray(line.get_ydata())[-1])))[1]) * high for line in named]
    order, last = np.argsort(wanted, kind="stable")[::-1].tolist(), high + points
    for place, k in enumerate(order):  # downwards, and no lower than leaves the others their place
        last = min(last - points, max(wanted[k], points * (len(order) - 1 - place)))
        y = float(ax.transData.inverted().transform(ax.transAxes.transform((1, last / high)))[1])
        note(ax, str(named[k].get_label()), (1, y), (6, 0), "axes fraction", color=named[k].get_color())


def legal_suffix(path: str | os.PathLike[str]) -> str:
    """The suffix of a picture's name in lower case; `InputError` when it is not that of a picture."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError("cannot tell the format of a picture from its name", file=path, legal=", ".join(SUFFIXES))
    return suffix


def save(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a figure to ``.png``, ``.svg`` or ``.pdf``, whole or not at all; the same figure gives the same bytes.

    An interactive picture (`optsched.plot.interactive`) becomes a page ``.html`` that needs nothing else, and no network.

    >>> import optsched as osd
    >>> osd.plot.save(osd.plot.gantt(osd.solve("rigid-06-1")).figure, "best.svg")
    """
    suffix, still = legal_suffix(path), isinstance(figure, Figure)
    if still == (suffix == ".html"):
        raise InputError("not for this picture", file=path, legal=", ".join(SUFFIXES[:3]) if still else ".html")
    if not still:
        from bokeh.embed import file_html
        from bokeh.resources import INLINE

        write_atomic(path, str(file_html(figure, INLINE, title=Path(path).stem)))
        return
    dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with atomic_path(path) as temporary, matplotlib.rc_context({"svg.hashsalt": "optsched"}):
        figure.savefig(temporary, format=suffix[1:], dpi=DPI, metadata=dated.get(suffix))
