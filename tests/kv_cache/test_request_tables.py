"""The table of `run` for requests, the chart of cells, and the batches of Azure's conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import optsched as osd
from optsched.classes.kv_cache.problem.requests import request_instance, requests_of
from optsched.classes.kv_cache.studies.azure_batches import FILE, azure_batch
from optsched.errors import InputError
from optsched.studies.study_file import STUDIES


def test_the_table_has_the_time_to_the_first_token(
    tmp_path: Path, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In rounds, or in seconds if rounds have affine length; with the number of requests that were thrown out."""
    monkeypatch.setenv("COLUMNS", "200")  # all columns in one table
    for affine, latency in ((False, " 12 "), (True, " s ")):
        file = tmp_path / f"{affine}.json"
        request_instance([1, 1], [8, 8], 12, affine=affine).save(file)
        code, out, _ = command("run", str(file), "-p", "vllm-fcfs")
        assert code == 0
        flat = " ".join(out.replace("│", " ").replace("┃", " ").split())
        assert all(head in flat for head in ("mean TTFT", "p95 TTFT", "thrown out", "cells in use"))
        assert latency in flat
        assert "GPU-h" not in flat


@pytest.mark.parametrize(("n", "triangles"), [(3, 3), (420, 1)])
def test_the_chart_says_how_many_requests_and_cells(n: int, triangles: int) -> None:
    """Up to 400 executions are triangles, more are one filled curve."""
    instance = request_instance([1] * n, [8] * n, 1200)
    axes = osd.plot.cells(osd.simulate(instance, "mc-sf"))
    assert f"{n} requests, 1,200 cells" in axes.get_title(loc="left")
    assert sum(len(shape.get_paths()) for shape in axes.collections) == triangles


def test_the_study_says_what_it_leaves_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    study = STUDIES.get("kv-cache")
    monkeypatch.setenv("OPTSCHED_DATA", str(tmp_path))
    assert {each.name for each in study.declare()} == {"synthetic", "large"}
    assert study.left_out() == f"left out: azure, azure-online; the folder OPTSCHED_DATA has no {FILE}"
    assert "the small size" in study.left_out(small=True)
    with pytest.raises(InputError, match="OPTSCHED_DATA"):
        azure_batch(1)
    assert STUDIES.get("hadar").left_out() == ""


def test_batches_follow_one_another(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Seed k has the k-th requests; the last batch may be smaller, and none comes behind it."""
    (tmp_path / FILE).parent.mkdir()
    rows = [f"2023-11-16 18:00:0{k}.0000000,{10 + k},{k + 1}" for k in range(5)]
    (tmp_path / FILE).write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *rows]))
    monkeypatch.setenv("OPTSCHED_DATA", str(tmp_path))
    study = STUDIES.get("kv-cache")
    assert study.left_out() == ""
    assert {each.name for each in study.declare()} == {"synthetic", "large", "azure", "azure-online"}
    batches = [requests_of(azure_batch(seed, jobs=2)) for seed in (1, 2, 3)]
    assert [each.prompt.tolist() for each in batches] == [[10, 11], [12, 13], [14]]
    assert requests_of(azure_batch(2, jobs=2, online=True, round=0.5)).arrival.tolist() == [0, 2]
    with pytest.raises(InputError, match="no job"):
        azure_batch(4, jobs=2)
