"""Records of ``sacct`` become jobs: runs of one job are joined, and rows that are no jobs are left out by reason.

A job is one job id, one element of an array, or one heterogeneous job, whose components start together. Its pieces say
when it held how many GPUs: a piece a run, and a further one where its size changed. The gang is the largest piece and the
duration is such that duration x gang = GPU-seconds held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from optsched.io.traces.slurm_tres import elements_of

RUNNING = ("RUNNING", "SUSPENDED", "COMPLETING", "STOPPED", "CONFIGURING", "SIGNALING", "STAGE_OUT")
WAITING = ("PENDING", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD", "SPECIAL_EXIT")
UNALLOCATED = ("", "None assigned")
# states after which a job runs again only if its next row says so
ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE", "BOOT_FAIL")
AGAIN = "#"  # in the name of a job whose id was given again: 9#2 is the second job 9
REQUEUE_DELAY = 121  # seconds from a requeue to the moment from which the job may start again

Piece = tuple[float, float, int]  # start, end, GPUs


@dataclass(slots=True)
class SlurmRun:
    """One row of a job: what one component of it did from one submission to the next.

    ``row`` is its position among the records, ``component`` that of a heterogeneous job; seconds; ``held`` counts GPUs (or
    CPUs or nodes); ``released`` is the largest end of the run and of its steps.
    """

    row: int
    name: str
    component: int
    submit: float
    eligible: float | None
    start: float | None
    end: float | None
    state: str
    held: int
    allocated: bool
    released: float | None = None
    suspended: float = 0.0
    restarts: int = 0
    reason: str = ""
    walltime: float | None = None
    nodes: str = ""
    types: frozenset[str] = frozenset()
    user: str = ""

    @property
    def held_back(self) -> float:
        """Seconds from the submission to the moment from which it could start; 0 if it was submitted by a requeue."""
        later = 0.0 if self.eligible is None else self.eligible - self.submit
        return 0.0 if later == REQUEUE_DELAY else later

    def goes_on_from(self, before: SlurmRun) -> bool:
        """Return True if it is a further run of the job of an earlier run, and not of another job with the same id.

        Parameters
        ----------
        before
            The run of this id and component that was submitted before it.
        """
        if self.user and before.user and self.user != before.user:
            return False
        requeued = self.restarts > before.restarts or self.eligible == self.submit + REQUEUE_DELAY
        return requeued or before.state not in ENDED


@dataclass(slots=True)
class SlurmJob:
    """All runs of one job, in the order of their submissions."""

    name: str
    runs: list[SlurmRun] = field(default_factory=list)

    @property
    def last(self) -> list[SlurmRun]:
        """The last run of each component."""
        return list({run.component: run for run in self.runs}.values())

    @property
    def status(self) -> str:
        """Final state of the first component."""
        return min(self.last, key=lambda run: run.component).state

    @property
    def widest(self) -> SlurmRun:
        """The run that held most; the first of several."""
        return max(self.runs, key=lambda run: run.held if run.allocated else -1)

    @property
    def walltime(self) -> float | None:
        """Limit of the last run in seconds."""
        limits = [run.walltime for run in self.last]
        return None if None in limits else max(limit for limit in limits if limit is not None)

    @property
    def suspended(self) -> float:
        """Seconds for which it was suspended, of the component for which they are most."""
        seconds: dict[int, float] = {}
        for run in self.runs:
            if run.allocated:
                seconds[run.component] = seconds.get(run.component, 0.0) + run.suspended
        return max(seconds.values(), default=0.0)

    @property
    def types(self) -> tuple[str, ...]:
        """Types of the GPUs that it held, where the log states them."""
        return tuple(sorted({kind for run in self.runs if run.allocated for kind in run.types}))

    @property
    def is_requeued_unseen(self) -> bool:
        """True if the job ran before, in runs that the export does not show."""
        first = self.runs[0]
        runs = sum(run.component == first.component and run.state != "RESIZING" for run in self.runs)
        if first.restarts or any(run.restarts for run in self.runs):
            return max(run.restarts for run in self.runs) > runs - 1
        delayed = first.eligible is not None and first.eligible - first.submit == REQUEUE_DELAY
        return delayed and first.reason in ("BeginTime", "")

    def reason_to_leave_out(self, unit: str) -> str:
        """Return why the job is no job of an instance; '' if it is one.

        Parameters
        ----------
        unit
            ``gpu``, ``cpu`` or ``node``.
        """
        last, ran = self.last, [run for run in self.runs if run.allocated]
        if any(run.state in WAITING for run in last):
            if any(run.reason.startswith("Partition") for run in last):
                return "waiting, fits no partition"
            return "waiting again after a requeue" if ran else "still waiting"
        if not ran:
            if self.status == "FAILED":
                return "refused at submission"
            if last[0].eligible is None:
                return "never eligible"
            return "cancelled before it started" if self.status == "CANCELLED" else "never allocated"
        if not any(run.held for run in ran):
            return f"no {unit.upper() if unit != 'node' else 'node'}s"
        if any(run.state in RUNNING for run in last):
            return "still running at the export"
        return "" if any(pieces_held(self.runs)) else "held its resources for less than a second"

    def reason_not_pending(self, unit: str) -> str:
        """Return why the job is no job that waits for resources, with a limit; '' if it is one.

        Parameters
        ----------
        unit
            ``gpu``, ``cpu`` or ``node``.
        """
        if not all(run.state in WAITING for run in self.last):
            return "not waiting at the end of the export"
        if any(run.state != "PENDING" or run.reason.startswith("JobHeld") for run in self.last):
            return "held"
        if self.walltime is None:
            return "no time limit"
        return "" if any(run.held for run in self.last) else f"no {unit.upper() if unit != 'node' else 'node'}s"

    @property
    def count(self) -> int:
        """Number of jobs that it stands for: the elements of an array that waits."""
        return max(elements_of(run.name) for run in self.runs)


def joined(runs: Iterable[SlurmRun]) -> list[SlurmJob]:
    """Return the jobs, in the order of their first rows, with their runs put right.

    A row that repeats another, of two exports in one file, counts once. Slurm gives an id again when its counter starts
    again: the runs after one that ended for good are another job, named ``9#2``. The run after a change of size begins at
    the change, whatever its ``Start`` says. A run ends before the next one of its component begins.

    Parameters
    ----------
    runs
        Runs in the order of the records.
    """
    jobs: dict[str, SlurmJob] = {}
    for run in runs:
        jobs.setdefault(run.name, SlurmJob(run.name)).runs.append(run)
    parts = [part for job in jobs.values() for part in (_apart(job) if len(job.runs) > 1 else [job])]
    for job in parts:
        for component in {run.component for run in job.runs} if len(job.runs) > 1 else ():
            _put_right([run for run in job.runs if run.component == component])
    return parts


def _apart(job: SlurmJob) -> list[SlurmJob]:
    """Return the jobs that had an id, one after the other."""
    parts: list[SlurmJob] = []
    before: dict[int, SlurmRun] = {}
    for run in sorted(_once(job.runs), key=lambda run: (run.submit, run.row)):
        ended = run.component in before and not run.goes_on_from(before[run.component])
        if ended or not parts:
            parts.append(SlurmJob(job.name + (f"{AGAIN}{len(parts) + 1}" if parts else "")))
            before = {}
        parts[-1].runs.append(run)
        before[run.component] = run
    return parts


def _once(runs: Sequence[SlurmRun]) -> list[SlurmRun]:
    kept: dict[tuple[int, float, float | None], SlurmRun] = {}
    for run in runs:
        key = run.component, run.submit, run.start
        if key not in kept or kept[key].end is None or run.end is not None:
            kept[key] = run
    started = {(component, submit) for component, submit, start in kept if start is not None}
    return [run for key, run in kept.items() if run.start is not None or key[:2] not in started]


def _put_right(runs: Sequence[SlurmRun]) -> None:
    for before, run in pairwise(runs):
        if before.state == "RESIZING" and before.end is not None and run.start is not None:
            run.start = max(run.start, before.end)
        if run.start is not None and before.end is not None and before.released is not None and run.start >= before.end:
            before.released = min(before.released, run.start)


def pieces_held(runs: Sequence[SlurmRun]) -> Iterator[Piece]:
    """Yield the pieces of a job in order: components that ran at the same time are added up.

    Parameters
    ----------
    runs
        Its runs.
    """
    changes: Counter[float] = Counter()
    for run in runs:
        end = run.released if run.released is not None else run.end
        if run.allocated and run.held and run.start is not None and end is not None and end > run.start:
            changes[run.start] += run.held
            changes[end] -= run.held
    begin, size = 0.0, 0
    for moment in sorted(moment for moment, change in changes.items() if change):
        if size:
            yield begin, moment, size
        begin, size = moment, size + changes[moment]
