"""Numbers and nouns as tables and notes write them."""

from __future__ import annotations

from optsched.errors import printable
from optsched.io.traces.log_reading import clock_of, dates_of, unit_of
from optsched.problem.instance import Instance
from optsched.rounding import counted, fixed

SHORTEST = 1e-12  # seconds; a shorter duration is the rounding of clocks


def duration(seconds: float) -> str:
    """Return a duration in the unit that suits its size.

    Parameters
    ----------
    seconds
        The duration.
    """
    for unit, size in (("d", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if abs(seconds) >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:,.3g} s" if abs(seconds) >= SHORTEST else "0 s"


def instance_line(instance: Instance, skipped: int = 0) -> str:
    """Return a line with name, jobs, cluster and dates of an instance.

    Parameters
    ----------
    instance
        The instance.
    skipped
        Number of invalid rows of the source that were left out.
    """
    left_out = f", {counted(skipped, 'row')} skipped" if skipped else ""
    cluster = f"{printable(instance.cluster.spec)} ({counted(instance.cluster.gpus, unit_of(instance))})"
    clock, dates = clock_of(instance), dates_of(instance, "%Y-%m-%d %H:%M")
    span = "" if clock is None else f", {dates} ({clock.zone})"
    return f"{printable(instance.name or 'instance')}: {counted(instance.n, 'job')} on {cluster}{span}{left_out}"


def gap_text(gap: float | None) -> str:
    """Return a gap in per cent, rounded up: 0.00 % means that there is no gap.

    Parameters
    ----------
    gap
        The relative gap; None if it is not known.
    """
    return "-" if gap is None else f"{fixed(100 * gap, 2, 'up')} %"
