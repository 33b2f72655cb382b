"""Users who lose: the mean bounded slowdown of every user under a candidate and under the first row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from optsched.problem.arrays import Floats
from optsched.problem.instance import Instance
from optsched.simulation.metrics import SHORT

WORSE = 1.01  # times the mean slowdown of the first row, from which on a user counts as worse off
LOSERS = 5


@dataclass(frozen=True)
class Loser:
    """A user, a group or a job that waits longer under a candidate.

    Parameters
    ----------
    name
        Name of the user or group, or id of the job.
    jobs
        Number of its jobs.
    before, after
        Mean bounded slowdown in the first row and under the candidate.
    """

    name: str
    jobs: int
    before: float
    after: float


@dataclass(frozen=True)
class Fairness:
    """The slowdowns of users, groups or jobs under a candidate, compared with the first row.

    Parameters
    ----------
    by
        ``user``, ``group``, or ``job`` if the log names nobody.
    people
        Number of users, groups or jobs.
    worse
        Those whose mean bounded slowdown is more than 1 % larger.
    losers
        Those that lose most: the largest increase of the slowdown, summed over their jobs, comes first.
    longest_stay
        Largest quotient of the stay of a job and its stay under conservative backfilling, where a stay counts as at least
        10 s; None without such a run.
    """

    by: str
    people: int
    worse: int
    losers: tuple[Loser, ...]
    longest_stay: float | None

    @property
    def share_worse(self) -> float:
        """Share of the users, groups or jobs that are worse off, from 0 to 1."""
        return self.worse / self.people if self.people else 0.0


def people_field(instance: Instance) -> str:
    """Return the field by which people are compared: ``user``, else ``group``, else ``id`` for single jobs.

    Parameters
    ----------
    instance
        The jobs.
    """
    table = instance.table
    return next((name for name in ("user", "group") if table[name].drop_nulls().n_unique() > 1), "id")


def fairness(
    instance: Instance, before: Floats, after: Floats, stay: Floats, conservative: Floats | None = None
) -> Fairness:
    """Return how people fare under a candidate; jobs without a name or unfinished in either row are left out.

    Parameters
    ----------
    instance
        The jobs.
    before, after
        Bounded slowdown of every job in the first row and under the candidate, f64[n].
    stay
        Completion minus arrival of every job under the candidate, in seconds, f64[n].
    conservative
        The same under conservative backfilling; None if it was not run.
    """
    field = people_field(instance)
    jobs = pl.DataFrame({"name": instance.table[field], "before": before, "after": after})
    jobs = jobs.filter(pl.col("name").is_not_null() & pl.col("before").is_not_nan() & pl.col("after").is_not_nan())
    means = jobs.group_by("name", maintain_order=True).agg(
        pl.len().alias("jobs"), pl.col("before", "after").mean(), lost=(pl.col("after") - pl.col("before")).sum()
    )
    worse = means.filter(pl.col("after") > WORSE * pl.col("before"))
    most = worse.sort("lost", descending=True, maintain_order=True).head(LOSERS)
    losers = tuple(Loser(*row) for row in most.select("name", "jobs", "before", "after").iter_rows())
    longest = None
    if conservative is not None:
        quotient = np.maximum(stay, SHORT) / np.maximum(conservative, SHORT)
        longest = float(np.nanmax(quotient)) if np.isfinite(quotient).any() else None
    return Fairness("job" if field == "id" else field, means.height, worse.height, losers, longest)
