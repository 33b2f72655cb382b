"""`Run`: the result of a policy on an instance, one type per class of schedules, and the checks of every run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from optsched.classes import NONPREEMPTIVE, PREEMPTIVE
from optsched.errors import SimulationError
from optsched.problem.arrays import Floats, Ints
from optsched.problem.gpu_names import node_first
from optsched.problem.html import html_of, number
from optsched.problem.instance import Instance
from optsched.problem.objectives import objective_of
from optsched.problem.schedule import Schedule, SharedSchedule, completion_of, received_of
from optsched.problem.table import Table
from optsched.registry import PartsByClass
from optsched.simulation.colocation import ColocationContext
from optsched.simulation.metrics import jobs_table, metrics, segments_table
from optsched.simulation.policy import Knowledge
from optsched.simulation.records import FREE, NOBODY, SIZE
from optsched.simulation.state import State, pools
from optsched.speeds.partner_rates import SharingRates

CONSERVED = 1e-9  # relative: segments of one job add up to its duration except for rounding


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """The result of a simulation.

    Attributes
    ----------
    schedule
        The schedule.
    policy
        Name of the policy.
    knowledge
        What the policy could ask; ``NOT_STATED`` if no policy of optsched made the schedule.
    preemptive
        Whether the schedule, or the policy's rule, is preemptive.
    events
        Number of arrivals, completions, changes of level and ticks of the policy's own clock.
    preemptions
        Number of preemptions.
    seconds
        CPU time of the run.
    predicted
        Lengths that the policy's predictor gave at every arrival, f64[n]; None if it has none.
    notes
        Arrays over all jobs that the policy kept for audits, by name.
    noted_times
        Names of those notes that are times.
    """

    schedule: Schedule
    policy: str
    knowledge: Knowledge | str
    preemptive: bool
    events: int
    preemptions: int
    seconds: float
    predicted: Floats | None = None
    notes: Mapping[str, Floats] = field(default_factory=dict)
    noted_times: tuple[str, ...] = ()
    always_preempts: ClassVar[bool] = False  # whatever the policy did?

    def __repr__(self) -> str:
        done, n = int(self.schedule.finished.sum()), self.instance.n
        goal = objective_of(self.instance)
        value = f", {goal.name} {number(self.value())}" if done == n else ""
        return f"{type(self).__name__}({self.policy!r} on {self.instance.name!r}: {done} of {n} jobs finished{value})"

    def _repr_html_(self) -> str:
        return html_of("run", self)

    @property
    def instance(self) -> Instance:
        """The instance of the schedule."""
        return self.schedule.instance

    @property
    def schedule_class(self) -> str:
        """The class of schedules that this run belongs to, for bounds."""
        return gang_class(self.preemptive)

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """Metrics by name (`optsched.simulation.metrics.metrics`)."""
        return metrics(self.schedule)

    @cached_property
    def jobs(self) -> Table:
        """A table with one row a job (`optsched.simulation.metrics.jobs_table`)."""
        return jobs_table(self.schedule)

    @cached_property
    def segments(self) -> Table:
        """A table with one row a segment (`optsched.simulation.metrics.segments_table`)."""
        return segments_table(self.schedule)

    @property
    def unfinished(self) -> list[str]:
        """Ids of jobs that did not finish: no placement that the policy allows was ever possible."""
        return [self.instance.ids[j] for j in np.flatnonzero(~self.schedule.finished)]

    def value(self, objective: str | None = None) -> float:
        """Return the value of an objective on the log's clock; nan if a job did not finish.

        The sum is computed in times from the first arrival, so that the epoch of the log costs no digit before the last
        addition.

        Parameters
        ----------
        objective
            Name of the objective (default: the instance's own).
        """
        goal, local = objective_of(self.instance, objective), self.schedule.relative
        return goal.of(local.instance, local.completion) + float(goal.clock_part(self.instance))

    def counted(self) -> Self:
        """Return the same run with ``preemptions`` as its class of schedules counts them."""
        return self

    @cached_property
    def relative(self) -> Self:
        """The run on `Instance.relative`, as the engine made it: times are counted from the first arrival."""
        if self.instance.epoch == 0:
            return self
        return replace(self, schedule=self.schedule.relative, notes=self._notes_moved(-self.instance.epoch))

    def on_clock(self, instance: Instance) -> Self:
        """Return this run of ``instance.relative`` on the clock of ``instance``, with noted times moved, too.

        Parameters
        ----------
        instance
            The instance whose clock is used.
        """
        if instance.epoch == 0:
            return self
        run = replace(self, notes=self._notes_moved(instance.epoch), schedule=self.schedule.on_clock(instance))
        run.__dict__["relative"] = self
        return run

    def _notes_moved(self, seconds: float) -> Mapping[str, Floats]:
        return {name: each + seconds if name in self.noted_times else each for name, each in self.notes.items()}


def gang_class(preemptive: bool) -> str:
    """Return the class of a schedule of rigid gangs alone on their GPUs.

    Parameters
    ----------
    preemptive
        Whether the schedule, or the policy's rule, is preemptive.
    """
    return PREEMPTIVE if preemptive else NONPREEMPTIVE


class RunLog(NamedTuple):
    """The part of the state that is needed after a run has ended.

    The rest of the state, half of it or more, need not be kept while GPUs get their names.
    """

    engine: Any  # ENGINE[1]
    left: Floats  # f64[n] units of work of every job
    pools: Ints
    segments: Any  # SEGMENT[]
    parts: Any  # PART[]


def run_log(state: State) -> RunLog:
    """Return the part of a state that is needed after the run; the state may then be deleted.

    Parameters
    ----------
    state
        State of a run that has ended.
    """
    return RunLog(state.engine, state.jobs["left"].copy(), state.pools, state.segments, state.parts)


def schedule_of(run: RunLog, instance: Instance, pooled: bool, policy: str) -> Schedule:
    """Return the schedule that a log describes, with GPUs named; segments of copies are in order of their starts.

    Parameters
    ----------
    run
        Log of a run that has ended.
    instance
        Jobs and a cluster.
    pooled
        Whether alike nodes were one pool.
    policy
        Name of the policy.
    """
    first, _ = pools(instance, pooled)
    log, offset, parts = logged(run, by_start=bool(run.engine[0].copies))
    job, start, end, work = (np.ascontiguousarray(log[name]) for name in ("job", "start", "end", "work"))
    pool, count = (run.parts[name][parts].astype(np.int64) for name in ("pool", "count"))
    return Schedule.from_counts(instance, job, start, end, work, offset, pool, count, first, policy)


def shared_schedule_of(
    run: RunLog, colocation: ColocationContext, instance: Instance, rates: SharingRates, policy: str
) -> SharedSchedule:
    """Return the schedule that a log describes if jobs share GPUs, which then have names.

    Parameters
    ----------
    run
        Log of a run that has ended.
    colocation
        The jobs on every GPU at the end of the run.
    instance
        Jobs and a cluster.
    rates
        Slow-downs and sub-steps of jobs that share GPUs.
    policy
        Name of the policy.

    Raises
    ------
    SimulationError
        A GPU is still held.
    """
    gpus = colocation.neighbours.gpus
    if gpus["jobs"].any() or (gpus["one"] >= 0).any() or (gpus["other"] >= 0).any():
        raise SimulationError("GPUs are still held after the last event")
    log, offset, parts = logged(run, by_start=True)
    job, gpu = np.ascontiguousarray(log["job"]), run.parts["pool"][parts]
    first = node_first(instance)
    node = np.searchsorted(first, gpu, side="right") - 1
    start, end, work = (np.ascontiguousarray(log[field]) for field in ("start", "end", "work"))
    steps = rates.steps[job, log["option"]]
    return SharedSchedule(instance, job, start, end, work, offset, node, gpu - first[node], policy, steps)


def logged(run: RunLog, *, by_start: bool = False) -> tuple[Any, Ints, Ints]:
    """Return the segments of a log that were not taken back, and where their GPUs are.

    Parameters
    ----------
    run
        Log of a run that has ended.
    by_start
        Sort by (start, job) instead of the order of ends.

    Returns
    -------
    tuple
        Segments, SEGMENT[S]; offsets i64[S + 1] into the third array; rows of ``run.parts``, i64[K].
    """
    log = run.segments[: run.engine[0].segments]
    if (log["job"] == NOBODY).any():
        log = log[log["job"] != NOBODY]
    if by_start:
        log = log[np.lexsort((log["job"], log["start"]))]
    offset = np.concatenate([[0], np.cumsum(log["entries"])]).astype(np.int64)
    # the parts of what was taken back lie between the others
    return log, offset, np.repeat(log["first"] - offset[:-1], log["entries"]) + np.arange(offset[-1])


def completions(log: RunLog, instance: Instance) -> Floats:
    """Return the completion times of a run of jobs alone on their GPUs, f64[n]; nan for a job that did not finish.

    They are those of `schedule_of`. The engine's own checks are made.

    Parameters
    ----------
    log
        Log of a run that has ended.
    instance
        Jobs and a cluster.
    """
    segments, _, _ = logged(log, by_start=bool(log.engine[0].copies))
    received = received_of(instance, segments["job"], segments["work"])
    check_conservation(log, instance, received)
    return completion_of(instance, segments["job"], segments["end"], received)


def check_conservation(log: RunLog, instance: Instance, received: Floats) -> None:
    """Check that work and GPUs were conserved: the engine's own check after every run.

    Every job received what it asked for, or exactly what its remaining work says is missing; all GPUs were returned.
    (The naming of GPUs has shown before that no GPU is given twice.) The referee, `optsched.check.referee`, is a second
    opinion.

    Parameters
    ----------
    log
        Log of a run that has ended.
    instance
        Jobs and a cluster.
    received
        Work that every job received, f64[n].

    Raises
    ------
    SimulationError
        Work was lost or invented, or a GPU is still held.
    """
    missing = np.abs(received + log.left - instance.work)
    wrong = np.flatnonzero(missing > CONSERVED * np.maximum(1.0, instance.work))
    if wrong.size:
        j = int(wrong[0])
        raise SimulationError(f"job {instance.ids[j]!r}: {missing[j]:g} units of work were lost or invented")
    w = log.engine[0]
    if w.active != 0 or w.free != instance.cluster.gpus or (log.pools[FREE] != log.pools[SIZE]).any():
        raise SimulationError("GPUs are still held after the last event")


def result(
    log: RunLog, schedule: Schedule, knowledge: Knowledge, preemptive: bool, kind: type[Run] = Run, **kept: Any
) -> Run:
    """Return the `Run` of a run that has ended, after its conservation checks.

    Parameters
    ----------
    log
        Log of the run.
    schedule
        The schedule that was made of it.
    knowledge
        What the policy could ask.
    preemptive
        Whether the policy's rule is preemptive; a run with stops is preemptive in any case.
    kind
        Type of the run.
    **kept
        Further fields of the run, such as ``predicted`` and ``notes``.
    """
    check_conservation(log, schedule.instance, schedule.received)
    events, stops = int(log.engine[0].events), int(log.engine[0].stops)
    preemptive = preemptive or stops > 0 or kind.always_preempts
    return kind(schedule, schedule.policy, knowledge, preemptive, events, stops, 0.0, **kept).counted()


# --- what classes of schedules add ------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RunKind:
    """The way in which runs of a class of schedules come about; the folder of the class registers its own.

    Attributes
    ----------
    run
        The type of its runs.
    facts
        Function of (policy, instance) that returns further fields of such a run.
    rates
        Function of (instance, name of the policy) that returns the costs of sharing GPUs; None if jobs hold their GPUs
        alone.
    engine
        Function that replays an instance, called as `optsched.simulation.engine.run_policy`; None for that function.
    """

    run: type[Run] = Run
    facts: Callable[[Any, Instance], dict[str, Any]] = lambda policy, instance: {}
    rates: Callable[[Instance, str], SharingRates | None] = lambda instance, name: None
    engine: Callable[..., Run] | None = None


RUNS: PartsByClass[RunKind] = PartsByClass("optsched.simulation", RunKind())
