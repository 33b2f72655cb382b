"""Pictures of schedules in which two jobs share a GPU: half a row each, and no GPU is busy twice."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from optsched.plot import gantt, occupancy, plot_file
from optsched.plot.gantt import blocks_of
from optsched.plot.rows import NodeRows, busy_share
from optsched.plot.timeline import NOBODY, Timeline, shared_cells
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.problem.schedule import Segment, SharedSchedule

pytestmark = pytest.mark.release

XI = Interference(2, ("A", "B"), ((1, 1.5), (4, 1)))


@pytest.fixture
def pair() -> SharedSchedule:
    """``wide`` on three GPUs; ``left`` beside it on two of them, 4 to 12, then ``late`` on one, 12 to 20."""
    jobs = [
        Job("wide", gpus=3, duration=40, model="A"),
        Job("left", gpus=2, duration=2, model="B", arrival=1),
        Job("late", duration=2, model="B", arrival=12),
    ]
    segments = [
        Segment(0, ((0, 0), (0, 1), (1, 0)), 0, 45.5, 40),
        Segment(1, ((0, 1), (0, 0)), 4, 12, 2),
        Segment(2, ((0, 1),), 12, 20, 2),
    ]
    schedule = SharedSchedule.from_segments(Instance(jobs, "2x2", interference=XI), segments, "mine")
    return dataclasses.replace(schedule, steps=np.ones(3, dtype=np.int64))


def test_cells_are_cut_where_partners_come_and_go(pair: SharedSchedule) -> None:
    cells = Timeline.of(pair).cells
    rows = zip(cells.node, cells.index, cells.left, cells.right, cells.upper, cells.lower, strict=True)
    assert [tuple(map(int, row)) for row in rows if row[1] == 1] == [
        (0, 1, 0, 4, 0, NOBODY),
        (0, 1, 4, 12, 0, 1),
        (0, 1, 12, 20, 0, 2),  # the lane that is free
        (0, 1, 20, 45, 0, NOBODY),
    ]


def test_whoever_starts_takes_the_first_free_lane() -> None:
    """The first job leaves: its successor takes the upper lane, the second stays in the lower one."""
    start, end = np.array([0.0, 1, 2]), np.array([2.0, 5, 6])
    zeros = np.zeros(3, dtype=np.int64)
    cells = shared_cells(start, end, np.arange(4), zeros, zeros)
    assert cells.upper.tolist() == [0, 0, 2, 2]
    assert cells.lower.tolist() == [NOBODY, 1, 1, NOBODY]
    assert cells.shared.tolist() == [False, True, True, False]


def test_blocks_are_half_as_high_where_gpus_are_shared(pair: SharedSchedule) -> None:
    timeline = Timeline.of(pair)
    blocks = blocks_of(timeline, NodeRows(timeline.node_gpus, timeline.node_names))
    rows = zip(blocks.segment, blocks.left, blocks.right, blocks.upper, blocks.lower, blocks.xi, strict=True)
    found = {tuple(round(float(x), 3) for x in row) for row in rows}
    nan = {row for row in found if np.isnan(row[-1])}
    # also where two GPUs have the same two jobs: one block over each would read as one job on each
    assert found - nan == {
        (0, 4, 12, 0, 0.5, 1.5),
        (1, 4, 12, 0.5, 1, 4.0),
        (0, 4, 12, 1, 1.5, 1.5),
        (1, 4, 12, 1.5, 2, 4.0),
        (0, 12, 20, 1, 1.5, 1.5),
        (2, 12, 20, 1.5, 2, 4.0),
    }
    alone = sorted(row[:-1] for row in nan)
    assert alone == [(0, 0, 4, 0, 2), (0, 0, 45.5, 2.5, 3.5), (0, 12, 45.5, 0, 1), (0, 20, 45.5, 1, 2)]


def test_the_chart_says_who_shares_and_what_it_costs(pair: SharedSchedule) -> None:
    ax = gantt(pair)
    texts = {text.get_text() for text in ax.texts}
    assert {"wide x1.5", "left x4", "late x4", "wide"} <= texts
    legend = ax.get_legend()
    assert legend is not None
    assert any("a shared GPU" in text.get_text() for text in legend.get_texts())
    assert not [c for c in ax.collections if c.get_label() == "_overhead"]  # slowed down is no restart


def test_nobody_shares_nothing_is_said(pair: SharedSchedule) -> None:
    alone = SharedSchedule.from_segments(pair.instance, [next(pair.segments())], "mine")
    legend = gantt(alone).get_legend()
    assert not any("shared" in text.get_text() for text in (legend.get_texts() if legend else []))


def test_no_gpu_is_busy_twice(pair: SharedSchedule) -> None:
    timeline = Timeline.of(pair)
    share, _ = busy_share(timeline, 0, 45.5, 91)
    assert share.max() <= 1 + 1e-12
    assert share.mean(axis=1) == pytest.approx([1, 0.5])
    busy = occupancy(pair)[0]
    tops = {c.get_label(): c.get_paths()[0].vertices[:, 1].max() for c in busy.collections}
    assert tops == {"one job": 3, "two jobs": 2}


def test_a_file_alone_is_drawn(pair: SharedSchedule, tmp_path: Path) -> None:
    pair.save(tmp_path / "s.json")
    pair.save(tmp_path / "s.parquet")
    plot_file(tmp_path / "s.json", tmp_path / "alone.png")
    plot_file(tmp_path / "s.parquet", tmp_path / "whole.svg", pair.instance)
    assert (tmp_path / "alone.png").stat().st_size > 5_000
    timeline = Timeline.read(tmp_path / "s.json", pair.instance.digest)
    assert timeline.sharing
    assert timeline.cells.shared.sum() == 3


def test_a_chart_without_blocks(pair: SharedSchedule) -> None:
    gantt(pair, by="node")
    gantt(pair, limit=1)
    gantt(SharedSchedule.from_segments(pair.instance, []))
