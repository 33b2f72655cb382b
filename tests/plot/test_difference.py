"""Two schedules above each other: who gains and who loses, against completions by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_hex

import optsched as osd
from optsched.errors import InputError
from optsched.plot.difference import GAIN, LOSE
from optsched.plot.gantt import GREY
from optsched.problem.instance import Instance, Job

pytestmark = pytest.mark.release

JOBS = Instance([Job("a", duration=10), Job("b", duration=2), Job("c", arrival=20, duration=3)], "1x1", name="three")


def both() -> tuple[osd.Schedule, osd.Schedule]:
    # C = 10, 12, 23 and 12, 2, 23: b gains 10 s, a loses 2 s, c keeps its place
    return osd.Schedule.from_starts(JOBS, [0, 10, 20], policy="long"), osd.Schedule.from_starts(
        JOBS, [2, 0, 20], policy="short"
    )


def test_jobs_are_coloured_by_gain_and_arrows_go_from_completion_to_completion() -> None:
    above, below, moves = osd.plot.compare(*both()).axes
    for ax in (above, below):
        [blocks] = [each for each in ax.collections if each.get_label() == "_blocks"]
        colours = {to_hex(colour) for colour in np.asarray(blocks.get_facecolor())}
        assert colours == {GAIN.lower(), LOSE.lower(), GREY}
    arrows = {text.xyann[1]: (text.xyann[0], text.xy[0]) for text in moves.texts if not text.get_text()}  # type: ignore[attr-defined]
    assert arrows == {0: (10, 12), 1: (12, 2)}
    assert [label.get_text() for label in moves.get_yticklabels()] == ["a", "b"]
    assert moves.get_title(loc="left") == "short instead of long: 1 job completes earlier, by 10 s; 1 later, by 2 s"
    assert above.get_xlim() == below.get_xlim() == moves.get_xlim() == (0, 23)


def test_files_are_compared_with_their_instance_and_equal_schedules_say_so(tmp_path: Path) -> None:
    one, _ = both()
    one.save(tmp_path / "one.json")
    figure = osd.plot.compare(tmp_path / "one.json", one, JOBS)
    assert figure.axes[2].get_title(loc="left") == "long instead of long: every job completes when it did"
    with pytest.raises(InputError, match="expected: the SOURCE"):
        osd.plot.compare(tmp_path / "one.json", one)
    with pytest.raises(InputError, match="schedules of two instances"):
        osd.plot.compare(one, osd.simulate("rigid-06-1", "fifo"))


def test_large_clusters_are_compared_by_node() -> None:
    jobs = [Job(f"{k}", duration=5 + k) for k in range(400)]
    wide = Instance(jobs, "50x8")
    figure = osd.plot.compare(osd.simulate(wide, "fifo"), osd.simulate(wide, "sjf"))
    assert [len(ax.images) for ax in figure.axes[:3]] == [1, 1, 0]
