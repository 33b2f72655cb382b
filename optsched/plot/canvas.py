"""Figures without pyplot: none stays in memory, and no display is needed."""

from __future__ import annotations

import io
import math
import os
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.textpath import text_to_path

from optsched.errors import InputError, check_legal
from optsched.problem.arrays import Floats
from optsched.problem.atomic_files import atomic_path, write_atomic
from optsched.problem.schedule_file import TRACE, is_trace

SUFFIXES = (".png", ".svg", ".pdf", ".html", TRACE)
DPI = 150
Mark = Line2D | Patch  # in a key
MARGIN = 0.8  # inches that ticks and labels left of axes take, about
NARROW = 5.0  # inches: in a figure that is narrower names stand above what they name, not beside it
MOST_NAME = 0.3  # of the width of a figure: longer names do not stand beside lines
Width = Literal["column", "page"] | float  # of a picture on paper: a name, or inches
WIDTHS = {"column": 3.33, "page": 7.0}  # inches: one and two columns of a conference paper (ACM, IEEE, USENIX)
NARROWEST, WIDEST = 2.5, 40.0
PAPER_FONT, SCREEN_FONT = 7.0, 4.5  # points of the smallest text
# Text stays text: in a PDF as TrueType (Type 3 is refused by many publishers), in an SVG as <text>. One file, one content.
TEXT: dict[Any, Any] = {"pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "optsched"}
INK, QUIET, FLOOR = "#222222", "#666666", "#f0f0f0"  # text, secondary text, idle GPUs


def png_of(drawn: Axes | Figure, dpi: int = DPI) -> bytes:
    """Return the whole figure as PNG.

    Parameters
    ----------
    drawn
        A figure, or axes on it.
    dpi
        Pixels per inch.
    """
    buffer = io.BytesIO()
    drawn.get_figure(root=True).savefig(buffer, format="png", dpi=dpi)  # type: ignore[union-attr]
    return buffer.getvalue()


class ShownAxes(Axes):
    """Axes that a notebook shows as a picture if a cell ends with them."""

    _repr_png_ = png_of


class ShownFigure(Figure):
    """A figure that a notebook shows as a picture, even if pyplot was never imported."""

    _repr_png_ = png_of
    on_paper = False  # then no text has less than `PAPER_FONT` points

    def savefig(self, *arguments: Any, **options: Any) -> None:
        """Save the figure with text as text, without a change to the user's matplotlib settings.

        Parameters
        ----------
        *arguments, **options
            Arguments of `Figure.savefig`.
        """
        with matplotlib.rc_context(TEXT):
            super().savefig(*arguments, **options)


def new_figure(width: float, height: float, paper: Width | None = None, shape: float | None = None) -> Figure:
    """Return an empty figure that pyplot does not know and a notebook shows.

    Texts keep their size. On paper no text is smaller than `PAPER_FONT` points.

    Parameters
    ----------
    width, height
        Size in inches for a screen.
    paper
        Width on paper instead: a name or inches.
    shape
        Largest height on paper, as a multiple of the width. None keeps ``height``, for pictures with rows.
    """
    if paper is not None:
        width = inches(paper)
        height = height if shape is None else min(height, shape * width)
    figure = ShownFigure(figsize=(width, height), dpi=DPI, layout="constrained")
    figure.on_paper = paper is not None
    return figure


def inches(width: Width | str) -> float:
    """Return a width in inches.

    Parameters
    ----------
    width
        ``"column"``, ``"page"``, a number of inches, or such a number as text.

    Raises
    ------
    InputError
        If the width is none of these.
    """
    if isinstance(width, str) and width in WIDTHS:
        return WIDTHS[width]
    try:
        wide = math.nan if isinstance(width, bool) else float(width)
    except (TypeError, ValueError):
        wide = math.nan
    legal = f"column ({WIDTHS['column']} in), page ({WIDTHS['page']:g} in), or {NARROWEST:g} to {WIDEST:g} inches"
    check_legal(NARROWEST <= wide <= WIDEST, "width", width, legal)
    return wide


def wide_on_paper(ax: Axes) -> float:
    """Return the width of axes in inches, according to the present layout of their figure.

    Parameters
    ----------
    ax
        Axes of a figure.
    """
    return float(ax.get_window_extent().width) / root_of(ax).dpi


def least_font(ax: Axes) -> float:
    """Return the size of the smallest text allowed on axes, in points.

    Parameters
    ----------
    ax
        Axes of a figure.
    """
    return PAPER_FONT if getattr(root_of(ax), "on_paper", False) else SCREEN_FONT


def root_of(ax: Axes) -> Figure:
    """Return the whole figure that axes belong to.

    Parameters
    ----------
    ax
        Axes of a figure.
    """
    return cast("Figure", ax.get_figure(root=True))


def new_axes(figure: Figure, *place: Any, **options: Any) -> Axes:
    """Add axes to a figure.

    Parameters
    ----------
    figure
        Figure to add to.
    *place, **options
        Arguments of `Figure.add_subplot`.
    """
    axes: Axes = figure.add_subplot(*place, axes_class=ShownAxes, **options)
    return axes


def plain(ax: Axes, *sides: str) -> None:
    """Hide all sides of the frame except those given.

    Parameters
    ----------
    ax
        Axes to change.
    *sides
        Sides that remain: ``"left"``, ``"right"``, ``"top"``, ``"bottom"``.
    """
    for side, spine in ax.spines.items():
        spine.set_visible(side in sides)
        spine.set_color(QUIET)
    ax.tick_params(color=QUIET, labelcolor=INK, labelsize=8)


def set_title(ax: Axes, text: str, pad: float = 6.0) -> None:
    """Set a title at the left above the axes; a ``$`` in it is plain text.

    Parameters
    ----------
    ax
        Axes to change.
    text
        The title.
    pad
        Distance from the axes in points.
    """
    ax.set_title(text, loc="left", fontsize=10, color=INK, pad=pad, wrap=True, parse_math=False)


def set_labels(ax: Axes, x: str | None = None, y: str | None = None) -> None:
    """Label the axes, in several lines if the figure is small.

    Parameters
    ----------
    ax
        Axes to change.
    x, y
        Labels; None leaves a label unchanged.
    """
    figure = root_of(ax)
    if x is not None:
        ax.set_xlabel(_lines(x, figure.get_figwidth() - MARGIN), fontsize=9, parse_math=False)
    if y is not None:
        ax.set_ylabel(_lines(y, 1.2 * ax.get_window_extent().height / figure.dpi), fontsize=9, parse_math=False)


def _lines(text: str, room: float, points: float = 9.0) -> str:
    if text_width(text, points) <= room:
        return text
    return "\n".join(textwrap.wrap(text, max(8, int(len(text) * room / text_width(text, points)))))


def draw_rectangles(ax: Axes, left: Floats, right: Floats, top: Floats, bottom: Floats, **style: Any) -> None:
    """Add rectangles as one collection, in O(m).

    Parameters
    ----------
    ax
        Axes to draw on.
    left, right, top, bottom
        Edges in data coordinates, f64[m] each.
    **style
        Arguments of `PolyCollection`.
    """
    x = np.stack([left, left, right, right], axis=1)
    y = np.stack([top, bottom, bottom, top], axis=1)
    corners = cast("Sequence[Any]", np.stack([x, y], axis=2))  # an array is drawn faster than a list of arrays
    ax.add_collection(PolyCollection(corners, **style), autolim=False)


def note(ax: Axes, text: str, at: tuple[Any, Any], shift: tuple[float, float], x: str = "data", **style: Any) -> None:
    """Write a text next to a point.

    Parameters
    ----------
    ax
        Axes to draw on.
    text
        The text.
    at
        The point; y in data coordinates.
    shift
        Distance of the text from the point, in points.
    x
        Coordinates of the x value: ``"data"`` or ``"axes fraction"``.
    **style
        Arguments of `Axes.annotate`.
    """
    style = {"fontsize": 8.5, "va": "center", "parse_math": False, "annotation_clip": False, **style}
    ax.annotate(text, at, shift, (x, "data"), "offset points", **style)


def label_left(ax: Axes, text: str, y: float, points: float, **style: Any) -> None:
    """Write a text to the left of the axes.

    Parameters
    ----------
    ax
        Axes to draw on.
    text
        The text.
    y
        Height in data coordinates.
    points
        Distance from the axes in points.
    **style
        Arguments of `Axes.annotate`.
    """
    note(ax, text, (0, y), (-points, 0), "axes fraction", ha="right", **style)


def key_above(ax: Axes, reverse: bool = False) -> None:
    """Put a legend between axes and title, in the fewest lines that fit the figure.

    Parameters
    ----------
    ax
        Axes with labelled marks.
    reverse
        Whether to reverse the order of the entries.
    """
    figure = root_of(ax)
    room = figure.bbox.width - MARGIN * figure.dpi
    for columns in (4, 3, 2, 1):
        style: dict[str, Any] = {"borderaxespad": 0.1, "borderpad": 0.2, "handletextpad": 0.5, "reverse": reverse}
        key = _key(ax, "lower left", (0.0, 1.0), ncols=columns, **style)
        box = key.get_window_extent()
        if box.width <= room:
            break
    set_title(ax, ax.get_title(loc="left"), pad=4.0 + box.height * 72 / figure.dpi)


def key_below(ax: Axes, handles: Sequence[Mark]) -> None:
    """Put a legend below the tick labels: next to the label of the axis, or under it in a narrow figure.

    Parameters
    ----------
    ax
        Axes to draw on.
    handles
        Marks of the legend.
    """
    figure, wide = root_of(ax), ax.get_window_extent().width
    label = text_width(ax.get_xlabel(), 9.0) * figure.dpi
    room = wide - label if ax.xaxis.label.get_horizontalalignment() == "left" else (wide - label) / 2
    for columns, below in [(len(handles), 2.2), *((k, 4.4) for k in range(len(handles), 0, -1))]:
        style: dict[str, Any] = {"borderaxespad": below, "ncols": columns, "handletextpad": 0.4, "handles": handles}
        if _key(ax, "upper right", (1.0, 0.0), **style).get_window_extent().width <= (room if below < 4 else wide):
            break


def _key(ax: Axes, corner: Literal["lower left", "upper right"], of_axes: tuple[float, float], **style: Any) -> Legend:
    key = ax.legend(loc=corner, bbox_to_anchor=of_axes, frameon=False, fontsize=8, labelcolor=QUIET, **style)
    for text in key.get_texts():  # names are not mathematics
        text.set_parse_math(False)
    return key


def legend(ax: Axes, place: Any = "best") -> None:
    """Put a legend inside the axes; a ``$`` in a name is plain text.

    Parameters
    ----------
    ax
        Axes with labelled marks.
    place
        Location, as for `Axes.legend`.
    """
    for text in ax.legend(fontsize=8.5, frameon=False, loc=place).get_texts():
        text.set_parse_math(False)


def name_lines(ax: Axes, points: float = 11.0) -> None:
    """Label every named line at its end, right of the axes, or above the axes if names are long.

    A figure without a layout engine gets a legend inside the axes.

    Parameters
    ----------
    ax
        Axes with labelled lines.
    points
        Smallest distance between labels, in points.
    """
    figure = ax.get_figure(root=True)
    named = [line for line in ax.lines if not str(line.get_label()).startswith("_")]
    if figure is None or figure.get_layout_engine() is None:
        legend(ax)
        return
    longest = max((text_width(str(line.get_label()), 8.5) for line in named), default=0.0)
    if longest > MOST_NAME * figure.get_figwidth():
        key_above(ax)
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


def text_width(text: str, points: float) -> float:
    """Return the width of a line of text, in inches.

    Parameters
    ----------
    text
        One line.
    points
        Font size in points.
    """
    return float(text_to_path.get_text_width_height_descent(text, FontProperties(size=points), ismath=False)[0]) / 72


def legal_suffix(path: str | os.PathLike[str]) -> str:
    """Return the suffix of a picture's file name in lower case.

    Parameters
    ----------
    path
        File name.

    Raises
    ------
    InputError
        If the suffix is not that of a picture.
    """
    suffix = TRACE if is_trace(path) else Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError("cannot tell the format of a picture from its name", file=path, legal=", ".join(SUFFIXES))
    return suffix


def save(figure: Any, path: str | os.PathLike[str]) -> None:
    """Write a figure to ``.png``, ``.svg`` or ``.pdf`` atomically; the same figure gives the same bytes.

    Text can be searched and edited: a PDF embeds its fonts as TrueType, an SVG holds text. For the width of a paper's
    columns draw with ``width="column"`` or ``"page"``.

    Parameters
    ----------
    figure
        A figure, or an interactive chart of `optsched.plot.interactive`.
    path
        File to write. An interactive chart needs ``.html``; the page is complete and needs no network.

    Raises
    ------
    InputError
        If the suffix does not fit the figure.

    Examples
    --------
    >>> import optsched as osd
    >>> osd.plot.save(osd.plot.gantt(osd.solve("rigid-06-1")).figure, "best.svg")
    """
    suffix, still = legal_suffix(path), isinstance(figure, Figure)
    if suffix == TRACE or still == (suffix == ".html"):
        raise InputError("not for this picture", file=path, legal=", ".join(SUFFIXES[:3]) if still else ".html")
    if not still:
        from bokeh.embed import file_html
        from bokeh.resources import INLINE

        write_atomic(path, str(file_html(figure, INLINE, title=Path(path).stem)))
        return
    dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with atomic_path(path) as temporary, matplotlib.rc_context(TEXT):
        figure.savefig(temporary, format=suffix[1:], dpi=DPI, metadata=dated.get(suffix))
