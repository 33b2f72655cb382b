"""Schedulers that are not ours: what they may hand over, and what is said where they fail."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from time import sleep
from typing import Any

import numpy as np
import pytest
from examples import studied
from fuzzed_files import spoiled
from refusals import one_line

from optsched.errors import InputError, SimulationError
from optsched.policies.queue_orders import fifo
from optsched.policies.simulate import simulate
from optsched.problem.instance import Instance, Job
from optsched.problem.schedule import Schedule, Segment
from optsched.regression import guarded_subject as outside
from optsched.regression.guarded_subject import Command, guarded_subject, read_schedule

pytestmark = pytest.mark.release

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
        run = guarded_subject(scheduler, files=files).run(TWO)
        assert run.schedule.completion.tolist() == [7, 3, 4]
        assert (run.value(), run.schedule_class) == (14, "gang-nonpreemptive")


def test_a_schedule_that_stops_jobs_is_compared_with_those_that_may() -> None:
    def stops(instance: Instance) -> Schedule:
        parts = [(1, ((0, 0),), 1, 2), (1, ((0, 0),), 3, 4), (2, ((0, 1),), 2, 4), (0, ((0, 0), (0, 1)), 4, 7)]
        return Schedule.from_segments(instance, [Segment(j, gpus, s, e, e - s) for j, gpus, s, e in parts])

    assert guarded_subject(stops).run(TWO).schedule_class == "gang"


@pytest.mark.parametrize(
    ("made", "error", "what"),
    [
        ({"a": 0, "b": 1, "c": 2}, InputError, "does not fit"),
        ({"a": 0, "b": 3, "c": 3}, SimulationError, "the referee rejects the schedule of <lambda>: arrival: .*'a'"),
        ({"a": 4, "b": 1}, InputError, "starts = 'c': a job without a start"),
        ({"a": 4, "b": 1, "c": 2, "d": 9}, InputError, "starts = 'd': no such job"),
        ({"a": 4, "b": "soon", "c": 2}, InputError, "starts: b = 'soon': not a number"),
        ({"a": 4, "b": "1", "c": 2}, InputError, r"starts: b = '1': not a number \(expected: seconds\)"),
        ({"a": 4, "b": True, "c": 2}, InputError, r"starts: b = True: not a number \(expected: seconds\)"),
        ({"a": 4, "b": None, "c": 2}, InputError, "starts: invalid"),
        ([1, 2, 3], InputError, "what the scheduler returns = 'list': not a schedule"),
    ],
)
def test_what_is_no_schedule_is_refused(made: Any, error: type[Exception], what: str) -> None:
    with pytest.raises(error, match=what):
        guarded_subject(lambda instance: made).run(TWO)


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"jobs": []},
        {"segments": [{"job": "z", "gpus": [], "start": 0, "end": 1}]},
        {"segments": [{"job": "a", "gpus": [], "start": 0, "end": 10**400}]},
    ],
)
def test_a_file_that_is_no_schedule_is_refused(document: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not a schedule|invalid"):
        read_schedule(as_file(tmp_path, document)(TWO), TWO)


@pytest.mark.parametrize("wrong", [{"start": True}, {"start": "1", "work": 1}, {"work": True}])
def test_text_and_truth_values_in_a_file_are_no_times(wrong: dict[str, Any], tmp_path: Path) -> None:
    segments = [{"job": "a", "gpus": [[0, 0]], "start": 1, "end": 2, **wrong}]
    with pytest.raises(InputError, match="start, end and work are finite numbers"):
        read_schedule(as_file(tmp_path, {"segments": segments})(TWO), TWO)


def test_a_command_writes_or_prints(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(f"import sys\nopen(sys.argv[1])\nprint({json.dumps({'starts': BEST})!r})\n")
    mine = guarded_subject([sys.executable, "-S", script, "{instance}"])
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
        guarded_subject([sys.executable, "-S", "-c", code, "{instance}"], timeout=seconds).run(TWO)


def test_who_is_no_scheduler_is_one_line() -> None:
    for wrong in (3, fifo, None, ["python", "mine.py"], ["no-such-program", "{instance}"]):
        with one_line():
            guarded_subject(wrong).run(TWO)
    with pytest.raises(InputError, match="only policies have one"):
        guarded_subject(lambda instance: BEST, placement="count")
    assert Command(("a b", "{instance}")).repeated(Path("x.json")) == "'a b' x.json > x-schedule.json"


WORDS = "a list of words, ['python', 'mine.py', '{instance}', '{schedule}']"


@pytest.mark.parametrize(
    ("scheduler", "legal"),
    [
        ("python mine.py {instance} {schedule}", WORDS),
        ("python mine.py", WORDS),
        (["python mine.py {instance} {schedule}"], WORDS),
        ("./mine.py", "a list of words, ['./mine.py', '{instance}', '{schedule}']"),
        ("mine 'a {instance}", "a list of words"),
        (["fifo"], "a policy is given alone, not in a list"),
        ([fifo()], "a policy is given alone, not in a list"),
        (["python", 5, "{instance}"], "text and paths"),
        ([b"python", "{instance}"], "text and paths"),
        ([], "one of its words contains {instance}"),
    ],
    ids=str,
)
def test_a_command_and_a_policy_are_not_mistaken_for_each_other(scheduler: Any, legal: str) -> None:
    with one_line("scheduler", legal):
        guarded_subject(scheduler)


@pytest.mark.parametrize("wrong", [{"timeout": each} for each in ("3", 0, -1, np.nan, np.inf, True)], ids=str)
def test_a_command_has_a_time_that_ends(wrong: Any) -> None:
    with one_line("timeout", "a finite number of seconds > 0"):
        guarded_subject(["cat", "{instance}"], **wrong)
    for field in ("name", "placement"):
        with one_line(f"{field} = 5"):
            guarded_subject("fifo", **{field: 5})  # type: ignore[arg-type]


def test_a_policy_is_what_it_is_everywhere() -> None:
    for mine in (
        guarded_subject("sjf"),
        guarded_subject(fifo(), name="first"),
        guarded_subject("fifo", placement="first-fit"),
        guarded_subject(" fifo + first-fit "),
    ):
        assert mine.run(TWO).schedule.completion.size == 3
        assert mine.text in ("sjf", "first", "fifo+first-fit", "fifo + first-fit")
    assert guarded_subject("sjf").run(TWO).value() == simulate(TWO, "sjf").value()
    again = guarded_subject("sjf").repeated(Path("x.json"), "makespan")
    assert again == "optsched ratio x.json -p sjf --objective makespan"
    assert guarded_subject(fifo()).repeated(Path("x.json"), "makespan") == ""


# --- answers that cost more than they should ----------------------------------------------------------------------------


def fifo_at(made: Path) -> None:
    os.mkfifo(made)


def device_at(made: Path) -> None:
    made.symlink_to("/dev/zero")


def sparse_at(made: Path) -> None:
    made.touch()
    os.truncate(made, 2 * outside.LONGEST)


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes and devices among files")
@pytest.mark.parametrize(
    ("put", "what"), [(fifo_at, "not a file"), (device_at, "not a file"), (sparse_at, f"at most {outside.LONGEST}")]
)
def test_an_answer_is_a_file_of_limited_size(put: Callable[[Path], None], what: str) -> None:
    holder: list[int] = []

    def answers(given: Path, made: Path) -> None:
        put(made)
        if put is fifo_at:  # somebody writes, and goes: who reads it nevertheless reads nothing, and does not hang
            holder.append(os.open(made, os.O_RDWR))
            os.write(holder[0], b"[]")
            Timer(2, os.close, holder).start()

    with one_line(match=what):
        guarded_subject(answers, files=True).run(TWO)


def test_what_a_command_prints_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside, "LONGEST", 10**6)
    for stream in ("stdout", "stderr"):
        endless = f"import sys\nwhile True: sys.{stream}.write('x' * 100_000)"
        with pytest.raises(SimulationError, match="printed more than 1000000 bytes"):
            guarded_subject([sys.executable, "-S", "-c", endless, "{instance}"]).run(TWO)


@pytest.mark.skipif(sys.platform == "win32", reason="no groups of processes")
def test_what_a_command_started_is_not_waited_for(tmp_path: Path) -> None:
    script, mark = tmp_path / "mine.py", tmp_path / "pid"
    sleeper = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(20)"
    script.write_text(
        "import os, subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-S', '-c', {sleeper!r}])\n"
        f"while not os.path.exists({str(mark)!r}) or not open({str(mark)!r}).read(): time.sleep(0.01)\n"
        f"print({json.dumps({'starts': BEST})!r})\n"
    )
    assert guarded_subject([sys.executable, "-S", script, "{instance}"], timeout=60).run(TWO).value() == 14
    assert any(gone(int(mark.read_text())) for _ in range(200))  # before, its open pipe was waited for


def gone(pid: int) -> bool:
    """Has it ended? Whom it fell to may not have asked yet."""
    sleep(0.01)
    try:
        os.kill(pid, 0)
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True


# --- answers in which something was changed ----------------------------------------------------------------------------


def judged_or_refused(seed: int, path: Path) -> str:
    """What comes of an answer in which something was changed: a value, or one line that refuses it."""
    rng = np.random.default_rng([28, seed])
    documents: list[dict[str, Any]] = [{"starts": BEST}, {"segments": SEGMENTS}]
    documents.append({"format": "optsched-schedule/1", "instance": TWO.digest, "value": 14, **documents[1]})
    content = json.dumps(documents[int(rng.integers(3))]).encode()
    path.write_bytes(spoiled(rng, content, ".json"))
    try:
        return f"{guarded_subject(lambda instance: path).run(TWO).value():g}"
    except (InputError, SimulationError) as error:
        return "refused" if "\n" not in str(error) else f"many lines: {seed}"


@pytest.mark.parametrize("count", [150, studied(5000)])
def test_changed_answers_are_judged_or_refused_in_one_line(count: int, tmp_path: Path) -> None:
    outcomes = Counter(judged_or_refused(seed, tmp_path / "made.json") for seed in range(count))
    assert outcomes["refused"] > count / 3
    assert outcomes["14"] > count / 50
    assert not [each for each in outcomes if each.startswith("many")]
