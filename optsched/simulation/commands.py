"""What a policy in plain Python may say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from optsched.problem.arrays import Floats, Ints

_NOBODY = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Start:
    """Start (or resume) job ``job`` on the GPUs that the placement chooses, or on those that the policy names.

    ``on``: (node, GPUs there) for every node used, g_j GPUs in all; a policy that names nodes says so, as all that follows,
    in its ``uses``. ``gpus``: g_j GPUs by name, (node, index), each with at most one other job, and ``option``, which of
    the job's sub-batches it runs with there (sharing). Without either the placement chooses among idle GPUs.
    ``on`` may have another number of GPUs (widths). With ``work`` it is a copy, which does at most so many units of the
    job's work; others may run beside it on other nodes, and a `Stop` stops them all (copies).
    """

    job: int
    on: tuple[tuple[int, int], ...] | None = None
    gpus: Sequence[tuple[int, int]] | None = None
    option: int = 0
    work: float | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """Preempt the running job ``job``; its work so far is kept.

    ``at``: not now but at that time (seconds since the first arrival, later than now), unless it ends or is stopped before;
    the policy is not asked then. Another stop of the job takes the place of one that is planned.
    """

    job: int
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Wake:
    """Ask again at ``time`` (seconds since the first arrival, later than now) even if nothing happens until then."""

    time: float


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """Many stops, then many starts, in arrays: the same as a list of them, in less time.

    ``stop`` i64[]: these jobs stop, all now, or at the times ``at`` f64[stop] (seconds since the first arrival, later than
    now). ``start`` i64[k]: these start; job ``start[i]`` on ``count[e]`` GPUs of ``node[e]``, first[i] <= e < first[i + 1],
    ``first`` i64[k + 1]. A policy that starts jobs so says that it uses nodes. Other types, shapes, or a move that is not
    possible are a `SimulationError`, which names it. O(jobs and entries).
    """

    stop: Ints = field(default_factory=lambda: _NOBODY)
    at: Floats | None = None
    start: Ints = field(default_factory=lambda: _NOBODY)
    first: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    node: Ints = field(default_factory=lambda: _NOBODY)
    count: Ints = field(default_factory=lambda: _NOBODY)

    def stops(self) -> list[Stop]:
        """One by one."""
        times = [None] * self.stop.size if self.at is None else self.at.tolist()
        return [Stop(job, at=time) for job, time in zip(self.stop.tolist(), times, strict=True)]

    def starts(self) -> list[Start]:
        """One by one."""
        on = list(zip(self.node.tolist(), self.count.tolist(), strict=True))
        ends = self.first.tolist()
        return [Start(job, on=tuple(on[ends[i] : ends[i + 1]])) for i, job in enumerate(self.start.tolist())]


Decision = Start | Stop | Wake | Moves
