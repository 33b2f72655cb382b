"""The decisions that a policy in plain Python yields: starts, stops and times at which it is asked again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from optsched.problem.arrays import Floats, Ints

_NOBODY = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Start:
    """Start (or resume) a job on the GPUs that the placement chooses, or on those that the policy gives.

    A policy that gives ``on``, ``gpus`` or ``work`` declares the means for it in its ``uses``. Without ``on`` and
    ``gpus`` the placement chooses among idle GPUs.

    Attributes
    ----------
    job
        Index of the job.
    on
        (node, GPUs there) for every node that the job uses, g_j GPUs in all. A policy that uses widths may give another
        number of GPUs.
    gpus
        The g_j GPUs as (node, index), each with at most one other job (sharing).
    option
        Index of the sub-batch with which the job runs on ``gpus`` (sharing).
    work
        If given, the job starts a copy that does at most this number of units of the job's work. Other copies may run
        on other nodes at the same time; a `Stop` stops all of them (copies).
    """

    job: int
    on: tuple[tuple[int, int], ...] | None = None
    gpus: Sequence[tuple[int, int]] | None = None
    option: int = 0
    work: float | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """Preempt a running job, which keeps the work that it has done.

    Attributes
    ----------
    job
        Index of the job.
    at
        If given, the job stops at this time (seconds since the first arrival, later than now), unless it ends or is
        stopped before; the policy is not asked at that time. Another stop of the job replaces a planned one.
    """

    job: int
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Wake:
    """Ask the policy again at ``time`` even if nothing happens until then.

    Attributes
    ----------
    time
        Seconds since the first arrival, later than now.
    """

    time: float


@dataclass(frozen=True, slots=True, eq=False)
class Moves:
    """Many stops, then many starts, as arrays: the same as a list of decisions, in less time.

    A policy that starts jobs in this way declares that it uses nodes. Arrays of other types or shapes, and a move that
    is not possible, raise a `SimulationError` that says which one. Complexity O(jobs and entries).

    Attributes
    ----------
    stop
        Jobs that stop, i64[]: all of them now, or at the times ``at``.
    at
        Times of the stops, f64[stop], in seconds since the first arrival and later than now; None for now.
    start
        Jobs that start, i64[k]; job ``start[i]`` starts on ``count[e]`` GPUs of ``node[e]``, first[i] <= e < first[i +
        1].
    first
        Where the entries of every start begin, i64[k + 1].
    node
        Node of every entry, i64[].
    count
        GPUs of every entry, i64[].
    work
        Units of work of every start, f64[k], if the starts are copies (`Start.work`), else None.
    """

    stop: Ints = field(default_factory=lambda: _NOBODY)
    at: Floats | None = None
    start: Ints = field(default_factory=lambda: _NOBODY)
    first: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    node: Ints = field(default_factory=lambda: _NOBODY)
    count: Ints = field(default_factory=lambda: _NOBODY)
    work: Floats | None = None

    def stops(self) -> list[Stop]:
        """Return the stops as a list of single decisions."""
        times = [None] * self.stop.size if self.at is None else self.at.tolist()
        return [Stop(job, at=time) for job, time in zip(self.stop.tolist(), times, strict=True)]

    def starts(self) -> list[Start]:
        """Return the starts as a list of single decisions."""
        on = list(zip(self.node.tolist(), self.count.tolist(), strict=True))
        ends, work = self.first.tolist(), [None] * self.start.size if self.work is None else self.work.tolist()
        jobs = zip(self.start.tolist(), work, strict=True)
        return [Start(job, on=tuple(on[ends[i] : ends[i + 1]]), work=part) for i, (job, part) in enumerate(jobs)]


Decision = Start | Stop | Wake | Moves
