"""The chart of tasks shows what the log says: counted on a log made by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from optsched.errors import InputError
from optsched.plot import gantt, occupancy, plot_file, task_gantt, tasks
from optsched.plot.colours import job_colours, paler
from optsched.plot.rows import INTERFACE, NODE_GAP
from optsched.plot.task_gantt import DARK, LIGHT, MARGIN, chosen_nodes, outline, side_by_side
from optsched.problem.cluster import Cluster
from optsched.problem.contention import Contention, IterationTasks
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule
from optsched.problem.task_log import TRANSFER, TaskLog, TaskSchedule

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
    [found] = [c for c in ax.collections if c.get_label() == label]
    assert isinstance(found, PolyCollection)
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
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "1", "net"] * 2
    texts = [text.get_text() for text in ax.texts]
    assert {"node 0", "node 1"} <= set(texts)
    assert (texts.count("a"), texts.count("b"), texts.count("c")) == (8, 4, 1)
    assert [text.get_text()[:10] for text in ax.get_legend().get_texts()] == ["forward", "backward", "all-reduce"]
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
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "1"]
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
    assert tasks(schedule([]))._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]


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
    with pytest.raises(InputError, match=message) as error:
        tasks(schedule(ROWS), **arguments)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)


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
