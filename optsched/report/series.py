"""Occupancy, queue and utilisation over time, as means over equal parts of the time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from optsched.plot.occupancy import window_end
from optsched.plot.timeline import Timeline, bin_means
from optsched.problem.arrays import Floats, Ints
from optsched.problem.schedule import Schedule

PARTS = 240  # of the time, at most; curves for a screen
MOST_DAYS = 100  # of the curve of utilisation, at most
FEWEST = 20  # minutes of a window that has round parts
ROUND = {
    "minute": 60.0,
    "5 minutes": 300.0,
    "15 minutes": 900.0,
    "30 minutes": 1800.0,
    "hour": 3600.0,
    "2 hours": 7200.0,
}
ROUND |= {"6 hours": 6 * 3600.0, "12 hours": 12 * 3600.0, "day": 86400.0, "week": 7 * 86400.0}  # seconds


@dataclass(frozen=True, eq=False)
class OverTime:
    """A schedule over time from the first arrival.

    ``edges`` f64[M] are the beginnings of short parts of the window in seconds, ``held`` and ``waiting`` f64[M] the mean
    numbers of GPUs that jobs hold and of jobs that wait. ``days`` f64[D] are the beginnings of longer parts, ``utilization``
    f64[D] the shares of all GPUs that do work. At most ``most_waiting`` jobs wait at one time, first at ``when``.
    """

    edges: Floats
    held: Floats
    waiting: Floats
    days: Floats
    utilization: Floats
    most_waiting: float
    when: float


def over_time(schedules: Mapping[str, Schedule]) -> tuple[dict[str, OverTime], float, str, str]:
    """Return schedules over a common window of time.

    Parameters
    ----------
    schedules
        Schedules by name.

    Returns
    -------
    tuple
        The series by name; the end of the window in seconds from the first arrival (a long tail of few jobs is cut, see
        `optsched.plot.over_time`); the names of a part of the first curves, and of one of the utilisation (``"day"``).

    Notes
    -----
    Complexity O(K log K) for K pairs of segment and GPU.
    """
    relative = {name: schedule.relative for name, schedule in schedules.items()}
    lines = {name: Timeline.of(schedule, residents=True) for name, schedule in relative.items()}
    last = max(line.span[1] for line in lines.values())
    end = min(last, window_end(list(relative.values()), last))
    step, size = _round_part(end, PARTS), _round_part(end, MOST_DAYS)
    series = {name: _series(line, end, step[0], size[0]) for name, line in lines.items()}
    return series, end, step[1], size[1]


def _round_part(end: float, most: int) -> tuple[float, str]:
    """Return the shortest round part of which at most ``most`` make the window, in seconds, and its name."""
    if end <= FEWEST * ROUND["minute"]:
        return end / most, f"1/{most} of the time"
    weeks = max(1, math.ceil(end / most / ROUND["week"]))
    longest = weeks * ROUND["week"], "week" if weeks == 1 else f"{weeks} weeks"
    return next(((size, name) for name, size in ROUND.items() if end / size <= most), longest)


def _series(t: Timeline, end: float, step: float, size: float) -> OverTime:
    begin, finish, gangs = t.held[0], t.held[1], t.held[3]
    _, since, until = t.waits
    lost = t.overhead > 0
    held = _Means(begin, finish, gangs)
    restarts = _Means(t.start[lost], t.start[lost] + t.overhead[lost], np.diff(t.gpu_offset)[lost])
    days, work = held.over(end, size)
    work = np.maximum(work - restarts.over(end, size)[1], 0.0)
    when, level = t.waiting
    peak = int(np.argmax(level)) if level.size else 0
    return OverTime(
        *held.over(end, step),
        _Means(since, until, np.ones(since.size)).over(end, step)[1],
        days,
        work / max(t.gpus, 1),
        *((float(level[peak]), float(when[peak])) if level.size else (0.0, 0.0)),
    )


@dataclass(frozen=True, eq=False)
class _Means:
    """Intervals in seconds that count ``count`` each."""

    begin: Floats
    finish: Floats
    count: Floats | Ints

    def over(self, end: float, size: float) -> tuple[Floats, Floats]:
        """Return the beginnings of parts of ``size`` seconds, and the mean over each; the last one may be shorter."""
        parts = max(1, math.ceil(end / size - 1e-9))
        time = np.minimum(np.concatenate([self.begin, self.finish]), end)
        change = np.concatenate([self.count, -self.count]).astype(np.float64)
        means = bin_means(np.zeros(time.size, dtype=np.int64), time, change, 1, 0.0, parts * size, parts)[0]
        edges = np.arange(parts, dtype=np.float64) * size
        return edges, means * size / np.minimum(size, end - edges)
