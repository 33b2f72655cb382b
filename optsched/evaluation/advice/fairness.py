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
    named = instance.table[field].is_not_null().to_numpy() & ~np.isnan(before) & ~np.isnan(after)
    labels = instance.table[field].filter(pl.Series(named)).to_list()
    place = {label: k for k, label in enumerate(dict.fromkeys(labels))}
    names, of = list(place), np.array([place[label] for label in labels], dtype=np.int64)
    # added up in the order of the jobs: the sums of a table by group depend on the threads that share the work
    jobs = np.bincount(of, minlength=len(names))
    first, then = (np.bincount(of, weights=slowdown[named], minlength=len(names)) for slowdown in (before, after))
    worse = np.flatnonzero(then > WORSE * first)
    most = worse[np.argsort(first[worse] - then[worse], kind="stable")][:LOSERS].tolist()
    losers = tuple(Loser(names[k], int(jobs[k]), float(first[k] / jobs[k]), float(then[k] / jobs[k])) for k in most)
    longest = None
    if conservative is not None:
        quotient = np.maximum(stay, SHORT) / np.maximum(conservative, SHORT)
        longest = float(np.nanmax(quotient)) if np.isfinite(quotient).any() else None
    return Fairness("job" if field == "id" else field, len(names), worse.size, losers, longest)
