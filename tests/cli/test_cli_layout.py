"""The tables at several widths: nothing is wider than the screen, no number is broken; names that a terminal would obey."""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from examples import few, studied
from rich.cells import cell_len
from rich.console import Console

from optsched.cli.layout import PIPED, Sheet
from optsched.cli.wording import duration
from optsched.errors import InputError
from optsched.evaluation.evaluate import evaluate
from optsched.io.sources import load
from optsched.problem.html import html_of
from optsched.problem.instance import Instance, Job

# -- The tables at 60, 80, 120 and 200 columns: nothing is wider than the screen, no number is broken or missing ----------


pytestmark = pytest.mark.release

WIDTHS = (60, 80, 120, 200)
NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*(?![\w.])")


@pytest.fixture
def million(tmp_path: Path) -> str:
    jobs = [Job(f"j{k}", arrival=12345.5 * k, gpus=1 + k % 3, duration=98765.25 * (1 + k % 4)) for k in range(12)]
    path = tmp_path / "million.json"
    Instance(jobs, "2x4", name="million", objective="total_weighted_completion_time").save(path)
    return str(path)


POLICIES = ("-p", "fifo", "-p", "srtf", "-p", "tiresias+random:seed=12345678901234567890")


def rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("│")]


def cells(text: str) -> set[str]:
    """Cells with numbers, but names of policies."""
    found = {cell.strip() for row in rows(text) for cell in row.split("│") if NUMBER.search(cell)}
    return {cell for cell in found if "random" not in cell and "seed" not in cell}


@pytest.mark.parametrize("columns", WIDTHS)
def test_run_fits_and_loses_no_number(screen: Any, million: str, columns: int) -> None:
    shown, wide = screen(columns, "run", million, *POLICIES).out, screen(1000, "run", million, *POLICIES).out
    assert max(map(cell_len, shown.splitlines())) <= columns
    # the same cells, whole, whatever the number of blocks that they stand in
    narrow_cells, wide_cells = cells(shown), cells(wide)
    assert wide_cells <= narrow_cells
    assert len(wide_cells) > 15


@pytest.mark.parametrize("columns", few(WIDTHS, 2))
@pytest.mark.parametrize(
    "arguments",
    [
        ["solve", "rigid-06-1"],
        ["bound", "rigid-06-1"],
        ["ratio", "wide-gangs", "-p", "wspt", "-p", "srtf"],
        ["list", "policies"],
        ["list", "guarantees"],
        ["list", "guarantees", "hadar"],
        ["list", "recipes"],
        ["list", "policies", "gavel"],
        ["list", "recipes", "philly-like"],
    ],
    ids=" ".join,
)
def test_every_table_fits(screen: Any, columns: int, arguments: list[str]) -> None:
    shown = screen(columns, *arguments).out
    assert shown
    assert max(map(cell_len, shown.splitlines())) <= columns


def test_piped_output_is_wide_unless_it_is_told_otherwise(screen: Any, million: str) -> None:
    table = screen(None, "run", million, *POLICIES).out.splitlines()
    assert 120 < cell_len(table[0]) <= PIPED
    assert cell_len(screen(90, "run", million, *POLICIES).out.splitlines()[0]) <= 90


def drawn(sheet: Sheet, width: int) -> list[str]:
    page = io.StringIO()
    Console(file=page, width=width).print(sheet)
    return page.getvalue().splitlines()


def test_columns_that_do_not_fit_stand_below_from_left_to_right_under_the_same_first_column() -> None:
    sheet = Sheet(("policy", *(f"number {k}" for k in range(8))))
    sheet.add("fifo", *(f"{k}1,234,567.8" for k in range(8)))
    blocks = [line for line in drawn(sheet, 60) if line.startswith("│")]
    assert len(blocks) > 1
    assert all(line.split("│")[1].strip() == "fifo" for line in blocks)
    numbers = [cell.strip() for line in blocks for cell in line.split("│")[2:-1]]
    assert numbers == [f"{k}1,234,567.8" for k in range(8)]


def test_what_tells_is_broken_between_words_or_stands_in_a_table_below() -> None:
    sheet = Sheet(("policy", "ratio", "guarantee"), tells=("guarantee",))
    sheet.add("srtf", "1.234", "a theorem of many words that holds for every instance of this kind")
    assert len([line for line in drawn(sheet, 120) if "theorem" in line and "│" in line]) == 1
    beside, below = drawn(sheet, 60), drawn(sheet, 40)
    assert any("1.234" in line and "a theorem of" in line for line in beside)
    assert len([line for line in below if "srtf" in line]) == 2
    for lines in (beside, below):
        told = " ".join(line.split("│")[-2].strip() for line in lines if line.startswith("│"))
        assert told.endswith("a theorem of many words that holds for every instance of this kind")


def test_a_number_is_never_broken_even_where_nothing_fits() -> None:
    sheet = Sheet(("name", "number"))
    sheet.add("a", "1" * 50)
    assert any("1" * 50 in line for line in drawn(sheet, 60))


def test_times_are_in_the_unit_a_reader_would_choose_and_rounding_is_none() -> None:
    shown = [duration(seconds) for seconds in (0.0, 5.9e-15, 1e-12, 0.25, 90, 600, 7200, 3 * 86400)]
    assert shown == ["0 s", "0 s", "1e-12 s", "0.25 s", "90 s", "10.0 min", "2.0 h", "3.0 d"]


# -- Names come from files of anybody: what a terminal would obey never reaches it ----------------------------------------


OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
PARTS = ["\x1b[2J", "\x1b]0;x\x07", "\x1b]8;;http://x\x1b\\", "\x9b31m", "\n", "\r", "\t", "\x08\x08", "\x00", "\x7f"]
PARTS += ["\x85", "\u2028", "\u2029", *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))]
PARTS += ["a", "é", "界", "|"]
FORGED = "x\nlower bound 1 (re-verified)\n"


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


def test_a_name_cannot_forge_a_line(command: Callable[..., Any], written: Callable[..., Path]) -> None:
    path = written(document(FORGED, "GPU\nforged", "job\nforged"))
    for arguments in (("run", path, "-p", "fifo"), ("bound", path), ("solve", path)):
        found = command(*arguments)
        assert not re.search(r"^(lower bound 1 |forged)", found.out + found.err, re.MULTILINE)


def test_html_shows_them_written_out(written: Callable[..., Path]) -> None:
    instance = load(written(document("\x1b[2J\u202e", "\x9b", "\x00")))
    for shown in (html_of("instance", instance), html_of("report", evaluate(instance, ["fifo"]))):
        assert not OBEYED.search(shown)


def test_names_are_broken_tighter_where_that_saves_a_table() -> None:
    sheet = Sheet(("policy", "knowledge", "one", "two"), texts=("knowledge",))
    sheet.add("fifo+consolidated", "non-clairvoyant", "1,234,567", "7,654,321")
    wide, narrow = ("\n".join(drawn(sheet, width)) for width in (64, 54))
    assert "fifo+consolidated" in wide
    assert wide.count("policy") == narrow.count("policy") == 1
    assert "fifo+consolidated" not in narrow
    assert "non-clairvoyant" not in narrow
