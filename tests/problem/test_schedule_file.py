"""The text of schedule files: written a column at a time, it is what the standard library writes a row at a time."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given, strategies as st

from optsched.problem.schedule_file import read_segments, write_segments

COLUMNS = ("job", "start", "end", "work", "gpu_offset", "gpu_node", "gpu_index")
IDS = ['a"', "b\\", "line\nbreak", '", "', "ä\u2028\U0001f600", "", "{x}", "null"]  # a job each, unlike any other
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**60), 2**60).map(float),
    st.sampled_from([-0.0, 0.1, 1e-7, 2.0**53, 2.0**53 - 1, 1e16, 1e22, 5e-324, 2.0**63, -(2.0**63)]),
)
SEGMENTS = st.lists(
    st.tuples(
        st.integers(0, len(IDS) - 1),
        st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9)), max_size=4),
        st.tuples(NUMBERS, NUMBERS, NUMBERS),
        st.integers(1, 3),
    ),
    max_size=6,
)


def scheduled(digest: str, ids: list[str], *columns: np.ndarray) -> Any:
    """What a file needs of a schedule, of jobs that no instance could have."""
    parts = dict(zip(COLUMNS, columns, strict=True))
    return SimpleNamespace(instance=SimpleNamespace(digest=digest, ids=ids), policy="fifo", **parts)


@given(segments=SEGMENTS, shared=st.booleans())
def test_the_columns_are_written_as_rows(tmp_path_factory: Any, segments: list[Any], shared: bool) -> None:
    path = Path(tmp_path_factory.getbasetemp()) / "rows.json"
    job, gangs, times, steps = ([row[k] for row in segments] for k in range(4))
    start, end, work = np.array(times, dtype=np.float64).reshape(-1, 3).T
    pairs = np.array([pair for gang in gangs for pair in gang], dtype=np.int64).reshape(-1, 2)
    columns = (
        np.array(job, dtype=np.int64),
        *(start, end, work),
        np.cumsum([0, *map(len, gangs)]),
        *(pairs[:, 0], pairs[:, 1]),
    )
    given_steps = np.array(steps, dtype=np.int64) if shared else None
    stated = {"sharing": True} if shared else {}
    write_segments(path, scheduled("digest", IDS, *columns), stated, given_steps)

    text = path.read_text(encoding="utf-8")
    plain = []
    for j, gang, (a, b, c), k in segments:
        row = {
            "job": IDS[j],
            "gpus": gang,
            "start": a,
            "end": b,
            "work": c,
            **({"steps": k} if shared and k > 1 else {}),
        }
        plain.append(json.loads(json.dumps(row)))
    assert json.loads(text)["segments"] == plain
    assert text.count("\n") == 5 + len(stated) + max(1, len(segments)) + 2, "one line a segment"

    found = read_segments(path, "digest", {name: j for j, name in enumerate(IDS)})
    for one, other in zip(found[:7], columns, strict=True):
        assert one.tolist() == other.tolist()
    assert (found[8] is None) == (not shared)
    assert not shared or found[8].tolist() == steps


def test_whole_numbers_have_no_fraction(tmp_path: Path) -> None:
    path, none = tmp_path / "s.json", np.zeros(0, dtype=np.int64)
    times = np.array([0.0]), np.array([59.0]), np.array([58.5])
    write_segments(path, scheduled("d", ["1"], np.array([0]), *times, np.array([0, 0]), none, none), {})
    assert '  {"job": "1", "gpus": [], "start": 0, "end": 59, "work": 58.5}\n' in path.read_text(encoding="utf-8")
