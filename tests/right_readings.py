"""Right readings of real logs, ``*.reading.json`` next to their files: what a reader must return for every job."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from optsched.io.traces.dialect import TraceRead

TOLERANCE = 1e-6  # seconds


def right_reading(file: Path) -> dict[str, Any]:
    """The reading next to a file: ``jobs``, ``left_out`` (id: reason) and ``say``."""
    beside = file.with_name(f"{file.name}.reading.json")
    document: dict[str, Any] = json.loads(
        (beside if beside.is_file() else file.with_suffix(".reading.json")).read_text()
    )
    return document


def seconds_of(moment: Any) -> float:
    """Seconds of a number, or of a date-time; one without a zone counts as UTC."""
    if isinstance(moment, int | float):
        return float(moment)
    text = re.sub(r" (GMT|UTC)$|Z$", "+00:00", str(moment).strip())
    at = datetime.fromisoformat(text)
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def assert_read_rightly(read: TraceRead, reading: dict[str, Any], *, skip: tuple[str, ...] = ()) -> None:
    """Compare every job that was read with its right reading: id, times from the first submission, gang, limit, labels.

    ``skip`` names keys of the reading that the format's dialect cannot hold, with a reason at the call.
    """
    rows = {row["id"]: row for row in read.table.iter_rows(named=True)}
    wanted = {str(job["id"]): job for job in reading["jobs"]}
    assert rows.keys() == wanted.keys()
    first = min(seconds_of(job["submit"]) for job in wanted.values()) if "submit" in reading["jobs"][0] else 0.0
    start_of_file = min(row["arrival"] for row in rows.values())
    for name, job in wanted.items():
        row = rows[name]
        for key, value in job.items():
            if key not in skip and key in _CHECKS:
                _CHECKS[key](row, job, value, first - start_of_file)


def _near(found: float | None, right: float, what: object) -> None:
    assert found == pytest.approx(right, abs=TOLERANCE), what


def _label(field: str) -> Any:
    def check(row: dict[str, Any], job: dict[str, Any], value: Any, _: float) -> None:
        assert row.get(field) == (None if value is None else str(value)), (job, row)

    return check


def _limit(row: dict[str, Any], job: dict[str, Any], value: Any, _: float) -> None:
    assert row.get("walltime") == value, (job, row)


def _gang(row: dict[str, Any], job: dict[str, Any], value: Any, _: float) -> None:
    assert row["gpus"] == value, (job, row)


def _submit(row: dict[str, Any], job: dict[str, Any], value: Any, shift: float) -> None:
    _near(row["arrival"], seconds_of(value) - shift, (job, row))


def _start(row: dict[str, Any], job: dict[str, Any], value: Any, shift: float) -> None:
    if value is None:
        assert not row.get("ran"), (job, row)
    else:
        _near(row["ran"][0][0], seconds_of(value) - shift, (job, row))


def _duration(row: dict[str, Any], job: dict[str, Any], value: Any, _: float) -> None:
    _near(row["duration"], float(value), (job, row))


def _pieces(row: dict[str, Any], job: dict[str, Any], value: Any, shift: float) -> None:
    assert len(row["ran"]) == len(value), (job, row)
    for piece, (start, end) in zip(row["ran"], value, strict=True):
        _near(piece[0], seconds_of(start) - shift, (job, row))
        _near(piece[1], seconds_of(end) - shift, (job, row))


_CHECKS = {
    "submit": _submit,
    "start": _start,
    "duration": _duration,
    "gpus": _gang,
    "procs": _gang,
    "limit": _limit,
    "pieces": _pieces,
    **{field: _label(field) for field in ("status", "user", "group")},
}
