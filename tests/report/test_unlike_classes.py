"""Tables name what each policy knows, and mark ratios to bounds of different classes of schedules."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

import optsched as osd
from optsched.problem.html import html_of
from optsched.report.classes import UNLIKE, marks

# with a proven optimum of schedules without preemption, so that srtf is beside a bound of another class
MIXED = "rigid-06-1", "-p", "fifo", "-p", "sjf", "-p", "srtf"


def test_rows_are_alike_where_what_they_are_compared_with_is_the_same() -> None:
    assert marks([]) == []
    assert marks([{"x": 1}, {"x": 1}, {}]) == ["", "", ""]
    assert marks([{"x": 1}, {"x": 2}, {"x": 1}]) == ["a", "b", "a"]
    assert marks([{"x": 1, "y": 1}, {"y": 1}, {"x": 1, "y": 3}]) == ["a", "a", "b"]
    assert marks([{"x": k} for k in range(27)])[-1] == "(27)"


def cells(text: str, head: str) -> list[str]:
    """The cells below a head that one line holds, whatever table it is in."""
    found: list[str] = []
    for table in text.split("┏")[1:]:
        heads = [line for line in table.splitlines() if line.startswith("┃")]
        names = [
            " ".join(" ".join(parts).split())
            for parts in zip(*(line.strip("┃").split("┃") for line in heads), strict=True)
        ]
        if head in names:
            at = names.index(head)
            found += [line.strip("│").split("│")[at].strip() for line in table.splitlines() if line.startswith("│")]
    return found


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_run_names_knowledge_and_marks_ratios_of_other_classes(screen: Any, columns: int) -> None:
    shown = screen(columns, "run", *MIXED).shown
    assert max(map(cell_len, shown.splitlines())) <= columns
    assert cells(shown, "knowledge") == ["non-clairvoyant", "clairvoyant", "clairvoyant"]
    assert [cell[-2:] for cell in cells(shown, "ratio")] == [" a", " a", " b"]
    assert len(cells(shown, "queued GPU-h avoided")) == 3
    words = " ".join(shown.split())
    assert "a: optimum 156 (class gang-nonpreemptive" in words
    assert "b: lower bound" in words
    assert words.count(UNLIKE) == 1
    assert "saves" not in words


def test_where_all_are_of_one_class_nothing_is_marked(screen: Any) -> None:
    shown = screen(80, "run", "rigid-06-1", "-p", "fifo", "-p", "sjf").shown
    assert [cell[-2:].strip().isalpha() for cell in cells(shown, "ratio")] == [False, False]
    assert UNLIKE not in " ".join(shown.split())


def test_ratio_names_knowledge_and_marks(screen: Any) -> None:
    shown = screen(80, "ratio", *MIXED).shown
    assert cells(shown, "knowledge") == ["non-clairvoyant", "clairvoyant", "clairvoyant"]
    for head in ("worst ratio", "mean ratio", "median", "p90"):
        assert [cell[-2:] for cell in cells(shown, head)] == [" a", " a", " b"]
    assert f"{UNLIKE} (a: gang-nonpreemptive; b: gang)" in " ".join(shown.split())
    assert cells(screen(80, "ratio", "rigid-06-1", "-p", "spjf", "--errors", "1").shown, "knowledge") == ["predicted"]


def test_a_sweep_names_knowledge_and_marks(screen: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "grid.toml").write_text('policies = ["fifo", "srtf"]\n[[instances]]\nsource = "rigid-06-1"\n')
    shown = screen(80, "sweep", "grid.toml", "--workers", 1).shown
    assert cells(shown, "knowledge") == ["non-clairvoyant", "clairvoyant"]
    assert (
        [cell[-2:] for cell in cells(shown, "mean ratio")]
        == [cell[-2:] for cell in cells(shown, "worst ratio")]
        == [" a", " b"]
    )
    assert UNLIKE in " ".join(shown.split())


def test_a_page_of_a_report_marks_them(command: Callable[..., Any]) -> None:
    report = osd.evaluate("rigid-06-1", ["fifo", "srtf"])
    page = html_of("report", report)
    assert all(f"<td>{word}</td>" in page for word in ("non-clairvoyant", "clairvoyant", "gang-nonpreemptive", "gang"))
    assert " a</td>" in page
    assert " b</td>" in page
    assert UNLIKE in page


def test_the_list_of_policies_says_what_they_know_and_what_is_proven(command: Callable[..., Any]) -> None:
    rows = {row["name"]: row for row in command("list", "policies", "--json").document["policies"]}
    assert rows["a-srpt"]["knowledge"] == "predicted"
    assert rows["fifo"]["guarantees"].startswith("fifo-flow, fifo-gangs")
    assert rows["gavel"]["guarantees"] == "none known"
    words = command("list", "policies").words
    assert "knowledge: non-clairvoyant; guarantees: fifo-flow" in words
    assert "knowledge predicted guarantees a-srpt" in command("list", "policies", "a-srpt").words
