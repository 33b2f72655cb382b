"""Busy GPUs and waiting jobs over time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from optsched.errors import InputError
from optsched.plot.occupancy import BINS, EXACT, occupancy, over_time
from optsched.plot.timeline import Timeline
from optsched.policies.simulate import simulate
from optsched.problem.contention import IterationTasks
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule

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
    assert "peak: 1" in [text.get_text() for text in waiting.texts]
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
