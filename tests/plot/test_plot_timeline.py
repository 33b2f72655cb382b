"""Waiting, overhead and pieces of a timeline against their definitions, instant by instant."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from optsched.errors import InputError
from optsched.plot.timeline import Timeline
from optsched.plot.waiting import waiting_curve
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule, Segment

pytestmark = pytest.mark.release


@st.composite
def runs(draw: st.DrawFn) -> Schedule:
    count = draw(st.integers(1, 6))
    numbers = st.integers(0, 12)
    jobs = [
        Job(f"j{k}", arrival=draw(numbers), gpus=draw(st.integers(1, 4)), duration=1 + draw(numbers))
        for k in range(count)
    ]
    policy = draw(st.sampled_from(["fifo", "srtf", "srtf:restart=1", "tiresias+consolidated"]))
    return simulate(Instance(jobs, "2x2"), policy).schedule


@given(runs())
def test_a_job_waits_while_it_has_arrived_is_not_done_and_does_not_run(schedule: Schedule) -> None:
    timeline = Timeline.of(schedule)
    job, since, until = timeline.waits
    edges = np.unique(np.concatenate([schedule.instance.arrival, schedule.start, schedule.end]))
    for t in ((edges[:-1] + edges[1:]) / 2).tolist():
        running = {s.job for s in schedule.segments() if s.start < t < s.end}
        waiting = {
            j
            for j in range(schedule.instance.n)
            if schedule.instance.arrival[j] < t < schedule.completion[j] and j not in running
        }
        drawn = [int(j) for j, a, b in zip(job, since, until, strict=True) if a < t < b]
        assert sorted(drawn) == sorted(waiting)


@given(runs())
def test_pieces_count_the_gpus_of_every_node(schedule: Schedule) -> None:
    expected = {
        (s, node): sum(n == node for n, _ in segment.gpus)
        for s, segment in enumerate(schedule.segments())
        for node in {n for n, _ in segment.gpus}
    }
    segment, node, count = Timeline.of(schedule).pieces
    assert dict(zip(zip(segment.tolist(), node.tolist(), strict=True), count.tolist(), strict=True)) == expected


def test_a_job_that_did_not_finish_waits_until_the_end() -> None:
    jobs = [Job("a", duration=10), Job("b", arrival=2, duration=5), Job("c", arrival=4, duration=9)]
    segments = [Segment(0, ((0, 0),), 0, 10, 10), Segment(2, ((0, 0),), 10, 12, 2), Segment(0, ((0, 0),), 12, 14, 2)]
    timeline = Timeline.of(Schedule.from_segments(Instance(jobs, "1x1"), segments))
    waits = sorted(zip(*(column.tolist() for column in timeline.waits), strict=True))
    assert waits == [(0, 10, 12), (1, 2, 14), (2, 4, 10), (2, 12, 14)]


def test_overlapping_segments_of_one_job_are_not_waiting() -> None:
    segments = [Segment(0, ((0, 0),), 0, 10, 5), Segment(0, ((0, 1),), 2, 4, 2), Segment(0, ((0, 1),), 12, 15, 3)]
    timeline = Timeline.of(Schedule.from_segments(Instance([Job("a", duration=10)], "1x2"), segments))
    assert [column.tolist() for column in timeline.waits] == [[0], [10], [12]]


def test_overhead_is_time_held_without_work_and_not_rounding(gangs: Schedule) -> None:
    assert Timeline.of(gangs).overhead.tolist() == [0, 0, 0, 5]
    third = Segment(0, ((0, 0),), 0.1, 0.1 + 0.2, 0.2)
    inst = Instance([Job("a", duration=0.2)], "1x1")
    assert Timeline.of(Schedule.from_segments(inst, [third])).overhead.tolist() == [0]


def test_the_count_of_waiting_jobs_is_the_sum_of_waits(gangs: Schedule) -> None:
    when, waiting = waiting_curve(Timeline.of(gangs))
    assert when.tolist() == [20, 50, 80]
    assert waiting.tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("segment", "what"),
    [
        (Segment(0, ((0, 0),), 0, math.nan, 5), "not a finite number"),
        (Segment(0, ((0, 0),), 0, math.inf, 5), "not a finite number"),
        (Segment(0, ((0, 0),), 5, 4, 5), "an end before its start"),
        (Segment(0, ((0, -1),), 0, 5, 5), "below 0"),
        (Segment(0, ((-1, 0),), 0, 5, 5), "below 0"),
    ],
)
def test_what_cannot_be_drawn_is_an_error(segment: Segment, what: str) -> None:
    inst = Instance([Job("a", duration=5)], "1x2")
    good = Segment(0, ((0, 0), (0, 1)), 0, 5, 5)
    with pytest.raises(InputError, match=rf"segment 2 \(of 2\) has .*{what}"):
        Timeline.of(Schedule.from_segments(inst, [good, segment]))


@pytest.mark.parametrize(("start", "shown"), [(0, 0), (10, 0), (1_000_000, 1_000_000)])
def test_a_picture_starts_at_zero_unless_that_is_far_away(start: float, shown: float) -> None:
    inst = Instance([Job("a", arrival=start, duration=100)], "1x1")
    assert Timeline.of(Schedule.from_starts(inst, [start])).span == (shown, start + 100)
