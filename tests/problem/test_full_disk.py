"""A disk that is full while a table is written: one line, and nothing half-written stays."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import optsched as osd


@pytest.mark.parametrize(
    "error",
    [
        pl.exceptions.ComputeError(f"parquet: underlying IO error: No space left on device (os error {errno.ENOSPC})"),
        OSError(errno.ENOSPC, "No space left on device"),
    ],
)
def test_nothing_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fails(table: Any, path: Path, **options: Any) -> None:
        path.write_bytes(b"PAR1")
        raise error

    instance = osd.load("rigid-06-1")
    monkeypatch.setattr(pl.DataFrame, "write_parquet", fails)
    for save in (instance.save, osd.simulate(instance, "fifo").schedule.save):
        with pytest.raises(osd.InputError, match=r"x\.parquet: cannot write: No space left on device$"):
            save(tmp_path / "x.parquet")
    assert list(tmp_path.iterdir()) == []


def test_an_optimum_on_a_clock_of_its_own_is_written() -> None:
    optimum = {"objective": "makespan", "class": "gang-nonpreemptive", "value": 6.5, "proved_by": ["me"]}
    instance = osd.Instance([osd.Job("a", arrival=5, duration=1.5)], "1x1", optimum=optimum)
    assert instance.relative.to_json()["optimum"]["value"] == 1.5
    assert type(instance.relative.to_json()["optimum"]["value"]) is float
