"""The tables at 60, 80, 120 and 200 columns: nothing is wider than the screen, no number is broken or missing."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from examples import few
from rich.cells import cell_len
from rich.console import Console

from optsched.cli.layout import PIPED, Column, Sheet
from optsched.cli.tables import duration
from optsched.problem.instance import Instance, Job

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
        ["list", "guarantees", "hadar-commit"],
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
    sheet = Sheet([Column("policy", right=False), *(Column(f"number {k}") for k in range(8))])
    sheet.add("fifo", *(f"{k}1,234,567.8" for k in range(8)))
    blocks = [line for line in drawn(sheet, 60) if line.startswith("│")]
    assert len(blocks) > 1
    assert all(line.split("│")[1].strip() == "fifo" for line in blocks)
    numbers = [cell.strip() for line in blocks for cell in line.split("│")[2:-1]]
    assert numbers == [f"{k}1,234,567.8" for k in range(8)]


def test_what_tells_is_broken_between_words_or_stands_in_a_table_below() -> None:
    sheet = Sheet([Column("policy", right=False), Column("ratio"), Column("guarantee", right=False, tells=True)])
    sheet.add("srtf", "1.234", "a theorem of many words that holds for every instance of this kind")
    assert len([line for line in drawn(sheet, 120) if "theorem" in line and "│" in line]) == 1
    beside, below = drawn(sheet, 60), drawn(sheet, 40)
    assert any("1.234" in line and "a theorem of" in line for line in beside)
    assert len([line for line in below if "srtf" in line]) == 2
    for lines in (beside, below):
        told = " ".join(line.split("│")[-2].strip() for line in lines if line.startswith("│"))
        assert told.endswith("a theorem of many words that holds for every instance of this kind")


def test_a_number_is_never_broken_even_where_nothing_fits() -> None:
    sheet = Sheet([Column("name", right=False), Column("number")])
    sheet.add("a", "1" * 50)
    assert any("1" * 50 in line for line in drawn(sheet, 60))


def test_times_are_in_the_unit_a_reader_would_choose_and_rounding_is_none() -> None:
    shown = [duration(seconds) for seconds in (0.0, 5.9e-15, 1e-12, 0.25, 90, 600, 7200, 3 * 86400)]
    assert shown == ["0 s", "0 s", "1e-12 s", "0.25 s", "90 s", "10.0 min", "2.0 h", "3.0 d"]
