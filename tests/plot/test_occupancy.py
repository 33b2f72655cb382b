"""Busy GPUs and waiting jobs over time, timelines, time axes and colours."""

from __future__ import annotations

import math
import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from plot.drawn import words

from optsched.errors import InputError
from optsched.plot.colours import PALETTE, ink_on, job_colours, natural
from optsched.plot.occupancy import BINS, EXACT, occupancy, over_time
from optsched.plot.time_axis import UNITS, TimeLocator, in_unit, number, time_axis, unit_for
from optsched.plot.timeline import Timeline
from optsched.policies.simulate import simulate
from optsched.problem.contention import IterationTasks
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule, Segment

# -- Busy GPUs and waiting jobs over time ---------------------------------------------------------------------------------


pytestmark = pytest.mark.release


def area(ax: Axes, which: int = 0) -> float:
    """Area of a filled curve: the shoelace formula."""
    x, y = np.asarray(ax.collections[which].get_paths()[0].vertices).T
    return abs(float(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1)))) / 2


def test_areas_are_gpu_seconds_and_job_seconds(gangs: Schedule) -> None:
    busy, waiting = occupancy(gangs)
    assert area(busy) == pytest.approx(4 * 100 + 2 * 40 + 30 + 2 * 25)
    assert area(busy, 1) == pytest.approx(2 * 5)  # the restart of b
    assert area(waiting) == pytest.approx(30 + 30)
    assert "peak: 1" in words(waiting.texts)
    assert busy.get_ylabel() == "busy of 8 GPUs"
    assert waiting.get_xlabel() == "time (s)"


def test_large_runs_are_drawn_as_means_and_keep_their_areas() -> None:
    count = EXACT // 2 + 1
    inst = Instance([Job(f"{k}", arrival=k, gpus=1 + k % 2, duration=3) for k in range(count)], "1x4")
    schedule = simulate(inst, "fifo").schedule
    busy, waiting = occupancy(schedule)
    assert len(busy.collections[0].get_paths()[0].vertices) < 5 * BINS
    assert "means of" in busy.get_ylabel()
    assert area(busy) == pytest.approx(float(np.dot(inst.gpus, inst.duration)), rel=1e-6)
    assert area(waiting) == pytest.approx(float((schedule.start - inst.arrival[schedule.job]).sum()), rel=1e-6)


def test_waiting_is_not_drawn_where_arrivals_are_not_known(gangs: Schedule, tmp_path: Path) -> None:
    gangs.save(tmp_path / "s.json")
    alone = Timeline.read(tmp_path / "s.json", gangs.instance.digest)
    [busy] = occupancy(alone)
    assert area(busy) == pytest.approx(560)
    assert busy.get_xlabel() == "time (s)"
    assert busy.get_title(loc="left") == "mine: 3 jobs, 7 GPUs"  # GPU 3 of node 1 never appears


def test_draws_on_axes_that_are_given(gangs: Schedule) -> None:
    ax = Figure().add_subplot()
    assert occupancy(gangs, axes=[ax]) == (ax,)
    with pytest.raises(InputError, match="one or two axes"):
        occupancy(gangs, axes=[])


def test_runs_over_time_have_the_areas_of_their_gpu_seconds_and_job_seconds(gangs: Schedule) -> None:
    def held(line: Line2D) -> float:
        x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        return float(np.dot(np.diff(x), y[:-1]))

    run = simulate("cluster-week", "srtf")
    used, waiting = over_time({"by hand": gangs, "a": run, "b": simulate("cluster-week", "fifo")}).axes
    assert held(used.lines[0]) * 8 == pytest.approx(4 * 100 + 2 * 40 + 30 + 2 * 25, rel=1e-6)
    assert held(waiting.lines[0]) == pytest.approx(60, rel=1e-6)
    hours = run.metrics["gpu_hours"]
    total = (hours["busy"] + hours["overhead"]) * 3600
    assert held(used.lines[1]) * run.instance.cluster.gpus == pytest.approx(total, rel=1e-6)
    queued = run.metrics["mean_queueing"] * run.instance.n
    assert held(waiting.lines[1]) == pytest.approx(queued, rel=1e-6)
    assert "means of" in used.get_ylabel()


def test_runs_at_the_task_level_hold_a_gpu_once() -> None:
    jobs = [Job(name, arrival=1e6, iterations=3, profile="net") for name in ("a", "b")]
    shared = Instance(jobs, "1x2", tasks={"net": IterationTasks(forward=1, backward=2)})
    used, waiting = over_time({"srsf": simulate(shared, "srsf:k=1")}).axes
    [line] = used.lines
    x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    assert set(y.tolist()) <= {0.0, 0.5, 1.0}
    assert x.max() < 1e3  # counted from the first arrival
    assert np.asarray(waiting.lines[0].get_ydata()).max() == 0


# -- Waiting, overhead and pieces of a timeline against their definitions, instant by instant -----------------------------


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
    when, waiting = Timeline.of(gangs).waiting
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


# -- Time axes: the unit, the ticks, the label ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("span", "unit"),
    [(0, "s"), (599, "s"), (600, "min"), (3600, "min"), (21600, "h"), (86400, "h"), (345600, "d"), (1e9, "d")],
)
def test_the_unit_fits_the_span(span: float, unit: str) -> None:
    assert unit_for(span).name == unit


def test_the_axis_stays_in_seconds_and_says_its_unit() -> None:
    ax = Figure().add_subplot()
    time_axis(ax, 0, 12 * 3600)
    assert ax.get_xlim() == (0, 12 * 3600)
    assert ax.get_xlabel() == "time (h)"
    assert list(ax.get_xticks()) == [7200 * k for k in range(7)]
    assert words(ax.get_xticklabels()) == ["0", "2", "4", "6", "8", "10", "12"]


@given(st.floats(0, 1e9), st.floats(1e-6, 1e9))
def test_ticks_are_few_inside_and_evenly_apart(start: float, span: float) -> None:
    end = start + span
    assume(end - start >= 1e-9 * end)
    ticks = TimeLocator(unit_for(end - start)).tick_values(start, end)
    assert len(ticks) <= 12
    step = ticks[1] - ticks[0] if len(ticks) > 1 else span
    assert all(start - 1e-6 * step <= tick <= end + 1e-6 * step for tick in ticks)
    assert all(b - a == pytest.approx(step, rel=1e-4) for a, b in pairwise(ticks))


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_there_are_at_least_three_ticks_on_a_whole_axis(unit: object) -> None:
    for span in (0.1, 1, 17, 100, 599, 700, 5000, 21600, 80000, 400000, 1e7, 1e9):
        if unit_for(span) is unit:
            assert len(TimeLocator(unit_for(span)).tick_values(0, span)) >= 3


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.25, "0.25"), (12.3456, "12.35"), (1234.5, "1,234"), (1234567, "1,234,567")]
)
def test_numbers_for_people(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.5, "0.5 s"), (90, "90 s"), (150, "2.5 min"), (10014, "2.78 h"), (864000, "10 d")]
)
def test_lengths_for_people(seconds: float, text: str) -> None:
    assert in_unit(seconds) == text


# -- Colours: stable, told apart, readable --------------------------------------------------------------------------------


# Severe deuteranopia and protanopia as linear maps of linear RGB (Machado, Oliveira, Fernandes 2009, table 1).
DEFICIENCIES = {
    "none": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}


def linear(colour: np.ndarray) -> np.ndarray:
    return np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear sRGB, D65."""
    xyz = np.clip(rgb, 0, 1) @ np.array(
        [[0.4124564, 0.2126729, 0.0193339], [0.3575761, 0.7151522, 0.1191920], [0.1804375, 0.0721750, 0.9503041]]
    )
    f = np.cbrt(np.maximum(xyz / [0.95047, 1.0, 1.08883], 0.008856))
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eye", DEFICIENCIES)
def test_consecutive_jobs_are_told_apart_by_every_eye(eye: str) -> None:
    seen = [lab(np.asarray(DEFICIENCIES[eye]) @ linear(colour)) for colour in PALETTE]
    for k in range(len(seen)):
        for ahead in (1, 2):
            assert np.linalg.norm(seen[k] - seen[(k + ahead) % len(seen)]) > 16  # 2 to 3 is just noticeable


def test_eight_jobs_in_a_row_are_far_apart_on_a_chart() -> None:
    seen = [lab(linear(colour)) for colour in PALETTE]
    for k in range(len(seen)):
        for ahead in range(1, 8):
            assert np.linalg.norm(seen[k] - seen[(k + ahead) % len(seen)]) > 23


@pytest.mark.parametrize("eye", DEFICIENCIES)
def test_no_two_of_eight_jobs_look_alike_to_any_eye(eye: str) -> None:
    colours = job_colours([str(k) for k in range(1, 9)])
    seen = [lab(np.asarray(DEFICIENCIES[eye]) @ linear(colour)) for colour in colours]
    assert min(float(np.linalg.norm(a - b)) for k, a in enumerate(seen) for b in seen[:k]) > 8


def test_colour_follows_the_id_and_not_the_order() -> None:
    ids = [f"j{k}" for k in range(30)]
    shuffled = random.Random(1).sample(ids, len(ids))
    colours = dict(zip(ids, map(tuple, job_colours(ids)), strict=True))
    assert colours == dict(zip(shuffled, map(tuple, job_colours(shuffled)), strict=True))
    assert [colours[f"j{k}"] for k in range(21)] == [tuple(row) for row in PALETTE]
    assert job_colours([]).shape == (0, 3)


def test_ids_sort_as_people_count() -> None:
    assert sorted(["j10", "j2", "", "10", "9", "j2b", "k1"], key=natural) == ["", "9", "10", "j2", "j2b", "j10", "k1"]


def test_text_reads_on_every_colour() -> None:
    for colour in PALETTE:
        luminance = float(linear(colour) @ [0.2126, 0.7152, 0.0722])
        text = 0.0 if ink_on(colour) == "black" else 1.0
        assert (max(luminance, text) + 0.05) / (min(luminance, text) + 0.05) >= 4.5  # WCAG 2, level AA
