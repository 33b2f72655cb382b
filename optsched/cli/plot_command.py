"""``optsched plot``: draw a schedule, or the ratios of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from optsched.cli.options import AboutSource, AsJson, Reading, argument, option, output, reading_source
from optsched.cli.output import print_json, write


@reading_source
def plot(
    file: Annotated[Path, argument("FILE", "a schedule, its tasks, or the result.json of a run")],
    picture: Annotated[
        Path, output("PICTURE", "a picture (.png, .svg, .pdf), a page (.html), or a trace (.trace.json)")
    ],
    reading: Reading,
    instance: Annotated[str | None, AboutSource] = None,
    start: Annotated[
        str | None, option("--start TIME", "start of the drawn window on the time axis: seconds, 90min, 2h, 1d")
    ] = None,
    end: Annotated[str | None, option("--end TIME", "end of the drawn window")] = None,
    width: Annotated[
        str | None, option("--width WIDTH", "for paper: column (3.33 inches), page (7), or a number of inches")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Draw a schedule by GPU and node, or the ratios of a run.

    \b
    optsched plot result/result.json -o ratios.png
    optsched plot result/result.json --width column -o ratios.pdf
    optsched plot result/schedule-01-srtf.json --instance rigid-12-1 -o srtf.html
    optsched plot result/schedule-01-srtf.json --instance rigid-12-1 -o srtf.trace.json

    \f
    Parameters
    ----------
    file
        A schedule, its tasks, or the result.json of a run.
    picture
        A picture (.png, .svg, .pdf), an interactive page (.html), or a trace for Perfetto (.trace.json).
    reading
        The options that decide how the SOURCE is read.
    instance
        The instance of FILE.
    start
        Start of the drawn window on the time axis: seconds, 90min, 2h, 1d.
    end
        End of the drawn window.
    width
        For paper: column (3.33 inches), page (7), or a number of inches.
    as_json
        Print exactly one JSON document to stdout.
    """
    if instance is not None:
        reading.look(instance)
    from optsched.plot.plot_file import plot_file

    about = None if instance is None else reading.load(instance).instance
    plot_file(file, picture, about, start=start, end=end, width=width)
    if as_json:
        print_json({"file": str(picture)})
    else:
        write(f"{picture}\n")
