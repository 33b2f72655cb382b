"""Jobs by size, duration, user and group: how much slower each class runs, and who gains or loses under another policy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optsched.io.traces.log_reading import unit_of
from optsched.problem.arrays import Floats, Ints
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.simulation.metrics import seconds_running
from optsched.speeds.duration import solo_times

LONG = {"up to 10 min": 600.0, "10 min to 1 h": 3600.0, "1 h to 6 h": 6 * 3600.0, "6 h to 1 day": 86400.0}  # seconds
LONGER = "more than 1 day"
SAME = 1.0  # seconds; a JCT that changes by less counts as unchanged


@dataclass(frozen=True, eq=False)
class JobGroups:
    """Jobs in groups: the names of the groups, and the group of every job, i64[n]; -1 for a job that is in none."""

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
        """Return the mean of a value over the jobs of every group; nan if a group has no job or a job no value.

        Parameters
        ----------
        values
            A value of every job, f64[n].
        """
        return np.where(self.sizes > 0, self.sums(values) / np.maximum(self.sizes, 1), np.nan)

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
    power = np.ceil(np.log2(instance.gpus)).astype(np.int64)
    unit = unit_of(instance)
    larger = (f"{2 ** (k - 1) + 1} to {2**k} {unit}s" for k in range(2, int(power.max(initial=0)) + 1))
    return JobGroups((f"1 {unit}", f"2 {unit}s", *larger), power)


def by_duration(instance: Instance) -> JobGroups:
    """Return the jobs by processing time, alone on the best placement.

    Parameters
    ----------
    instance
        The jobs.
    """
    return JobGroups((*LONG, LONGER), np.searchsorted([*LONG.values()], solo_times(instance).seconds, side="left"))


def by_people(instance: Instance) -> tuple[str, JobGroups]:
    """Return the jobs by ``user`` if they state several, else by ``group``, and the name of that column.

    Parameters
    ----------
    instance
        The jobs.

    Returns
    -------
    tuple
        The name is empty, and every job in no group, if jobs state neither.
    """
    for field in ("user", "group"):
        labels = instance.table[field].to_list()
        place = {label: k for k, label in enumerate(dict.fromkeys(label for label in labels if label is not None))}
        if len(place) > 1:
            return field, JobGroups(tuple(place), np.array([place.get(label, -1) for label in labels], dtype=np.int64))
    return "", JobGroups((), np.full(instance.n, -1, dtype=np.int64))


def completion_times(schedule: Schedule) -> Floats:
    """Return the job completion time (JCT) of every job in seconds, f64[n]; nan for an unfinished job.

    Parameters
    ----------
    schedule
        The schedule.
    """
    local = schedule.relative
    return np.where(local.finished, local.completion - local.instance.arrival, np.nan)


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

    Numbers of jobs that complete ``earlier`` and ``later``; the ``change`` of the mean JCT of every group in seconds,
    f64[groups], negative if the group gains; the largest delay of a job in seconds.
    """

    earlier: int
    later: int
    change: Floats
    worst: float


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
    change = JobGroups(groups.names, np.where(both, groups.of, -1)).means(np.where(both, difference, 0.0))
    known = difference[both]
    later, earlier = int((known > SAME).sum()), int((known < -SAME).sum())
    return Gains(earlier, later, np.nan_to_num(change), float(known.max(initial=0.0)))
