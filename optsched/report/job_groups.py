"""Jobs by size, duration, user and group: how much slower each class runs, and who gains or loses under another policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.simulation.metrics import seconds_running
from optsched.speeds.duration import solo_times

SHORTEST = 10.0  # seconds; the slowdown of a shorter job is that of one of this length
LONG = (600.0, 3600.0, 6 * 3600.0, 86400.0)  # ends of the classes of duration, in seconds
LONG_NAMES = ("up to 10 min", "10 min to 1 h", "1 h to 6 h", "6 h to 1 day", "more than 1 day")
SAME = 1.0  # seconds; a job whose JCT changes by less counts as unchanged


@dataclass(frozen=True, eq=False)
class JobGroups:
    """Jobs in groups.

    Parameters
    ----------
    names
        Names of the groups.
    of
        Group of every job, i64[n]; -1 for a job that is in none.
    """

    names: tuple[str, ...]
    of: Ints

    @property
    def sizes(self) -> Ints:
        """Number of jobs of every group."""
        return np.bincount(self.of[self.of >= 0], minlength=len(self.names)).astype(np.int64)

    def sums(self, values: Floats) -> Floats:
        """Return the sum of a value over the jobs of every group.

        Parameters
        ----------
        values
            A value of every job, f64[n].
        """
        inside = self.of >= 0
        return np.bincount(self.of[inside], weights=values[inside], minlength=len(self.names)).astype(np.float64)

    def means(self, values: Floats) -> Floats:
        """Return the mean of a value over the jobs of every group; nan where a group has no job or a job no value.

        Parameters
        ----------
        values
            A value of every job, f64[n].
        """
        sizes = self.sizes
        return np.where(sizes > 0, self.sums(values) / np.maximum(sizes, 1), np.nan)

    def crossed(self, other: JobGroups) -> JobGroups:
        """Return the groups of jobs that agree in both groups.

        Parameters
        ----------
        other
            Other groups of the same jobs.
        """
        both = np.where((self.of < 0) | (other.of < 0), -1, self.of * len(other.names) + other.of)
        return JobGroups(tuple(f"{a}, {b}" for a in self.names for b in other.names), both)


def by_size(instance: Instance) -> JobGroups:
    """Return the jobs by gang size: 1, 2, 3 to 4, 5 to 8, and so on to powers of two.

    Parameters
    ----------
    instance
        The jobs.
    """
    power = np.ceil(np.log2(np.maximum(instance.gpus, 1))).astype(np.int64)
    names = ["1 GPU", "2 GPUs"]
    names += [f"{2 ** (k - 1) + 1} to {2**k} GPUs" for k in range(2, int(power.max(initial=0)) + 1)]
    return JobGroups(tuple(names), power)


def by_duration(instance: Instance) -> JobGroups:
    """Return the jobs by processing time, alone on the best placement.

    Parameters
    ----------
    instance
        The jobs.
    """
    return JobGroups(LONG_NAMES, np.searchsorted(LONG, solo_times(instance).seconds, side="left"))


def labelled(instance: Instance, field: str) -> JobGroups:
    """Return the jobs by ``user`` or ``group``; a job without a label is in no group.

    Parameters
    ----------
    instance
        The jobs.
    field
        Name of the column.
    """
    names = instance.table[field].to_list()
    order = {name: k for k, name in enumerate(dict.fromkeys(name for name in names if name is not None))}
    return JobGroups(tuple(order), np.array([order.get(name, -1) for name in names], dtype=np.int64))


def completion_times(schedule: Schedule) -> Floats:
    """Return the job completion time (JCT) of every job in seconds, f64[n]; nan for an unfinished job.

    Parameters
    ----------
    schedule
        The schedule.
    """
    local = schedule.relative
    return np.where(local.finished, local.completion - local.instance.arrival, np.nan)


def bounded_slowdown(schedule: Schedule) -> Floats:
    """Return the bounded slowdown of every job, max(1, JCT / max(p, 10 s)), f64[n]; nan for an unfinished job.

    Parameters
    ----------
    schedule
        The schedule.

    Notes
    -----
    p is the processing time alone on the best placement.
    """
    length = np.maximum(solo_times(schedule.instance).seconds, SHORTEST)
    return np.maximum(1.0, completion_times(schedule) / length)


def queued_hours(schedule: Schedule) -> Floats:
    """Return the GPU-hours in which the gang of every job waited, f64[n]; nan for an unfinished job.

    Parameters
    ----------
    schedule
        The schedule.
    """
    waited = np.maximum(completion_times(schedule) - seconds_running(schedule.relative), 0.0)
    return np.asarray(waited * schedule.instance.gpus / 3600.0)


@dataclass(frozen=True, eq=False)
class Gains:
    """Changes of the JCT from one schedule to another.

    Parameters
    ----------
    earlier, later
        Numbers of jobs that complete earlier, and later.
    change
        Change of the mean JCT of every group in seconds, f64[groups]; negative if the group gains.
    worst
        Largest increase of the JCT of a job in seconds.
    """

    earlier: int
    later: int
    change: Floats
    worst: float

    @property
    def winners(self) -> int:
        """Number of groups whose mean JCT decreases."""
        return int((self.change < -SAME).sum())

    @property
    def losers(self) -> int:
        """Number of groups whose mean JCT increases."""
        return int((self.change > SAME).sum())


def gains(first: Schedule, other: Schedule, groups: JobGroups) -> Gains:
    """Return what changes for jobs and groups from a schedule to another; jobs unfinished in either are left out.

    Parameters
    ----------
    first, other
        Schedules of the same jobs.
    groups
        The groups.
    """
    difference = completion_times(other) - completion_times(first)
    both = ~np.isnan(difference)
    inside = JobGroups(groups.names, np.where(both, groups.of, -1))
    change = np.nan_to_num(inside.means(np.where(both, difference, 0.0)))
    known = difference[both]
    return Gains(int((known < -SAME).sum()), int((known > SAME).sum()), change, float(known.max(initial=0.0)))


def extremes(groups: JobGroups, change: Floats, most: int) -> list[int]:
    """Return the groups that gain most and those that lose most, by JCT summed over their jobs, in order of the change.

    Parameters
    ----------
    groups
        The groups.
    change
        Change of the mean JCT of every group, f64[groups].
    most
        Number of groups on each side.
    """
    total = change * groups.sizes
    order: Sequence[int] = np.argsort(total, kind="stable").tolist()
    if len(order) <= 2 * most:
        return list(order)
    return [*order[:most], *order[-most:]]


def label_field(instance: Instance) -> str | None:
    """Return the column by which people are compared: ``user`` if jobs state it, else ``group``, else None.

    Parameters
    ----------
    instance
        The jobs.
    """
    count: Mapping[str, int] = {name: instance.table[name].drop_nulls().n_unique() for name in ("user", "group")}
    return next((name for name, labels in count.items() if labels > 1), None)
