"""`ForkedRun`: a run whose jobs may train in several copies at once; what they do adds up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from optsched.simulation.run import Run


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

    A copy pays ``overhead`` seconds whenever it begins: parameters are brought together and sent out again.
    ``preemptions`` counts jobs that lose a node from one round to the next.
    """

    copies: int = 1
    round: float = 0.0
    overhead: float = 0.0

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
    """How often a job that goes on has not all its nodes in the next round. O(segments)."""
    schedule, lost = run.schedule, 0
    held: dict[int, set[int]] = {}
    for each in run.rounds:
        now: dict[int, set[int]] = {}
        for s in each.segments:
            nodes = schedule.gpu_node[schedule.gpu_offset[s] : schedule.gpu_offset[s + 1]]
            now.setdefault(int(schedule.job[s]), set()).update(nodes.tolist())
        active = set(each.active)
        lost += sum(j in active and not nodes <= now.get(j, set()) for j, nodes in held.items())
        held = now
    return lost
