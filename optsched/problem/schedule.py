"""`Schedule`: who ran where, when, and how much work it did. The only output of everything that schedules."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from optsched.errors import InputError, naming
from optsched.problem.arrays import Floats, Ints
from optsched.problem.gpu_names import assign_gpus, node_first
from optsched.problem.html import html_of
from optsched.problem.instance import Instance, Source, instance_of
from optsched.problem.schedule_file import Segments, read_file, segments_in, starts_in, write_segments

MEETING = 4  # units in the last place between a completion and a start that mean the same moment
JOBS_PER_GPU = 2  # at most, where they share
FINISHED = 1e-9  # relative: a job whose summed work misses what it asks for by rounding alone has finished


@dataclass(frozen=True, slots=True)
class Segment:
    """A job on its gang for a while: ``gpus`` as (node, index) pairs, times in seconds, ``work`` as in `Instance.work`.

    The order of the GPUs is the order of the replicas of a job with a profile, stage after stage.
    """

    job: int
    gpus: tuple[tuple[int, int], ...]
    start: float
    end: float
    work: float


@dataclass(frozen=True, eq=False, repr=False)
class Schedule:
    """Segments as a struct of arrays.

    S segments, K (segment, GPU) pairs: ``job`` i64[S], ``start``, ``end``, ``work`` f64[S] seconds, ``gpu_offset``
    i64[S + 1] into ``gpu_node`` and ``gpu_index`` i64[K]. ``work`` in seconds at full speed (less than ``end - start``
    where a restart cost time), or in iterations of a job with a profile, whose replicas sit on its GPUs in their order.
    """

    instance: Instance
    job: Ints
    start: Floats
    end: Floats
    work: Floats
    gpu_offset: Ints
    gpu_node: Ints
    gpu_index: Ints
    policy: str = ""
    stated: ClassVar[str] = ""  # field of its file that says of which class of schedules it is; empty: rigid gangs

    @property
    def sub_steps(self) -> Ints | None:
        """Sub-steps of every segment, i64[S]; None where all batches are whole."""
        return None

    @classmethod
    def from_segments(cls, instance: Source, segments: Iterable[Segment], policy: str = "") -> Self:
        """Return a schedule of segment objects, unchecked: the referee checks it.

        Parameters
        ----------
        instance
            Instance that is scheduled, or the SOURCE that names it.
        segments
            Segments in any order.
        policy
            Name of the policy that made them.
        """
        rows, instance = list(segments), instance_of(instance)
        pairs = [pair for row in rows for pair in row.gpus]
        return cls(
            instance,
            np.array([row.job for row in rows], dtype=np.int64),
            np.array([row.start for row in rows], dtype=np.float64),
            np.array([row.end for row in rows], dtype=np.float64),
            np.array([row.work for row in rows], dtype=np.float64),
            np.cumsum([0, *(len(row.gpus) for row in rows)], dtype=np.int64),
            np.array([node for node, _ in pairs], dtype=np.int64),
            np.array([index for _, index in pairs], dtype=np.int64),
            policy,
        )

    @classmethod
    def from_starts(
        cls,
        instance: Source,
        starts: Mapping[str, Any] | Sequence[Any] | Floats,
        *,
        node_counts: Mapping[int, Sequence[tuple[int, int]]] | None = None,
        duration: Floats | None = None,
        policy: str = "",
    ) -> Schedule:
        """Return the non-preemptive schedule with given starts, with GPUs named.

        A completion that lies a few units in the last place after another job's start is set to that start: times
        such as 0.1 + 0.2 and 0.3 mean the same moment.

        Parameters
        ----------
        instance
            Instance that is scheduled, or the SOURCE that names it.
        starts
            Start of every job in seconds: f64[n] in the order of the instance, or by the id of the job.
        node_counts
            (node, GPUs there) pairs of every job where its nodes are decided; in the order of the replicas if that
            matters; a node may appear several times. None: a gang takes any free GPUs, which needs jobs that may
            use every node.
        duration
            Seconds that every job takes there, f64[n]; None: its own.
        policy
            Name of the method that chose the starts.

        Raises
        ------
        InputError
            If a start or a duration is missing or invalid, or the capacity is exceeded.
        """
        instance = instance_of(instance)
        start = _starts_by_id(instance, starts) if isinstance(starts, Mapping) else _numbers(instance, starts)
        job = np.arange(instance.n, dtype=np.int64)
        end = ends_of(instance, job, start, duration)
        if node_counts is None:
            require_any_gpus(instance)
            first = np.array([0, instance.cluster.gpus], dtype=np.int64)
            offset = np.arange(instance.n + 1, dtype=np.int64)
            pool = np.zeros(instance.n, dtype=np.int64)
            count = instance.gpus
        else:
            first = node_first(instance)
            parts = [node_counts[j] for j in range(instance.n)]
            offset = np.cumsum([0, *(len(part) for part in parts)], dtype=np.int64)
            pool = np.array([node for part in parts for node, _ in part], dtype=np.int64)
            count = np.array([gpus for part in parts for _, gpus in part], dtype=np.int64)
        return cls.from_counts(instance, job, start, end, instance.work, offset, pool, count, first, policy)

    @classmethod
    def from_counts(
        cls,
        instance: Source,
        job: Ints,
        start: Floats,
        end: Floats,
        work: Floats,
        offset: Ints,
        pool: Ints,
        count: Ints,
        pool_first: Ints,
        policy: str = "",
    ) -> Schedule:
        """Return a schedule of segments whose GPUs are known by number a pool, with GPUs named.

        Parameters
        ----------
        instance
            Instance that is scheduled, or the SOURCE that names it.
        job
            Job of every segment, i64[S].
        start
            Starts in seconds, f64[S].
        end
            Ends in seconds, f64[S].
        work
            Units of work done, f64[S].
        offset
            Entries of segment s go from ``offset[s]`` to ``offset[s + 1]``, i64[S + 1].
        pool
            Pool of every entry, i64.
        count
            GPUs of every entry, i64.
        pool_first
            First GPU of every pool, and the number of all GPUs, i64[P + 1].
        policy
            Name of the policy.
        """
        instance = instance_of(instance)
        gpu_offset, gpu, failed = assign_gpus(pool_first, start, end, offset, pool, count)
        if failed >= 0:
            name = instance.ids[int(job[failed])]
            raise InputError(f"job {name!r} does not fit at {start[failed]:g} s: more GPUs in use than there are")
        nodes = instance.cluster.node_gpus
        node = np.repeat(np.arange(nodes.size), nodes)
        index = np.arange(node.size) - node_first(instance)[node]
        return cls(instance, job, start, end, work, gpu_offset, node[gpu], index[gpu], policy)

    def __len__(self) -> int:
        return self.job.size

    def __repr__(self) -> str:
        size = f"{len(self)} segments of {np.unique(self.job).size} jobs"
        return f"{type(self).__name__}({self.policy!r} on {self.instance.name!r}: {size})"

    def _repr_html_(self) -> str:
        return html_of("schedule", self)

    @cached_property
    def gangs(self) -> Ints:
        """GPUs of every segment, i64[S]."""
        return np.diff(self.gpu_offset)

    @cached_property
    def received(self) -> Floats:
        """Work of every job, f64[n] in the units of `Instance.work`."""
        return received_of(self.instance, self.job, self.work)

    @cached_property
    def finished(self) -> npt.NDArray[np.bool_]:
        """Mask of the jobs that received all their work, bool[n]."""
        return _all_received(self.instance, self.received)

    @cached_property
    def completion(self) -> Floats:
        """Completion times C_j in seconds, f64[n]; nan for a job that did not finish."""
        return completion_of(self.instance, self.job, self.end, self.received)

    @cached_property
    def relative(self) -> Self:
        """The same schedule of `Instance.relative`, its times counted from the first arrival; itself where the epoch is 0.

        Of a schedule that was computed it is what was computed; of one that was read, what the clock of the file can hold.
        """
        if self.instance.epoch == 0:
            return self
        read = self._shifted(self.instance.relative, -self.instance.epoch)
        read.__dict__["resolution"] = float(np.spacing(np.abs(self.end).max(initial=0.0)))
        return read

    @cached_property
    def resolution(self) -> float:
        """Seconds by which times may miss what was meant: 0 as computed; else an ulp of the clock that they were read on."""
        return 0.0

    def on_clock(self, instance: Instance) -> Self:
        """Return this schedule of ``instance.relative`` on the clock of the instance, every time rounded to a float.

        Parameters
        ----------
        instance
            Instance with the clock of its log.
        """
        if instance.epoch == 0:
            return self
        placed = self._shifted(instance, instance.epoch)
        placed.__dict__["relative"] = self
        return placed

    def _shifted(self, instance: Instance, seconds: float) -> Self:
        return replace(self, instance=instance, start=self.start + seconds, end=self.end + seconds)

    def save_whole(self, stem: str, **stated: Any) -> None:
        """Write one file that holds everything of the schedule.

        Parameters
        ----------
        stem
            Path without the suffix.
        **stated
            Facts, as of `save`.
        """
        self.save(f"{stem}.json", **stated)

    def save_details(self, folder: Path, stem: str) -> list[Path]:
        """Write what the file of `save` leaves out, and return the new files; none where it holds everything.

        Parameters
        ----------
        folder
            Where files are written.
        stem
            Last part of their names, without the suffix.
        """
        return []

    def segments(self) -> Iterator[Segment]:
        """The segments as objects."""
        for s in range(len(self)):
            span = slice(self.gpu_offset[s], self.gpu_offset[s + 1])
            pairs = zip(self.gpu_node[span].tolist(), self.gpu_index[span].tolist(), strict=True)
            yield Segment(int(self.job[s]), tuple(pairs), float(self.start[s]), float(self.end[s]), float(self.work[s]))

    def save(self, path: str | os.PathLike[str], **stated: Any) -> None:
        """Write a schedule file, whole or not at all.

        Parameters
        ----------
        path
            File to write, ``.json`` or ``.parquet``.
        stated
            Facts that the referee checks: ``objective=``, ``value=``, ``preemptive=``.
        """
        write_segments(path, self._segments(), self.instance.digest, self.instance.table["id"], stated)

    def _segments(self) -> Segments:
        columns = self.job, self.start, self.end, self.work, self.gpu_offset, self.gpu_node, self.gpu_index
        return Segments(*columns, self.policy)

    @classmethod
    def load(cls, path: str | os.PathLike[str], instance: Source) -> Schedule:
        """Read a schedule file.

        A file with ``"sharing": true`` of jobs that are no tasks gives a `SharedSchedule`. A file may have only the
        ``"starts"`` of the jobs (`from_starts`).

        Parameters
        ----------
        path
            File to read.
        instance
            Instance that is scheduled, or the SOURCE that names it.

        Raises
        ------
        InputError
            If the file is not a schedule file, or belongs to another instance.
        """
        instance = instance_of(instance)
        header, rows = read_file(path)
        if rows is None:
            starts = starts_in(header, instance.digest, path)
            with naming(path):
                return cls.from_starts(instance, starts, policy=str(header.get("policy", "")))
        segments = segments_in(header, rows, path, instance.digest, instance.index)
        if segments.steps is None or instance.at_task_level:
            return cls(instance, *segments[:8])
        return SharedSchedule(instance, *segments[:8], segments.steps)


@dataclass(frozen=True, eq=False, repr=False)
class SharedSchedule(Schedule):
    """Segments of different jobs may overlap on a GPU, at most two at a time.

    ``steps`` i64[S]: sub-steps of gradient accumulation in an iteration of the segment (1: the whole batch at once). They
    decide memory and speed (`optsched.problem.scaling`), together with the partners of every moment
    (`optsched.problem.interference`).
    """

    steps: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    stated: ClassVar[str] = "sharing"

    @property
    def sub_steps(self) -> Ints:
        """``steps``."""
        return self.steps

    def save(self, path: str | os.PathLike[str], **stated: Any) -> None:
        """Write a schedule file with ``"sharing": true``, so that the referee checks it as a shared schedule.

        Parameters
        ----------
        path
            File to write, ``.json`` or ``.parquet``.
        stated
            Facts that the referee checks, as for `Schedule.save`.
        """
        super().save(path, **{"sharing": True, "jobs_per_gpu": JOBS_PER_GPU, **stated})

    def _segments(self) -> Segments:
        return super()._segments()._replace(steps=self.steps)


class Scheduled(Protocol):
    """An object with a schedule: a run or a solution."""

    @property
    def schedule(self) -> Schedule | None:
        """Its schedule; None if none was found."""


def schedule_in(what: Schedule | Scheduled) -> Schedule:
    """Return the schedule of a run or a solution, or the schedule itself.

    Parameters
    ----------
    what
        Schedule, run or solution.

    Raises
    ------
    InputError
        For a solution without a schedule, and for anything else.
    """
    found = what if isinstance(what, Schedule) else getattr(what, "schedule", ...)
    if isinstance(found, Schedule):
        return found
    status = getattr(what, "status", "")
    if found is None:
        status = "the model has none" if status == "optimal" else status
        raise InputError(f"no schedule was found: {status}" if status else "no schedule was found", field="schedule")
    legal = "a Schedule, or a run or solution with one"
    raise InputError("not a schedule", field="schedule", value=type(what).__name__, legal=legal)


def _starts_by_id(instance: Instance, starts: Mapping[Any, Any]) -> Floats:
    by_id = {str(job): start for job, start in starts.items()}
    wrong = sorted(by_id.keys() ^ set(instance.ids))
    if wrong:
        what = "no such job" if wrong[0] in by_id else "a job without a start"
        raise InputError(what, field="starts", value=wrong[0], legal="every job of the instance, once")
    return _numbers(instance, [by_id[job] for job in instance.ids])


def _numbers(instance: Instance, starts: Any) -> Floats:
    legal = f"one finite number of seconds for each of {instance.n} jobs"
    try:
        rows = starts if isinstance(starts, np.ndarray) else list(starts)
        for job, start in zip(instance.ids, rows, strict=False):
            if isinstance(start, bool | np.bool_ | str | bytes):  # float() would take them
                raise InputError("not a number", field=f"starts: {job}", value=start, legal="seconds")
        start = np.array(rows, dtype=np.float64)
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError):
        raise InputError("invalid", field="starts", legal=legal) from None
    if start.shape != (instance.n,) or not np.isfinite(start).all():
        raise InputError("invalid", field="starts", legal=legal)
    return start


def ends_of(instance: Instance, job: Ints, start: Floats, duration: Floats | None = None) -> Floats:
    """Return the completions of runs in one piece, f64[S] seconds.

    A completion that lies a few units in the last place after a start is set to that start.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    job
        Job of every run, i64[S].
    start
        Starts in seconds, f64[S].
    duration
        Seconds that every job takes, f64[n]; None: its own.

    Raises
    ------
    InputError
        If the time of a job depends on its placement.
    """
    lasts = instance.duration if duration is None else np.asarray(duration, dtype=np.float64)
    if np.isnan(lasts).any():
        raise InputError("missing: the time of a job depends on its placement", field="duration")
    return _meeting(start, start + lasts[job])


def require_any_gpus(instance: Instance) -> None:
    """Check that every job may use every node, so that starts alone decide a schedule.

    Parameters
    ----------
    instance
        Jobs and a cluster.

    Raises
    ------
    InputError
        If jobs are restricted to some nodes.
    """
    if not instance.unrestricted:
        raise InputError("jobs are restricted to some nodes: say which with node_counts", field="node_counts")


def _meeting(start: Floats, end: Floats) -> Floats:
    """Completions f64[n] moved to the start that they miss by rounding (never to one at or before the job's own)."""
    starts = np.append(np.unique(start), np.inf)
    nearest = starts[np.searchsorted(starts, end - MEETING * np.spacing(np.abs(end)), side="left")]
    return np.where((nearest < end) & (nearest > start), nearest, end)


def received_of(instance: Instance, job: Ints, work: Floats) -> Floats:
    """Return the work that every job received, f64[n] in the units of `Instance.work`.

    Parameters
    ----------
    instance
        Instance that is scheduled.
    job
        Job of every segment, i64[S].
    work
        Units of work done, f64[S].
    """
    return np.bincount(job, weights=work, minlength=instance.n).astype(np.float64, copy=False)


def completion_of(instance: Instance, job: Ints, end: Floats, received: Floats) -> Floats:
    """Return the completion times in seconds, f64[n]; nan for a job that did not finish.

    Parameters
    ----------
    instance
        Instance that is scheduled.
    job
        Job of every segment, i64[S].
    end
        Ends in seconds, f64[S].
    received
        Work that every job received, f64[n].
    """
    last = np.full(instance.n, -np.inf)
    np.maximum.at(last, job, end)
    return np.where(_all_received(instance, received), last, np.nan)


def _all_received(instance: Instance, received: Floats) -> npt.NDArray[np.bool_]:
    return np.asarray(received >= instance.work * (1 - FINISHED))
