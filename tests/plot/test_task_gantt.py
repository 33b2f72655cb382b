"""The charts of tasks and of shared GPUs show what log and schedule say: counted on ones made by hand."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from plot.drawn import labelled, legend, words
from refusals import one_line

from optsched.classes.task_sharing.plot import task_gantt
from optsched.classes.task_sharing.plot.task_gantt import DARK, LIGHT, MARGIN, chosen_nodes, outline, side_by_side
from optsched.classes.task_sharing.problem.task_log import TRANSFER, TaskLog, TaskSchedule
from optsched.errors import InputError
from optsched.plot import gantt, occupancy, plot_file, tasks
from optsched.plot.colours import job_colours, paler
from optsched.plot.gantt import blocks_of
from optsched.plot.node_rows import INTERFACE, NODE_GAP, NodeRows, busy_share
from optsched.plot.timeline import NOBODY, Timeline, shared_cells
from optsched.problem.cluster import Cluster
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance, Job
from optsched.problem.interference import Interference
from optsched.problem.schedule import Schedule, Segment, SharedSchedule

# -- The chart of tasks shows what the log says: counted on a log made by hand --------------------------------------------


pytestmark = pytest.mark.release

NET = 2.0  # upper edge of the first interface: two GPUs stand above it


def schedule(rows: list[tuple[int, int, float, float]] | None, cluster: str = "2x2") -> TaskSchedule:
    """Jobs a and b over both nodes (workers on GPU 0 and GPU 1 of each), c on GPU (1, 1)."""
    short = IterationTasks(1, 2, 4)
    jobs = [
        Job("a", gpus=2, iterations=2, profile="m"),
        Job("b", gpus=2, iterations=1, profile="m"),
        Job("c", gpus=1, iterations=1, profile="m"),
    ]
    where = Cluster.parse(cluster)
    instance = Instance(jobs, where, "by hand", tasks={"m": short}, contention=Contention(1.0))
    log = None
    if rows is not None:
        job, worker, start, end = zip(*rows, strict=True) if rows else ((), (), (), ())
        log = TaskLog(np.array(job, np.int32), np.array(worker, np.int32), np.array(start, float), np.array(end, float))
    return TaskSchedule(
        instance,
        *(np.array([1, 0, 2]), np.zeros(3), np.array([9.0, 14.0, 17.0]), np.array([1.0, 2.0, 1.0])),
        *(np.array([0, 2, 4, 5]), np.array([0, 1, 0, 1, 1]), np.array([1, 1, 0, 0, 1]), "mine", log),
    )


# In no order: a computes, sends 3..7 alone and 7..9 beside b's 7..11, computes, sends; c's task ends with the window.
ROWS = [
    (0, 0, 10, 12),
    (0, 0, 0, 1),
    (0, 1, 0, 1),
    (0, 1, 1, 3),
    (0, 0, 1, 3),
    (0, TRANSFER, 3, 9),
    (1, TRANSFER, 7, 11),
    (0, 0, 9, 10),
    (0, 1, 9, 10),
    (0, 1, 10, 12),
    (0, TRANSFER, 12, 14),
    (1, 0, 4, 5),
    (1, 0, 5, 7),
    (1, 1, 4, 5),
    (1, 1, 5, 7),
    (2, 0, 14, 15),
    (2, 0, 15, 17),
]


def drawn(ax: Axes, label: str) -> list[tuple[list[tuple[float, float]], tuple[float, ...]]]:
    """(corners, colour) of every polygon under this label."""
    found = labelled(ax, label)
    corners = [[(float(x), float(y)) for x, y in path.vertices[:-1]] for path in found.get_paths()]
    return list(zip(corners, map(tuple, np.asarray(found.get_facecolor())[:, :3].round(9)), strict=True))


def box(corners: list[tuple[float, float]]) -> tuple[float, float, float]:
    """(left, right, row) of a rectangle."""
    x, y = zip(*corners, strict=True)
    return min(x), max(x), round(min(y) - MARGIN, 6)


def test_every_task_is_a_block_in_the_row_of_its_gpu() -> None:
    ax = tasks(schedule(ROWS))
    second = NET + INTERFACE + NODE_GAP  # upper edge of node 1
    row = {(0, 0): 0.0, (0, 1): second, (1, 0): 1.0, (1, 1): second + 1, (2, 0): second + 1}
    expected = sorted((s, e, round(row[j, w], 6)) for j, w, s, e in ROWS if w != TRANSFER)
    assert sorted(box(corners) for corners, _ in drawn(ax, "_compute")) == expected
    assert ax.get_xlim() == (0, 17)
    assert ax.get_title(loc="left") == "mine on by hand: 3 jobs, 4 GPUs"


def test_forward_is_light_and_backward_dark_in_the_colour_of_the_job() -> None:
    for window in ({}, {"start": 10.5, "end": 16}):  # what is cut off at the left counts too
        plain = job_colours(["a", "b", "c"])
        for corners, colour in drawn(tasks(schedule(ROWS), **window), "_compute"):
            left, right, _ = box(corners)
            [job] = {j for j, w, s, e in ROWS if (s, e) == (left, right) and w != TRANSFER}
            shade = paler(plain[job], LIGHT) if right - left == 1 else plain[job] * (1 - DARK)
            assert colour == tuple(shade.round(9)), (left, right)


def test_transfers_share_the_height_of_the_interface_while_they_overlap() -> None:
    ax = tasks(schedule(ROWS))
    found = drawn(ax, "_transfers")
    assert len(found) == 6  # three, on two nodes each
    top, high = NET + MARGIN, INTERFACE - 2 * MARGIN
    middle, low = top + high / 2, top + high
    first, second, last = (corners for corners, _ in found[:3])
    assert np.allclose(first, [(3, top), (7, top), (7, top), (9, top), (9, middle), (7, middle), (7, low), (3, low)])
    assert np.allclose(second, [(7, middle), (9, middle), (9, top), (11, top), (11, low), (9, low), (9, low), (7, low)])
    assert np.allclose(last, [(12, top), (14, top), (14, low), (12, low)])
    plain = job_colours(["a", "b", "c"])
    assert [colour for _, colour in found[:3]] == [tuple(plain[j].round(9)) for j in (0, 1, 0)]


def test_pieces_fill_the_row_exactly() -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        start = np.round(rng.uniform(0, 10, 8))  # with ties
        end = start + np.round(rng.uniform(0, 5, 8))
        pieces = side_by_side(start.tolist(), end.tolist())
        for i, mine in enumerate(pieces):
            assert sum(p.end - p.start for p in mine) == end[i] - start[i]
        for t in np.arange(0.5, 16):
            here = sorted((p.upper, p.lower) for mine in pieces for p in mine if p.start < t < p.end)
            k = int(((start < t) & (t < end)).sum())
            assert np.allclose(here, [(i / k, (i + 1) / k) for i in range(k)])
    assert side_by_side([], []) == []
    assert outline(side_by_side([0.0, 2.0], [2.0, 3.0])[0], 5.0, 2.0) == [(0, 5), (2, 5), (2, 7), (0, 7)]


def test_rows_and_ids_are_named() -> None:
    ax = tasks(schedule(ROWS))
    assert words(ax.get_yticklabels()) == ["0", "1", "net"] * 2
    texts = words(ax.texts)
    assert {"node 0", "node 1"} <= set(texts)
    assert (texts.count("a"), texts.count("b"), texts.count("c")) == (8, 4, 1)
    assert [text[:10] for text in legend(ax)] == ["forward", "backward", "all-reduce"]
    alone = tasks(schedule(ROWS), nodes=[1])
    assert alone.get_title(loc="left").endswith("(1 of 2 nodes)")
    assert len(drawn(alone, "_compute")) == 8
    assert len(drawn(alone, "_transfers")) == 3


def test_one_node_has_no_interface() -> None:
    inst = Instance([Job("a", gpus=2, iterations=1, profile="m")], "1x2", tasks={"m": IterationTasks(1, 2)})
    log = TaskLog(
        np.zeros(4, np.int32), np.array([0, 1, 0, 1], np.int32), np.array([0.0, 0, 1, 1]), np.array([1.0, 1, 3, 3])
    )
    arrays = (np.zeros(1, np.int64), np.zeros(1), np.array([3.0]), np.ones(1), np.array([0, 2]))
    ax = tasks(TaskSchedule(inst, *arrays, np.zeros(2, np.int64), np.array([1, 0]), "", log))
    assert words(ax.get_yticklabels()) == ["0", "1"]
    assert len(drawn(ax, "_compute")) == 4
    assert drawn(ax, "_transfers") == []
    ids = [text.get_position()[1] for text in ax.texts if text.get_text() == "a"]
    assert ids == [0.5]  # one for all tasks of an iteration: on the longer one, on the first GPU


def test_a_window_shows_what_lies_in_it() -> None:
    ax = tasks(schedule(ROWS), start=4, end=9)
    assert ax.get_xlim() == (4, 9)
    assert sorted({box(corners)[:2] for corners, _ in drawn(ax, "_compute")}) == [(4, 5), (5, 7)]
    assert len(drawn(ax, "_transfers")) == 4
    assert ax.get_title(loc="left").endswith("(5 s from 4 s on, of 17 s)")


def test_a_long_log_is_cut_and_a_full_window_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_gantt, "FIRST_TASKS", 7)
    assert tasks(schedule(ROWS)).get_xlim() == (0, 5)  # the eighth task starts at 5
    assert tasks(schedule(ROWS), start=9).get_xlim() == (9, 15)  # the eighth that is left starts at 15
    monkeypatch.setattr(task_gantt, "MOST_TASKS", 10)
    with pytest.raises(InputError, match=r"17 tasks are too many.*a window of at most 10"):
        tasks(schedule(ROWS), start=0, end=17)


def test_nothing_to_draw_is_an_empty_picture() -> None:
    assert tasks(schedule([]))._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"start": 3, "end": 3}, r"an empty window.*start < end"),
        ({"start": 18}, r"an empty window.*within the 17 s"),
        ({"end": float("nan")}, "end = nan: .*finite"),
        ({"nodes": [2]}, r"nodes = \[2\]: .*from 0 to 1"),
        ({"nodes": [0, 0]}, "different integers"),
        ({"nodes": []}, "different integers"),
        ({"nodes": [True]}, "different integers"),
    ],
)
def test_what_is_not_legal_is_named(arguments: dict[str, object], message: str) -> None:
    with one_line(match=message):
        tasks(schedule(ROWS), **arguments)


@pytest.mark.parametrize("row", [(0, 2, 0, 1), (3, 0, 0, 1), (-1, 0, 0, 1), (0, -2, 0, 1), (0, 0, 0, float("inf"))])
def test_a_task_of_nobody_is_refused(row: tuple[int, int, float, float]) -> None:
    with pytest.raises(InputError, match=r"task 18 \(of 18\) cannot be drawn"):
        tasks(schedule([*ROWS, row]))


def test_only_schedules_with_a_log_of_tasks() -> None:
    with pytest.raises(InputError, match="without a log"):
        tasks(schedule(None))
    plain = Instance([Job("a", duration=2)], "1x1")
    with pytest.raises(InputError, match="its jobs have no tasks"):
        tasks(Schedule.from_segments(plain, []))


def test_a_chart_of_gangs_is_not_drawn_of_jobs_that_share_gpus(tmp_path: Path) -> None:
    shared = schedule(ROWS)
    shared.save(tmp_path / "s.json", sharing=True)
    for draw in (gantt, occupancy):
        with pytest.raises(InputError, match=r"jobs share GPUs.*optsched\.plot\.tasks"):
            draw(shared)
    for instance in (None, shared.instance):
        with pytest.raises(InputError, match=r"s\.json.*jobs share GPUs.*tasks-\*\.parquet"):
            plot_file(tmp_path / "s.json", tmp_path / "p.png", instance)
    assert not (tmp_path / "p.png").exists()


def test_a_file_of_tasks_becomes_a_picture(tmp_path: Path) -> None:
    made = schedule(ROWS)
    made.save_tasks(tmp_path / "t.parquet")
    plot_file(tmp_path / "t.parquet", tmp_path / "p.png", made.instance)
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InputError, match=r"t\.parquet.*--instance"):
        plot_file(tmp_path / "t.parquet", tmp_path / "q.png")
    with pytest.raises(InputError, match="another instance"):
        plot_file(tmp_path / "t.parquet", tmp_path / "q.png", made.instance.with_cluster("2x3"))


def test_large_clusters_show_the_first_nodes() -> None:
    wide = schedule(ROWS, cluster="100x4")
    assert chosen_nodes(wide.instance.cluster, None) == list(range(32))  # five rows each, 160 in all
    with pytest.raises(InputError, match="nodes = 165: too many rows"):
        tasks(wide, nodes=range(33))
    assert tasks(wide).get_title(loc="left").endswith("(32 of 100 nodes)")


def test_draws_on_axes_that_are_given() -> None:
    ax = Figure().add_subplot()
    assert tasks(schedule(ROWS), ax=ax, title="mine") is ax
    assert ax.get_title(loc="left") == "mine"


# -- Pictures of schedules in which two jobs share a GPU: half a row each, and no GPU is busy twice -----------------------


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
    texts = set(words(ax.texts))
    assert {"wide x1.5", "left x4", "late x4", "wide"} <= texts
    assert any("a shared GPU" in text for text in legend(ax))
    assert not labelled(ax, "_overhead")  # slowed down is no restart


def test_nobody_shares_nothing_is_said(pair: SharedSchedule) -> None:
    alone = SharedSchedule.from_segments(pair.instance, [next(pair.segments())], "mine")
    assert not any("shared" in text for text in legend(gantt(alone)))


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
    assert timeline.lanes == 2
    assert timeline.cells.shared.sum() == 3


def test_a_chart_without_blocks(pair: SharedSchedule) -> None:
    gantt(pair, by="node")
    gantt(pair, limit=1)
    gantt(SharedSchedule.from_segments(pair.instance, []))
