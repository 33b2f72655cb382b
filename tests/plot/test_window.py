"""A window of time: in Python, and as ``optsched plot --from --to``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optsched as osd
from optsched.errors import InputError
from optsched.plot.gantt import gantt
from optsched.plot.occupancy import occupancy
from optsched.plot.rows import busy_share
from optsched.plot.time_axis import moment
from optsched.plot.timeline import Timeline
from optsched.problem.schedule import Schedule

pytestmark = pytest.mark.release


def labelled(ax: object, label: str) -> list[tuple[float, float]]:
    paths = [p.vertices for c in ax.collections if c.get_label() == label for p in c.get_paths()]  # type: ignore[attr-defined]
    return [(float(v[:, 0].min()), float(v[:, 0].max())) for v in map(np.asarray, paths)]


def test_only_what_happens_in_the_window_is_drawn(gangs: Schedule) -> None:
    ax = gantt(gangs, start=55, end=79)
    assert ax.get_xlim() == (55, 79)
    assert sorted(set(labelled(ax, "_blocks"))) == [(0, 100), (50, 80)]  # b is preempted from 50 to 80
    assert labelled(ax, "_waits") == [(55, 79)]
    assert labelled(ax, "_arrivals") == []  # the last job had arrived at 20
    assert ax.get_title(loc="left") == "mine on by hand: 3 jobs, 8 GPUs, 55 to 79 s"
    assert gantt(gangs, start=15).get_xlim() == (15, 105)
    assert gantt(gangs, end=15).get_xlim() == (0, 15)
    assert gantt(gangs, start=0, end=3600, by="node").get_title(loc="left").endswith("0 to 60 min")


def test_ids_stand_in_the_middle_of_what_is_seen(gangs: Schedule) -> None:
    ax = gantt(gangs, start=60, end=70)
    assert {text.get_position()[0] for text in ax.texts if text.get_text() in ("a", "c")} == {65}


@pytest.mark.parametrize(("start", "end"), [(0.0, 30.0), (12.5, 61.0), (81.0, None)])
def test_curves_and_shares_are_those_of_the_whole(gangs: Schedule, start: float, end: float | None) -> None:
    window = Timeline.of(gangs).within(start, end)
    low, high = window.span
    share, _ = busy_share(window, low, high, bins=200)
    whole, _ = busy_share(Timeline.of(gangs), low, high, bins=200)
    assert np.allclose(share, whole)
    middle = low + (np.arange(200) + 0.5) * (high - low) / 200
    for node in (0, 1):
        held = [sum(p[0] == node for s in gangs.segments() if s.start <= t < s.end for p in s.gpus) for t in middle]
        assert np.abs(share[node] * 4 - held).max() <= 4 * 0.51
        assert np.mean(np.abs(share[node] * 4 - held)) < 0.1
    busy, waiting = occupancy(gangs, start=start, end=end)
    assert busy.get_xlim() == waiting.get_xlim() == (low, high)


def test_a_short_window_of_a_long_run_shows_blocks() -> None:
    run = osd.simulate("cluster-week", "srtf")
    whole, day = Timeline.of(run), Timeline.of(run).within(86400, 86400 + 3600)
    seen = (run.schedule.start < 90000) & (run.schedule.end > 86400)
    assert day.job.tolist() == run.schedule.job[seen].tolist()
    assert day.gpu_offset[-1] == day.node.size == run.schedule.gangs[seen].sum()
    assert day.job.size < whole.job.size / 10


@pytest.mark.parametrize(("start", "end"), [(50, 50), (60, 50), (105, None), (None, 0), (200, 300), (float("nan"), 3)])
def test_a_window_in_which_nothing_lies_is_an_error(gangs: Schedule, start: float | None, end: float | None) -> None:
    with pytest.raises(
        InputError, match=r"nothing to show \(expected: start < end, seconds, in part within 0 \.\. 105\)"
    ):
        gantt(gangs, start=start, end=end)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(None, None), (90, 90), ("90", 90), ("90s", 90), ("1.5 h", 5400), ("2d", 172800), ("1e3", 1e3)],
)
def test_moments_are_seconds_or_have_a_unit(text: str | None, seconds: float | None) -> None:
    assert moment(text, "from") == seconds


@pytest.mark.parametrize("text", ["", "h", "2 weeks", "1:30", "nan", "--"])
def test_what_is_no_moment_is_told(text: str) -> None:
    with pytest.raises(InputError, match=r"from = .*: not a time \(expected: seconds, or a number with s, min, h, d\)"):
        moment(text, "from")


def test_the_command_line_draws_a_window(gangs: Schedule, tmp_path: Path, command: Any) -> None:
    place, picture = tmp_path / "mine.json", tmp_path / "mine.svg"
    gangs.save(place)
    gangs.instance.save(tmp_path / "instance.json")
    plot = ("plot", place, "--instance", tmp_path / "instance.json", "-o", picture)
    assert command(*plot, "--from", "0.5min", "--to", "1min").code == 0
    assert "3 jobs, 8 GPUs, 30 to 60 s" in picture.read_text()
    assert "from = 'soon': not a time" in command(*plot, "--from", "soon").mistake
