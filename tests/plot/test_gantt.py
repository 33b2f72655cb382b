"""The Gantt chart shows what the schedule says: counted on schedules made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from plot.drawn import labelled, legend, rectangles, words

from optsched.errors import InputError
from optsched.plot.colours import PALETTE, paler
from optsched.plot.gantt import gantt
from optsched.plot.node_rows import short_ids
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule, Segment


def test_neighbouring_gpus_of_a_gang_are_one_block(gangs: Schedule) -> None:
    # Node 1 begins half a row below node 0: its GPU k is at 4.5 + k. Blocks leave a margin of 0.05 to the row.
    blocks = rectangles(gantt(gangs), "_blocks")
    assert [tuple(np.round(block, 6)) for block in blocks] == [
        (0, 100, 0.05, 1.95),
        (0, 100, 3.05, 3.95),
        (0, 100, 6.55, 7.45),
        (10, 50, 4.55, 6.45),
        (50, 80, 5.55, 6.45),
        (80, 105, 4.55, 6.45),
    ]


def test_rows_are_gpus_grouped_by_node(gangs: Schedule) -> None:
    ax = gantt(gangs)
    assert words(ax.get_yticklabels()) == ["0", "1", "2", "3"] * 2
    assert np.allclose(ax.get_yticks(), [0.5, 1.5, 2.5, 3.5, 5, 6, 7, 8])
    assert {"node 0 V100", "node 1 V100"} <= set(words(ax.texts))
    assert [r[2:] for r in rectangles(ax, "_floor")] == [(0, 4), (4.5, 8.5)]
    assert ax.get_title(loc="left") == "mine on by hand: 3 jobs, 8 GPUs"


def test_machines_are_rows_with_a_name_and_no_index() -> None:
    inst = Instance([Job("a", duration=2), Job("b", duration=3)], "2x1")
    ax = gantt(Schedule.from_starts(inst, [0, 0]))
    assert words(ax.get_yticklabels()) == ["node 0", "node 1"]
    assert [r[2:] for r in rectangles(ax, "_floor")] == [(0, 1), (1, 2)]


def test_overhead_is_a_paler_hatched_start_of_the_segment(gangs: Schedule) -> None:
    ax = gantt(gangs)
    assert [r[:2] for r in rectangles(ax, "_overhead")] == [(80, 85)]
    hatched = labelled(ax, "_overhead")
    assert hatched.get_hatch()
    assert np.allclose(hatched.get_facecolor()[0, :3], paler(labelled(ax, "_blocks").get_facecolor()[-1, :3], 0.7))
    assert "held, no progress: restart, contention" in legend(ax)


def test_no_key_for_restarts_where_there_are_none() -> None:
    inst = Instance([Job("a", duration=2)], "1x1")
    ax = gantt(Schedule.from_starts(inst, [0]))
    assert rectangles(ax, "_overhead") == []
    assert legend(ax) == ["arrival"]


def test_arrivals_and_waits_are_marked(gangs: Schedule) -> None:
    ax = gantt(gangs)
    assert np.asarray(labelled(ax, "_arrivals").get_offsets())[:, 0].tolist() == [0, 10, 20]
    assert [r[:2] for r in rectangles(ax, "_waits")] == [(50, 80), (20, 50)]  # b was preempted; c had arrived at 20
    assert "waiting" in words(ax.texts)


def test_waits_share_a_lane_only_one_after_the_other(gangs: Schedule) -> None:
    ran = simulate(Instance([Job(f"{k}", gpus=1, duration=1 + k) for k in range(7)], "1x2"), "fifo").schedule
    bars = rectangles(gantt(ran), "_waits")
    for k, (left, right, top, bottom) in enumerate(bars):
        for other in bars[:k]:
            assert left >= other[1] or right <= other[0] or top >= other[3] or bottom <= other[2]
    assert len(bars) == 5


def test_many_waiting_jobs_become_a_count() -> None:
    inst = Instance([Job(f"{k}", duration=1) for k in range(40)], "1x1")
    ax = gantt(simulate(inst, "fifo").schedule)
    assert "waiting\n(peak 39)" in words(ax.texts)
    assert len(labelled(ax, "_waits").get_paths()) == 1


def test_a_job_has_one_colour_in_every_picture() -> None:
    # One-GPU jobs: one block a segment, in the order of the segments.
    inst = Instance([Job(f"j{k}", arrival=k, duration=9 - k) for k in range(8)], "1x2")
    colours: dict[int, tuple[float, ...]] = {}
    for policy in ("fifo", "srtf", "srtf+consolidated"):
        schedule = simulate(inst, policy).schedule
        faces = labelled(gantt(schedule), "_blocks").get_facecolor()
        for job, face in zip(schedule.job.tolist(), map(tuple, faces), strict=True):
            assert colours.setdefault(job, face) == face
    assert len(set(colours.values())) == 8


def test_ids_stand_on_blocks_that_have_room(gangs: Schedule) -> None:
    texts = words(gantt(gangs).texts)
    assert [texts.count(name) for name in "abc"] == [3, 3, 2]  # blocks, and the waits of b and c


def test_an_id_that_does_not_fit_is_not_written() -> None:
    jobs = [Job("a-very-long-name-for-so-short-a-job", duration=1), Job("long", arrival=1, duration=999)]
    texts = words(gantt(Schedule.from_starts(Instance(jobs, "1x1"), [0, 1])).texts)
    assert "long" in texts
    assert not any("very" in text for text in texts)


def test_ids_are_text_and_not_mathematics() -> None:
    inst = Instance([Job("$x^{$", duration=5), Job("_$", duration=5)], "1x2", name="$\\frac{")
    assert gantt(Schedule.from_starts(inst, [0, 0], policy="$p_"))._repr_png_()
    assert "$x^{$" in words(gantt(Schedule.from_starts(inst, [0, 0])).texts)


def test_ids_lose_what_they_share_up_to_a_separator() -> None:
    assert short_ids(["application_15_01", "application_15_02"]) == ["01", "02"]
    assert short_ids(["j10", "j11"]) == ["j10", "j11"]
    assert short_ids(["job-", "job-1"]) == ["job-", "1"]
    assert short_ids(["alone_1"]) == ["alone_1"]
    assert short_ids([]) == []


def test_limit_greys_the_other_jobs_and_ends_with_the_last_of_the_first(gangs: Schedule) -> None:
    ax = gantt(gangs, limit=1)
    assert ax.get_xlim() == (0, 100)
    faces = labelled(ax, "_blocks").get_facecolor()[:, :3]
    coloured = [tuple(face) in {tuple(row) for row in PALETTE} for face in faces]
    assert coloured == [True] * 3 + [False] * 3
    assert ax.get_title(loc="left").endswith("(the first job in colour)")
    assert gantt(gangs, limit=2, by="node").get_title(loc="left").endswith("(until the first 2 jobs ended)")
    assert gantt(gangs, limit=3).get_title(loc="left") == gantt(gangs).get_title(loc="left")


@pytest.mark.parametrize("limit", [0, -1])
def test_limit_below_one_is_an_error(gangs: Schedule, limit: int) -> None:
    with pytest.raises(InputError, match=r"limit = .*an integer >= 1"):
        gantt(gangs, limit=limit)


def test_by_node_shades_the_share_of_busy_gpus(gangs: Schedule) -> None:
    ax = gantt(gangs, by="node")
    [image] = ax.images
    share = np.asarray(image.get_array())
    middle = np.linspace(0, 105, share.shape[1] + 1)[:-1] + 105 / share.shape[1] / 2
    for node in (0, 1):
        for t, drawn in zip(middle.tolist(), share[node].tolist(), strict=True):
            if min(abs(t - edge) for edge in (0, 10, 50, 80, 100, 105)) > 0.1:
                busy = [s for s in gangs.segments() if s.start <= t < s.end]
                assert drawn == pytest.approx(sum(p[0] == node for s in busy for p in s.gpus) / 4)
    assert words(ax.get_yticklabels()) == ["node 0 V100", "node 1 V100"]


def test_auto_turns_to_nodes_for_large_clusters() -> None:
    job = [Job("a", gpus=8, duration=10)]
    assert not gantt(Schedule.from_starts(Instance(job, "20x8"), [0])).images
    [image] = gantt(Schedule.from_starts(Instance(job, "21x8"), [0])).images
    assert image.get_array().shape[0] == 21


def test_neighbouring_nodes_share_a_row_of_very_large_clusters() -> None:
    inst = Instance([Job("a", gpus=3, duration=10)], "1025x1")
    ax = gantt(Schedule.from_starts(inst, [0]))
    share = np.asarray(ax.images[0].get_array())
    assert share.shape[0] == 342  # three nodes a row
    assert np.allclose(share[0], 1.0)
    assert np.allclose(share[1:], 0.0)
    assert ax.get_yticklabels()[0].get_text() == "node 0 ff."


@pytest.mark.parametrize("by", ["gpu", "node"])
def test_nothing_to_draw_is_an_empty_picture(by: str) -> None:
    empty = Schedule.from_segments(Instance([], "2x2"), [])
    assert gantt(empty, by=by)._repr_png_().startswith(b"\x89PNG")
    waiting = Schedule.from_segments(Instance([Job("a", arrival=3, duration=1)], "1x1"), [])
    assert gantt(waiting, by=by)._repr_png_().startswith(b"\x89PNG")


def test_unknown_row_is_an_error(gangs: Schedule) -> None:
    with pytest.raises(InputError, match="gpu, node or auto"):
        gantt(gangs, by="rack")


def test_a_gpu_outside_the_cluster_is_an_error() -> None:
    inst = Instance([Job("a", duration=5)], "1x2")
    for gpu in ((0, 2), (1, 0)):
        with pytest.raises(InputError, match=r"segment 1 \(of 1\) has a GPU that the cluster 1x2 does not have"):
            gantt(Schedule.from_segments(inst, [Segment(0, (gpu,), 0, 5, 5)]))


def test_draws_on_axes_that_are_given(gangs: Schedule) -> None:
    ax = Figure().add_subplot()
    assert gantt(gangs, ax=ax, title="mine") is ax
    assert ax.get_title(loc="left") == "mine"
    assert len(rectangles(ax, "_blocks")) == 6
