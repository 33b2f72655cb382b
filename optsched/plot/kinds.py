"""The registry of pictures: what a file is decides how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from optsched.problem.instance import Instance
from optsched.registry import Registry

Window = tuple[float | None, float | None]  # from, to: seconds; None: the beginning, the end


@dataclass(frozen=True)
class Plot:
    """How one kind of file is drawn.

    ``what`` names the kind for people; ``reads(header)`` tells from a JSON document, or from the header of a Parquet
    file, whether a file is of it; ``draw(path, header, instance, window)`` makes the picture or raises `InputError`.
    """

    what: str
    reads: Callable[[Mapping[str, Any]], bool]
    draw: Callable[[Path, Mapping[str, Any], Instance | None, Window], Figure]


PLOTS: Registry[Plot] = Registry("plot", package="optsched.plot")
