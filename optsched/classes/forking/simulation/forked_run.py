"""`ForkedRun`: a run in rounds in which a job may run in several copies at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from optsched.problem.instance import Instance
from optsched.simulation.policy import Policy, most_copies
from optsched.simulation.run import RUNS, Run, RunKind

ROUNDING = 1e-9  # relative: copies that end together may differ by so much


@dataclass(frozen=True, slots=True)
class Round:
    """One round: ``active`` jobs when it began, and its ``segments`` in the schedule (one a copy)."""

    start: float
    end: float
    active: tuple[int, ...]
    segments: range


@dataclass(frozen=True, eq=False, repr=False)
class ForkedRun(Run):
    """A `Run` in rounds with up to ``copies`` copies of a job at once (at most the number of nodes; 1: no forking).

    A copy pays ``overhead`` seconds whenever it begins: parameters are brought together and sent out again. ``round`` 0:
    copies begin at any event. ``preemptions`` counts how often a job loses nodes before it is done.
    """

    copies: int = 1
    round: float = 0.0
    overhead: float = 0.0
    always_preempts: ClassVar[bool] = True

    def counted(self) -> Self:
        """Return the same run, whose preemptions are `nodes_lost`."""
        return replace(self, preemptions=nodes_lost(self))

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        """Those in which anything ran: copies that begin together. O(rounds x jobs)."""
        instance, start = self.instance, self.schedule.start
        order = np.lexsort((np.arange(instance.n), instance.arrival))
        arrival, completion = instance.arrival[order], self.schedule.completion[order]
        first = np.flatnonzero(np.diff(start, prepend=-np.inf) > 0).tolist()
        found = []
        for a, b in pairwise([*first, start.size] if first else []):
            now = float(start[a])
            active = order[(arrival <= now) & ~(completion <= now)]
            found.append(Round(now, now + self.round, tuple(active.tolist()), range(a, b)))
        return tuple(found)

    @property
    def schedule_class(self) -> str:
        """``forking`` where a job could have several copies at once, else ``gang``."""
        return "forking" if self.copies > 1 else "gang"


def nodes_lost(run: ForkedRun) -> int:
    """Return how often jobs that are not done lose nodes: for as long as a round none of their copies begins there again.

    Parameters
    ----------
    run
        The run.

    Notes
    -----
    Without rounds, if none begins at once. Nodes that it loses at the same time count once. O(S log S) for S copies.
    """
    schedule, segments = run.schedule, max(1, len(run.schedule))
    part = np.repeat(np.arange(len(schedule)), np.diff(schedule.gpu_offset))
    places = np.sort(schedule.gpu_node * segments + part)
    node, segment = np.divmod(places[np.diff(places, prepend=-1) > 0], segments)
    order = np.lexsort((schedule.start[segment], schedule.job[segment], node))
    node, segment = node[order], segment[order]
    job, start, end = schedule.job[segment], schedule.start[segment], schedule.end[segment]
    again = (node[1:] == node[:-1]) & (job[1:] == job[:-1]) & (start[1:] - end[:-1] <= run.round * (1 - ROUNDING))
    lost = ~np.append(again, False)[: job.size] & (end < schedule.completion[job] * (1 - ROUNDING))
    job, end = job[lost], end[lost]
    order = np.lexsort((end, job))
    return int(order.size and 1 + (np.diff(job[order]).astype(bool) | np.diff(end[order]).astype(bool)).sum())


def _facts(policy: Policy, instance: Instance) -> dict[str, Any]:
    costs = {"round": float(policy.round), "overhead": float(policy.first_start)}
    return {"copies": most_copies(policy, instance), **costs}


RUNS.register("forking", RunKind(run=ForkedRun, facts=_facts))
