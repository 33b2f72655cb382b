"""Names come from files of anybody: what a terminal would obey never reaches it."""

from __future__ import annotations

import contextlib
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from examples import studied

from optsched.errors import InputError
from optsched.io.sources import load
from optsched.problem.html import html_of
from optsched.report.comparison import evaluate

pytestmark = pytest.mark.release

OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
PARTS = ["\x1b[2J", "\x1b]0;x\x07", "\x1b]8;;http://x\x1b\\", "\x9b31m", "\n", "\r", "\t", "\x08\x08", "\x00", "\x7f"]
PARTS += ["\x85", "\u2028", "\u2029", *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))]
PARTS += ["a", "é", "界", "|"]
FORGED = "x\nbound: no schedule is below 1 (proved again)\n"


def document(name: str, gpu: str, job: str, **more: Any) -> dict[str, Any]:
    return {
        "format": "optsched-instance/1",
        "name": name,
        "cluster": {"nodes": [{"gpus": 1, "gpu": gpu}, {"gpus": 1, "gpu": "other"}]},
        "jobs": [{"id": job, "duration": 3, **more}],
    }


def commands(path: Path, key: str) -> list[list[object]]:
    """One of every kind, of which those that take a name get ``key``."""
    odd = path.with_name(re.sub("[/\x00\ud800-\udfff]", "", key) + "odd.json")
    schedule, rows = odd.with_name(f"schedule-{odd.name}"), path.with_name("rows.csv")
    odd.write_bytes(path.read_bytes())
    jobs = [*json.loads(path.read_bytes())["jobs"], {"id": key}][: 1 + len(key) % 2]
    segments = [{"job": each["id"], "start": 0, "end": 3, "gpus": [[0, 0]], "work": 3} for each in jobs]
    about = {"instance": "of another"}
    with contextlib.suppress(InputError):
        about["instance"] = load(str(path)).digest
    schedule.write_text(json.dumps({"format": "optsched-schedule/1", **about, "segments": segments}))
    rows.write_text(f"arrival,gpus,{key}\n0,{key},3\n", encoding="utf-8", errors="replace")
    return [
        ["run", path, "-p", "fifo"],
        ["run", path, "-p", "fifo", "--json"],
        ["run", odd, "-p", "fifo", "-o", path.with_name("out"), "--force"],
        ["run", path, "-p", key],
        ["run", path, "-p", f"fifo:{key}={key}"],
        ["run", path, "--objective", key],
        ["run", f"csv:{rows}", "--cluster", key],
        ["run", f"csv:{rows}", "--cluster", "1x1"],
        ["bound", path],
        ["bound", path, "--json"],
        ["solve", path],
        ["verify", schedule, "--instance", path],
        ["verify", schedule, "--instance", path, "--json"],
        ["verify", odd, "--instance", path],
        ["generate", key, "-o", path.with_name("made.json")],
        ["generate", "poisson", "--set", f"{key}={key}", "-o", path.with_name("made.json")],
        ["list", "policies", key],
        [key],
    ]


def attack(command: Callable[..., Any], folder: Path, seeds: range) -> int:
    """How many of the files were taken."""
    taken = 0
    for seed in seeds:
        path = folder / str(seed) / "given.json"
        path.parent.mkdir()
        draw = random.Random(seed)
        parts = [*PARTS, "\ud800"] if seed % 5 == 0 else PARTS
        name, gpu, job, user, key = ("".join(draw.choices(parts, k=4)) for _ in range(5))
        given = document(name, gpu, job, user=user, group=user, model=user)
        if draw.random() < 0.3:  # what is no part of such a file, or invalid there
            draw.choice([given, given["cluster"], given["jobs"][0]])[draw.choice([key, "objective", "gpus"])] = key
        if draw.random() < 0.1:
            given["jobs"] *= 2  # the same name twice
        path.write_text(json.dumps(given))
        every = commands(path, key)
        found = command(*every[seed % len(every)])
        assert not OBEYED.search(found.out + found.err), (seed, every[seed % len(every)], found)
        assert "Traceback" not in found.err
        taken += found.code in (0, 1)
        if seed % 20 == 0 and found.code == 0:
            assert not OBEYED.search(html_of("instance", load(str(path))))
    return taken


@pytest.mark.parametrize("count", [40, studied(5000)])
def test_control_characters_never_reach_a_terminal(count: int, command: Callable[..., Any], tmp_path: Path) -> None:
    assert attack(command, tmp_path, range(count)) > count / 8


def test_a_name_cannot_forge_a_line(command: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "given.json"
    path.write_text(json.dumps(document(FORGED, "GPU\nforged", "job\nforged")))
    for arguments in (("run", path, "-p", "fifo"), ("bound", path), ("solve", path)):
        found = command(*arguments)
        assert not re.search(r"^(bound: no schedule is below 1 |forged)", found.out + found.err, re.MULTILINE)


def test_html_shows_them_written_out(tmp_path: Path) -> None:
    path = tmp_path / "given.json"
    path.write_text(json.dumps(document("\x1b[2J\u202e", "\x9b", "\x00")))
    instance = load(str(path))
    for shown in (html_of("instance", instance), html_of("report", evaluate(instance, ["fifo"]))):
        assert not OBEYED.search(shown)
