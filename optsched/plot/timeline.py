"""`Timeline`: what a picture of a schedule needs, from a `Schedule` or from a schedule file alone."""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from optsched.classes import usual_class
from optsched.errors import InputError, check_legal
from optsched.plot.time_axis import number, unit_for
from optsched.problem.arrays import Bools, Floats, Ints
from optsched.problem.cluster import MAX_GPUS, Cluster
from optsched.problem.schedule import Schedule, Scheduled, schedule_in
from optsched.problem.schedule_file import read_segments
from optsched.speeds.duration import segment_paces

TASKS_INSTEAD = "optsched.plot.tasks(run), or the tasks-*.parquet that run -o wrote"
ROUNDING = 1e-9  # relative: shorter gaps and overheads than this are rounding, not waiting
NOBODY, LANES = -1, 2  # in a lane; of the jobs that share a GPU


@dataclass(frozen=True, eq=False)
class Cells:
    """Who is on a GPU with whom: C pieces of rows, cut where a partner comes or goes.

    GPU ``index`` of ``node`` i64[C] from ``left`` to ``right`` f64[C], with the same jobs on it. ``upper``,
    ``lower`` i64[C]: the segments in its two lanes; one of them `NOBODY` where a job is alone.
    """

    node: Ints
    index: Ints
    left: Floats
    right: Floats
    upper: Ints
    lower: Ints

    @property
    def shared(self) -> Bools:
        """Which of them have two jobs, bool[C]."""
        return np.asarray((self.upper != NOBODY) & (self.lower != NOBODY))


@dataclass(frozen=True, eq=False)
class Timeline:
    """Segments on rows of GPUs.

    S segments, K (segment, GPU) pairs, N nodes, n jobs. ``node`` i64[K] is a position in ``node_gpus`` i64[N];
    ``node_names`` are the labels of the nodes. ``arrival`` f64[n] and ``open`` bool[n] (jobs that did not finish) are
    None when only the schedule file is at hand. ``lanes``: jobs that may be on a GPU at once; ``xi``: (kind of every job
    i64[n], slow-down of each kind beside each f64[C, C]), None where it is not known.
    ``window``: what of it is shown, in seconds (None: all of it).
    """

    ids: tuple[str, ...]
    job: Ints
    start: Floats
    end: Floats
    work: Floats
    gpu_offset: Ints
    node: Ints
    index: Ints
    node_gpus: Ints
    node_names: tuple[str, ...]
    arrival: Floats | None
    open: Bools | None
    name: str
    lanes: int = 1
    xi: tuple[Ints, Floats] | None = None
    window: tuple[float, float] | None = None

    @classmethod
    def of(cls, schedule: Drawn, file: str | os.PathLike[str] | None = None, *, residents: bool = False) -> Timeline:
        """The timeline of a schedule, run or solution; `InputError` when a segment cannot be drawn on its cluster.

        ``residents``: at the task level, too: its segments say where jobs are resident, not when they compute.
        """
        if isinstance(schedule, Timeline):
            return schedule
        schedule = schedule_in(schedule)
        instance, cluster = schedule.instance, schedule.instance.cluster
        if not (residents or usual_class(instance).whole):
            message = "jobs share GPUs at the task level: a chart of gangs cannot show that"
            raise InputError(message, file=file, legal=TASKS_INSTEAD)
        s = schedule
        _check_segments(s.start, s.end, s.work, s.gpu_node, s.gpu_index, s.gpu_offset, file)
        outside = s.gpu_node >= cluster.node_count
        outside |= s.gpu_index >= cluster.node_gpus[np.where(outside, 0, s.gpu_node)]
        _refuse(np.flatnonzero(outside), s.gpu_offset, f"a GPU that the cluster {cluster.spec} does not have", file)
        lanes = 1 if s.sub_steps is None and usual_class(instance).whole else LANES
        # Slowed by a partner is not the same as held without progress.
        alone = lanes == 1
        seconds = s.work * segment_paces(instance, s.job, s.gpu_offset, s.gpu_node) if alone else s.end - s.start
        still_open = ~s.finished & np.isfinite(instance.work)
        xi = None
        if not alone and instance.interference is not None:
            kinds = list(dict.fromkeys(instance.kinds))
            xi = np.array([kinds.index(kind) for kind in instance.kinds]), instance.interference.table(kinds)
        return cls(
            instance.ids,
            *(s.job, s.start, s.end, seconds, s.gpu_offset, s.gpu_node, s.gpu_index),
            *(cluster.node_gpus, node_names(cluster), instance.arrival, still_open),
            heading(s.policy, instance.name, instance.n, cluster.gpus),
            *(lanes, xi),
        )

    @classmethod
    def read(cls, path: str | os.PathLike[str], digest: str) -> Timeline:
        """The timeline of a schedule file alone: the jobs, nodes and GPUs that appear in it, without arrivals."""
        seen: defaultdict[str, int] = defaultdict(itertools.count().__next__)
        job, start, end, work, offset, node, index, policy, steps = read_segments(path, digest, seen)
        lanes = 1 if steps is None else LANES
        seconds = np.minimum(work, end - start) if steps is None else end - start
        _check_segments(start, end, work, node, index, offset, path)
        nodes, position = np.unique(node, return_inverse=True)
        node_gpus = np.zeros(nodes.size, dtype=np.int64)
        np.maximum.at(node_gpus, position, index + 1)
        if node_gpus.sum() > MAX_GPUS:
            raise InputError("GPU indices are too large to draw", file=path, value=int(index.max()))
        return cls(
            tuple(str(name) for name in seen),
            *(job, start, end, seconds, offset, position.astype(np.int64), index),
            *(node_gpus, tuple(f"node {k}" for k in nodes), None, None),
            heading(policy, "", len(seen), int(node_gpus.sum())),
            lanes=lanes,
        )

    def within(self, start: float | None, end: float | None) -> Timeline:
        """What happens between two times, seconds of its clock; None: from its beginning, to its end.

        Raises `InputError` for a window that is empty, or in which nothing lies.
        """
        if start is None and end is None:
            return self
        first, last = self.span
        low, high = first if start is None else float(start), last if end is None else float(end)
        if not (low < high and low < last and high > first):
            legal = f"start < end, seconds, in part within {first:.10g} .. {last:.10g}"
            raise InputError("nothing to show", field="start, end", value=(low, high), legal=legal)
        unit = unit_for(high - low)
        seen = (self.start < high) & (self.end > low)
        held = np.repeat(seen, np.diff(self.gpu_offset))
        shown = replace(
            self,
            **{field: getattr(self, field)[seen] for field in ("job", "start", "end", "work")},
            gpu_offset=np.concatenate([[0], np.cumsum(np.diff(self.gpu_offset)[seen])]).astype(np.int64),
            node=self.node[held],
            index=self.index[held],
            name=f"{self.name}, {number(low / unit.seconds)} to {number(high / unit.seconds)} {unit.name}",
            window=(low, high),
        )
        job, since, until = self.waits  # who waits is seen from all segments
        seen = (since < high) & (until > low)
        shown.__dict__["waits"] = job[seen], np.maximum(since[seen], low), np.minimum(until[seen], high)
        return shown

    @property
    def gpus(self) -> int:
        """GPUs of all nodes."""
        return int(self.node_gpus.sum())

    @property
    def span(self) -> tuple[float, float]:
        """First and last instant worth showing, seconds: from 0 or the first event to the end of the last segment."""
        if self.window is not None:
            return self.window
        ends = [float(self.end.max())] if self.end.size else []
        starts = [float(self.start.min())] if self.start.size else []
        if self.arrival is not None and self.arrival.size:
            starts.append(float(self.arrival.min()))
            ends.append(float(self.arrival.max()))
        low, high = min(starts, default=0.0), max(ends, default=1.0)
        # A clock that starts within the picture starts at its left edge; a trace cut from the middle of a year does not.
        low = 0.0 if 0 <= low <= 0.25 * high else low
        return low, high if high > low else low + 1.0

    @cached_property
    def overhead(self) -> Floats:
        """Seconds that each segment held its GPUs without progress (a restart), f64[S]; drawn at its start."""
        lost = self.end - self.start - self.work
        return np.where(lost > ROUNDING * np.maximum(1.0, self.end), np.maximum(lost, 0.0), 0.0)

    @cached_property
    def pieces(self) -> tuple[Ints, Ints, Ints]:
        """(segment, node, GPUs there), i64 each: how many GPUs of every node a segment holds."""
        segment = np.repeat(np.arange(self.job.size), np.diff(self.gpu_offset))
        nodes = max(self.node_gpus.size, 1)
        both, count = np.unique(segment * nodes + self.node, return_counts=True)
        return both // nodes, both % nodes, count.astype(np.int64)

    @cached_property
    def held(self) -> tuple[Floats, Floats, Ints, Ints]:
        """(from, to, node, GPUs): when GPUs are held, each of them once, however many jobs are on it. O(K log K)."""
        if self.lanes == 1:
            segment, node, count = self.pieces
            return self.start[segment], self.end[segment], node, count
        segment = np.repeat(np.arange(self.job.size), np.diff(self.gpu_offset))
        gpu = np.tile(self.node * (1 + int(self.index.max(initial=0))) + self.index, 2)
        time, change = np.concatenate([self.start[segment], self.end[segment]]), np.repeat([1, -1], segment.size)
        order = np.lexsort((-change, time, gpu))  # at one moment starts first: a GPU that changes hands stays held
        level = np.cumsum(change[order])  # of every GPU it comes back to 0
        first, last = order[(level == 1) & (change[order] == 1)], order[level == 0]
        return time[first], time[last], np.tile(self.node, 2)[first], np.ones(first.size, dtype=np.int64)

    @cached_property
    def cells(self) -> Cells:
        """Who is on which GPU with whom, where jobs share them."""
        return shared_cells(self.start, self.end, self.gpu_offset, self.node, self.index)

    @cached_property
    def waits(self) -> tuple[Ints, Floats, Floats]:
        """(job, from, to): when a job had arrived and was not running; empty when arrivals are not known.

        A job that did not finish waits until the picture ends.
        """
        if self.arrival is None or self.open is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
        rows = pl.DataFrame({"job": self.job, "start": self.start, "end": self.end}).sort("job", "start", "end")
        free = pl.col("end").cum_max().over("job")  # cum_max: segments of a forked job may overlap
        rows = rows.with_columns(free.alias("until"), free.shift(1).over("job").alias("since"))
        job = rows["job"].to_numpy()
        since = np.fmax(rows["since"].fill_null(np.nan).to_numpy(), self.arrival[job])
        last = np.full(len(self.ids), -np.inf)
        np.maximum.at(last, self.job, self.end)
        late = np.flatnonzero(self.open)
        job = np.concatenate([job, late])
        since = np.concatenate([since, np.maximum(last[late], self.arrival[late])])
        until = np.concatenate([rows["start"].to_numpy(), np.full(late.size, self.span[1])])
        real = until - since > ROUNDING * np.maximum(1.0, until)
        return job[real], since[real], until[real]

    @property
    def waiting(self) -> tuple[Floats, Floats]:
        """How many jobs wait: (times, number from each time on)."""
        _, since, until = self.waits
        one = np.ones(since.size)
        return levels(np.concatenate([since, until]), np.concatenate([one, -one]))

    def first_jobs(self, limit: int | None) -> Bools:
        """Which jobs are the first ``limit`` by arrival (by first start where arrivals are not known), bool[n]."""
        chosen = np.ones(len(self.ids), dtype=bool)
        if limit is None or limit >= chosen.size:
            return chosen
        check_legal(limit >= 1, "limit", limit, "an integer >= 1, or None")
        begun = self.arrival
        if begun is None:
            begun = np.full(chosen.size, np.inf)
            np.minimum.at(begun, self.job, self.start)
        chosen[np.argsort(begun, kind="stable")[limit:]] = False
        return chosen


Drawn = Schedule | Scheduled | Timeline  # what pictures are drawn of


def shared_cells(start: Floats, end: Floats, gpu_offset: Ints, node: Ints, index: Ints) -> Cells:
    """The cells of S segments with K (segment, GPU) pairs, by GPU and time.

    A job takes the first lane that is free, and keeps it; of more than two jobs at once, which is invalid, the last one
    hides the others of its lane. O(K log K).
    """
    segment = np.repeat(np.arange(start.size), np.diff(gpu_offset))
    size = segment.size
    moment = np.concatenate([end[segment], start[segment]])
    pair = np.concatenate([np.arange(size), np.arange(size)])
    starts = np.arange(2 * size) >= size
    real = np.concatenate([end[segment] > start[segment]] * 2)
    order = np.lexsort((pair, starts, moment, index[pair], node[pair]))  # at one moment, ends first
    order = order[real[order]]
    rows: list[tuple[int, int, float, float, int, int]] = []
    lanes, since, here = [NOBODY] * LANES, 0.0, (-1, -1)
    columns = moment[order], segment[pair[order]], starts[order], node[pair[order]], index[pair[order]]
    for now, s, begins, h, g in zip(*(column.tolist() for column in columns), strict=True):
        if (h, g) != here:
            lanes, here = [NOBODY] * LANES, (h, g)
        if now > since and lanes != [NOBODY] * LANES:
            rows.append((h, g, since, now, *lanes))
        if begins:
            lanes[lanes.index(NOBODY) if NOBODY in lanes else LANES - 1] = s
        elif s in lanes:
            lanes[lanes.index(s)] = NOBODY
        since = now
    nodes, indices, left, right, upper, lower = zip(*rows, strict=True) if rows else [()] * 6
    ints = [np.array(column, dtype=np.int64) for column in (nodes, indices, upper, lower)]
    return Cells(ints[0], ints[1], np.array(left, dtype=float), np.array(right, dtype=float), ints[2], ints[3])


def node_names(cluster: Cluster) -> tuple[str, ...]:
    """What a chart calls the nodes: their number, and their GPU type where there is one."""
    types = (cluster.nodes[g].gpu for g in cluster.node_group)
    return tuple(f"node {k}" + ("" if gpu == "GPU" else f" {gpu}") for k, gpu in enumerate(types))


def heading(policy: str, instance: str, jobs: int, gpus: int) -> str:
    """Whose chart it is, and how large."""
    who = " on ".join(filter(None, (policy, instance)))
    size = f"{jobs:,} job{'s' if jobs != 1 else ''}, {gpus:,} GPU{'s' if gpus != 1 else ''}"
    return f"{who}: {size}" if who else size


def _check_segments(start: Floats, end: Floats, work: Floats, node: Ints, index: Ints, offset: Ints, file: Any) -> None:
    by_segment = np.arange(start.size + 1)
    _refuse(np.flatnonzero(~np.isfinite(start + end + work)), by_segment, "a time that is not a finite number", file)
    _refuse(np.flatnonzero(end < start), by_segment, "an end before its start", file)
    _refuse(np.flatnonzero((node < 0) | (index < 0)), offset, "a node or an index below 0", file)


def _refuse(bad: Ints, offset: Ints, what: str, file: Any) -> None:
    if bad.size:
        segment = int(np.searchsorted(offset, bad[0], side="right"))
        raise InputError(f"segment {segment} (of {offset.size - 1}) has {what}: nothing can be drawn", file=file)


# --- step functions of time: how many GPUs are busy, how many jobs wait -------------------------------------------------


def levels(time: Floats, change: Floats) -> tuple[Floats, Floats]:
    """The step function that changes by ``change[k]`` at ``time[k]``: (its times, its value from each on).

    O(m log m); exact for integer changes.
    """
    when, position = np.unique(time, return_inverse=True)
    return when, np.cumsum(np.bincount(position, weights=change, minlength=when.size))


def bin_means(row: Ints, time: Floats, change: Floats, rows: int, start: float, end: float, bins: int) -> Floats:
    """Means of ``rows`` step functions over ``bins`` equal parts of [start, end], f64[rows, bins].

    Function ``row[k]`` changes by ``change[k]`` at ``time[k]``. The mean of a single step over a bin is 0 before the
    bin that holds it, the share of the bin that is left in it, and 1 after: hence two differences a step and one
    running sum, O(m + rows * bins), exact up to rounding whatever the width of a bin.
    """
    place = np.clip((time - start) / (end - start) * bins, 0.0, float(bins))
    at = np.minimum(place.astype(np.int64), bins)
    late = place - at
    width = bins + 2
    difference = np.bincount(row * width + at, weights=change * (1 - late), minlength=rows * width)
    difference += np.bincount(row * width + at + 1, weights=change * late, minlength=rows * width)
    return np.asarray(np.cumsum(difference.reshape(rows, width), axis=1)[:, :bins])
