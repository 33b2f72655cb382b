"""Schedulers that are not ours: what they may hand over, and what is said where they fail."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optsched.errors import InputError, SimulationError
from optsched.policies.fifo import Fifo
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule, Segment
from optsched.regression.contestant import contestant
from optsched.regression.outside import Command, read_schedule

JOBS = [Job("a", arrival=1, gpus=2, duration=3), Job("b", arrival=1, duration=2), Job("c", arrival=2, duration=2)]
TWO = Instance(JOBS, "1x2", name="two", objective="total_completion_time")  # optimum: b 3, c 4, a 7
BEST = {"b": 1, "c": 2, "a": 4}
SEGMENTS = [
    {"job": "b", "gpus": [[0, 0]], "start": 1, "end": 3},
    {"job": "c", "gpus": [[0, 1]], "start": 2, "end": 4},
    {"job": "a", "gpus": [[0, 0], [0, 1]], "start": 4, "end": 7},
]


def as_file(tmp_path: Path, document: Any) -> Callable[[Instance], Path]:
    path = tmp_path / "made.json"
    path.write_text(json.dumps(document))
    return lambda instance: path


def test_starts_segments_files_and_schedules_are_the_same(tmp_path: Path) -> None:
    def on_files(given: Path, made: Path) -> None:
        assert Instance.load(given).digest == TWO.digest
        made.write_text(json.dumps({"starts": BEST}))

    segments = [{**each, "work": 3 if each["job"] == "a" else 2} for each in SEGMENTS]
    whole = {"format": "optsched-schedule/1", "instance": TWO.digest, "segments": segments}
    schedulers: list[tuple[Any, bool]] = [
        (lambda instance: BEST, False),
        (lambda instance: Schedule.from_starts(instance, [4, 1, 2]), False),
        (as_file(tmp_path, {"segments": SEGMENTS}), False),
        (as_file(tmp_path, whole), False),
        (on_files, True),
    ]
    for scheduler, files in schedulers:
        run = contestant(scheduler, files=files).run(TWO)
        assert run.schedule.completion.tolist() == [7, 3, 4]
        assert (run.value(), run.schedule_class) == (14, "gang-nonpreemptive")


def test_a_schedule_that_stops_jobs_is_compared_with_those_that_may() -> None:
    def stops(instance: Instance) -> Schedule:
        parts = [(1, ((0, 0),), 1, 2), (1, ((0, 0),), 3, 4), (2, ((0, 1),), 2, 4), (0, ((0, 0), (0, 1)), 4, 7)]
        return Schedule.from_segments(instance, [Segment(j, gpus, s, e, e - s) for j, gpus, s, e in parts])

    assert contestant(stops).run(TWO).schedule_class == "gang"


@pytest.mark.parametrize(
    ("made", "error", "what"),
    [
        ({"a": 0, "b": 1, "c": 2}, InputError, "does not fit"),
        ({"a": 0, "b": 3, "c": 3}, SimulationError, "the referee rejects the schedule of <lambda>: arrival: .*'a'"),
        ({"a": 4, "b": 1}, InputError, "starts = 'c': a job without a start"),
        ({"a": 4, "b": 1, "c": 2, "d": 9}, InputError, "starts = 'd': no such job"),
        ({"a": 4, "b": "soon", "c": 2}, InputError, "starts: not legal: could not convert"),
        ([1, 2, 3], InputError, "what the scheduler returns = 'list': not a schedule"),
    ],
)
def test_what_is_no_schedule_is_refused(made: Any, error: type[Exception], what: str) -> None:
    with pytest.raises(error, match=what):
        contestant(lambda instance: made).run(TWO)


@pytest.mark.parametrize("document", [[], {"jobs": []}, {"segments": [{"job": "z", "gpus": [], "start": 0, "end": 1}]}])
def test_a_file_that_is_no_schedule_is_refused(document: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not a schedule|not legal"):
        read_schedule(as_file(tmp_path, document)(TWO), TWO)


def test_a_command_writes_or_prints(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(f"import sys\nopen(sys.argv[1])\nprint({json.dumps({'starts': BEST})!r})\n")
    mine = contestant([sys.executable, "-S", script, "{instance}"])
    assert mine.run(TWO).value() == 14
    assert mine.repeated(Path("x.json"), "makespan").endswith("mine.py x.json > x-schedule.json")


@pytest.mark.parametrize(
    ("code", "error", "what"),
    [
        ("import sys; sys.exit('no luck')", SimulationError, "exit code 1\nno luck"),
        ("import time; time.sleep(60)", SimulationError, "took more than 0.2 s"),
        ("print('nothing')", InputError, "schedule.json"),
    ],
)
def test_a_command_that_fails_says_why(code: str, error: type[Exception], what: str) -> None:
    seconds = 0.2 if "sleep" in code else 60
    with pytest.raises(error, match=what):
        contestant([sys.executable, "-S", "-c", code, "{instance}"], timeout=seconds).run(TWO)


def test_who_is_no_scheduler_is_one_line() -> None:
    for wrong in (3, Fifo, None, ["python", "mine.py"], ["no-such-program", "{instance}"]):
        with pytest.raises(InputError) as caught:
            contestant(wrong).run(TWO)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="only policies have one"):
        contestant(lambda instance: BEST, placement="count")
    assert Command(("a b", "{instance}")).repeated(Path("x.json")) == "'a b' x.json > x-schedule.json"


def test_a_policy_is_what_it_is_everywhere() -> None:
    for mine in (contestant("sjf"), contestant(Fifo(), name="first"), contestant("fifo", placement="first-fit")):
        assert mine.run(TWO).schedule.completion.size == 3
        assert mine.text in ("sjf", "first", "fifo+first-fit")
    assert contestant("sjf").run(TWO).value() == simulate(TWO, "sjf").value()
    assert contestant("sjf").repeated(Path("x.json"), "makespan") == "optsched ratio x.json -p sjf --objective makespan"
    assert contestant(Fifo()).repeated(Path("x.json"), "makespan") == ""
