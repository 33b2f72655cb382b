"""What an instance keeps on its log: dates on the log's clock, the unit of gangs, and windows of time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import optsched as osd
from optsched.errors import InputError
from optsched.io.traces.log_reading import clock_of, dates_of, in_its_unit, moment_in_words, reading_notes, unit_of
from optsched.problem.instance import Instance, Job

ROWS = "id,arrival,gpus,start,end,user\n" + "".join(
    f"{name},2026-03-0{day} {hour}:00:00{{0}},1,2026-03-0{start} {hour}:30:00{{0}},2026-03-0{end} 23:00:00{{0}},ann\n"
    for name, day, hour, start, end in (
        ("a", 1, "08", 1, 1),
        ("b", 1, "09", 1, 2),
        ("c", 1, "10", 3, 3),
        ("d", 2, "12", 2, 2),
    )
)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "log.csv").write_text(ROWS.format(""))
    return tmp_path / "log.csv"


def test_dates_are_those_of_the_log(log: Path) -> None:
    instance = osd.load(f"csv:{log}")
    clock = clock_of(instance)
    assert clock is not None
    assert (clock.zone, dates_of(instance)) == ("the log's clock", "2026-03-01 to 2026-03-03")
    assert moment_in_words(instance, 3600) == "2026-03-01 09:00:00"
    log.write_text(ROWS.format("Z"))
    assert moment_in_words(osd.load(f"csv:{log}"), 0) == "2026-03-01 08:00:00 UTC"
    unix = Instance([Job("a", 1_772_352_000, 1, 60)], "1x1")  # on Unix seconds
    assert dates_of(unix) == "2026-03-01"
    assert (dates_of(osd.load("rigid-06-1")), moment_in_words(unix.relative, 5)) == ("", "5 s")


def test_a_window_has_the_jobs_submitted_in_it_and_counts_those_that_ran_or_waited(log: Path) -> None:
    part = osd.load(f"csv:{log}", since="2026-03-02", until="2026-03-03")
    assert (part.ids, dates_of(part)) == (("d",), "2026-03-02")
    assert reading_notes(part)[0] == (
        "window from 2026-03-02 00:00:00 to 2026-03-03 00:00:00: 1 of 4 jobs were submitted in it; 1 job submitted earlier "
        "still ran at its start and 1 waited: they are left out, so policies start on an empty cluster, and the schedule "
        "that ran did not"
    )
    assert osd.load(f"csv:{log}", until="2h").ids == ("a", "b")  # after the first submission
    assert osd.load(f"csv:{log}", since=3600, limit=2).ids == ("b", "c")
    assert "does not say which" in reading_notes(osd.load("cluster-week", since="1d", until="1.5d"))[0]
    assert osd.load("cluster-week", since="1d", until="1.5d", limit=3).n == 3


@pytest.mark.parametrize(
    ("source", "asked", "message"),
    [
        ("csv:{}", {"since": "2027-01-01"}, "from = '2027-01-01': no job was submitted.*from 2026-03-01 08:00:00 to"),
        ("csv:{}", {"until": "March"}, "to = 'March': not a time .*2026-03-01.*such as 7d"),
        ("rigid-06-1", {"since": "2026-03-01"}, "from = '2026-03-01': the log states no dates"),
    ],
)
def test_a_window_that_cannot_be(log: Path, source: str, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        osd.load(source.format(log), **asked)


def test_gangs_have_the_unit_of_the_log() -> None:
    recipe = {"name": "slurm", "parameters": {"counts": "node"}}
    nodes = Instance([Job("a", 0, 1, 60)], "1x1", recipe=recipe)
    assert (unit_of(nodes), in_its_unit(nodes, "queued GPU-h")) == ("node", "queued node-h")
    assert unit_of(osd.load("rigid-06-1")) == "GPU"
