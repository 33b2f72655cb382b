"""Parquet that nobody vouches for: one line where it is damaged, no table larger than its file can be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from optsched.errors import InputError
from optsched.problem.parquet import parquet_metadata, read_parquet


@pytest.fixture
def content(tmp_path: Path) -> bytes:
    path = tmp_path / "table.parquet"
    table = pl.DataFrame({"id": [f"job-{k}" for k in range(50)], "x": np.linspace(0, 1, 50), "g": [[1, 2]] * 50})
    table.write_parquet(path, metadata={"key": "value"})
    return path.read_bytes()


def test_a_whole_file(content: bytes, tmp_path: Path) -> None:
    metadata, table = read_parquet(content, "t.parquet", "a table")
    assert metadata["key"] == "value"
    assert table.shape == (50, 3)
    assert parquet_metadata(content, "t.parquet", "a table")["key"] == "value"
    (tmp_path / "again.parquet").write_bytes(content)
    assert read_parquet(tmp_path / "again.parquet", "t.parquet", "a table")[1].equals(table)


def test_a_spoiled_file_is_one_line(content: bytes) -> None:
    rng, refused = np.random.default_rng(0), 0
    for _ in range(400):
        spoiled = bytearray(content)
        for place in rng.integers(4, len(content) - 8, 3):
            spoiled[place] = int(rng.integers(0, 256))
        try:
            read_parquet(bytes(spoiled), "t.parquet", "a table")
        except InputError as error:
            refused += 1
            assert str(error).startswith("t.parquet")  # noqa: PT017
    assert refused > 100


def test_a_truncated_file_is_one_line_wherever_it_is_cut(content: bytes) -> None:
    for cut in [*range(0, len(content), 53), len(content) - 1]:
        with pytest.raises(InputError, match=r"t\.parquet: not a Parquet file, or a truncated one") as caught:
            read_parquet(content[:cut], "t.parquet", "a table")
        assert "\n" not in str(caught.value)


def test_rows_that_so_few_bytes_cannot_hold(tmp_path: Path) -> None:
    path = tmp_path / "bomb.parquet"
    pl.DataFrame({"x": pl.zeros(20_000_000, eager=True)}).write_parquet(path)
    assert path.stat().st_size < 500_000
    with pytest.raises(InputError, match="claims 20000000 rows"):
        read_parquet(path, path, "a table")
