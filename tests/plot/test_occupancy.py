"""Busy GPUs and waiting jobs over time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from optsched.errors import InputError
from optsched.plot.occupancy import BINS, EXACT, occupancy
from optsched.plot.timeline import Timeline
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule


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
