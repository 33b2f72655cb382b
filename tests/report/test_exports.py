"""Files of a run for other programs: CSV, Excel, priorities for Slurm, and traces from the command line."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest

from optsched.errors import InputError
from optsched.problem.instance import Instance, Job
from optsched.report import exports
from optsched.report.exports import MOST_ROWS, save_tables


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_table_of_a_run_as_csv_has_the_numbers_of_its_json(command: Any, tmp_path: Path) -> None:
    done = command("run", "rigid-06-1", "-p", "fifo", "-p", "srtf", "--csv", tmp_path / "t.csv", "--json")
    assert done.code == 0, done.err
    table, runs = rows(tmp_path / "t.csv"), json.loads(done.out)["runs"]
    assert [row["policy"] for row in table] == ["fifo", "srtf"]
    for row, run in zip(table, runs, strict=True):
        assert [float(row[key]) for key in ("value", "ratio", "mean_jct", "gpu_hours_waiting")] == [
            run["value"],
            run["ratio"],
            run["metrics"]["mean_jct"],
            run["metrics"]["gpu_hours"]["waiting"],
        ]


def test_the_jobs_of_all_policies_are_one_table(command: Any, tmp_path: Path) -> None:
    done = command("run", "rigid-06-1", "-p", "fifo", "-p", "srtf", "--export", "jobs", tmp_path / "j.csv")
    assert f"wrote {tmp_path / 'j.csv'}\n" in done.out
    table = rows(tmp_path / "j.csv")
    assert [row["policy"] for row in table] == ["fifo"] * 6 + ["srtf"] * 6
    assert sum(float(row["end"]) for row in table[6:]) == 155  # total completion time


def test_slurm_priorities_are_the_order_of_starts(command: Any, tmp_path: Path) -> None:
    jobs = [
        Job("7_1", arrival=0, duration=100),
        Job("9", arrival=1, duration=50),
        Job("8", arrival=1, duration=10),
        Job("10", arrival=2, duration=70, gpus=2),
    ]
    Instance(jobs, "1x1+1x2").save(tmp_path / "i.json")
    done = command("run", tmp_path / "i.json", "-p", "sjf", "--export", "slurm-priorities", tmp_path / "p.csv")
    assert done.code == 0, done.err
    table = rows(tmp_path / "p.csv")
    assert [(row["job_id"], float(row["start"])) for row in table] == [("7_1", 0), ("9", 1), ("8", 1), ("10", 51)]
    assert [int(row["priority"]) for row in table] == list(range(4_294_960_000, 4_294_959_996, -1))
    assert [int(row["nice"]) for row in table] == [0, 1000, 2000, 3000]


def test_only_jobs_that_wait_have_priorities(command: Any, tmp_path: Path) -> None:
    jobs = [Job("1", 0, 1, 60, ran=((0, 60),)), Job("2_[1-5%2]", 0, 1, 70), Job("3", 0, 1, 50)]
    Instance(jobs, "1x1").save(tmp_path / "i.json")
    asked = ("run", tmp_path / "i.json", "-p", "sjf", "--export", "slurm-priorities", tmp_path / "p.csv")
    assert command(*asked).code == 0
    assert [row["job_id"] for row in rows(tmp_path / "p.csv")] == ["3", "2_[1-5]"]  # without the limit of the array
    Instance(jobs[:1], "1x1").save(tmp_path / "i.json")
    assert "no job waits: the log says of every job when it ran (expected: slurm-pending:" in command(*asked).mistake


def test_the_ratios_of_a_suite_as_csv(command: Any, tmp_path: Path) -> None:
    assert command("ratio", "rigid-06-1", "-p", "fifo", "--csv", tmp_path / "r.csv").code == 0
    assert [(row["policy"], float(row["value"])) for row in rows(tmp_path / "r.csv")] == [("fifo", 205)]


@pytest.mark.parametrize(("asked", "name"), [(("run", "-p", "srtf"), "run"), (("solve",), "solve")])
def test_o_writes_a_trace_by_its_name(command: Any, tmp_path: Path, asked: tuple[str, ...], name: str) -> None:
    file = tmp_path / f"{name}.trace.json"
    done = command(asked[0], "rigid-06-1", *asked[1:], "-o", file)
    assert (done.code, done.out.splitlines()[-1]) == (0, f"wrote {file}")
    assert {event["ph"] for event in json.loads(file.read_text())["traceEvents"]} == {"M", "X", "C"}
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("-o", "{}/x.trace.json"), "a trace holds one run, not 3 (expected: exactly one -p)"),
        (("--export", "slurm-priorities", "{}/x.csv"), "the export slurm-priorities holds one run, not 3"),
        (("--export", "job", "{}/x.csv"), "no export named 'job'; did you mean jobs?"),
        (("--export", "jobs", "{}/x.txt"), "the format of a table from its name (expected: .csv or .xlsx)"),
        (("--csv", "{}/none/x.csv"), "cannot write"),
        (("--csv", "{}"), "format of a table"),
    ],
)
def test_what_cannot_be_written_is_refused_before_the_run(
    command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: tuple[str, ...], message: str
) -> None:
    monkeypatch.setattr("optsched.evaluation.evaluate.evaluate", None)
    done = command("run", "rigid-06-1", *(word.format(tmp_path) for word in asked))
    assert message in done.mistake
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", [("--csv",), ("--export", "jobs")])
def test_an_export_never_replaces_the_source(command: Any, tmp_path: Path, option: tuple[str, ...]) -> None:
    log = tmp_path / "log.csv"
    log.write_text("id,arrival,gpus,duration\na,0,1,5\n")
    done = command("run", f"csv:{log}", "--cluster", "1x1", *option, log)
    assert f"{option[0]} = '{log}': would replace its own source" in done.mistake
    assert log.read_text().startswith("id,arrival")


def test_excel_needs_its_extra(command: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports.importlib.util, "find_spec", lambda name: None)
    line = command("run", "rigid-06-1", "-p", "fifo", "--csv", tmp_path / "t.xlsx").mistake
    assert line == f"optsched: {tmp_path / 't.xlsx'}: Excel files need XlsxWriter: pip install 'optsched[excel]'\n"


def test_an_excel_file_has_a_sheet_for_the_policies_and_one_for_each(command: Any, tmp_path: Path) -> None:
    pytest.importorskip("xlsxwriter", reason="needs the extra excel")
    file = tmp_path / "t.xlsx"
    assert command("run", "rigid-06-1", "-p", "fifo", "-p", "fifo:skip=true", "--csv", file).code == 0
    with zipfile.ZipFile(file) as book:
        sheets = ElementTree.fromstring(book.read("xl/workbook.xml")).findall(".//{*}sheet")
        assert [sheet.get("name") for sheet in sheets] == ["policies", "01 fifo", "02 fifo-skip=true"]
        cells = ElementTree.fromstring(book.read("xl/worksheets/sheet2.xml")).findall(".//{*}c")
        ends = [
            float(cell.findtext("{*}v", "")) for cell in cells if cell.attrib["r"][0] == "D" and cell.get("t") != "s"
        ]
    assert sum(ends) == 205  # total completion time of fifo
    with pytest.raises(InputError, match="rows do not fit on a sheet"):
        save_tables({"x": pl.DataFrame({"a": range(MOST_ROWS + 1)})}, file)


def test_names_that_look_like_formulas_are_text_in_a_spreadsheet(tmp_path: Path) -> None:
    names = ["=1+1", "+1+cmd", "@x", "-2", "plain", "-", "1.5e3"]
    save_tables({"t": pl.DataFrame({"id": names, "n": range(len(names))})}, tmp_path / "t.csv")
    assert pl.read_csv(tmp_path / "t.csv", infer_schema=False)["id"].to_list() == [
        "'=1+1",
        "'+1+cmd",
        "'@x",
        "-2",
        "plain",
        "'-",
        "1.5e3",
    ]
