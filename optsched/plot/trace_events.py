"""Schedules as traces for Perfetto and ``chrome://tracing``: the JSON object form of the Trace Event Format.

A node is a process, a GPU a thread of it, and a job a complete event (``"ph": "X"``) on every GPU of its gang. Counters
(``"ph": "C"``) of a first process hold the busy GPUs and, if the arrivals are known, the queued jobs. Times are whole
microseconds on the clock of the schedule. Jobs that overlap on a GPU have threads of their own, because a viewer nests
what overlaps on one thread.

Source: Trace Event Format, Google 2016, sections "Duration events", "Counter events" and "Metadata events".
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import polars as pl

from optsched.plot.interactive import LABELS
from optsched.plot.timeline import Drawn, Timeline, levels
from optsched.problem.arrays import Floats, Ints
from optsched.problem.atomic_files import write_atomic
from optsched.problem.schedule import schedule_in

CLUSTER = 1  # process of the counters; node h is process h + 2
Event = dict[str, Any]


def save_trace(schedule: Drawn, path: str | os.PathLike[str]) -> None:
    """Write a schedule, or that of a run or solution, as a trace that Perfetto (ui.perfetto.dev) reads.

    Parameters
    ----------
    schedule
        A schedule, a run or a solution.
    path
        File to write; its name should end with ``.trace.json``. It is written atomically.

    Raises
    ------
    InputError
        If a segment is not on the cluster, or the file cannot be written.

    Examples
    --------
    >>> import optsched as osd
    >>> osd.plot.save_trace(osd.simulate("rigid-06-1", "srtf"), "srtf.trace.json")
    """
    write_atomic(path, trace_text(schedule))


def trace_text(schedule: Drawn, *, start: float | None = None, end: float | None = None) -> str:
    """Return the text of a trace, one JSON document.

    Parameters
    ----------
    schedule
        A schedule, a run or a solution.
    start, end
        Window of time, in seconds of the schedule's clock; jobs are cut at its ends.

    Notes
    -----
    Complexity: O(K log K) for K pairs of segment and GPU; about 200 bytes a pair.
    """
    t = Timeline.of(schedule, residents=True).within(start, end)
    events = [*_names(t), *_jobs(schedule, t), *_counters(t)]
    about = {"schedule": t.name, "time": "microseconds on the clock of the schedule"}
    document = {"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}
    return json.dumps(document, separators=(",", ":"), allow_nan=False) + "\n"


def _names(t: Timeline) -> list[Event]:
    events = [_named("process", "cluster", CLUSTER)]
    events.append({"name": "process_sort_index", "ph": "M", "pid": CLUSTER, "args": {"sort_index": -1}})
    events += [_named("process", name, CLUSTER + 1 + h) for h, name in enumerate(t.node_names)]
    number = CLUSTER + t.node_gpus.size + 1
    for h, gpus in enumerate(t.node_gpus.tolist()):
        events += [_named("thread", f"GPU {i}", CLUSTER + 1 + h, number + i) for i in range(gpus)]
        number += gpus
    return events


def _jobs(schedule: Drawn, t: Timeline) -> list[Event]:
    nodes, facts, names = t.node_gpus.size, _facts(schedule, t), [t.ids[j] for j in t.job.tolist()]
    segment = np.repeat(np.arange(t.job.size), np.diff(t.gpu_offset))
    gpu = (np.cumsum(t.node_gpus) - t.node_gpus)[t.node] + t.index  # of all GPUs of the cluster
    begin, finish = (_microseconds(times)[segment] for times in (_cut(t, t.start), _cut(t, t.end)))
    lane = lanes_of(gpu, begin, finish)
    thread = CLUSTER + nodes + 1 + gpu + lane * t.gpus  # no thread has the number of a process
    more = np.unique(np.stack([t.node, thread, t.index, lane + 1])[:, lane > 0], axis=1).T.tolist()
    events = [_named("thread", f"GPU {i}, job {k}", CLUSTER + 1 + h, number) for h, number, i, k in more]
    order = np.lexsort((thread, begin))
    columns = (begin, finish - begin, t.node + CLUSTER + 1, thread, segment)
    for ts, lasts, process, number, s in zip(*(column[order].tolist() for column in columns), strict=True):
        place = {"ts": ts, "dur": lasts, "pid": process, "tid": number}
        events.append({"name": names[s], "cat": "job", "ph": "X", **place, "args": facts[s]})
    return events


def _counters(t: Timeline) -> list[Event]:
    since, until, _, count = t.held
    change = np.append(count, -count).astype(np.float64)
    events = _counter("busy", "GPUs", *levels(np.append(_cut(t, since), _cut(t, until)), change))
    return events if t.arrival is None else events + _counter("queued", "jobs", *t.waiting)


def _cut(t: Timeline, times: Floats) -> Floats:
    return times if t.window is None else np.clip(times, *t.window)


def lanes_of(gpu: Ints, begin: Ints, finish: Ints) -> Ints:
    """Return for every piece the first lane of its GPU that is free when it begins, i64[K].

    Parameters
    ----------
    gpu
        GPU of each piece, i64[K].
    begin, finish
        Times of each piece, i64[K].
    """
    lane = np.zeros(gpu.size, dtype=np.int64)
    order = np.lexsort((finish, begin, gpu))
    same = gpu[order][1:] == gpu[order][:-1]
    if not (same & (begin[order][1:] < finish[order][:-1])).any():
        return lane
    free: dict[int, list[int]] = {}  # of every GPU: the time at which each lane is free
    for k in order.tolist():
        ends = free.setdefault(int(gpu[k]), [])
        lane[k] = next((i for i, end in enumerate(ends) if end <= begin[k]), len(ends))
        ends[lane[k] :] = [int(finish[k]), *ends[lane[k] + 1 :]]
    return lane


def _microseconds(seconds: Floats) -> Ints:
    return np.rint(seconds * 1e6).astype(np.int64)


def _named(kind: str, name: str, process: int, thread: int | None = None) -> Event:
    place = {"pid": process} if thread is None else {"pid": process, "tid": thread}
    return {"name": f"{kind}_name", "ph": "M", **place, "args": {"name": name}}


def _counter(name: str, unit: str, when: Floats, level: Floats) -> list[Event]:
    rows = zip(_microseconds(when).tolist(), level.astype(np.int64).tolist(), strict=True)
    return [{"name": name, "ph": "C", "ts": ts, "pid": CLUSTER, "args": {unit: value}} for ts, value in rows]


def _facts(schedule: Drawn, t: Timeline) -> list[Event]:
    """Return the facts about the job of every segment: GPUs, part of several, restart, arrival, user, group, model."""
    known: dict[str, list[Any]] = {} if t.arrival is None else {"arrival_s": t.arrival.tolist()}
    if not isinstance(schedule, Timeline):
        table = schedule_in(schedule).instance.table
        known |= {name: table[name].cast(pl.String).to_list() for name in LABELS if name in table.columns}
    parts = np.bincount(t.job, minlength=len(t.ids))
    number = np.zeros(t.job.size, dtype=np.int64)
    by_job = np.lexsort((t.start, t.job))
    number[by_job] = np.arange(t.job.size) - (np.cumsum(parts) - parts)[t.job[by_job]] + 1
    facts = []
    columns = (t.job, np.diff(t.gpu_offset), number, t.overhead)
    for j, gpus, part, lost in zip(*(column.tolist() for column in columns), strict=True):
        row: Event = {"gpus": gpus}
        if parts[j] > 1:
            row["part"] = f"{part} of {parts[j]}"
        if lost > 0:
            row["restart_s"] = lost
        facts.append(row | {name: values[j] for name, values in known.items() if values[j] is not None})
    return facts
