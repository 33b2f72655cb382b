"""`Run`: what a policy made of an instance, with the conservation checks that every run passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from optsched.errors import SimulationError
from optsched.problem.arrays import Floats, Ints
from optsched.problem.html import html_of, number
from optsched.problem.instance import Instance
from optsched.problem.objectives import objective_of
from optsched.problem.schedule import Schedule
from optsched.problem.table import Table
from optsched.simulation.metrics import metrics
from optsched.simulation.policy import Knowledge
from optsched.simulation.records import NOBODY
from optsched.simulation.schedule_tables import jobs_table, segments_table
from optsched.simulation.state import FREE, SIZE, State, pools

CONSERVED = 1e-9  # relative: segments of one job add up to its duration except for rounding


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """The result of a simulation.

    ``predicted`` f64[n]: what the policy's predictor said at every arrival (None: it has none). ``notes``: what the
    policy wrote down for audits, arrays over all jobs; those named in ``noted_times`` are times. ``events`` counts arrivals,
    completions, changes of level and ticks of a policy's own clock; ``seconds`` is CPU time.
    """

    schedule: Schedule
    policy: str
    knowledge: Knowledge
    preemptive: bool
    events: int
    preemptions: int
    seconds: float
    predicted: Floats | None = None
    notes: Mapping[str, Floats] = field(default_factory=dict)
    noted_times: tuple[str, ...] = ()

    def __repr__(self) -> str:
        done, n = int(self.schedule.finished.sum()), self.instance.n
        goal = objective_of(self.instance)
        value = f", {goal.name} {number(self.value())}" if done == n else ""
        return f"{type(self).__name__}({self.policy!r} on {self.instance.name!r}: {done} of {n} jobs finished{value})"

    def _repr_html_(self) -> str:
        return html_of("run", self)

    @property
    def instance(self) -> Instance:
        """What was scheduled."""
        return self.schedule.instance

    @property
    def schedule_class(self) -> str:
        """The class of schedules this run belongs to, for bounds."""
        return "gang" if self.preemptive else "gang-nonpreemptive"

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """See `optsched.simulation.metrics.metrics`."""
        return metrics(self.schedule)

    @cached_property
    def jobs(self) -> Table:
        """A table, one row a job: see `optsched.simulation.schedule_tables.jobs_table`."""
        return jobs_table(self.schedule)

    @cached_property
    def segments(self) -> Table:
        """A table, one row a segment: see `optsched.simulation.schedule_tables.segments_table`."""
        return segments_table(self.schedule)

    @property
    def unfinished(self) -> list[str]:
        """Ids of jobs that did not finish: no placement that the policy allows had room for them."""
        return [self.instance.ids[j] for j in np.flatnonzero(~self.schedule.finished)]

    def value(self, objective: str | None = None) -> float:
        """The value of an objective (default: the instance's own), on the log's clock; nan when a job did not finish.

        Added up counted from the first arrival: no digit is lost to the epoch before the last sum.
        """
        goal, local = objective_of(self.instance, objective), self.schedule.relative
        return goal.of(local.instance, local.completion) + float(goal.clock_part(self.instance))

    @cached_property
    def relative(self) -> Self:
        """This run of `Instance.relative`, as the engine made it: times from the first arrival."""
        if self.instance.epoch == 0:
            return self
        return replace(self, schedule=self.schedule.relative, notes=self._notes_moved(-self.instance.epoch))

    def on_clock(self, instance: Instance) -> Self:
        """This run of ``instance.relative`` on the clock of ``instance``, noted times too."""
        if instance.epoch == 0:
            return self
        run = replace(self, schedule=self.schedule.on_clock(instance), notes=self._notes_moved(instance.epoch))
        run.__dict__["relative"] = self
        return run

    def _notes_moved(self, seconds: float) -> Mapping[str, Floats]:
        return {name: each + seconds if name in self.noted_times else each for name, each in self.notes.items()}


class RunLog(NamedTuple):
    """What is needed of a state whose run has ended: the rest, half of it or more, need not be kept while GPUs are named."""

    world: Any  # WORLD[1]
    left: Floats  # f64[n] units of work of every job
    pools: Ints
    segments: Any  # SEGMENT[]
    parts: Any  # PART[]


def run_log(state: State) -> RunLog:
    """That of a state, which may then go."""
    return RunLog(state.world, state.jobs["left"].copy(), state.pools, state.segments, state.parts)


def schedule_of(run: RunLog, instance: Instance, pooled: bool, policy: str) -> Schedule:
    """The schedule that a log describes, its GPUs named; that of copies in order of their starts."""
    first, _ = pools(instance, pooled)
    log, offset, parts = logged(run, by_start=bool(run.world[0].copies))
    job, start, end, work = (np.ascontiguousarray(log[name]) for name in ("job", "start", "end", "work"))
    pool, count = (run.parts[name][parts].astype(np.int64) for name in ("pool", "count"))
    return Schedule.from_counts(instance, job, start, end, work, offset, pool, count, first, policy)


def logged(run: RunLog, *, by_start: bool = False) -> tuple[Any, Ints, Ints]:
    """(segments that were not taken back, as SEGMENT[S]; offset i64[S + 1] into; the rows of ``run.parts``, i64[K]).

    In the order in which they ended, or of (start, job).
    """
    log = run.segments[: run.world[0].segments]
    if (log["job"] == NOBODY).any():
        log = log[log["job"] != NOBODY]
    if by_start:
        log = log[np.lexsort((log["job"], log["start"]))]
    offset = np.concatenate([[0], np.cumsum(log["entries"])]).astype(np.int64)
    # the parts of what was taken back stand between the others
    return log, offset, np.repeat(log["first"] - offset[:-1], log["entries"]) + np.arange(offset[-1])


def check_conservation(log: RunLog, schedule: Schedule) -> None:
    """Raise `SimulationError` unless work and GPUs were conserved: the engine's own check after every run.

    Every job received what it asked for, or exactly what its remaining work says is missing; all GPUs came back. (That no
    GPU is given twice was shown when they were named.) The referee, `optsched.check.referee`, is a second opinion.
    """
    instance = schedule.instance
    missing = np.abs(schedule.received + log.left - instance.work)
    wrong = np.flatnonzero(missing > CONSERVED * np.maximum(1.0, instance.work))
    if wrong.size:
        j = int(wrong[0])
        raise SimulationError(f"job {instance.ids[j]!r}: {missing[j]:g} units of work were lost or invented")
    w = log.world[0]
    if w.active != 0 or w.free != instance.cluster.gpus or (log.pools[FREE] != log.pools[SIZE]).any():
        raise SimulationError("GPUs are still held after the last event")


def result(
    log: RunLog,
    instance: Instance,
    pooled: bool,
    name: str,
    knowledge: Knowledge,
    preemptive: bool,
    **told: Any,
) -> Run:
    """The `Run` of a run that has ended, after its conservation checks; ``told``: its ``predicted`` and ``notes``."""
    schedule = schedule_of(log, instance, pooled, name)
    check_conservation(log, schedule)
    events, stops = int(log.world[0].events), int(log.world[0].stops)
    return Run(schedule, name, knowledge, preemptive or stops > 0, events, stops, 0.0, **told)
