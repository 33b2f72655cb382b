"""Names come from files of anybody: what a terminal would obey never reaches it."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from optsched.io.sources import load
from optsched.problem.html import html_of
from optsched.report.comparison import evaluate

OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
PARTS = ["\x1b[2J", "\x1b]0;x\x07", "\n", "\r", "\x9b31m", "\x08\x08", "\u202e", "\x00", "\u2028", "a", "é", "界", "|"]
FORGED = "x\nbound: no schedule is below 1 (proved again)\n"


def document(name: str, gpu: str, job: str) -> dict[str, Any]:
    return {
        "format": "optsched-instance/1",
        "name": name,
        "cluster": {"nodes": [{"gpus": 1, "gpu": gpu}, {"gpus": 1, "gpu": "other"}]},
        "jobs": [{"id": job, "duration": 3}],
    }


def attack(command: Callable[..., Any], folder: Path, seeds: range) -> int:
    """How many of the files were taken."""
    path, taken = folder / "given.json", 0
    for seed in seeds:
        draw = random.Random(seed)
        name, gpu, job, key = ("".join(draw.choices(PARTS, k=4)) for _ in range(4))
        given = document(name, gpu, job)
        kind = seed % 4
        if kind == 0:
            draw.choice([given, given["cluster"], given["jobs"][0]])[key] = key
        path.write_text(json.dumps(given))
        arguments = [("run", path, "-p", "fifo"), ("run", path, "-p", key or "x"), ("bound", path), ("solve", path)][
            kind
        ]
        found = command(*arguments)
        assert not OBEYED.search(found.out + found.err), (seed, found)
        taken += found.code in (0, 1)
    return taken


def test_control_characters_never_reach_a_terminal(command: Callable[..., Any], tmp_path: Path) -> None:
    assert attack(command, tmp_path, range(120)) > 20


@pytest.mark.study
def test_5000_files_with_control_characters(command: Callable[..., Any], tmp_path: Path) -> None:
    assert attack(command, tmp_path, range(5000)) > 1000


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
