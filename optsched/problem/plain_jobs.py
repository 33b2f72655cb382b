"""`PlainJobs`: jobs with a duration and no more than arrival, gang, weight and due date.

Most small instances have only such jobs. Their arrays are read from the `Job` objects directly, which takes a twentieth of
the time that the table of polars takes; `PlainJobs.table` makes the table if somebody reads it. Jobs with an invalid value
are not plain: the rules for tables find them and report them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
import polars as pl

from optsched.problem.arrays import Floats, Ints
from optsched.problem.cluster import Cluster
from optsched.problem.job_table import COLUMNS, LONGEST, SHORTEST, Job

_STATED = ("id", "arrival", "gpus", "duration", "weight", "due")
_PLAIN = attrgetter(*_STATED)
_OTHERS = attrgetter(*(each.name for each in fields(Job) if each.name not in _STATED))
_NOTHING = (None,) * (len(COLUMNS) - len(_STATED))
_NUMBERS = {int, float}


@dataclass(frozen=True, eq=False)
class PlainJobs:
    """Valid jobs with a duration and no profile, GPU types, memory, or facts that only reports show.

    Attributes
    ----------
    ids
        Ids of the jobs.
    gpus
        Gang sizes, i64[n].
    numbers
        ``arrival``, ``duration``, ``weight`` and ``due`` by name, f64[n]; the due date of a job without one is nan.
    """

    ids: tuple[str, ...]
    gpus: Ints
    numbers: dict[str, Floats]

    def fits(self, cluster: Cluster) -> bool:
        """Return True if no gang is larger than a cluster.

        Parameters
        ----------
        cluster
            The cluster.
        """
        return int(self.gpus.max()) <= cluster.gpus

    def changed(self, **numbers: Floats) -> PlainJobs:
        """Return the jobs with other numbers, which are not checked.

        Parameters
        ----------
        **numbers
            Columns by name, f64[n]; the due date of a job without one is nan.
        """
        return PlainJobs(self.ids, self.gpus, {**self.numbers, **numbers})

    def floats(self, column: str, missing: float) -> Floats:
        """Return a column of numbers, f64[n].

        Parameters
        ----------
        column
            Name of the column.
        missing
            Value for jobs that state none.
        """
        if column not in self.numbers:
            return np.full(self.gpus.size, missing)
        values = self.numbers[column]
        return np.where(np.isnan(values), missing, values) if column == "due" else values

    def table(self) -> pl.DataFrame:
        """Return the normal table of these jobs (`optsched.problem.job_table.normal_table`)."""
        stated: dict[str, Any] = {"id": self.ids, "gpus": self.gpus, **self.numbers}
        columns = []
        for name, dtype in COLUMNS.items():
            if name not in stated or (name == "due" and np.isnan(stated[name]).all()):
                columns.append(pl.Series(name, [None], dtype=dtype).new_from_index(0, self.gpus.size))
            else:
                columns.append(pl.Series(name, stated[name], dtype=dtype, nan_to_null=name == "due"))
        return pl.DataFrame(columns)


def plain_of(jobs: Any, cluster: Cluster) -> PlainJobs | None:
    """Return jobs as arrays if all of them are plain and valid; None otherwise. Complexity O(n).

    Parameters
    ----------
    jobs
        Anything that an `Instance` is made of.
    cluster
        Cluster that the jobs must fit on.
    """
    if isinstance(jobs, PlainJobs):
        return jobs if jobs.fits(cluster) else None
    if not isinstance(jobs, list | tuple) or not jobs:
        return None
    if any(type(job) is not Job or _OTHERS(job) != _NOTHING for job in jobs):
        return None
    ids, arrival, gpus, duration, weight, due = zip(*map(_PLAIN, jobs), strict=True)
    if set(map(type, ids)) != {str} or "" in ids or len(set(ids)) < len(ids) or set(map(type, gpus)) != {int}:
        return None
    if not _NUMBERS.issuperset(map(type, chain(arrival, duration, weight, (date for date in due if date is not None)))):
        return None
    legal = (
        1 <= min(gpus) <= max(gpus) <= cluster.gpus
        and all(0 <= moment <= LONGEST for moment in arrival)
        and all(SHORTEST <= seconds <= LONGEST for seconds in duration)
        and all(1 / LONGEST <= factor <= LONGEST or factor == 0 for factor in weight)
        and all(date is None or -LONGEST <= date <= LONGEST for date in due)
    )
    if not legal:
        return None
    columns = {"arrival": arrival, "duration": duration, "weight": weight}
    # + 0.0: one zero only, -0.0 and 0 are the same time
    numbers = {name: np.array(values, dtype=np.float64) + 0.0 for name, values in columns.items()}
    numbers["due"] = np.array([math.nan if date is None else date for date in due], dtype=np.float64) + 0.0
    return PlainJobs(ids, np.array(gpus, dtype=np.int64), numbers)
