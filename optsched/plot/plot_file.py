"""Pictures of files, selected by the kind of the file (`PLOTS`).

`plot_file` implements ``optsched plot FILE -o PICTURE``.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from optsched.errors import InputError, check_legal
from optsched.plot.canvas import Width, inches, legal_suffix, save
from optsched.plot.time_axis import moment
from optsched.problem.atomic_files import read_bytes, write_atomic
from optsched.problem.documents import parse_json
from optsched.problem.instance import Instance, Source, instance_of
from optsched.problem.parquet import parquet_metadata
from optsched.problem.schedule_file import TRACE
from optsched.registry import Registry

Window = tuple[float | None, float | None]  # start, end: seconds; None: the beginning, the end


@dataclass(frozen=True)
class Plot:
    """A kind of file and its picture.

    ``what`` names the kind in messages. ``reads(header)`` decides from a JSON document, or from the header of a Parquet
    file, whether a file is of the kind. ``draw(path, header, instance, window, width)`` makes the picture or raises
    `InputError`.
    ``timed``: whether it has a time axis, which a window can cut. ``page``: like ``draw`` without a width, makes an
    interactive chart; None if the kind has none. ``trace``: like ``page``, makes the text of a trace.
    """

    what: str
    reads: Callable[[Mapping[str, Any]], bool]
    draw: Callable[[Path, Mapping[str, Any], Instance | None, Window, Width | None], Figure]
    timed: bool = True
    page: Callable[[Path, Mapping[str, Any], Instance | None, Window], Any] | None = None
    trace: Callable[[Path, Mapping[str, Any], Instance | None, Window], str] | None = None


PLOTS: Registry[Plot] = Registry("plot", package="optsched.plot")
# Charts that the folders of classes of schedules add to `optsched.plot`, by the name of the function.
CHARTS: Registry[Callable[..., Axes]] = Registry("chart", package="optsched.plot")


def plot_file(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str],
    instance: Source | None = None,
    *,
    start: float | str | None = None,
    end: float | str | None = None,
    width: Width | str | None = None,
) -> None:
    """Draw a file that optsched wrote.

    Parameters
    ----------
    path
        A schedule (``.json`` or ``.parquet``), its tasks (``tasks-*.parquet``, with ``instance``), or the ``result.json``
        of ``optsched run -o``.
    out
        The picture, ``.png``, ``.svg`` or ``.pdf``; for a schedule also ``.html``, an interactive chart
        (`optsched.plot.interactive`), or ``.trace.json``, a trace for Perfetto (`optsched.plot.save_trace`). Written
        atomically.
    instance
        Instance of a schedule, or its SOURCE. It adds arrivals, waiting jobs and the whole cluster; without it the picture
        shows the nodes and GPUs that appear in the file.
    start, end
        Window of time to show: seconds of the schedule's clock, or text such as ``"2h"``.
    width
        Width for paper: ``"column"`` (3.33 inches), ``"page"`` (7), or inches; default: for a screen.

    Raises
    ------
    InputError
        If the suffix is unknown, the window is empty, the file cannot be read or is of another kind, a schedule belongs to
        another instance, or ``out`` cannot be written.

    Examples
    --------
    >>> import optsched as osd
    >>> osd.simulate("rigid-06-1", "srtf").schedule.save("srtf.json")
    >>> osd.plot.plot_file("srtf.json", "srtf.png", "rigid-06-1", end="30s")
    """
    source = Path(path)
    suffix, wide = legal_suffix(out), None if width is None else inches(width)
    picture = suffix not in (".html", TRACE)
    if not picture and wide is not None:
        raise InputError("a page is as wide as the window", field="width", value=width, legal="for .png, .svg or .pdf")
    window = moment(start, "start"), moment(end, "end")
    header, about = _header(source), None if instance is None else instance_of(instance)
    for plot in map(PLOTS.get, PLOTS.names()):
        if plot.reads(header):
            if window != (None, None) and not plot.timed:
                raise InputError("it has no time axis", file=source, field="start, end", legal="for a schedule")
            if picture:
                save(plot.draw(source, header, about, window, wide), out)
            elif suffix == TRACE and plot.trace is not None:
                write_atomic(out, plot.trace(source, header, about, window))
            elif suffix != TRACE and plot.page is not None:
                save(plot.page(source, header, about, window), out)
            else:
                missing = "trace" if suffix == TRACE else "page"
                raise InputError(f"there is no such {missing} of {plot.what}", file=out, legal=".png, .svg or .pdf")
            return
    what = header.get("format")
    message = f"a file of format {what} cannot be drawn" if isinstance(what, str) else "not a file that can be drawn"
    raise InputError(message, file=source, legal=_legal())


def _legal() -> str:
    return " or ".join(PLOTS.get(name).what for name in PLOTS.names())


def _header(path: Path) -> Mapping[str, Any]:
    # The whole JSON document, or what a Parquet file says about itself.
    content = read_bytes(path)
    if path.suffix.lower() == ".parquet":
        stated = parquet_metadata(content, path, _legal())
        content = (stated.get("optsched-schedule") or stated.get("optsched-tasks", "{}")).encode()
    header = parse_json(content, path, _legal())
    if not isinstance(header, dict):
        raise InputError("not a file that can be drawn", file=path, legal=_legal())
    return header


def number_in(row: Mapping[str, Any], key: str, where: str, file: Path | None) -> float:
    """Return the number ``row[key]``, or nan if it is null.

    Parameters
    ----------
    row
        Row of a document.
    key
        Name of the field.
    where
        Place of the row, for errors.
    file
        File, for errors.

    Raises
    ------
    InputError
        If the value is neither null nor a finite number >= 0.
    """
    value = row.get(key)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return math.nan
    number = isinstance(value, int | float) and not isinstance(value, bool)
    check_legal(number and 0 <= value < math.inf, f"{where}.{key}", value, "a finite number >= 0, or null", file=file)
    return float(value)
